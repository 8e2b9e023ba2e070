/* check: whether an event comes before another one in every run.
 *
 * One search goes back from an event; its findings answer all further questions about the same event. It goes back to
 * the position of the requested event, and resumes there when an earlier one is requested. */
#include "collectives/check/state.h"

int check_reach_prepare(struct check *check)
{
    check->search_seen = check_allocate_zero(&check->arena, check->event_count, sizeof(uint32_t));
    check->search_found = check_allocate(&check->arena, check->event_count, sizeof(uint32_t));
    check->search_deferred = check_allocate(&check->arena, check->event_count, sizeof(uint32_t));
    check->search_event = CHECK_NONE;
    bool missing = check->search_seen == NULL || check->search_found == NULL || check->search_deferred == NULL;
    return missing ? CW_ERROR_MEMORY : CW_OK;
}

void check_reach_from(struct check *check, uint32_t event)
{
    if (check->search_event == event) {
        return;
    }
    check->search_event = event;
    check->search_stamp++; /* once an event at most in each of a few passes: does not overflow */
    check->search_open = 1;
    check->search_late = 0;
    check->search_found[0] = event;
}

static inline void reach_add(struct check *check, uint32_t event)
{
    if (check->search_seen[event] != check->search_stamp) {
        check->search_seen[event] = check->search_stamp;
        check->search_found[check->search_open++] = event;
        assert(check->search_open <= check->event_count);
    }
}

/* Events left out because they came too early are visited again. */
static void reach_reopen(struct check *check, uint32_t position)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < check->search_late; i++) {
        uint32_t event = check->search_deferred[i];
        if (check->position[event] > position) {
            check->search_found[check->search_open++] = event;
        } else {
            check->search_deferred[kept++] = event;
        }
    }
    check->search_late = kept;
}

bool check_reach(struct check *check, uint32_t earlier)
{
    uint32_t position = check->position[earlier];
    if (check->search_seen[earlier] == check->search_stamp) {
        return true;
    }
    if (position >= check->position[check->search_event]) {
        return false;
    }
    reach_reopen(check, position);
    while (check->search_open > 0) {
        uint32_t event = check->search_found[--check->search_open];
        if (check->position[event] <= position) {
            check->search_deferred[check->search_late++] = event;
            continue;
        }
        for (uint32_t i = check->edge_first[event]; i < check->edge_first[event + 1]; i++) {
            uint32_t edge = check->edges.items[i];
            if ((edge & CHECK_WEAK) != 0) {
                break;
            }
            reach_add(check, edge);
        }
        if (check_is_end(event)) {
            reach_add(check, event - 1);
        }
        if (check->search_seen[earlier] == check->search_stamp) {
            return true;
        }
    }
    return false;
}
