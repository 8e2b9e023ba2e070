/* causeway bench crypt: what sealing and opening packets costs a core, by each driver there is; bursts in place, as the
 * protocol has them. The protocol's own cost, with and without, is causeway bench cost [--encrypt]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "dataplane/core/clock.h"
#include "dataplane/crypt/aead.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"

enum {
    READABLE_BYTES = 16,
    BURST = 32,
    BYTES_MAX = CW_PORT_MTU_MAX,
    PITCH = (READABLE_BYTES + BYTES_MAX + CW_AEAD_MAC_BYTES + 63) & ~63, /* bytes from a packet to the next */
    ROUNDS = 9,                                                          /* the median counts */
    ROUND_SHARE = 2 * ROUNDS, /* of the time given: as long to seal as to open */
};

/* One measurement: a packet's nanoseconds, and ticks of the time stamp counter (0: there is none). */
struct cost {
    double ns;
    double ticks;
};

struct bench {
    struct cw_aead_key *seal;
    struct cw_aead_key *unseal;
    uint8_t *memory;
    struct cw_aead_packet packets[BURST];
    uint64_t count;
};

static uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

static void packets_make(struct bench *bench, uint32_t bytes)
{
    for (uint32_t i = 0; i < BURST; i++) {
        uint8_t *at = bench->memory + (size_t)i * PITCH;
        bench->packets[i] = (struct cw_aead_packet){.readable = at, .data = at + READABLE_BYTES, .bytes = bytes};
    }
}

/* Seals a burst, under counts that were not used before. */
static void burst_seal(struct bench *bench)
{
    for (uint32_t i = 0; i < BURST; i++) {
        bench->packets[i].count = bench->count++;
    }
    cw_aead_seal(bench->seal, bench->packets, BURST);
}

/* Seals for a while. */
static struct cost measure_seal(struct bench *bench, uint64_t duration_ns)
{
    uint64_t bursts = 0;
    uint64_t start_ns = cw_clock_ns();
    uint64_t start_ticks = ticks_now();
    uint64_t now_ns;
    do {
        for (uint32_t i = 0; i < 8; i++) {
            burst_seal(bench);
        }
        bursts += 8;
        now_ns = cw_clock_ns();
    } while (now_ns - start_ns < duration_ns);
    double packets = (double)bursts * BURST;
    return (struct cost){.ns = (double)(now_ns - start_ns) / packets,
                         .ticks = (double)(ticks_now() - start_ticks) / packets};
}

/* Opens what was sealed, and counts that time alone. False: something did not open. */
static bool measure_open(struct bench *bench, uint64_t duration_ns, struct cost *cost)
{
    uint64_t bursts = 0;
    uint64_t spent_ns = 0;
    uint64_t spent_ticks = 0;
    bool good = true;
    while (spent_ns < duration_ns && good) {
        burst_seal(bench);
        uint64_t start_ns = cw_clock_ns();
        uint64_t start_ticks = ticks_now();
        cw_aead_unseal(bench->unseal, bench->packets, BURST);
        spent_ticks += ticks_now() - start_ticks;
        spent_ns += cw_clock_ns() - start_ns;
        bursts++;
        for (uint32_t i = 0; i < BURST; i++) {
            good = good && bench->packets[i].good;
        }
    }
    double packets = (double)bursts * BURST;
    *cost = (struct cost){.ns = (double)spent_ns / packets, .ticks = (double)spent_ticks / packets};
    return good;
}

static struct cost median(const struct cost *costs, size_t count)
{
    double ns[ROUNDS];
    double ticks[ROUNDS];
    for (size_t i = 0; i < count; i++) {
        ns[i] = costs[i].ns;
        ticks[i] = costs[i].ticks;
    }
    return (struct cost){.ns = bench_median(ns, count), .ticks = bench_median(ticks, count)};
}

static void print_cost(const char *driver, uint64_t bytes, const struct cost costs[2], bool json)
{
    static const char *const names[] = {"seal", "open"};
    if (!json) {
        printf("%-17s %6llu", driver, (unsigned long long)bytes);
        for (uint32_t i = 0; i < 2; i++) {
            printf(" %9.1f %7.2f %7.1f", costs[i].ns, costs[i].ticks / (double)bytes, 8 * (double)bytes / costs[i].ns);
        }
        printf("\n");
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        json_t *line = app_json_new();
        app_json_text(line, "bench", "crypt");
        app_json_text(line, "driver", driver);
        app_json_text(line, "what", names[i]);
        app_json_count(line, "size_bytes", bytes);
        app_json_number(line, "packet_ns", costs[i].ns);
        app_json_number(line, "byte_cycles", costs[i].ticks / (double)bytes);
        app_json_number(line, "gbps", 8 * (double)bytes / costs[i].ns);
        app_json_emit(line);
    }
}

static bool measure_size(struct bench *bench, uint64_t bytes, uint64_t duration_ns, struct cost costs[2])
{
    struct cost seals[ROUNDS];
    struct cost opens[ROUNDS];
    packets_make(bench, (uint32_t)bytes);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        seals[round] = measure_seal(bench, duration_ns / ROUND_SHARE);
        if (!measure_open(bench, duration_ns / ROUND_SHARE, &opens[round])) {
            return false;
        }
    }
    costs[0] = median(seals, ROUNDS);
    costs[1] = median(opens, ROUNDS);
    return true;
}

static int measure_driver(struct cw_aead *aead, const uint64_t *sizes, size_t size_count, uint64_t duration_ns,
                          bool json)
{
    static const uint8_t key[CW_AEAD_KEY_BYTES] = "a bench's key...";
    struct bench bench = {.memory = calloc(BURST, PITCH)};
    int status = bench.memory == NULL ? CW_ERROR_MEMORY : CW_OK;
    status = status == CW_OK ? cw_aead_key_create(aead, CW_AEAD_SEAL, key, key, READABLE_BYTES, &bench.seal) : status;
    status =
        status == CW_OK ? cw_aead_key_create(aead, CW_AEAD_UNSEAL, key, key, READABLE_BYTES, &bench.unseal) : status;
    for (size_t i = 0; i < size_count && status == CW_OK; i++) {
        struct cost costs[2];
        if (measure_size(&bench, sizes[i], duration_ns, costs)) {
            print_cost(cw_aead_driver(aead), sizes[i], costs, json);
        } else {
            status = CW_ERROR_SYSTEM;
        }
    }
    cw_aead_key_destroy(bench.seal);
    cw_aead_key_destroy(bench.unseal);
    free(bench.memory);
    return status == CW_OK ? APP_EXIT_SUCCESS
                           : app_error_status(status, "packets that were sealed do not open", cw_aead_driver(aead));
}

/* All drivers there are, or the one asked for. One of enum app_exit. */
static int measure_all(const char *driver, const uint64_t *sizes, size_t size_count, uint64_t duration_ns, bool json)
{
    char error[CW_PORT_TEXT_BYTES] = "";
    uint32_t found = 0;
    int code = APP_EXIT_SUCCESS;
    int status = CW_OK;
    if (!json) {
        printf("%-17s %6s %9s %7s %7s %9s %7s %7s\n", "", "bytes", "seal ns", "cyc/B", "Gb/s", "open ns", "cyc/B",
               "Gb/s");
    }
    for (uint32_t i = 0; i < (driver != NULL ? 1 : CW_AEAD_DRIVERS) && code == APP_EXIT_SUCCESS; i++) {
        struct cw_aead *aead;
        status = cw_aead_open(driver != NULL ? driver : cw_aead_driver_name(i), &aead, error, sizeof(error));
        if (status == CW_OK) {
            found++;
            code = measure_driver(aead, sizes, size_count, duration_ns, json);
        }
    }
    return found > 0 ? code : app_error_status(status, error, NULL);
}

int bench_crypt(int argc, char **argv)
{
    uint64_t duration_ns = 200000000;
    const char *list = "64,256,512,1024,1440,4096,8940";
    const char *driver = NULL;
    bool json = false;
    const struct app_option options[] = {
        {"sizes", "LIST", "bytes to seal of a packet (64,256,512,1024,1440,4096,8940)", APP_OPTION_TEXT, &list, 0, 0,
         NULL},
        {"driver", "NAME", "of DPDK's cryptodev (all there are)", APP_OPTION_TEXT, &driver, 0, 0, NULL},
        {"duration", "TIME", "of each measurement (200ms)", APP_OPTION_DURATION, &duration_ns, 1000000, 60000000000ull,
         NULL},
        {"json", NULL, "one JSON object a line", APP_OPTION_FLAG, &json, 0, 0, NULL},
        {0},
    };
    int code;
    if (app_options_parse(
            "bench crypt [OPTION...]\n\nWhat AES-128-GCM costs a core by each driver: bursts of 32 packets, "
            "in place. Cycles are those of the time stamp counter.",
            options, 0, argc, argv, &code) < 0) {
        return code;
    }
    uint64_t sizes[BENCH_SIZES_MAX];
    size_t size_count = app_parse_bytes_list(list, sizes, BENCH_SIZES_MAX);
    for (size_t i = 0; i < size_count; i++) {
        size_count = sizes[i] > BYTES_MAX || sizes[i] == 0 ? 0 : size_count;
    }
    if (size_count == 0) {
        app_error("--sizes wants up to 32 sizes of 1 to 9600, such as 64,1440,8940", list, NULL);
        return APP_EXIT_USAGE;
    }
    return measure_all(driver, sizes, size_count, duration_ns, json);
}
