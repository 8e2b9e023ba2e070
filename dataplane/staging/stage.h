/* stage: what leaves: packets are staged, signed or sealed together, and flushed to the port. */
#pragma once

#include <assert.h>

#include "dataplane/staging/seal.h"
#include "dataplane/state/endpoint.h"

/* A buffer to write a packet into, already the last of `staged`; NULL: the port has none. The packet leaves with the
 * next flush. */
struct cw_transmit *cw_stage(struct cw_endpoint *endpoint);

/* Where the header of a packet is. */
static inline struct cw_wire_header *cw_staged_header(const struct cw_endpoint *endpoint,
                                                      const struct cw_transmit *packet)
{
    return (struct cw_wire_header *)(packet->data + endpoint->overhead_bytes - CW_WIRE_HEADER_BYTES);
}

static_assert((int)CW_BURST <= (int)CW_WIRE_TAGS_MAX && CW_BURST <= UINT8_MAX, "a tag for each staged packet");

/* Puts the header of a staged packet in its place, as cw_wire_header_words has it, to be signed with `key` when it
 * leaves, and `in_buffer` payload bytes behind it. Once for each staged packet. */
static inline void cw_words_signed(struct cw_endpoint *endpoint, struct cw_transmit *packet,
                                   const uint64_t header[CW_WIRE_TAG_WORDS], uint64_t number,
                                   const struct cw_wire_key *key, uint32_t in_buffer)
{
    uint8_t *at = (uint8_t *)cw_staged_header(endpoint, packet);
    uint64_t words[CW_WIRE_TAG_WORDS];
    for (uint32_t i = 0; i < CW_WIRE_TAG_WORDS; i++) {
        words[i] = header[i];
        /* to both places from registers: a compiler that stores the words here, to copy them in wider pieces, has the
         * core wait for the stores */
        __asm__("" : "+r"(words[i]));
        memcpy(at + i * sizeof(words[i]), &words[i], sizeof(words[i]));
    }
    assert(endpoint->tags.count < endpoint->staged_count);
    cw_wire_tag_number(words, (uint32_t)(number >> 32));
    endpoint->tag_places[endpoint->tags.count] = (uint8_t)(packet - endpoint->staged);
    cw_wire_tags_add(&endpoint->tags, words, key);
    packet->length = endpoint->overhead_bytes + in_buffer;
}

/* As cw_words_signed, of a header. */
static inline void cw_header_signed(struct cw_endpoint *endpoint, struct cw_transmit *packet,
                                    const struct cw_wire_header *header, uint64_t number, const struct cw_wire_key *key,
                                    uint32_t in_buffer)
{
    uint64_t words[CW_WIRE_TAG_WORDS];
    cw_wire_header_words(header, words);
    cw_words_signed(endpoint, packet, words, number, key, in_buffer);
}

/* The same for a packet that is sealed: all its payload is in the buffer. A seal that is used up seals nothing more:
 * its packets leave as zeros. */
static inline void cw_header_sealed(struct cw_endpoint *endpoint, struct cw_transmit *packet,
                                    const struct cw_wire_header *header, struct cw_seal *seal)
{
    struct cw_wire_header *at = cw_staged_header(endpoint, packet);
    packet->length = endpoint->overhead_bytes + header->payload_bytes + CW_WIRE_MAC_BYTES;
    if (seal->sent >= CW_SEAL_COUNT_MAX) {
        memset(at, 0, CW_WIRE_HEADER_BYTES + header->payload_bytes + CW_WIRE_MAC_BYTES);
        return;
    }
    cw_wire_sealed_write((struct cw_wire_sealed *)at, header, seal->sent++);
    endpoint->departures[packet - endpoint->staged].seal = seal;
}

/* How long ago a timestamp came that is echoed by a packet that leaves then, as the header has it. */
static inline uint16_t cw_echo_delay(uint64_t departure_ns, bool has_echo, uint64_t arrival_ns)
{
    uint64_t held = (departure_ns - arrival_ns) >> CW_WIRE_DELAY_SHIFT;
    return has_echo && held < CW_WIRE_DELAY_UNKNOWN ? (uint16_t)held : CW_WIRE_DELAY_UNKNOWN;
}

/* Has the UDP checksum of the packet that was staged last be wrong when it leaves, each time in another bit. */
void cw_falsify(struct cw_endpoint *endpoint, uint32_t count);

/* Signs or seals what is staged and complete. */
void cw_sign(struct cw_endpoint *endpoint);

/* Signs and hands what is staged to the port. False: the port is full. */
bool cw_flush(struct cw_endpoint *endpoint);
