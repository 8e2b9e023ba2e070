#include "control/launch/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/base/clock.h"

enum { SIGNAL_BASE = 128 };

void launch_watch_running(const struct launch_job *job, char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t rank = 0; rank < job->rank_count && used < text_bytes; rank++) {
        uint32_t first = rank;
        if (job->ranks[rank].handle < 0) {
            continue;
        }
        while (rank + 1 < job->rank_count && job->ranks[rank + 1].handle >= 0) {
            rank++;
        }
        int length = snprintf(text + used, text_bytes - used, "%s%" PRIu32, used > 0 ? ", " : "", first);
        used += (size_t)length;
        if (rank > first && used < text_bytes) {
            used += (size_t)snprintf(text + used, text_bytes - used, "-%" PRIu32, rank);
        }
    }
}

static void signal_tell(struct launch_job *job, uint32_t rank, const siginfo_t *info)
{
    const char *name = sigabbrev_np(info->si_status);
    launch_fail(job, SIGNAL_BASE + info->si_status, "rank %" PRIu32 " (process %d) was ended by signal %d (SIG%s)%s",
                rank, job->ranks[rank].process, info->si_status, name != NULL ? name : "?",
                info->si_code == CLD_DUMPED ? ", core dumped" : "");
}

void launch_watch_end(struct launch_job *job, uint32_t rank, const siginfo_t *info)
{
    struct launch_rank *at = &job->ranks[rank];
    enum cw_pmi1_client_state state = cw_pmi1_server_state(job->server, rank);
    launch_unwatch(job->set, at->handle);
    close(at->handle);
    at->handle = -1;
    at->given_up_ns = 0;
    job->alive--;
    if (info->si_code != CLD_EXITED) {
        signal_tell(job, rank, info);
    } else if (info->si_status != 0) {
        if (job->alive > 0) {
            launch_fail(job, info->si_status,
                        "rank %" PRIu32 " (process %d) ended with exit code %d: ending the others", rank, at->process,
                        info->si_status);
        } else {
            launch_fail(job, info->si_status, NULL);
        }
    } else if (state == CW_PMI1_CLIENT_NEW || state == CW_PMI1_CLIENT_ACTIVE) {
        at->left = true;
        if (job->left_count++ == 0) {
            job->left_first = rank;
        }
    }
}

void launch_watch_hangup(struct launch_job *job, uint32_t rank)
{
    struct launch_rank *at = &job->ranks[rank];
    if (at->handle >= 0 && cw_pmi1_server_state(job->server, rank) == CW_PMI1_CLIENT_ACTIVE) {
        job->given_up = true;
        at->given_up_ns = cw_clock_ns(); /* a process that dies closes its descriptors first: better told by its end */
    }
}

/* Ranks that are between init and finalize, and alive. */
static uint32_t active_count(const struct launch_job *job)
{
    uint32_t count = cw_pmi1_server_count(job->server, CW_PMI1_CLIENT_ACTIVE);
    for (uint32_t rank = 0; job->left_count > 0 && rank < job->rank_count; rank++) {
        count -= job->ranks[rank].left && cw_pmi1_server_state(job->server, rank) == CW_PMI1_CLIENT_ACTIVE;
    }
    return count;
}

static void left_judge(struct launch_job *job)
{
    if (job->left_count == 0 || job->ending || active_count(job) == 0) {
        return;
    }
    bool begun = cw_pmi1_server_state(job->server, job->left_first) == CW_PMI1_CLIENT_ACTIVE;
    launch_fail(job, CW_LAUNCH_EXIT_FAILED,
                "rank %" PRIu32 " (process %d) ended %s, and others wait for it: ending them", job->left_first,
                job->ranks[job->left_first].process, begun ? "without MPI_Finalize" : "without MPI_Init");
}

static void given_up_judge(struct launch_job *job, uint64_t now_ns)
{
    for (uint32_t rank = 0; job->given_up && rank < job->rank_count && !job->ending; rank++) {
        uint64_t since_ns = job->ranks[rank].given_up_ns;
        if (since_ns != 0 && now_ns >= since_ns + LAUNCH_GRACE_NS) {
            launch_fail(job, CW_LAUNCH_EXIT_FAILED,
                        "rank %" PRIu32 " (process %d) has closed its connection to the launcher without MPI_Finalize",
                        rank, job->ranks[rank].process);
        }
    }
}

/* The time of the job is over: first all ranks say what they wait for. */
static void time_judge(struct launch_job *job, uint64_t now_ns)
{
    char running[LAUNCH_TEXT_BYTES / 2];
    if (job->asked_ns == 0 && launch_ask(job, now_ns)) {
        return;
    }
    if (job->asked_ns != 0 && !launch_ask_is_over(job, now_ns)) {
        return;
    }
    if (job->asked_ns != 0) {
        launch_ask_tell(job);
    }
    launch_watch_running(job, running, sizeof(running));
    launch_fail(job, CW_LAUNCH_EXIT_TIMEOUT, "the time of --timeout is over; still running: rank %s", running);
}

void launch_watch_judge(struct launch_job *job, uint64_t now_ns)
{
    uint32_t rank;
    int code;
    if (!job->ending && cw_pmi1_server_aborted(job->server, &rank, &code)) {
        launch_fail(job, code, "rank %" PRIu32 " (process %d) called for the end of the job with code %d", rank,
                    job->ranks[rank].process, code);
    }
    left_judge(job);
    given_up_judge(job, now_ns);
    launch_stopped_judge(job, now_ns);
    if (!job->ending && now_ns >= job->deadline_ns) {
        time_judge(job, now_ns);
    }
    if (job->ending && now_ns >= job->kill_ns) {
        job->kill_ns = UINT64_MAX;
        launch_signal_all(job, SIGKILL);
    }
}

uint64_t launch_watch_deadline(const struct launch_job *job)
{
    if (job->ending) {
        return job->kill_ns;
    }
    uint64_t deadline_ns = job->asked_ns == 0 ? job->deadline_ns : cw_clock_ns() + LAUNCH_ASK_EVERY_NS;
    deadline_ns = job->stopped_look_ns < deadline_ns ? job->stopped_look_ns : deadline_ns;
    for (uint32_t rank = 0; job->given_up && rank < job->rank_count; rank++) {
        uint64_t since_ns = job->ranks[rank].given_up_ns;
        if (since_ns != 0 && since_ns + LAUNCH_GRACE_NS < deadline_ns) {
            deadline_ns = since_ns + LAUNCH_GRACE_NS;
        }
    }
    return deadline_ns;
}
