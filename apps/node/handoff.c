#include "apps/node/handoff.h"

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

struct node_handoff {
    uint32_t count;
    uint32_t frame_bytes;
    uint32_t slot_bytes;
    uint32_t slot_count; /* a power of two */
    struct thread threads[NODE_CORES_MAX];
    struct ring rings[NODE_CORES_MAX][NODE_CORES_MAX]; /* from, to */
};

struct node_handoff *node_handoff_make(uint32_t count, struct cw_port *const *ports, uint32_t frame_bytes)
{
    struct node_handoff *handoff = aligned_alloc(64, sizeof(*handoff));
    if (handoff == NULL) {
        return NULL;
    }
    memset(handoff, 0, sizeof(*handoff));
    handoff->count = count;
    handoff->frame_bytes = frame_bytes;
    handoff->slot_bytes = ((uint32_t)sizeof(struct node_handed) + frame_bytes + 63) / 64 * 64;
    handoff->slot_count = frame_bytes <= 14 + CW_PORT_MTU_ETHERNET_MAX ? NODE_HANDOFF_SLOTS : NODE_HANDOFF_SLOTS / 4;
    for (uint32_t i = 0; i < count * count; i++) {
        struct ring *ring = &handoff->rings[i / count][i % count];
        handoff->threads[i % count].port = ports[i % count];
        if (i / count == i % count) {
            continue; /* to itself */
        }
        ring->slots = aligned_alloc(64, (size_t)handoff->slot_count * handoff->slot_bytes);
        if (ring->slots == NULL) {
            node_handoff_free(handoff);
            return NULL;
        }
    }
    return handoff;
}

void node_handoff_free(struct node_handoff *handoff)
{
    for (uint32_t i = 0; handoff != NULL && i < handoff->count * handoff->count; i++) {
        free(handoff->rings[i / handoff->count][i % handoff->count].slots);
    }
    free(handoff);
}

static struct node_handed *slot(const struct node_handoff *handoff, const struct ring *ring, uint32_t at)
{
    return (struct node_handed *)(void *)(ring->slots + (size_t)(at % handoff->slot_count) * handoff->slot_bytes);
}

bool node_handoff_put(struct node_handoff *handoff, uint32_t from, uint32_t to, enum node_handoff_kind kind,
                      const uint8_t *bytes, uint32_t length)
{
    struct ring *ring = &handoff->rings[from][to];
    struct thread *thread = &handoff->threads[to];
    uint32_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    /* pairs with the release in node_handoff_next: the slot has been read */
    if (length > handoff->frame_bytes ||
        written - atomic_load_explicit(&ring->read, memory_order_acquire) == handoff->slot_count) {
        return false;
    }
    struct node_handed *handed = slot(handoff, ring, written);
    handed->kind = kind;
    handed->length = length;
    memcpy(handed->bytes, bytes, length);
    /* pairs with the acquire in node_handoff_first */
    atomic_store_explicit(&ring->written, written + 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in node_handoff_arm */
    if (atomic_load_explicit(&thread->is_asleep, memory_order_relaxed) != 0) {
        cw_port_wake(thread->port);
    }
    return true;
}

const struct node_handed *node_handoff_first(const struct node_handoff *handoff, uint32_t from, uint32_t to)
{
    const struct ring *ring = &handoff->rings[from][to];
    uint32_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    return atomic_load_explicit(&ring->written, memory_order_acquire) == read ? NULL : slot(handoff, ring, read);
}

void node_handoff_next(struct node_handoff *handoff, uint32_t from, uint32_t to)
{
    struct ring *ring = &handoff->rings[from][to];
    atomic_store_explicit(&ring->read, atomic_load_explicit(&ring->read, memory_order_relaxed) + 1,
                          memory_order_release);
}

bool node_handoff_arm(struct node_handoff *handoff, uint32_t to)
{
    bool any = false;
    atomic_store_explicit(&handoff->threads[to].is_asleep, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in node_handoff_put */
    for (uint32_t from = 0; from < handoff->count; from++) {
        any = any || (from != to && node_handoff_first(handoff, from, to) != NULL);
    }
    return any;
}

void node_handoff_disarm(struct node_handoff *handoff, uint32_t to)
{
    atomic_store_explicit(&handoff->threads[to].is_asleep, 0, memory_order_relaxed);
}

void node_handoff_members_set(struct node_handoff *handoff, uint32_t number, uint32_t count)
{
    atomic_store_explicit(&handoff->threads[number].members, count, memory_order_relaxed);
}

uint32_t node_handoff_members(const struct node_handoff *handoff, uint32_t number)
{
    return atomic_load_explicit(&handoff->threads[number].members, memory_order_relaxed);
}
