#include "collectives/patterns/pattern_private.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

struct order_entry {
    uint64_t bytes;
    uint32_t message;
};

static int order_compare(const void *a, const void *b)
{
    const struct order_entry *one = a;
    const struct order_entry *other = b;
    if (one->bytes != other->bytes) {
        return one->bytes > other->bytes ? -1 : 1;
    }
    return one->message < other->message ? -1 : 1;
}

uint32_t *pattern_order(const struct cw_pattern *pattern)
{
    uint32_t count = pattern->message_count;
    struct order_entry *entries = malloc((count + 1ull) * sizeof(*entries));
    uint32_t *order = malloc((count + 1ull) * sizeof(*order));
    if (entries == NULL || order == NULL) {
        free(entries);
        free(order);
        return NULL;
    }
    bool sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (struct order_entry){pattern->messages[i].bytes, i};
        sorted = sorted && (i == 0 || entries[i - 1].bytes >= entries[i].bytes);
    }
    if (!sorted) {
        qsort(entries, count, sizeof(*entries), order_compare);
    }
    for (uint32_t i = 0; i < count; i++) {
        order[i] = entries[i].message;
    }
    free(entries);
    return order;
}

bool phase_sets_create(struct phase_sets *sets, uint32_t ranks, uint32_t phase_count)
{
    sets->ranks = ranks;
    sets->words = phase_count / 64 + 1;
    sets->bits = calloc(2ull * ranks * sets->words, sizeof(uint64_t));
    return sets->bits != NULL;
}

void phase_sets_dispose(struct phase_sets *sets)
{
    free(sets->bits);
    sets->bits = NULL;
}

uint32_t phase_sets_first_free(const struct phase_sets *sets, const uint64_t *one, const uint64_t *other)
{
    for (uint32_t word = 0; word < sets->words; word++) {
        uint64_t free_bits = ~(one[word] | other[word]);
        if (free_bits != 0) {
            return word * 64 + (uint32_t)__builtin_ctzll(free_bits);
        }
    }
    return sets->words * 64;
}

int phases_collect(const struct cw_pattern *pattern, const uint32_t *phase_of, uint32_t phase_count,
                   struct cw_phases *phases)
{
    uint32_t *next = calloc(phase_count + 1ull, sizeof(*next));
    struct cw_phase_message *messages = malloc((pattern->message_count + 1ull) * sizeof(*messages));
    if (next == NULL || messages == NULL) {
        free(next);
        free(messages);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < pattern->message_count; i++) {
        next[phase_of[i] + 1]++;
    }
    for (uint32_t phase = 0; phase < phase_count; phase++) {
        next[phase + 1] += next[phase];
    }
    for (uint32_t i = 0; i < pattern->message_count; i++) {
        messages[next[phase_of[i]]++] = (struct cw_phase_message){i, phase_of[i], 0, pattern->messages[i].bytes};
    }
    free(next);
    *phases = (struct cw_phases){
        .phase_count = phase_count,
        .message_count = pattern->message_count,
        .messages = messages,
    };
    return CW_OK;
}
