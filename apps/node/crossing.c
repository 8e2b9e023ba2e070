#include "apps/node/crossing.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct ring {
    _Alignas(64) _Atomic uint32_t written;
    _Alignas(64) _Atomic uint32_t read;
    uint8_t *slots;
};

struct thread {
    _Alignas(64) _Atomic uint32_t is_asleep;
    _Atomic uint32_t members;
    struct cw_port *port;
};

struct node_crossing {
    uint32_t count;
    uint32_t frame_bytes;
    uint32_t slot_bytes;
    uint32_t slot_count; /* a power of two */
    struct thread threads[NODE_CORES_MAX];
    struct ring rings[NODE_CORES_MAX][NODE_CORES_MAX]; /* from, to */
};

struct node_crossing *node_crossing_make(uint32_t count, struct cw_port *const *ports, uint32_t frame_bytes)
{
    struct node_crossing *crossing = aligned_alloc(64, sizeof(*crossing));
    if (crossing == NULL) {
        return NULL;
    }
    memset(crossing, 0, sizeof(*crossing));
    crossing->count = count;
    crossing->frame_bytes = frame_bytes;
    crossing->slot_bytes = ((uint32_t)sizeof(struct node_crossed) + frame_bytes + 63) / 64 * 64;
    crossing->slot_count = frame_bytes <= 14 + CW_PORT_MTU_ETHERNET_MAX ? NODE_CROSSING_SLOTS : NODE_CROSSING_SLOTS / 4;
    for (uint32_t i = 0; i < count * count; i++) {
        struct ring *ring = &crossing->rings[i / count][i % count];
        crossing->threads[i % count].port = ports[i % count];
        if (i / count == i % count) {
            continue; /* to itself */
        }
        ring->slots = aligned_alloc(64, (size_t)crossing->slot_count * crossing->slot_bytes);
        if (ring->slots == NULL) {
            node_crossing_free(crossing);
            return NULL;
        }
    }
    return crossing;
}

void node_crossing_free(struct node_crossing *crossing)
{
    for (uint32_t i = 0; crossing != NULL && i < crossing->count * crossing->count; i++) {
        free(crossing->rings[i / crossing->count][i % crossing->count].slots);
    }
    free(crossing);
}

static struct node_crossed *slot(const struct node_crossing *crossing, const struct ring *ring, uint32_t at)
{
    return (struct node_crossed *)(void *)(ring->slots + (size_t)(at % crossing->slot_count) * crossing->slot_bytes);
}

bool node_crossing_put(struct node_crossing *crossing, uint32_t from, uint32_t to, enum node_crossing_kind kind,
                       const uint8_t *bytes, uint32_t length)
{
    struct ring *ring = &crossing->rings[from][to];
    struct thread *thread = &crossing->threads[to];
    uint32_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    /* pairs with the release in node_crossing_next: the slot has been read */
    if (length > crossing->frame_bytes ||
        written - atomic_load_explicit(&ring->read, memory_order_acquire) == crossing->slot_count) {
        return false;
    }
    struct node_crossed *crossed = slot(crossing, ring, written);
    crossed->kind = kind;
    crossed->length = length;
    memcpy(crossed->bytes, bytes, length);
    /* pairs with the acquire in node_crossing_first */
    atomic_store_explicit(&ring->written, written + 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in node_crossing_arm */
    if (atomic_load_explicit(&thread->is_asleep, memory_order_relaxed) != 0) {
        cw_port_wake(thread->port);
    }
    return true;
}

const struct node_crossed *node_crossing_first(const struct node_crossing *crossing, uint32_t from, uint32_t to)
{
    const struct ring *ring = &crossing->rings[from][to];
    uint32_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    return atomic_load_explicit(&ring->written, memory_order_acquire) == read ? NULL : slot(crossing, ring, read);
}

void node_crossing_next(struct node_crossing *crossing, uint32_t from, uint32_t to)
{
    struct ring *ring = &crossing->rings[from][to];
    atomic_store_explicit(&ring->read, atomic_load_explicit(&ring->read, memory_order_relaxed) + 1,
                          memory_order_release);
}

bool node_crossing_arm(struct node_crossing *crossing, uint32_t to)
{
    bool any = false;
    atomic_store_explicit(&crossing->threads[to].is_asleep, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in node_crossing_put */
    for (uint32_t from = 0; from < crossing->count; from++) {
        any = any || (from != to && node_crossing_first(crossing, from, to) != NULL);
    }
    return any;
}

void node_crossing_disarm(struct node_crossing *crossing, uint32_t to)
{
    atomic_store_explicit(&crossing->threads[to].is_asleep, 0, memory_order_relaxed);
}

void node_crossing_members_set(struct node_crossing *crossing, uint32_t number, uint32_t count)
{
    atomic_store_explicit(&crossing->threads[number].members, count, memory_order_relaxed);
}

uint32_t node_crossing_members(const struct node_crossing *crossing, uint32_t number)
{
    return atomic_load_explicit(&crossing->threads[number].members, memory_order_relaxed);
}
