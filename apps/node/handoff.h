/* handoff ring: data from one dataplane thread of a node to another: frames for ranks that the other one serves, and
 * duties of the first one for all, groups of the NIC among them.
 *
 *    thread A --node_handoff_put--> [ a ring for each pair of threads ] --node_handoff_first, _next--> thread B
 *
 * Invariants
 *  - A ring has one writer and one reader. If there is no room, the writer drops the entry or tries again.
 *  - No wake-up is lost: a thread that is about to sleep announces it, and polls again; a writer checks after a full
 *    fence whether the reader sleeps.
 *
 * Order of calls: node_handoff_make { ... }* node_handoff_free, when the threads have ended. Thread: each by its own
 * number. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/port/port.h"

enum { NODE_CORES_MAX = 8, NODE_HANDOFF_SLOTS = 256 /* fewer for frames longer than Ethernet's */ };

enum node_handoff_kind {
    NODE_HANDOFF_FRAME, /* to a rank, or to members of a group */
    NODE_HANDOFF_JOIN,  /* to the first thread: a multicast MAC address */
    NODE_HANDOFF_LEAVE,
};

struct node_handed {
    uint32_t kind; /* enum node_handoff_kind */
    uint32_t length;
    uint8_t bytes[];
};

struct node_handoff;

/* For `count` threads, of which number i has ports[i], which ends its sleep. NULL: no memory. */
struct node_handoff *node_handoff_make(uint32_t count, struct cw_port *const *ports, uint32_t frame_bytes);
void node_handoff_free(struct node_handoff *handoff); /* NULL is allowed */

/* False: no room. */
bool node_handoff_put(struct node_handoff *handoff, uint32_t from, uint32_t to, enum node_handoff_kind kind,
                      const uint8_t *bytes, uint32_t length);
/* The oldest entry of a thread for another; NULL: none. It stays until node_handoff_next. */
const struct node_handed *node_handoff_first(const struct node_handoff *handoff, uint32_t from, uint32_t to);
void node_handoff_next(struct node_handoff *handoff, uint32_t from, uint32_t to);

/* Says that a thread is about to sleep. True: there is something for it. */
bool node_handoff_arm(struct node_handoff *handoff, uint32_t to);
void node_handoff_disarm(struct node_handoff *handoff, uint32_t to);

/* The number of groups with members among the ranks of a thread: frames to groups go to threads that have some. */
void node_handoff_members_set(struct node_handoff *handoff, uint32_t number, uint32_t count);
uint32_t node_handoff_members(const struct node_handoff *handoff, uint32_t number);
