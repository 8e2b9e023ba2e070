/* Bench put: the two sides of `causeway bench put` over a real port.
 *
 * The initiator puts into the responder's region; the responder answers (latency) or counts (goodput). Both make the
 * same calls in the same order, tied together by a control channel (bench/control.h).
 */
#ifndef BENCH_PUT_H
#define BENCH_PUT_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/core/loop.h"
#include "dataplane/dataplane.h"

enum { BENCH_PUT_CONTROL_TIMEOUT_S = 60, BENCH_PUT_SAMPLES_MAX = 1 << 20 };

struct bench_side {
    bool initiator;
    int control;
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    struct cw_loop *loop;
    uint32_t peer;
    uint8_t *memory; /* the own region */
    uint64_t memory_bytes;
    uint64_t token;
    uint64_t peer_token;
};

/* Creates endpoint, loop and region on an open port and connects to the other side. `spin`: the core is ours. CW_OK or
 * a code of enum cw_status with a line in `error`. */
int bench_side_open(struct bench_side *side, struct cw_port *port, int control, bool initiator, bool spin,
                    uint64_t memory_bytes, char *error, size_t error_bytes);
void bench_side_close(struct bench_side *side);

struct bench_put_latency {
    double p50_ns;
    double p99_ns;
    uint64_t count;
};

/* Round trips of a put of `size` bytes and its notification, and one back; one at a time, for `duration_ns`. */
int bench_put_latency(struct bench_side *side, uint64_t size, uint64_t duration_ns, struct bench_put_latency *latency);

struct bench_put_rate {
    double puts_per_s;
    double bytes_per_s;
    double packets_per_put; /* data packets sent for the first time */
    uint64_t retransmits;
    uint64_t spurious; /* packets that the responder got twice */
};

/* One way as fast as it goes for `duration_ns` after `warmup_ns`, measured at the responder. `alone`: one packet a put
 * at the least; else small puts share packets. */
int bench_put_rate(struct bench_side *side, uint64_t size, bool alone, uint64_t warmup_ns, uint64_t duration_ns,
                   struct bench_put_rate *rate);

/* What taking and giving the loop's token adds to a call: nanoseconds, measured on this side alone. */
double bench_token_cost_ns(struct bench_side *side);

#endif
