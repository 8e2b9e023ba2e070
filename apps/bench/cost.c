/* causeway bench cost: the cost of the protocol itself for a core, per packet and per put. Both sides run in one thread
 * over a port that hands buffers across and does nothing else, so that neither a driver nor the other core's caches are
 * in the figures, and a profile of this command shows the dataplane alone. For comparison, copies of the same bytes are
 * measured, from the same memory through the same buffers into the same memory, in rounds as long as those of the
 * puts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "dataplane/base/clock.h"
#include "dataplane/dataplane.h"
#include "dataplane/port/port.h"
#include "dataplane/statistics.h"

enum {
    BUFFERS = 2048, /* a power of two; each side's own, so that none runs out while the other side holds packets */
    EVENTS = 64,
    POSTS_A_ROUND = 32,
    SIGNAL_EVERY = 16,
    WINDOW_BYTES = 2 << 20, /* of large puts in flight */
    UNDER_WAY_MAX = 1024,
    MEMORY_BYTES = 4 << 20,
    ROUND_PACKETS = 2 * CW_BURST, /* copies in a round: packets that a side sends in one turn */
    MEDIUM = 99,                  /* that keeps payloads */
    ALIGNMENT = 64,
    HEADROOM = 62,        /* in front of a frame: a part's data begin at a multiple of ALIGNMENT */
    COPY_OFFSET = 72,     /* in a frame, for copies alone */
    SLICES = 9,           /* of a measurement: their median counts */
    WALK_BYTES = 2 << 20, /* of them, that puts go over and over */
    LANE = 1,
};

#define HANG_NS 10000000000ull /* no puts take so long */

/* ---- a port that hands buffers over ---- */

struct cost_buffer {
    uint32_t length;
    uint8_t *bytes;
};

struct cost_port {
    struct cw_port port;
    struct cost_port *other;
    struct cost_buffer *buffers;
    uint8_t *bytes; /* of all buffers */
    struct cost_buffer *free[BUFFERS];
    uint32_t free_count;
    struct cost_buffer *arrived[2 * BUFFERS];
    uint32_t head;
    uint32_t tail;
};

static struct cost_port *cost_port_of(struct cw_port *port)
{
    return (struct cost_port *)port;
}

static uint32_t cost_receive(struct cw_port *base, struct cw_received *packets, uint32_t count_max)
{
    struct cost_port *port = cost_port_of(base);
    uint32_t count = 0;
    while (count < count_max && port->tail != port->head) {
        struct cost_buffer *buffer = port->arrived[port->tail++ % (2 * BUFFERS)];
        packets[count++] = (struct cw_received){.data = buffer->bytes, .length = buffer->length, .handle = buffer};
    }
    return count;
}

static void cost_release(struct cw_port *base, struct cw_received *packets, uint32_t count)
{
    struct cost_port *owner = cost_port_of(base)->other; /* reserved by its sender */
    for (uint32_t i = 0; i < count; i++) {
        owner->free[owner->free_count++] = packets[i].handle;
    }
}

static uint32_t cost_reserve(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct cost_port *port = cost_port_of(base);
    count = count < port->free_count ? count : port->free_count;
    for (uint32_t i = 0; i < count; i++) {
        struct cost_buffer *buffer = port->free[--port->free_count];
        packets[i].data = buffer->bytes;
        packets[i].length = 0;
        packets[i].piece_count = 0;
        packets[i].handle = buffer;
    }
    return count;
}

static uint32_t cost_transmit(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct cost_port *other = cost_port_of(base)->other;
    for (uint32_t i = 0; i < count; i++) {
        struct cost_buffer *buffer = packets[i].handle;
        buffer->length = packets[i].length;
        other->arrived[other->head++ % (2 * BUFFERS)] = buffer;
    }
    return count;
}

static void cost_cancel(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct cost_port *port = cost_port_of(base);
    for (uint32_t i = 0; i < count; i++) {
        port->free[port->free_count++] = packets[i].handle;
    }
}

static const struct cw_port_ops cost_ops = {
    .receive = cost_receive,
    .release = cost_release,
    .reserve = cost_reserve,
    .transmit = cost_transmit,
    .cancel = cost_cancel,
};

static bool cost_port_init(struct cost_port *port, struct cost_port *other, uint32_t mtu_bytes, uint8_t mac_last)
{
    size_t buffer_bytes = (HEADROOM + 14 + mtu_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *port = (struct cost_port){
        .port = {.ops = &cost_ops,
                 .info = {.mac = {2, 0, 0, 0, 0, mac_last}, .mtu_bytes = mtu_bytes, .medium = MEDIUM}},
        .other = other,
        .buffers = calloc(BUFFERS, sizeof(struct cost_buffer)),
        .bytes = aligned_alloc(ALIGNMENT, BUFFERS * buffer_bytes),
    };
    if (port->buffers == NULL || port->bytes == NULL) {
        return false;
    }
    memset(port->bytes, 0, BUFFERS * buffer_bytes);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        port->buffers[i].bytes = port->bytes + i * buffer_bytes + HEADROOM;
        port->free[port->free_count++] = &port->buffers[i];
    }
    return true;
}

/* ---- two endpoints ---- */

struct cost_side {
    struct cost_port port;
    struct cw_endpoint *endpoint;
    uint8_t *memory;
    uint64_t token;
    uint64_t spent_ns;
};

struct cost_pair {
    struct cost_side sides[2]; /* the first one puts to the second one */
    uint32_t peer;
    uint64_t posted;
    uint64_t completed;
    uint64_t notified;
    uint64_t offset;       /* of the next put */
    uint32_t until_signal; /* puts */
};

/* Whether sessions are sealed; whether payloads have a CRC. */
struct cost_cover {
    bool seals;
    bool has_crc;
};

static int side_open(struct cost_side *side, uint32_t index, const struct cost_cover *cover)
{
    struct cw_endpoint_config config;
    char error[CW_PORT_TEXT_BYTES];
    cw_endpoint_config_init(&config);
    config.waiting = CW_WAITING_SPIN;
    config.address.ip = cw_ip_v4(0x0a4d0001u + index);
    config.address.udp_port = CW_UDP_PORT;
    config.seed = 1 + index;
    config.accept_unknown = true;
    config.end_to_end = cover->has_crc;
    config.encryption = cover->seals ? CW_ENCRYPTION_REQUIRED : CW_ENCRYPTION_OFF;
    side->memory = malloc(MEMORY_BYTES);
    if (side->memory == NULL) {
        return app_error_status(CW_ERROR_MEMORY, "no memory for a region", NULL);
    }
    memset(side->memory, (int)(1 + index), MEMORY_BYTES);
    int status = cw_endpoint_create(&config, &side->port.port, cw_clock_ns(), &side->endpoint, error, sizeof(error));
    if (status != CW_OK) {
        return app_error_status(status, error, NULL);
    }
    status = cw_region_register(side->endpoint, side->memory, MEMORY_BYTES, CW_REGION_WRITE, &side->token);
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "no region", NULL);
}

/* Turns one side and takes its events; the time between `start_ns` and now is its own. */
static void side_turn(struct cost_pair *pair, uint32_t index, uint64_t start_ns)
{
    struct cost_side *side = &pair->sides[index];
    struct cw_event events[EVENTS];
    (void)cw_endpoint_turn(side->endpoint, start_ns);
    uint32_t count;
    while ((count = cw_endpoint_events(side->endpoint, events, EVENTS)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            if (events[i].kind == CW_EVENT_COMPLETE) {
                pair->completed = events[i].context;
            }
            pair->notified += events[i].kind == CW_EVENT_PUT;
        }
    }
    side->spent_ns += cw_clock_ns() - start_ns;
}

/* Turns the receiver until it has handled all packets, like one that runs next to its sender. */
static void receiver_turn(struct cost_pair *pair)
{
    const struct cost_port *port = &pair->sides[1].port;
    do {
        side_turn(pair, 1, cw_clock_ns());
    } while (port->tail != port->head);
}

static int post(struct cost_pair *pair, uint64_t size, uint32_t flags)
{
    uint64_t offset = pair->offset;
    struct cw_put put = {
        .peer = pair->peer,
        .lane_tag = cw_lane_tag(LANE, 0),
        .region = pair->sides[1].token,
        .offset = offset,
        .source = {.kind = CW_SOURCE_CONTIGUOUS,
                   .region = pair->sides[0].token,
                   .contiguous = {.data = pair->sides[0].memory + offset, .bytes = size}},
        .flags = flags,
        .context = pair->posted + 1,
    };
    int status = cw_put(pair->sides[0].endpoint, &put);
    if (status == CW_OK) {
        pair->posted++;
        pair->offset += (size + 63) & ~63ull;
        pair->offset = pair->offset + size > WALK_BYTES ? 0 : pair->offset;
    }
    return status;
}

static int pair_open(struct cost_pair *pair, uint32_t mtu_bytes, const struct cost_cover *cover)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (!cost_port_init(&pair->sides[i].port, &pair->sides[1 - i].port, mtu_bytes, (uint8_t)i)) {
            return app_error_status(CW_ERROR_MEMORY, "no memory for packets", NULL);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        int code = side_open(&pair->sides[i], i, cover);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
    }
    struct cw_address address = cw_endpoint_address(pair->sides[1].endpoint);
    int status = cw_peer_add(pair->sides[0].endpoint, &address, &pair->peer);
    status = status == CW_OK ? cw_peer_connect(pair->sides[0].endpoint, pair->peer) : status;
    for (uint32_t i = 0; i < 100; i++) {
        side_turn(pair, 1, cw_clock_ns());
        side_turn(pair, 0, cw_clock_ns());
    }
    struct cw_peer_info info;
    status = status == CW_OK ? cw_peer_query(pair->sides[0].endpoint, pair->peer, &info) : status;
    status = status == CW_OK && info.state != CW_PEER_ESTABLISHED ? CW_ERROR_TIMEOUT : status;
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "the two sides do not connect", NULL);
}

static void pair_close(struct cost_pair *pair)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (pair->sides[i].endpoint != NULL) {
            cw_endpoint_destroy(pair->sides[i].endpoint);
        }
        free(pair->sides[i].memory);
    }
    for (uint32_t i = 0; i < 2; i++) {
        free(pair->sides[i].port.buffers);
        free(pair->sides[i].port.bytes);
    }
}

/* ---- measurement ---- */

enum cost_way {
    COALESCED,
    ALONE,      /* one put a packet */
    ONE_BY_ONE, /* each after the notification of the one before */
    WAYS,
};

static const char *const ways[WAYS] = {[COALESCED] = "coalesced", [ALONE] = "alone", [ONE_BY_ONE] = "one-by-one"};

static bool way_exists(const char *name)
{
    bool exists = false;
    for (enum cost_way way = COALESCED; way < WAYS; way++) {
        exists = exists || strcmp(name, ways[way]) == 0;
    }
    return exists;
}

struct cost_result {
    uint64_t puts;
    uint64_t packets;
    double put_ns[2];  /* of each side */
    double copy_ns[2]; /* ... of the same bytes, copied alone */
};

static bool post_some(struct cost_pair *pair, uint64_t size, enum cost_way way)
{
    uint64_t under_way_max = size == 0 ? UNDER_WAY_MAX : WINDOW_BYTES / size;
    under_way_max = under_way_max < 2 ? 2 : under_way_max;
    under_way_max = under_way_max < UNDER_WAY_MAX ? under_way_max : UNDER_WAY_MAX;
    for (uint32_t i = 0; i < POSTS_A_ROUND && pair->posted - pair->completed < under_way_max; i++) {
        if (way == ONE_BY_ONE && pair->posted > pair->notified) {
            return true;
        }
        bool signal = under_way_max < 2 * SIGNAL_EVERY || --pair->until_signal == 0;
        pair->until_signal = signal ? SIGNAL_EVERY : pair->until_signal;
        uint32_t flags = (way == ONE_BY_ONE ? 0 : (uint32_t)CW_MORE) | (way == ALONE ? (uint32_t)CW_ALONE : 0) |
                         (signal ? (uint32_t)CW_SIGNAL : 0);
        int status = post(pair, size, flags);
        if (status != CW_OK) {
            pair->until_signal = 1;
            return status == CW_ERROR_AGAIN;
        }
    }
    return true;
}

/* One round of puts; false: they do not progress. */
static bool round_put(struct cost_pair *pair, uint64_t size, enum cost_way way, uint64_t now_ns)
{
    if (!post_some(pair, size, way)) {
        return false;
    }
    side_turn(pair, 0, now_ns);
    receiver_turn(pair);
    return true;
}

/* Puts for a time, and waits until they are complete: no put is in flight when the next measurement begins. */
static bool put_for(struct cost_pair *pair, uint64_t size, enum cost_way way, uint64_t duration_ns,
                    struct cost_result *result)
{
    struct cost_side *sides = pair->sides;
    uint64_t packets = cw_endpoint_counter(sides[0].endpoint, CW_COUNTER_DATA_OUT);
    uint64_t puts = pair->notified;
    pair->offset = 0;
    pair->until_signal = SIGNAL_EVERY;
    sides[0].spent_ns = sides[1].spent_ns = 0;
    uint64_t end_ns = cw_clock_ns() + duration_ns;
    uint64_t now_ns;
    /* on a busy machine the time may be over before a put has ended */
    while ((now_ns = cw_clock_ns()) < end_ns || (pair->notified == puts && now_ns < end_ns + HANG_NS)) {
        if (!round_put(pair, size, way, now_ns)) {
            return false;
        }
    }
    result->puts = pair->notified - puts;
    for (uint32_t i = 0; i < 2; i++) {
        result->put_ns[i] = result->puts == 0 ? 0 : (double)sides[i].spent_ns / (double)result->puts;
    }
    end_ns = cw_clock_ns() + HANG_NS;
    struct cw_peer_info info = {.operations_open = 1};
    while (info.operations_open > 0 && cw_clock_ns() < end_ns &&
           cw_peer_query(sides[0].endpoint, pair->peer, &info) == CW_OK) {
        side_turn(pair, 0, cw_clock_ns());
        receiver_turn(pair);
    }
    pair->completed = pair->posted;
    /* per completed put: on a busy machine many are in flight when the time ends */
    uint64_t puts_all = pair->notified - puts;
    uint64_t packets_all = cw_endpoint_counter(sides[0].endpoint, CW_COUNTER_DATA_OUT) - packets;
    result->packets =
        puts_all == 0 ? 0 : (uint64_t)((double)packets_all / (double)puts_all * (double)result->puts + 0.5);
    return info.operations_open == 0;
}

/* One side's copies of a round: pieces of puts that lie one behind the other in memory, to or from buffers. */
static uint64_t round_copy(struct cost_pair *pair, uint32_t side, uint64_t size, uint32_t piece_bytes, uint64_t *walked,
                           uint32_t count)
{
    uint8_t *memory = pair->sides[side].memory;
    struct cost_port *port = &pair->sides[0].port;
    uint64_t start_ns = cw_clock_ns();
    for (uint32_t i = 0; i < count; i++) {
        uint64_t left = size - *walked % size;
        uint64_t bytes = left < piece_bytes ? left : piece_bytes;
        uint8_t *at = memory + *walked % (WALK_BYTES / size * size);
        uint8_t *buffer = port->free[port->free_count - 1 - i]->bytes + COPY_OFFSET;
        memcpy(side == 0 ? buffer : at, side == 0 ? at : buffer, bytes);
        __asm__ volatile("" ::: "memory");
        *walked += bytes;
    }
    return cw_clock_ns() - start_ns;
}

/* The cost of copies alone for each side, by put. */
static void copy_for(struct cost_pair *pair, uint64_t size, uint64_t duration_ns, struct cost_result *result)
{
    struct cw_peer_info info;
    uint64_t walked[2] = {0, 0}, spent_ns[2] = {0, 0};
    if (size == 0 || cw_peer_query(pair->sides[0].endpoint, pair->peer, &info) != CW_OK) {
        return;
    }
    uint64_t end_ns = cw_clock_ns() + duration_ns;
    do {
        for (uint32_t side = 0; side < 2; side++) {
            spent_ns[side] += round_copy(pair, side, size, info.part_bytes_max, &walked[side], ROUND_PACKETS);
        }
    } while (cw_clock_ns() < end_ns);
    for (uint32_t side = 0; side < 2; side++) {
        result->copy_ns[side] = (double)spent_ns[side] * (double)size / (double)walked[side];
    }
}

/* Puts and copies take turns, so that both have the same machine; the medians of both. */
static bool measure(struct cost_pair *pair, uint64_t size, enum cost_way way, uint64_t duration_ns,
                    struct cost_result *result)
{
    double put_ns[2][SLICES], copy_ns[2][SLICES];
    uint64_t puts = 0, packets = 0;
    for (uint32_t i = 0; i < SLICES; i++) {
        if (!put_for(pair, size, way, duration_ns / SLICES, result)) {
            return false;
        }
        puts += result->puts;
        packets += result->packets;
        copy_for(pair, size, duration_ns / SLICES / 4, result);
        for (uint32_t side = 0; side < 2; side++) {
            put_ns[side][i] = result->put_ns[side];
            copy_ns[side][i] = result->copy_ns[side];
        }
    }
    for (uint32_t side = 0; side < 2; side++) {
        result->put_ns[side] = cw_statistics_median(put_ns[side], SLICES);
        result->copy_ns[side] = cw_statistics_median(copy_ns[side], SLICES);
    }
    result->puts = puts;
    result->packets = packets;
    return true;
}

static void result_report(struct app_report *report, uint64_t size, enum cost_way way, const struct cost_result *result)
{
    static const char *const names[WAYS] = {[COALESCED] = "coalesced", [ALONE] = "alone", [ONE_BY_ONE] = "one by one"};
    double per_put = result->puts == 0 ? 0 : (double)result->packets / (double)result->puts;
    double puts = per_put > 0 ? 1 / per_put : 0; /* in a packet */
    double ratio[2];
    for (uint32_t i = 0; i < 2; i++) {
        ratio[i] = result->copy_ns[i] > 0 ? result->put_ns[i] / result->copy_ns[i] : 0;
    }
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "cost"),
        app_count("size_bytes", "bytes", size),
        app_text("way", "way", 10, names[way]),
        app_number("packets_per_put", "pkt/put", 3, 1, per_put),
        app_number("sender_put_ns", "sender/put", 1, 1, result->put_ns[0]),
        app_number("receiver_put_ns", "receiver/put", 1, 1, result->put_ns[1]),
        app_number("sender_packet_ns", "sender/pkt", 1, 1, result->put_ns[0] * puts),
        app_number("receiver_packet_ns", "receiver/pkt", 1, 1, result->put_ns[1] * puts),
        app_number("sender_copy_packet_ns", "memcpy out", 1, 1, result->copy_ns[0] * puts),
        app_number("receiver_copy_packet_ns", "memcpy in", 1, 1, result->copy_ns[1] * puts),
        app_number("sender_copies", "out, ratio", 2, 1, ratio[0]),
        app_number("receiver_copies", "in, ratio", 2, 1, ratio[1]),
    };
    APP_REPORT(report, cells);
}

static int measure_all(struct cost_pair *pair, const struct app_list *sizes, uint64_t duration_ns, const char *only,
                       struct app_report *report)
{
    bool goes_on = true;
    for (size_t i = 0; i < sizes->count && goes_on; i++) {
        for (enum cost_way way = COALESCED; way < WAYS && goes_on; way++) {
            struct cost_result result = {.puts = 0};
            if (only != NULL && strcmp(only, ways[way]) != 0) {
                continue;
            }
            goes_on = measure(pair, sizes->values[i], way, duration_ns, &result);
            if (goes_on) {
                result_report(report, sizes->values[i], way, &result);
            }
        }
    }
    return goes_on ? APP_EXIT_SUCCESS : app_error_status(CW_ERROR_TIMEOUT, "puts do not end", NULL);
}

int bench_cost(int argc, char **argv)
{
    uint64_t mtu_bytes = 1500;
    uint64_t duration_ns = 200000000;
    struct app_list sizes = {.values = {8, 32, 1024, 65536, 1 << 20}, .count = 5};
    const char *only = NULL;
    struct app_report report = {.json = false};
    struct cost_cover cover = {.seals = false};
    const struct app_option options[] = {
        OPTION_SIZES("sizes", "sizes of puts (8,32,1024,65536,1M)", &sizes, 0, MEMORY_BYTES / 4),
        OPTION_BYTES("mtu", "largest IP packet (1500)", &mtu_bytes, CW_PORT_MTU_MIN, CW_PORT_MTU_MAX),
        OPTION_TIME("duration", "of each measurement (200ms)", &duration_ns, 1000000, 60000000000ull),
        OPTION_TEXT("only", "coalesced|alone|one-by-one", "one way of putting (all three)", &only),
        OPTION_FLAG("crc", "payloads have a CRC-32C (the medium keeps them)", &cover.has_crc),
        OPTION_FLAG("encrypt", "sealed sessions", &cover.seals),
        OPTION_JSON(" a line", &report.json),
        {0},
    };
    int code;
    if (app_options_parse("bench cost [OPTION...]\n"
                          "\n"
                          "Measures the cost of the protocol for a core, in nanoseconds, without any driver: both "
                          "sides in one thread. memcpy: the cost of copies of the same bytes alone.",
                          options, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (only != NULL && !way_exists(only)) {
        app_error("--only knows coalesced, alone and one-by-one", only, NULL);
        return APP_EXIT_USAGE;
    }
    struct cost_pair *pair = calloc(1, sizeof(*pair));
    if (pair == NULL) {
        return app_error_status(CW_ERROR_MEMORY, "no memory", NULL);
    }
    code = pair_open(pair, (uint32_t)mtu_bytes, &cover);
    code = code == APP_EXIT_SUCCESS ? measure_all(pair, &sizes, duration_ns, only, &report) : code;
    pair_close(pair);
    free(pair);
    return code;
}
