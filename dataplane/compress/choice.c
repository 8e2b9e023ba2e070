#include "dataplane/compress/choice.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/compress/sample.h"

enum {
    MEASURED_BLOCKS = 4,    /* of raw bytes, before the flow's rate counts as known */
    BLOCK_BYTES = 64 << 10, /* that it is measured by ... */
    BLOCK_NS = 200000,      /* ... if they take so long: an acknowledgement may be for many packets */
    SPAN_BLOCKS = 8,        /* the best one of such a span counts, and of the span before */
    WAYS_KEPT = 16 << 20,   /* bytes: older ones count half */
    WAIT_FIRST = 8 << 20,   /* bytes from a negative sample or trial to the next, at first */
    WAIT_DOUBLINGS = 8,     /* ... then twice as many, up to 2 GiB */
    EPOCH_MIN = 128 << 10,  /* bytes of a trial that go in one way before the other has its turn */
    EPOCH_MAX = 4 << 20,
    EPOCHS = 4,        /* of a trial */
    TRIALS_MIXED = 2,  /* in a row whose halves disagree, before that counts as no */
    TRUST_EPOCHS = 16, /* that a trial is good for, at first */
    TRUST_DOUBLINGS = 7,
    PLAN_BYTES = 1 << 20,      /* that a plan is good for */
    PLAN_BYTES_MIN = 32 << 10, /* ... and that it stays at least, however bad it has become */
    UNFIT_SKIPS = 6,           /* doublings of the skipped bytes after packets that became no shorter */
    UNFIT_MAX = 8,
};

static const double trial_least = 0.95; /* of the time without compression: a trial must have taken less */
static const double trial_broken = 1.3; /* a trial that begins so much slower is broken off */
static const double plan_worn = 0.85;   /* of its rate: another plan is made */
static const double fill_aim = 0.97;    /* of a packet, of codecs that must know before */

static inline bool always(const struct cw_endpoint *endpoint)
{
    return endpoint->compress->config.mode == CW_COMPRESSION_ON;
}

static double way_ns(const struct cw_compress_way *way)
{
    return way->bytes > 0 ? (double)way->ns / (double)way->bytes : 0;
}

static bool is_measured(const struct cw_compress_kind *kind)
{
    return kind->blocks >= MEASURED_BLOCKS || kind->best_ns[1] > 0;
}

static double best_ns(const struct cw_compress_kind *kind)
{
    float now = kind->best_ns[0];
    float before = kind->best_ns[1];
    return (double)(now == 0 || (before > 0 && before < now) ? before : now);
}

/* The path's time for an uncompressed byte; 0: not known. A configured rate is no measurement that a busy processor
 * could spoil. */
static double link_ns(const struct cw_compress_path *path, const struct cw_compress_kind *kind)
{
    if (path->rate_bps > 0) {
        return 8e9 / (double)path->rate_bps;
    }
    return is_measured(kind) ? best_ns(kind) : 0;
}

/* ---- states ---- */

static void packing_stop(const struct cw_endpoint *endpoint, struct cw_compress_kind *kind)
{
    kind->state = CW_COMPRESS_RAW;
    kind->skip = 0;
    kind->packs = false;
    kind->successes = 0;
    kind->mixed = 0;
    kind->unfit = 0;
    kind->wait_bytes = (uint64_t)(always(endpoint) ? EPOCH_MIN : WAIT_FIRST) << kind->failures;
    kind->failures = (uint8_t)(kind->failures + (kind->failures < WAIT_DOUBLINGS));
}

static void packing_start(struct cw_compress_kind *kind)
{
    kind->state = CW_COMPRESS_PACKED;
    kind->packs = true;
    kind->failures = 0;
    kind->mixed = 0;
    kind->wait_bytes = ((uint64_t)TRUST_EPOCHS << kind->successes) * kind->epoch_bytes;
    kind->successes = (uint8_t)(kind->successes + (kind->successes < TRUST_DOUBLINGS));
}

static void trial_start(struct cw_compress_kind *kind)
{
    kind->epoch_left = kind->epoch_bytes;
    kind->epochs = 0;
    kind->state = CW_COMPRESS_TRIAL;
    kind->packs = true;
    kind->skip = 0;
    kind->trials++;
    memset(kind->trial, 0, sizeof(kind->trial));
}

static void trial_begin(const struct cw_compress_path *path, struct cw_compress_kind *kind)
{
    uint64_t epoch = 2 * path->window_bytes;
    epoch = epoch < EPOCH_MAX ? epoch : EPOCH_MAX;
    kind->epoch_bytes = epoch > EPOCH_MIN ? epoch : EPOCH_MIN;
    trial_start(kind);
}

/* Evaluates the acknowledgements so far. Packets of one arm come back in order, so that its bytes show the half of the
 * trial; an arm has won if it has in both halves. Where they disagree, since other influences than the link were at
 * work, another trial decides. */
static void trial_evaluate(const struct cw_endpoint *endpoint, struct cw_compress_kind *kind)
{
    const struct cw_compress_way(*halves)[2] = kind->trial;
    uint64_t enough = kind->epoch_bytes / 4 * 3;
    bool has_begun = halves[0][1].bytes >= enough;
    if (has_begun && halves[0][0].bytes == 0 && way_ns(&halves[0][1]) > trial_broken * way_ns(&kind->ways[0]) &&
        is_measured(kind)) {
        packing_stop(endpoint, kind);
        return;
    }
    if (kind->epochs < EPOCHS || halves[1][0].bytes < enough || halves[1][1].bytes < enough) {
        return;
    }
    uint32_t won = 0;
    for (uint32_t half = 0; half < 2; half++) {
        won += way_ns(&halves[half][1]) < trial_least * way_ns(&halves[half][0]);
    }
    if (won == 2) {
        packing_start(kind);
    } else if (won == 1 && kind->mixed < TRIALS_MIXED) {
        kind->mixed++;
        trial_start(kind);
    } else {
        packing_stop(endpoint, kind);
    }
}

static void epoch_count(struct cw_compress_kind *kind, uint32_t bytes)
{
    kind->epoch_left -= bytes < kind->epoch_left ? bytes : kind->epoch_left;
    if (kind->epoch_left == 0 && kind->epochs < EPOCHS) {
        kind->epochs++;
        kind->packs = kind->epochs < EPOCHS && kind->epochs % 2 == 0;
        kind->epoch_left = kind->epoch_bytes;
    }
}

/* RAW, and it is time to ask; or the rate is given. */
static void consider(struct cw_endpoint *endpoint, const struct cw_compress_path *path, struct cw_compress_kind *kind,
                     enum cw_element element, const struct cw_chunk_data *data)
{
    double byte_ns = link_ns(path, kind);
    const struct cw_sample_question question = {path, kind, element, data, byte_ns};
    if (always(endpoint)) {
        if (cw_sample_measure(endpoint, &question)) {
            kind->epoch_bytes = EPOCH_MAX;
            packing_start(kind);
        } else {
            packing_stop(endpoint, kind);
        }
        return;
    }
    if (byte_ns == 0) {
        return; /* soon */
    }
    /* a rate without limit: no codec could pay, so none is sampled */
    double least_ns = 1e9;
    for (enum cw_codec codec = CW_CODEC_RUN + 1; codec < CW_CODECS; codec++) {
        const struct cw_codec_speed *speed = &endpoint->compress->config.speeds[codec];
        double ns = (double)speed->fill_ns + (double)speed->expand_ns;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    if (least_ns > CW_SAMPLE_GAIN * byte_ns || !cw_sample_measure(endpoint, &question)) {
        packing_stop(endpoint, kind);
    } else if (path->rate_bps > 0) {
        kind->epoch_bytes = EPOCH_MAX;
        packing_start(kind);
    } else {
        trial_begin(path, kind);
    }
}

/* True if what comes next is one value again and again. */
static bool is_run(struct cw_endpoint *endpoint, const struct cw_compress_path *path, const struct cw_chunk_data *data)
{
    const void *at;
    uint32_t bytes = cw_chunk_source(endpoint, data, CW_CHUNK_RAW_MIN, 0, &at);
    if (bytes < CW_CHUNK_RAW_MIN || memcmp(at, (const uint8_t *)at + 8, CW_CHUNK_RAW_MIN - 8) != 0) {
        return false;
    }
    uint32_t part = path->part_bytes; /* a shorter one would take a packet of its own for less */
    bytes = cw_chunk_source(endpoint, data, part, 0, &at);
    return bytes == part && memcmp(at, (const uint8_t *)at + 8, part - 8) == 0;
}

/* Another plan of the same codec, as the one that there is has become worse, or old. */
static void plan_renew(struct cw_endpoint *endpoint, struct cw_compress_kind *kind, enum cw_element element,
                       const struct cw_chunk_data *data)
{
    bool is_worn = kind->plan_bytes >= PLAN_BYTES_MIN && (double)kind->rate < plan_worn * (double)kind->plan_rate;
    if (kind->plan_bytes < PLAN_BYTES && !is_worn) {
        return;
    }
    const void *at;
    uint32_t wanted = data->left < CW_CODEC_SAMPLE ? (uint32_t)data->left : CW_CODEC_SAMPLE;
    uint32_t bytes = cw_chunk_source(endpoint, data, wanted, wanted, &at);
    if (bytes == CW_CODEC_SAMPLE && cw_codec_accepts(kind->plan.codec, element)) {
        kind->plan = cw_codec_plan(cw_chunk_scratch(endpoint), kind->plan.codec, element, at, bytes);
    }
    kind->plan_bytes = 0;
    kind->plan_rate = kind->rate;
}

struct cw_codec_plan cw_compress_plan(struct cw_endpoint *endpoint, const struct cw_compress_path *path,
                                      enum cw_element element, const struct cw_chunk_data *data)
{
    struct cw_codec_plan none = {CW_CODEC_NONE, CW_SENT_LONG};
    struct cw_compress_kind *kind = &path->state->kinds[element];
    if (data->left <= path->part_bytes) { /* the rest fits the packet uncompressed */
        none.parameter = kind->packs ? CW_SENT_SKIPPED : CW_SENT_LONG;
        return none;
    }
    if (kind->state == CW_COMPRESS_RAW && kind->wait_bytes == 0) {
        consider(endpoint, path, kind, element, data);
    } else if (kind->state == CW_COMPRESS_PACKED && kind->wait_bytes == 0) {
        double byte_ns = link_ns(path, kind);
        const struct cw_sample_question question = {path, kind, element, data, byte_ns};
        if (always(endpoint) || path->rate_bps > 0) {
            consider(endpoint, path, kind, element, data);
        } else if (byte_ns > 0 && cw_sample_measure(endpoint, &question)) {
            trial_begin(path, kind);
        } else {
            packing_stop(endpoint, kind);
        }
    }
    if (!kind->packs) {
        return none;
    }
    none.parameter = CW_SENT_SKIPPED;
    if (kind->skip > 0) {
        kind->skip--;
        return none;
    }
    if (is_run(endpoint, path, data)) {
        return (struct cw_codec_plan){CW_CODEC_RUN, 0};
    }
    plan_renew(endpoint, kind, element, data);
    return kind->plan;
}

/* ---- what comes of it ---- */

static void chunk_count(struct cw_endpoint *endpoint, struct cw_compress_kind *kind,
                        const struct cw_compress_path *path, const struct cw_compress_packet *packet)
{
    cw_count(endpoint, CW_COUNTER_CHUNKS_OUT, 1);
    cw_count(endpoint, CW_COUNTER_CHUNK_RAW_OUT, packet->raw_bytes);
    cw_count(endpoint, CW_COUNTER_CHUNK_BYTES_OUT, packet->chunk_bytes);
    kind->raw_bytes += packet->raw_bytes;
    kind->chunk_bytes += packet->chunk_bytes;
    kind->unfit = 0;
    if (packet->plan.codec == CW_CODEC_RUN) {
        return;
    }
    float rate = (float)packet->raw_bytes / (float)packet->chunk_bytes;
    kind->rate += (rate - kind->rate) / 8;
    kind->plan_bytes += packet->raw_bytes;
    double next = (double)packet->raw_bytes * fill_aim * path->chunk_bytes / packet->chunk_bytes;
    kind->taken = next < CW_CHUNK_RAW_MAX ? (uint32_t)next : CW_CHUNK_RAW_MAX;
}

void cw_compress_sent(struct cw_endpoint *endpoint, const struct cw_compress_path *path,
                      const struct cw_compress_packet *packet)
{
    struct cw_compress_kind *kind = &path->state->kinds[packet->element];
    path->state->is_used = true;
    if (path->state->under_way++ == 0) {
        path->state->mark_ns = endpoint->now_ns;
    }
    kind->wait_bytes -= packet->raw_bytes < kind->wait_bytes ? packet->raw_bytes : kind->wait_bytes;
    if (packet->plan.codec != CW_CODEC_NONE) {
        chunk_count(endpoint, kind, path, packet);
    } else if (packet->plan.parameter == CW_SENT_UNFIT) {
        kind->unfit++;
        kind->skip = (uint16_t)((1u << (kind->unfit < UNFIT_SKIPS ? kind->unfit : UNFIT_SKIPS)) - 1);
        kind->taken = 0;
        if (kind->unfit >= UNFIT_MAX) {
            packing_stop(endpoint, kind);
        }
    }
    if (kind->state == CW_COMPRESS_TRIAL) {
        epoch_count(kind, packet->raw_bytes);
    }
}

static void way_add(struct cw_compress_way *way, uint64_t bytes, uint64_t ns)
{
    way->bytes += bytes;
    way->ns += ns;
}

/* The time that raw bytes have taken: slow starts, pauses and neighbours make blocks long, but none makes one short. */
static void block_add(struct cw_compress_kind *kind, uint64_t bytes, uint64_t ns)
{
    way_add(&kind->block, bytes, ns);
    if (kind->block.bytes < BLOCK_BYTES || kind->block.ns < BLOCK_NS) {
        return;
    }
    float now = (float)way_ns(&kind->block);
    kind->block = (struct cw_compress_way){0, 0};
    if (kind->blocks == SPAN_BLOCKS) {
        kind->best_ns[1] = kind->best_ns[0];
        kind->best_ns[0] = 0;
        kind->blocks = 0;
    }
    kind->blocks++;
    kind->best_ns[0] = kind->best_ns[0] == 0 || now < kind->best_ns[0] ? now : kind->best_ns[0];
}

void cw_compress_acknowledged(struct cw_endpoint *endpoint, struct cw_compress_flow *state,
                              const struct cw_compress_packet *packet)
{
    struct cw_compress_kind *kind = &state->kinds[packet->element];
    uint64_t ns = endpoint->now_ns - state->mark_ns;
    state->mark_ns = endpoint->now_ns;
    state->under_way--;
    bool packed = packet->plan.codec != CW_CODEC_NONE || packet->plan.parameter != CW_SENT_LONG;
    if (!packed) {
        block_add(kind, packet->raw_bytes, ns);
    }
    struct cw_compress_way *way = &kind->ways[packed];
    way_add(way, packet->raw_bytes, ns);
    if (way->bytes > WAYS_KEPT) {
        way->bytes /= 2;
        way->ns /= 2;
    }
    if (kind->state == CW_COMPRESS_TRIAL) {
        uint32_t half = kind->trial[0][packed].bytes >= kind->epoch_bytes;
        way_add(&kind->trial[half][packed], packet->raw_bytes, ns);
        trial_evaluate(endpoint, kind);
    }
}

void cw_compress_reset(struct cw_compress_flow *state)
{
    state->under_way = 0;
    for (enum cw_element element = 0; element < CW_ELEMENTS; element++) {
        struct cw_compress_kind *kind = &state->kinds[element];
        if (kind->state == CW_COMPRESS_TRIAL) { /* half of the awaited acknowledgements will never arrive */
            kind->state = CW_COMPRESS_RAW;
            kind->packs = false;
            kind->wait_bytes = 0;
        }
    }
}

void cw_compress_report(const struct cw_endpoint *endpoint, const struct cw_compress_path *path,
                        enum cw_element element, struct cw_compression_report *report)
{
    const struct cw_compress_kind *kind = &path->state->kinds[element];
    double own_ns = 0;
    if (kind->plan.codec != CW_CODEC_NONE && kind->taken > 0) {
        (void)cw_sample_packed_ns(endpoint, kind->plan.codec, 0, 1, kind->taken, &own_ns);
    }
    *report = (struct cw_compression_report){
        .codec = kind->plan.codec,
        .is_on = kind->packs,
        .samples = kind->samples,
        .trials = kind->trials,
        .raw_bytes = kind->raw_bytes,
        .chunk_bytes = kind->chunk_bytes,
        .rate = (double)kind->rate,
        .link_ns = link_ns(path, kind),
        .codec_ns = own_ns,
        .plain_ns = way_ns(&kind->ways[0]),
        .packed_ns = way_ns(&kind->ways[1]),
    };
    if (report->plain_ns > 0 && report->packed_ns > 0) {
        report->saved_ns = (report->plain_ns - report->packed_ns) * (double)kind->raw_bytes;
    }
}

/* ---- calls ---- */

static int create(struct cw_endpoint *endpoint, const struct cw_compression *compression)
{
    struct cw_compress *compress = calloc(1, sizeof(*compress));
    if (compress == NULL) {
        return CW_ERROR_MEMORY;
    }
    compress->flows = calloc(endpoint->config.peer_count_max, sizeof(*compress->flows));
    if (compress->flows == NULL) {
        free(compress);
        return CW_ERROR_MEMORY;
    }
    compress->config = *compression;
    endpoint->compress = compress;
    return CW_OK;
}

void cw_compress_dispose(struct cw_endpoint *endpoint)
{
    if (endpoint->compress != NULL) {
        free(endpoint->compress->flows);
        free(endpoint->compress);
        endpoint->compress = NULL;
    }
}

int cw_endpoint_compress(struct cw_endpoint *endpoint, const struct cw_compression *compression)
{
    if ((unsigned)compression->mode > CW_COMPRESSION_ON || (unsigned)compression->codec >= CW_CODECS) {
        return CW_ERROR_ARGUMENT;
    }
    if (endpoint->compress == NULL) {
        return compression->mode == CW_COMPRESSION_OFF ? CW_OK : create(endpoint, compression);
    }
    endpoint->compress->config = *compression;
    return CW_OK;
}
