/* session: set-up of connections and their end.
 *
 * Order: cw_session_start, cw_session_retry until an answer comes, cw_session_prove, cw_session_confirm with the
 * first packet; cw_session_end. */
#pragma once

#include "dataplane/state/endpoint.h"

/* The largest payload that both sides take. A signed session leaves some of it unused until it is confirmed: the peer
 * may yet insist on a sealed one. */
static inline uint32_t cw_session_agreed(const struct cw_endpoint *endpoint, const struct cw_session *session)
{
    bool spares = endpoint->config.encryption != CW_ENCRYPTION_OFF && session->seal == NULL && !session->confirmed;
    return session->payload_bytes_agreed - (spares ? (uint32_t)CW_WIRE_MAC_BYTES : 0);
}

/* Sets the largest payload from that and from the path MTU known so far. */
static inline void cw_session_limit(const struct cw_endpoint *endpoint, struct cw_session *session)
{
    uint32_t agreed = cw_session_agreed(endpoint, session);
    session->payload_bytes_max =
        agreed < session->payload_bytes_proved ? (uint16_t)agreed : session->payload_bytes_proved;
}

/* Starts set-up if the flow is closed; does nothing if it is in progress or done. */
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
        cw_session_limit(endpoint, session);
    }
}

/* Ends a session since the path passes small packets only, and notifies the peer, so that both ends know. */
void cw_session_end_narrow(struct cw_endpoint *endpoint, struct cw_flow *flow);
/* Ends a session: all operations end with `status`, the state becomes `state`, and the application is notified. */
void cw_session_end(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_peer_state state, int status);

/* Ends a session whose seal is used up; true if it was. */
bool cw_session_spent(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Notifies connected peers that this endpoint goes. */
void cw_session_goodbye(struct cw_endpoint *endpoint);

/* Gives peer events that found no room before; returns how many. */
uint32_t cw_session_deliver(struct cw_endpoint *endpoint);
