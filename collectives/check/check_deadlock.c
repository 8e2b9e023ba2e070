/* check: finds a cycle among the events that could not be ordered, and tells it. */
#include "collectives/check/state.h"

#include <stdio.h>
#include <string.h>

enum { CYCLE_OPS_TOLD = 4, UNSEEN = 0, OPEN = 1, DONE = 2 };

struct walk {
    uint32_t *path; /* events, each of which waits for the next one */
    uint32_t *next; /* by depth: which edge to follow next */
    uint8_t *state; /* by event */
};

/* The `edge`-th thing that `event` waits for: 0 is the implicit one. CHECK_NONE: no more. */
static uint32_t predecessor(const struct check *check, uint32_t event, uint32_t edge)
{
    if (check_is_end(event)) {
        if (edge == 0) {
            return event - 1;
        }
        edge--;
    }
    uint32_t index = check->edge_first[event] + edge;
    return index < check->edge_first[event + 1] ? check->edges.items[index] & ~CHECK_WEAK : CHECK_NONE;
}

/* Looks for a cycle from `event` on; returns its length and where in the path it begins, 0 if there is none. */
static uint32_t walk_from(const struct check *check, const uint32_t *successors, struct walk *walk, uint32_t event,
                          uint32_t *begin)
{
    uint32_t depth = 0;
    walk->path[0] = event;
    walk->next[0] = 0;
    walk->state[event] = OPEN;
    for (;;) {
        uint32_t earlier = predecessor(check, walk->path[depth], walk->next[depth]++);
        if (earlier == CHECK_NONE) {
            walk->state[walk->path[depth]] = DONE;
            if (depth == 0) {
                return 0;
            }
            depth--;
        } else if (walk->state[earlier] == OPEN) {
            *begin = depth;
            while (walk->path[*begin] != earlier) {
                (*begin)--;
            }
            return depth + 1 - *begin;
        } else if (walk->state[earlier] == UNSEEN && successors[earlier] > 0) {
            depth++;
            walk->path[depth] = earlier;
            walk->next[depth] = 0;
            walk->state[earlier] = OPEN;
        }
    }
}

/* Reports the cycle from its lowest op on; a barrier's own instance, which is no op, comes last of all. */
static int cycle_report(struct check *check, const uint32_t *cycle, uint32_t length)
{
    uint32_t lowest = 0;
    for (uint32_t i = 1; i < length; i++) {
        lowest = cycle[i] / 2 < cycle[lowest] / 2 ? i : lowest;
    }
    char text[CYCLE_OPS_TOLD * 128] = "";
    size_t used = 0;
    uint32_t told = 0;
    uint32_t last = cycle[lowest] / 2;
    for (uint32_t i = 1; i <= length && told < CYCLE_OPS_TOLD; i++) {
        uint32_t instance = cycle[(lowest + i) % length] / 2;
        if (instance == last) {
            continue;
        }
        last = instance;
        bool closed = instance == cycle[lowest] / 2;
        int bytes = closed
                        ? snprintf(text + used, sizeof(text) - used, "%s this op", told > 0 ? ", which waits for" : "")
                        : snprintf(text + used, sizeof(text) - used, "%s %s", told > 0 ? ", which waits for" : "",
                                   check_name(check, instance).text);
        used += (size_t)bytes < sizeof(text) - used ? (size_t)bytes : 0;
        told++;
        if (closed) {
            break;
        }
    }
    if (told == 0) {
        snprintf(text, sizeof(text), " itself");
    }
    return check_fail(check, CW_CHECK_DEADLOCK, cycle[lowest] / 2, UINT64_MAX, "waits for%s", text);
}

int check_deadlock(struct check *check, const uint32_t *successors)
{
    struct walk walk = {
        .path = check_allocate(&check->arena, check->event_count, sizeof(uint32_t)),
        .next = check_allocate(&check->arena, check->event_count, sizeof(uint32_t)),
        .state = check_allocate_zero(&check->arena, check->event_count, 1),
    };
    if (walk.path == NULL || walk.next == NULL || walk.state == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t event = 0; event < check->event_count; event++) {
        uint32_t begin = 0;
        if (successors[event] == 0 || walk.state[event] != UNSEEN) {
            continue;
        }
        uint32_t length = walk_from(check, successors, &walk, event, &begin);
        if (length > 0) {
            return cycle_report(check, walk.path + begin, length);
        }
    }
    assert(false && "events without an order have a cycle");
    return CW_ERROR_MEMORY;
}
