#include "collectives/patterns/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

int cw_pattern_create(const struct cw_problem *problem, struct cw_pattern *pattern)
{
    uint32_t ranks = problem->ranks;
    uint64_t count = 0;
    if (problem->counts == NULL && ranks * (ranks - 1ull) > CW_PATTERN_MESSAGES_MAX) {
        return CW_ERROR_LIMIT; /* before they are all looked at */
    }
    for (uint32_t from = 0; from < ranks; from++) {
        for (uint32_t to = 0; to < ranks; to++) {
            count += from != to && cw_problem_pair_bytes(problem, from, to) > 0;
        }
    }
    if (count > CW_PATTERN_MESSAGES_MAX) {
        return CW_ERROR_LIMIT;
    }
    struct cw_pattern_message *messages = malloc((count + 1) * sizeof(*messages));
    if (messages == NULL) {
        return CW_ERROR_MEMORY;
    }
    *pattern = (struct cw_pattern){.ranks = ranks, .messages = messages};
    for (uint32_t from = 0; from < ranks; from++) {
        for (uint32_t to = 0; to < ranks; to++) {
            uint64_t bytes = cw_problem_pair_bytes(problem, from, to);
            if (from != to && bytes > 0) {
                messages[pattern->message_count++] = (struct cw_pattern_message){from, to, bytes};
            }
        }
    }
    return CW_OK;
}

void cw_pattern_dispose(struct cw_pattern *pattern)
{
    free(pattern->messages);
    memset(pattern, 0, sizeof(*pattern));
}

/* The largest sum over one rank's messages, out or in, of 1 or of bytes. */
static int largest_sum(const struct cw_pattern *pattern, bool bytes, uint64_t *largest)
{
    uint64_t *sums = calloc(2ull * pattern->ranks, sizeof(*sums));
    if (sums == NULL) {
        return CW_ERROR_MEMORY;
    }
    *largest = 0;
    for (uint32_t i = 0; i < pattern->message_count; i++) {
        const struct cw_pattern_message *message = &pattern->messages[i];
        uint64_t more = bytes ? message->bytes : 1;
        uint64_t out = sums[message->from] += more;
        uint64_t in = sums[pattern->ranks + message->to] += more;
        uint64_t both = out > in ? out : in;
        *largest = both > *largest ? both : *largest;
    }
    free(sums);
    return CW_OK;
}

int cw_pattern_degree(const struct cw_pattern *pattern, uint32_t *degree)
{
    uint64_t largest;
    int status = largest_sum(pattern, false, &largest);
    if (status == CW_OK) {
        *degree = (uint32_t)largest;
    }
    return status;
}

int cw_pattern_load(const struct cw_pattern *pattern, uint64_t *bytes)
{
    return largest_sum(pattern, true, bytes);
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
