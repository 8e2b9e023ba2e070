/* lease: a process's part of its host's NIC, from the host's dataplane (`causeway node`): UDP ports of the host's
 * address, and a port over memory that both have (dataplane/port/shm_port.h). A lease ends with its process, however
 * the process ends. A thread watches the node: a node that restarts gets the same memory and gives the same ports, so
 * that a job loses only time.
 *
 * Order of calls: cw_lease_hello, cw_lease_open { cw_lease_hops }* cw_lease_close, before the port is closed.
 * Thread: one at a time. */
#pragma once

#include "control/lease/lease_text.h"
#include "dataplane/port/port.h"

struct cw_lease;

struct cw_lease_config {
    const char *socket; /* of the node; NULL: CW_LEASE_SOCKET */
    uint32_t ports;     /* UDP ports side by side: 1 .. CW_LEASE_PORTS_MAX */
    uint32_t rank;
    const char *job; /* its name, for users */
};

/* Asks the node of this host about its NIC. CW_OK, or with a line in `error`: CW_ERROR_NOT_FOUND (no node runs),
 * CW_ERROR_PERMISSION, CW_ERROR_UNSUPPORTED (another version), CW_ERROR_TIMEOUT. */
int cw_lease_hello(const char *socket, struct cw_lease_nic *nic, char *error, size_t error_bytes);

/* Gets ports and a port. CW_OK, or as cw_lease_hello, and CW_ERROR_LIMIT: no ports are left, CW_ERROR_MEMORY. */
int cw_lease_open(const struct cw_lease_config *config, struct cw_lease **lease, struct cw_port **port, char *error,
                  size_t error_bytes);
void cw_lease_close(struct cw_lease *lease); /* NULL is allowed; the port stays the caller's */

/* The first of its UDP ports. */
uint16_t cw_lease_first(const struct cw_lease *lease);

/* The MAC addresses of the next hops to other hosts, as far as the node knows them by now: it asks for the others.
 * *known: how many. CW_OK; CW_ERROR_CLOSED: the node is away; what it says. */
int cw_lease_hops(struct cw_lease *lease, const struct cw_ip *ips, uint32_t count, uint8_t (*macs)[6], bool *is_known,
                  char *error, size_t error_bytes);

/* Sends a line, and gets one, with or without a descriptor (-1: none); of the same socket, for others that ask a node.
 * A node gives one descriptor at most: the kernel drops any further one. Returns the length, 0: it is closed; -1:
 * errno. */
long cw_lease_send(int socket, const char *line, int descriptor);
long cw_lease_receive(int socket, char line[CW_LEASE_LINE_BYTES], int *descriptor);
/* A connection. CW_OK, or errors as cw_lease_hello. */
int cw_lease_connect(const char *path, int *socket, char *error, size_t error_bytes);
