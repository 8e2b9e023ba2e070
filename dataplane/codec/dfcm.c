#include "dataplane/codec/dfcm.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/codec/codecs.h"

enum {
    TOP_BITS = 14,        /* of a difference: sign, exponent, two of the mantissa */
    TAIL = 32,            /* bytes before the end of input or output at which long steps stop */
    VALUE_BYTES_MAX = 16, /* that a step may write or read, from where it begins */
};

#define BODY static inline __attribute__((always_inline))

/* State from the values before: the last one, the tops of the last three differences, by which the latest one is looked
 * up. */
struct context {
    double last;
    uint32_t older; /* input of the next hash from the two before the latest: d1 << 5 ^ d0 << 10 */
    uint32_t newer;
    uint32_t index;
};

struct cw_dfcm {
    struct context context;
    struct cw_dfcm_line lines[CW_DFCM_LINES];
};

BODY uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

BODY double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

BODY uint32_t top(double difference)
{
    return (uint32_t)(bits_of(difference) >> (64 - TOP_BITS));
}

BODY uint64_t number_bits(double value)
{
    if (__builtin_expect(value != value, 0)) {
        __asm__ volatile(""); /* a branch instead of a data dependency */
        return 0;
    }
    return bits_of(value);
}

/* The difference that is expected next. */
BODY double predict(const struct cw_dfcm_line *line)
{
    double latest = line->latest;
    double drift = latest - line->before;
    uint64_t far_apart = (bits_of(latest) ^ bits_of(line->before)) >> (64 - TOP_BITS);
    uint64_t mask = (uint64_t)(far_apart == 0 ? -1 : 0); /* no branch: which it is can hardly be foreseen */
    return latest + double_of(bits_of(drift) & mask);
}

BODY void learn(struct context *context, struct cw_dfcm_line *line, double value)
{
    double difference = double_of(number_bits(value - context->last));
    line->before = line->latest;
    line->latest = difference;
    context->last = value;
    uint32_t latest = top(difference);
    context->index = (latest ^ context->newer ^ context->older) % CW_DFCM_LINES;
    context->older = context->newer << 5;
    context->newer = latest << 5;
}

/* ---- half bytes ---- */

struct halves {
    uint8_t *at;
    uint32_t shift; /* 4: the lower half of the byte is taken */
    uint64_t kept;  /* its contents */
};

BODY void put(struct halves *out, uint64_t difference)
{
    uint32_t zeros = (uint32_t)__builtin_clzll(difference | 15) / 4;
    uint32_t halves = 17 - zeros;
    uint64_t low = (difference << 4 | zeros) << out->shift | out->kept;
    uint64_t high = difference >> (60 - out->shift);
    memcpy(out->at, &low, 8);
    memcpy(out->at + 8, &high, 8);
    uint32_t bits = out->shift + 4 * halves;
    out->at += bits / 8;
    out->shift = bits & 4;
    out->kept = difference >> (60 - 4 * zeros) & (0 - (out->shift >> 2)) & 15; /* no branch: it could not be foreseen */
}

/* One value: the four bits, and the remaining bits; moves the place on, in half bytes. */
BODY uint64_t get(const uint8_t *from, size_t *place)
{
    uint64_t low;
    uint64_t high;
    memcpy(&low, from + *place / 2, 8);
    uint32_t zeros = (uint32_t)(low >> (*place & 1) * 4) & 15;
    size_t begin = *place + 1;
    memcpy(&low, from + begin / 2, 8);
    memcpy(&high, from + begin / 2 + 1, 8);
    uint64_t odd = begin & 1;
    uint64_t difference = low >> 4 * odd | (high >> 56 << 60 & (0 - odd));
    *place = begin + 16 - zeros;
    return difference & UINT64_MAX >> 4 * zeros;
}

/* ---- streams ---- */

/* Predictions are sums of doubles, and must be the same at both ends, with any rounding, trapping or flushing mode of
 * the program's thread. */
struct arithmetic {
    fenv_t before;
};

static void arithmetic_begin(struct arithmetic *arithmetic)
{
    fegetenv(&arithmetic->before);
    fesetenv(FE_DFL_ENV);
}

static void arithmetic_end(const struct arithmetic *arithmetic)
{
    fesetenv(&arithmetic->before);
}

/* Compresses values while `capacity` certainly has room for one more; returns how many. `touched`: which lines. */
BODY size_t stream_out(struct context *context, struct cw_dfcm_line *lines, const uint8_t *values, size_t count,
                       uint8_t *to, size_t capacity, uint16_t *touched, size_t *bytes)
{
    struct context now = *context;
    struct halves out = {.at = to};
    const uint8_t *limit = to + capacity - VALUE_BYTES_MAX;
    size_t i = 0;
    for (; i < count && out.at <= limit; i++) {
        double value;
        memcpy(&value, values + 8 * i, sizeof(value));
        struct cw_dfcm_line *line = &lines[now.index];
        if (touched != NULL) {
            touched[i] = (uint16_t)now.index;
        }
        put(&out, bits_of(value) ^ number_bits(now.last + predict(line)));
        learn(&now, line, value);
    }
    *context = now;
    *bytes = (size_t)(out.at - to) + (out.shift != 0);
    return i;
}

/* ---- the way back ----
 *
 * Each value waits for the one before, so that the time is that of one chain: its sums of doubles, and nothing else
 * that can be helped. So all of it stays in vector registers, of which the lower half counts; the line that is looked
 * up stays in registers as long as it is the same one; and which one comes next is foreseen from the prediction. */

typedef double number __attribute__((vector_size(16)));
typedef uint64_t words __attribute__((vector_size(16)));

BODY number without_nan(number value)
{
    if (__builtin_expect(value[0] != value[0], 0)) {
        __asm__ volatile(""); /* a branch instead of a data dependency */
        return (number){0, 0};
    }
    return value;
}

/* As predict. */
BODY number predicted(number latest, number before)
{
    words far_apart = ((words)latest ^ (words)before) >> (64 - TOP_BITS);
    words mask = (words)(far_apart == 0);
    return latest + (number)((words)(latest - before) & mask);
}

/* Reads values while there are `readable` bytes; false: they are used up before. */
BODY bool stream_in(struct context *context, struct cw_dfcm_line *lines, const uint8_t *from, size_t readable,
                    size_t *place, uint8_t *values, size_t *done, size_t count, uint16_t *touched)
{
    struct context now = *context;
    struct cw_dfcm_line *line = &lines[now.index];
    number last = {now.last, 0}, latest = {line->latest, 0}, before = {line->before, 0};
    size_t i = *done;
    size_t at = *place;
    for (; i < count && at / 2 + VALUE_BYTES_MAX <= readable; i++) {
        if (touched != NULL) {
            touched[i] = (uint16_t)now.index;
        }
        number step = predicted(latest, before);
        words difference = {get(from, &at), 0};
        number value = (number)((words)without_nan(last + step) ^ difference);
        uint64_t bits = ((words)value)[0];
        memcpy(values + 8 * i, &bits, sizeof(bits));
        before = latest;
        latest = without_nan(value - last);
        last = value;
        line->before = before[0];
        line->latest = latest[0];
        uint32_t foreseen = (top(step[0]) ^ now.newer ^ now.older) % CW_DFCM_LINES;
        uint32_t newest = top(latest[0]);
        uint32_t index = (newest ^ now.newer ^ now.older) % CW_DFCM_LINES;
        now.older = now.newer << 5;
        now.newer = newest << 5;
        if (index != foreseen) {
            __asm__ volatile("");
            foreseen = index;
        }
        if (foreseen != now.index) {
            line = &lines[foreseen];
            latest = (number){line->latest, 0};
            before = (number){line->before, 0};
            now.index = foreseen;
        }
    }
    now.last = last[0];
    *context = now;
    *place = at;
    *done = i;
    return i == count;
}

/* All of it: the part near the end is read from a copy with room behind it. True: exactly these bytes were it. */
static bool stream_in_all(struct context *context, struct cw_dfcm_line *lines, const uint8_t *from, size_t bytes,
                          uint8_t *values, size_t count, uint16_t *touched, size_t *done)
{
    size_t place = 0;
    *done = 0;
    if (!stream_in(context, lines, from, bytes, &place, values, done, count, touched)) {
        uint8_t end[VALUE_BYTES_MAX + TAIL] = {0};
        size_t skipped = place / 2;
        memcpy(end, from + skipped, bytes - skipped);
        place -= 2 * skipped;
        bool complete = stream_in(context, lines, end, sizeof(end), &place, values, done, count, touched);
        place += 2 * skipped;
        if (!complete) {
            return false;
        }
    }
    return (place + 1) / 2 == bytes;
}

struct cw_dfcm *cw_dfcm_create(void)
{
    return calloc(1, sizeof(struct cw_dfcm));
}

void cw_dfcm_destroy(struct cw_dfcm *predictor)
{
    free(predictor);
}

size_t cw_dfcm_bound(size_t count)
{
    return count * 17 / 2 + TAIL;
}

size_t cw_dfcm_compress(struct cw_dfcm *predictor, const void *doubles, size_t count, uint8_t *to)
{
    struct arithmetic arithmetic;
    arithmetic_begin(&arithmetic);
    size_t bytes;
    stream_out(&predictor->context, predictor->lines, doubles, count, to, cw_dfcm_bound(count), NULL, &bytes);
    arithmetic_end(&arithmetic);
    return bytes;
}

bool cw_dfcm_expand(struct cw_dfcm *predictor, const uint8_t *from, size_t bytes, size_t count, void *doubles)
{
    struct arithmetic arithmetic;
    arithmetic_begin(&arithmetic);
    size_t done;
    bool good = stream_in_all(&predictor->context, predictor->lines, from, bytes, doubles, count, NULL, &done);
    arithmetic_end(&arithmetic);
    return good;
}

/* ---- chunks ---- */

static void lines_clear(struct cw_codec_scratch *scratch, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        scratch->lines[scratch->touched[i]] = (struct cw_dfcm_line){0, 0};
    }
}

static uint32_t fill(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source, uint32_t available,
                     uint8_t *to, uint32_t capacity, uint32_t *taken)
{
    (void)parameter;
    struct arithmetic arithmetic;
    struct context context = {.last = 0};
    size_t bytes;
    size_t room = capacity; /* and the overrun of a last step, in the scratch */
    arithmetic_begin(&arithmetic);
    size_t count =
        stream_out(&context, scratch->lines, source, available / 8, scratch->packed, room, scratch->touched, &bytes);
    arithmetic_end(&arithmetic);
    lines_clear(scratch, count);
    if (bytes > capacity) {
        return 0;
    }
    memcpy(to, scratch->packed, bytes);
    *taken = 8 * (uint32_t)count;
    return (uint32_t)bytes;
}

static bool expand(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *chunk, uint32_t bytes,
                   uint8_t *to, uint32_t raw_bytes)
{
    if (parameter != 0 || raw_bytes % 8 != 0) {
        return false;
    }
    struct arithmetic arithmetic;
    struct context context = {.last = 0};
    size_t done;
    arithmetic_begin(&arithmetic);
    bool good = stream_in_all(&context, scratch->lines, chunk, bytes, to, raw_bytes / 8, scratch->touched, &done);
    arithmetic_end(&arithmetic);
    lines_clear(scratch, done);
    return good;
}

const struct cw_codec_calls cw_codec_dfcm = {
    .name = "dfcm", .fill = fill, .expand = expand, .elements = 1u << CW_ELEMENT_DOUBLE};
