/* Gets: asking a peer's dataplane for bytes, and answering such requests with a put.
 *
 * Invariant: a get keeps its operation open until the answer has arrived completely or the session ends, so it ends
 * exactly once. */
#pragma once

#include "dataplane/put/reassembly.h"

int cw_gets_init(struct cw_gets *gets, uint32_t count);
void cw_gets_dispose(struct cw_gets *gets);

/* Opens and queues a get of a flow. CW_OK, CW_ERROR_NOT_FOUND, CW_ERROR_AGAIN, as cw_get. */
int cw_get_open(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_get *get);

/* Gives a get the number that its answer will carry. False: all are in progress. */
bool cw_get_number(struct cw_endpoint *endpoint, struct cw_operation *operation);

/* True if an answer frame fits the get it names: open, of this flow, exactly its destination. */
bool cw_get_expects(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                    const struct cw_reassembly_frame *frame);

/* Whether the peer owes an answer of this number. */
bool cw_get_is_open(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint16_t reply);

/* ... and will never give it. */
void cw_get_fail(struct cw_endpoint *endpoint, uint16_t reply, int status);

/* The answer is complete: ends the get (its event included). */
void cw_get_finish(struct cw_endpoint *endpoint, uint16_t reply);

/* Forgets the number of a get whose operation ends. */
void cw_get_release(struct cw_endpoint *endpoint, struct cw_operation *operation);

/* False: a request for no such region, without the right, or out of bounds. */
bool cw_get_allowed(const struct cw_endpoint *endpoint, const struct cw_wire_get *frame);

/* True if `count` requests that are allowed can be answered now, in addition to `others` in the same packet that may
 * open an operation each; else their packet must be sent again. */
bool cw_gets_room(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint32_t count, uint32_t others);

/* Posts the put that answers a request. */
void cw_get_answer(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_get *frame);
