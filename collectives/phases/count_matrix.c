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

/* The largest sum over one rank's messages, out or in, of 1 or of bytes. */
static int largest_sum(const struct cw_count_matrix *count_matrix, bool bytes, uint64_t *largest)
{
    uint64_t *sums = calloc(2ull * count_matrix->ranks, sizeof(*sums));
    if (sums == NULL) {
        return CW_ERROR_MEMORY;
    }
    *largest = 0;
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        const struct cw_count_matrix_message *message = &count_matrix->messages[i];
        uint64_t more = bytes ? message->bytes : 1;
        uint64_t out = sums[message->from] += more;
        uint64_t in = sums[count_matrix->ranks + message->to] += more;
        uint64_t both = out > in ? out : in;
        *largest = both > *largest ? both : *largest;
    }
    free(sums);
    return CW_OK;
}

int cw_count_matrix_degree(const struct cw_count_matrix *count_matrix, uint32_t *degree)
{
    uint64_t largest;
    int status = largest_sum(count_matrix, false, &largest);
    if (status == CW_OK) {
        *degree = (uint32_t)largest;
    }
    return status;
}

int cw_count_matrix_load(const struct cw_count_matrix *count_matrix, uint64_t *bytes)
{
    return largest_sum(count_matrix, true, bytes);
}

void cw_phases_dispose(struct cw_phases *phases)
{
    free(phases->messages);
    memset(phases, 0, sizeof(*phases));
}

uint64_t cw_phases_bytes(const struct cw_phases *phases)
{
    uint64_t sum = 0;
    uint64_t longest = 0;
    for (uint32_t i = 0; i < phases->message_count; i++) {
        const struct cw_phase_message *message = &phases->messages[i];
        longest = message->bytes > longest ? message->bytes : longest;
        if (i + 1 == phases->message_count || phases->messages[i + 1].phase != message->phase) {
            sum += longest;
            longest = 0;
        }
    }
    return sum;
}
