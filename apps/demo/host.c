/* One host of the demo: a port, an endpoint, a loop and a mapped file. */
#include "apps/demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "apps/bench/control.h"
#include "dataplane/core/clock.h"
#include "dataplane/core/loop.h"
#include "dataplane/dataplane.h"
#include "dataplane/port/ethdev.h"

#define WAIT_NS      30000000000ull
#define LINK_WAIT_NS 10000000000ull

enum { EVENTS = 64, UDP_PORT = CW_UDP_PORT, LANE = 1, UNDER_WAY_MAX = 16 };

struct host {
    uint32_t number;
    int control;
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    struct cw_loop *loop;
    uint32_t peer;
    uint8_t *memory;
    uint64_t bytes;
    uint64_t token;
    uint64_t peer_token;
    struct demo_report *report;
};

struct introduction {
    struct cw_address address;
    uint64_t token;
};

static int fail(struct host *host, int status, const char *what)
{
    snprintf(host->report->error, sizeof(host->report->error), "host %c: %s", host->number == 0 ? 'A' : 'B', what);
    return status;
}

static int open_port(struct host *host, const struct demo_world *world)
{
    struct cw_port_ethdev_config config;
    char arguments[DEMO_PATH_BYTES + 128];
    char bell[DEMO_PATH_BYTES + 32];
    cw_port_ethdev_config_init(&config);
    /* Both hosts are forks of one process, and DPDK's generator was seeded before the fork: left to it, they would draw
     * the same address. */
    snprintf(arguments, sizeof(arguments), "role=client,id=%u,socket=%s,socket-abstract=no,mac=02:00:0a:00:00:%02x",
             host->number, world->socket, host->number + 1);
    snprintf(bell, sizeof(bell), "%s.bell", world->socket);
    config.device = "net_memif0";
    config.device_arguments = arguments;
    config.doorbell_path = bell;
    config.doorbell_own = 1 + host->number;
    config.doorbell_peer = 0;
    int status = cw_port_ethdev_open(&config, &host->port, host->report->error, sizeof(host->report->error));
    if (status != CW_OK) {
        host->port = NULL;
        return status;
    }
    uint64_t until_ns = cw_clock_ns() + LINK_WAIT_NS;
    while (!cw_port_link_up(host->port)) {
        if (cw_clock_ns() > until_ns) {
            return fail(host, CW_ERROR_TIMEOUT, "the link to the switch does not come up");
        }
        usleep(1000);
    }
    return CW_OK;
}

/* Maps the file that this host reads (A) or writes (B). */
static int map_file(struct host *host, const struct demo_world *world)
{
    bool reads = host->number == 0;
    int file = reads ? open(world->source, O_RDONLY | O_CLOEXEC)
                     : open(world->target, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || (!reads && posix_fallocate(file, 0, (off_t)host->bytes) != 0)) {
        if (file >= 0) {
            close(file);
        }
        return fail(host, CW_ERROR_SYSTEM, reads ? "cannot open the file" : "cannot make the file: is the disk full?");
    }
    void *memory = mmap(NULL, host->bytes, reads ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) {
        return fail(host, CW_ERROR_MEMORY, "cannot map the file");
    }
    host->memory = memory;
    return CW_OK;
}

static int open_endpoint(struct host *host)
{
    struct cw_endpoint_config config;
    struct cw_loop_config loop;
    struct demo_report *report = host->report;
    cw_endpoint_config_init(&config);
    cw_loop_config_init(&loop);
    config.waiting = cw_loop_waiting(&loop, &host->port->info);
    config.address.ipv4 = 0x0a000001u + host->number;
    config.address.udp_port = UDP_PORT;
    memset(config.job_key, 0x64, sizeof(config.job_key)); /* a network of two processes that one command has made */
    if (getrandom(&config.seed, sizeof(config.seed), 0) != (ssize_t)sizeof(config.seed)) {
        return fail(host, CW_ERROR_SYSTEM, "getrandom fails");
    }
    int status =
        cw_endpoint_create(&config, host->port, cw_clock_ns(), &host->endpoint, report->error, sizeof(report->error));
    if (status != CW_OK) {
        return status;
    }
    status = cw_region_register(host->endpoint, host->memory, host->bytes,
                                host->number == 0 ? CW_REGION_LOCAL : CW_REGION_WRITE, &host->token);
    if (status != CW_OK) {
        return fail(host, status, "cannot register the file's memory");
    }
    return cw_loop_create(&loop, host->endpoint, host->port, &host->loop, report->error, sizeof(report->error));
}

static int run_meet(struct cw_endpoint *endpoint, void *context)
{
    struct host *host = context;
    struct introduction own = {.address = cw_endpoint_address(endpoint), .token = host->token};
    struct introduction other;
    int status = bench_control_send(host->control, &own, sizeof(own), WAIT_NS);
    if (status == CW_OK) {
        status = bench_control_receive(host->control, &other, sizeof(other), WAIT_NS);
    }
    if (status != CW_OK) {
        return status;
    }
    host->peer_token = other.token;
    return cw_peer_add(endpoint, &other.address, &host->peer);
}

static int post(struct host *host, uint64_t index)
{
    uint64_t offset = index * DEMO_PUT_BYTES;
    uint64_t left = host->bytes - offset;
    struct cw_put put = {
        .peer = host->peer,
        .lane_tag = cw_lane_tag(LANE, (uint32_t)index),
        .region = host->peer_token,
        .offset = offset,
        .source = {.kind = CW_SOURCE_CONTIGUOUS,
                   .region = host->token,
                   .contiguous = {.data = host->memory + offset,
                                  .bytes = left < DEMO_PUT_BYTES ? left : DEMO_PUT_BYTES}},
        .context = index,
        .flags = CW_SIGNAL,
    };
    return cw_loop_put(host->loop, &put);
}

/* Host A: puts the whole file, some pieces at a time, until the last is complete. */
static int send_file(struct host *host)
{
    uint64_t count = (host->bytes + DEMO_PUT_BYTES - 1) / DEMO_PUT_BYTES;
    uint64_t posted = 0;
    uint64_t completed = 0;
    uint64_t start_ns = cw_clock_ns();
    while (completed < count) {
        while (posted < count && posted - completed < UNDER_WAY_MAX) {
            int status = post(host, posted);
            if (status == CW_ERROR_AGAIN) {
                break;
            }
            if (status != CW_OK) {
                return fail(host, status, "a put is refused");
            }
            posted++;
        }
        struct cw_event events[EVENTS];
        uint32_t taken = cw_loop_wait(host->loop, events, EVENTS, WAIT_NS);
        if (taken == 0) {
            return fail(host, CW_ERROR_TIMEOUT, "no put completes");
        }
        for (uint32_t i = 0; i < taken; i++) {
            if (events[i].status < 0 && events[i].status != CW_ERROR_PEER_RESTARTED) {
                return fail(host, events[i].status, "a put fails");
            }
            completed += events[i].kind == CW_EVENT_COMPLETE;
        }
    }
    host->report->elapsed_ns = cw_clock_ns() - start_ns;
    return CW_OK;
}

/* Host B: waits for the notification of each piece; they come in order, since all are on one lane. */
static int receive_file(struct host *host)
{
    uint64_t count = (host->bytes + DEMO_PUT_BYTES - 1) / DEMO_PUT_BYTES;
    uint64_t arrived = 0;
    while (arrived < count) {
        struct cw_event events[EVENTS];
        uint32_t taken = cw_loop_wait(host->loop, events, EVENTS, WAIT_NS);
        if (taken == 0) {
            return fail(host, CW_ERROR_TIMEOUT, "nothing arrives");
        }
        for (uint32_t i = 0; i < taken; i++) {
            if (events[i].kind == CW_EVENT_PUT) {
                if (cw_tag(events[i].lane_tag) != (uint32_t)(arrived & ((1u << CW_TAG_BITS) - 1))) {
                    return fail(host, CW_ERROR_SYSTEM, "a notification is out of order");
                }
                arrived++;
            } else if (events[i].status < 0 && events[i].status != CW_ERROR_PEER_RESTARTED) {
                return fail(host, events[i].status, "the connection fails");
            }
        }
    }
    host->report->notifications = arrived;
    return msync(host->memory, host->bytes, MS_SYNC) == 0 ? CW_OK
                                                          : fail(host, CW_ERROR_SYSTEM, "the file cannot be written");
}

static int run_report(struct cw_endpoint *endpoint, void *context)
{
    struct host *host = context;
    struct demo_report *report = host->report;
    struct cw_peer_info info;
    report->data_packets = cw_endpoint_counter(endpoint, CW_COUNTER_DATA_OUT);
    report->retransmitted = cw_endpoint_counter(endpoint, CW_COUNTER_RETRANSMITTED);
    report->probes = cw_endpoint_counter(endpoint, CW_COUNTER_PROBES_OUT);
    report->duplicates = cw_endpoint_counter(endpoint, CW_COUNTER_DROP_DUPLICATE);
    report->acknowledgements = cw_endpoint_counter(endpoint, CW_COUNTER_ACKNOWLEDGEMENTS_OUT);
    if (cw_peer_query(endpoint, host->peer, &info) == CW_OK) {
        report->round_trip_ns = info.round_trip_ns;
        report->round_trip_min_ns = info.round_trip_min_ns;
    }
    return CW_OK;
}

static int transfer(struct host *host)
{
    int status = cw_loop_call(host->loop, run_meet, host);
    if (status != CW_OK) {
        return fail(host, status, "the other host does not answer");
    }
    status = host->number == 0 ? send_file(host) : receive_file(host);
    if (status != CW_OK) {
        return status;
    }
    (void)cw_loop_call(host->loop, run_report, host);
    /* Nobody leaves while the other still needs acknowledgements; the fallback thread gives them. */
    if (bench_control_barrier(host->control, 1, WAIT_NS) != CW_OK) {
        return fail(host, CW_ERROR_CLOSED, "the other host has gone");
    }
    return CW_OK;
}

static void close_host(struct host *host)
{
    if (host->loop != NULL) {
        cw_loop_destroy(host->loop);
    }
    cw_endpoint_destroy(host->endpoint);
    if (host->port != NULL) {
        cw_port_close(host->port);
    }
    if (host->memory != NULL) {
        munmap(host->memory, host->bytes);
    }
}

void demo_host_run(const struct demo_world *world, uint32_t number, int control, uint64_t bytes,
                   struct demo_report *report)
{
    struct host host = {.number = number, .control = control, .bytes = bytes, .report = report};
    *report = (struct demo_report){0};
    int status = map_file(&host, world);
    status = status == CW_OK ? open_port(&host, world) : status;
    status = status == CW_OK ? open_endpoint(&host) : status;
    status = status == CW_OK ? transfer(&host) : status;
    report->status = status;
    close_host(&host);
}
