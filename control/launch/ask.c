#include "control/launch/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/base/process.h"

enum { LINE_BYTES = 2048 };

/* Whether a rank that has not answered yet may still do so. */
static bool is_awaited(const struct launch_job *job, uint32_t rank)
{
    int process;
    return job->ranks[rank].handle >= 0 && cw_watch_is_open(job->watch, rank, &process) &&
           !cw_watch_has_answered(job->watch, rank);
}

bool launch_ask(struct launch_job *job, uint64_t now_ns)
{
    bool any = false;
    for (uint32_t rank = 0; job->watch != NULL && rank < job->rank_count; rank++) {
        any = any || cw_pmi1_server_state(job->server, rank) != CW_PMI1_CLIENT_NEW;
    }
    if (any) {
        cw_watch_ask(job->watch);
        job->asked_ns = now_ns;
    }
    return any;
}

/* Whether all have answered the last question, or have had their time. */
static bool question_is_over(const struct launch_job *job, uint64_t now_ns)
{
    if (now_ns >= job->asked_ns + LAUNCH_ASK_NS) {
        return true;
    }
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        if (is_awaited(job, rank)) {
            return false;
        }
    }
    return true;
}

/* Keeps what they have said, for the second look. False: no memory, or nobody has said anything. */
static bool answers_keep(struct launch_job *job)
{
    bool any = false;
    job->first_answers = calloc(job->rank_count, sizeof(*job->first_answers));
    for (uint32_t rank = 0; job->first_answers != NULL && rank < job->rank_count; rank++) {
        if (cw_watch_has_answered(job->watch, rank)) {
            cw_watch_read(job->watch, rank, &job->first_answers[rank]);
            any = true;
        }
    }
    return any;
}

bool launch_ask_is_over(struct launch_job *job, uint64_t now_ns)
{
    if (job->ask_again_ns != 0) {
        if (now_ns >= job->ask_again_ns) {
            cw_watch_ask(job->watch);
            job->asked_ns = now_ns;
            job->ask_again_ns = 0;
        }
        return false;
    }
    if (!question_is_over(job, now_ns)) {
        return false;
    }
    if (job->first_answers != NULL || !answers_keep(job)) {
        return true;
    }
    job->ask_again_ns = now_ns + LAUNCH_LOOKS_APART_NS;
    return false;
}

/* Whether a rank has done something between the two looks. */
static bool has_moved(const struct launch_job *job, uint32_t rank, const struct cw_watch_answer *now)
{
    const struct cw_watch_answer *before = job->first_answers == NULL ? NULL : &job->first_answers[rank];
    return before != NULL && before->text[0] != '\0' &&
           (now->moved > before->moved + LAUNCH_QUESTIONS || now->place != before->place);
}

/* What we know of a rank that has said nothing. */
static void silence_explain(const struct launch_job *job, uint32_t rank, struct cw_watch_answer *answer)
{
    const struct launch_rank *at = &job->ranks[rank];
    enum cw_pmi1_client_state state = cw_pmi1_server_state(job->server, rank);
    int process = at->process;
    bool is_open = cw_watch_is_open(job->watch, rank, &process);
    char letter = at->handle >= 0 ? cw_process_state(is_open ? process : at->process) : 0;
    const char *text = "does not answer";
    if (at->handle < 0) {
        text = "has ended";
    } else if (letter == 'T' || letter == 't') {
        text = "is stopped by a signal";
    } else if (state == CW_PMI1_CLIENT_NEW) {
        text = "has not called MPI_Init";
    } else if (state == CW_PMI1_CLIENT_FINISHED) {
        text = "has called MPI_Finalize and not ended";
    } else if (!is_open) {
        text = cw_pmi1_server_waits(job->server, rank) ? "waits in MPI_Init or MPI_Finalize for the other ranks"
                                                       : "is in MPI_Init or MPI_Finalize";
    }
    memset(answer, 0, sizeof(*answer));
    snprintf(answer->text, sizeof(answer->text), "%s", text);
    snprintf(answer->brief, sizeof(answer->brief), "which %s", text);
    if (state == CW_PMI1_CLIENT_ACTIVE && !is_open && cw_pmi1_server_waits(job->server, rank)) {
        for (uint32_t other = 0; other < job->rank_count && answer->awaited_count < CW_WATCH_AWAITED_MAX; other++) {
            if (!cw_pmi1_server_waits(job->server, other) && job->ranks[other].handle >= 0) {
                answer->awaited[answer->awaited_count++] = other;
            }
        }
    }
}

void launch_ask_tell(struct launch_job *job)
{
    char line[LINE_BYTES], verdict[LINE_BYTES / 2];
    struct launch_sink *sink = &job->output.sinks[job->output.joined ? 0 : 1];
    struct cw_watch_answer *answers = calloc(job->rank_count, sizeof(*answers));
    for (uint32_t rank = 0; answers != NULL && rank < job->rank_count; rank++) {
        if (cw_watch_has_answered(job->watch, rank)) {
            cw_watch_read(job->watch, rank, &answers[rank]);
            answers[rank].has_moved = has_moved(job, rank, &answers[rank]);
        } else {
            silence_explain(job, rank, &answers[rank]);
        }
        snprintf(line, sizeof(line), "%s: rank %" PRIu32 ": %s", job->config->name, rank, answers[rank].text);
        launch_sink_line(sink, line);
    }
    if (answers != NULL) {
        cw_watch_verdict(answers, job->rank_count, verdict, sizeof(verdict));
        if (verdict[0] != '\0') {
            snprintf(line, sizeof(line), "%s: %s", job->config->name, verdict);
            launch_sink_line(sink, line);
        }
    }
    free(answers);
    launch_output_flush(job);
}
