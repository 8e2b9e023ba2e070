/* `causeway demo`: moves a file between two emulated hosts through `causeway switch`, verifies it and prints the
 * results. */
#include "apps/demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "apps/cli/cli.h"
#include "apps/cli/progress.h"
#include "dataplane/dataplane.h"

enum { HASH_BYTES = 32, READ_BYTES = 1 << 16, POLL_MS = 100 };

/* Set by the signal handler. */
volatile sig_atomic_t demo_interrupted;

static void signal_note(int number)
{
    (void)number;
    demo_interrupted = 1;
}

/* Prints a step of the demo, with --verbose. */
__attribute__((format(printf, 2, 3))) static void step_print(const struct demo_options *options, const char *format,
                                                             ...)
{
    if (options->report.json || !options->verbose) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

/* ---- verification ---- */

/* BLAKE2b of a file, read again by code that took no part in the transfer. */
static bool hash_file(const char *path, uint8_t hash[HASH_BYTES])
{
    static uint8_t buffer[READ_BYTES];
    crypto_generichash_state state;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    crypto_generichash_init(&state, NULL, 0, HASH_BYTES);
    while (file >= 0 && !demo_interrupted && (got = read(file, buffer, sizeof(buffer))) > 0) {
        crypto_generichash_update(&state, buffer, (size_t)got);
    }
    crypto_generichash_final(&state, hash, HASH_BYTES);
    if (file >= 0) {
        close(file);
    }
    return got == 0;
}

static void hash_text(const uint8_t hash[HASH_BYTES], char text[2 * HASH_BYTES + 1])
{
    sodium_bin2hex(text, 2 * HASH_BYTES + 1, hash, HASH_BYTES);
}

static int verify(const struct demo_world *world, const struct demo_options *options, char *text)
{
    uint8_t hashes[2][HASH_BYTES];
    struct stat target;
    if (!hash_file(world->source, hashes[0]) || !hash_file(world->target, hashes[1]) ||
        stat(world->target, &target) != 0) {
        if (!demo_interrupted) {
            app_error("cannot read the files back", world->fabric.folder, strerror(errno));
        }
        return APP_EXIT_FAILURE;
    }
    hash_text(hashes[0], text);
    bool same = memcmp(hashes[0], hashes[1], HASH_BYTES) == 0 && (uint64_t)target.st_size == world->bytes;
    step_print(options, "4. verified:   the BLAKE2b hashes of source and target %s: %.16s...",
               same ? "are equal" : "DIFFER", text);
    if (!same) {
        app_error("the file arrived with wrong contents", world->target, "this is a bug: please report it");
    }
    return same ? APP_EXIT_SUCCESS : APP_EXIT_FAILURE;
}

/* ---- results ---- */

static double per_second(uint64_t count, uint64_t elapsed_ns)
{
    return elapsed_ns == 0 ? 0 : (double)count * 1e9 / (double)elapsed_ns;
}

static void show(const struct demo_options *options, uint64_t bytes, const struct demo_report reports[2],
                 const struct demo_losses *losses, const char *hash)
{
    const struct demo_report *a = &reports[0];
    double goodput_bps = 8 * per_second(bytes, a->elapsed_ns);
    double ratio = options->rate_bps != 0 ? goodput_bps / ((double)options->rate_bps * (1 - options->loss)) : 0;
    uint64_t missing = losses->lost_data_frames + losses->queue_data_frames;
    double again = missing != 0 ? (double)a->retransmitted / (double)missing : 0;
    const struct app_cell cells[] = {
        app_text("demo", NULL, 0, "file"),
        app_flag("identical", NULL, true),
        app_text("blake2b", NULL, 0, hash),
        app_count("file_bytes", "moved, bytes", bytes),
        app_scaled("elapsed_ns", "... in seconds", 3, 1e-9, a->elapsed_ns),
        app_number("goodput_bps", "... Mb/s", 1, 1e-6, goodput_bps),
        app_count("raw_rate_bps", NULL, options->rate_bps),
        app_number("ratio_goodput", "... of the capacity of the lossy link, %", 1, 100, ratio),
        app_count("data_packets", "packets with data", a->data_packets),
        app_count(NULL, "frames", losses->in_frames),
        app_count("retransmitted_packets", "packets sent again", a->retransmitted),
        app_count("lost_frames", "frames lost on the link", losses->lost_frames),
        app_count("lost_data_frames", "... of them with data", losses->lost_data_frames),
        app_number("ratio_retransmitted", "packets sent again for each missing one", 3, 1, again),
        app_count("dropped_queue_frames", "frames dropped by full queues", losses->queue_frames),
        app_count("dropped_other_frames", "... otherwise", losses->other_frames),
        app_count("queue_max_bytes", "longest queue, bytes", losses->queue_max_bytes),
        app_count("probes", "probes", a->probes),
        app_count("duplicates", "packets that arrived twice", reports[1].duplicates),
        app_count("acknowledgements", "acknowledgements", reports[1].acknowledgements),
        app_count("notifications", "notifications, one per put, in order", reports[1].notifications),
        app_scaled("round_trip_ns", "round trip, us", 1, 1e-3, a->round_trip_ns),
        app_scaled("round_trip_min_ns", "... minimum, us", 1, 1e-3, a->round_trip_min_ns),
    };
    struct app_report report = options->report;
    APP_REPORT(&report, cells);
}

/* The main results, one per line. At most half a screen, since `./demo` prints more. */
static void screen(const struct demo_options *options, uint64_t bytes, const struct demo_report reports[2],
                   const struct demo_losses *losses, const char *hash)
{
    const struct demo_report *a = &reports[0];
    double goodput_bps = 8 * per_second(bytes, a->elapsed_ns);
    uint64_t missing = losses->lost_data_frames + losses->queue_data_frames;
    printf("A file moves between two emulated hosts. Both hosts and the switch are processes of this machine.\n");
    printf("  sent       %.4g MiB of %s, from host A into the memory of host B, in %" PRIu64 " puts\n",
           (double)bytes / (1 << 20), options->file != NULL ? "your file" : "random bytes", reports[1].notifications);
    printf("  over       a link of %.6g Mb/s with a delay of %.3g us, which drops %.3g %% of all frames\n",
           (double)options->rate_bps / 1e6, (double)options->delay_ns / 1e3, options->loss * 100);
    printf("  speed      %.1f Mb/s in %.3f s, which is %.1f %% of the capacity of this link\n", goodput_bps / 1e6,
           (double)a->elapsed_ns / 1e9,
           options->rate_bps != 0 ? 100 * goodput_bps / ((double)options->rate_bps * (1 - options->loss)) : 0);
    printf("  lost       %" PRIu64 " of %" PRIu64 " data packets, %" PRIu64 " of them in a full queue\n", missing,
           a->data_packets + a->retransmitted, losses->queue_data_frames);
    printf("  repaired   %" PRIu64 " packets sent again, %.3f for each lost packet\n", a->retransmitted,
           missing != 0 ? (double)a->retransmitted / (double)missing : 0);
    printf("  arrived    identical: both files have the BLAKE2b hash %.16s...\n", hash);
}

static int run(struct demo_world *world, const struct demo_options *options)
{
    struct demo_report reports[2] = {0};
    struct demo_losses losses;
    char hash[2 * HASH_BYTES + 1] = "";
    int code = demo_world_create(world, options);
    if (code != APP_EXIT_SUCCESS || demo_interrupted) {
        return code;
    }
    step_print(options, "1. the file:   %s, %" PRIu64 " bytes", options->file != NULL ? options->file : "random",
               world->bytes);
    step_print(options,
               "2. the switch: one process; each link has %.3g Gb/s and %.3g us, and loses %.3g %% of the frames; seed "
               "%" PRIu64,
               (double)options->rate_bps / 1e9, (double)options->delay_ns / 1e3, options->loss * 100, options->seed);
    step_print(options,
               "3. the hosts:  host A puts pieces of 1 MiB into the memory of host B; both are processes with a memif");
    app_progress_begin("demo", options->report.json);
    code = demo_world_transfer(world, reports);
    app_progress_end();
    bool counted = demo_world_counters(world, &losses);
    if (code == APP_EXIT_SUCCESS && !counted) {
        app_error("the switch reports no counters", world->fabric.socket, "this is a bug: please report it");
        code = APP_EXIT_FAILURE;
    }
    if (code == APP_EXIT_SUCCESS) {
        code = verify(world, options, hash);
    }
    if (code == APP_EXIT_SUCCESS) {
        (options->verbose || options->report.json ? show : screen)(options, world->bytes, reports, &losses, hash);
    }
    return code;
}

static const char usage[] = "demo [OPTION...]\n"
                            "\n"
                            "Moves a file between two emulated hosts through a `causeway switch` that loses frames, "
                            "and verifies it. Both hosts\n"
                            "and the switch are processes of this machine. Exit code 0: the files are identical.";

int demo_main(int argc, char **argv)
{
    struct demo_options demo = {.loss = 0.01,
                                .rate_bps = 1000000000,
                                .delay_ns = 50000,
                                .queue_bytes = 1000000,
                                .size_bytes = 64 << 20,
                                .seed = 1,
                                .report = {.form = APP_REPORT_RECORD}};
    const struct app_option options[] = {
        OPTION_BYTES("size", "size of the random file; default 64 MiB", &demo.size_bytes, 1, 1ull << 40),
        OPTION_TEXT("file", "PATH", "move this file instead of a random one", &demo.file),
        OPTION_ROW("loss", "SHARE", "share of the frames that each link loses; default 1%", APP_OPTION_PERCENT,
                   &demo.loss, 0, 0, NULL),
        {"rate", "RATE", "rate of the links; default 1Gbps", APP_OPTION_RATE, &demo.rate_bps, 1000, 1000000000000,
         NULL},
        OPTION_TIME("delay", "delay of the links; default 50us", &demo.delay_ns, 0, 10000000000),
        OPTION_BYTES("queue", "length of the queue in front of each link; default 1MB", &demo.queue_bytes, 2000, 0),
        OPTION_COUNT("seed", "seed of the random file and of the losses; default 1", &demo.seed, 0, 0),
        OPTION_FLAG("verbose", "print each step and all numbers", &demo.verbose),
        OPTION_FLAG("json", "print one JSON object with all numbers", &demo.report.json),
        {0},
    };
    int code;
    if (app_options_parse(usage, options, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (sodium_init() < 0) {
        app_error("libsodium cannot be initialized", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    struct sigaction action = {.sa_handler = signal_note};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    struct demo_world world;
    code = run(&world, &demo);
    demo_world_destroy(&world);
    if (demo_interrupted) {
        app_error("interrupted", "all files are removed", NULL);
        return APP_EXIT_FAILURE;
    }
    return code;
}
