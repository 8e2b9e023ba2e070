/* Bridge addresses: which port is a unicast address behind? Private to the bridge.
 *
 * Invariants
 *  - At most count_max addresses. A new one takes a free row or the row that was not seen for longest, if that is too
 *    old; otherwise it is not learnt.
 *  - An address that was not seen for age_ns is not found, whether its row has been reused or not.
 *  - Every operation takes constant time, on average, for any addresses. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_bridge_address {
    uint64_t key; /* the six bytes of the address, 0: row is free */
    uint64_t seen_ns;
    uint32_t chain; /* next row with the same hash, or next free row */
    uint32_t newer; /* list by time of last refresh; learnt addresses only */
    uint32_t older;
    uint16_t port;
    bool fixed; /* set by hand */
};

struct cw_bridge_addresses {
    struct cw_bridge_address *rows; /* [count_max + 1]; row 0 is the anchor of the list by time */
    uint32_t *buckets;
    uint32_t bucket_shift; /* 64 - log2(number of buckets) */
    uint32_t count_max;
    uint32_t count;
    uint32_t free;   /* first free row, 0: none */
    uint64_t age_ns; /* 0: never too old */
    uint64_t multiplier;
};

enum cw_bridge_learn {
    CW_BRIDGE_LEARN_KNOWN,
    CW_BRIDGE_LEARN_NEW,
    CW_BRIDGE_LEARN_MOVED, /* was behind another port */
    CW_BRIDGE_LEARN_FULL,  /* no row */
};

/* CW_OK or CW_ERROR_MEMORY. */
int cw_bridge_addresses_init(struct cw_bridge_addresses *table, uint32_t count_max, uint64_t age_ns, uint64_t seed);

void cw_bridge_addresses_dispose(struct cw_bridge_addresses *table);

/* The port, or -1: not known. `key` is not 0. */
int cw_bridge_addresses_find(const struct cw_bridge_addresses *table, uint64_t now_ns, uint64_t key);

enum cw_bridge_learn cw_bridge_addresses_learn(struct cw_bridge_addresses *table, uint64_t now_ns, uint64_t key,
                                               uint16_t port);

/* By hand: stays for good. False: no row. */
bool cw_bridge_addresses_set(struct cw_bridge_addresses *table, uint64_t key, uint16_t port);

/* Forgets what was learnt behind `port`. */
void cw_bridge_addresses_flush(struct cw_bridge_addresses *table, uint16_t port);
