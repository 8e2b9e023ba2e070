#include "dataplane/port/shm_port_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/base/virtual.h"
#include "dataplane/limits.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

struct shm_port_port {
    struct cw_port port;
    struct shm_port_shared *shared;
    size_t bytes;
    struct shm_port_out *out;
    const struct shm_port_in *in;
    uint32_t *empty;
    uint8_t *sending; /* the buffers to send from */
    uint8_t *receiving;
    uint32_t mask;
    uint32_t buffer_bytes;
    uint32_t out_written;
    uint32_t out_taken; /* back from the server */
    uint32_t in_taken;
    uint32_t empty_written;
    uint32_t *free; /* places of buffers to send from */
    uint32_t free_count;
    uint32_t *sent;   /* place in each slot of `out`, which the client does not read again */
    uint32_t *filled; /* ... of `empty` */
    int memory;
    int bell; /* once there was a server, permanently: another one's takes its number */
    _Atomic uint32_t is_connected;
    _Atomic uint32_t is_woken;
    uint32_t group_joins[CW_SHM_PORT_GROUPS_MAX];
    uint32_t offloads; /* of the server's NIC that are not put away, a bit each */
};

static struct shm_port_port *shm_port_of(struct cw_port *port)
{
    return (struct shm_port_port *)port;
}

/* ---- in ---- */

static uint32_t shm_port_receive(struct cw_port *base, struct cw_received *packets, uint32_t count_max)
{
    struct shm_port_port *port = shm_port_of(base);
    /* pairs with the release in cw_shm_port_flush: frames and lengths */
    uint32_t count = atomic_load_explicit(&port->shared->in_written, memory_order_acquire) - port->in_taken;
    count = count < count_max ? count : count_max;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = port->in_taken++ & port->mask;
        uint8_t *data = port->receiving + (size_t)port->filled[slot] * port->buffer_bytes;
        packets[i] = (struct cw_received){.data = data,
                                          .length = port->in[slot].length,
                                          .checksum = (uint8_t)port->in[slot].checksum,
                                          .handle = data,
                                          .arrival_ns = port->in[slot].arrival_ns};
    }
    base->info.link_changes = atomic_load_explicit(&port->shared->link_changes, memory_order_relaxed);
    return count;
}

static void shm_port_release(struct cw_port *base, struct cw_received *packets, uint32_t count)
{
    struct shm_port_port *port = shm_port_of(base);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = port->empty_written++ & port->mask;
        port->filled[slot] = (uint32_t)((size_t)((uint8_t *)packets[i].handle - port->receiving) / port->buffer_bytes);
        port->empty[slot] = port->filled[slot];
    }
    /* pairs with the acquire in cw_shm_port_send: the places, and that those buffers are not read any more */
    atomic_store_explicit(&port->shared->empty_written, port->empty_written, memory_order_release);
}

/* ---- out ---- */

static void shm_port_reclaim(struct shm_port_port *port)
{
    /* pairs with the release in cw_shm_port_flush: the server has read what was there */
    uint32_t consumed = atomic_load_explicit(&port->shared->out_consumed, memory_order_acquire);
    while (port->out_taken != consumed) {
        port->free[port->free_count++] = port->sent[port->out_taken++ & port->mask];
    }
}

static uint32_t shm_port_reserve(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct shm_port_port *port = shm_port_of(base);
    if (port->free_count < count) {
        shm_port_reclaim(port);
        count = count < port->free_count ? count : port->free_count;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *data = port->sending + (size_t)port->free[--port->free_count] * port->buffer_bytes;
        packets[i].data = data;
        packets[i].handle = data;
        packets[i].length = 0;
        packets[i].piece_count = 0;
        packets[i].checksum = false;
        packets[i].departure_ns = 0;
        packets[i].alone = false;
    }
    return count;
}

static uint32_t place_of(const struct shm_port_port *port, const struct cw_transmit *packet)
{
    return (uint32_t)((size_t)((uint8_t *)packet->handle - port->sending) / port->buffer_bytes);
}

/* There are as many buffers as slots: all that are reserved find one. */
static uint32_t shm_port_transmit(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct shm_port_port *port = shm_port_of(base);
    struct shm_port_shared *shared = port->shared;
    if (cw_virtual_is_on()) {
        cw_virtual_send();
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = port->out_written++ & port->mask;
        port->sent[slot] = place_of(port, &packets[i]);
        port->out[slot] = (struct shm_port_out){.place = port->sent[slot],
                                                .length = packets[i].length,
                                                .departure_ns = packets[i].departure_ns,
                                                .checksum = packets[i].checksum};
    }
    /* pairs with the acquire in cw_shm_port_receive: the frames and their slots */
    atomic_store_explicit(&shared->out_written, port->out_written, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in cw_shm_port_arm */
    if (atomic_load_explicit(&shared->server_asleep, memory_order_relaxed) != 0 &&
        atomic_exchange_explicit(&shared->server_asleep, 0, memory_order_relaxed) != 0) {
        const uint64_t one = 1;
        ssize_t written = write(port->bell, &one, sizeof(one));
        (void)written; /* it has been rung already, or no server is there */
    }
    return count;
}

static void shm_port_cancel(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct shm_port_port *port = shm_port_of(base);
    for (uint32_t i = 0; i < count; i++) {
        port->free[port->free_count++] = place_of(port, &packets[i]);
    }
}

/* ---- groups ---- */

static uint32_t group_find(const struct shm_port_port *port, const uint8_t mac[6])
{
    uint32_t at = 0;
    while (at < port->shared->group_count && memcmp(port->shared->groups[at], mac, 6) != 0) {
        at++;
    }
    return at;
}

static void groups_change(struct shm_port_port *port, uint32_t at, const uint8_t mac[6], uint32_t count)
{
    struct shm_port_shared *shared = port->shared;
    uint32_t version = atomic_load_explicit(&shared->groups_version, memory_order_relaxed);
    atomic_store_explicit(&shared->groups_version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* pairs with the fence in cw_shm_port_groups */
    memcpy(shared->groups[at], mac, 6);
    shared->group_count = count;
    atomic_store_explicit(&shared->groups_version, version + 2, memory_order_release);
    struct cw_transmit none;
    (void)shm_port_transmit(&port->port, &none, 0); /* wakes the server */
}

static int shm_port_join(struct cw_port *base, const uint8_t mac[6])
{
    struct shm_port_port *port = shm_port_of(base);
    uint32_t at = group_find(port, mac), count = port->shared->group_count;
    if (at == CW_SHM_PORT_GROUPS_MAX) {
        return CW_ERROR_LIMIT;
    }
    if (at < count) {
        port->group_joins[at]++;
        return CW_OK;
    }
    port->group_joins[at] = 1;
    groups_change(port, at, mac, count + 1);
    return CW_OK;
}

static int shm_port_leave(struct cw_port *base, const uint8_t mac[6])
{
    struct shm_port_port *port = shm_port_of(base);
    uint32_t at = group_find(port, mac), last = port->shared->group_count - 1;
    if (at > last || port->shared->group_count == 0) {
        return CW_ERROR_NOT_FOUND;
    }
    if (--port->group_joins[at] == 0) {
        port->group_joins[at] = port->group_joins[last];
        groups_change(port, at, port->shared->groups[last], last);
    }
    return CW_OK;
}

/* ---- offloads ---- */

static void shm_port_claim(struct cw_port *base, const struct cw_port_claim *claim)
{
    shm_port_of(base)->shared->claim = *claim;
}

static void info_fill(struct cw_port_info *info, uint32_t offloads)
{
    info->checksum_out = (offloads >> CW_OFFLOAD_CHECKSUM_OUT & 1) != 0;
    info->checksum_in = (offloads >> CW_OFFLOAD_CHECKSUM_IN & 1) != 0;
    info->steers = (offloads >> CW_OFFLOAD_STEER & 1) != 0;
    info->arrivals = (offloads >> CW_OFFLOAD_ARRIVAL & 1) != 0;
    info->departure_ahead_ns = (offloads >> CW_OFFLOAD_DEPARTURE & 1) != 0 ? CW_DEPARTURE_AHEAD_NS : 0;
}

static void shm_port_doubt(struct cw_port *base, enum cw_port_offload offload)
{
    struct shm_port_port *port = shm_port_of(base);
    port->shared->doubts |= 1u << offload;
    port->offloads &= ~(1u << offload);
    info_fill(&base->info, port->offloads);
}

void cw_shm_port_offloads(struct cw_port *port, uint32_t offloads)
{
    shm_port_of(port)->offloads = offloads;
    info_fill(&port->info, offloads);
}

/* ---- the rest ---- */

static int shm_port_memory_register(struct cw_port *port, void *base, size_t bytes, struct cw_port_memory **memory)
{
    (void)port, (void)base, (void)bytes, (void)memory;
    return CW_ERROR_UNSUPPORTED;
}

static int shm_port_memory_unregister(struct cw_port *port, struct cw_port_memory *memory)
{
    (void)port, (void)memory;
    return CW_OK;
}

static bool shm_port_link_up(struct cw_port *base)
{
    return atomic_load_explicit(&shm_port_of(base)->is_connected, memory_order_acquire) != 0;
}

static void client_wake(struct shm_port_shared *shared)
{
    atomic_fetch_add_explicit(&shared->client_woken, 1, memory_order_release);
    syscall(SYS_futex, &shared->client_woken, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void shm_port_sleep(struct cw_port *base, uint64_t timeout_ns)
{
    static const struct cw_word none;
    struct shm_port_port *port = shm_port_of(base);
    struct shm_port_shared *shared = port->shared;
    const struct cw_word word = {.at = &shared->client_woken,
                                 .value = atomic_load_explicit(&shared->client_woken, memory_order_acquire)};
    atomic_store_explicit(&shared->client_asleep, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in cw_shm_port_flush */
    if (atomic_exchange_explicit(&port->is_woken, 0, memory_order_acquire) == 0 &&
        atomic_load_explicit(&shared->in_written, memory_order_acquire) == port->in_taken) {
        cw_words_wait(&word, base->alarm == NULL ? &none : &base->alarm->word, timeout_ns);
        atomic_store_explicit(&port->is_woken, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&shared->client_asleep, 0, memory_order_relaxed);
}

static void shm_port_wake(struct cw_port *base)
{
    struct shm_port_port *port = shm_port_of(base);
    atomic_store_explicit(&port->is_woken, 1, memory_order_release);
    client_wake(port->shared);
}

static void shm_port_close(struct cw_port *base)
{
    struct shm_port_port *port = shm_port_of(base);
    if (port->shared != NULL) {
        munmap(port->shared, port->bytes);
    }
    if (port->memory >= 0) {
        close(port->memory);
    }
    if (port->bell >= 0) {
        close(port->bell);
    }
    free(port->free);
    free(port->sent);
    free(port->filled);
    free(port);
}

static const struct cw_port_ops shm_port_ops = {
    .receive = shm_port_receive,
    .release = shm_port_release,
    .reserve = shm_port_reserve,
    .transmit = shm_port_transmit,
    .cancel = shm_port_cancel,
    .join = shm_port_join,
    .leave = shm_port_leave,
    .memory_register = shm_port_memory_register,
    .memory_unregister = shm_port_memory_unregister,
    .link_up = shm_port_link_up,
    .sleep = shm_port_sleep,
    .wake = shm_port_wake,
    .close = shm_port_close,
    .claim = shm_port_claim,
    .doubt = shm_port_doubt,
};

/* 0, or an errno. Pages are there from the start: one that the machine has no memory for would end the server, too. */
static int memory_make(struct shm_port_port *port, size_t bytes)
{
    port->memory = memfd_create("causeway-port", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int failed = port->memory < 0 ? errno : posix_fallocate(port->memory, 0, (off_t)bytes);
    if (failed != 0) {
        return failed;
    }
    if (fcntl(port->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return errno;
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, port->memory, 0);
    if (memory == MAP_FAILED) {
        return errno;
    }
    port->shared = memory;
    port->bytes = bytes;
    return 0;
}

static void memory_lay_out(struct shm_port_port *port, const struct cw_shm_port_config *config, uint32_t frames)
{
    const struct shm_port_layout layout = shm_port_layout(frames, port->buffer_bytes);
    uint8_t *memory = (uint8_t *)port->shared;
    port->mask = frames - 1;
    port->out = (struct shm_port_out *)(void *)(memory + layout.out);
    port->in = (const struct shm_port_in *)(void *)(memory + layout.in);
    port->empty = (uint32_t *)(void *)(memory + layout.empty);
    port->sending = memory + layout.buffers;
    port->receiving = port->sending + (size_t)frames * port->buffer_bytes;
    for (uint32_t i = 0; i < frames; i++) {
        port->free[port->free_count++] = frames - 1 - i;
        port->filled[i] = port->empty[i] = i;
    }
    port->empty_written = frames;
    atomic_init(&port->shared->empty_written, frames);
    port->shared->version = CW_SHM_PORT_VERSION;
    port->shared->frames = frames;
    port->shared->buffer_bytes = port->buffer_bytes;
    port->shared->mtu_bytes = config->mtu_bytes;
    port->shared->magic = SHM_PORT_MAGIC;
}

enum {
    RING_BYTES = 4 << 20, /* of frames, in each direction */
    FRAMES_FEW = 64,
};

/* Fewer long ones: the rings' contents should fit a cache. */
static uint32_t frames_for(uint32_t mtu_bytes)
{
    uint32_t frames = CW_SHM_PORT_FRAMES_DEFAULT;
    while (frames > FRAMES_FEW && frames * mtu_bytes > RING_BYTES) {
        frames /= 2;
    }
    return frames;
}

int cw_shm_port_create(const struct cw_shm_port_config *config, struct cw_port **port, char *error, size_t error_bytes)
{
    uint32_t frames = config->frames != 0 ? config->frames : frames_for(config->mtu_bytes);
    if (frames > CW_SHM_PORT_FRAMES_MAX || (frames & (frames - 1)) != 0 || config->mtu_bytes < CW_PORT_MTU_MIN ||
        config->mtu_bytes > CW_PORT_MTU_MAX) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "a shared-memory port of %u frames with an MTU of %u", frames, config->mtu_bytes);
    }
    struct shm_port_port *made =
        aligned_alloc(SHM_PORT_LINE, (sizeof(*made) + SHM_PORT_LINE - 1) / SHM_PORT_LINE * SHM_PORT_LINE);
    if (made == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for a port");
    }
    *made = (struct shm_port_port){.port = {.ops = &shm_port_ops,
                                            .info = {.mtu_bytes = config->mtu_bytes,
                                                     .rate_bps = config->rate_bps,
                                                     .wait = CW_PORT_WAIT_DOORBELL,
                                                     .alarms = true,
                                                     .reports = config->reports,
                                                     .medium = config->medium}},
                                   .buffer_bytes = shm_port_buffer_bytes(config->mtu_bytes),
                                   .memory = -1,
                                   .bell = -1,
                                   .free = calloc(frames, sizeof(uint32_t)),
                                   .sent = calloc(frames, sizeof(uint32_t)),
                                   .filled = calloc(frames, sizeof(uint32_t))};
    memcpy(made->port.info.mac, config->mac, sizeof(made->port.info.mac));
    snprintf(made->port.info.driver, sizeof(made->port.info.driver), "%s",
             config->driver != NULL ? config->driver : "node");
    int failed = made->free == NULL || made->sent == NULL || made->filled == NULL
                     ? ENOMEM
                     : memory_make(made, shm_port_layout(frames, made->buffer_bytes).bytes);
    if (failed != 0) {
        shm_port_close(&made->port);
        return cw_error_text(error, error_bytes, cw_status_of_errno(failed), "memory of a port: %s%s", strerror(failed),
                             cw_errno_remedy(failed));
    }
    memory_lay_out(made, config, frames);
    *port = &made->port;
    return CW_OK;
}

int cw_shm_port_memory(const struct cw_port *port)
{
    return ((const struct shm_port_port *)port)->memory;
}

void cw_shm_port_connect(struct cw_port *base, int bell)
{
    struct shm_port_port *port = shm_port_of(base);
    if (port->bell < 0) {
        port->bell = bell;
    } else { /* another thread may be ringing */
        (void)dup3(bell, port->bell, O_CLOEXEC);
        close(bell);
    }
    atomic_store_explicit(&port->is_connected, 1, memory_order_release);
}

void cw_shm_port_disconnect(struct cw_port *base)
{
    atomic_store_explicit(&shm_port_of(base)->is_connected, 0, memory_order_release);
}
