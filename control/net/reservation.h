/* Reservation: UDP ports of this host for a process that receives the packets itself, from the interface. The kernel
 * gets copies of the packets. Sockets hold the ports, so that no other process gets them and the kernel does not answer
 * "port unreachable". A filter drops all packets, because reads would cost time.
 *
 * Thread: one at a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum { CW_RESERVATION_MAX = 64 /* CW_STREAMS_MAX */ };

struct cw_reservation {
    uint16_t udp_port; /* the first */
    uint32_t count;    /* 0: none */
    int sockets[CW_RESERVATION_MAX];
};

/* `count` ports of the own address `ip`, from `udp_port` on; 0: any, for one. CW_OK, or with a line in `error`:
 * CW_ERROR_BUSY (a port is in use), CW_ERROR_NOT_FOUND (no such address), ... */
int cw_reservation_open(const struct cw_ip *ip, uint16_t udp_port, uint32_t count, struct cw_reservation *reservation,
                        char *error, size_t error_bytes);
/* A zeroed one is allowed. */
void cw_reservation_close(struct cw_reservation *reservation);
