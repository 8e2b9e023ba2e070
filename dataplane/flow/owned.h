/* owned: an endpoint whose address no kernel has (dataplane/neighbour/): what is foreign to its sessions is handed to the
 * resolver, whose answers and questions leave with the endpoint's packets; a next hop's MAC address that has become
 * known, or another one, is the flows' at once.
 *
 * Order of calls: cw_endpoint_own, before peers are added; cw_owned_take and cw_owned_turn by the endpoint.
 *
 * Owner: whoever turns the endpoint. */
#pragma once

#include <stdbool.h>

#include "dataplane/dataplane.h"
#include "dataplane/neighbour/neighbour.h"

/* Gives the endpoint a resolver, which stays the caller's and outlives it; lets in what asks for its address. CW_OK, or
 * what cw_port_join says. */
int cw_endpoint_own(struct cw_endpoint *endpoint, struct cw_neighbour_cache *neighbours);

/* Takes a received frame that is none of a session's. True: it is counted. */
bool cw_owned_take(struct cw_endpoint *endpoint, const uint8_t *frame, uint32_t length);
/* Sends questions that are due. Returns how many. */
uint32_t cw_owned_turn(struct cw_endpoint *endpoint);
