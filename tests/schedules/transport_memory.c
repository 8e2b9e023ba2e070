/* The memory transport as an execution sees it. */
#include "tests/schedules/transport_memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "tests/schedules/transport_memory_state.h"

/* ---- Putting ---- */

bool memory_refuses(struct cw_memory_fabric *fabric, struct memory_rank *rank)
{
    rank->refused = rank->refusals < MEMORY_REFUSALS_MAX && memory_chance(fabric, fabric->adversity.refuse);
    rank->refusals = rank->refused ? rank->refusals + 1 : 0;
    if (rank->refused) {
        memory_awake(fabric, rank->rank, true);
    }
    return rank->refused;
}

/* Whether a direct put may go to `target`. */
static bool reaches(struct cw_memory_fabric *fabric, const struct memory_rank *source, uint32_t target,
                    const struct cw_transport_put *put)
{
    const struct memory_rank *rank = &fabric->ranks[target];
    if (!rank->entered) {
        memory_fault(fabric, "rank %u: direct put with tag %u to rank %u, which has not entered", source->rank,
                     put->tag, target);
        return false;
    }
    bool writable = put->buffer == CW_BUFFER_RECEIVE || put->buffer == CW_BUFFER_SCRATCH;
    if (!writable || put->offset > rank->bytes[put->buffer] || put->bytes > rank->bytes[put->buffer] - put->offset) {
        memory_fault(fabric, "rank %u: direct put with tag %u of %llu bytes to byte %llu of rank %u's %s buffer",
                     source->rank, put->tag, (unsigned long long)put->bytes, (unsigned long long)put->offset, target,
                     cw_buffer_name(put->buffer));
        return false;
    }
    return true;
}

static void cuts_draw(struct cw_memory_fabric *fabric, struct memory_message *message, uint64_t bytes)
{
    uint32_t pieces = fabric->adversity.pieces_max;
    message->pieces = message->pieces_left = bytes < pieces ? (uint32_t)bytes : pieces;
    for (uint32_t i = 1; i < message->pieces; i++) { /* within an even share each, so that no piece is empty */
        uint64_t low = bytes * (i - 1) / message->pieces + 1;
        message->cuts[i] = cw_random_between(&fabric->random, low, bytes * i / message->pieces);
    }
    message->cuts[message->pieces] = bytes;
}

/* Starts one message of a put. CW_OK, CW_ERROR_MEMORY, CW_ERROR_REMOTE_ACCESS, CW_ERROR_ARGUMENT. */
static int message_start(struct cw_memory_fabric *fabric, uint32_t put_index, uint32_t target,
                         const struct cw_transport_put *put)
{
    const struct memory_rank *source = &fabric->ranks[fabric->puts[put_index].source];
    assert(target < fabric->request.ranks && target != source->rank);
    if (!put->eager && !reaches(fabric, source, target, put)) {
        return CW_ERROR_REMOTE_ACCESS;
    }
    struct memory_match *match = memory_match_find(fabric, target, source->rank, put->tag);
    uint32_t index = memory_message_acquire(fabric);
    if (match == NULL || index == MEMORY_NONE) {
        return CW_ERROR_MEMORY;
    }
    if (match->put) {
        memory_fault(fabric, "rank %u: two puts with tag %u to rank %u", source->rank, put->tag, target);
        return CW_ERROR_ARGUMENT;
    }
    match->put = true;
    match->message = put->eager ? index : MEMORY_NONE;
    struct memory_message *message = &fabric->messages[index];
    message->put = put_index;
    message->target = target;
    message->state = MESSAGE_COMING;
    message->destination = put->eager ? NULL : fabric->ranks[target].buffers[put->buffer] + put->offset;
    cuts_draw(fabric, message, put->bytes);
    fabric->puts[put_index].references++;
    fabric->puts[put_index].reads_left += put->bytes > 0 ? message->pieces : 1;
    memory_message_begin(fabric, index);
    return CW_OK;
}

static int memory_put(void *state, const struct cw_transport_put *put)
{
    struct memory_rank *rank = state;
    struct cw_memory_fabric *fabric = rank->fabric;
    assert(rank->entered && put->peer_count > 0 && put->tag < 1u << CW_SCHEDULE_TAG_BITS);
    assert(put->eager || put->bytes > 0);
    if (memory_refuses(fabric, rank)) {
        return CW_ERROR_AGAIN;
    }
    uint32_t index = memory_put_acquire(fabric);
    if (index == MEMORY_NONE) {
        return CW_ERROR_MEMORY;
    }
    struct memory_block *snapshot = put->bytes > 0 ? memory_block_acquire(fabric, put->bytes) : NULL;
    if (put->bytes > 0 && snapshot == NULL) {
        return CW_ERROR_MEMORY;
    }
    if (snapshot != NULL) {
        memcpy(snapshot->bytes, put->data, put->bytes);
    }
    fabric->puts[index] = (struct memory_put){
        .data = put->data,
        .snapshot = snapshot,
        .bytes = put->bytes,
        .context = put->context,
        .number = fabric->put_count++,
        .source = rank->rank,
        .tag = put->tag,
        .references = 1, /* its completion */
        .eager = put->eager,
    };
    for (uint32_t i = 0; i < put->peer_count; i++) {
        int status = message_start(fabric, index, put->peers[i], put);
        if (status != CW_OK) {
            return status;
        }
    }
    memory_put_begin(fabric, index);
    return CW_OK;
}

/* ---- The other calls of an execution ---- */

static void memory_serve(void *state, const struct cw_transport_sink *sink)
{
    ((struct memory_rank *)state)->sink = *sink;
}

static void memory_expect(void *state, uint32_t peer, uint32_t tag)
{
    struct memory_rank *rank = state;
    struct memory_match *match = memory_match_find(rank->fabric, rank->rank, peer, tag);
    if (match == NULL) {
        memory_fault(rank->fabric, "no memory for matches");
        return;
    }
    match->expected = true;
    if (match->message != MEMORY_NONE) {
        memory_message_expected(rank->fabric, match->message);
    }
}

static void memory_release(void *state, uint64_t buffer)
{
    struct memory_rank *rank = state;
    memory_message_release(rank->fabric, buffer < MEMORY_NONE ? (uint32_t)buffer - 1 : MEMORY_NONE);
}

/* ---- Life ---- */

void cw_memory_fabric_reset(struct cw_memory_fabric *fabric, uint64_t seed, uint32_t eager_buffers)
{
    cw_random_seed(&fabric->random, seed);
    fabric->request.seed = seed;
    fabric->request.eager_buffers = eager_buffers;
    fabric->put_count = 0;
    fabric->task_sequence = 0;
    fabric->faulty = false;
    fabric->run++;
    memory_adversity_draw(fabric);
    for (uint32_t i = 0; i < fabric->request.ranks; i++) {
        struct memory_rank *rank = &fabric->ranks[i];
        memory_hosts_reset(fabric, rank);
        *rank = (struct memory_rank){
            .fabric = fabric,
            .hosts = rank->hosts,
            .transport = rank->transport,
            .sink = rank->sink,
            .rank = i,
            .awake_position = MEMORY_NONE,
            .held_first = MEMORY_NONE,
            .held_last = MEMORY_NONE,
        };
    }
    memory_pools_reset(fabric);
}

int cw_memory_fabric_create(const struct cw_memory_fabric_request *request, struct cw_memory_fabric **fabric)
{
    if (request->ranks == 0 || request->ranks > CW_RANKS_MAX) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_memory_fabric *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return CW_ERROR_MEMORY;
    }
    created->request = *request;
    created->ranks = calloc(request->ranks, sizeof(*created->ranks));
    created->awake = calloc(request->ranks, sizeof(*created->awake));
    if (created->ranks == NULL || created->awake == NULL) {
        cw_memory_fabric_destroy(created);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < request->ranks; i++) {
        created->ranks[i].transport = (struct cw_transport){
            .state = &created->ranks[i],
            .serve = memory_serve,
            .put = memory_put,
            .host = memory_host,
            .expect = memory_expect,
            .release = memory_release,
        };
    }
    cw_memory_fabric_reset(created, request->seed, request->eager_buffers);
    *fabric = created;
    return CW_OK;
}

void cw_memory_fabric_destroy(struct cw_memory_fabric *fabric)
{
    if (fabric == NULL) {
        return;
    }
    memory_pools_dispose(fabric);
    for (uint32_t i = 0; fabric->ranks != NULL && i < fabric->request.ranks; i++) {
        free(fabric->ranks[i].hosts);
    }
    free(fabric->ranks);
    free(fabric->awake);
    free(fabric);
}

void cw_memory_fabric_enter(struct cw_memory_fabric *fabric, uint32_t rank, void *const buffers[4],
                            const uint64_t bytes[4])
{
    assert(rank < fabric->request.ranks && !fabric->ranks[rank].entered);
    for (int i = 0; i < 4; i++) {
        fabric->ranks[rank].buffers[i] = buffers[i];
        fabric->ranks[rank].bytes[i] = bytes[i];
    }
    fabric->ranks[rank].entered = true;
    memory_awake(fabric, rank, fabric->ranks[rank].has_news);
}

void cw_memory_fabric_polls(struct cw_memory_fabric *fabric, uint32_t rank)
{
    fabric->ranks[rank].has_news = fabric->ranks[rank].refused = false;
    memory_awake(fabric, rank, false);
}

const struct cw_transport *cw_memory_fabric_transport(struct cw_memory_fabric *fabric, uint32_t rank)
{
    assert(rank < fabric->request.ranks);
    return &fabric->ranks[rank].transport;
}

/* ---- What a driver wants to know ---- */

bool cw_memory_fabric_starving(const struct cw_memory_fabric *fabric)
{
    return fabric->tasks_count > 0 && (fabric->tasks[0].priority & MEMORY_PRIORITY_LATE) != 0;
}

uint32_t cw_memory_fabric_awake(const struct cw_memory_fabric *fabric)
{
    return fabric->awake_count;
}

uint32_t cw_memory_fabric_awake_rank(const struct cw_memory_fabric *fabric, uint32_t i)
{
    assert(i < fabric->awake_count);
    return fabric->awake[i];
}

const char *cw_memory_fabric_fault(const struct cw_memory_fabric *fabric)
{
    return fabric->faulty ? fabric->fault : NULL;
}
