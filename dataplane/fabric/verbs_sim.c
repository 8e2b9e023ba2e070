#include "dataplane/fabric/verbs_sim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/random.h"
#include "dataplane/fabric/heap.h"

enum {
    PAGE = 4096,
    MTU_BYTES = 1024,
    MEMORIES_MAX = 4096,
    PAIRS_MAX = 4096,
    WAIT_NS = 20000, /* until a receive queue that was empty is looked at again */
};

struct sim_work {
    struct cw_verbs_work work;
    uint64_t bytes;
    uint64_t arrival_ns;
    uint64_t answer_ns;
    uint32_t tries;
    enum cw_verbs_status status;
    uint8_t *data; /* inline bytes, or what a read has found; NULL: none */
};

struct sim_memory {
    uint8_t *base; /* NULL: free */
    uint64_t bytes;
    uint32_t rights;
    uint32_t key;
    uint64_t first; /* address of the first byte for peers: drawn, so that runs do not depend on where memory lies */
};

struct sim_device;

struct sim_pair {
    struct cw_verbs_pair base;
    struct sim_device *device;
    struct cw_verbs_address own;
    struct cw_verbs_address peer;
    bool is_connected;
    bool is_failing; /* work has failed, and its answer is on its way: nothing behind it gets there */
    bool is_broken;
    uint32_t heap_position;
    uint64_t last_arrival_ns;
    uint32_t posted, applied, answered; /* numbers: answered <= applied <= posted */
    struct sim_work work[];             /* by number modulo work_max */
};

struct completions {
    struct cw_verbs_completion *list;
    uint32_t first, count, room;
};

struct sim_device {
    struct cw_verbs_device base;
    struct cw_verbs_net *net;
    uint32_t node;
    struct cw_port *port;
    uint64_t free_ns; /* its line */
    struct sim_memory memories[MEMORIES_MAX];
    struct sim_pair *pairs[PAIRS_MAX]; /* by number; 0 is none */
    struct cw_verbs_buffer *buffers;   /* of the shared receive queue, a ring */
    uint32_t buffer_first, buffer_count;
    struct completions queues[2]; /* by enum cw_verbs_queue */
};

struct cw_verbs_net {
    struct cw_simulator *simulator;
    struct cw_verbs_net_config config;
    struct cw_random random;
    struct sim_device **devices; /* by node */
    bool *cuts;
    bool *failures;      /* devices that do nothing any more */
    struct cw_heap heap; /* pairs, by what happens next */
    uint64_t sequence;
    uint64_t script_ns; /* of the earliest call that the simulator was asked for */
    struct cw_verbs_net_counters counters;
};

static uint64_t now_of(const struct cw_verbs_net *net)
{
    return cw_simulator_now(net->simulator);
}

/* ---- completions ---- */

static void complete(struct sim_device *device, enum cw_verbs_queue queue, const struct cw_verbs_completion *completion)
{
    struct completions *list = &device->queues[queue];
    if (device->net->failures[device->node]) {
        return;
    }
    if (list->count == list->room) {
        uint32_t room = list->room == 0 ? 256 : 2 * list->room;
        struct cw_verbs_completion *grown = calloc(room, sizeof(*grown));
        assert(grown != NULL);
        for (uint32_t i = 0; i < list->count; i++) {
            grown[i] = list->list[(list->first + i) % list->room];
        }
        free(list->list);
        *list = (struct completions){.list = grown, .count = list->count, .room = room};
    }
    list->list[(list->first + list->count++) % list->room] = *completion;
    cw_port_wake(device->port);
}

static uint32_t device_poll(struct cw_verbs_device *base, enum cw_verbs_queue queue,
                            struct cw_verbs_completion *completions, uint32_t count_max)
{
    struct completions *list = &((struct sim_device *)base)->queues[queue];
    uint32_t count = list->count < count_max ? list->count : count_max;
    for (uint32_t i = 0; i < count; i++) {
        completions[i] = list->list[list->first];
        list->first = (list->first + 1) % list->room;
    }
    list->count -= count;
    return count;
}

static void device_arm(struct cw_verbs_device *base)
{
    (void)base; /* every completion has the node turned */
}

static bool device_has_failed(struct cw_verbs_device *base)
{
    const struct sim_device *device = (const struct sim_device *)base;
    return device->net->failures[device->node];
}

/* ---- what happens when ---- */

static struct sim_work *work_at(struct sim_pair *pair, uint32_t number)
{
    return &pair->work[number % pair->device->net->config.work_max];
}

static void net_run(void *context);

static void net_schedule(struct cw_verbs_net *net)
{
    if (net->heap.count == 0 || net->heap.entries[0].time_ns >= net->script_ns) {
        return;
    }
    net->script_ns = net->heap.entries[0].time_ns;
    int status = cw_simulator_at(net->simulator, net->script_ns, net_run, net);
    assert(status == CW_OK);
    (void)status;
}

/* Puts a pair where its next event has it. */
static void pair_schedule(struct sim_pair *pair)
{
    struct cw_verbs_net *net = pair->device->net;
    if (pair->heap_position != CW_HEAP_OUT) {
        (void)cw_heap_take(&net->heap, pair->heap_position, true);
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

static void work_forget(struct sim_work *work)
{
    free(work->data);
    work->data = NULL;
}

static void work_complete(struct sim_pair *pair, struct sim_work *work, enum cw_verbs_status status)
{
    if (work->work.signaled || status != CW_VERBS_OK) {
        const struct cw_verbs_completion completion = {.id = work->work.id, .pair = pair->own.number, .status = status};
        complete(pair->device, CW_VERBS_SENT, &completion);
    }
    work_forget(work);
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

/* ---- memory ---- */

static struct sim_memory *memory_find(struct sim_device *device, uint32_t key)
{
    struct sim_memory *memory = &device->memories[key % MEMORIES_MAX];
    return memory->base != NULL && memory->key == key ? memory : NULL;
}

static bool pieces_right(struct sim_device *device, const struct cw_verbs_work *work)
{
    for (uint32_t i = 0; i < work->piece_count && !work->is_inline; i++) {
        const struct cw_verbs_piece *piece = &work->pieces[i];
        const struct sim_memory *memory = memory_find(device, piece->memory->local_key);
        const uint8_t *data = piece->data;
        if (memory == NULL || data < memory->base || data + piece->bytes > memory->base + memory->bytes) {
            return false;
        }
    }
    return true;
}

/* Copies the pieces of a work request to, or from, one place. */
static void pieces_copy(const struct sim_work *work, uint8_t *place, bool to_pieces)
{
    for (uint32_t i = 0; i < work->work.piece_count; i++) {
        const struct cw_verbs_piece *piece = &work->work.pieces[i];
        if (piece->bytes == 0) {
            continue;
        }
        if (to_pieces) {
            memcpy((void *)(uintptr_t)piece->data, place, piece->bytes);
        } else {
            memcpy(place, piece->data, piece->bytes);
        }
        place += piece->bytes;
    }
}

static void pieces_write(const struct sim_work *work, uint8_t *place)
{
    if (work->data != NULL) {
        memcpy(place, work->data, work->bytes);
    } else {
        pieces_copy(work, place, false);
    }
}

/* The memory at a remote address; NULL: nobody is let there. A device looks at nothing if there are no bytes. */
static uint8_t *remote_place(struct sim_device *target, const struct sim_work *work, uint32_t right)
{
    const struct sim_memory *memory = memory_find(target, work->work.remote_key);
    if (memory == NULL || (memory->rights & right) == 0) {
        return NULL;
    }
    uint64_t offset = work->work.remote - memory->first;
    bool is_within =
        work->work.remote >= memory->first && offset <= memory->bytes && work->bytes <= memory->bytes - offset;
    return is_within ? memory->base + offset : NULL;
}

static int device_memory_register(struct cw_verbs_device *base, void *memory, uint64_t bytes, uint32_t rights,
                                  struct cw_verbs_memory *registered)
{
    struct sim_device *device = (struct sim_device *)base;
    for (uint32_t i = 0; i < MEMORIES_MAX; i++) {
        struct sim_memory *place = &device->memories[i];
        if (place->base == NULL) {
            uint32_t key = ((uint32_t)cw_random_next(&device->net->random) & ~(MEMORIES_MAX - 1u)) | i;
            uint64_t first = cw_random_below(&device->net->random, PAGE);
            *place = (struct sim_memory){.base = memory, .bytes = bytes, .rights = rights, .key = key, .first = first};
            *registered =
                (struct cw_verbs_memory){.handle = place, .local_key = key, .remote_key = key, .remote_base = first};
            return CW_OK;
        }
    }
    return CW_ERROR_LIMIT;
}

static void device_memory_unregister(struct cw_verbs_device *base, struct cw_verbs_memory *registered)
{
    (void)base;
    *(struct sim_memory *)registered->handle = (struct sim_memory){0};
}

/* ---- work ---- */

static bool is_cut(const struct cw_verbs_net *net, uint32_t node)
{
    return net->cuts[node] || net->failures[node] || cw_simulator_link_up(net->simulator, node)->down;
}

/* The other end of a pair, if it is there and can be reached. */
static struct sim_pair *peer_of(const struct sim_pair *pair)
{
    const struct cw_verbs_net *net = pair->device->net;
    uint32_t node;
    memcpy(&node, pair->peer.gid + 12, sizeof(node));
    if (node >= cw_simulator_node_count(net->simulator) || is_cut(net, node) || is_cut(net, pair->device->node)) {
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
static bool apply(struct sim_pair *peer, struct sim_work *work)
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
        memcpy(work->data, place != NULL ? place : work->data, work->bytes);
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
        pieces_write(work, place);
    }
    if (takes_buffer) {
        complete(target, CW_VERBS_RECEIVED, &completion);
    }
    return true;
}

/* Work has come to the peer, or to nobody. */
static void arrive(struct sim_pair *pair)
{
    struct cw_verbs_net *net = pair->device->net;
    struct sim_work *work = work_at(pair, pair->applied);
    struct sim_pair *peer = peer_of(pair);
    uint64_t now_ns = now_of(net);
    if (peer == NULL && work->tries++ < net->config.retry_max) {
        work->arrival_ns = now_ns + net->config.retry_ns;
        return;
    }
    bool fails_before = peer == NULL || cw_random_chance(&net->random, net->config.break_before);
    if (fails_before) {
        work->status = CW_VERBS_UNREACHED;
        net->counters.broken += peer != NULL;
    } else if (!apply(peer, work)) {
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
    uint64_t back_bytes = work->work.opcode == CW_VERBS_OP_READ ? work->bytes : 0;
    work->answer_ns = now_ns + net->config.delay_ns + back_bytes * 8 * 1000000000ull / net->config.rate_bps;
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
    struct sim_work *work = work_at(pair, pair->answered++);
    enum cw_verbs_status status = work->status;
    if (status == CW_VERBS_OK && work->work.opcode == CW_VERBS_OP_READ) {
        pieces_copy(work, work->data, true);
    }
    work_complete(pair, work, status);
    if (status != CW_VERBS_OK) {
        pair_fail(pair);
    }
}

static void net_run(void *context)
{
    struct cw_verbs_net *net = context;
    uint64_t now_ns = now_of(net);
    net->script_ns = UINT64_MAX;
    while (net->heap.count > 0 && net->heap.entries[0].time_ns <= now_ns) {
        struct sim_pair *pair = net->heap.entries[0].object;
        if (pair->answered != pair->applied && work_at(pair, pair->answered)->answer_ns <= now_ns) {
            answer(pair);
        } else {
            arrive(pair);
        }
        pair_schedule(pair);
    }
    net_schedule(net);
}

static uint32_t pair_post(struct cw_verbs_pair *base, const struct cw_verbs_work *list, uint32_t count)
{
    struct sim_pair *pair = (struct sim_pair *)base;
    struct cw_verbs_net *net = pair->device->net;
    uint64_t now_ns = now_of(net);
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
            uint8_t *copy = malloc(work->bytes);
            assert(copy != NULL);
            pieces_copy(work, copy, false);
            work->data = copy;
        }
        uint64_t out_bytes = list[taken].opcode == CW_VERBS_OP_READ ? 0 : work->bytes;
        uint64_t start_ns = pair->device->free_ns > now_ns ? pair->device->free_ns : now_ns;
        pair->device->free_ns = start_ns + (out_bytes + 64) * 8 * 1000000000ull / net->config.rate_bps;
        uint64_t arrival_ns =
            pair->device->free_ns + net->config.delay_ns + cw_random_below(&net->random, net->config.jitter_ns + 1);
        work->arrival_ns = arrival_ns > pair->last_arrival_ns ? arrival_ns : pair->last_arrival_ns;
        pair->last_arrival_ns = work->arrival_ns;
        work->arrival_ns = pair->is_failing ? UINT64_MAX : work->arrival_ns;
    }
    pair_schedule(pair);
    net_schedule(net);
    return taken;
}

/* ---- pairs ---- */

static int device_pair_create(struct cw_verbs_device *base, struct cw_verbs_pair **created,
                              struct cw_verbs_address *address)
{
    struct sim_device *device = (struct sim_device *)base;
    struct cw_verbs_net *net = device->net;
    for (uint32_t number = 1; number < PAIRS_MAX; number++) { /* numbers come again soon, as with many devices */
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

static int pair_connect(struct cw_verbs_pair *base, const struct cw_verbs_address *peer)
{
    struct sim_pair *pair = (struct sim_pair *)base;
    pair->peer = *peer;
    pair->is_connected = true;
    return CW_OK;
}

static void pair_break(struct cw_verbs_pair *base)
{
    pair_fail((struct sim_pair *)base);
}

static void pair_destroy(struct cw_verbs_pair *base)
{
    struct sim_pair *pair = (struct sim_pair *)base;
    pair->is_broken = true;
    for (uint32_t i = pair->answered; i != pair->posted; i++) {
        work_forget(work_at(pair, i));
    }
    pair->answered = pair->applied = pair->posted;
    pair_schedule(pair);
    pair->device->pairs[pair->own.number] = NULL;
    free(pair);
}

/* ---- devices ---- */

static uint32_t device_receive_post(struct cw_verbs_device *base, const struct cw_verbs_buffer *buffers, uint32_t count)
{
    struct sim_device *device = (struct sim_device *)base;
    uint32_t room = device->net->config.receive_max;
    uint32_t taken = 0;
    for (; taken < count && device->buffer_count < room; taken++) {
        device->buffers[(device->buffer_first + device->buffer_count++) % room] = buffers[taken];
    }
    return taken;
}

static void device_close(struct cw_verbs_device *base)
{
    struct sim_device *device = (struct sim_device *)base;
    if (device->net->devices[device->node] == device) {
        device->net->devices[device->node] = NULL;
    }
    free(device->queues[0].list);
    free(device->queues[1].list);
    free(device->buffers);
    free(device);
}

static const struct cw_verbs_ops sim_ops = {
    .memory_register = device_memory_register,
    .memory_unregister = device_memory_unregister,
    .pair_create = device_pair_create,
    .pair_connect = pair_connect,
    .pair_break = pair_break,
    .pair_destroy = pair_destroy,
    .post = pair_post,
    .receive_post = device_receive_post,
    .poll = device_poll,
    .arm = device_arm,
    .has_failed = device_has_failed,
    .close = device_close,
};

int cw_verbs_sim_open(struct cw_verbs_net *net, uint32_t node, struct cw_port *port, struct cw_verbs_device **opened)
{
    if (node >= cw_simulator_node_count(net->simulator)) {
        return CW_ERROR_ARGUMENT;
    }
    struct sim_device *device = calloc(1, sizeof(*device));
    struct cw_verbs_buffer *buffers = calloc(net->config.receive_max, sizeof(*buffers));
    if (device == NULL || buffers == NULL) {
        free(device);
        free(buffers);
        return CW_ERROR_MEMORY;
    }
    const struct cw_verbs_net_config *config = &net->config;
    device->base.ops = &sim_ops;
    device->base.info =
        (struct cw_verbs_info){.port = {.gid = {0xfe, 0x80}, .number = 1, .is_up = true, .mtu_bytes = MTU_BYTES},
                               .pair_count_max = PAIRS_MAX - 1,
                               .work_max = config->work_max,
                               .receive_max = config->receive_max,
                               .pieces_max = config->pieces_max,
                               .inline_max = config->inline_max,
                               .message_max = config->message_max,
                               .descriptor = -1};
    snprintf(device->base.info.port.name, sizeof(device->base.info.port.name), "sim%u", node);
    memcpy(device->base.info.port.gid + 12, &node, sizeof(node));
    device->net = net;
    device->node = node;
    device->port = port;
    device->buffers = buffers;
    net->devices[node] = device;
    net->failures[node] = false;
    *opened = &device->base;
    return CW_OK;
}

/* ---- the net ---- */

void cw_verbs_net_config_init(struct cw_verbs_net_config *config)
{
    *config = (struct cw_verbs_net_config){.seed = 1,
                                           .rate_bps = 100000000000ull,
                                           .delay_ns = 1000,
                                           .retry_ns = 4000000,
                                           .retry_max = 7,
                                           .work_max = 128,
                                           .receive_max = 4096,
                                           .pieces_max = CW_VERBS_PIECES_MAX,
                                           .inline_max = 220,
                                           .message_max = 1 << 20};
}

int cw_verbs_net_create(struct cw_simulator *simulator, const struct cw_verbs_net_config *config,
                        struct cw_verbs_net **created)
{
    struct cw_verbs_net *net = calloc(1, sizeof(*net));
    if (net == NULL) {
        return CW_ERROR_MEMORY;
    }
    uint32_t nodes = cw_simulator_node_count(simulator);
    net->simulator = simulator;
    net->config = *config;
    net->script_ns = UINT64_MAX;
    cw_random_seed(&net->random, config->seed);
    net->devices = calloc(nodes, sizeof(struct sim_device *));
    net->cuts = calloc(nodes, sizeof(*net->cuts));
    net->failures = calloc(nodes, sizeof(*net->failures));
    bool has_heap = cw_heap_init(&net->heap, nodes * nodes * 4);
    if (net->devices == NULL || net->cuts == NULL || net->failures == NULL || !has_heap) {
        cw_verbs_net_destroy(net);
        return CW_ERROR_MEMORY;
    }
    *created = net;
    return CW_OK;
}

void cw_verbs_net_destroy(struct cw_verbs_net *net)
{
    if (net == NULL) {
        return;
    }
    cw_heap_dispose(&net->heap);
    free(net->devices);
    free(net->cuts);
    free(net->failures);
    free(net);
}

void cw_verbs_net_cut(struct cw_verbs_net *net, uint32_t node, bool cut)
{
    net->cuts[node] = cut;
}

void cw_verbs_net_fail(struct cw_verbs_net *net, uint32_t node)
{
    net->failures[node] = true;
}

void cw_verbs_net_heal(struct cw_verbs_net *net)
{
    memset(net->cuts, 0, cw_simulator_node_count(net->simulator) * sizeof(*net->cuts));
    net->config.break_before = net->config.break_after = 0;
}

const struct cw_verbs_net_counters *cw_verbs_net_counters(const struct cw_verbs_net *net)
{
    return &net->counters;
}
