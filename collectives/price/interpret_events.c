/* What happens next: a heap of events by time, and one of ops that are to start. */
#include <stdlib.h>

#include "collectives/price/interpret_state.h"
#include "dataplane/status.h"

enum { HEAP_WIDTH = 4 }; /* children of a node: shallower than a binary heap, and they lie in one or two cache lines */

void *interpreter_grow(struct interpreter *interpreter, void *array, uint64_t count, uint64_t *capacity, size_t bytes)
{
    if (interpreter->status != CW_OK) {
        return NULL;
    }
    if (count < *capacity) {
        return array;
    }
    uint64_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = realloc(array, wanted * bytes);
    if (grown == NULL) {
        interpreter->status = CW_ERROR_MEMORY;
        return NULL;
    }
    *capacity = wanted;
    return grown;
}

static bool event_before(const struct event *one, const struct event *other)
{
    return one->time < other->time || (one->time == other->time && one->order < other->order);
}

void interpreter_event_add(struct interpreter *interpreter, double time, enum event_kind kind, uint32_t subject,
                           uint32_t iteration)
{
    struct event *events = interpreter_grow(interpreter, interpreter->events, interpreter->event_count,
                                            &interpreter->event_capacity, sizeof(*events));
    if (events == NULL) {
        return;
    }
    interpreter->events = events;
    struct event added = {time, interpreter->event_order++ << 3 | (uint64_t)kind, subject, iteration};
    uint64_t hole = interpreter->event_count++;
    while (hole > 0 && event_before(&added, &events[(hole - 1) / HEAP_WIDTH])) {
        events[hole] = events[(hole - 1) / HEAP_WIDTH];
        hole = (hole - 1) / HEAP_WIDTH;
    }
    events[hole] = added;
}

bool interpreter_event_pop(struct interpreter *interpreter, struct event *event)
{
    struct event *events = interpreter->events;
    if (interpreter->event_count == 0) {
        return false;
    }
    *event = events[0];
    uint64_t count = --interpreter->event_count;
    struct event last = events[count];
    uint64_t hole = 0;
    for (uint64_t child; (child = hole * HEAP_WIDTH + 1) < count; hole = child) {
        uint64_t past = child + HEAP_WIDTH < count ? child + HEAP_WIDTH : count;
        for (uint64_t other = child + 1; other < past; other++) {
            child = event_before(&events[other], &events[child]) ? other : child;
        }
        if (!event_before(&events[child], &last)) {
            break;
        }
        events[hole] = events[child];
    }
    events[hole] = last;
    return true;
}

void interpreter_ready_add(struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    uint64_t capacity = interpreter->ready_capacity;
    uint64_t *ready =
        interpreter_grow(interpreter, interpreter->ready, interpreter->ready_count, &capacity, sizeof(*ready));
    if (ready == NULL) {
        return;
    }
    interpreter->ready = ready;
    interpreter->ready_capacity = (uint32_t)capacity;
    uint64_t added = (uint64_t)iteration << 32 | op;
    uint32_t hole = interpreter->ready_count++;
    while (hole > 0 && added < ready[(hole - 1) / HEAP_WIDTH]) {
        ready[hole] = ready[(hole - 1) / HEAP_WIDTH];
        hole = (hole - 1) / HEAP_WIDTH;
    }
    ready[hole] = added;
}

bool interpreter_ready_pop(struct interpreter *interpreter, uint32_t *op)
{
    uint64_t *ready = interpreter->ready;
    if (interpreter->ready_count == 0) {
        return false;
    }
    *op = (uint32_t)ready[0];
    uint32_t count = --interpreter->ready_count;
    uint64_t last = ready[count];
    uint32_t hole = 0;
    for (uint32_t child; (child = hole * HEAP_WIDTH + 1) < count; hole = child) {
        uint32_t past = child + HEAP_WIDTH < count ? child + HEAP_WIDTH : count;
        for (uint32_t other = child + 1; other < past; other++) {
            child = ready[other] < ready[child] ? other : child;
        }
        if (ready[child] >= last) {
            break;
        }
        ready[hole] = ready[child];
    }
    ready[hole] = last;
    return true;
}
