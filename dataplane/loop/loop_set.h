/* Set: several loops as one, each with a port and an endpoint of its own, so that a process moves more than one core
 * can. In dataplane threads of their own (loop.h, DEDICATED); the first may also be one that somebody stands by.
 *
 * Invariants
 *   - A session lies between loop i of one process and loop i of another: who sends chooses the loop, and what is to
 *     stay in order (a lane) keeps to one.
 *   - A peer has the same number in all loops. What is registered has the same token in all of them, so that a peer
 *     reaches it by any.
 *   - Events of all come to one consumer, in the order of each loop; between loops there is no order. A slot of an
 *     event is the set's.
 *
 * Puts, gets and messages go to a loop: cw_loop_put(set->loops[i], ...) and the like. With one loop all of it is that
 * loop.
 *
 * Thread: as the calls of loop.h, but registrations: one at a time. */
#pragma once

#include "dataplane/loop/loop.h"

enum { CW_LOOP_SET_MAX = 8 };

struct cw_loop_set {
    struct cw_loop *loops[CW_LOOP_SET_MAX]; /* the caller's; that of all others' configuration is the first */
    uint32_t count;                         /* 0: none */
    uint32_t next;                          /* whose events are taken first */
};

/* A peer, whose loop i is reached at addresses[i], i < count; what it has more than this set, or less, is not used
 * between the two. Errors as cw_peer_add. */
int cw_loop_set_peer_add(struct cw_loop_set *set, const struct cw_address *addresses, uint32_t count, uint32_t *peer);

/* Errors as cw_region_register. */
int cw_loop_set_register(struct cw_loop_set *set, void *base, uint64_t bytes, uint32_t rights, uint64_t *token);
/* Errors as cw_region_deregister; CW_ERROR_BUSY: some loops may have let go; call again. */
int cw_loop_set_deregister(struct cw_loop_set *set, uint64_t token);

/* As cw_loop_poll and cw_loop_wait_alarm. */
uint32_t cw_loop_set_poll(struct cw_loop_set *set, struct cw_event *events, uint32_t count_max);
uint32_t cw_loop_set_wait(struct cw_loop_set *set, struct cw_event *events, uint32_t count_max, uint64_t timeout_ns,
                          const struct cw_port_alarm *alarm);

/* As cw_loop_message_release. */
int cw_loop_set_message_release(struct cw_loop_set *set, uint32_t slot);
