/* Operations become work requests. */
#include <assert.h>
#include <string.h>

#include "dataplane/put/message.h"
#include "dataplane/put/operation.h"
#include "dataplane/rdma/rdma_state.h"

/* Work requests that are posted together, and their data until then. */
struct batch {
    struct rdma_pair *pair;
    uint32_t count;
    struct cw_verbs_work work[CW_VERBS_BURST];
    struct rdma_header headers[CW_VERBS_BURST];
};

enum outcome { MADE, WAITS, ENDED };

/* ---- which operations ---- */

/* The device's information about the peer's region; false: none. */
static bool target_of(const struct rdma *rdma, struct rdma_flow *flow, uint64_t token)
{
    if (token == flow->token && token != 0) {
        return true;
    }
    uint32_t key;
    uint64_t base;
    if (!rdma_token_read(rdma, token, &key, &base)) {
        return false;
    }
    flow->token = token;
    flow->remote_key = key;
    flow->remote_base = base;
    return true;
}

bool rdma_accepts(struct cw_rdma *base, const struct cw_flow *flow, enum cw_operation_kind kind, uint64_t token,
                  uint64_t local)
{
    const struct rdma *rdma = (const struct rdma *)base;
    struct rdma_flow *own = rdma_flow_of(flow);
    if (flow->bandwidth != NULL || flow->timers.rate_bps != 0 || cw_shaper_is_set(&flow->shaping)) {
        return false; /* paced: a device lets out what it has */
    }
    switch (kind) {
    case CW_OPERATION_PUT:
        return target_of(rdma, own, token);
    case CW_OPERATION_GET: {
        const struct cw_region *region = cw_region_of(&rdma->endpoint->regions, local);
        return region != NULL && region->verbs.handle != NULL && target_of(rdma, own, token);
    }
    case CW_OPERATION_MESSAGE:
        return flow->session.pool_token != 0 &&
               flow->session.pool_slot_bytes + sizeof(struct rdma_header) <= rdma->block_bytes;
    case CW_OPERATION_REPLY:
    case CW_OPERATION_RDMA:
        return false;
    default:
        return true;
    }
}

/* ---- queues ---- */

void rdma_wake(struct rdma *rdma, struct rdma_flow *flow)
{
    if (!flow->is_pushed && flow->base.is_up && flow->queue.first != NULL) {
        flow->is_pushed = true;
        flow->next_pushed = rdma->pushed_first;
        rdma->pushed_first = flow;
    }
}

void rdma_queue(struct cw_rdma *base, struct cw_operation *operation)
{
    struct rdma_flow *flow = rdma_flow_of(operation->flow);
    cw_operation_push(&flow->queue, operation);
    rdma_wake((struct rdma *)base, flow);
}

/* ---- work ---- */

static inline bool has_room(const struct rdma *rdma, const struct rdma_pair *pair)
{
    return pair->work_posted - pair->work_done < rdma->device->info.work_max;
}

static void hand_over(struct rdma *rdma, struct batch *batch)
{
    if (batch->count == 0) {
        return;
    }
    batch->work[batch->count - 1].signaled = true; /* nothing need follow that would complete it */
    batch->pair->unsignaled = 0;
    cw_count(rdma->endpoint, CW_COUNTER_RDMA_WORK, batch->count);
    uint32_t taken = cw_verbs_post(batch->pair->verbs, batch->work, batch->count);
    if (taken < batch->count) {
        /* it has more room than it takes: no use in going on with it */
        for (uint32_t i = taken; i < batch->count; i++) {
            rdma_block_return(rdma, batch->pair, batch->work[i].id);
        }
        batch->pair->work_posted -= batch->count - taken;
        rdma->work_open -= batch->count - taken;
        rdma_pair_broken(rdma, batch->pair->flow);
    }
    batch->count = 0;
}

/* The next work request of a batch, which has room. */
static struct cw_verbs_work *next_work(struct rdma *rdma, struct batch *batch)
{
    if (batch->count == CW_VERBS_BURST) {
        hand_over(rdma, batch);
    }
    struct cw_verbs_work *work = &batch->work[batch->count];
    *work = (struct cw_verbs_work){.id = batch->pair->work_posted};
    return work;
}

static void commit(struct rdma *rdma, struct batch *batch, struct cw_verbs_work *work, uint16_t block,
                   bool wants_signal)
{
    struct rdma_pair *pair = batch->pair;
    pair->blocks[pair->work_posted % rdma->device->info.work_max] = block;
    pair->blocks_held += block != RDMA_NO_BLOCK;
    /* early enough for operations that wait for room, or for blocks */
    bool is_due = ++pair->unsignaled >= RDMA_UNSIGNALED_MAX || pair->unsignaled >= rdma->device->info.work_max / 2 ||
                  (block != RDMA_NO_BLOCK && rdma->free_block_count < RDMA_BLOCKS / 2);
    work->signaled = wants_signal || is_due;
    pair->unsignaled = work->signaled ? 0 : pair->unsignaled;
    pair->work_posted++;
    rdma->work_open++;
    batch->count++;
}

static void copy(const struct rdma *rdma, struct cw_operation *operation, uint64_t position, uint32_t bytes,
                 uint8_t *at)
{
    if (operation->is_inline) {
        memcpy(at, operation->bytes_inline + position, bytes);
    } else if (bytes > 0) {
        cw_source_copy(&operation->source, &operation->cursor, position, bytes, at, NULL);
    }
    cw_count(rdma->endpoint, CW_COUNTER_RDMA_COPIED, bytes);
}

/* Pieces of the source in place. Returns their bytes; 0: it must be copied. */
static uint32_t gather(const struct rdma *rdma, struct cw_operation *operation, uint32_t bytes,
                       struct cw_verbs_work *work)
{
    const struct cw_region *region = operation->region;
    if (region == NULL || region->verbs.handle == NULL) {
        return 0;
    }
    uint32_t gathered = 0;
    while (gathered < bytes && work->piece_count < rdma->device->info.pieces_max) {
        struct cw_verbs_piece *piece = &work->pieces[work->piece_count++];
        piece->bytes = cw_source_run(&operation->source, &operation->cursor, operation->position + gathered,
                                     bytes - gathered, &piece->data);
        piece->memory = &region->verbs;
        gathered += piece->bytes;
    }
    if (gathered == bytes || gathered >= RDMA_GATHER_MIN) {
        return gathered;
    }
    work->piece_count = 0;
    return 0;
}

/* False, and the operation has failed: no region covers its range. */
static bool is_reachable(const struct rdma *rdma, struct rdma_flow *flow, struct cw_operation *operation)
{
    bool is_known = target_of(rdma, flow, operation->token);
    assert(is_known); /* rdma_accepts */
    (void)is_known;
    bool reaches = operation->offset <= UINT64_MAX - flow->remote_base - operation->bytes;
    operation->status = reaches ? operation->status : CW_ERROR_REMOTE_ACCESS;
    return reaches;
}

/* The next `bytes` of the operation are at the peer's, and are this work request's. */
static void aim(const struct rdma_flow *flow, struct cw_operation *operation, uint32_t bytes,
                struct cw_verbs_work *work)
{
    work->remote = flow->remote_base + operation->offset + operation->position;
    work->remote_key = flow->remote_key;
    operation->position += bytes;
}

/* The next piece of a put. */
static enum outcome make_put(struct rdma *rdma, struct rdma_flow *flow, struct cw_operation *operation,
                             struct batch *batch)
{
    const struct cw_verbs_info *info = &rdma->device->info;
    if (!is_reachable(rdma, flow, operation)) {
        return ENDED;
    }
    uint64_t left = operation->bytes - operation->position;
    uint32_t bytes = left < info->message_max ? (uint32_t)left : (uint32_t)info->message_max;
    struct cw_verbs_work *work = next_work(rdma, batch);
    uint16_t block = RDMA_NO_BLOCK;
    bool is_short = operation->source.kind == CW_SOURCE_CONTIGUOUS || operation->is_inline;
    if (operation->bytes == 0) {
        work->is_inline = true;
    } else if (is_short && operation->bytes <= info->inline_max) {
        work->is_inline = true;
        work->piece_count = 1;
        const uint8_t *data =
            operation->is_inline ? operation->bytes_inline : (const uint8_t *)operation->source.contiguous.data;
        work->pieces[0] = (struct cw_verbs_piece){.data = data + operation->position, .bytes = bytes};
    } else {
        uint32_t gathered = operation->is_inline ? 0 : gather(rdma, operation, bytes, work);
        if (gathered > 0) {
            bytes = gathered;
        } else {
            block = rdma_block_acquire(rdma, batch->pair);
            if (block == RDMA_NO_BLOCK) {
                return WAITS;
            }
            bytes = bytes < rdma->block_bytes ? bytes : rdma->block_bytes;
            copy(rdma, operation, operation->position, bytes, rdma_block(rdma, block));
            work->piece_count = 1;
            work->pieces[0] =
                (struct cw_verbs_piece){.data = rdma_block(rdma, block), .bytes = bytes, .memory = &rdma->registered};
        }
    }
    aim(flow, operation, bytes, work);
    bool is_last = operation->position == operation->bytes;
    work->opcode = is_last ? CW_VERBS_OP_WRITE_NOTIFY : CW_VERBS_OP_WRITE;
    work->immediate = operation->lane_tag;
    commit(rdma, batch, work, block, is_last && (operation->signal || !work->is_inline));
    return MADE;
}

/* The next piece of a get. */
static enum outcome make_get(struct rdma *rdma, struct rdma_flow *flow, struct cw_operation *operation,
                             struct batch *batch)
{
    if (!is_reachable(rdma, flow, operation)) {
        return ENDED;
    }
    uint64_t left = operation->bytes - operation->position;
    uint64_t most = rdma->device->info.message_max;
    uint32_t bytes = (uint32_t)(left < most ? left : most);
    struct cw_verbs_work *work = next_work(rdma, batch);
    work->opcode = CW_VERBS_OP_READ;
    work->piece_count = 1;
    work->pieces[0] =
        (struct cw_verbs_piece){.data = operation->region->base + operation->local.offset + operation->position,
                                .bytes = bytes,
                                .memory = &operation->region->verbs};
    aim(flow, operation, bytes, work);
    commit(rdma, batch, work, RDMA_NO_BLOCK, operation->position == operation->bytes);
    return MADE;
}

/* A message, or a credit frame: a header and up to a block of bytes, from a block unless the device copies them. */
static enum outcome make_send(struct rdma *rdma, struct cw_operation *operation, const struct rdma_header *header,
                              struct batch *batch)
{
    struct cw_verbs_work *work = next_work(rdma, batch);
    uint16_t block = RDMA_NO_BLOCK;
    uint32_t bytes = (uint32_t)operation->bytes;
    work->opcode = CW_VERBS_OP_SEND;
    work->immediate = operation->lane_tag;
    if (operation->is_inline && sizeof(*header) + bytes <= rdma->device->info.inline_max) {
        batch->headers[batch->count] = *header;
        work->is_inline = true;
        work->piece_count = bytes > 0 ? 2 : 1;
        work->pieces[0] = (struct cw_verbs_piece){.data = &batch->headers[batch->count], .bytes = sizeof(*header)};
        work->pieces[1] = (struct cw_verbs_piece){.data = operation->bytes_inline, .bytes = bytes};
    } else {
        block = rdma_block_acquire(rdma, batch->pair);
        if (block == RDMA_NO_BLOCK) {
            return WAITS;
        }
        uint8_t *at = rdma_block(rdma, block);
        memcpy(at, header, sizeof(*header));
        copy(rdma, operation, 0, bytes, at + sizeof(*header));
        work->piece_count = 1;
        work->pieces[0] = (struct cw_verbs_piece){
            .data = at, .bytes = (uint32_t)sizeof(*header) + bytes, .memory = &rdma->registered};
    }
    commit(rdma, batch, work, block, operation->signal || !work->is_inline);
    return MADE;
}

static enum outcome make_message(struct rdma *rdma, struct cw_operation *operation, struct batch *batch)
{
    cw_messages_grant_along(rdma->endpoint, operation);
    struct rdma_header header = {.kind = RDMA_MESSAGE_SLOT,
                                 .granted_count = operation->granted_count,
                                 .slot = (uint16_t)(operation->offset / operation->flow->session.pool_slot_bytes)};
    memcpy(header.granted, operation->granted, sizeof(header.granted));
    return make_send(rdma, operation, &header, batch);
}

/* As frames of packets have it, behind a header; in the place of the operation's own bytes while that is written. */
static enum outcome make_credit(struct rdma *rdma, struct cw_operation *operation, struct batch *batch)
{
    static const uint8_t kinds[] = {
        [CW_OPERATION_ASK] = CW_FRAME_ASK,
        [CW_OPERATION_GRANT] = CW_FRAME_GRANT,
        [CW_OPERATION_RECALL] = CW_FRAME_RECALL,
        [CW_OPERATION_RETURN] = CW_FRAME_RETURN,
    };
    const struct rdma_header header = {.kind = RDMA_MESSAGE_CREDIT};
    bool has_slots = operation->kind == CW_OPERATION_GRANT || operation->kind == CW_OPERATION_RETURN;
    uint32_t slots_bytes = has_slots ? (uint32_t)(operation->bytes * sizeof(uint16_t)) : 0;
    struct cw_wire_frame frame = {.kind = kinds[operation->kind], .length = (uint16_t)operation->bytes};
    struct cw_operation written = {.is_inline = true, .bytes = sizeof(frame) + slots_bytes};
    static_assert(sizeof(frame) + sizeof(operation->slots) <= sizeof(written.bytes_inline), "a credit frame");
    memcpy(written.bytes_inline, &frame, sizeof(frame));
    memcpy(written.bytes_inline + sizeof(frame), operation->slots, slots_bytes);
    enum outcome outcome = make_send(rdma, &written, &header, batch);
    hand_over(rdma, batch); /* before `written` goes */
    return outcome;
}

static enum outcome make(struct rdma *rdma, struct rdma_flow *flow, struct cw_operation *operation, struct batch *batch)
{
    if (operation->status < 0) {
        return ENDED;
    }
    switch (operation->kind) {
    case CW_OPERATION_PUT:
        return make_put(rdma, flow, operation, batch);
    case CW_OPERATION_GET:
        return make_get(rdma, flow, operation, batch);
    case CW_OPERATION_MESSAGE:
        return make_message(rdma, operation, batch);
    default:
        return make_credit(rdma, operation, batch);
    }
}

/* True once its last work request has been made. */
static inline bool is_whole(const struct cw_operation *operation)
{
    bool has_parts = operation->kind == CW_OPERATION_PUT || operation->kind == CW_OPERATION_GET;
    return !has_parts || operation->position == operation->bytes;
}

/* The first operation of the queue is posted in full. */
static void move_posted(struct rdma_flow *flow)
{
    struct cw_operation *operation = cw_operation_pop(&flow->queue);
    operation->work_end = flow->pair->work_posted;
    if (operation->kind != CW_OPERATION_GET) {
        operation->number = flow->pair->sent++;
    }
    cw_operation_push(&flow->posted, operation);
}

/* A flow waits for staging blocks, which come back with completions of any flow. */
static void starve(struct rdma *rdma, struct rdma_flow *flow)
{
    if (!flow->is_pushed) {
        flow->is_pushed = true;
        flow->next_pushed = rdma->starved_first;
        rdma->starved_first = flow;
    }
}

void rdma_feed(struct rdma *rdma)
{
    struct rdma_flow *starved = rdma->starved_first;
    if (starved == NULL || rdma->free_block_count == 0) {
        return;
    }
    struct rdma_flow *last = starved;
    while (last->next_pushed != NULL) {
        last = last->next_pushed;
    }
    last->next_pushed = rdma->pushed_first;
    rdma->pushed_first = starved;
    rdma->starved_first = NULL;
}

static void push_flow(struct rdma *rdma, struct rdma_flow *flow)
{
    struct batch batch;
    batch.pair = flow->pair;
    batch.count = 0;
    while (flow->base.is_up && flow->queue.first != NULL && has_room(rdma, flow->pair)) {
        struct cw_operation *operation = flow->queue.first;
        enum outcome outcome = make(rdma, flow, operation, &batch);
        if (outcome == WAITS) {
            starve(rdma, flow);
            break;
        }
        if (outcome == ENDED) {
            hand_over(rdma, &batch); /* earlier ones, which have another status */
            if (flow->base.is_up) {
                cw_operation_pop(&flow->queue);
                cw_operation_done(rdma->endpoint, operation, operation->status);
            }
        } else if (is_whole(operation)) {
            move_posted(flow);
        }
    }
    hand_over(rdma, &batch);
}

void rdma_push(struct cw_rdma *base)
{
    struct rdma *rdma = (struct rdma *)base;
    struct rdma_flow *pushed = rdma->pushed_first;
    rdma->pushed_first = NULL;
    while (pushed != NULL) {
        struct rdma_flow *flow = pushed;
        pushed = flow->next_pushed;
        flow->is_pushed = false;
        if (flow->base.is_up) {
            push_flow(rdma, flow);
        }
    }
}

bool rdma_post_ready(struct rdma *rdma, struct rdma_flow *flow)
{
    struct batch batch;
    batch.pair = flow->pair;
    batch.count = 0;
    struct cw_operation written = {.is_inline = true};
    const struct rdma_header header = {.kind = RDMA_MESSAGE_READY};
    if (make_send(rdma, &written, &header, &batch) == WAITS) {
        return false;
    }
    hand_over(rdma, &batch);
    return true;
}
