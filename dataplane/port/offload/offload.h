/* Offload: work that a NIC may take over from the core, and its state; the part that needs no DPDK.
 *
 * An offload has a number (enum cw_port_offload), a name, a software form that replaces it where the NIC lacks it, and
 * one file here, of functions that hooks.h describes. README.md says how to add one.
 *
 * Invariants
 *   - The protocol depends on no offload: reports of a NIC are checked, bounded or doubted above the port, and
 *     cw_port_doubt turns off an offload that has made a false report.
 *   - What is off costs nothing: a burst tests one bit for all of them.
 *   - Each feature that a NIC has, lacks or refuses is reported in one line (cw_port_ethdev_offloads).
 *
 * Order of calls: cw_offload_read, then cw_port_ethdev_open with the mask; cw_port_ethdev_offloads at any time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/port/port.h"

enum {
    CW_OFFLOAD_WHY_BYTES = 160,
    /* Offloads that are safe wherever the NIC has them: each is tried before it counts, or filters packets that
     * software filters again. */
    CW_OFFLOADS_AUTO = 1 << CW_OFFLOAD_CHECKSUM_OUT | 1 << CW_OFFLOAD_CHECKSUM_IN | 1 << CW_OFFLOAD_MULTICAST,
    CW_OFFLOADS_ALL = (1 << CW_PORT_OFFLOADS) - 1,
};

/* One offload at one port. */
struct cw_offload_report {
    enum cw_port_offload offload;
    bool has;                       /* the NIC says that it can */
    bool used;                      /* it is on */
    char why[CW_OFFLOAD_WHY_BYTES]; /* why it is not on, or how it works here */
    uint64_t done;                  /* packets for which it has done something */
    uint64_t undone;                /* ... for which it should have and has not */
};

/* "udp-checksum-out"; what it does; what stands in. Any thread. */
const char *cw_offload_name(enum cw_port_offload offload);
const char *cw_offload_meaning(enum cw_port_offload offload);
const char *cw_offload_software(enum cw_port_offload offload);

/* UDP ports `first` .. `first + count - 1` as rules of a NIC have them: blocks of a power of two that begin at a
 * multiple of it. The first of these blocks, and how many there are. */
static inline uint32_t cw_offload_ports_block(uint32_t first, uint32_t count)
{
    uint32_t block = 1;
    while (2 * block <= count && first % (2 * block) == 0) {
        block *= 2;
    }
    return block;
}

static inline uint32_t cw_offload_ports_blocks(uint32_t first, uint32_t count)
{
    uint32_t blocks = 0;
    for (; count > 0; blocks++) {
        uint32_t block = cw_offload_ports_block(first, count);
        first += block;
        count -= block;
    }
    return blocks;
}

/* Reads "auto", "off", "all", or names with commas between. CW_OK; CW_ERROR_ARGUMENT, with a line in `error` that names
 * all there are. */
int cw_offload_read(const char *text, uint32_t *offloads, char *error, size_t error_bytes);
