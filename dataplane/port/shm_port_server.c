#include "dataplane/port/shm_port_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

/* Sizes are those found when it was opened; later values in the memory are not read. */
struct cw_shm_port {
    struct shm_port_shared *shared;
    size_t bytes;
    const struct shm_port_out *out;
    struct shm_port_in *in;
    const uint32_t *empty;
    const uint8_t *sending;
    uint8_t *receiving;
    uint32_t frames;
    uint32_t buffer_bytes;
    uint32_t frame_bytes_max;
    uint32_t out_consumed, in_written;
    uint32_t out_shown, in_shown; /* of these, to the client */
    bool is_broken;
};

/* The client's description of its memory, checked. */
static int memory_check(int memory, uint32_t mtu_bytes, struct shm_port_shared *head, size_t *bytes, char *error,
                        size_t error_bytes)
{
    enum { FIXED = F_SEAL_SHRINK | F_SEAL_GROW, BLOCK = 512 };
    struct stat status;
    struct statfs system;
    int seals = fcntl(memory, F_GET_SEALS); /* first: only memory has seals, and the query never blocks */
    if (seals < 0 || (seals & FIXED) != FIXED || fstat(memory, &status) != 0 || fstatfs(memory, &system) != 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "the memory is no memfd, or one that may shrink or grow");
    }
    if (system.f_type != TMPFS_MAGIC) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "the memory is of huge pages, which may run out");
    }
    *bytes = status.st_size > 0 ? (size_t)status.st_size : 0;
    if (pread(memory, head, sizeof(*head), 0) != (ssize_t)sizeof(*head) || head->magic != SHM_PORT_MAGIC) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "the memory is no shared-memory port");
    }
    if (head->version != CW_SHM_PORT_VERSION) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_UNSUPPORTED,
            "the shared-memory port is of version %u, and this Causeway's of version %d: use one version on a host",
            head->version, CW_SHM_PORT_VERSION);
    }
    if (head->frames == 0 || head->frames > CW_SHM_PORT_FRAMES_MAX || (head->frames & (head->frames - 1)) != 0 ||
        head->mtu_bytes != mtu_bytes || head->buffer_bytes != shm_port_buffer_bytes(mtu_bytes) ||
        *bytes != shm_port_layout(head->frames, head->buffer_bytes).bytes ||
        (uint64_t)status.st_blocks * BLOCK < *bytes) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "invalid shared-memory port of %u frames, MTU %u and %zu bytes where the MTU is %u, or memory with holes",
            head->frames, head->mtu_bytes, *bytes, mtu_bytes);
    }
    return CW_OK;
}

int cw_shm_port_open(int memory, uint32_t mtu_bytes, struct cw_shm_port **shm_port, char *error, size_t error_bytes)
{
    struct shm_port_shared head;
    size_t bytes = 0;
    int status = memory_check(memory, mtu_bytes, &head, &bytes, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_shm_port *made = calloc(1, sizeof(*made));
    void *mapped = made == NULL ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (mapped == MAP_FAILED) {
        free(made);
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM,
                             "the memory of the shared-memory port cannot be mapped: %s%s", strerror(errno),
                             cw_errno_remedy(errno));
    }
    const struct shm_port_layout layout = shm_port_layout(head.frames, head.buffer_bytes);
    uint8_t *at = mapped;
    made->shared = mapped;
    made->bytes = bytes;
    made->out = (const struct shm_port_out *)(void *)(at + layout.out);
    made->in = (struct shm_port_in *)(void *)(at + layout.in);
    made->empty = (const uint32_t *)(void *)(at + layout.empty);
    made->sending = at + layout.buffers;
    made->receiving = at + layout.buffers + (size_t)head.frames * head.buffer_bytes;
    made->frames = head.frames;
    made->buffer_bytes = head.buffer_bytes;
    made->frame_bytes_max = SHM_PORT_FRAME_HEAD + mtu_bytes;
    made->out_consumed = atomic_load_explicit(&made->shared->out_consumed, memory_order_acquire);
    made->in_written = atomic_load_explicit(&made->shared->in_written, memory_order_acquire);
    made->in_shown = made->in_written;
    made->out_shown = made->out_consumed;
    *shm_port = made;
    return CW_OK;
}

void cw_shm_port_close(struct cw_shm_port *shm_port)
{
    if (shm_port != NULL) {
        munmap(shm_port->shared, shm_port->bytes);
        free(shm_port);
    }
}

/* How far a position of the client's is ahead; one that is further than the ring is long breaks the shared-memory port.
 * */
static uint32_t ahead(struct cw_shm_port *shm_port, const _Atomic uint32_t *theirs, uint32_t ours)
{
    /* pairs with the releases in shm_port_client.c */
    uint32_t count = atomic_load_explicit(theirs, memory_order_acquire) - ours;
    shm_port->is_broken = shm_port->is_broken || count > shm_port->frames;
    return shm_port->is_broken ? 0 : count;
}

uint32_t cw_shm_port_receive(struct cw_shm_port *shm_port, struct cw_shm_port_frame *frames, uint32_t count_max)
{
    uint32_t count = ahead(shm_port, &shm_port->shared->out_written, shm_port->out_consumed);
    count = count < count_max ? count : count_max;
    for (uint32_t i = 0; i < count; i++) {
        const volatile struct shm_port_out *slot =
            &shm_port->out[(shm_port->out_consumed + i) & (shm_port->frames - 1)];
        uint32_t place = slot->place, length = slot->length; /* once: they may change */
        if (place >= shm_port->frames || length == 0 || length > shm_port->frame_bytes_max) {
            shm_port->is_broken = true;
            return i;
        }
        frames[i] = (struct cw_shm_port_frame){.data = shm_port->sending + (size_t)place * shm_port->buffer_bytes,
                                               .length = length,
                                               .checksum = slot->checksum != 0,
                                               .departure_ns = slot->departure_ns};
    }
    return count;
}

void cw_shm_port_consume(struct cw_shm_port *shm_port, uint32_t count)
{
    shm_port->out_consumed += count;
}

bool cw_shm_port_send(struct cw_shm_port *shm_port, const struct cw_received *packet)
{
    if (packet->length > shm_port->frame_bytes_max ||
        ahead(shm_port, &shm_port->shared->empty_written, shm_port->in_written) == 0) {
        return false;
    }
    uint32_t slot = shm_port->in_written & (shm_port->frames - 1);
    uint32_t place = *(const volatile uint32_t *)&shm_port->empty[slot];
    if (place >= shm_port->frames) {
        shm_port->is_broken = true;
        return false;
    }
    memcpy(shm_port->receiving + (size_t)place * shm_port->buffer_bytes, packet->data, packet->length);
    shm_port->in[slot] =
        (struct shm_port_in){.length = packet->length, .checksum = packet->checksum, .arrival_ns = packet->arrival_ns};
    shm_port->in_written++;
    return true;
}

void cw_shm_port_flush(struct cw_shm_port *shm_port)
{
    struct shm_port_shared *shared = shm_port->shared;
    if (shm_port->out_shown != shm_port->out_consumed) {
        shm_port->out_shown = shm_port->out_consumed;
        /* pairs with the acquire in shm_port_reclaim: they have been read */
        atomic_store_explicit(&shared->out_consumed, shm_port->out_consumed, memory_order_release);
    }
    if (shm_port->in_shown == shm_port->in_written) {
        return;
    }
    shm_port->in_shown = shm_port->in_written;
    /* pairs with the acquire in shm_port_receive: frames and lengths */
    atomic_store_explicit(&shared->in_written, shm_port->in_written, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in shm_port_sleep */
    if (atomic_load_explicit(&shared->client_asleep, memory_order_relaxed) != 0 &&
        atomic_exchange_explicit(&shared->client_asleep, 0, memory_order_relaxed) != 0) {
        atomic_fetch_add_explicit(&shared->client_woken, 1, memory_order_release);
        syscall(SYS_futex, &shared->client_woken, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

bool cw_shm_port_arm(struct cw_shm_port *shm_port)
{
    atomic_store_explicit(&shm_port->shared->server_asleep, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in shm_port_transmit */
    return ahead(shm_port, &shm_port->shared->out_written, shm_port->out_consumed) != 0;
}

void cw_shm_port_disarm(struct cw_shm_port *shm_port)
{
    atomic_store_explicit(&shm_port->shared->server_asleep, 0, memory_order_relaxed);
}

bool cw_shm_port_is_broken(const struct cw_shm_port *shm_port)
{
    return shm_port->is_broken;
}

uint32_t cw_shm_port_groups(const struct cw_shm_port *shm_port, uint32_t *version,
                            uint8_t groups[CW_SHM_PORT_GROUPS_MAX][6])
{
    const struct shm_port_shared *shared = shm_port->shared;
    uint32_t before = atomic_load_explicit(&shared->groups_version, memory_order_acquire);
    if (before == *version || before % 2 != 0) {
        return UINT32_MAX;
    }
    uint32_t count = *(const volatile uint32_t *)&shared->group_count;
    count = count < CW_SHM_PORT_GROUPS_MAX ? count : (uint32_t)CW_SHM_PORT_GROUPS_MAX;
    memcpy(groups, shared->groups, count * sizeof(groups[0]));
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence in groups_change */
    if (atomic_load_explicit(&shared->groups_version, memory_order_relaxed) != before) {
        return UINT32_MAX;
    }
    *version = before;
    return count;
}

void cw_shm_port_nic(const struct cw_shm_port *shm_port, struct cw_port_claim *claim, uint32_t *doubts)
{
    *claim = shm_port->shared->claim;
    *doubts = shm_port->shared->doubts;
}

void cw_shm_port_link(struct cw_shm_port *shm_port, uint32_t changes)
{
    atomic_store_explicit(&shm_port->shared->link_changes, changes, memory_order_relaxed);
}
