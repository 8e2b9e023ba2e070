/* LORENZO for words of one width: included for each, with WORD, SIGNED, WORD_BITS, LANES, FIELD (of the scratch), CLZ,
 * CTZ and NAME(x).
 *
 * A chunk: the first word unchanged; a head for each group of 2 x LANES residuals; then the residuals' bits, zigzagged,
 * lane by lane: LANES streams of words side by side, so that one vector instruction serves all lanes. The end of the
 * streams is cut to whole bytes. A head is a byte: the number of bits of each residual of the group. With SHIFTED set,
 * the next byte is the number of zeros at the ends of all of them. WORD_BITS + n: few are not zero; a mask marks them,
 * and they follow, n bytes each. */

typedef WORD NAME(lanes) __attribute__((vector_size(64)));
typedef SIGNED NAME(signed_lanes) __attribute__((vector_size(64)));
typedef WORD NAME(lanes_anywhere) __attribute__((vector_size(64), aligned(sizeof(WORD)), may_alias));

#define AT(words) (*(const NAME(lanes_anywhere) *)(words))

enum { NAME(GROUP) = 2 * LANES };

/* Floating-point numbers as integers in the same order, and back. */
BODY WORD NAME(ordered)(WORD bits)
{
    WORD sign = (WORD) - (bits >> (WORD_BITS - 1));
    return bits ^ sign >> 1;
}

BODY void NAME(load_some)(WORD *words, const struct cw_lorenzo_source *source, uint32_t from, uint32_t to)
{
    memcpy(words + from, source->at + from * sizeof(WORD), (to - from) * sizeof(WORD));
    if (source->is_float) {
        for (uint32_t i = from; i < to; i++) {
            words[i] = NAME(ordered)(words[i]);
        }
    }
}

static void NAME(load)(struct cw_codec_scratch *scratch, const struct cw_lorenzo_source *source)
{
    NAME(load_some)(scratch->words.FIELD, source, 0, source->count);
}

/* The prediction of the word at `i`, by the differences with all their words present. */
BODY WORD NAME(expected)(const WORD *words, struct cw_lorenzo predictor, uint32_t i)
{
    const WORD *at = words + i;
    uint32_t a = predictor.steps[0];
    uint32_t b = predictor.steps[1];
    uint32_t c = predictor.steps[2];
    WORD value = at[i < a ? -1 : -(ptrdiff_t)a];
    if (b > 0 && i >= a + b) {
        value += at[-(ptrdiff_t)b] - at[-(ptrdiff_t)(a + b)];
        if (c > 0 && i >= a + b + c) {
            value +=
                at[-(ptrdiff_t)c] - at[-(ptrdiff_t)(a + c)] - at[-(ptrdiff_t)(b + c)] + at[-(ptrdiff_t)(a + b + c)];
        }
    }
    return value;
}

/* How many of the predictor's differences all of LANES words from `i` on have. 0: they have the one with the word
 * before them; 4: they are not alike. */
BODY uint32_t NAME(order)(struct cw_lorenzo predictor, uint32_t i)
{
    uint32_t two = predictor.steps[1] > 0 ? predictor.steps[0] + predictor.steps[1] : UINT32_MAX;
    uint32_t three = predictor.steps[2] > 0 ? two + predictor.steps[2] : UINT32_MAX;
    if (i >= three) {
        return 3;
    }
    if (i >= two) {
        return i + LANES <= three ? 2 : 4;
    }
    if (i >= predictor.steps[0]) {
        return i + LANES <= two ? 1 : 4;
    }
    return i + LANES <= predictor.steps[0] ? 0 : 4;
}

/* The residuals of LANES words from `i` on. */
BODY void NAME(residuals)(const WORD *words, struct cw_lorenzo predictor, uint32_t i, NAME(lanes) * out)
{
    const WORD *at = words + i;
    uint32_t a = predictor.steps[0];
    uint32_t b = predictor.steps[1];
    uint32_t c = predictor.steps[2];
    uint32_t order = NAME(order)(predictor, i);
    if (order == 4) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            (*out)[lane] = at[lane] - NAME(expected)(words, predictor, i + lane);
        }
        return;
    }
    NAME(lanes) value = AT(at) - AT(at - (order == 0 ? 1 : a));
    if (order >= 2) {
        value += AT(at - a - b) - AT(at - b);
    }
    if (order == 3) {
        value += AT(at - a - c) - AT(at - c);
        value += AT(at - b - c) - AT(at - a - b - c);
    }
    *out = value;
}

BODY WORD NAME(any)(const NAME(lanes) * lanes)
{
    WORD any = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        any |= (*lanes)[lane];
    }
    return any;
}

BODY void NAME(zigzag)(NAME(lanes) * value)
{
    *value = (*value << 1) ^ -(*value >> (WORD_BITS - 1));
}

BODY void NAME(zigzag_back)(NAME(lanes) * value)
{
    *value = (*value >> 1) ^ -(*value & 1);
}

/* Of a group: its residuals, how many bits they need, and how many zeros they end with. */
struct NAME(group) {
    NAME(lanes) rows[2];
    uint32_t bits;
    uint32_t shift;
    uint32_t sparse_bytes; /* of each residual that is not zero; 0: it is dense */
    uint32_t mask;         /* sparse: which ones those are */
};

/* Most residuals are zero: the others follow the head. */
BODY void NAME(group_thin)(struct NAME(group) * group)
{
    group->mask = 0;
    for (uint32_t k = 0; k < NAME(GROUP); k++) {
        group->mask |= (uint32_t)(group->rows[k / LANES][k % LANES] != 0) << k;
    }
    uint32_t bytes = (group->bits + 7) / 8;
    uint32_t sparse = (uint32_t)NAME(GROUP) / 8 + (uint32_t)__builtin_popcount(group->mask) * bytes;
    group->sparse_bytes = 8 * sparse < NAME(GROUP) * group->bits ? bytes : 0;
}

/* Bytes of its head, and bits of a row in the streams. */
BODY uint32_t NAME(group_head)(const struct NAME(group) * group)
{
    uint32_t values = group->sparse_bytes * (uint32_t)__builtin_popcount(group->mask);
    return 1u + (group->shift > 0 ? 1u : 0u) + (group->sparse_bytes > 0 ? (uint32_t)NAME(GROUP) / 8 + values : 0);
}

BODY uint32_t NAME(group_row)(const struct NAME(group) * group)
{
    return group->sparse_bytes > 0 ? 0 : group->bits;
}

BODY void NAME(group_make)(const WORD *words, struct cw_lorenzo predictor, uint32_t i, uint32_t count,
                           struct NAME(group) * group)
{
    NAME(residuals)(words, predictor, i, &group->rows[0]);
    NAME(residuals)(words, predictor, i + LANES, &group->rows[1]);
    if (count < NAME(GROUP)) { /* the last one */
        for (uint32_t k = count; k < NAME(GROUP); k++) {
            group->rows[k / LANES][k % LANES] = 0;
        }
    }
    NAME(lanes) plain = group->rows[0] | group->rows[1];
    NAME(lanes) zigzagged[2] = {group->rows[0], group->rows[1]};
    NAME(zigzag)(&zigzagged[0]);
    NAME(zigzag)(&zigzagged[1]);
    NAME(lanes) joined = zigzagged[0] | zigzagged[1];
    WORD any = NAME(any)(&joined);
    group->bits = any == 0 ? 0 : WORD_BITS - (uint32_t)CLZ(any);
    group->shift = 0;
    group->sparse_bytes = 0;
    if (any != 0) {
        uint32_t zeros = (uint32_t)CTZ(NAME(any)(&plain));
        if (zeros > 1) { /* more than the byte costs that says so */
            group->shift = zeros;
            group->bits -= zeros;
            group->rows[0] = (NAME(lanes))((NAME(signed_lanes))group->rows[0] >> (SIGNED)zeros);
            group->rows[1] = (NAME(lanes))((NAME(signed_lanes))group->rows[1] >> (SIGNED)zeros);
            NAME(zigzag)(&group->rows[0]);
            NAME(zigzag)(&group->rows[1]);
            NAME(group_thin)(group);
            return;
        }
    }
    group->rows[0] = zigzagged[0];
    group->rows[1] = zigzagged[1];
    if (any != 0) {
        NAME(group_thin)(group);
    }
}

/* LANES streams of bits in progress. */
struct NAME(pack) {
    NAME(lanes) under_way;
    uint32_t bits; /* in it */
    uint8_t *at;
};

BODY void NAME(pack_row)(struct NAME(pack) * pack, const NAME(lanes) * row, uint32_t bits)
{
    pack->under_way |= *row << pack->bits;
    uint32_t end = pack->bits + bits;
    if (end >= WORD_BITS) {
        memcpy(pack->at, &pack->under_way, 64);
        pack->at += 64;
        end -= WORD_BITS;
        NAME(lanes) zero = {0};
        pack->under_way = end == 0 ? zero : *row >> (bits - end);
    }
    pack->bits = end;
}

/* Bytes that the streams take with `bits` more in each. */
BODY uint32_t NAME(pack_bytes)(const struct NAME(pack) * pack, const uint8_t *begin, uint32_t bits)
{
    uint32_t end = pack->bits + bits;
    return (uint32_t)(pack->at - begin) + end / WORD_BITS * 64 + LANES * ((end % WORD_BITS + 7) / 8);
}

/* True if a group of `count` words still fits the chunk. */
BODY bool NAME(fits)(const struct NAME(pack) * pack, const uint8_t *begin, const struct NAME(group) * group,
                     uint32_t count, uint32_t head, uint32_t capacity)
{
    uint32_t rows = count > LANES ? 2 : 1;
    return head + NAME(group_head)(group) + NAME(pack_bytes)(pack, begin, rows * NAME(group_row)(group)) <= capacity;
}

BODY void NAME(pack_end)(struct NAME(pack) * pack)
{
    uint32_t bytes = (pack->bits + 7) / 8;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        WORD word = pack->under_way[lane];
        memcpy(pack->at, &word, sizeof(word));
        pack->at += bytes;
    }
}

/* Returns where the next one begins. */
BODY uint32_t NAME(head_write)(const struct NAME(group) * group, uint8_t *to, uint32_t head)
{
    uint32_t sparse = group->sparse_bytes;
    to[head++] = (uint8_t)((sparse > 0 ? WORD_BITS + sparse : group->bits) | (group->shift > 0 ? SHIFTED : 0));
    if (group->shift > 0) {
        to[head++] = (uint8_t)group->shift;
    }
    if (sparse > 0) {
        memcpy(to + head, &group->mask, NAME(GROUP) / 8);
        head += NAME(GROUP) / 8;
        for (uint32_t left = group->mask; left != 0; left &= left - 1) {
            uint32_t k = (uint32_t)__builtin_ctz(left);
            WORD word = group->rows[k / LANES][k % LANES];
            memcpy(to + head, &word, sparse);
            head += sparse;
        }
    }
    return head;
}

BODY uint32_t NAME(fill_body)(struct cw_codec_scratch *scratch, struct cw_lorenzo predictor,
                              const struct cw_lorenzo_source *source, uint8_t *to, uint32_t capacity, uint32_t *bytes)
{
    WORD *words = scratch->words.FIELD;
    struct NAME(pack) pack = {.at = scratch->packed};
    uint32_t seeds = 1;
    uint32_t head = seeds * (uint32_t)sizeof(WORD);
    if (source->count <= seeds || head + 2 > capacity) {
        return 0;
    }
    NAME(load_some)(words, source, 0, seeds);
    memcpy(to, source->at, head);
    uint32_t i = seeds;
    bool is_cut = false;
    while (i < source->count && !is_cut) {
        uint32_t count = source->count - i < NAME(GROUP) ? source->count - i : NAME(GROUP);
        NAME(load_some)(words, source, i, i + count);
        struct NAME(group) group;
        NAME(group_make)(words, predictor, i, count, &group);
        if (!NAME(fits)(&pack, scratch->packed, &group, count, head, capacity)) {
            is_cut = true; /* half of it may */
            count = count < LANES ? count : LANES;
            NAME(group_make)(words, predictor, i, count, &group);
            if (!NAME(fits)(&pack, scratch->packed, &group, count, head, capacity)) {
                break;
            }
        }
        head = NAME(head_write)(&group, to, head);
        uint32_t row_bits = NAME(group_row)(&group);
        for (uint32_t row = 0; row_bits > 0 && row < (count > LANES ? 2u : 1u); row++) {
            NAME(pack_row)(&pack, &group.rows[row], row_bits);
        }
        i += count;
    }
    uint32_t packed = NAME(pack_bytes)(&pack, scratch->packed, 0);
    NAME(pack_end)(&pack);
    memcpy(to + head, scratch->packed, packed);
    *bytes = head + packed;
    return i;
}

/* Bits of the sample's residuals, a group at a time, as `load` left it. */
BODY uint32_t NAME(price_body)(struct cw_codec_scratch *scratch, struct cw_lorenzo predictor, uint32_t count,
                               uint32_t most)
{
    uint32_t bits = WORD_BITS;
    for (uint32_t i = 1; i + NAME(GROUP) <= count && bits < most; i += NAME(GROUP)) {
        struct NAME(group) group;
        NAME(group_make)(scratch->words.FIELD, predictor, i, NAME(GROUP), &group);
        bits += 8 * NAME(group_head)(&group) + NAME(group_row)(&group) * NAME(GROUP);
    }
    return bits;
}

/* The other end of the streams. */
struct NAME(unpack) {
    NAME(lanes) under_way;
    uint32_t bits; /* of it that are used */
    const uint8_t *at;
    const uint8_t *whole; /* words from here on are cut */
    uint32_t cut_bytes;   /* of a lane */
};

BODY void NAME(unpack_next)(struct NAME(unpack) * unpack)
{
    if (unpack->at < unpack->whole) {
        memcpy(&unpack->under_way, unpack->at, 64);
        unpack->at += 64;
        return;
    }
    for (uint32_t lane = 0; lane < LANES; lane++) {
        WORD word = 0;
        memcpy(&word, unpack->at + lane * unpack->cut_bytes, unpack->cut_bytes);
        unpack->under_way[lane] = word;
    }
}

BODY void NAME(unpack_row)(struct NAME(unpack) * unpack, uint32_t bits, NAME(lanes) * row)
{
    if (bits == 0) {
        NAME(lanes) zero = {0};
        *row = zero;
        return;
    }
    if (unpack->bits == WORD_BITS) {
        NAME(unpack_next)(unpack);
        unpack->bits = 0;
    }
    WORD mask = (WORD)-1 >> (WORD_BITS - bits);
    *row = unpack->under_way >> unpack->bits;
    unpack->bits += bits;
    if (unpack->bits > WORD_BITS) {
        NAME(unpack_next)(unpack);
        unpack->bits -= WORD_BITS;
        *row |= unpack->under_way << (bits - unpack->bits);
    }
    *row &= mask;
}

/* Residuals to words: each needs those before it. */
BODY void NAME(restore)(WORD *words, struct cw_lorenzo predictor, uint32_t i, uint32_t count)
{
    for (uint32_t k = i; k < i + count; k++) {
        words[k] += NAME(expected)(words, predictor, k);
    }
}

/* The bytes of heads, if heads and streams are exactly the chunk; else 0. */
BODY uint32_t NAME(heads_measure)(const uint8_t *chunk, uint32_t bytes, uint32_t head, uint32_t left, uint32_t *bits)
{
    *bits = 0;
    while (left > 0) {
        uint32_t count = left < NAME(GROUP) ? left : NAME(GROUP);
        if (head >= bytes) {
            return 0;
        }
        uint8_t said = chunk[head++];
        if ((said & SHIFTED) != 0 && (head >= bytes || chunk[head++] >= WORD_BITS)) {
            return 0;
        }
        uint32_t code = said & (uint32_t)BITS;
        if (code <= WORD_BITS) {
            *bits += (count > LANES ? 2u : 1u) * code;
        } else {
            uint32_t mask = 0;
            if (code > WORD_BITS + sizeof(WORD) || bytes - head < NAME(GROUP) / 8) {
                return 0;
            }
            memcpy(&mask, chunk + head, NAME(GROUP) / 8);
            head += NAME(GROUP) / 8 + (uint32_t)__builtin_popcount(mask) * (code - WORD_BITS);
            if (head > bytes || (count < NAME(GROUP) && mask >> count != 0)) {
                return 0;
            }
        }
        left -= count;
    }
    uint32_t streams = *bits / WORD_BITS * 64 + LANES * ((*bits % WORD_BITS + 7) / 8);
    return head + streams == bytes ? head : 0;
}

/* The residuals of a sparse group; returns where the next head is. heads_measure has found all of them there. */
BODY uint32_t NAME(sparse_read)(const uint8_t *chunk, uint32_t at, uint32_t value_bytes, NAME(lanes) * rows)
{
    uint32_t mask = 0;
    memcpy(&mask, chunk + at, NAME(GROUP) / 8);
    at += NAME(GROUP) / 8;
    for (; mask != 0; mask &= mask - 1) {
        uint32_t k = (uint32_t)__builtin_ctz(mask);
        WORD word = 0;
        memcpy(&word, chunk + at, value_bytes);
        rows[k / LANES][k % LANES] = word;
        at += value_bytes;
    }
    return at;
}

BODY bool NAME(expand_body)(struct cw_codec_scratch *scratch, struct cw_lorenzo predictor, const uint8_t *chunk,
                            uint32_t bytes, uint8_t *to, uint32_t count, bool is_float)
{
    WORD *words = scratch->words.FIELD;
    uint32_t seeds = 1;
    uint32_t at = seeds * (uint32_t)sizeof(WORD);
    if (count <= seeds || at >= bytes) {
        return false;
    }
    uint32_t bits;
    uint32_t heads = NAME(heads_measure)(chunk, bytes, at, count - seeds, &bits);
    if (heads == 0) {
        return false;
    }
    NAME(load_some)(words, &(struct cw_lorenzo_source){chunk, seeds, is_float}, 0, seeds);
    struct NAME(unpack) unpack = {
        .bits = WORD_BITS,
        .at = chunk + heads,
        .whole = chunk + heads + bits / WORD_BITS * 64,
        .cut_bytes = (bits % WORD_BITS + 7) / 8,
    };
    for (uint32_t i = seeds; i < count; i += NAME(GROUP)) {
        uint32_t here = count - i < NAME(GROUP) ? count - i : NAME(GROUP);
        uint8_t said = chunk[at++];
        uint32_t shift = (said & SHIFTED) != 0 ? chunk[at++] : 0;
        uint32_t code = said & (uint32_t)BITS;
        NAME(lanes) rows[2] = {{0}, {0}};
        if (code > WORD_BITS) {
            at = NAME(sparse_read)(chunk, at, code - WORD_BITS, rows);
        } else {
            NAME(unpack_row)(&unpack, code, &rows[0]);
            if (here > LANES) {
                NAME(unpack_row)(&unpack, code, &rows[1]);
            }
        }
        for (uint32_t row = 0; row < 2; row++) {
            NAME(zigzag_back)(&rows[row]);
            rows[row] <<= (WORD)shift;
            memcpy(words + i + row * LANES, &rows[row], 64);
        }
        NAME(restore)(words, predictor, i, here);
    }
    for (uint32_t i = 0; is_float && i < count; i++) {
        words[i] = NAME(ordered)(words[i]);
    }
    memcpy(to, words, count * sizeof(WORD));
    return true;
}

#define TWICE(target, suffix)                                                                                          \
    target static uint32_t NAME(fill_##suffix)(struct cw_codec_scratch * scratch, struct cw_lorenzo predictor,         \
                                               const struct cw_lorenzo_source *source, uint8_t *to, uint32_t capacity, \
                                               uint32_t *bytes)                                                        \
    {                                                                                                                  \
        return NAME(fill_body)(scratch, predictor, source, to, capacity, bytes);                                       \
    }                                                                                                                  \
    target static bool NAME(expand_##suffix)(struct cw_codec_scratch * scratch, struct cw_lorenzo predictor,           \
                                             const uint8_t *chunk, uint32_t bytes, uint8_t *to, uint32_t count,        \
                                             bool is_float)                                                            \
    {                                                                                                                  \
        return NAME(expand_body)(scratch, predictor, chunk, bytes, to, count, is_float);                               \
    }                                                                                                                  \
    target static uint32_t NAME(price_##suffix)(struct cw_codec_scratch * scratch, struct cw_lorenzo predictor,        \
                                                uint32_t count, uint32_t most)                                         \
    {                                                                                                                  \
        return NAME(price_body)(scratch, predictor, count, most);                                                      \
    }                                                                                                                  \
    static const struct cw_lorenzo_calls NAME(calls_##suffix) = {NAME(fill_##suffix), NAME(expand_##suffix),           \
                                                                 NAME(price_##suffix), NAME(load)};

VERSIONS(TWICE)
#undef TWICE
#undef AT
