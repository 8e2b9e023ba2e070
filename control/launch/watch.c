#include "control/launch/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/base/clock.h"

enum { SIGNAL_BASE = 128 };
#define QUERY_INTERVAL_NS 20000000ull /* looks for answers */

/* "0-3, 7" of the ranks that run; cut to fit. */
static void running_text(const struct launch_job *job, char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t rank = 0; rank < job->rank_count && used < text_bytes; rank++) {
        uint32_t first = rank;
        if (!job->ranks[rank].is_alive) {
            continue;
        }
        while (rank + 1 < job->rank_count && job->ranks[rank + 1].is_alive) {
            rank++;
        }
        int length = snprintf(text + used, text_bytes - used, "%s%" PRIu32, used > 0 ? ", " : "", first);
        used += (size_t)length;
        if (rank > first && used < text_bytes) {
            used += (size_t)snprintf(text + used, text_bytes - used, "-%" PRIu32, rank);
        }
    }
}

static void signal_report(struct launch_job *job, uint32_t rank, int32_t value)
{
    int number = value & (LAUNCH_ENDED_SIGNAL - 1);
    const char *name = sigabbrev_np(number);
    launch_fail(job, SIGNAL_BASE + number, "%s was ended by signal %d (SIG%s)%s", launch_who(job, rank), number,
                name != NULL ? name : "?", (value & LAUNCH_ENDED_CORE) != 0 ? ", core dumped" : "");
}

void launch_watch_end(struct launch_job *job, uint32_t rank, int32_t value)
{
    struct launch_rank *at = &job->ranks[rank];
    at->is_alive = false;
    at->given_up_ns = 0;
    job->alive--;
    launch_input_drop(job, rank);
    if ((value & LAUNCH_ENDED_SIGNAL) != 0) {
        signal_report(job, rank, value);
    } else if (value != 0) {
        if (job->alive > 0) {
            launch_fail(job, value, "%s ended with exit code %d: ending the others", launch_who(job, rank), value);
        } else {
            launch_fail(job, value, NULL);
        }
    } else if (at->state == CW_PMI1_CLIENT_NEW || at->state == CW_PMI1_CLIENT_ACTIVE) {
        at->left = true;
        if (job->left_count++ == 0) {
            job->left_first = rank;
        }
    }
}

/* Ranks that are between init and finalize, and alive. */
static uint32_t active_count(const struct launch_job *job)
{
    uint32_t count = job->states[CW_PMI1_CLIENT_ACTIVE];
    for (uint32_t rank = 0; job->left_count > 0 && rank < job->rank_count; rank++) {
        count -= job->ranks[rank].left && job->ranks[rank].state == CW_PMI1_CLIENT_ACTIVE;
    }
    return count;
}

static void left_check(struct launch_job *job)
{
    if (job->left_count == 0 || job->ending || active_count(job) == 0) {
        return;
    }
    bool begun = job->ranks[job->left_first].state == CW_PMI1_CLIENT_ACTIVE;
    launch_fail(job, CW_LAUNCH_EXIT_FAILED, "%s ended %s, and others wait for it: ending them",
                launch_who(job, job->left_first), begun ? "without MPI_Finalize" : "without MPI_Init");
}

static void given_up_check(struct launch_job *job, uint64_t now_ns)
{
    for (uint32_t rank = 0; job->given_up && rank < job->rank_count && !job->ending; rank++) {
        uint64_t since_ns = job->ranks[rank].given_up_ns;
        if (since_ns != 0 && now_ns >= since_ns + LAUNCH_GRACE_NS) {
            launch_fail(job, CW_LAUNCH_EXIT_FAILED, "%s has closed its connection to the launcher without MPI_Finalize",
                        launch_who(job, rank));
        }
    }
}

/* The time of the job has passed: first all ranks report their waits. */
static void time_check(struct launch_job *job, uint64_t now_ns)
{
    char running[LAUNCH_TEXT_BYTES / 2];
    if (job->queried_ns == 0 && launch_query(job, now_ns)) {
        return;
    }
    if (job->queried_ns != 0 && !launch_query_is_over(job, now_ns)) {
        return;
    }
    if (job->queried_ns != 0) {
        launch_query_report(job);
    }
    running_text(job, running, sizeof(running));
    bool is_empty = running[0] == '\0';
    launch_fail(job, CW_LAUNCH_EXIT_TIMEOUT, "--timeout has expired; %s%s",
                is_empty ? "no rank has been started yet" : "still running: rank ", running);
}

void launch_watch_check(struct launch_job *job, uint64_t now_ns)
{
    if (!job->ending && job->abort_rank >= 0) {
        launch_fail(job, job->abort_code, "%s called for the end of the job with code %d",
                    launch_who(job, (uint32_t)job->abort_rank), job->abort_code);
    }
    left_check(job);
    given_up_check(job, now_ns);
    launch_stopped_check(job, now_ns);
    if (!job->ending && now_ns >= job->deadline_ns) {
        time_check(job, now_ns);
    }
    if (job->ending && now_ns >= job->kill_ns) {
        job->kill_ns = UINT64_MAX;
        job->give_up_ns = launch_work_is_spread(&job->work) ? now_ns + LAUNCH_END_NS : UINT64_MAX;
        launch_order_all(job, LAUNCH_SIGNAL, SIGKILL);
    }
}

uint64_t launch_watch_deadline(const struct launch_job *job)
{
    if (job->ending) {
        return job->kill_ns < job->give_up_ns ? job->kill_ns : job->give_up_ns;
    }
    uint64_t deadline_ns = job->queried_ns == 0 ? job->deadline_ns : cw_clock_ns() + QUERY_INTERVAL_NS;
    deadline_ns = job->stopped_look_ns < deadline_ns ? job->stopped_look_ns : deadline_ns;
    for (uint32_t rank = 0; job->given_up && rank < job->rank_count; rank++) {
        uint64_t since_ns = job->ranks[rank].given_up_ns;
        if (since_ns != 0 && since_ns + LAUNCH_GRACE_NS < deadline_ns) {
            deadline_ns = since_ns + LAUNCH_GRACE_NS;
        }
    }
    return deadline_ns;
}
