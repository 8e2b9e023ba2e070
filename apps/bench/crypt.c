/* causeway bench crypt: what sealing and opening packets costs a core, by each driver there is; bursts in place, as the
 * protocol has them. The protocol's own cost, with and without, is causeway bench cost [--encrypt]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "dataplane/base/clock.h"
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

/* A packet's nanoseconds, and ticks of the time stamp counter (0: there is none), in each round. */
struct cost {
    struct bench_series ns;
    struct bench_series ticks;
};

struct bench {
    struct cw_aead_key *seal;
    struct cw_aead_key *unseal;
    uint8_t *memory;
    struct cw_aead_packet packets[BURST];
    uint64_t count;
};

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
static void measure_seal(struct bench *bench, uint64_t duration_ns, struct cost *cost)
{
    uint64_t bursts = 0;
    uint64_t start_ns = cw_clock_ns();
    uint64_t start_ticks = bench_ticks();
    uint64_t now_ns;
    do {
        for (uint32_t i = 0; i < 8; i++) {
            burst_seal(bench);
        }
        bursts += 8;
        now_ns = cw_clock_ns();
    } while (now_ns - start_ns < duration_ns);
    double packets = (double)bursts * BURST;
    bench_series_add(&cost->ns, (double)(now_ns - start_ns) / packets);
    bench_series_add(&cost->ticks, (double)(bench_ticks() - start_ticks) / packets);
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
        uint64_t start_ticks = bench_ticks();
        cw_aead_unseal(bench->unseal, bench->packets, BURST);
        spent_ticks += bench_ticks() - start_ticks;
        spent_ns += cw_clock_ns() - start_ns;
        bursts++;
        for (uint32_t i = 0; i < BURST; i++) {
            good = good && bench->packets[i].good;
        }
    }
    double packets = (double)bursts * BURST;
    bench_series_add(&cost->ns, (double)spent_ns / packets);
    bench_series_add(&cost->ticks, (double)spent_ticks / packets);
    return good;
}

static void cost_report(struct app_report *report, const char *driver, uint64_t bytes, const struct cost *cost,
                        const char *what)
{
    double ns = bench_series_median(cost->ns);
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "crypt"),
        app_text("driver", "driver", 17, driver),
        app_text("what", "what", 4, what),
        app_count("size_bytes", "bytes", bytes),
        app_number("packet_ns", "packet ns", 1, 1, ns),
        app_number("byte_cycles", "cycles/byte", 2, 1, bench_series_median(cost->ticks) / (double)bytes),
        app_number("gbps", "Gb/s", 1, 1, 8 * (double)bytes / ns),
    };
    APP_REPORT(report, cells);
}

static bool measure_size(struct bench *bench, uint64_t bytes, uint64_t duration_ns, struct cost *seal,
                         struct cost *open)
{
    bool good = true;
    packets_make(bench, (uint32_t)bytes);
    for (uint32_t round = 0; round < ROUNDS && good; round++) {
        measure_seal(bench, duration_ns / ROUND_SHARE, seal);
        good = measure_open(bench, duration_ns / ROUND_SHARE, open);
    }
    return good;
}

static int measure_driver(struct cw_aead *aead, const struct app_list *sizes, uint64_t duration_ns,
                          struct app_report *report)
{
    static const uint8_t key[CW_AEAD_KEY_BYTES] = "a bench's key...";
    struct bench bench = {.memory = calloc(BURST, PITCH)};
    int status = bench.memory == NULL ? CW_ERROR_MEMORY : CW_OK;
    status = status == CW_OK ? cw_aead_key_create(aead, CW_AEAD_SEAL, key, key, READABLE_BYTES, &bench.seal) : status;
    status =
        status == CW_OK ? cw_aead_key_create(aead, CW_AEAD_UNSEAL, key, key, READABLE_BYTES, &bench.unseal) : status;
    for (size_t i = 0; i < sizes->count && status == CW_OK; i++) {
        struct cost seal = {.ns = {.count = 0}}, open = {.ns = {.count = 0}};
        status = measure_size(&bench, sizes->values[i], duration_ns, &seal, &open) ? CW_OK : CW_ERROR_SYSTEM;
        if (status == CW_OK) {
            cost_report(report, cw_aead_driver(aead), sizes->values[i], &seal, "seal");
            cost_report(report, cw_aead_driver(aead), sizes->values[i], &open, "open");
        }
    }
    cw_aead_key_destroy(bench.seal);
    cw_aead_key_destroy(bench.unseal);
    free(bench.memory);
    return status == CW_OK ? APP_EXIT_SUCCESS
                           : app_error_status(status, "packets that were sealed do not open", cw_aead_driver(aead));
}

/* All drivers there are, or the one asked for. One of enum app_exit. */
static int measure_all(const char *driver, const struct app_list *sizes, uint64_t duration_ns,
                       struct app_report *report)
{
    char error[CW_PORT_TEXT_BYTES] = "";
    uint32_t found = 0;
    int code = APP_EXIT_SUCCESS;
    int status = CW_OK;
    for (uint32_t i = 0; i < (driver != NULL ? 1 : CW_AEAD_DRIVERS) && code == APP_EXIT_SUCCESS; i++) {
        struct cw_aead *aead;
        status = cw_aead_open(driver != NULL ? driver : cw_aead_driver_name(i), &aead, error, sizeof(error));
        if (status == CW_OK) {
            found++;
            code = measure_driver(aead, sizes, duration_ns, report);
        }
    }
    return found > 0 ? code : app_error_status(status, error, NULL);
}

int bench_crypt(int argc, char **argv)
{
    uint64_t duration_ns = 200000000;
    struct app_list sizes = {.values = {64, 256, 512, 1024, 1440, 4096, 8940}, .count = 7};
    const char *driver = NULL;
    struct app_report report = {.json = false};
    const struct app_option options[] = {
        OPTION_SIZES("sizes", "bytes to seal of a packet (64,256,512,1024,1440,4096,8940)", &sizes, 1, BYTES_MAX),
        OPTION_TEXT("driver", "NAME", "of DPDK's cryptodev (all there are)", &driver),
        OPTION_TIME("duration", "of each measurement (200ms)", &duration_ns, 1000000, 60000000000ull),
        OPTION_JSON(" a line", &report.json),
        {0},
    };
    int code;
    if (app_options_parse(
            "bench crypt [OPTION...]\n\nWhat AES-128-GCM costs a core by each driver: bursts of 32 packets, "
            "in place. Cycles are those of the time stamp counter.",
            options, 0, argc, argv, &code) < 0) {
        return code;
    }
    return measure_all(driver, &sizes, duration_ns, &report);
}
