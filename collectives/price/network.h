/* network: the costs of a network, as pLogP parameters (Kielmann, Bal and Verstoep 2000) for each kind of path.
 *
 * A message of m bytes keeps a port of its sender busy for the gap g(m), the sender's processor for os(m), and the
 * receiver's processor for or(m); with nothing else in progress it is there L + g(m) after its start. Times are in
 * nanoseconds, as double: models are no clocks.
 *
 * Thread: any; nothing here has state. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    CW_PLOGP_POINTS_MAX = 64,
    CW_NETWORK_PORTS_MAX = 64,
};

struct cw_plogp_point {
    uint64_t bytes;
    double gap_ns;     /* g(bytes) */
    double send_ns;    /* os(bytes), at most g */
    double receive_ns; /* or(bytes), at most g */
};

/* A table over message size, rising; between points and beyond the last two by straight lines, below the first its
 * values. */
struct cw_plogp {
    double latency_ns; /* L */
    uint32_t count;    /* 1 .. CW_PLOGP_POINTS_MAX */
    struct cw_plogp_point points[CW_PLOGP_POINTS_MAX];
};

enum cw_path_kind {
    CW_PATH_LAN = 0, /* within a cluster */
    CW_PATH_WAN = 1, /* between clusters */
    CW_PATH_COUNT = 2,
};

struct cw_network {
    struct cw_plogp paths[CW_PATH_COUNT];
    /* Messages that a node can send, and as many that it can receive, at the same time at full speed; 1 ..
     * CW_NETWORK_PORTS_MAX. */
    uint32_t ports;
    /* The rate of the link between two clusters in one direction, for all messages together; 0: no limit. */
    double wan_bytes_per_ns;
    /* Eager messages that a node may have in flight to other clusters: the slots lent by its receivers
     * (CW_CREDIT_FAR_MAX of dataplane/limits.h), and the messages that it keeps until they are acknowledged; 0: no
     * limit. On a LAN the credit is no limit at any size. */
    uint32_t wan_messages;
    double copy_ns_per_byte;
    double reduce_ns_per_byte;
    /* gamma of the all-to-all model, 0 .. 1: where between the bounds (Barchet-Estefanel and Mounie 2004, section 5:
     * 2/5). `causeway plogp` reports it; no price depends on it. */
    double contention;
};

/* g(m), os(m), or(m) of a table that is valid. */
double cw_plogp_gap(const struct cw_plogp *plogp, uint64_t bytes);
double cw_plogp_send(const struct cw_plogp *plogp, uint64_t bytes);
double cw_plogp_receive(const struct cw_plogp *plogp, uint64_t bytes);

/* A path of constant rate (above 0): g(m) = overhead + m / rate; os = or = overhead. */
struct cw_plogp cw_plogp_linear(double latency_ns, double overhead_ns, double bytes_per_ns);

/* Names of networks that come with the program, for examples and tests; NULL beyond the last. */
const char *cw_network_name(uint32_t index);

/* A description of the network of that name, in a line; NULL if there is none. */
const char *cw_network_summary(const char *name);

/* CW_OK, or CW_ERROR_NOT_FOUND. */
int cw_network_find(const char *name, struct cw_network *network);

/* Whether the parameters make sense; else the reason in `error`. CW_OK or CW_ERROR_ARGUMENT. */
int cw_network_validate(const struct cw_network *network, char *error, size_t error_bytes);
