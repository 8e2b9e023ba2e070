#include "dataplane/flow/compress.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/flow/bandwidth.h"
#include "dataplane/flow/chunk.h"
#include "dataplane/flow/sample.h"
#include "dataplane/flow/transmit.h"

enum {
    MEASURED_BLOCKS = 4,    /* of raw bytes, before the rate that a flow gives is taken for known */
    BLOCK_BYTES = 64 << 10, /* that it is measured by ... */
    BLOCK_NS = 200000,      /* ... if they take so long: an acknowledgement may be for many packets */
    SPAN_BLOCKS = 8,        /* the best one of such a span counts, and of the span before */
    WAYS_KEPT = 16 << 20,   /* bytes: what went before counts half */
    WAIT_FIRST = 8 << 20,   /* bytes from a sample or trial that said no to the next, at first */
    WAIT_DOUBLINGS = 8,     /* ... then twice as many, up to 2 GiB */
    EPOCH_MIN = 128 << 10,  /* bytes of a trial that go in one way before the other has its turn */
    EPOCH_MAX = 4 << 20,
    EPOCHS = 4,       /* of a trial */
    TRUST_EPOCHS = 8, /* that a trial is good for, at first */
    TRUST_DOUBLINGS = 7,
    PLAN_BYTES = 1 << 20,      /* that a plan is good for */
    PLAN_BYTES_MIN = 32 << 10, /* ... and that it stays at least, however bad it has become */
    UNFIT_SKIPS = 6,           /* doublings of what is not tried after packets that became no shorter */
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

/* What the flow takes for a byte as it is; 0: not known. *is_given: it is no measurement that a busy processor could
 * spoil. */
static double link_ns(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                      const struct cw_compress_kind *kind, bool *is_given)
{
    uint64_t rate_bps = flow->timers.rate_bps;
    if (flow->bandwidth != NULL && flow->bandwidth->known_bps > 0) {
        rate_bps = flow->bandwidth->known_bps;
    } else if (flow->shaping.shaper != CW_SHAPER_NONE) {
        rate_bps = endpoint->shapers[flow->shaping.shaper].rate_bps;
    }
    *is_given = rate_bps > 0;
    double measured_ns = is_measured(kind) ? best_ns(kind) : 0;
    double given_ns = rate_bps > 0 ? 8e9 / (double)rate_bps : 0;
    return measured_ns > given_ns && !*is_given ? measured_ns : given_ns;
}

/* ---- states ---- */

static void refuse(const struct cw_endpoint *endpoint, struct cw_compress_kind *kind)
{
    kind->state = CW_COMPRESS_RAW;
    kind->skip = 0;
    kind->packs = false;
    kind->successes = 0;
    kind->unfit = 0;
    kind->wait_bytes = (uint64_t)(always(endpoint) ? EPOCH_MIN : WAIT_FIRST) << kind->failures;
    kind->failures = (uint8_t)(kind->failures + (kind->failures < WAIT_DOUBLINGS));
}

static void take(struct cw_compress_kind *kind)
{
    kind->state = CW_COMPRESS_PACKED;
    kind->packs = true;
    kind->failures = 0;
    kind->wait_bytes = ((uint64_t)TRUST_EPOCHS << kind->successes) * kind->epoch_bytes;
    kind->successes = (uint8_t)(kind->successes + (kind->successes < TRUST_DOUBLINGS));
}

static void trial_begin(const struct cw_flow *flow, struct cw_compress_kind *kind)
{
    uint64_t epoch = 2 * flow->congestion.window_bytes;
    epoch = epoch < EPOCH_MAX ? epoch : EPOCH_MAX;
    kind->epoch_bytes = epoch > EPOCH_MIN ? epoch : EPOCH_MIN;
    kind->epoch_left = kind->epoch_bytes;
    kind->epochs = 0;
    kind->state = CW_COMPRESS_TRIAL;
    kind->packs = true;
    kind->skip = 0;
    kind->trials++;
    memset(kind->trial, 0, sizeof(kind->trial));
}

/* What has been acknowledged so far tells. Packets of one way come back in order, so that its bytes say which half of
 * the trial they belong to; a way has won if it has in both halves. */
static void trial_judge(const struct cw_endpoint *endpoint, struct cw_compress_kind *kind)
{
    const struct cw_compress_way(*halves)[2] = kind->trial;
    uint64_t enough = kind->epoch_bytes / 4 * 3;
    bool has_begun = halves[0][1].bytes >= enough;
    if (has_begun && halves[0][0].bytes == 0 && way_ns(&halves[0][1]) > trial_broken * way_ns(&kind->ways[0]) &&
        is_measured(kind)) {
        refuse(endpoint, kind);
        return;
    }
    if (kind->epochs < EPOCHS || halves[1][0].bytes < enough || halves[1][1].bytes < enough) {
        return;
    }
    bool has_won = true;
    for (uint32_t half = 0; half < 2; half++) {
        has_won = has_won && way_ns(&halves[half][1]) < trial_least * way_ns(&halves[half][0]);
    }
    if (has_won) {
        take(kind);
    } else {
        refuse(endpoint, kind);
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

/* RAW, and it is time to ask. */
static void consider(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_compress_kind *kind,
                     struct cw_operation *operation)
{
    bool is_given;
    double byte_ns = link_ns(endpoint, flow, kind, &is_given);
    if (always(endpoint)) {
        if (cw_sample_take(endpoint, flow, kind, operation, byte_ns)) {
            kind->epoch_bytes = EPOCH_MAX;
            take(kind);
        } else {
            refuse(endpoint, kind);
        }
        return;
    }
    if (byte_ns == 0) {
        return; /* soon */
    }
    /* a rate without end: what no codec could make good is not sampled */
    double least_ns = 1e9;
    for (enum cw_codec codec = CW_CODEC_RUN + 1; codec < CW_CODECS; codec++) {
        const struct cw_codec_speed *speed = &endpoint->compress->config.speeds[codec];
        double ns = (double)speed->fill_ns + (double)speed->expand_ns;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    if (least_ns > CW_SAMPLE_GAIN * byte_ns || !cw_sample_take(endpoint, flow, kind, operation, byte_ns)) {
        refuse(endpoint, kind);
        return;
    }
    if (is_given) {
        kind->epoch_bytes = EPOCH_MAX;
        take(kind);
    } else {
        trial_begin(flow, kind);
    }
}

static struct cw_compress_kind *kind_of(struct cw_endpoint *endpoint, const struct cw_flow *flow,
                                        const struct cw_operation *operation)
{
    return &cw_compress_of(endpoint, flow)->kinds[operation->source.element];
}

/* True if what comes next is one value again and again. */
static bool is_run(struct cw_endpoint *endpoint, const struct cw_flow *flow, struct cw_operation *operation)
{
    const void *data;
    uint32_t bytes = cw_chunk_source(endpoint, operation, operation->position, CW_CHUNK_RAW_MIN, 0, &data);
    if (bytes < CW_CHUNK_RAW_MIN || memcmp(data, (const uint8_t *)data + 8, CW_CHUNK_RAW_MIN - 8) != 0) {
        return false;
    }
    uint32_t part = cw_transmit_part_bytes(flow); /* a shorter one would take a packet of its own for less */
    bytes = cw_chunk_source(endpoint, operation, operation->position, part, 0, &data);
    return bytes == part && memcmp(data, (const uint8_t *)data + 8, part - 8) == 0;
}

struct cw_codec_plan cw_compress_plan(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                      struct cw_operation *operation)
{
    struct cw_codec_plan none = {CW_CODEC_NONE, CW_SENT_LONG};
    struct cw_compress_kind *kind = kind_of(endpoint, flow, operation);
    uint64_t left = operation->bytes - operation->position;
    if (endpoint->compress->config.mode == CW_COMPRESSION_OFF) {
        return none;
    }
    if (left <= cw_transmit_part_bytes(flow)) { /* what is left fits the packet as it is */
        none.parameter = kind->packs ? CW_SENT_SKIPPED : CW_SENT_LONG;
        return none;
    }
    if (kind->state == CW_COMPRESS_RAW && kind->wait_bytes == 0) {
        consider(endpoint, flow, kind, operation);
    } else if (kind->state == CW_COMPRESS_PACKED && kind->wait_bytes == 0) {
        bool is_given;
        double byte_ns = link_ns(endpoint, flow, kind, &is_given);
        if (always(endpoint) || is_given) {
            consider(endpoint, flow, kind, operation);
        } else if (byte_ns > 0 && cw_sample_take(endpoint, flow, kind, operation, byte_ns)) {
            trial_begin(flow, kind);
        } else {
            refuse(endpoint, kind);
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
    if (is_run(endpoint, flow, operation)) {
        return (struct cw_codec_plan){CW_CODEC_RUN, 0};
    }
    bool is_worn = kind->plan_bytes >= PLAN_BYTES_MIN && (double)kind->rate < plan_worn * (double)kind->plan_rate;
    if (kind->plan_bytes >= PLAN_BYTES || is_worn) {
        const void *data;
        uint32_t wanted = left < CW_CODEC_SAMPLE ? (uint32_t)left : CW_CODEC_SAMPLE;
        uint32_t bytes = cw_chunk_source(endpoint, operation, operation->position, wanted, wanted, &data);
        enum cw_element element = operation->source.element;
        if (bytes == CW_CODEC_SAMPLE && cw_codec_takes(kind->plan.codec, element)) {
            kind->plan = cw_codec_plan(cw_chunk_scratch(endpoint), kind->plan.codec, element, data, bytes);
        }
        kind->plan_bytes = 0;
        kind->plan_rate = kind->rate;
    }
    return kind->plan;
}

/* ---- what comes of it ---- */

static void chunk_count(struct cw_endpoint *endpoint, struct cw_compress_kind *kind, const struct cw_sent *record,
                        uint32_t chunk_bytes)
{
    cw_count(endpoint, CW_COUNTER_CHUNKS_OUT, 1);
    cw_count(endpoint, CW_COUNTER_CHUNK_RAW_OUT, record->bytes);
    cw_count(endpoint, CW_COUNTER_CHUNK_BYTES_OUT, chunk_bytes);
    kind->raw_bytes += record->bytes;
    kind->chunk_bytes += chunk_bytes;
    kind->unfit = 0;
    if (record->plan.codec == CW_CODEC_RUN) {
        return;
    }
    float rate = (float)record->bytes / (float)chunk_bytes;
    kind->rate += (rate - kind->rate) / 8;
    kind->plan_bytes += record->bytes;
    double next = (double)record->bytes * fill_aim * cw_chunk_room(record->operation->flow) / chunk_bytes;
    kind->taken = next < CW_CHUNK_RAW_MAX ? (uint32_t)next : CW_CHUNK_RAW_MAX;
}

void cw_compress_sent(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_sent *record)
{
    struct cw_compress_flow *compress = cw_compress_of(endpoint, flow);
    struct cw_compress_kind *kind = &compress->kinds[record->operation->source.element];
    compress->is_used = true;
    if (compress->under_way++ == 0) {
        compress->mark_ns = endpoint->now_ns;
    }
    kind->wait_bytes -= record->bytes < kind->wait_bytes ? record->bytes : kind->wait_bytes;
    if (record->plan.codec != CW_CODEC_NONE) {
        uint32_t headers = cw_flow_overhead(flow) + (uint32_t)sizeof(struct cw_wire_chunk);
        uint32_t mac = flow->session.seal != NULL ? CW_WIRE_MAC_BYTES : 0;
        chunk_count(endpoint, kind, record, record->frame_bytes - headers - mac);
    } else if (record->plan.parameter == CW_SENT_UNFIT) {
        kind->unfit++;
        kind->skip = (uint16_t)((1u << (kind->unfit < UNFIT_SKIPS ? kind->unfit : UNFIT_SKIPS)) - 1);
        kind->taken = 0;
        if (kind->unfit >= UNFIT_MAX) {
            refuse(endpoint, kind);
        }
    }
    if (kind->state == CW_COMPRESS_TRIAL) {
        epoch_count(kind, record->bytes);
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

void cw_compress_acknowledged(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_sent *record)
{
    struct cw_compress_flow *compress = cw_compress_of(endpoint, flow);
    struct cw_compress_kind *kind = &compress->kinds[record->operation->source.element];
    uint64_t ns = endpoint->now_ns - compress->mark_ns;
    compress->mark_ns = endpoint->now_ns;
    compress->under_way--;
    bool packed = record->plan.codec != CW_CODEC_NONE || record->plan.parameter != CW_SENT_LONG;
    if (!packed) {
        block_add(kind, record->bytes, ns);
    }
    struct cw_compress_way *way = &kind->ways[packed];
    way_add(way, record->bytes, ns);
    if (way->bytes > WAYS_KEPT) {
        way->bytes /= 2;
        way->ns /= 2;
    }
    if (kind->state == CW_COMPRESS_TRIAL) {
        uint32_t half = kind->trial[0][packed].bytes >= kind->epoch_bytes;
        way_add(&kind->trial[half][packed], record->bytes, ns);
        trial_judge(endpoint, kind);
    }
}

void cw_compress_reset(struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    if (endpoint->compress == NULL || !cw_compress_of(endpoint, flow)->is_used) {
        return;
    }
    struct cw_compress_flow *compress = cw_compress_of(endpoint, flow);
    compress->under_way = 0;
    for (enum cw_element element = 0; element < CW_ELEMENTS; element++) {
        struct cw_compress_kind *kind = &compress->kinds[element];
        if (kind->state == CW_COMPRESS_TRIAL) { /* half of what it waits for will never be acknowledged */
            kind->state = CW_COMPRESS_RAW;
            kind->packs = false;
            kind->wait_bytes = 0;
        }
    }
}

void cw_compress_forget(struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    if (endpoint->compress != NULL && cw_compress_of(endpoint, flow)->is_used) {
        *cw_compress_of(endpoint, flow) = (struct cw_compress_flow){.is_used = false};
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

bool cw_peer_compression(const struct cw_endpoint *endpoint, uint32_t peer, enum cw_element element,
                         struct cw_compression_report *report)
{
    const struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL || endpoint->compress == NULL || (unsigned)element >= CW_ELEMENTS ||
        !cw_compress_of(endpoint, flow)->is_used) {
        return false;
    }
    const struct cw_compress_kind *kind = &cw_compress_of(endpoint, flow)->kinds[element];
    bool is_given;
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
        .link_ns = link_ns(endpoint, flow, kind, &is_given),
        .codec_ns = own_ns,
        .packed_ns = way_ns(&kind->ways[1]),
    };
    report->saved_ns = report->packed_ns > 0 && report->link_ns > 0
                           ? (report->link_ns - report->packed_ns) * (double)kind->raw_bytes
                           : 0;
    return true;
}
