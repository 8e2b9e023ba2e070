/* Runs a plan over real puts between simulated hosts in virtual time: an endpoint per rank, clusters joined by
 * wide-area trunks. Every rank compares what it receives with the serial reference at the end of each of its runs.
 *
 * Invariants
 *   - The same plan and options give the same run, bit for bit.
 *   - A rank begins its next run as soon as it is through with the one before, whatever the others do (`together`: when
 *     all are). What is sent differs from one run to the next, so that bytes of another run show.
 *   - Nothing hangs: a rank that loses a peer gives up and says so, and at `limit_ns` the run ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/schedule/plan.h"
#include "dataplane/dataplane.h"

#define PLAN_PUTS_NOBODY         UINT32_MAX
#define PLAN_PUTS_SLOT_BYTES_MAX 65536u

/* How ranks send to other clusters. */
enum plan_puts_wan {
    PLAN_PUTS_WAN_KNOWN =
        0, /* the link's rate is known: each of the senders that the plan promises has its share, kept by a shaper */
    PLAN_PUTS_WAN_FOUND = 1, /* it is found out, flow by flow */
    PLAN_PUTS_WAN_LAN = 2,   /* as on a LAN: by the round trip */
    PLAN_PUTS_WAN_FREE = 3,  /* nothing holds it back but the own port: what an unpaced sender does */
};

struct plan_puts_options {
    uint64_t seed;
    uint32_t runs; /* at least 1 */
    bool together;
    uint64_t rate_bps; /* of every host's link */
    uint64_t delay_ns; /* between two hosts of a cluster, one way */
    uint32_t
        switches; /* above 1: ranks in blocks on so many switches, as sim_hosts has them, whatever their clusters are */
    uint64_t uplink_rate_bps; /* between those */
    double loss;              /* of frames on their last link, and likewise below */
    double duplicate;
    double reorder;
    uint64_t wan_rate_bps; /* between two clusters */
    uint64_t wan_delay_ns;
    double wan_loss; /* of frames on these links */
    enum plan_puts_wan wan;
    uint64_t enter_delay_max_ns;          /* ranks begin at times drawn up to this */
    bool smooth;                          /* ranks send doubles that can be compressed, not random bytes */
    enum cw_compression_mode compression; /* codecs take no time there */
    uint32_t slots_kept_max;              /* as in collectives/execute/transport_puts.h, and likewise below */
    uint32_t put_count_max;
    struct cw_endpoint_config endpoint; /* address, key, seed and numbers of peers are filled in */
    uint32_t crash_rank;                /* this process ends without a word at crash_ns; PLAN_PUTS_NOBODY: none does */
    uint64_t crash_ns;
    uint64_t limit_ns;  /* of virtual time */
    uint64_t *times_ns; /* together: what each run took, [runs]; NULL: not wanted */
};

/* Of packets, by what they are; retransmitted ones are data again. */
struct plan_puts_counts {
    uint64_t sent; /* of any kind */
    uint64_t data;
    uint64_t retransmitted;
    uint64_t acknowledgements;
    uint64_t chunk_raw_bytes; /* sent in chunks, as they were ... */
    uint64_t chunk_bytes;     /* ... and as they travelled */
};

/* The most that any rank has taken. */
struct plan_puts_memory {
    uint64_t endpoint_bytes;  /* touched by its endpoint, peers that its schedule names included, others not */
    uint64_t schedule_bytes;  /* its schedule */
    uint64_t transport_bytes; /* cw_puts_transport_memory_bytes, and the table of ranks that it is given */
    uint64_t rank_bytes;      /* all three, of one rank */
    uint64_t peer_bytes;      /* what each further peer would add if it were known */
    uint32_t peers;           /* that its schedule names: each is a session */
};

struct plan_puts_report {
    /* of the first run, from its beginning until the last rank is through; connections are set up in it */
    uint64_t first_ns;
    uint64_t last_ns;      /* together: of the last run */
    uint64_t total_ns;     /* until the last rank is through with its last run */
    uint64_t packets;      /* data packets, acknowledgements and the rest, of all hosts */
    uint64_t handled;      /* packets sent and received by all hosts; together: without the first run */
    uint64_t handled_most; /* by the host that has most, likewise */
    uint64_t retransmitted;
    struct plan_puts_counts counts;      /* of all ranks; together: without the first run */
    struct plan_puts_counts counts_most; /* each by the rank that has most, likewise */
    uint64_t wan_frames;                 /* delivered by links between clusters, likewise */
    uint64_t wan_bytes;
    struct plan_puts_memory memory;
    uint64_t events;              /* of the simulation: frames at the end of a link, and turns of ranks */
    uint64_t wan_dropped;         /* frames that found the queue of a link between clusters full */
    uint64_t wan_queue_max_bytes; /* the longest one */
    uint64_t hash;                /* of all frames */
    uint32_t ranks_done;
    uint32_t ranks_failed;  /* that gave up */
    uint32_t ranks_hanging; /* when the limit was reached */
};

/* 10 Gb/s, 20 us one way, no faults, between clusters 1 Gb/s and 5 ms; pools of CW_DEFAULT_SLOTS slots of 4096 bytes,
 * 10 s of virtual time. */
void plan_puts_options_init(struct plan_puts_options *options);

/* The longest message without a handshake of any rank: pool_slot_bytes must not be smaller. */
uint64_t plan_puts_message_bytes(const struct cw_plan *plan);

/* The plan must be valid (cw_plan_validate). 0: all ranks are through and everything is right; -1 and the reason. */
int plan_puts_run(const struct cw_plan *plan, const struct plan_puts_options *options, struct plan_puts_report *report,
                  char *error, size_t error_bytes);

/* "known", "found", "lan" or "free". False: reported. */
bool plan_wan_take(const char *text, enum plan_puts_wan *wan);
