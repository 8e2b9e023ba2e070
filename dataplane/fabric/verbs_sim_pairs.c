#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/fabric/verbs_sim_device.h"

enum { COPY_BYTES = 65536 }; /* at a time, between processes */

static struct sim_work *work_at(struct sim_pair *pair, uint32_t number)
{
    return &pair->work[number % pair->device->net->config.work_max];
}

/* Puts a pair where its next event has it. */
static void pair_schedule(struct sim_pair *pair)
{
    struct cw_verbs_net *net = pair->device->net;
    if (pair->heap_position != CW_HEAP_OUT) {
        (void)cw_heap_remove(&net->heap, pair->heap_position, true);
        pair->heap_position = CW_HEAP_OUT;
    }
    uint64_t next_ns = UINT64_MAX;
    if (pair->answered != pair->applied) {
        next_ns = work_at(pair, pair->answered)->answer_ns;
    }
    if (pair->applied != pair->posted && work_at(pair, pair->applied)->arrival_ns < next_ns) {
        next_ns = work_at(pair, pair->applied)->arrival_ns;
    }
    if (next_ns != UINT64_MAX) {
        const struct cw_heap_entry entry = {
            .time_ns = next_ns, .sequence = net->sequence++, .object = pair, .position = &pair->heap_position};
        cw_heap_push(&net->heap, &entry, true);
    }
}

static void work_clear(struct sim_work *work)
{
    free(work->data);
    work->data = NULL;
}

static void work_complete(struct sim_pair *pair, struct sim_work *work, enum cw_verbs_status status)
{
    if (work->work.signaled || status != CW_VERBS_OK) {
        const struct cw_verbs_completion completion = {.id = work->work.id, .pair = pair->own.number, .status = status};
        sim_complete(pair->device, CW_VERBS_SENT, &completion);
    }
    work_clear(work);
}

static void pair_fail(struct sim_pair *pair)
{
    if (pair->is_broken) {
        return;
    }
    pair->is_broken = true;
    for (; pair->answered != pair->posted; pair->answered++) {
        work_complete(pair, work_at(pair, pair->answered), CW_VERBS_FLUSHED);
    }
    pair->applied = pair->posted;
    pair_schedule(pair);
}

/* ---- pieces ---- */

static bool pieces_right(struct sim_device *device, const struct cw_verbs_work *work)
{
    for (uint32_t i = 0; i < work->piece_count && !work->is_inline; i++) {
        const struct cw_verbs_piece *piece = &work->pieces[i];
        const struct sim_memory *memory = sim_memory_find(device, piece->memory->local_key);
        const uint8_t *data = piece->data;
        if (memory == NULL || data < memory->base || data + piece->bytes > memory->base + memory->bytes) {
            return false;
        }
    }
    return true;
}

/* Copies the pieces of a work request from one place of this process to the memory of the device's user. */
static void pieces_fill(const struct sim_device *device, const struct sim_work *work, const uint8_t *place)
{
    for (uint32_t i = 0; i < work->work.piece_count; i++) {
        const struct cw_verbs_piece *piece = &work->work.pieces[i];
        if (piece->bytes > 0) {
            sim_copy_to(device, (void *)(uintptr_t)piece->data, place, piece->bytes);
            place += piece->bytes;
        }
    }
}

/* Copies the pieces of a work request of `from` to a place in the memory of the user of `to`. */
static void pieces_write(const struct sim_device *from, const struct sim_work *work, const struct sim_device *to,
                         uint8_t *place)
{
    if (work->data != NULL) {
        sim_copy_to(to, place, work->data, work->bytes);
        return;
    }
    for (uint32_t i = 0; i < work->work.piece_count; i++) {
        const struct cw_verbs_piece *piece = &work->work.pieces[i];
        const uint8_t *data = piece->data;
        for (uint32_t done = 0, bytes; done < piece->bytes; done += bytes) {
            uint8_t copy[COPY_BYTES];
            bytes = piece->bytes - done < COPY_BYTES ? piece->bytes - done : COPY_BYTES;
            sim_copy_from(from, copy, data + done, bytes);
            sim_copy_to(to, place + done, copy, bytes);
        }
        place += piece->bytes;
    }
}

/* The memory at a remote address; NULL: access is denied. A device checks nothing if there are no bytes. */
static uint8_t *remote_place(struct sim_device *target, const struct sim_work *work, uint32_t right)
{
    const struct sim_memory *memory = sim_memory_find(target, work->work.remote_key);
    if (memory == NULL || (memory->rights & right) == 0) {
        return NULL;
    }
    uint64_t offset = work->work.remote - memory->first;
    bool is_within =
        work->work.remote >= memory->first && offset <= memory->bytes && work->bytes <= memory->bytes - offset;
    return is_within ? memory->base + offset : NULL;
}

/* ---- work ---- */

/* The other end of a pair, if it is there and can be reached. */
static struct sim_pair *peer_of(const struct sim_pair *pair)
{
    const struct cw_verbs_net *net = pair->device->net;
    uint32_t node;
    memcpy(&node, pair->peer.gid + 12, sizeof(node));
    if (node >= cw_simulator_node_count(net->simulator) || sim_is_cut(net, node) ||
        sim_is_cut(net, pair->device->node)) {
        return NULL;
    }
    struct sim_device *device = net->devices[node];
    struct sim_pair *peer = device != NULL ? device->pairs[pair->peer.number % PAIRS_MAX] : NULL;
    bool is_ours = peer != NULL && peer->is_connected && !peer->is_broken && peer->own.number == pair->peer.number &&
                   peer->own.first == pair->peer.first && peer->peer.number == pair->own.number &&
                   peer->peer.first == pair->own.first;
    return is_ours ? peer : NULL;
}

/* Carries work out at the peer. False: its receive queue is empty. */
static bool apply(const struct sim_device *source, struct sim_pair *peer, struct sim_work *work)
{
    struct sim_device *target = peer->device;
    enum cw_verbs_opcode opcode = work->work.opcode;
    bool takes_buffer = opcode == CW_VERBS_OP_WRITE_NOTIFY || opcode == CW_VERBS_OP_SEND;
    if (takes_buffer && target->buffer_count == 0) {
        return false;
    }
    uint8_t *place = NULL;
    if (opcode != CW_VERBS_OP_SEND && work->bytes > 0) {
        place = remote_place(target, work, opcode == CW_VERBS_OP_READ ? CW_VERBS_READ : CW_VERBS_WRITE);
        if (place == NULL) {
            work->status = CW_VERBS_REFUSED;
            target->net->counters.refused++;
            return true;
        }
    }
    if (opcode == CW_VERBS_OP_READ) {
        work->data = malloc(work->bytes + 1);
        assert(work->data != NULL);
        if (place != NULL) {
            sim_copy_from(target, work->data, place, work->bytes);
        }
        return true;
    }
    struct cw_verbs_completion completion = {.pair = peer->own.number,
                                             .is_write = opcode == CW_VERBS_OP_WRITE_NOTIFY,
                                             .bytes = (uint32_t)work->bytes,
                                             .immediate = work->work.immediate};
    if (takes_buffer) {
        const struct cw_verbs_buffer *buffer = &target->buffers[target->buffer_first];
        if (opcode == CW_VERBS_OP_SEND && work->bytes > buffer->bytes) {
            work->status = CW_VERBS_BROKEN;
            return true;
        }
        completion.id = buffer->id;
        place = opcode == CW_VERBS_OP_SEND ? buffer->data : place;
        target->buffer_first = (target->buffer_first + 1) % target->net->config.receive_max;
        target->buffer_count--;
    }
    if (work->bytes > 0) {
        pieces_write(source, work, target, place);
    }
    if (takes_buffer) {
        sim_complete(target, CW_VERBS_RECEIVED, &completion);
    }
    return true;
}

/* Work has arrived at the peer, or at none. */
static void arrive(struct sim_pair *pair)
{
    struct cw_verbs_net *net = pair->device->net;
    struct sim_work *work = work_at(pair, pair->applied);
    struct sim_pair *peer = peer_of(pair);
    uint64_t now_ns = sim_now(net);
    if (peer == NULL && work->tries++ < net->config.retry_max) {
        work->arrival_ns = now_ns + net->config.retry_ns;
        return;
    }
    uint64_t in_bytes = work->work.opcode == CW_VERBS_OP_READ ? 0 : work->bytes;
    if (peer != NULL && !work->is_in) {
        work->is_in = true;
        work->arrival_ns = sim_line_reserve_in(peer->device, in_bytes);
        if (work->arrival_ns > now_ns) {
            return;
        }
    }
    bool fails_before = peer == NULL || cw_random_chance(&net->random, net->config.break_before);
    if (fails_before) {
        work->status = CW_VERBS_UNREACHED;
        net->counters.broken += peer != NULL;
    } else if (!apply(pair->device, peer, work)) {
        net->counters.waited++;
        work->arrival_ns = now_ns + WAIT_NS;
        return;
    } else if (work->status == CW_VERBS_OK) {
        net->counters.work++;
        net->counters.bytes += work->bytes;
        net->counters.packets += work->bytes <= MTU_BYTES ? 1 : (work->bytes + MTU_BYTES - 1) / MTU_BYTES;
        if (cw_random_chance(&net->random, net->config.break_after)) {
            work->status = CW_VERBS_UNREACHED;
            net->counters.broken++;
        }
    } else {
        pair_fail(peer);
    }
    bool is_read = work->work.opcode == CW_VERBS_OP_READ && work->status == CW_VERBS_OK;
    work->answer_ns = (is_read ? sim_line_reserve(peer->device, work->bytes) : now_ns) + net->config.delay_ns;
    pair->applied++;
    if (work->status != CW_VERBS_OK) {
        pair->is_failing = true;
        for (uint32_t i = pair->applied; i != pair->posted; i++) {
            work_at(pair, i)->arrival_ns = UINT64_MAX;
        }
    }
}

static void answer(struct sim_pair *pair)
{
    struct sim_work *work = work_at(pair, pair->answered);
    enum cw_verbs_status status = work->status;
    bool is_read = status == CW_VERBS_OK && work->work.opcode == CW_VERBS_OP_READ;
    if (is_read && !work->is_back) {
        work->is_back = true;
        work->answer_ns = sim_line_reserve_in(pair->device, work->bytes);
        if (work->answer_ns > sim_now(pair->device->net)) {
            return;
        }
    }
    pair->answered++;
    if (is_read) {
        pieces_fill(pair->device, work, work->data);
    }
    work_complete(pair, work, status);
    if (status != CW_VERBS_OK) {
        pair_fail(pair);
    }
}

void sim_pair_run(struct sim_pair *pair, uint64_t now_ns)
{
    if (pair->answered != pair->applied && work_at(pair, pair->answered)->answer_ns <= now_ns) {
        answer(pair);
    } else {
        arrive(pair);
    }
    pair_schedule(pair);
}

/* The pieces of inline work, which the caller has in this process. */
static uint8_t *inline_copy(const struct sim_work *work)
{
    uint8_t *copy = malloc(work->bytes), *place = copy;
    assert(copy != NULL);
    for (uint32_t i = 0; i < work->work.piece_count; i++) {
        const struct cw_verbs_piece *piece = &work->work.pieces[i];
        if (piece->bytes > 0) {
            memcpy(place, piece->data, piece->bytes);
            place += piece->bytes;
        }
    }
    return copy;
}

uint32_t sim_pair_post(struct cw_verbs_pair *base, const struct cw_verbs_work *list, uint32_t count)
{
    struct sim_pair *pair = (struct sim_pair *)base;
    struct cw_verbs_net *net = pair->device->net;
    uint32_t taken = 0;
    for (; taken < count && pair->posted - pair->answered < net->config.work_max; taken++) {
        struct sim_work *work = work_at(pair, pair->posted);
        *work = (struct sim_work){.work = list[taken]};
        for (uint32_t i = 0; i < list[taken].piece_count; i++) {
            work->bytes += list[taken].pieces[i].bytes;
        }
        assert(work->bytes <= net->config.message_max &&
               (!list[taken].is_inline || work->bytes <= net->config.inline_max));
        pair->posted++;
        if (pair->is_broken) {
            pair->answered = pair->applied = pair->posted;
            work_complete(pair, work, CW_VERBS_FLUSHED);
            continue;
        }
        if (!pieces_right(pair->device, &list[taken])) {
            net->counters.wrong++;
        }
        if (list[taken].is_inline && work->bytes > 0) {
            work->data = inline_copy(work);
        }
        uint64_t out_bytes = list[taken].opcode == CW_VERBS_OP_READ ? 0 : work->bytes;
        uint64_t arrival_ns = sim_line_reserve(pair->device, out_bytes) + net->config.delay_ns +
                              cw_random_below(&net->random, net->config.jitter_ns + 1);
        work->arrival_ns = arrival_ns > pair->last_arrival_ns ? arrival_ns : pair->last_arrival_ns;
        pair->last_arrival_ns = work->arrival_ns;
        work->arrival_ns = pair->is_failing ? UINT64_MAX : work->arrival_ns;
    }
    pair_schedule(pair);
    sim_schedule(net);
    return taken;
}

/* ---- pairs ---- */

int sim_pair_create(struct cw_verbs_device *base, struct cw_verbs_pair **created, struct cw_verbs_address *address)
{
    struct sim_device *device = (struct sim_device *)base;
    struct cw_verbs_net *net = device->net;
    for (uint32_t number = 1; number < PAIRS_MAX; number++) { /* numbers are reused soon, as with many devices */
        if (device->pairs[number] != NULL) {
            continue;
        }
        struct sim_pair *pair = calloc(1, sizeof(*pair) + net->config.work_max * sizeof(struct sim_work));
        if (pair == NULL) {
            return CW_ERROR_LIMIT;
        }
        pair->base.device = base;
        pair->device = device;
        pair->heap_position = CW_HEAP_OUT;
        pair->own = (struct cw_verbs_address){.number = number,
                                              .first = (uint32_t)cw_random_below(&net->random, 1 << 24),
                                              .mtu_bytes = MTU_BYTES,
                                              .reads = 16};
        memcpy(pair->own.gid, device->base.info.port.gid, sizeof(pair->own.gid));
        device->pairs[number] = pair;
        *created = &pair->base;
        *address = pair->own;
        return CW_OK;
    }
    return CW_ERROR_LIMIT;
}

int sim_pair_connect(struct cw_verbs_pair *base, const struct cw_verbs_address *peer)
{
    struct sim_pair *pair = (struct sim_pair *)base;
    pair->peer = *peer;
    pair->is_connected = true;
    return CW_OK;
}

void sim_pair_break(struct cw_verbs_pair *base)
{
    pair_fail((struct sim_pair *)base);
}

void sim_pair_destroy(struct cw_verbs_pair *base)
{
    struct sim_pair *pair = (struct sim_pair *)base;
    pair->is_broken = true;
    for (uint32_t i = pair->answered; i != pair->posted; i++) {
        work_clear(work_at(pair, i));
    }
    pair->answered = pair->applied = pair->posted;
    pair_schedule(pair);
    pair->device->pairs[pair->own.number] = NULL;
    free(pair);
}
