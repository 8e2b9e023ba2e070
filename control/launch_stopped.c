/* A rank that others wait for in MPI_Init or MPI_Finalize may be late for hours; one that is stopped by a signal will
 * not come. What tells them apart is in /proc. */
#include "control/launch_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "dataplane/core/process.h"

enum { DEPTH_MAX = 8 /* of wrappers around a program */ };
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

static void rank_look(struct launch_job *job, uint32_t rank, uint64_t now_ns)
{
    struct launch_rank *at = &job->ranks[rank];
    int process = is_awaited(job, rank) ? stopped_find(at->process, 0) : 0;
    if (process == 0) {
        at->stopped_ns = 0;
        return;
    }
    at->stopped_ns = at->stopped_ns == 0 ? now_ns : at->stopped_ns;
    if (now_ns - at->stopped_ns >= job->stopped_bound_ns) {
        launch_fail(job, CW_LAUNCH_EXIT_FAILED,
                    "rank %" PRIu32 " (process %d) is stopped by a signal (state T) for %" PRIu64
                    " s, while others wait for it in MPI_Init or MPI_Finalize, or are done: ending them",
                    rank, process, (now_ns - at->stopped_ns) / 1000000000);
    }
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
    for (uint32_t rank = 0; rank < job->rank_count && !job->ending; rank++) {
        rank_look(job, rank, now_ns);
    }
}
