#include "dataplane/verbs/verbs_virtual.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/virtual.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

struct virtual_device {
    struct cw_verbs_device base;
    struct cw_verbs_virtual *shared;
    uint64_t probe; /* the simulator reads it, to see whether it can */
};

struct virtual_pair {
    struct cw_verbs_pair base;
    uint32_t number;
};

static struct cw_verbs_virtual *shared_of(struct cw_verbs_device *base)
{
    return ((struct virtual_device *)base)->shared;
}

/* Has the simulator carry a call out whose arguments are written. */
static int call(struct cw_verbs_virtual *shared, enum cw_verbs_call kind)
{
    shared->call = kind;
    shared->status = CW_ERROR_SYSTEM; /* of a simulator that does not know the call */
    cw_virtual_call();
    return shared->status;
}

static int call_number(struct cw_verbs_device *base, enum cw_verbs_call kind, uint32_t number)
{
    struct cw_verbs_virtual *shared = shared_of(base);
    shared->number = number;
    return call(shared, kind);
}

/* ---- memory ---- */

static int virtual_register(struct cw_verbs_device *base, void *memory, uint64_t bytes, uint32_t rights,
                            struct cw_verbs_memory *registered)
{
    struct cw_verbs_virtual *shared = shared_of(base);
    shared->address = (uint64_t)(uintptr_t)memory;
    shared->bytes = bytes;
    shared->rights = rights;
    int status = call(shared, CW_VERBS_CALL_REGISTER);
    if (status == CW_OK) {
        *registered = (struct cw_verbs_memory){
            .handle = base, .local_key = shared->key, .remote_key = shared->key, .remote_base = shared->first};
    }
    return status;
}

static void virtual_unregister(struct cw_verbs_device *base, struct cw_verbs_memory *registered)
{
    shared_of(base)->key = registered->local_key;
    (void)call(shared_of(base), CW_VERBS_CALL_UNREGISTER);
}

static struct cw_verbs_virtual_piece piece_of(const void *data, uint32_t bytes, const struct cw_verbs_memory *memory)
{
    return (struct cw_verbs_virtual_piece){
        .address = (uint64_t)(uintptr_t)data, .bytes = bytes, .key = memory != NULL ? memory->local_key : 0};
}

/* ---- pairs ---- */

static int virtual_pair_create(struct cw_verbs_device *base, struct cw_verbs_pair **created,
                               struct cw_verbs_address *address)
{
    struct virtual_pair *pair = calloc(1, sizeof(*pair));
    int status = pair != NULL ? call(shared_of(base), CW_VERBS_CALL_CREATE) : CW_ERROR_LIMIT;
    if (status != CW_OK) {
        free(pair);
        return status;
    }
    pair->base.device = base;
    pair->number = shared_of(base)->number;
    *address = shared_of(base)->at;
    *created = &pair->base;
    return CW_OK;
}

static int virtual_pair_connect(struct cw_verbs_pair *base, const struct cw_verbs_address *peer)
{
    shared_of(base->device)->at = *peer;
    return call_number(base->device, CW_VERBS_CALL_CONNECT, ((struct virtual_pair *)base)->number);
}

static void virtual_pair_break(struct cw_verbs_pair *base)
{
    (void)call_number(base->device, CW_VERBS_CALL_BREAK, ((struct virtual_pair *)base)->number);
}

static void virtual_pair_destroy(struct cw_verbs_pair *base)
{
    (void)call_number(base->device, CW_VERBS_CALL_DESTROY, ((struct virtual_pair *)base)->number);
    free(base);
}

static void work_write(struct cw_verbs_virtual_work *written, const struct cw_verbs_work *work)
{
    *written = (struct cw_verbs_virtual_work){.opcode = (uint32_t)work->opcode,
                                              .id = work->id,
                                              .piece_count = work->piece_count,
                                              .remote_key = work->remote_key,
                                              .immediate = work->immediate,
                                              .signaled = work->signaled,
                                              .is_inline = work->is_inline,
                                              .remote = work->remote};
    uint32_t copied = 0;
    for (uint32_t i = 0; i < work->piece_count; i++) {
        const struct cw_verbs_piece *piece = &work->pieces[i];
        written->pieces[i] = piece_of(piece->data, piece->bytes, work->is_inline ? NULL : piece->memory);
        if (work->is_inline && piece->bytes > 0) {
            assert(copied + piece->bytes <= CW_VERBS_VIRTUAL_INLINE_MAX);
            memcpy(written->data + copied, piece->data, piece->bytes);
            copied += piece->bytes;
        }
    }
}

static uint32_t virtual_post(struct cw_verbs_pair *base, const struct cw_verbs_work *work, uint32_t count)
{
    struct cw_verbs_virtual *shared = shared_of(base->device);
    assert(count <= CW_VERBS_BURST);
    for (uint32_t i = 0; i < count; i++) {
        work_write(&shared->list.work[i], &work[i]);
    }
    shared->count = count;
    int status = call_number(base->device, CW_VERBS_CALL_POST, ((struct virtual_pair *)base)->number);
    return status == CW_OK ? shared->count : 0;
}

/* ---- buffers and completions ---- */

static uint32_t buffers_post(struct cw_verbs_device *base, enum cw_verbs_call kind,
                             const struct cw_verbs_buffer *buffers, uint32_t count)
{
    struct cw_verbs_virtual *shared = shared_of(base);
    assert(count <= CW_VERBS_BURST);
    for (uint32_t i = 0; i < count; i++) {
        shared->list.buffers[i] = (struct cw_verbs_virtual_buffer){
            .id = buffers[i].id, .piece = piece_of(buffers[i].data, buffers[i].bytes, buffers[i].memory)};
    }
    shared->count = count;
    return call(shared, kind) == CW_OK ? shared->count : 0;
}

static uint32_t virtual_receive_post(struct cw_verbs_device *base, const struct cw_verbs_buffer *buffers,
                                     uint32_t count)
{
    return buffers_post(base, CW_VERBS_CALL_RECEIVE, buffers, count);
}

static uint32_t virtual_poll(struct cw_verbs_device *base, enum cw_verbs_queue queue,
                             struct cw_verbs_completion *completions, uint32_t count_max)
{
    struct cw_verbs_virtual *shared = shared_of(base);
    uint32_t count = 0;
    while (count < count_max && shared->rings[queue].taken != shared->rings[queue].written) {
        completions[count++] = shared->rings[queue].list[shared->rings[queue].taken++ % CW_VERBS_VIRTUAL_RING];
    }
    return count;
}

static void virtual_arm(struct cw_verbs_device *base)
{
    (void)base; /* each completion ends the rank's wait */
}

static bool virtual_has_failed(struct cw_verbs_device *base)
{
    return shared_of(base)->has_failed;
}

/* ---- groups ---- */

static int virtual_group_join(struct cw_verbs_device *base, const uint8_t address[16], uint32_t *group)
{
    memcpy(shared_of(base)->group, address, 16);
    int status = call(shared_of(base), CW_VERBS_CALL_JOIN);
    *group = shared_of(base)->number;
    return status;
}

static void virtual_group_leave(struct cw_verbs_device *base, uint32_t group)
{
    (void)call_number(base, CW_VERBS_CALL_LEAVE, group);
}

static bool virtual_group_is_joined(struct cw_verbs_device *base, uint32_t group)
{
    return call_number(base, CW_VERBS_CALL_IS_JOINED, group) == CW_OK && shared_of(base)->count != 0;
}

static bool virtual_datagram_post(struct cw_verbs_device *base, uint32_t group, const struct cw_verbs_buffer *datagram)
{
    struct cw_verbs_virtual *shared = shared_of(base);
    shared->list.buffers[0] = (struct cw_verbs_virtual_buffer){
        .id = datagram->id, .piece = piece_of(datagram->data, datagram->bytes, datagram->memory)};
    shared->count = 1;
    return call_number(base, CW_VERBS_CALL_DATAGRAM, group) == CW_OK && shared->count != 0;
}

static uint32_t virtual_datagram_receive_post(struct cw_verbs_device *base, const struct cw_verbs_buffer *buffers,
                                              uint32_t count)
{
    return buffers_post(base, CW_VERBS_CALL_DATAGRAM_RECEIVE, buffers, count);
}

static void virtual_close(struct cw_verbs_device *base)
{
    (void)call(shared_of(base), CW_VERBS_CALL_CLOSE);
    free(base);
}

static const struct cw_verbs_ops virtual_ops = {
    .memory_register = virtual_register,
    .memory_unregister = virtual_unregister,
    .pair_create = virtual_pair_create,
    .pair_connect = virtual_pair_connect,
    .pair_break = virtual_pair_break,
    .pair_destroy = virtual_pair_destroy,
    .post = virtual_post,
    .receive_post = virtual_receive_post,
    .poll = virtual_poll,
    .group_join = virtual_group_join,
    .group_leave = virtual_group_leave,
    .group_is_joined = virtual_group_is_joined,
    .datagram_post = virtual_datagram_post,
    .datagram_receive_post = virtual_datagram_receive_post,
    .arm = virtual_arm,
    .has_failed = virtual_has_failed,
    .close = virtual_close,
};

bool cw_verbs_virtual_is_there(void)
{
    return cw_virtual_device() != NULL;
}

int cw_verbs_virtual_open(struct cw_verbs_device **opened, char *error, size_t error_bytes)
{
    struct cw_verbs_virtual *shared = cw_virtual_device();
    struct virtual_device *device = shared != NULL ? calloc(1, sizeof(*device)) : NULL;
    if (device == NULL) {
        return shared == NULL
                   ? cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND, "the simulated host has no RDMA device")
                   : cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for an RDMA device");
    }
    *device =
        (struct virtual_device){.base.ops = &virtual_ops, .shared = shared, .probe = UINT64_C(0x6361757365776179)};
    shared->address = (uint64_t)(uintptr_t)&device->probe;
    shared->bytes = device->probe;
    int status = call(shared, CW_VERBS_CALL_OPEN);
    if (status != CW_OK) {
        free(device);
        return cw_error_text(error, error_bytes, status,
                             status == CW_ERROR_PERMISSION
                                 ? "the kernel forbids the simulator to read this process's memory (process_vm_readv): "
                                   "do without rdma=on, or allow it"
                                 : "the simulated RDMA device cannot be opened");
    }
    device->base.info = shared->info;
    *opened = &device->base;
    return CW_OK;
}
