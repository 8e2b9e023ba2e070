/* The two schedulers of Karwande, Yuan and Lowenthal 2003, section 4.2. */
#include <stdlib.h>
#include <string.h>

#include "collectives/phases/phases_private.h"
#include "dataplane/status.h"

/* Phase by phase, as in the paper, gives the same result as message by message: each goes to the first phase without a
 * conflict with earlier ones. Messages shorter than the threshold may fill phases that longer messages have opened; the
 * rest of them share one phase. */
static uint32_t greedy_fill(const struct cw_count_matrix *count_matrix, uint64_t threshold_bytes, const uint32_t *order,
                            struct phase_sets *sets, uint32_t *phase_of, bool *mixed)
{
    uint32_t phase_count = 0;
    *mixed = false;
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        const struct cw_count_matrix_message *message = &count_matrix->messages[order[i]];
        uint64_t *out = phase_set_out(sets, message->from);
        uint64_t *in = phase_set_in(sets, message->to);
        uint32_t phase = phase_sets_first_free(sets, out, in);
        if (message->bytes < threshold_bytes && phase >= phase_count) {
            phase_of[order[i]] = UINT32_MAX;
            *mixed = true;
            continue;
        }
        phase_set_add(out, phase);
        phase_set_add(in, phase);
        phase_of[order[i]] = phase;
        phase_count = phase >= phase_count ? phase + 1 : phase_count;
    }
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        phase_of[i] = phase_of[i] == UINT32_MAX ? phase_count : phase_of[i];
    }
    return phase_count + (*mixed ? 1 : 0);
}

int cw_schedule_greedy(const struct cw_count_matrix *count_matrix, uint64_t threshold_bytes, struct cw_phases *phases)
{
    uint32_t degree;
    struct phase_sets sets = {0};
    int status = cw_count_matrix_degree(count_matrix, &degree);
    uint32_t *order = count_matrix_order(count_matrix);
    uint32_t *phase_of = malloc((count_matrix->message_count + 1ull) * sizeof(*phase_of));
    if (status == CW_OK &&
        (order == NULL || phase_of == NULL || !phase_sets_create(&sets, count_matrix->ranks, 2 * degree))) {
        status = CW_ERROR_MEMORY;
    }
    if (status == CW_OK) {
        bool mixed;
        uint32_t phase_count = greedy_fill(count_matrix, threshold_bytes, order, &sets, phase_of, &mixed);
        status = phases_collect(count_matrix, phase_of, phase_count, phases);
        if (status == CW_OK) {
            phases->last_is_mixed = mixed;
        }
    }
    phase_sets_dispose(&sets);
    free(order);
    free(phase_of);
    return status;
}

struct left_entry {
    uint32_t from;
    uint32_t to;
    uint32_t message;
};

/* The messages not yet in a phase, longest first, and the busy ranks of the phase that is being filled. */
struct filling {
    const struct cw_count_matrix *count_matrix;
    struct left_entry *left; /* from `head` on; some of these are in a phase already */
    uint32_t head;
    uint32_t left_count;
    uint32_t stale;     /* entries that are in a phase already */
    uint32_t *busy_out; /* by rank: the last phase, counted from 1, in which it sends */
    uint32_t *busy_in;
    uint32_t *phase_of;
    uint32_t *by_distance; /* messages grouped by (to - from) mod ranks */
    uint32_t *distance_first;
};

static bool place(struct filling *filling, const struct left_entry *entry, uint32_t phase)
{
    if (filling->busy_out[entry->from] == phase + 1 || filling->busy_in[entry->to] == phase + 1 ||
        filling->phase_of[entry->message] != UINT32_MAX) {
        return false;
    }
    filling->busy_out[entry->from] = filling->busy_in[entry->to] = phase + 1;
    filling->phase_of[entry->message] = phase;
    filling->stale++;
    return true;
}

static uint32_t distance_of(const struct cw_count_matrix *count_matrix, uint32_t message)
{
    const struct cw_count_matrix_message *one = &count_matrix->messages[message];
    return (one->to + count_matrix->ranks - one->from) % count_matrix->ranks;
}

static void distances_group(struct filling *filling)
{
    const struct cw_count_matrix *count_matrix = filling->count_matrix;
    uint32_t *first = filling->distance_first; /* ranks + 1 entries, zeroed */
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        first[distance_of(count_matrix, i) + 1]++;
    }
    for (uint32_t distance = 0; distance < count_matrix->ranks; distance++) {
        first[distance + 1] += first[distance];
    }
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        filling->by_distance[first[distance_of(count_matrix, i)]++] = i;
    }
    memmove(&first[1], &first[0], count_matrix->ranks * sizeof(*first));
    first[0] = 0;
}

/* Entries that are in a phase are dropped when half of them are, so that looking through the list stays cheap. */
static void left_tidy(struct filling *filling)
{
    while (filling->head < filling->left_count &&
           filling->phase_of[filling->left[filling->head].message] != UINT32_MAX) {
        filling->head++;
        filling->stale--;
    }
    if (filling->stale < (filling->left_count - filling->head) / 2) {
        return;
    }
    uint32_t kept = 0;
    for (uint32_t i = filling->head; i < filling->left_count; i++) {
        if (filling->phase_of[filling->left[i].message] == UINT32_MAX) {
            filling->left[kept++] = filling->left[i];
        }
    }
    filling->head = 0;
    filling->left_count = kept;
    filling->stale = 0;
}

/* One phase; when all ranks are busy no other message can fit. */
static void phase_fill(struct filling *filling, uint32_t phase)
{
    const struct cw_count_matrix *count_matrix = filling->count_matrix;
    uint32_t placed = 0;
    uint32_t distance = distance_of(count_matrix, filling->left[filling->head].message);
    for (uint32_t i = filling->distance_first[distance]; i < filling->distance_first[distance + 1]; i++) {
        uint32_t message = filling->by_distance[i];
        struct left_entry entry = {count_matrix->messages[message].from, count_matrix->messages[message].to, message};
        placed += place(filling, &entry, phase);
    }
    for (uint32_t i = filling->head; i < filling->left_count && placed < count_matrix->ranks; i++) {
        placed += place(filling, &filling->left[i], phase);
    }
    left_tidy(filling);
}

/* All messages in order of length. False without memory. */
static bool left_make(struct filling *filling)
{
    const struct cw_count_matrix *count_matrix = filling->count_matrix;
    uint32_t *order = count_matrix_order(count_matrix);
    filling->left = malloc((count_matrix->message_count + 1ull) * sizeof(*filling->left));
    if (order == NULL || filling->left == NULL) {
        free(order);
        return false;
    }
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        const struct cw_count_matrix_message *message = &count_matrix->messages[order[i]];
        filling->left[i] = (struct left_entry){message->from, message->to, order[i]};
    }
    filling->left_count = count_matrix->message_count;
    free(order);
    return true;
}

int cw_schedule_all_to_all_based(const struct cw_count_matrix *count_matrix, uint64_t threshold_bytes,
                                 struct cw_phases *phases)
{
    uint32_t count = count_matrix->message_count;
    struct filling filling = {
        .count_matrix = count_matrix,
        .busy_out = calloc(count_matrix->ranks, sizeof(uint32_t)),
        .busy_in = calloc(count_matrix->ranks, sizeof(uint32_t)),
        .phase_of = malloc((count + 1ull) * sizeof(uint32_t)),
        .by_distance = malloc((count + 1ull) * sizeof(uint32_t)),
        .distance_first = calloc(count_matrix->ranks + 2ull, sizeof(uint32_t)),
    };
    int status = CW_ERROR_MEMORY;
    if (left_make(&filling) && filling.busy_out != NULL && filling.busy_in != NULL && filling.phase_of != NULL &&
        filling.by_distance != NULL && filling.distance_first != NULL) {
        memset(filling.phase_of, 0xff, count * sizeof(uint32_t));
        distances_group(&filling);
        uint32_t phase = 0;
        while (filling.head < filling.left_count &&
               count_matrix->messages[filling.left[filling.head].message].bytes >= threshold_bytes) {
            phase_fill(&filling, phase++);
        }
        bool mixed = filling.head < filling.left_count;
        for (uint32_t i = 0; i < count; i++) {
            filling.phase_of[i] = filling.phase_of[i] == UINT32_MAX ? phase : filling.phase_of[i];
        }
        status = phases_collect(count_matrix, filling.phase_of, phase + (mixed ? 1 : 0), phases);
        if (status == CW_OK) {
            phases->last_is_mixed = mixed;
        }
    }
    free(filling.left);
    free(filling.busy_out);
    free(filling.busy_in);
    free(filling.phase_of);
    free(filling.by_distance);
    free(filling.distance_first);
    return status;
}
