#include "dataplane/loop/loop_set.h"

#include <assert.h>

#include "dataplane/base/clock.h"

struct peer_call {
    const struct cw_address *address;
    uint32_t *peer;
};

static int peer_add(struct cw_endpoint *endpoint, void *context)
{
    const struct peer_call *call = context;
    return cw_peer_add(endpoint, call->address, call->peer);
}

int cw_loop_set_peer_add(struct cw_loop_set *set, const struct cw_address *addresses, uint32_t count, uint32_t *peer)
{
    int status = CW_OK;
    for (uint32_t i = 0; i < set->count && status == CW_OK; i++) {
        uint32_t number = 0;
        /* also if the peer has no such loop: its number must be the same everywhere */
        struct peer_call call = {.address = &addresses[i % count], .peer = i == 0 ? peer : &number};
        status = cw_loop_call(set->loops[i], peer_add, &call);
        assert(status != CW_OK || i == 0 || number == *peer);
    }
    return status;
}

struct region_call {
    void *base;
    uint64_t bytes;
    uint32_t rights;
    uint64_t token;
};

static int region_register(struct cw_endpoint *endpoint, void *context)
{
    struct region_call *call = context;
    return cw_region_register(endpoint, call->base, call->bytes, call->rights, &call->token);
}

static int region_register_as(struct cw_endpoint *endpoint, void *context)
{
    const struct region_call *call = context;
    return cw_region_register_as(endpoint, call->base, call->bytes, call->rights, call->token);
}

static int region_deregister(struct cw_endpoint *endpoint, void *context)
{
    return cw_region_deregister(endpoint, *(uint64_t *)context);
}

/* The first loop assigns the numbers of regions and releases them last, so a number that is free there is free in all
 * loops. */
int cw_loop_set_register(struct cw_loop_set *set, void *base, uint64_t bytes, uint32_t rights, uint64_t *token)
{
    struct region_call call = {.base = base, .bytes = bytes, .rights = rights};
    int status = cw_loop_call(set->loops[0], region_register, &call);
    for (uint32_t i = 1; i < set->count && status == CW_OK; i++) {
        int copied = cw_loop_call(set->loops[i], region_register_as, &call);
        assert(copied == CW_OK);
        (void)copied;
    }
    *token = call.token;
    return status;
}

int cw_loop_set_deregister(struct cw_loop_set *set, uint64_t token)
{
    int status = CW_OK;
    for (uint32_t i = set->count; i-- > 0 && status == CW_OK;) {
        status = cw_loop_call(set->loops[i], region_deregister, &token);
        status = i > 0 && status == CW_ERROR_NOT_FOUND ? CW_OK : status; /* when it was called before */
    }
    return status;
}

static void slots_number(const struct cw_loop_set *set, uint32_t member, struct cw_event *events, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        events[i].slot = events[i].slot * set->count + member;
    }
}

uint32_t cw_loop_set_poll(struct cw_loop_set *set, struct cw_event *events, uint32_t count_max)
{
    if (set->count == 1) {
        return cw_loop_poll(set->loops[0], events, count_max);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t member = (set->next + i) % set->count;
        uint32_t taken = cw_loop_poll(set->loops[member], events + count, count_max - count);
        slots_number(set, member, events + count, taken);
        count += taken;
    }
    set->next = (set->next + 1) % set->count;
    return count;
}

uint32_t cw_loop_set_wait(struct cw_loop_set *set, struct cw_event *events, uint32_t count_max, uint64_t timeout_ns,
                          const struct cw_port_alarm *alarm)
{
    if (set->count == 1) {
        return cw_loop_wait_alarm(set->loops[0], events, count_max, timeout_ns, alarm);
    }
    uint32_t count = cw_loop_set_poll(set, events, count_max);
    if (count > 0 || timeout_ns == 0) {
        return count;
    }
    count = cw_loop_wait_alarm(set->loops[0], events, count_max, timeout_ns, alarm);
    slots_number(set, 0, events, count);
    return count > 0 ? count : cw_loop_set_poll(set, events, count_max);
}

int cw_loop_set_message_release(struct cw_loop_set *set, uint32_t slot)
{
    return cw_loop_message_release(set->loops[slot % set->count], slot / set->count);
}
