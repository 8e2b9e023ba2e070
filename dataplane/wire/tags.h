/* Tags of several packets at once: SipHash is a chain of dependent steps, so a core computes the tags of eight headers,
 * one in each lane of its vector registers, in little more time than that of one.
 *
 * Order of calls
 *    tags.count = 0; { cw_wire_tags_add }*; cw_wire_tags_compute; results in tags.value[], in the order of the calls */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "dataplane/wire/wire.h"

enum {
    CW_WIRE_TAG_LANES = 8,
    CW_WIRE_TAG_WORDS = 4, /* of a header, that the tag covers */
    CW_WIRE_TAGS_MAX = 64,
    CW_WIRE_TAGS_FEW = 2, /* this number is faster computed alone */
};

/* The headers of eight packets, word by word, and their keys. */
struct cw_wire_tag_lanes {
    uint64_t words[CW_WIRE_TAG_WORDS][CW_WIRE_TAG_LANES];
    uint64_t keys[2][CW_WIRE_TAG_LANES];
};

struct cw_wire_tags {
    uint32_t count;
    struct cw_wire_tag_lanes lanes[CW_WIRE_TAGS_MAX / CW_WIRE_TAG_LANES];
    uint64_t value[CW_WIRE_TAGS_MAX];
};

/* Converts a header's words to the input of its tag: the high half of the packet's number replaces `flow`. */
static inline void cw_wire_tag_number(uint64_t words[CW_WIRE_TAG_WORDS], uint32_t number_high)
{
    words[0] = (words[0] & UINT32_MAX) | (uint64_t)number_high << 32;
}

/* One more packet, at most CW_WIRE_TAGS_MAX: the first 32 bytes of its header, `flow` replaced by the high half of its
 * number. */
static inline void cw_wire_tags_add(struct cw_wire_tags *tags, const uint64_t words[CW_WIRE_TAG_WORDS],
                                    const struct cw_wire_key *key)
{
    assert(tags->count < CW_WIRE_TAGS_MAX);
    struct cw_wire_tag_lanes *lanes = &tags->lanes[tags->count / CW_WIRE_TAG_LANES];
    uint32_t lane = tags->count % CW_WIRE_TAG_LANES;
    for (uint32_t i = 0; i < CW_WIRE_TAG_WORDS; i++) {
        lanes->words[i][lane] = words[i];
    }
    memcpy(&lanes->keys[0][lane], key->bytes, 8);
    memcpy(&lanes->keys[1][lane], key->bytes + 8, 8);
    tags->count++;
}

/* True if the packet was added with this key. */
static inline bool cw_wire_tags_key_is(const struct cw_wire_tags *tags, uint32_t index, const struct cw_wire_key *key)
{
    const struct cw_wire_tag_lanes *lanes = &tags->lanes[index / CW_WIRE_TAG_LANES];
    uint64_t words[2];
    memcpy(words, key->bytes, sizeof(words));
    return lanes->keys[0][index % CW_WIRE_TAG_LANES] == words[0] &&
           lanes->keys[1][index % CW_WIRE_TAG_LANES] == words[1];
}

/* The tag of one packet, with the input of cw_wire_tags_add. */
uint64_t cw_wire_tag_words(const uint64_t words[CW_WIRE_TAG_WORDS], const struct cw_wire_key *key);

/* The method for tags; if a core lacks it, they are computed one by one. */
enum cw_wire_tags_way { CW_WIRE_TAGS_BEST, CW_WIRE_TAGS_ALONE, CW_WIRE_TAGS_AVX2, CW_WIRE_TAGS_AVX512VL };

/* As cw_wire_tags_compute, in a given way; false: this core cannot, and nothing was computed. */
bool cw_wire_tags_compute_as(struct cw_wire_tags *tags, enum cw_wire_tags_way way);

/* Computes all tags; each equals the result of cw_wire_tag for that header alone. */
void cw_wire_tags_compute(struct cw_wire_tags *tags);
