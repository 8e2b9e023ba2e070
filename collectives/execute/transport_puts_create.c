/* Memory of the transport over puts: whom the schedule names, and how much of what it may have to keep. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/execute/transport_puts_state.h"

/* What is found out about a schedule. */
struct survey {
    struct cw_puts_transport *transport;
    uint32_t *partner_of; /* by rank: index of its partner, or PUTS_NONE; the ranks named first are marked with 0 */
    uint64_t messages;    /* that come in one run */
    uint64_t message_bytes;
    uint64_t message_bytes_max; /* of one */
    uint64_t copies;            /* of messages that leave in one run */
};

/* ---- Whom the schedule names ---- */

typedef void (*survey_visit)(struct survey *survey, uint32_t rank, bool source, const struct cw_op *op);

static void barrier_visit(struct survey *survey, survey_visit visit, const struct cw_op *op)
{
    uint32_t ranks = survey->transport->request.ranks;
    for (uint32_t distance = 1; distance < ranks; distance *= 2) { /* as execute/barrier.c */
        visit(survey, (survey->transport->rank + distance) % ranks, false, op);
        visit(survey, (survey->transport->rank + ranks - distance) % ranks, true, op);
    }
}

/* All that an op sends to or waits for. */
static void op_visit(struct survey *survey, survey_visit visit, const struct cw_op *op)
{
    const struct cw_schedule *schedule = survey->transport->request.schedule;
    switch (op->kind) {
    case CW_OP_PUT:
    case CW_OP_WAIT:
        visit(survey, op->peer, op->kind == CW_OP_WAIT, op);
        break;
    case CW_OP_MULTICAST:
        for (uint32_t i = 0; i < schedule->groups[op->peer].count; i++) {
            visit(survey, schedule->members[schedule->groups[op->peer].first + i], false, op);
        }
        break;
    case CW_OP_BARRIER:
        barrier_visit(survey, visit, op);
        break;
    default:
        break;
    }
}

static void schedule_visit(struct survey *survey, survey_visit visit)
{
    const struct cw_schedule *schedule = survey->transport->request.schedule;
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        op_visit(survey, visit, &schedule->ops[i]);
    }
}

static void partner_mark(struct survey *survey, uint32_t rank, bool source, const struct cw_op *op)
{
    (void)source;
    (void)op;
    survey->transport->partner_count += survey->partner_of[rank] == PUTS_NONE ? 1 : 0;
    survey->partner_of[rank] = 0;
}

int cw_puts_transport_named(const struct cw_schedule *schedule, uint32_t ranks, bool *named)
{
    struct cw_puts_transport transport = {
        .request = {.schedule = schedule, .ranks = ranks},
        .rank = schedule->rank,
    };
    struct survey survey = {.transport = &transport, .partner_of = malloc(ranks * sizeof(uint32_t))};
    if (survey.partner_of == NULL) {
        return CW_ERROR_MEMORY;
    }
    memset(survey.partner_of, 0xff, ranks * sizeof(uint32_t));
    schedule_visit(&survey, partner_mark);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        named[rank] = survey.partner_of[rank] != PUTS_NONE;
    }
    free(survey.partner_of);
    return CW_OK;
}

static void partner_measure(struct survey *survey, uint32_t rank, bool source, const struct cw_op *op)
{
    struct puts_partner *partner = &survey->transport->partners[survey->partner_of[rank]];
    bool message = op->kind == CW_OP_BARRIER || (op->flags & CW_OP_EAGER) != 0;
    if (message && op->bytes > survey->message_bytes_max) {
        survey->message_bytes_max = op->bytes;
    }
    if (!source) {
        partner->target = true;
        survey->copies += message && op->bytes > CW_INLINE_MAX ? op->iterations : 0;
        return;
    }
    partner->source = true;
    partner->due += op->iterations;
    if (message && op->bytes <= survey->transport->request.slot_bytes) {
        survey->messages += op->iterations;
        survey->message_bytes += op->bytes * (op->iterations - 1) + op->last_bytes;
    }
}

static int peers_compare(const void *a, const void *b, void *partners)
{
    uint32_t left = ((const struct puts_partner *)partners)[*(const uint32_t *)a].peer;
    uint32_t right = ((const struct puts_partner *)partners)[*(const uint32_t *)b].peer;
    return left < right ? -1 : left > right;
}

static bool partners_create(struct cw_puts_transport *transport, struct survey *survey)
{
    const struct cw_puts_transport_request *request = &transport->request;
    schedule_visit(survey, partner_mark);
    transport->partners = calloc(transport->partner_count + 1ul, sizeof(*transport->partners));
    transport->by_peer = calloc(transport->partner_count + 1ul, sizeof(*transport->by_peer));
    if (transport->partners == NULL || transport->by_peer == NULL) {
        return false;
    }
    uint32_t next = 0;
    for (uint32_t rank = 0; rank < request->ranks; rank++) {
        if (survey->partner_of[rank] != PUTS_NONE) {
            transport->partners[next] = (struct puts_partner){.rank = rank, .peer = request->peers[rank].peer};
            transport->by_peer[next] = next;
            survey->partner_of[rank] = next++;
        }
    }
    qsort_r(transport->by_peer, next, sizeof(*transport->by_peer), peers_compare, transport->partners);
    schedule_visit(survey, partner_measure);
    for (uint32_t i = 0; i < next; i++) {
        struct puts_partner *partner = &transport->partners[i];
        /* after a barrier everybody has heard of everybody */
        bool one_way = partner->target != partner->source && request->schedule->barrier_count == 0;
        partner->one_way_to = one_way && partner->target;
        partner->one_way_from = one_way && partner->source;
    }
    return true;
}

static struct puts_partner *partner_find(const struct cw_puts_transport *transport, uint32_t key, bool by_peer)
{
    uint32_t low = 0;
    for (uint32_t count = transport->partner_count; count > 0;) {
        uint32_t half = count / 2;
        struct puts_partner *middle = &transport->partners[by_peer ? transport->by_peer[low + half] : low + half];
        uint32_t found = by_peer ? middle->peer : middle->rank;
        if (found == key) {
            return middle;
        }
        low = found < key ? low + half + 1 : low;
        count = found < key ? count - half - 1 : half;
    }
    return NULL;
}

struct puts_partner *puts_partner_of_rank(const struct cw_puts_transport *transport, uint32_t rank)
{
    return partner_find(transport, rank, false);
}

struct puts_partner *puts_partner_of_peer(const struct cw_puts_transport *transport, uint32_t peer)
{
    return partner_find(transport, peer, true);
}

/* ---- Memory ---- */

static bool records_create(struct cw_puts_transport *transport)
{
    uint32_t count = transport->request.put_count_max;
    transport->records = calloc(count, sizeof(*transport->records));
    for (uint32_t i = 0; transport->records != NULL && i < count; i++) {
        transport->records[i].next = i + 1 < count ? i + 1 : PUTS_NONE;
    }
    transport->free_first = 0;
    transport->partial_first = PUTS_NONE;
    return transport->records != NULL;
}

static bool copies_create(struct cw_puts_transport *transport, const struct survey *survey)
{
    uint32_t count = survey->copies < PUTS_COPIES_MAX ? (uint32_t)survey->copies : PUTS_COPIES_MAX;
    transport->copies = malloc((uint64_t)count * transport->request.slot_bytes + 1);
    transport->copies_free = malloc((count + 1ul) * sizeof(*transport->copies_free));
    if (transport->copies == NULL || transport->copies_free == NULL) {
        return false;
    }
    transport->copy_count = transport->copies_free_count = count;
    for (uint32_t i = 0; i < count; i++) {
        transport->copies_free[i] = count - 1 - i; /* what is not used stays untouched */
    }
    return true;
}

/* All messages of the next run have a place before it begins. What is not used stays untouched. */
static bool early_create(struct cw_puts_transport *transport, const struct survey *survey)
{
    transport->early_count_max = survey->messages;
    transport->early = malloc((survey->messages + 1) * sizeof(*transport->early));
    transport->arena_bytes = survey->message_bytes;
    for (uint32_t i = 0; i < 2; i++) {
        transport->arenas[i].memory = malloc(survey->message_bytes + 1);
        if (transport->arenas[i].memory == NULL) {
            return false;
        }
    }
    return transport->early != NULL;
}

static int create(struct cw_puts_transport *transport, struct survey *survey, char *error, size_t error_bytes)
{
    if (!partners_create(transport, survey)) {
        return CW_ERROR_MEMORY;
    }
    if (survey->message_bytes_max > transport->request.slot_bytes) {
        snprintf(error, error_bytes,
                 "rank %u: the plan has messages of %llu bytes, but slots have %u: build it with --eager %u",
                 transport->rank, (unsigned long long)survey->message_bytes_max, transport->request.slot_bytes,
                 transport->request.slot_bytes);
        return CW_ERROR_ARGUMENT;
    }
    if (survey->messages > PUTS_MESSAGES_MAX) {
        snprintf(error, error_bytes, "rank %u: %llu messages come in one run, more than %u", transport->rank,
                 (unsigned long long)survey->messages, (uint32_t)PUTS_MESSAGES_MAX);
        return CW_ERROR_LIMIT;
    }
    return records_create(transport) && copies_create(transport, survey) && early_create(transport, survey)
               ? CW_OK
               : CW_ERROR_MEMORY;
}

static bool request_valid(const struct cw_puts_transport_request *request)
{
    return request->endpoint != NULL && request->schedule != NULL && request->peers != NULL &&
           request->schedule->rank < request->ranks && request->ranks <= CW_RANKS_MAX &&
           request->lane <= (1u << CW_LANE_BITS) - CW_PUTS_LANES && request->put_count_max < PUTS_NONE;
}

int cw_puts_transport_create(const struct cw_puts_transport_request *request, struct cw_puts_transport **transport,
                             char *error, size_t error_bytes)
{
    if (!request_valid(request)) {
        snprintf(error, error_bytes, "the request is incomplete, or has lanes or tables out of range");
        return CW_ERROR_ARGUMENT;
    }
    struct cw_puts_transport *created = calloc(1, sizeof(*created));
    struct survey survey = {.transport = created, .partner_of = malloc(request->ranks * sizeof(uint32_t))};
    int status = CW_ERROR_MEMORY;
    if (created != NULL && survey.partner_of != NULL) {
        memset(survey.partner_of, 0xff, request->ranks * sizeof(uint32_t));
        created->request = *request;
        created->request.put_count_max = request->put_count_max > 0 ? request->put_count_max : CW_PUTS_DEFAULT_PUTS;
        created->rank = request->schedule->rank;
        status = create(created, &survey, error, error_bytes);
        created->request.schedule = NULL; /* the caller's again */
    }
    if (status == CW_ERROR_MEMORY) {
        snprintf(error, error_bytes, "rank %u: no memory for its transport", request->schedule->rank);
    }
    free(survey.partner_of);
    if (status != CW_OK) {
        cw_puts_transport_destroy(created);
        return status;
    }
    *transport = created;
    return CW_OK;
}

uint64_t cw_puts_transport_memory_bytes(const struct cw_puts_transport *transport)
{
    uint64_t partner_bytes = sizeof(*transport->partners) + sizeof(*transport->by_peer);
    return sizeof(*transport) + (transport->partner_count + 1ul) * partner_bytes +
           transport->request.put_count_max * sizeof(*transport->records) +
           transport->copy_count * sizeof(*transport->copies_free) +
           (uint64_t)transport->copies_most * transport->request.slot_bytes +
           (transport->early_count_max + 1) * sizeof(*transport->early) + 2 * (transport->arena_bytes + 1);
}

void cw_puts_transport_destroy(struct cw_puts_transport *transport)
{
    if (transport == NULL) {
        return;
    }
    for (uint64_t i = 0; i < transport->early_count; i++) {
        puts_slot_release(transport, transport->early[i].buffer);
    }
    free(transport->early);
    free(transport->arenas[0].memory);
    free(transport->arenas[1].memory);
    free(transport->copies);
    free(transport->copies_free);
    free(transport->records);
    free(transport->partners);
    free(transport->by_peer);
    free(transport);
}
