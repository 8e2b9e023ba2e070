/* Edge colouring of the bipartite graph of senders and receivers, by alternating paths.
 *
 * Messages come longest first and take the first phase that is free at both ends. If there is none, one phase a is free
 * at the sender and another one, b, at the receiver: along the path of messages that are alternately in a and b from
 * the receiver on the two are exchanged, after which a is free at both. The path cannot end at the sender, since its
 * sides alternate with its phases. */
#include <stdlib.h>
#include <string.h>

#include "collectives/phases/phases_private.h"
#include "dataplane/status.h"

struct colouring {
    const struct cw_count_matrix *count_matrix;
    struct phase_sets sets;
    uint32_t degree;
    uint32_t *at;       /* [side * ranks + rank][phase]: the message, or UINT32_MAX */
    uint32_t *phase_of; /* by message */
};

static uint32_t *slot(const struct colouring *colouring, bool in, uint32_t rank, uint32_t phase)
{
    return &colouring->at[((in ? colouring->count_matrix->ranks : 0) + (uint64_t)rank) * colouring->degree + phase];
}

static uint32_t first_free(const struct colouring *colouring, const uint64_t *set)
{
    return phase_sets_first_free(&colouring->sets, set, set);
}

static uint64_t *set_of(const struct colouring *colouring, bool in, uint32_t rank)
{
    return in ? phase_set_in(&colouring->sets, rank) : phase_set_out(&colouring->sets, rank);
}

static void assign(struct colouring *colouring, uint32_t message, uint32_t phase)
{
    const struct cw_count_matrix_message *one = &colouring->count_matrix->messages[message];
    *slot(colouring, false, one->from, phase) = message;
    *slot(colouring, true, one->to, phase) = message;
    phase_set_add(set_of(colouring, false, one->from), phase);
    phase_set_add(set_of(colouring, true, one->to), phase);
    colouring->phase_of[message] = phase;
}

/* Makes phase `wanted` free at receiver `rank`, where `other` is free: exchanges the two along the path. */
static void path_exchange(struct colouring *colouring, uint32_t rank, uint32_t wanted, uint32_t other)
{
    bool in = true;
    uint32_t message = *slot(colouring, in, rank, wanted);
    *slot(colouring, in, rank, wanted) = UINT32_MAX;
    phase_set_remove(set_of(colouring, in, rank), wanted);
    uint32_t from = wanted;
    uint32_t to = other;
    while (message != UINT32_MAX) {
        /* `message` leaves phase `from` for `to`; its near end is settled, its far end may have another one in `to` */
        const struct cw_count_matrix_message *one = &colouring->count_matrix->messages[message];
        *slot(colouring, in, rank, to) = message;
        phase_set_add(set_of(colouring, in, rank), to);
        colouring->phase_of[message] = to;
        in = !in;
        rank = in ? one->to : one->from;
        uint32_t next = *slot(colouring, in, rank, to);
        *slot(colouring, in, rank, to) = message;
        phase_set_add(set_of(colouring, in, rank), to);
        if (next == UINT32_MAX) {
            *slot(colouring, in, rank, from) = UINT32_MAX;
            phase_set_remove(set_of(colouring, in, rank), from);
        }
        message = next;
        uint32_t swap = from;
        from = to;
        to = swap;
    }
}

static void colour(struct colouring *colouring, uint32_t message)
{
    const struct cw_count_matrix_message *one = &colouring->count_matrix->messages[message];
    const uint64_t *out = set_of(colouring, false, one->from);
    const uint64_t *in = set_of(colouring, true, one->to);
    uint32_t phase = phase_sets_first_free(&colouring->sets, out, in);
    if (phase >= colouring->degree) {
        phase = first_free(colouring, out);
        path_exchange(colouring, one->to, phase, first_free(colouring, in));
    }
    assign(colouring, message, phase);
}

int cw_schedule_colouring(const struct cw_count_matrix *count_matrix, struct cw_phases *phases)
{
    struct colouring colouring = {.count_matrix = count_matrix};
    int status = cw_count_matrix_degree(count_matrix, &colouring.degree);
    if (status != CW_OK) {
        return status;
    }
    uint64_t slots = 2ull * count_matrix->ranks * colouring.degree;
    uint32_t *order = count_matrix_order(count_matrix);
    colouring.at = malloc((slots + 1) * sizeof(uint32_t));
    colouring.phase_of = malloc((count_matrix->message_count + 1ull) * sizeof(uint32_t));
    status = CW_ERROR_MEMORY;
    if (order != NULL && colouring.at != NULL && colouring.phase_of != NULL &&
        phase_sets_create(&colouring.sets, count_matrix->ranks, colouring.degree)) {
        memset(colouring.at, 0xff, slots * sizeof(uint32_t));
        for (uint32_t i = 0; i < count_matrix->message_count; i++) {
            colour(&colouring, order[i]);
        }
        status = phases_collect(count_matrix, colouring.phase_of, colouring.degree, phases);
    }
    phase_sets_dispose(&colouring.sets);
    free(order);
    free(colouring.at);
    free(colouring.phase_of);
    return status;
}
