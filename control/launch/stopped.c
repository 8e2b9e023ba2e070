/* A rank that others wait for in MPI_Init or MPI_Finalize may be late for hours; one that is stopped by a signal will
 * not come. Its host's /proc distinguishes them. */
#include "control/launch/private.h"

#include <inttypes.h>
#include <stdio.h>

#include "dataplane/base/clock.h"

enum {
    SAID_MAX = 8, /* ranks that are named */
};
#define LOOK_NS UINT64_C(1000000000)

/* Names all that are stopped, not the one only whose time was over first. */
static void stopped_fail(struct launch_job *job, uint64_t now_ns)
{
    uint32_t said = 0, stopped = 0;
    bool spread = launch_work_is_spread(&job->work);
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        const struct launch_rank *at = &job->ranks[rank];
        stopped += at->stopped != 0;
        if (at->stopped != 0 && said < SAID_MAX) {
            launch_output_print(job,
                                "rank %" PRIu32 " (process %d%s%s) is stopped by a signal (state T) for %" PRIu64
                                " s, while others wait for it in MPI_Init or MPI_Finalize, or are done: ending them",
                                rank, at->stopped, spread ? " on " : "",
                                spread ? job->work.host_names[job->work.host_of[rank]] : "",
                                (now_ns - at->stopped_ns) / 1000000000);
            said++;
        }
    }
    if (stopped > said) {
        launch_output_print(job, "so are %" PRIu32 " more", stopped - said);
    }
    launch_fail(job, CW_LAUNCH_EXIT_FAILED, NULL);
}

void launch_stopped_apply(struct launch_job *job, const struct launch_frame *frame)
{
    uint64_t now_ns = cw_clock_ns();
    bool overdue = false;
    if (frame->type == LAUNCH_STOPPED) {
        job->ranks[frame->rank].seen = true;
        job->ranks[frame->rank].stopped = frame->value;
        return;
    }
    job->looking = false;
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        struct launch_rank *at = &job->ranks[rank];
        at->stopped = at->seen ? at->stopped : 0;
        at->stopped_ns = !at->seen ? 0 : at->stopped_ns == 0 ? now_ns : at->stopped_ns;
        overdue = overdue || (at->seen && now_ns - at->stopped_ns >= job->stopped_bound_ns);
        at->seen = false;
    }
    if (overdue && !job->ending && job->stopped_look_ns != UINT64_MAX) {
        stopped_fail(job, now_ns);
    }
}

void launch_stopped_check(struct launch_job *job, uint64_t now_ns)
{
    /* a finished rank has been in MPI_Finalize, like all others: only ends remain */
    bool waits = job->states[CW_PMI1_CLIENT_FINISHED] > 0 || job->waiting > 0;
    if (!waits || job->stopped_bound_ns == 0) {
        job->stopped_look_ns = UINT64_MAX;
        return;
    }
    if (job->stopped_look_ns == UINT64_MAX) {
        job->stopped_look_ns = now_ns + LOOK_NS; /* most barriers have ended by then */
        return;
    }
    if (now_ns < job->stopped_look_ns) {
        return;
    }
    job->stopped_look_ns = now_ns + LOOK_NS;
    if (!job->looking && !job->ending) {
        job->looking = true;
        launch_order_all(job, LAUNCH_LOOK, 0);
    }
}
