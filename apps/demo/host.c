/* One host of the demo: a member of the group, with a mapped file. */
#include "apps/demo/demo.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dataplane/base/clock.h"

#define WAIT_NS 30000000000ull

enum { EVENTS = 64, LANE = 1, UNDER_WAY_MAX = 16 };

static uint64_t bytes_of(const struct bench_member *host)
{
    return host->group->config.region_bytes;
}

int demo_host_map(struct bench_member *host)
{
    const struct demo_world *world = host->settings;
    bool reads = host->index == 0;
    int file = reads ? open(world->source, O_RDONLY | O_CLOEXEC)
                     : open(world->target, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || (!reads && posix_fallocate(file, 0, (off_t)bytes_of(host)) != 0)) {
        return bench_member_fail(host, CW_ERROR_SYSTEM,
                                 reads ? "cannot open the file" : "cannot create the file: is the disk full?");
    }
    host->region = mmap(NULL, bytes_of(host), reads ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    host->rights = reads ? CW_REGION_LOCAL : CW_REGION_WRITE;
    close(file);
    return host->region == MAP_FAILED ? bench_member_fail(host, CW_ERROR_MEMORY, "cannot map the file")
                                      : APP_EXIT_SUCCESS;
}

static int post(struct bench_member *host, uint64_t index)
{
    uint64_t offset = index * DEMO_PUT_BYTES;
    uint64_t left = bytes_of(host) - offset;
    struct cw_put put = {
        .peer = host->peer,
        .lane_tag = cw_lane_tag(LANE, (uint32_t)index),
        .region = host->peer_token,
        .offset = offset,
        .source = {.kind = CW_SOURCE_CONTIGUOUS,
                   .region = host->token,
                   .contiguous = {.data = host->region + offset,
                                  .bytes = left < DEMO_PUT_BYTES ? left : DEMO_PUT_BYTES}},
        .context = index,
        .flags = CW_SIGNAL,
    };
    return cw_loop_put(host->loop, &put);
}

/* Host A: puts the whole file, with at most UNDER_WAY_MAX pieces in progress, and waits for the last completion. */
static int send_file(struct bench_member *host)
{
    uint64_t count = (bytes_of(host) + DEMO_PUT_BYTES - 1) / DEMO_PUT_BYTES;
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
                return bench_member_fail(host, status, "a put was rejected");
            }
            posted++;
        }
        struct cw_event events[EVENTS];
        uint32_t taken = cw_loop_wait(host->loop, events, EVENTS, WAIT_NS);
        if (taken == 0) {
            return bench_member_fail(host, CW_ERROR_TIMEOUT, "no put completed in time");
        }
        for (uint32_t i = 0; i < taken; i++) {
            if (events[i].status < 0 && events[i].status != CW_ERROR_PEER_RESTARTED) {
                return bench_member_fail(host, events[i].status, "a put failed");
            }
            completed += events[i].kind == CW_EVENT_COMPLETE;
        }
    }
    ((struct demo_report *)host->result)->elapsed_ns = cw_clock_ns() - start_ns;
    return APP_EXIT_SUCCESS;
}

/* Host B: waits for the notification of each piece. They arrive in order, since all pieces use one lane. */
static int receive_file(struct bench_member *host)
{
    uint64_t count = (bytes_of(host) + DEMO_PUT_BYTES - 1) / DEMO_PUT_BYTES;
    uint64_t arrived = 0;
    while (arrived < count) {
        struct cw_event events[EVENTS];
        uint32_t taken = cw_loop_wait(host->loop, events, EVENTS, WAIT_NS);
        if (taken == 0) {
            return bench_member_fail(host, CW_ERROR_TIMEOUT, "no put arrived in time");
        }
        for (uint32_t i = 0; i < taken; i++) {
            if (events[i].kind == CW_EVENT_PUT) {
                if (cw_tag(events[i].lane_tag) != (uint32_t)(arrived & ((1u << CW_TAG_BITS) - 1))) {
                    return bench_member_fail(host, CW_ERROR_SYSTEM, "a notification arrived out of order");
                }
                arrived++;
            } else if (events[i].status < 0 && events[i].status != CW_ERROR_PEER_RESTARTED) {
                return bench_member_fail(host, events[i].status, "the connection failed");
            }
        }
    }
    ((struct demo_report *)host->result)->notifications = arrived;
    return msync(host->region, bytes_of(host), MS_SYNC) == 0
               ? APP_EXIT_SUCCESS
               : bench_member_fail(host, CW_ERROR_SYSTEM, "the file cannot be written");
}

static int run_report(struct cw_endpoint *endpoint, void *context)
{
    struct bench_member *host = context;
    struct demo_report *report = host->result;
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

/* A host waits for the other one before it leaves. Meanwhile the fallback thread sends acknowledgements. */
int demo_host_run(struct bench_member *host)
{
    int code = host->index == 0 ? send_file(host) : receive_file(host);
    if (code == APP_EXIT_SUCCESS) {
        (void)cw_loop_call(host->loop, run_report, host);
        bench_member_leave(host);
    }
    return code;
}
