/* Loop set: several loops as one, each with its own port and endpoint, so that a process uses more than one core for
 * packets. Each has a dataplane thread (loop.h, DEDICATED); the first may also be a loop with a thread standing by.
 *
 * Invariants
 *   - A session connects loop i of one process with loop i of another: the sender chooses the loop, and uses one loop
 *     for a lane, to keep its order.
 *   - A peer has the same number in all loops. A registration has the same token in all of them, so a peer can use any
 *     loop.
 *   - One consumer gets the events of all loops, in the order of each loop; between loops there is no order. Slots of
 *     events are numbers of the set.
 *
 * Puts, gets and messages go to a loop: cw_loop_put(set->loops[i], ...) and similar calls. A set of one loop behaves
 * like that loop.
 *
 * Thread: as the calls of loop.h, except registrations: one at a time. */
#pragma once

#include "dataplane/loop/loop.h"

enum { CW_LOOP_SET_MAX = 8 };

struct cw_loop_set {
    struct cw_loop *loops[CW_LOOP_SET_MAX]; /* the caller's; the first is `first` in the configuration of all others */
    uint32_t count;                         /* 0: none */
    uint32_t next;                          /* the loop whose events are taken first */
};

/* Adds a peer with loop i at addresses[i], i < count. If the peer and this set have different numbers of loops, the
 * additional ones are not used between the two. Errors as cw_peer_add. */
int cw_loop_set_peer_add(struct cw_loop_set *set, const struct cw_address *addresses, uint32_t count, uint32_t *peer);

/* Errors as cw_region_register. */
int cw_loop_set_register(struct cw_loop_set *set, void *base, uint64_t bytes, uint32_t rights, uint64_t *token);
/* Errors as cw_region_deregister; CW_ERROR_BUSY: some loops may have done it; call again. */
int cw_loop_set_deregister(struct cw_loop_set *set, uint64_t token);

/* As cw_loop_poll and cw_loop_wait_alarm. */
uint32_t cw_loop_set_poll(struct cw_loop_set *set, struct cw_event *events, uint32_t count_max);
uint32_t cw_loop_set_wait(struct cw_loop_set *set, struct cw_event *events, uint32_t count_max, uint64_t timeout_ns,
                          const struct cw_port_alarm *alarm);

/* As cw_loop_message_release. */
int cw_loop_set_message_release(struct cw_loop_set *set, uint32_t slot);
