/* RDMA devices of simulated hosts: the simulator's end of verbs/verbs_virtual.h. */
#include "apps/simulate/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "control/topology/clusters.h"
#include "dataplane/base/random.h"
#include "dataplane/port/error_text.h"
#include "dataplane/shm/copy.h"
#include "dataplane/status.h"
#include "dataplane/verbs/verbs_virtual.h"

enum { DEVICE_STREAM = 1 << 23 }; /* config.c has others */

struct simulate_device {
    struct cw_verbs_virtual *shared;
    struct cw_verbs_device *device; /* NULL: the rank has not opened it, or has closed it */
    struct cw_verbs_pair **pairs;   /* by number */
    uint32_t pair_count_max;
    bool has_failed;                /* by a fault, perhaps before it was opened */
    uint32_t seen[CW_VERBS_QUEUES]; /* completions that had come when the rank's last wait ended */
};

size_t simulate_device_bytes(void)
{
    return (sizeof(struct cw_verbs_virtual) + CW_VIRTUAL_PAGE_BYTES - 1) / CW_VIRTUAL_PAGE_BYTES *
           CW_VIRTUAL_PAGE_BYTES;
}

/* ---- memory of the ranks ---- */

/* A copy fails if the process has ended, or if it has unmapped memory that it has registered, which is an error of its
 * own. */
static void copy_from(void *context, void *to, const void *there, uint64_t bytes)
{
    const struct simulate_rank *rank = context;
    if (cw_copy_from(rank->process, to, (uint64_t)(uintptr_t)there, bytes) != CW_OK) {
        memset(to, 0, bytes);
    }
}

static void copy_to(void *context, void *there, const void *from, uint64_t bytes)
{
    const struct simulate_rank *rank = context;
    (void)cw_copy_to(rank->process, (uint64_t)(uintptr_t)there, from, bytes);
}

static void *there(uint64_t address)
{
    return (void *)(uintptr_t)address; /* of a rank: it means nothing in this process */
}

/* ---- calls ---- */

static int device_open(struct simulate_rank *rank)
{
    struct simulate_device *own = rank->device;
    struct simulate_world *world = rank->world;
    uint32_t host = cw_clusters_block(rank->rank, world->config->ranks, world->config->hosts);
    const struct cw_verbs_sim_process process = {
        .copy_from = copy_from, .copy_to = copy_to, .context = rank, .line = host};
    if (own->device != NULL) {
        return CW_ERROR_BUSY;
    }
    if (!cw_copy_probe(rank->process, own->shared->address, own->shared->bytes) ||
        !cw_copy_probe_write(rank->process, own->shared->address, own->shared->bytes)) {
        return CW_ERROR_PERMISSION;
    }
    int status = cw_verbs_sim_open(world->verbs, rank->rank, rank->port, &process, &own->device);
    if (status != CW_OK) {
        return status;
    }
    own->pair_count_max = own->device->info.pair_count_max;
    own->pairs = calloc(own->pair_count_max + 1, sizeof(*own->pairs));
    if (own->pairs == NULL) {
        cw_verbs_close(own->device);
        own->device = NULL;
        return CW_ERROR_MEMORY;
    }
    own->shared->info = own->device->info;
    if (own->has_failed) {
        cw_verbs_net_fail(world->verbs, rank->rank);
    }
    return CW_OK;
}

void simulate_device_fail(struct simulate_rank *rank)
{
    rank->device->has_failed = true;
    cw_verbs_net_fail(rank->world->verbs, rank->rank);
    cw_port_wake(rank->port);
}

static void device_close(struct simulate_device *own)
{
    for (uint32_t number = 0; own->pairs != NULL && number <= own->pair_count_max; number++) {
        if (own->pairs[number] != NULL) {
            cw_verbs_pair_destroy(own->pairs[number]);
        }
    }
    free(own->pairs);
    own->pairs = NULL;
    if (own->device != NULL) {
        cw_verbs_close(own->device);
        own->device = NULL;
    }
}

static int memory_register(struct simulate_device *own)
{
    struct cw_verbs_virtual *shared = own->shared;
    struct cw_verbs_memory memory;
    int status = cw_verbs_memory_register(own->device, there(shared->address), shared->bytes, shared->rights, &memory);
    if (status == CW_OK) {
        shared->key = memory.local_key;
        shared->first = memory.remote_base;
    }
    return status;
}

static int memory_unregister(struct simulate_device *own)
{
    struct cw_verbs_memory memory = {.local_key = own->shared->key};
    cw_verbs_memory_unregister(own->device, &memory);
    return CW_OK;
}

static int pair_create(struct simulate_device *own)
{
    struct cw_verbs_pair *pair;
    struct cw_verbs_address at;
    int status = cw_verbs_pair_create(own->device, &pair, &at);
    if (status == CW_OK) {
        own->pairs[at.number] = pair;
        own->shared->number = at.number;
        own->shared->at = at;
    }
    return status;
}

/* Where the keys of a call's pieces are, until the device has read them. */
struct keys {
    struct cw_verbs_memory list[CW_VERBS_BURST][CW_VERBS_PIECES_MAX];
};

static bool work_read(const struct cw_verbs_virtual_work *from, struct cw_verbs_memory *keys,
                      struct cw_verbs_work *work)
{
    uint64_t bytes = 0;
    if (from->piece_count > CW_VERBS_PIECES_MAX || from->opcode > CW_VERBS_OP_READ) {
        return false;
    }
    *work = (struct cw_verbs_work){.opcode = (enum cw_verbs_opcode)from->opcode,
                                   .id = from->id,
                                   .signaled = from->signaled,
                                   .is_inline = from->is_inline,
                                   .piece_count = from->piece_count,
                                   .remote = from->remote,
                                   .remote_key = from->remote_key,
                                   .immediate = from->immediate};
    for (uint32_t i = 0; i < from->piece_count; i++) {
        const struct cw_verbs_virtual_piece *piece = &from->pieces[i];
        bool fits = !from->is_inline || bytes + piece->bytes <= sizeof(from->data);
        keys[i] = (struct cw_verbs_memory){.local_key = piece->key};
        work->pieces[i] =
            (struct cw_verbs_piece){.data = from->is_inline && fits ? from->data + bytes : there(piece->address),
                                    .bytes = piece->bytes,
                                    .memory = &keys[i]};
        bytes += piece->bytes;
        if (!fits) {
            return false;
        }
    }
    return true;
}

static int post(struct simulate_device *own, struct cw_verbs_pair *pair)
{
    struct cw_verbs_virtual *shared = own->shared;
    struct cw_verbs_work work[CW_VERBS_BURST];
    struct keys keys = {0};
    if (shared->count > CW_VERBS_BURST) {
        return CW_ERROR_ARGUMENT;
    }
    for (uint32_t i = 0; i < shared->count; i++) {
        if (!work_read(&shared->list.work[i], keys.list[i], &work[i])) {
            return CW_ERROR_ARGUMENT;
        }
    }
    shared->count = cw_verbs_post(pair, work, shared->count);
    return CW_OK;
}

static int pair_call(struct simulate_device *own, enum cw_verbs_call call)
{
    uint32_t number = own->shared->number;
    struct cw_verbs_pair *pair = number <= own->pair_count_max ? own->pairs[number] : NULL;
    if (pair == NULL) {
        return CW_ERROR_ARGUMENT;
    }
    switch (call) {
    case CW_VERBS_CALL_CONNECT:
        return cw_verbs_pair_connect(pair, &own->shared->at);
    case CW_VERBS_CALL_POST:
        return post(own, pair);
    case CW_VERBS_CALL_DESTROY:
        own->pairs[number] = NULL;
        cw_verbs_pair_destroy(pair);
        return CW_OK;
    default:
        cw_verbs_pair_break(pair);
        return CW_OK;
    }
}

static int buffers_post(struct simulate_device *own, enum cw_verbs_call call)
{
    struct cw_verbs_virtual *shared = own->shared;
    struct cw_verbs_buffer buffers[CW_VERBS_BURST];
    struct cw_verbs_memory keys[CW_VERBS_BURST];
    if (shared->count > CW_VERBS_BURST) {
        return CW_ERROR_ARGUMENT;
    }
    for (uint32_t i = 0; i < shared->count; i++) {
        const struct cw_verbs_virtual_buffer *from = &shared->list.buffers[i];
        keys[i] = (struct cw_verbs_memory){.local_key = from->piece.key};
        buffers[i] = (struct cw_verbs_buffer){
            .id = from->id, .data = there(from->piece.address), .bytes = from->piece.bytes, .memory = &keys[i]};
    }
    shared->count = call == CW_VERBS_CALL_RECEIVE ? cw_verbs_receive_post(own->device, buffers, shared->count)
                    : call == CW_VERBS_CALL_DATAGRAM
                        ? cw_verbs_datagram_post(own->device, shared->number, buffers)
                        : cw_verbs_datagram_receive_post(own->device, buffers, shared->count);
    return CW_OK;
}

static int group_call(struct simulate_device *own, enum cw_verbs_call call)
{
    struct cw_verbs_virtual *shared = own->shared;
    if (call == CW_VERBS_CALL_JOIN) {
        return cw_verbs_group_join(own->device, shared->group, &shared->number);
    }
    if (shared->number >= CW_VERBS_GROUPS_MAX) {
        return CW_ERROR_ARGUMENT;
    }
    if (call == CW_VERBS_CALL_LEAVE) {
        cw_verbs_group_leave(own->device, shared->number);
    } else if (call == CW_VERBS_CALL_IS_JOINED) {
        shared->count = cw_verbs_group_is_joined(own->device, shared->number);
    } else {
        return buffers_post(own, call);
    }
    return CW_OK;
}

static int call_run(struct simulate_rank *rank, enum cw_verbs_call call)
{
    struct simulate_device *own = rank->device;
    if (call == CW_VERBS_CALL_OPEN) {
        return device_open(rank);
    }
    if (own->device == NULL) {
        return CW_ERROR_ARGUMENT;
    }
    switch (call) {
    case CW_VERBS_CALL_REGISTER:
        return memory_register(own);
    case CW_VERBS_CALL_UNREGISTER:
        return memory_unregister(own);
    case CW_VERBS_CALL_CREATE:
        return pair_create(own);
    case CW_VERBS_CALL_CONNECT:
    case CW_VERBS_CALL_BREAK:
    case CW_VERBS_CALL_DESTROY:
    case CW_VERBS_CALL_POST:
        return pair_call(own, call);
    case CW_VERBS_CALL_RECEIVE:
    case CW_VERBS_CALL_DATAGRAM_RECEIVE:
        return buffers_post(own, call);
    case CW_VERBS_CALL_JOIN:
    case CW_VERBS_CALL_IS_JOINED:
    case CW_VERBS_CALL_LEAVE:
    case CW_VERBS_CALL_DATAGRAM:
        return group_call(own, call);
    case CW_VERBS_CALL_CLOSE:
        device_close(own);
        return CW_OK;
    default:
        return CW_ERROR_ARGUMENT;
    }
}

void simulate_device_serve(struct simulate_rank *rank)
{
    if (rank->device == NULL || rank->device->shared->call == CW_VERBS_CALL_NONE) {
        return;
    }
    struct cw_verbs_virtual *shared = rank->device->shared;
    enum cw_verbs_call call = (enum cw_verbs_call)shared->call;
    shared->call = CW_VERBS_CALL_NONE;
    shared->status = call_run(rank, call);
}

/* ---- completions ---- */

bool simulate_device_complete(struct simulate_rank *rank)
{
    struct simulate_device *own = rank->device;
    bool is_new = false;
    for (int queue = 0; own != NULL && queue < CW_VERBS_QUEUES; queue++) {
        uint32_t waiting = own->shared->rings[queue].written - own->shared->rings[queue].taken;
        while (own->device != NULL && waiting < CW_VERBS_VIRTUAL_RING) {
            struct cw_verbs_completion *place =
                &own->shared->rings[queue].list[own->shared->rings[queue].written % CW_VERBS_VIRTUAL_RING];
            if (cw_verbs_poll(own->device, (enum cw_verbs_queue)queue, place, 1) == 0) {
                break;
            }
            own->shared->rings[queue].written++;
            waiting++;
        }
        is_new = is_new || own->shared->rings[queue].written != own->seen[queue];
    }
    if (own != NULL && own->device != NULL) {
        is_new = is_new || own->shared->has_failed != cw_verbs_has_failed(own->device);
        own->shared->has_failed = cw_verbs_has_failed(own->device);
    }
    return is_new;
}

void simulate_device_seen(struct simulate_rank *rank)
{
    for (int queue = 0; rank->device != NULL && queue < CW_VERBS_QUEUES; queue++) {
        rank->device->seen[queue] = rank->device->shared->rings[queue].written;
    }
}

void simulate_device_end(struct simulate_rank *rank)
{
    if (rank->device != NULL) {
        cw_verbs_net_fail(rank->world->verbs, rank->rank);
        device_close(rank->device);
    }
}

/* ---- all of them ---- */

int simulate_devices_create(struct simulate_world *world, uint8_t *memory, char *error, size_t error_bytes)
{
    const struct simulate_config *config = world->config;
    struct cw_verbs_net_config net;
    cw_verbs_net_config_init(&net);
    net.seed = cw_random_derive(config->seed, DEVICE_STREAM);
    net.rate_bps = config->link.rate_bps;
    net.delay_ns = config->link.delay_ns;
    net.inline_max = CW_VERBS_VIRTUAL_INLINE_MAX;
    net.break_before = net.break_after = config->rdma_break / 2;
    net.datagram_loss = config->link.loss;
    int status = cw_verbs_net_create(world->simulator, &net, &world->verbs);
    for (uint32_t i = 0; i < config->ranks && status == CW_OK; i++) {
        struct simulate_rank *rank = &world->ranks[i];
        rank->device = calloc(1, sizeof(*rank->device));
        status = rank->device != NULL ? CW_OK : CW_ERROR_MEMORY;
        if (status == CW_OK) {
            rank->device->shared = (void *)(memory + i * simulate_device_bytes());
            rank->page->device_bytes = simulate_device_bytes();
            rank->page->device_offset = (uint64_t)(memory - world->pages) + i * simulate_device_bytes();
        }
    }
    return status == CW_OK ? CW_OK
                           : cw_error_text(error, error_bytes, status, "no memory for %u RDMA devices", config->ranks);
}

void simulate_devices_destroy(struct simulate_world *world)
{
    for (uint32_t i = 0; i < world->config->ranks; i++) {
        if (world->ranks[i].device != NULL) {
            device_close(world->ranks[i].device);
            free(world->ranks[i].device);
        }
    }
    cw_verbs_net_destroy(world->verbs);
}
