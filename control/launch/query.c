#include "control/launch/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 2048 };
/* The additional time for answers. The process that asks a rank answers for it in the end: only a busy machine or a
 * lost host is so late. */
#define LATE_ANSWERS_NS UINT64_C(1000000000)

static void question_send(struct launch_job *job, uint64_t now_ns)
{
    job->queried_ns = now_ns;
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        job->answers[rank].has_come = false;
    }
    launch_order_all(job, LAUNCH_QUERY, 0);
}

bool launch_query(struct launch_job *job, uint64_t now_ns)
{
    if (job->states[CW_PMI1_CLIENT_NEW] == job->rank_count) {
        return false;
    }
    job->answers = calloc(job->rank_count, sizeof(*job->answers));
    if (job->answers == NULL) {
        return false;
    }
    question_send(job, now_ns);
    return true;
}

void launch_query_receive(struct launch_job *job, const struct launch_frame *frame)
{
    struct launch_answer *answer = job->answers == NULL ? NULL : &job->answers[frame->rank];
    size_t wanted = frame->value == 0 ? sizeof(answer->silence) : sizeof(answer->said);
    if (answer == NULL || frame->count != wanted) {
        return;
    }
    answer->has_come = true;
    answer->is_silence = frame->value == 0;
    memcpy(answer->is_silence ? (void *)&answer->silence : (void *)&answer->said, frame->bytes, wanted);
    if (!answer->is_silence) {
        cw_watch_clean(&answer->said, job->rank_count);
    }
}

/* Whether all have answered the last question, or have had their time. */
static bool question_is_over(const struct launch_job *job, uint64_t now_ns)
{
    if (now_ns >= job->queried_ns + LAUNCH_QUERY_NS + LATE_ANSWERS_NS) {
        return true;
    }
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        if (!job->answers[rank].has_come) {
            return false;
        }
    }
    return true;
}

static bool has_answered(const struct launch_answer *answer)
{
    return answer->has_come && !answer->is_silence;
}

/* Keeps their answers, for the second look. False: no memory, or no rank has answered. */
static bool answers_keep(struct launch_job *job)
{
    bool any = false;
    job->first_answers = calloc(job->rank_count, sizeof(*job->first_answers));
    for (uint32_t rank = 0; job->first_answers != NULL && rank < job->rank_count; rank++) {
        job->first_answers[rank] = job->answers[rank];
        any = any || has_answered(&job->answers[rank]);
    }
    return any;
}

bool launch_query_is_over(struct launch_job *job, uint64_t now_ns)
{
    if (job->query_again_ns != 0) {
        if (now_ns >= job->query_again_ns) {
            job->query_again_ns = 0;
            question_send(job, now_ns);
        }
        return false;
    }
    if (!question_is_over(job, now_ns)) {
        return false;
    }
    if (job->first_answers != NULL || !answers_keep(job)) {
        return true;
    }
    job->query_again_ns = now_ns + LAUNCH_LOOKS_APART_NS;
    return false;
}

/* Whether a rank has done something between the two looks. */
static bool has_moved(const struct launch_job *job, uint32_t rank, const struct cw_watch_answer *now)
{
    const struct launch_answer *before = job->first_answers == NULL ? NULL : &job->first_answers[rank];
    return before != NULL && has_answered(before) && before->said.text[0] != '\0' &&
           (now->moved > before->said.moved + LAUNCH_QUESTIONS || now->place != before->said.place);
}

/* Reports the known state of a rank that has not answered. */
static void silence_explain(const struct launch_job *job, uint32_t rank, struct cw_watch_answer *answer)
{
    const struct launch_rank *at = &job->ranks[rank];
    const struct launch_answer *came = &job->answers[rank];
    bool is_open = came->has_come && came->silence.is_open;
    int letter = came->has_come ? came->silence.letter : 0;
    const char *text = "does not answer";
    if (at->process == 0) {
        text = "has not been started";
    } else if (!at->is_alive) {
        text = "has ended";
    } else if (letter == 'T' || letter == 't') {
        text = "is stopped by a signal";
    } else if (at->state == CW_PMI1_CLIENT_NEW) {
        text = "has not called MPI_Init";
    } else if (at->state == CW_PMI1_CLIENT_FINISHED) {
        text = "has called MPI_Finalize and not ended";
    } else if (came->has_come && !is_open) {
        text = at->waits ? "waits in MPI_Init or MPI_Finalize for the other ranks" : "is in MPI_Init or MPI_Finalize";
    }
    memset(answer, 0, sizeof(*answer));
    snprintf(answer->text, sizeof(answer->text), "%s", text);
    snprintf(answer->brief, sizeof(answer->brief), "which %s", text);
    if (at->state == CW_PMI1_CLIENT_ACTIVE && came->has_come && !is_open && at->waits) {
        for (uint32_t other = 0; other < job->rank_count && answer->awaited_count < CW_WATCH_AWAITED_MAX; other++) {
            if (!job->ranks[other].waits && (job->ranks[other].is_alive || job->ranks[other].process == 0)) {
                answer->awaited[answer->awaited_count++] = other;
            }
        }
    }
}

void launch_query_report(struct launch_job *job)
{
    char line[LINE_BYTES], verdict[LINE_BYTES / 2];
    struct launch_sink *sink = &job->output.sinks[job->output.joined ? 0 : 1];
    struct cw_watch_answer *answers = calloc(job->rank_count, sizeof(*answers));
    for (uint32_t rank = 0; answers != NULL && rank < job->rank_count; rank++) {
        if (has_answered(&job->answers[rank])) {
            answers[rank] = job->answers[rank].said;
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
