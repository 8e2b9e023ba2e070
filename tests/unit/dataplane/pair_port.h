/* Pair port: two ports of one process (or three), joined by bounded queues: the real clock and real threads without
 * any driver. */
#pragma once

#include "dataplane/port/port.h"

/* Two ports joined to each other; each is closed by cw_port_close, and the last one frees what they share. */
void pair_port_open(struct cw_port *ports[2]);

/* The same with two or three, joined by a switch: a side that does not poll its port loses frames, and delays no
 * other. */
void pair_ports_open(struct cw_port **ports, uint32_t count);

/* From now on, or no longer, every `one_in`-th frame is lost on its way; 0: none. */
void pair_port_lose(struct cw_port *port, uint32_t one_in);
