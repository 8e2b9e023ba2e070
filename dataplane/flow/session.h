/* session: set-up of connections and their end.
 *
 * Order: cw_session_start, cw_session_retry until an answer comes, cw_session_prove, cw_session_confirm with the
 * first packet; cw_session_end. */
#pragma once

#include "dataplane/state/endpoint.h"

/* Payload bytes that a signed session leaves unused until it is confirmed: the peer may yet insist on a sealed one. */
static inline uint32_t cw_session_spare(const struct cw_endpoint *endpoint, const struct cw_session *session)
{
    return endpoint->aead != NULL && session->seal == NULL ? CW_WIRE_MAC_BYTES : 0;
}

/* Starts set-up if the flow is closed; does nothing if it is under way or done. */
void cw_session_start(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A set-up packet has come in (still unverified). */
void cw_session_hello(struct cw_endpoint *endpoint, const struct cw_wire_header *header);

/* Sends a request that is due. */
void cw_session_retry(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Sends the peer the proof that it needs to begin the session that we have begun. */
void cw_session_prove(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A packet of the session has come. */
static inline void cw_session_confirm(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_session *session = &flow->session;
    if (!session->confirmed) {
        session->confirmed = true;
        session->payload_bytes_max = (uint16_t)(session->payload_bytes_max + cw_session_spare(endpoint, session));
    }
}

/* Ends a session: all operations end with `status`, the state becomes `state`, and the application is told. */
void cw_session_end(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_peer_state state, int status);

/* Ends a session whose seal is used up; true if it was. */
bool cw_session_spent(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Tells connected peers that this endpoint goes. */
void cw_session_goodbye(struct cw_endpoint *endpoint);

/* Gives peer events that found no room before; returns how many. */
uint32_t cw_session_deliver(struct cw_endpoint *endpoint);
