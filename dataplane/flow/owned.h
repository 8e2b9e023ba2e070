/* owned: an endpoint with an address that no kernel has (dataplane/neighbour/). Packets foreign to its sessions are
 * handed to the resolver, whose answers and requests leave with the endpoint's packets; a new MAC address of a next hop
 * applies to the flows at once.
 *
 * Order of calls: cw_endpoint_own, before peers are added; cw_owned_receive and cw_owned_turn by the endpoint.
 *
 * Owner: the thread that turns the endpoint. */
#pragma once

#include <stdbool.h>

#include "dataplane/dataplane.h"
#include "dataplane/neighbour/neighbour.h"

/* Gives the endpoint a resolver, which stays the caller's and outlives it; admits requests for its address. CW_OK, or
 * an error of cw_port_join. */
int cw_endpoint_own(struct cw_endpoint *endpoint, struct cw_neighbour_cache *neighbours);

/* Takes a received frame that is none of a session's. True: it is counted. */
bool cw_owned_receive(struct cw_endpoint *endpoint, const uint8_t *frame, uint32_t length);
/* Sends questions that are due. Returns how many. */
uint32_t cw_owned_turn(struct cw_endpoint *endpoint);
