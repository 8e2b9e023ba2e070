/* What the files of wire share: job/wire.c the endpoint on the port, wire_port.c the port
 * between emulated hosts, wire_socket.c between others, wire_multicast.c its
 * groups. */
#pragma once

#include <stdbool.h>

#include "control/job/wire.h"

/* CAUSEWAY_EMULATE, read. */
struct wire_emulation {
    uint32_t hosts;   /* 0: none */
    char socket[200]; /* of the switch; "": veth */
    char driver[16];  /* with veth: "af_packet" */
    uint32_t mtu_bytes;
};

/* Opens the rank's port and waits for its link; sets wire->port and wire->address. Undone by cw_wire_close also after
 * failures. */
int wire_port_open(uint32_t rank, const struct wire_emulation *emulation, struct cw_wire *wire, char *error,
                   size_t error_bytes);

/* The same with sockets, at so many ports. */
int wire_socket_open(const struct cw_net_address *own, uint32_t rank, uint32_t streams, struct cw_wire *wire,
                     char *error, size_t error_bytes);

/* Has the endpoint take part in groups, unless told not to; undone by cw_wire_close. */
int wire_multicast_open(const uint8_t job_key[16], bool keeps_flood_address, bool asks_itself, struct cw_wire *wire,
                        char *error, size_t error_bytes);
