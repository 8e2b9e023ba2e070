/* Set-up packets: written and verified; session.c interprets them.
 *
 * Invariant: a set-up packet is signed by the job's key, or sealed under a key that is derived from it; both forms say
 * the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/state/endpoint.h"
#include "dataplane/wire/sealed.h"

/* A set-up packet as it is before it is signed or sealed, and after it has been verified. */
struct __attribute__((packed)) cw_setup {
    struct cw_wire_header header;
    struct cw_wire_hello hello;
};

/* What one says. */
struct cw_setup_content {
    uint64_t local; /* nonces */
    uint64_t peer;
    const struct cw_setup *echo; /* what is answered; NULL: nothing */
    bool sealed;
};

static inline bool cw_setup_is_sealed(const struct cw_setup *setup)
{
    return (setup->header.flags & CW_WIRE_ENCRYPTED) != 0;
}

/* The first numbers of the sender with this nonce. */
static inline uint32_t cw_setup_data_number(uint64_t session)
{
    return (uint32_t)(session >> 7);
}

static inline uint32_t cw_setup_control_number(uint64_t session)
{
    return (uint32_t)(session >> 29);
}

/* A nonce for an attempt to connect: not 0, and of no other attempt of the job. */
uint64_t cw_setup_session(struct cw_endpoint *endpoint);

/* Stages one. If the port has no buffer nothing is sent: set-up is tried again anyway. */
void cw_setup_send(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_wire_type type,
                   const struct cw_setup_content *content);

/* Opens a sealed set-up packet, or checks the tag and the checksum of another one. False: counted and to be
 * forgotten. */
bool cw_setup_verified(struct cw_endpoint *endpoint, const struct cw_wire_header *header, struct cw_setup *setup);

/* The stream that a set-up packet is for: how much further on than our first UDP port; of one that is below that, a
 * great number. */
static inline uint32_t cw_setup_stream(const struct cw_endpoint *endpoint, const struct cw_wire_hello *hello)
{
    return (uint32_t)hello->receiver_port - endpoint->config.address.udp_port;
}

/* The flow of a verified set-up packet: a new one if it asks for a stream of a process that is known, or if strangers
 * are let in. NULL: there is none. */
struct cw_flow *cw_setup_flow(struct cw_endpoint *endpoint, const struct cw_setup *setup);
