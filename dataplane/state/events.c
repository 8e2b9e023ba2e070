#include "dataplane/state/events.h"

#include <stdlib.h>

int cw_events_init(struct cw_events *events, uint32_t count)
{
    events->ring = calloc(count, sizeof(*events->ring));
    if (events->ring == NULL) {
        return CW_ERROR_MEMORY;
    }
    events->mask = count - 1;
    events->consumed_seen = 0;
    atomic_init(&events->produced, 0);
    atomic_init(&events->consumed, 0);
    return CW_OK;
}

void cw_events_dispose(struct cw_events *events)
{
    free(events->ring);
    events->ring = NULL;
}

uint32_t cw_events_pop(struct cw_events *events, struct cw_event *out, uint32_t count_max,
                       void (*handle)(struct cw_extension *extension, const struct cw_event *event),
                       struct cw_extension *extension)
{
    uint32_t consumed = atomic_load_explicit(&events->consumed, memory_order_relaxed);
    /* pairs with the release in cw_events_publish */
    uint32_t waiting = atomic_load_explicit(&events->produced, memory_order_acquire) - consumed;
    uint32_t most = waiting < count_max ? waiting : count_max, count = 0, handled = 0;
    for (; count < most; count++) {
        const struct cw_event *event = &events->ring[(consumed + count) & events->mask];
        if (event->kind == CW_EVENT_EXTENSION) {
            if (count > handled) {
                break; /* the application gets the events before it first */
            }
            handle(extension, event);
            handled++;
        }
        out[count] = *event;
    }
    if (count > 0) {
        /* pairs with the acquire in cw_events_reserve: the slots are free again */
        atomic_store_explicit(&events->consumed, consumed + count, memory_order_release);
    }
    return count;
}
