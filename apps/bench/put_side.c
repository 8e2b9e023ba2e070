#include "apps/bench/put.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "apps/bench/control.h"
#include "dataplane/core/clock.h"
#include "dataplane/statistics.h"

#define CONTROL_TIMEOUT_NS (BENCH_PUT_CONTROL_TIMEOUT_S * 1000000000ull)

enum {
    EVENTS = 64,
    LANE = 1,
    UDP_PORT = CW_UDP_PORT,
    WINDOW_BYTES = 2 << 20, /* of large puts under way */
    WALK_BYTES = 1 << 20,
    SIGNAL_EVERY = 64,
};

/* What each side tells the other. */
struct introduction {
    struct cw_address address;
    uint64_t token;
};

static int run_peer_add(struct cw_endpoint *endpoint, void *context)
{
    struct bench_side *side = context;
    struct introduction own = {.address = cw_endpoint_address(endpoint), .token = side->token};
    struct introduction other;
    int status = bench_control_send(side->control, &own, sizeof(own), CONTROL_TIMEOUT_NS);
    if (status == CW_OK) {
        status = bench_control_receive(side->control, &other, sizeof(other), CONTROL_TIMEOUT_NS);
    }
    if (status != CW_OK) {
        return status;
    }
    side->peer_token = other.token;
    status = cw_peer_add(endpoint, &other.address, &side->peer);
    return status == CW_OK && side->initiator ? cw_peer_connect(endpoint, side->peer) : status;
}

/* Waits for the first event of a kind. */
static int await(struct bench_side *side, enum cw_event_kind kind, uint64_t timeout_ns)
{
    uint64_t until_ns = cw_clock_ns() + timeout_ns;
    while (cw_clock_ns() < until_ns) {
        struct cw_event event;
        if (cw_loop_wait(side->loop, &event, 1, 10000000) == 1) {
            if (event.kind == kind) {
                return event.status == CW_ERROR_PEER_RESTARTED ? CW_OK : event.status;
            }
            if (event.kind == CW_EVENT_PEER_DOWN) {
                return event.status;
            }
        }
    }
    return CW_ERROR_TIMEOUT;
}

static int open_endpoint(struct bench_side *side, bool spin, struct cw_loop_config *loop, char *error,
                         size_t error_bytes)
{
    struct cw_endpoint_config config;
    cw_endpoint_config_init(&config);
    cw_loop_config_init(loop);
    loop->spin = spin;
    loop->fallback = !spin;
    config.waiting = cw_loop_waiting(loop, &side->port->info);
    config.address.ipv4 = 0x0a4d0001u + (side->initiator ? 0u : 1u);
    config.address.udp_port = UDP_PORT;
    memset(config.job_key, 0x42, sizeof(config.job_key)); /* a network of two processes that one command has made */
    if (getrandom(&config.seed, sizeof(config.seed), 0) != (ssize_t)sizeof(config.seed)) {
        snprintf(error, error_bytes, "getrandom: %s", strerror(errno));
        return CW_ERROR_SYSTEM;
    }
    return cw_endpoint_create(&config, side->port, cw_clock_ns(), &side->endpoint, error, error_bytes);
}

int bench_side_open(struct bench_side *side, struct cw_port *port, int control, bool initiator, bool spin,
                    uint64_t memory_bytes, char *error, size_t error_bytes)
{
    *side = (struct bench_side){.initiator = initiator, .control = control, .port = port, .memory_bytes = memory_bytes};
    struct cw_loop_config loop;
    int status = open_endpoint(side, spin, &loop, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    side->memory = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (side->memory == MAP_FAILED) {
        snprintf(error, error_bytes, "no memory for a region of %llu bytes", (unsigned long long)memory_bytes);
        return CW_ERROR_MEMORY;
    }
    memset(side->memory, initiator ? 1 : 2, memory_bytes);
    status = cw_region_register(side->endpoint, side->memory, memory_bytes, CW_REGION_WRITE, &side->token);
    if (status == CW_OK) {
        status = cw_loop_create(&loop, side->endpoint, port, &side->loop, error, error_bytes);
    }
    if (status == CW_OK) {
        status = cw_loop_call(side->loop, run_peer_add, side);
    }
    if (status == CW_OK) {
        status = await(side, CW_EVENT_PEER_UP, CONTROL_TIMEOUT_NS);
    }
    if (status != CW_OK) {
        snprintf(error, error_bytes, "the two sides do not connect: %s", cw_status_text(status));
    }
    return status;
}

void bench_side_close(struct bench_side *side)
{
    cw_loop_destroy(side->loop);
    cw_endpoint_destroy(side->endpoint);
    if (side->memory != NULL && side->memory != MAP_FAILED) {
        munmap(side->memory, side->memory_bytes);
    }
    *side = (struct bench_side){0};
}

static void fill_put(const struct bench_side *side, uint64_t offset, uint64_t size, struct cw_put *put)
{
    *put = (struct cw_put){
        .peer = side->peer,
        .lane_tag = cw_lane_tag(LANE, 0),
        .region = side->peer_token,
        .offset = offset,
        .source = {.kind = CW_SOURCE_CONTIGUOUS,
                   .region = side->token,
                   .contiguous = {.data = side->memory + offset, .bytes = size}},
    };
}

/* Waits for one put; an error if the peer goes. */
static int await_put(struct bench_side *side)
{
    for (;;) {
        struct cw_event event;
        if (cw_loop_wait(side->loop, &event, 1, CONTROL_TIMEOUT_NS) == 0) {
            return CW_ERROR_TIMEOUT;
        }
        if (event.kind == CW_EVENT_PUT) {
            return (int)cw_tag(event.lane_tag);
        }
        if (event.status < 0) {
            return event.status;
        }
    }
}

static int latency_initiator(struct bench_side *side, uint64_t size, uint64_t duration_ns,
                             struct bench_put_latency *latency)
{
    double *samples = malloc(BENCH_PUT_SAMPLES_MAX * sizeof(*samples));
    if (samples == NULL) {
        return CW_ERROR_MEMORY;
    }
    struct cw_put put;
    fill_put(side, 0, size, &put);
    uint64_t end_ns = cw_clock_ns() + duration_ns + duration_ns / 4;
    uint64_t measure_ns = cw_clock_ns() + duration_ns / 4;
    uint64_t count = 0;
    bool last = false;
    int status = CW_OK;
    while (!last) {
        uint64_t start_ns = cw_clock_ns();
        last = start_ns >= end_ns || count == BENCH_PUT_SAMPLES_MAX;
        put.lane_tag = cw_lane_tag(LANE, last ? 1 : 0);
        status = cw_loop_put(side->loop, &put);
        status = status == CW_OK ? await_put(side) : status;
        if (status < 0) {
            break;
        }
        if (!last && start_ns >= measure_ns) {
            samples[count++] = (double)(cw_clock_ns() - start_ns);
        }
    }
    if (status >= 0) {
        latency->count = count;
        latency->p50_ns = cw_statistics_median(samples, count);
        latency->p99_ns = cw_statistics_percentile(samples, count, 0.99);
    }
    free(samples);
    return status < 0 ? status : CW_OK;
}

static int latency_responder(struct bench_side *side, uint64_t size)
{
    struct cw_put put;
    fill_put(side, 0, size, &put);
    for (;;) {
        int tag = await_put(side);
        if (tag < 0) {
            return tag;
        }
        int status = cw_loop_put(side->loop, &put);
        if (status != CW_OK) {
            return status;
        }
        if (tag == 1) {
            return CW_OK;
        }
    }
}

/* Turns until nothing of ours is under way. */
static int drain(struct bench_side *side)
{
    struct cw_peer_info info;
    uint64_t until_ns = cw_clock_ns() + CONTROL_TIMEOUT_NS;
    do {
        struct cw_event events[EVENTS];
        (void)cw_loop_poll(side->loop, events, EVENTS);
        int status = cw_peer_query(side->endpoint, side->peer, &info);
        if (status != CW_OK || info.state != CW_PEER_ESTABLISHED) {
            return status == CW_OK ? CW_ERROR_PEER_FAILED : status;
        }
    } while (info.operations_open > 0 && cw_clock_ns() < until_ns);
    return info.operations_open == 0 ? CW_OK : CW_ERROR_TIMEOUT;
}

/* Meets the other side while both go on turning, so that the last acknowledgements flow, and forgets what has come. Who
 * has met once may put at once, and the other side might take that for something to forget: so they meet twice, the
 * second time without turning. */
static int meet(struct bench_side *side)
{
    struct cw_event events[EVENTS];
    uint8_t mark = 1;
    ssize_t got = 0;
    int status = drain(side);
    if (status == CW_OK) {
        status = bench_control_send(side->control, &mark, 1, CONTROL_TIMEOUT_NS);
    }
    while (status == CW_OK && got != 1) {
        (void)cw_loop_poll(side->loop, events, EVENTS);
        got = recv(side->control, &mark, 1, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            status = CW_ERROR_CLOSED;
        }
    }
    while (status == CW_OK && cw_loop_poll(side->loop, events, EVENTS) > 0) {
    }
    if (status == CW_OK) {
        status = bench_control_send(side->control, &mark, 1, CONTROL_TIMEOUT_NS);
    }
    return status == CW_OK ? bench_control_receive(side->control, &mark, 1, CONTROL_TIMEOUT_NS) : status;
}

int bench_put_latency(struct bench_side *side, uint64_t size, uint64_t duration_ns, struct bench_put_latency *latency)
{
    int status = side->initiator ? latency_initiator(side, size, duration_ns, latency) : latency_responder(side, size);
    return status == CW_OK ? meet(side) : status;
}

/* ---- rate ---- */

static int rate_initiator(struct bench_side *side, uint64_t size, bool alone, uint64_t duration_ns,
                          struct bench_put_rate *rate)
{
    uint64_t step = (size + 63) & ~63ull;
    /* walks over two puts or 1 MiB, whichever is more: what the raw copies walk over stays in the same caches */
    uint64_t walk_bytes = 2 * step > WALK_BYTES ? 2 * step : WALK_BYTES;
    walk_bytes = walk_bytes < side->memory_bytes ? walk_bytes : side->memory_bytes;
    uint64_t places = step == 0 ? 4096 : walk_bytes / step;
    uint64_t under_way_max = size == 0 || WINDOW_BYTES / size > 4096 ? 4096 : WINDOW_BYTES / size;
    under_way_max = under_way_max < 2 ? 2 : under_way_max;
    under_way_max = under_way_max > places ? places : under_way_max;
    uint64_t signal_every = under_way_max / 4 > SIGNAL_EVERY ? SIGNAL_EVERY : under_way_max / 4 + 1;
    uint64_t data_before = cw_endpoint_counter(side->endpoint, CW_COUNTER_DATA_OUT);
    uint64_t again_before = cw_endpoint_counter(side->endpoint, CW_COUNTER_RETRANSMITTED);
    uint64_t end_ns = cw_clock_ns() + duration_ns;
    uint64_t posted = 0;
    uint64_t completed = 0;
    uint64_t place = 0; /* counted up, not divided: a division takes as long as half a put */
    uint64_t until_signal = signal_every;
    while (cw_clock_ns() < end_ns) {
        for (uint32_t burst = 0; burst < 32 && posted - completed < under_way_max; burst++) {
            struct cw_put put;
            fill_put(side, place * step, size, &put);
            bool signal = until_signal == 1;
            put.flags = CW_MORE | (alone ? CW_ALONE : 0) | (signal ? CW_SIGNAL : 0);
            put.context = posted + 1;
            int status = cw_loop_put(side->loop, &put);
            if (status == CW_ERROR_AGAIN) {
                break;
            }
            if (status != CW_OK) {
                return status;
            }
            posted++;
            place = place + 1 == places ? 0 : place + 1;
            until_signal = signal ? signal_every : until_signal - 1;
        }
        struct cw_event events[EVENTS];
        uint32_t count = cw_loop_poll(side->loop, events, EVENTS);
        for (uint32_t i = 0; i < count; i++) {
            if (events[i].status < 0) {
                return events[i].status;
            }
            if (events[i].kind == CW_EVENT_COMPLETE && events[i].context > completed) {
                completed = events[i].context;
            }
        }
    }
    int status = drain(side);
    rate->packets_per_put =
        posted == 0 ? 0
                    : (double)(cw_endpoint_counter(side->endpoint, CW_COUNTER_DATA_OUT) - data_before) / (double)posted;
    rate->retransmits = cw_endpoint_counter(side->endpoint, CW_COUNTER_RETRANSMITTED) - again_before;
    return status;
}

/* What the responder tells at the end. */
struct count {
    uint64_t puts;
    uint64_t bytes;
    uint64_t elapsed_ns;
    uint64_t duplicates;
};

static int rate_responder(struct bench_side *side, uint64_t warmup_ns, uint64_t duration_ns, struct count *count)
{
    uint64_t before = cw_endpoint_counter(side->endpoint, CW_COUNTER_DROP_DUPLICATE);
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
    uint64_t start_ns = 0;
    *count = (struct count){0};
    for (uint32_t round = 0;; round++) {
        struct cw_event events[EVENTS];
        uint32_t taken = cw_loop_poll(side->loop, events, EVENTS);
        if (taken == 0) {
            uint8_t mark;
            if (round % 256 == 0 && recv(side->control, &mark, 1, MSG_DONTWAIT) == 1) {
                count->elapsed_ns = last_ns - start_ns;
                count->duplicates = cw_endpoint_counter(side->endpoint, CW_COUNTER_DROP_DUPLICATE) - before;
                return CW_OK;
            }
            continue;
        }
        uint64_t now_ns = cw_clock_ns();
        first_ns = first_ns == 0 ? now_ns : first_ns;
        if (now_ns - first_ns < warmup_ns || now_ns - first_ns > warmup_ns + duration_ns) {
            continue;
        }
        if (start_ns == 0) {
            start_ns = last_ns = now_ns; /* these events fall before the interval */
            continue;
        }
        last_ns = now_ns;
        for (uint32_t i = 0; i < taken; i++) {
            if (events[i].kind == CW_EVENT_PUT) {
                count->puts++;
                count->bytes += events[i].bytes;
            } else if (events[i].status < 0) {
                return events[i].status;
            }
        }
    }
}

int bench_put_rate(struct bench_side *side, uint64_t size, bool alone, uint64_t warmup_ns, uint64_t duration_ns,
                   struct bench_put_rate *rate)
{
    struct count count;
    *rate = (struct bench_put_rate){0};
    int status;
    if (side->initiator) {
        uint8_t mark = 1;
        status = rate_initiator(side, size, alone, warmup_ns + duration_ns + duration_ns / 10, rate);
        if (status == CW_OK) {
            status = bench_control_send(side->control, &mark, 1, CONTROL_TIMEOUT_NS);
        }
        if (status == CW_OK) {
            status = bench_control_receive(side->control, &count, sizeof(count), CONTROL_TIMEOUT_NS);
        }
    } else {
        status = rate_responder(side, warmup_ns, duration_ns, &count);
        if (status == CW_OK) {
            status = bench_control_send(side->control, &count, sizeof(count), CONTROL_TIMEOUT_NS);
        }
    }
    if (status != CW_OK) {
        return status;
    }
    double seconds = (double)count.elapsed_ns / 1e9;
    rate->puts_per_s = seconds > 0 ? (double)count.puts / seconds : 0;
    rate->bytes_per_s = seconds > 0 ? (double)count.bytes / seconds : 0;
    rate->spurious = count.duplicates;
    return meet(side);
}

/* ---- the token ---- */

static int nothing(struct cw_endpoint *endpoint, void *context)
{
    (void)endpoint;
    (void)context;
    return CW_OK;
}

double bench_token_cost_ns(struct bench_side *side)
{
    enum { CALLS = 1000000 };
    uint64_t start_ns = cw_clock_ns();
    for (uint32_t i = 0; i < CALLS; i++) {
        (void)cw_loop_call(side->loop, nothing, NULL);
    }
    uint64_t with_ns = cw_clock_ns() - start_ns;
    start_ns = cw_clock_ns();
    for (uint32_t i = 0; i < CALLS; i++) {
        cw_endpoint_clock(side->endpoint, cw_clock_ns()); /* what such a call does besides */
    }
    uint64_t without_ns = cw_clock_ns() - start_ns;
    return with_ns > without_ns ? (double)(with_ns - without_ns) / CALLS : 0;
}
