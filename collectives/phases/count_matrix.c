#include "collectives/phases/count_matrix.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

int cw_count_matrix_create(const struct cw_problem *problem, struct cw_count_matrix *count_matrix)
{
    uint32_t ranks = problem->ranks;
    uint64_t count = 0;
    if (problem->counts == NULL && ranks * (ranks - 1ull) > CW_COUNT_MATRIX_MESSAGES_MAX) {
        return CW_ERROR_LIMIT; /* before all of them are visited */
    }
    for (uint32_t from = 0; from < ranks; from++) {
        for (uint32_t to = 0; to < ranks; to++) {
            count += from != to && cw_problem_pair_bytes(problem, from, to) > 0;
        }
    }
    if (count > CW_COUNT_MATRIX_MESSAGES_MAX) {
        return CW_ERROR_LIMIT;
    }
    struct cw_count_matrix_message *messages = malloc((count + 1) * sizeof(*messages));
    if (messages == NULL) {
        return CW_ERROR_MEMORY;
    }
    *count_matrix = (struct cw_count_matrix){.ranks = ranks, .messages = messages};
    for (uint32_t from = 0; from < ranks; from++) {
        for (uint32_t to = 0; to < ranks; to++) {
            uint64_t bytes = cw_problem_pair_bytes(problem, from, to);
            if (from != to && bytes > 0) {
                messages[count_matrix->message_count++] = (struct cw_count_matrix_message){from, to, bytes};
            }
        }
    }
    return CW_OK;
}

void cw_count_matrix_dispose(struct cw_count_matrix *count_matrix)
{
    free(count_matrix->messages);
    memset(count_matrix, 0, sizeof(*count_matrix));
}

int cw_count_matrix_degree(const struct cw_count_matrix *count_matrix, uint32_t *degree)
{
    uint32_t *messages = calloc(2ull * count_matrix->ranks, sizeof(*messages)); /* of each rank: out, then in */
    if (messages == NULL) {
        return CW_ERROR_MEMORY;
    }
    *degree = 0;
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        const struct cw_count_matrix_message *message = &count_matrix->messages[i];
        uint32_t out = ++messages[message->from];
        uint32_t in = ++messages[count_matrix->ranks + message->to];
        uint32_t more = out > in ? out : in;
        *degree = more > *degree ? more : *degree;
    }
    free(messages);
    return CW_OK;
}

void cw_phases_dispose(struct cw_phases *phases)
{
    free(phases->messages);
    memset(phases, 0, sizeof(*phases));
}
