/* Two sites in virtual time: each a gate with an endpoint on a simulated port, faults in between, and hosts that send
 * numbered frames of many flows and check what comes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/base/random.h"
#include "dataplane/tunnel/gate.h"
#include "tests/simulation/hosts.h"

enum { SITES = 2, FLOWS_MAX = 32 };

struct tunnel_site;

struct tunnel_options {
    uint64_t seed;
    uint32_t stream_count;
    uint32_t flow_count;
    uint64_t rate_bps; /* of the tunnel; 0: found */
    uint64_t line_bps; /* of the wide area */
    uint64_t delay_ns;
    uint64_t queue_bytes; /* 0: the tunnel's default */
    uint64_t ring_bytes;  /* likewise */
    double loss;
    double other_faults; /* duplicates, damage, changed order */
    bool encrypt;
    bool drops_multicast;
    uint8_t key_of_second;      /* its key consists of this byte; that of the first: 0x5a */
    uint32_t streams_of_second; /* 0: as the first */
    /* The hosts' side of a site in place of numbered frames, run in each turn of its gate; returns its deadline. NULL:
     * none. */
    uint64_t (*hosts_turn)(struct tunnel_site *site, uint64_t now_ns);
};

struct tunnel_world;

struct tunnel_site {
    struct tunnel_world *world;
    uint32_t index;
    struct cw_port *inner;        /* the gate's side */
    struct cw_port *hosts;        /* the other side */
    struct cw_endpoint *endpoint; /* the simulated host's */
    struct cw_gate *gate;
    bool deaf; /* its hosts take nothing */
    bool is_running;
    uint64_t sent;     /* by its hosts */
    uint64_t received; /* by its hosts */
    uint64_t news_up;
    uint64_t news_down;
    int news_status;
    uint32_t sequence[FLOWS_MAX]; /* of the next frame to be sent */
    uint32_t expected[FLOWS_MAX]; /* no frame below may come any more */
    uint64_t delay_total_ns;      /* of frames received */
    uint64_t delay_max_ns;
    uint64_t queue_max_bytes; /* longest queue seen */
};

struct tunnel_world {
    struct sim_hosts gates; /* the hosts of the sites' gates */
    struct tunnel_options options;
    struct cw_random random;
    struct tunnel_site sites[SITES];
};

/* 4 streams, 8 flows, 100 Mb/s, 5 ms, no faults, sealed where that is possible. */
void tunnel_options_init(struct tunnel_options *options, uint64_t seed);

/* A failure fails the test. */
void tunnel_world_open(struct tunnel_world *world, const struct tunnel_options *options);
/* Zeroed: nothing. */
void tunnel_world_close(struct tunnel_world *world);

/* Until all streams of both sides are up, or `limit_ns` have passed. */
bool tunnel_world_connect(struct tunnel_world *world, uint64_t limit_ns);

/* Time passes; hosts take what comes. */
void tunnel_world_run(struct tunnel_world *world, uint64_t duration_ns);

/* Hosts of a site send a frame of a flow to those of the other, with `length` bytes. */
void tunnel_site_send(struct tunnel_site *site, uint32_t flow, uint32_t length);

/* ... send a frame of any bytes. */
void tunnel_site_inject(struct tunnel_site *site, const void *frame, uint32_t length);

/* Both sites send frames of random flows and lengths at about `rate_bps` each for `duration_ns`. */
void tunnel_world_traffic(struct tunnel_world *world, uint64_t rate_bps, uint64_t duration_ns);

/* No faults any more, and until nothing is under way, or the test fails. */
void tunnel_world_heal(struct tunnel_world *world);

void tunnel_site_crash(struct tunnel_site *site);
void tunnel_site_restart(struct tunnel_site *site);

/* Sum over streams. */
uint64_t tunnel_site_counter(const struct tunnel_site *site, enum cw_tunnel_counter counter);
