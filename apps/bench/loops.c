/* causeway bench loops: what several loops of a process move (loop/set.h), beside one: two processes' worth of them in
 * this one, over UDP sockets of the loopback interface or over a memif with a queue pair for each loop, in rounds that
 * take turns. Both ends of a loop share a core, so that N loops use N cores. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "dataplane/base/clock.h"
#include "dataplane/loop/set.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/port/udp.h"
#include "dataplane/status.h"

enum {
    MTU_BYTES = 1500,
    UNDER_WAY = 16, /* puts of each loop */
    EVENTS = 64,
    LOOPBACK_IP = 0x7f000001,
    MEMIF_IP = 0x0a000001, /* of the first side */
};

#define WARMUP_NS   50000000ull
#define PATIENCE_NS 10000000000ull

struct side {
    struct cw_set set;
    struct cw_port *ports[CW_SET_LOOPS_MAX];
    struct cw_endpoint *endpoints[CW_SET_LOOPS_MAX];
    uint8_t *memory;
    uint64_t token;
    uint32_t peer;
};

struct bench {
    uint64_t size, duration_ns;
    bool by_memif;
    int cores[CPU_SETSIZE];
    uint32_t core_count, loops;
    struct side sides[2];                       /* who puts, and where to */
    bool is_open[CW_SET_LOOPS_MAX * UNDER_WAY]; /* places of puts */
    uint64_t posted, completed, failed;
};

static uint64_t memory_bytes(const struct bench *bench)
{
    return bench->size * UNDER_WAY * bench->loops;
}

static int sockets_open(struct bench *bench, char *error, size_t error_bytes)
{
    const struct cw_port_udp_config config = {
        .ip = cw_ip_v4(LOOPBACK_IP), .stream_count = 1, .mtu_bytes = MTU_BYTES, .group_port = 0};
    int status = CW_OK;
    for (uint32_t i = 0; i < 2 * bench->loops && status == CW_OK; i++) {
        struct cw_port **port = &bench->sides[i % 2].ports[i / 2];
        status = cw_port_udp_open(&config, port, error, error_bytes);
        *port = status == CW_OK ? *port : NULL;
    }
    return status;
}

/* Side 1 serves; the other comes to it. */
static int memif_open(struct bench *bench, char *error, size_t error_bytes)
{
    char folder[] = "/tmp/causeway-loops-XXXXXX", path[sizeof(folder) + 8], arguments[96];
    const char *device[2] = {"net_memif0", "net_memif1"}, *role[2] = {"client", "server"};
    if (mkdtemp(folder) == NULL) {
        snprintf(error, error_bytes, "no folder below /tmp can be made");
        return CW_ERROR_SYSTEM;
    }
    snprintf(path, sizeof(path), "%s/memif", folder);
    int status = CW_OK;
    for (uint32_t i = 2; i-- > 0 && status == CW_OK;) {
        struct cw_port_ethdev_config config;
        struct cw_port *first = NULL;
        cw_port_ethdev_config_init(&config);
        snprintf(arguments, sizeof(arguments), "role=%s,id=0,socket=%s,socket-abstract=no", role[i], path);
        config.device = device[i];
        config.device_arguments = arguments;
        config.mtu_bytes = MTU_BYTES;
        config.queue_count = bench->loops;
        status = cw_port_ethdev_open(&config, &first, error, error_bytes);
        for (uint32_t loop = 0; loop < bench->loops && status == CW_OK; loop++) {
            bench->sides[i].ports[loop] = cw_port_ethdev_queue(first, loop);
        }
    }
    (void)unlink(path);
    (void)rmdir(folder);
    return status;
}

/* Loops of a side have UDP ports of their own, and the kernel gives those of sockets. */
static struct cw_address address_of(const struct bench *bench, uint32_t number, uint32_t loop)
{
    const struct cw_port *port = bench->sides[number].ports[loop];
    struct cw_address address = {.ip = cw_ip_v4(LOOPBACK_IP)};
    if (bench->by_memif) {
        address = (struct cw_address){.ip = cw_ip_v4(MEMIF_IP + number), .udp_port = (uint16_t)(CW_UDP_PORT + loop)};
        memcpy(address.mac, port->info.mac, sizeof(address.mac));
    } else {
        address.udp_port = cw_port_udp_number(port);
    }
    return address;
}

static int loop_open(struct bench *bench, uint32_t number, uint32_t loop, char *error, size_t error_bytes)
{
    struct side *side = &bench->sides[number];
    struct cw_endpoint_config endpoint;
    struct cw_loop_config config;
    cw_loop_config_init(&config);
    config.mode = CW_LOOP_DEDICATED;
    config.core = bench->cores[loop % bench->core_count];
    config.yield_ns = UINT64_MAX;
    config.first = loop == 0 ? NULL : side->set.loops[0];
    cw_endpoint_config_init(&endpoint);
    endpoint.address = address_of(bench, number, loop);
    endpoint.seed = cw_clock_ns() + 2 * loop + number;
    endpoint.waiting = cw_loop_waiting(&config, &side->ports[loop]->info);
    int status =
        cw_endpoint_create(&endpoint, side->ports[loop], cw_clock_ns(), &side->endpoints[loop], error, error_bytes);
    if (status == CW_OK) {
        status = cw_loop_create(&config, side->endpoints[loop], side->ports[loop], &side->set.loops[loop], error,
                                error_bytes);
        side->set.count += status == CW_OK;
    } else {
        side->endpoints[loop] = NULL;
    }
    return status;
}

/* Each loop of one side knows the same one of the other. */
static int sides_join(struct bench *bench)
{
    int status = CW_OK;
    for (uint32_t i = 0; i < 2 && status == CW_OK; i++) {
        struct side *side = &bench->sides[i];
        struct cw_address addresses[CW_SET_LOOPS_MAX];
        for (uint32_t loop = 0; loop < bench->loops; loop++) {
            addresses[loop] = cw_endpoint_address(bench->sides[1 - i].endpoints[loop]);
        }
        side->memory = calloc(1, memory_bytes(bench));
        status =
            side->memory == NULL ? CW_ERROR_MEMORY : cw_set_peer_add(&side->set, addresses, bench->loops, &side->peer);
        status = status == CW_OK
                     ? cw_set_register(&side->set, side->memory, memory_bytes(bench), CW_REGION_WRITE, &side->token)
                     : status;
    }
    return status;
}

static int sides_open(struct bench *bench)
{
    char error[CW_PORT_TEXT_BYTES] = "";
    memset(bench->sides, 0, sizeof(bench->sides));
    int status = bench->by_memif ? memif_open(bench, error, sizeof(error)) : sockets_open(bench, error, sizeof(error));
    for (uint32_t i = 0; i < 2 * bench->loops && status == CW_OK; i++) {
        status = loop_open(bench, i % 2, i / 2, error, sizeof(error));
    }
    status = status == CW_OK ? sides_join(bench) : status;
    for (uint64_t at = 0; status == CW_OK && at < memory_bytes(bench); at++) {
        bench->sides[0].memory[at] = (uint8_t)(at * 7 + (at >> 12));
    }
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, error, NULL);
}

static void sides_close(struct bench *bench)
{
    for (uint32_t i = 0; i < 2 * bench->loops; i++) {
        struct side *side = &bench->sides[i % 2];
        uint32_t loop = bench->loops - 1 - i / 2;
        cw_loop_destroy(side->set.loops[loop]);
        side->set.loops[loop] = NULL;
    }
    for (uint32_t i = 0; i < 2 * bench->loops; i++) {
        struct side *side = &bench->sides[i % 2];
        cw_endpoint_destroy(side->endpoints[i / 2]);
        if (side->ports[i / 2] != NULL) {
            cw_port_close(side->ports[i / 2]);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        free(bench->sides[i].memory);
    }
}

/* A put to each place that none is under way to; the places are the loops' in turn. */
static void post(struct bench *bench)
{
    const struct side *side = &bench->sides[0];
    for (uint32_t place = 0; place < bench->loops * UNDER_WAY; place++) {
        uint64_t offset = place * bench->size;
        const struct cw_put put = {
            .peer = side->peer,
            .lane_tag = cw_lane_tag(place % bench->loops, 0),
            .region = bench->sides[1].token,
            .offset = offset,
            .source = {.region = side->token, .contiguous = {.data = side->memory + offset, .bytes = bench->size}},
            .context = place,
            .flags = CW_SIGNAL};
        int status = bench->is_open[place] ? CW_ERROR_AGAIN : cw_loop_put(side->set.loops[place % bench->loops], &put);
        bench->is_open[place] = bench->is_open[place] || status == CW_OK;
        bench->posted += status == CW_OK;
        bench->failed += status != CW_OK && status != CW_ERROR_AGAIN;
    }
}

/* Completions of one side, notifications of the other. */
static void take(struct bench *bench, uint64_t timeout_ns)
{
    struct cw_event events[EVENTS];
    uint32_t count = cw_set_wait(&bench->sides[0].set, events, EVENTS, timeout_ns, NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (events[i].kind == CW_EVENT_COMPLETE) {
            bench->is_open[events[i].context] = false;
            bench->completed++;
            bench->failed += events[i].status != CW_OK;
        }
    }
    while (cw_set_poll(&bench->sides[1].set, events, EVENTS) > 0) {
    }
}

/* Bits per second; negative: an error has been told. */
static double measure(struct bench *bench, uint32_t loops)
{
    bench->loops = loops;
    memset(bench->is_open, 0, sizeof(bench->is_open));
    bench->posted = bench->completed = bench->failed = 0;
    int code = sides_open(bench);
    uint64_t begin_ns = cw_clock_ns(), until_ns = begin_ns + WARMUP_NS + bench->duration_ns, before = 0;
    bool is_warm = false;
    while (code == APP_EXIT_SUCCESS && bench->failed == 0 && cw_clock_ns() < until_ns) {
        post(bench);
        take(bench, 1000000);
        if (!is_warm && cw_clock_ns() >= begin_ns + WARMUP_NS) {
            is_warm = true;
            before = bench->completed;
            begin_ns = cw_clock_ns();
            until_ns = begin_ns + bench->duration_ns;
        }
    }
    double bps = (double)(bench->completed - before) * (double)bench->size * 8e9 / (double)(cw_clock_ns() - begin_ns);
    uint64_t patience_ns = cw_clock_ns() + PATIENCE_NS;
    while (code == APP_EXIT_SUCCESS && bench->completed < bench->posted && cw_clock_ns() < patience_ns) {
        take(bench, 1000000);
    }
    if (code == APP_EXIT_SUCCESS &&
        (bench->failed > 0 || bench->completed < bench->posted ||
         memcmp(bench->sides[0].memory, bench->sides[1].memory, memory_bytes(bench)) != 0)) {
        app_error("puts have failed, or brought other bytes", NULL, "this is a bug: please report it");
        code = APP_EXIT_INTERNAL;
    }
    sides_close(bench);
    return code == APP_EXIT_SUCCESS ? bps : -code;
}

static int rounds_run(struct bench *bench, const struct app_list *loops, uint64_t rounds, struct app_report *report)
{
    struct bench_series series[APP_LIST_MAX] = {0}, ratios[APP_LIST_MAX] = {0};
    for (uint64_t round = 0; round < rounds; round++) {
        double first = 0;
        for (size_t i = 0; i < loops->count; i++) {
            double bps = measure(bench, (uint32_t)loops->values[i]);
            if (bps < 0) {
                return (int)-bps;
            }
            first = i == 0 ? bps : first;
            bench_series_add(&series[i], bps);
            bench_series_add(&ratios[i], first > 0 ? bps / first : 0);
        }
    }
    for (size_t i = 0; i < loops->count; i++) {
        const struct app_cell cells[] = {
            app_text("bench", NULL, 0, "loops"),
            app_text("by", NULL, 0, bench->by_memif ? "memif" : "udp"),
            app_scaled("loops", "loops", 0, 1, loops->values[i]),
            app_scaled("size_bytes", "size", 0, 1, bench->size),
            app_number("goodput_bps", "Gb/s", 2, 1e-9, bench_series_median(series[i])),
            app_number("ratio", "ratio", 2, 1, bench_series_median(ratios[i])),
        };
        APP_REPORT(report, cells);
    }
    return APP_EXIT_SUCCESS;
}

int bench_loops(int argc, char **argv)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct app_report report = {.form = APP_REPORT_TABLE};
    struct app_list loops = {.values = {1, 2}, .count = 2};
    uint64_t rounds = 5, size = 65536, duration_ns = 300000000;
    const char *by = "udp";
    const struct app_option options[] = {
        OPTION_TEXT("by", "udp|memif", "what carries the packets (udp)", &by),
        OPTION_SIZES("loops", "numbers of loops, beside the first of them (1,2)", &loops, 1, CW_SET_LOOPS_MAX),
        OPTION_BYTES("size", "of a put (65536)", &size, 1, 1 << 24),
        OPTION_COUNT("rounds", "all in turn; medians are told (5)", &rounds, 1, BENCH_ROUNDS_MAX),
        OPTION_TIME("duration", "of each measurement (300ms)", &duration_ns, 1000000, 10000000000ull),
        OPTION_JSON(" a line", &report.json),
        {0},
    };
    int code;
    cpu_set_t cores;
    if (bench == NULL) {
        app_error("no memory", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    int first =
        app_options_parse("bench loops [OPTION...]\n\nWhat several loops of a process move, over UDP sockets "
                          "of the loopback interface, or a memif with a queue\npair for each of them. Both ends "
                          "of a loop share a core, so that as many cores are used as there are loops.",
                          options, 0, argc, argv, &code);
    bench->by_memif = strcmp(by, "memif") == 0;
    if (first >= 0 && !bench->by_memif && strcmp(by, "udp") != 0) {
        app_error("no such port", by, "there are udp and memif");
        code = APP_EXIT_USAGE;
        first = -1;
    }
    if (first >= 0 && sched_getaffinity(0, sizeof(cores), &cores) == 0) {
        for (int core = 0; core < CPU_SETSIZE; core++) {
            if (CPU_ISSET((size_t)core, &cores)) {
                bench->cores[bench->core_count++] = core;
            }
        }
        bench->size = size;
        bench->duration_ns = duration_ns;
        code = rounds_run(bench, &loops, rounds, &report);
    }
    free(bench);
    return code;
}
