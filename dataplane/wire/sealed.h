/* Sealed: the wire form of packets of an encrypted session, and of set-up packets that request one (WIRE.md).
 *
 * Invariants
 *   - What is opened has the form of an ordinary packet again, header and payload behind it, so that everything behind
 *     the checks is the same.
 *   - Before a sealed packet has been opened, only the fields that find its key are read. */
#pragma once

#include <string.h>

#include "dataplane/wire/wire.h"

enum {
    CW_WIRE_MAC_BYTES = 16,      /* behind the payload */
    CW_WIRE_READABLE_BYTES = 16, /* of a sealed packet: authenticated, not encrypted */
    CW_WIRE_FIELDS_BYTES = 24,   /* of the header, encrypted: number to checksum */
    CW_WIRE_SETUP_KEY_BYTES = 32,
    CW_WIRE_SETUP_NONCE_BYTES = 24,
    CW_WIRE_FLOW_BITS = 24, /* of `flow` in sealed packets, the receiver's number; above it which of its keys */
};

/* The header of a sealed packet: the readable part, then the fields of the ordinary one from `number` to `checksum`,
 * which is 0. */
struct __attribute__((packed)) cw_wire_sealed {
    uint8_t version;
    uint8_t type;
    uint16_t flags; /* with CW_WIRE_ENCRYPTED */
    uint32_t flow;
    uint64_t count; /* of the packets sent under this key, retransmissions included; never twice the same */
    uint8_t fields[CW_WIRE_FIELDS_BYTES];
};
static_assert(sizeof(struct cw_wire_sealed) == CW_WIRE_HEADER_BYTES &&
                  offsetof(struct cw_wire_sealed, fields) == CW_WIRE_READABLE_BYTES &&
                  offsetof(struct cw_wire_header, tag) - offsetof(struct cw_wire_header, number) ==
                      CW_WIRE_FIELDS_BYTES,
              "a sealed header is as long as any other, and holds the same");

/* A sealed set-up packet: the readable part, a random nonce, and then, encrypted, two fields of the header and the
 * set-up itself. */
struct __attribute__((packed)) cw_wire_sealed_setup {
    uint8_t version;
    uint8_t type;
    uint16_t flags;
    uint32_t flow; /* 0 */
    uint8_t nonce[CW_WIRE_SETUP_NONCE_BYTES];
    uint32_t timestamp;
    uint32_t echo;
    struct cw_wire_hello hello;
    uint8_t mac[CW_WIRE_MAC_BYTES];
};
static_assert(sizeof(struct cw_wire_sealed_setup) ==
                  CW_WIRE_HEADER_BYTES + sizeof(struct cw_wire_hello) + CW_WIRE_MAC_BYTES,
              "as long as an ordinary one, and the MAC");

/* Writes a header in its form before sealing. `flags` of the header without CW_WIRE_ENCRYPTED. */
static inline void cw_wire_sealed_write(struct cw_wire_sealed *sealed, const struct cw_wire_header *header,
                                        uint64_t count)
{
    uint64_t words[4];
    cw_wire_header_words(header, words);
    words[0] |= (uint64_t)CW_WIRE_ENCRYPTED << 16;
    memcpy(sealed, words, 8);
    memcpy((uint8_t *)sealed + 8, &count, 8);
    memcpy(sealed->fields, &words[1], CW_WIRE_FIELDS_BYTES);
}

/* Bytes that are encrypted in a sealed packet that cw_wire_parse has found good; the MAC is behind them. */
uint32_t cw_wire_sealed_bytes(const struct cw_wire_header *header);

/* Gives a packet that has been opened the form of an ordinary one, in place. False: its lengths do not agree. */
static inline bool cw_wire_sealed_restore(struct cw_wire_header *header, uint32_t sealed_bytes)
{
    struct cw_wire_sealed sealed;
    memcpy(&sealed, header, sizeof(sealed));
    memcpy(&header->number, sealed.fields, CW_WIRE_FIELDS_BYTES);
    header->tag = 0;
    return header->payload_bytes == sealed_bytes - CW_WIRE_FIELDS_BYTES;
}

/* The key and the salt of packets from the holder of `sender_session` to the holder of `receiver_session`: BLAKE2b
 * under the job key. */
struct cw_wire_seal_key {
    uint8_t key[16];
    uint8_t salt[4];
};
void cw_wire_seal_derive(struct cw_wire_seal_key *key, const uint8_t job_key[16], uint64_t sender_session,
                         uint64_t receiver_session);

/* The key of sealed set-up packets, of all of a job. */
void cw_wire_setup_derive(uint8_t key[CW_WIRE_SETUP_KEY_BYTES], const uint8_t job_key[16]);

/* A nonce for a set-up packet: keyed hash of `bytes` bytes that no other set-up packet of the job was made from. */
void cw_wire_setup_nonce(uint8_t nonce[CW_WIRE_SETUP_NONCE_BYTES], const uint8_t key[CW_WIRE_SETUP_KEY_BYTES],
                         const void *unique, uint32_t bytes);

/* Seals a set-up packet (XChaCha20-Poly1305) whose readable fields, nonce, timestamp, echo and hello are written. */
void cw_wire_setup_seal(struct cw_wire_sealed_setup *setup, const uint8_t key[CW_WIRE_SETUP_KEY_BYTES]);

/* Opens one into another; false: it is not the job's, or was altered. */
bool cw_wire_setup_unseal(const struct cw_wire_sealed_setup *sealed, const uint8_t key[CW_WIRE_SETUP_KEY_BYTES],
                          struct cw_wire_sealed_setup *setup);
