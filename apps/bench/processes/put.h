/* Bench put: the two sides of `causeway bench put` over a real port.
 *
 * Member 1 of a group, the initiator, puts into the region of member 0, the responder, which answers (latency) or
 * counts (goodput). Both make the same calls in the same order; each fills what it measures. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apps/bench/bench.h"
#include "apps/bench/processes/group.h"

/* Of the command line. */
struct bench_put_options {
    const char *fabric;
    const char *devices[2]; /* of the initiating side, of the other one; NULL: a fabric is made */
    const char *rdma;       /* a device beside the port; NULL: none */
    struct app_list sizes;
    uint64_t mtu_bytes;
    uint64_t rounds;
    uint64_t duration_ns;
    uint64_t core[2];
    struct app_report report;
    bool no_raw;
    bool no_testpmd;
};

/* Over a port, with a peer process. One of enum app_exit. */
int bench_put_run(const struct bench_put_options *options);

enum { BENCH_PUT_SAMPLES_MAX = 1 << 20 };

struct bench_put_latency {
    double p50_ns;
    double p99_ns;
    uint64_t count;
};

/* Round trips of a put of `size` bytes and its notification, and one back; one at a time, for `duration_ns`. The
 * initiator fills `latency`. CW_OK or a code of enum cw_status, as below. */
int bench_put_latency(struct bench_member *member, uint64_t size, uint64_t duration_ns,
                      struct bench_put_latency *latency);

struct bench_put_rate {
    double puts_per_s; /* by the responder, and likewise below */
    double bytes_per_s;
    uint64_t spurious;      /* packets that came twice */
    double packets_per_put; /* by the initiator: data packets sent for the first time */
    uint64_t retransmits;   /* likewise */
};

/* One way as fast as it goes for `duration_ns` after `warmup_ns`, measured at the responder. `alone`: one packet a put
 * at the least; else small puts share packets. */
int bench_put_rate(struct bench_member *member, uint64_t size, bool alone, uint64_t warmup_ns, uint64_t duration_ns,
                   struct bench_put_rate *rate);

/* What taking and giving the loop's token adds to a call: nanoseconds, measured on this side alone. */
double bench_token_cost_ns(struct bench_member *member);
