/* lease_text: messages between the host's dataplane (apps/node/) and its clients: one line per message, over a socket
 * of the kind SOCK_SEQPACKET. The kernel reports the client's process (SO_PEERCRED).
 *
 *    client                                          node
 *    hello 3                                         node ip=10.0.0.1/24 mac=02:.. mtu=1500 rate=0 reports=1 medium=0
 *    lease ports=1 first=0 rank=3 memory=7 job=NAME  leased first=29400  [bell]
 *    hops 10.0.0.2,10.0.0.3                          hops 02:00:00:00:00:02,-
 *    status                                          JSON objects, a line each: the NIC, leases; then an empty line
 *                                                    refused -13 why
 *
 * A lease lasts as long as its connection. `memory` is the number that the memory of a shared-memory port
 * (port/shm_port.h) has among the client's descriptors. The node takes no descriptor from a client: a close can take
 * any time of the client's choice (a socket that lingers, a file of its own file system), and the node would wait. So
 * it opens that memory by /proc/PID/fd; a message with a descriptor ends the connection. [bell]: a descriptor
 * (SCM_RIGHTS), an eventfd that wakes the node. `first` names ports that the client had before, of a node that was
 * started again.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum {
    CW_LEASE_VERSION = 3,
    CW_LEASE_LINE_BYTES = 4096,
    CW_LEASE_JOB_BYTES = 64,
    CW_LEASE_PORTS_MAX = 64,
    CW_LEASE_HOPS_MAX = 64, /* in one line */
};

#define CW_LEASE_SOCKET "/run/causeway/node"

enum cw_lease_request_kind { CW_LEASE_HELLO, CW_LEASE_LEASE, CW_LEASE_HOPS, CW_LEASE_STATUS };

struct cw_lease_request {
    enum cw_lease_request_kind kind;
    uint32_t ports;
    uint16_t first; /* 0: any */
    uint32_t rank;
    uint32_t memory;              /* the client's descriptor of a shared-memory port's memory */
    char job[CW_LEASE_JOB_BYTES]; /* printable, without blanks and quotes */
    uint32_t hop_count;
    struct cw_ip hops[CW_LEASE_HOPS_MAX];
};

/* The node's description of its NIC. */
struct cw_lease_nic {
    struct cw_ip ip;
    uint8_t bits; /* of its subnet, as cw_ip_shares counts them */
    uint8_t mac[6];
    uint32_t mtu_bytes;
    uint64_t rate_bps; /* 0: not known */
    bool reports;      /* switches are notified of groups */
    uint32_t medium;   /* of its port (struct cw_port_info) */
};

/* Reads a client's line. CW_OK, or CW_ERROR_ARGUMENT, CW_ERROR_UNSUPPORTED (another version) with a line in `error`. */
int cw_lease_read(const char *line, struct cw_lease_request *request, char *error, size_t error_bytes);
void cw_lease_request_write(const struct cw_lease_request *request, char line[CW_LEASE_LINE_BYTES]);

void cw_lease_nic_write(const struct cw_lease_nic *nic, char line[CW_LEASE_LINE_BYTES]);
/* False: it is no such line. */
bool cw_lease_nic_read(const char *line, struct cw_lease_nic *nic);

/* "02:00:00:00:00:02", or "-" for one that is not known, at the end of a line. */
void cw_lease_hop_write(const uint8_t *mac, char line[CW_LEASE_LINE_BYTES]);
/* The hop at *at, which moves on to the next one. False: there is none, or it is invalid. *is_known: mac is valid. */
bool cw_lease_hop_read(const char **at, uint8_t mac[6], bool *is_known);
