/* The barrier op: dissemination (Hensgen, Finkel and Manber, 1988). In round k a rank signals the one 2^k after it,
 * once it has the signals of all rounds before; after ceil(log2 P) rounds each rank has a signal from every other,
 * directly or not. */
#include <assert.h>
#include <stdlib.h>

#include "collectives/execute/state.h"
#include "dataplane/status.h"

static_assert(EXECUTION_BARRIER_NUMBER + (uint64_t)CW_BARRIERS_MAX * EXECUTION_BARRIER_ROUNDS ==
                  1u << (CW_SCHEDULE_TAG_BITS - 2),
              "barriers take the upper half of the numbers of signals");
static_assert(CW_RANKS_MAX <= 1ull << EXECUTION_BARRIER_ROUNDS, "rounds");

static uint32_t signal_tag(uint32_t number, uint32_t round)
{
    return (EXECUTION_BARRIER_NUMBER + number * EXECUTION_BARRIER_ROUNDS + round) * CW_TAG_STEP + CW_TAG_SIGNAL;
}

static uint32_t rank_before(const struct cw_execution *execution, uint32_t round)
{
    uint32_t ranks = execution->request.ranks;
    return (execution->schedule->rank + ranks - (1u << round)) % ranks;
}

int execution_barriers_create(struct cw_execution *execution)
{
    const struct cw_schedule *schedule = execution->schedule;
    while (1u << execution->barrier_rounds < execution->request.ranks) {
        execution->barrier_rounds++;
    }
    execution->barriers = calloc(schedule->barrier_count + 1ul, sizeof(*execution->barriers));
    if (execution->barriers == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        if (schedule->ops[i].kind == CW_OP_BARRIER) {
            execution->barriers[schedule->ops[i].tag].op = i;
        }
    }
    return CW_OK;
}

void execution_barriers_clear(struct cw_execution *execution)
{
    for (uint32_t i = 0; i < execution->schedule->barrier_count; i++) {
        execution->barriers[i].arrived = 0;
        execution->barriers[i].sent = 0;
        execution->barriers[i].refused = false;
    }
}

/* Sends what may be sent; complete once all is sent and all signals are there. */
static void advance(struct cw_execution *execution, struct execution_barrier *barrier)
{
    const struct cw_transport *transport = execution->request.transport;
    uint32_t number = execution->schedule->ops[barrier->op].tag;
    while (barrier->sent < execution->barrier_rounds) {
        uint32_t round = barrier->sent;
        if (round > 0 && (barrier->arrived >> (round - 1) & 1) == 0) {
            return;
        }
        uint32_t peer = (execution->schedule->rank + (1u << round)) % execution->request.ranks;
        struct cw_transport_put put = {
            .peers = &peer,
            .peer_count = 1,
            .tag = signal_tag(number, round),
            .eager = true,
            .context = EXECUTION_BARRIER_CONTEXT,
        };
        int status = transport->put(transport->state, &put);
        if (status == CW_ERROR_AGAIN) {
            barrier->refused = true;
            execution_refused_add(execution, barrier->op);
            return;
        }
        if (status != CW_OK && status != CW_TRANSPORT_DONE) {
            execution_fail(execution, status, "op %u (barrier): signal to rank %u: %s", barrier->op, peer,
                           cw_status_text(status));
            return;
        }
        barrier->sent++;
        execution->barrier_puts += status == CW_OK;
    }
    if (barrier->arrived == (1u << execution->barrier_rounds) - 1) {
        execution_complete(execution, barrier->op, 0);
    }
}

void execution_barrier_start(struct cw_execution *execution, uint32_t index)
{
    const struct cw_transport *transport = execution->request.transport;
    uint32_t number = execution->schedule->ops[index].tag;
    struct execution_barrier *barrier = &execution->barriers[number];
    for (uint32_t round = 0; round < execution->barrier_rounds && transport->expect != NULL; round++) {
        if ((barrier->arrived >> round & 1) == 0) {
            transport->expect(transport->state, rank_before(execution, round), signal_tag(number, round));
        }
    }
    advance(execution, barrier);
}

void execution_barrier_retry(struct cw_execution *execution, uint32_t index)
{
    struct execution_barrier *barrier = &execution->barriers[execution->schedule->ops[index].tag];
    barrier->refused = false;
    advance(execution, barrier);
}

void execution_barrier_arrived(struct cw_execution *execution, const struct cw_transport_event *event)
{
    uint32_t position = event->tag / CW_TAG_STEP - EXECUTION_BARRIER_NUMBER;
    uint32_t number = position / EXECUTION_BARRIER_ROUNDS;
    uint32_t round = position % EXECUTION_BARRIER_ROUNDS;
    if (!event->eager || event->bytes != 0 || number >= execution->schedule->barrier_count ||
        round >= execution->barrier_rounds || event->peer != rank_before(execution, round)) {
        execution_fail(execution, CW_ERROR_ARGUMENT, "signal of rank %u for round %u of barrier %u: not due at all",
                       event->peer, round, number);
        return;
    }
    struct execution_barrier *barrier = &execution->barriers[number];
    if ((barrier->arrived >> round & 1) != 0) {
        execution_fail(execution, CW_ERROR_ARGUMENT, "signal of rank %u for round %u of barrier %u: it came before",
                       event->peer, round, number);
        return;
    }
    barrier->arrived |= 1u << round;
    if (execution->progress.states[barrier->op].started > 0 && !barrier->refused) {
        advance(execution, barrier);
    }
}
