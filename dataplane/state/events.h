/* Events: the bounded queue from the owner of an endpoint to the application.
 *
 * Invariant: one producer at a time (the owner), one consumer at a time (any thread). Nothing is ever lost: a producer
 * that finds it full keeps its event and tries again next turn. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/dataplane.h"

struct cw_extension;

struct cw_events {
    struct cw_event *ring;
    uint32_t mask;
    _Alignas(64) atomic_uint produced;
    uint32_t consumed_seen; /* the producer's copy, so that it rarely reads the consumer's line */
    _Alignas(64) atomic_uint consumed;
};

/* `count` is a power of two. CW_OK, CW_ERROR_MEMORY. */
int cw_events_init(struct cw_events *events, uint32_t count);
void cw_events_dispose(struct cw_events *events);

/* Room for one more event, to be filled in and then published; NULL: full. Owner only. */
static inline struct cw_event *cw_events_reserve(struct cw_events *events)
{
    uint32_t produced = atomic_load_explicit(&events->produced, memory_order_relaxed);
    if (produced - events->consumed_seen > events->mask) {
        /* pairs with the release in cw_events_pop: the consumer is done with the slot */
        events->consumed_seen = atomic_load_explicit(&events->consumed, memory_order_acquire);
        if (produced - events->consumed_seen > events->mask) {
            return NULL;
        }
    }
    return &events->ring[produced & events->mask];
}

static inline void cw_events_publish(struct cw_events *events)
{
    /* pairs with the acquire in cw_events_pop: the event, and the data it speaks of, are seen before its number */
    atomic_store_explicit(&events->produced, atomic_load_explicit(&events->produced, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* Takes up to `count_max` events; returns how many. `handle` gets those of `extension` at their turn: when all before
 * them have been returned. It may take no events. Consumer only. */
uint32_t cw_events_pop(struct cw_events *events, struct cw_event *out, uint32_t count_max,
                       void (*handle)(struct cw_extension *extension, const struct cw_event *event),
                       struct cw_extension *extension);

/* Events waiting to be taken. Any thread; a snapshot. */
static inline uint32_t cw_events_count(const struct cw_events *events)
{
    return atomic_load_explicit(&events->produced, memory_order_acquire) -
           atomic_load_explicit(&events->consumed, memory_order_relaxed);
}
