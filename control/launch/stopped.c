/* A rank that others wait for in MPI_Init or MPI_Finalize may be late for hours; one that is stopped by a signal will
 * not come. What tells them apart is in /proc. */
#include "control/launch/private.h"

#include <inttypes.h>
#include <stdio.h>

#include "dataplane/base/process.h"

enum {
    DEPTH_MAX = 8, /* of wrappers around a program */
    SAID_MAX = 8,  /* ranks that are named */
};
#define LOOK_NS UINT64_C(1000000000)

/* Whether a process or one that it has started is stopped: the program may be the child of a script. The first such,
 * or 0. */
static int stopped_find(int process, int depth)
{
    char path[64];
    int child, found = 0;
    if (cw_process_is_stopped(process)) {
        return process;
    }
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", process, process);
    FILE *list = depth < DEPTH_MAX ? fopen(path, "re") : NULL;
    while (list != NULL && found == 0 && fscanf(list, "%d", &child) == 1) {
        found = stopped_find(child, depth + 1);
    }
    if (list != NULL) {
        fclose(list);
    }
    return found;
}

static bool is_awaited(const struct launch_job *job, uint32_t rank)
{
    return job->ranks[rank].handle >= 0 && !cw_pmi1_server_waits(job->server, rank);
}

static bool rank_is_overdue(struct launch_job *job, uint32_t rank, uint64_t now_ns)
{
    struct launch_rank *at = &job->ranks[rank];
    at->stopped = is_awaited(job, rank) ? stopped_find(at->process, 0) : 0;
    if (at->stopped == 0) {
        at->stopped_ns = 0;
        return false;
    }
    at->stopped_ns = at->stopped_ns == 0 ? now_ns : at->stopped_ns;
    return now_ns - at->stopped_ns >= job->stopped_bound_ns;
}

/* Names all that are stopped, not the one only whose time was over first. */
static void stopped_fail(struct launch_job *job, uint64_t now_ns)
{
    uint32_t said = 0, stopped = 0;
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        const struct launch_rank *at = &job->ranks[rank];
        stopped += at->stopped != 0;
        if (at->stopped != 0 && said < SAID_MAX) {
            launch_output_say(job,
                              "rank %" PRIu32 " (process %d) is stopped by a signal (state T) for %" PRIu64
                              " s, while others wait for it in MPI_Init or MPI_Finalize, or are done: ending them",
                              rank, at->stopped, (now_ns - at->stopped_ns) / 1000000000);
            said++;
        }
    }
    if (stopped > said) {
        launch_output_say(job, "so are %" PRIu32 " more", stopped - said);
    }
    launch_fail(job, CW_LAUNCH_EXIT_FAILED, NULL);
}

void launch_stopped_judge(struct launch_job *job, uint64_t now_ns)
{
    /* who is done has been in MPI_Finalize, like all others: what is left to be waited for is the end */
    bool waits = cw_pmi1_server_count(job->server, CW_PMI1_CLIENT_FINISHED) > 0;
    for (uint32_t rank = 0; rank < job->rank_count && !waits; rank++) {
        waits = cw_pmi1_server_waits(job->server, rank);
    }
    if (!waits || job->stopped_bound_ns == 0) {
        job->stopped_look_ns = UINT64_MAX;
        return;
    }
    if (job->stopped_look_ns == UINT64_MAX) {
        job->stopped_look_ns = now_ns + LOOK_NS; /* most barriers are over by then */
        return;
    }
    if (now_ns < job->stopped_look_ns) {
        return;
    }
    job->stopped_look_ns = now_ns + LOOK_NS;
    bool overdue = false;
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        overdue = rank_is_overdue(job, rank, now_ns) || overdue;
    }
    if (overdue && !job->ending) {
        stopped_fail(job, now_ns);
    }
}
