/* Claims world: what congestion control and pacing promise, measured in virtual time by the tests that hold the
 * numbers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sim_incast_settings {
    uint32_t senders;
    uint64_t rate_bps;    /* of every link */
    uint64_t delay_ns;    /* one way, end to end */
    uint64_t queue_bytes; /* of the bridge's port towards the receiver */
    uint64_t warmup_ns;
    uint64_t duration_ns;
    uint64_t seed;
};

struct sim_incast_result {
    double port_share;        /* of the port's rate, headers and gaps included, that brought new data */
    double jain;              /* fairness of what the senders got: 1 is equal */
    uint64_t queue_max_bytes; /* seen at the port in the whole run */
    uint64_t dropped;         /* by the full queue, in the whole run */
    uint64_t retransmitted;
};

/* All senders stream 64 KiB puts to one receiver. CW_OK, or a code of enum cw_status with a line in `error`. */
int sim_incast(const struct sim_incast_settings *settings, struct sim_incast_result *result, char *error,
               size_t error_bytes);

struct sim_pace_settings {
    uint32_t flows;
    uint64_t rate_least_bps;
    uint64_t rate_most_bps;
    uint32_t packets; /* that the slowest flow sends */
    uint64_t seed;
};

struct sim_pace_result {
    double rate_error_max;   /* largest deviation from a flow's rate over any 1,000 packets in a row, as a share */
    double excess_bytes_max; /* most that any flow sent above rate x T + one frame, over any T */
    uint64_t packets;
    uint64_t windows; /* of 1,000 packets that were looked at */
};

/* One host sends to as many others, each flow paced at a rate of its own, spread evenly by magnitude. Measured where
 * frames leave. */
int sim_pace(const struct sim_pace_settings *settings, struct sim_pace_result *result, char *error, size_t error_bytes);
