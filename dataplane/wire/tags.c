#include "dataplane/wire/tags.h"

/* The algorithm is that of the paper (Aumasson, Bernstein: SipHash, 2012), with one round for each word and three at
 * the end; no library has it, for one header or for several at once. The same round serves a number and a vector of
 * four. */
enum { LENGTH_SHIFT = 56, LAST_ROUNDS = 3 };

#define KEYED_0         0x736f6d6570736575ull
#define KEYED_1         0x646f72616e646f6dull
#define KEYED_2         0x6c7967656e657261ull
#define KEYED_3         0x7465646279746573ull
#define MESSAGE_LENGTH  (8ull * CW_WIRE_TAG_WORDS << LENGTH_SHIFT)
#define ALWAYS_INLINE   static inline __attribute__((always_inline))
#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

#define SIP_ROUND(s)                             \
    do {                                         \
        (s)->v0 += (s)->v1;                      \
        (s)->v1 = ROTATE((s)->v1, 13) ^ (s)->v0; \
        (s)->v0 = ROTATE((s)->v0, 32);           \
        (s)->v2 += (s)->v3;                      \
        (s)->v3 = ROTATE((s)->v3, 16) ^ (s)->v2; \
        (s)->v0 += (s)->v3;                      \
        (s)->v3 = ROTATE((s)->v3, 21) ^ (s)->v0; \
        (s)->v2 += (s)->v1;                      \
        (s)->v1 = ROTATE((s)->v1, 17) ^ (s)->v2; \
        (s)->v2 = ROTATE((s)->v2, 32);           \
    } while (0)

uint64_t cw_wire_tag_words(const uint64_t words[CW_WIRE_TAG_WORDS], const struct cw_wire_key *key)
{
    struct {
        uint64_t v0, v1, v2, v3;
    } s;
    uint64_t k[2];
    memcpy(k, key->bytes, sizeof(k));
    s.v0 = k[0] ^ KEYED_0;
    s.v1 = k[1] ^ KEYED_1;
    s.v2 = k[0] ^ KEYED_2;
    s.v3 = k[1] ^ KEYED_3;
    for (uint32_t i = 0; i <= CW_WIRE_TAG_WORDS; i++) {
        uint64_t word = i < CW_WIRE_TAG_WORDS ? words[i] : MESSAGE_LENGTH;
        s.v3 ^= word;
        SIP_ROUND(&s);
        s.v0 ^= word;
    }
    s.v2 ^= 0xff;
    for (uint32_t i = 0; i < LAST_ROUNDS; i++) {
        SIP_ROUND(&s);
    }
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* The tag of one lane. */
static uint64_t tag_alone(const struct cw_wire_tag_lanes *lanes, uint32_t lane)
{
    uint64_t words[CW_WIRE_TAG_WORDS];
    struct cw_wire_key key;
    for (uint32_t i = 0; i < CW_WIRE_TAG_WORDS; i++) {
        words[i] = lanes->words[i][lane];
    }
    memcpy(key.bytes, &lanes->keys[0][lane], 8);
    memcpy(key.bytes + 8, &lanes->keys[1][lane], 8);
    return cw_wire_tag_words(words, &key);
}

#if defined(__x86_64__)

/* Four lanes, in a vector type of the compiler's. Two such states are advanced together, since each alone waits for
 * itself. */
typedef uint64_t quad __attribute__((vector_size(32)));

struct state {
    quad v0, v1, v2, v3;
};

ALWAYS_INLINE void rounds(struct state *a, struct state *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        SIP_ROUND(a);
        SIP_ROUND(b);
    }
}

ALWAYS_INLINE void start(struct state *s, const uint64_t *key0, const uint64_t *key1)
{
    quad k0;
    quad k1;
    memcpy(&k0, key0, sizeof(k0));
    memcpy(&k1, key1, sizeof(k1));
    s->v0 = k0 ^ KEYED_0;
    s->v1 = k1 ^ KEYED_1;
    s->v2 = k0 ^ KEYED_2;
    s->v3 = k1 ^ KEYED_3;
}

ALWAYS_INLINE void finish(const struct state *s, uint64_t *tags)
{
    quad tag = s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
    memcpy(tags, &tag, sizeof(tag));
}

ALWAYS_INLINE void tag_lanes(const struct cw_wire_tag_lanes *lanes, uint64_t *tags)
{
    struct state a;
    struct state b;
    start(&a, &lanes->keys[0][0], &lanes->keys[1][0]);
    start(&b, &lanes->keys[0][4], &lanes->keys[1][4]);
    for (uint32_t i = 0; i < CW_WIRE_TAG_WORDS; i++) {
        quad word_a;
        quad word_b;
        memcpy(&word_a, &lanes->words[i][0], sizeof(word_a));
        memcpy(&word_b, &lanes->words[i][4], sizeof(word_b));
        a.v3 ^= word_a;
        b.v3 ^= word_b;
        rounds(&a, &b, 1);
        a.v0 ^= word_a;
        b.v0 ^= word_b;
    }
    a.v3 ^= MESSAGE_LENGTH;
    b.v3 ^= MESSAGE_LENGTH;
    rounds(&a, &b, 1);
    a.v0 ^= MESSAGE_LENGTH;
    b.v0 ^= MESSAGE_LENGTH;
    a.v2 ^= 0xff;
    b.v2 ^= 0xff;
    rounds(&a, &b, LAST_ROUNDS);
    finish(&a, tags);
    finish(&b, tags + 4);
}

__attribute__((target("avx512vl"))) static void tag_lanes_avx512vl(const struct cw_wire_tag_lanes *lanes,
                                                                   uint64_t *tags)
{
    tag_lanes(lanes, tags);
}

__attribute__((target("avx2"))) static void tag_lanes_avx2(const struct cw_wire_tag_lanes *lanes, uint64_t *tags)
{
    tag_lanes(lanes, tags);
}

static inline bool can(enum cw_wire_tags_way way)
{
    switch (way) {
    case CW_WIRE_TAGS_AVX512VL:
        return __builtin_cpu_supports("avx512vl");
    case CW_WIRE_TAGS_AVX2:
        return __builtin_cpu_supports("avx2");
    default:
        return true;
    }
}

static inline void tag_vector(const struct cw_wire_tag_lanes *lanes, uint64_t *tags, enum cw_wire_tags_way way)
{
    if (way == CW_WIRE_TAGS_AVX512VL) {
        tag_lanes_avx512vl(lanes, tags);
    } else {
        tag_lanes_avx2(lanes, tags);
    }
}

#else

static inline bool can(enum cw_wire_tags_way way)
{
    return way == CW_WIRE_TAGS_BEST || way == CW_WIRE_TAGS_ALONE;
}

static inline void tag_vector(const struct cw_wire_tag_lanes *lanes, uint64_t *tags, enum cw_wire_tags_way way)
{
    (void)lanes;
    (void)tags;
    (void)way;
}

#endif

static inline enum cw_wire_tags_way best_way(void)
{
    return can(CW_WIRE_TAGS_AVX512VL) ? CW_WIRE_TAGS_AVX512VL
           : can(CW_WIRE_TAGS_AVX2)   ? CW_WIRE_TAGS_AVX2
                                      : CW_WIRE_TAGS_ALONE;
}

bool cw_wire_tags_compute_as(struct cw_wire_tags *tags, enum cw_wire_tags_way way)
{
    if (!can(way)) {
        return false;
    }
    way = way == CW_WIRE_TAGS_BEST ? best_way() : way;
    for (uint32_t first = 0; first < tags->count; first += CW_WIRE_TAG_LANES) {
        const struct cw_wire_tag_lanes *lanes = &tags->lanes[first / CW_WIRE_TAG_LANES];
        uint32_t left = tags->count - first;
        left = left < CW_WIRE_TAG_LANES ? left : CW_WIRE_TAG_LANES;
        /* unused lanes are computed too, from any contents */
        if (left > CW_WIRE_TAGS_FEW && way != CW_WIRE_TAGS_ALONE) {
            tag_vector(lanes, &tags->value[first], way);
            continue;
        }
        for (uint32_t lane = 0; lane < left; lane++) {
            tags->value[first + lane] = tag_alone(lanes, lane);
        }
    }
    return true;
}

void cw_wire_tags_compute(struct cw_wire_tags *tags)
{
    (void)cw_wire_tags_compute_as(tags, CW_WIRE_TAGS_BEST);
}
