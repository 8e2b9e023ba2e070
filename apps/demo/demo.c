/* `causeway demo`: moves a file between two emulated hosts through `causeway switch`, verifies it and shows the
 * numbers. */
#include "apps/demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "apps/cli/cli.h"
#include "dataplane/dataplane.h"

enum { HASH_BYTES = 32, READ_BYTES = 1 << 16, POLL_MS = 100 };

/* A handler can reach nothing else. */
static volatile sig_atomic_t interrupted;

static void signal_note(int number)
{
    (void)number;
    interrupted = 1;
}

bool demo_interrupted(void)
{
    return interrupted != 0;
}

/* A step of the demo, for people. */
__attribute__((format(printf, 2, 3))) static void tell(const struct demo_options *options, const char *format, ...)
{
    if (options->json) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

/* ---- the hosts ---- */

static _Noreturn void be_host(const struct demo_world *world, uint32_t host, int control, int output, uint64_t bytes)
{
    struct demo_report report;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != world->parent) {
        _exit(APP_EXIT_INTERNAL);
    }
    demo_host_run(world, host, control, bytes, &report);
    ssize_t written = write(output, &report, sizeof(report)); /* less than a pipe holds: never in pieces */
    _exit(written == (ssize_t)sizeof(report) && report.status == CW_OK ? APP_EXIT_SUCCESS : APP_EXIT_FAILURE);
}

/* Starts both hosts; *outputs are the pipes that their reports come by. */
static int start_hosts(struct demo_world *world, uint64_t bytes, int outputs[2])
{
    int control[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) {
        app_error("cannot join the hosts", strerror(errno), NULL);
        return APP_EXIT_MACHINE;
    }
    int code = APP_EXIT_SUCCESS;
    for (uint32_t i = 0; i < 2 && code == APP_EXIT_SUCCESS; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            app_error("cannot make a pipe", strerror(errno), NULL);
            code = APP_EXIT_MACHINE;
            break;
        }
        world->hosts[i] = fork();
        if (world->hosts[i] == 0) {
            close(control[1 - i]); /* so that a host notices when the other one dies */
            be_host(world, i, control[i], ends[1], bytes);
        }
        close(ends[1]);
        outputs[i] = ends[0];
        if (world->hosts[i] < 0) {
            world->hosts[i] = 0;
            app_error("cannot start a host", strerror(errno), "raise `ulimit -u`");
            code = APP_EXIT_MACHINE;
        }
    }
    close(control[0]);
    close(control[1]);
    return code;
}

/* Waits for the report of one host. False: it has died, or the user has had enough. */
static bool take_report(int output, struct demo_report *report)
{
    while (!interrupted) {
        struct pollfd set = {.fd = output, .events = POLLIN};
        if (poll(&set, 1, POLL_MS) > 0) {
            return read(output, report, sizeof(*report)) == (ssize_t)sizeof(*report);
        }
    }
    return false;
}

static int run_hosts(struct demo_world *world, uint64_t bytes, struct demo_report reports[2])
{
    int outputs[2] = {-1, -1};
    int code = start_hosts(world, bytes, outputs);
    for (uint32_t i = 0; i < 2; i++) {
        if (code == APP_EXIT_SUCCESS && !take_report(outputs[i], &reports[i])) {
            if (!interrupted) {
                app_error("a host has died", i == 0 ? "A" : "B", "this is a bug: please report it");
            }
            code = APP_EXIT_FAILURE;
        } else if (code == APP_EXIT_SUCCESS && reports[i].status != CW_OK) {
            code = app_error_status(reports[i].status, reports[i].error, NULL);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (outputs[i] >= 0) {
            close(outputs[i]);
        }
        while (code == APP_EXIT_SUCCESS && waitpid(world->hosts[i], NULL, 0) < 0 && errno == EINTR) {
        }
        if (code == APP_EXIT_SUCCESS) {
            world->hosts[i] = 0;
        }
    }
    return code;
}

/* ---- verification ---- */

/* BLAKE2b of a file as it reads now, by nothing that took part in moving it. */
static bool hash_file(const char *path, uint8_t hash[HASH_BYTES])
{
    static uint8_t buffer[READ_BYTES];
    crypto_generichash_state state;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    crypto_generichash_init(&state, NULL, 0, HASH_BYTES);
    while (file >= 0 && !interrupted && (got = read(file, buffer, sizeof(buffer))) > 0) {
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

static int verify(const struct demo_world *world, const struct demo_options *options, uint64_t bytes, char *text)
{
    uint8_t hashes[2][HASH_BYTES];
    struct stat target;
    if (!hash_file(world->source, hashes[0]) || !hash_file(world->target, hashes[1]) ||
        stat(world->target, &target) != 0) {
        if (!interrupted) {
            app_error("cannot read the files back", world->folder, strerror(errno));
        }
        return APP_EXIT_FAILURE;
    }
    hash_text(hashes[0], text);
    bool same = memcmp(hashes[0], hashes[1], HASH_BYTES) == 0 && (uint64_t)target.st_size == bytes;
    tell(options, "4. verified:   BLAKE2b of source and target, read back, %s: %.16s...", same ? "are equal" : "DIFFER",
         text);
    if (!same) {
        app_error("the file that arrived is not the file that was sent", world->target, "please report it");
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
    if (options->json) {
        json_t *line = app_json_new();
        app_json_text(line, "demo", "file");
        app_json_flag(line, "identical", true);
        app_json_text(line, "blake2b", hash);
        app_json_count(line, "file_bytes", bytes);
        app_json_count(line, "elapsed_ns", a->elapsed_ns);
        app_json_number(line, "goodput_bps", goodput_bps);
        app_json_count(line, "raw_rate_bps", options->rate_bps);
        app_json_number(line, "ratio_goodput", ratio);
        app_json_count(line, "data_packets", a->data_packets);
        app_json_count(line, "retransmitted_packets", a->retransmitted);
        app_json_count(line, "lost_frames", losses->lost_frames);
        app_json_count(line, "lost_data_frames", losses->lost_data_frames);
        app_json_number(line, "ratio_retransmitted", again);
        app_json_count(line, "dropped_queue_frames", losses->queue_frames);
        app_json_count(line, "dropped_other_frames", losses->other_frames);
        app_json_count(line, "queue_max_bytes", losses->queue_max_bytes);
        app_json_count(line, "probes", a->probes);
        app_json_count(line, "duplicates", reports[1].duplicates);
        app_json_count(line, "acknowledgements", reports[1].acknowledgements);
        app_json_count(line, "notifications", reports[1].notifications);
        app_json_count(line, "round_trip_ns", a->round_trip_ns);
        app_json_count(line, "round_trip_min_ns", a->round_trip_min_ns);
        app_json_emit(line);
        return;
    }
    printf("\n   moved          %" PRIu64 " bytes in %.3f s: %.1f Mb/s", bytes, (double)a->elapsed_ns / 1e9,
           goodput_bps / 1e6);
    if (options->rate_bps != 0) {
        printf(", %.1f %% of what the lossy link carries, headers included", 100 * ratio);
    }
    printf("\n   packets        %" PRIu64 " with data, %" PRIu64 " acknowledgements\n", a->data_packets,
           reports[1].acknowledgements);
    printf("   lost           %" PRIu64 " of %" PRIu64 " frames by the line's loss, %" PRIu64
           " of them with data; %" PRIu64 " by full queues, %" PRIu64 " otherwise\n",
           losses->lost_frames, losses->in_frames, losses->lost_data_frames, losses->queue_frames,
           losses->other_frames);
    printf("   sent again     %" PRIu64 " packets (%.3f per missing one), %" PRIu64 " arrived twice, %" PRIu64
           " probes\n",
           a->retransmitted, again, reports[1].duplicates, a->probes);
    printf("   round trip     %.1f us, at the least %.1f us; longest queue %" PRIu64 " bytes\n",
           (double)a->round_trip_ns / 1e3, (double)a->round_trip_min_ns / 1e3, losses->queue_max_bytes);
    printf("   notifications  %" PRIu64 ", one for each put, in order\n", reports[1].notifications);
    fflush(stdout);
}

/* ---- the run ---- */

static int size_of_source(const struct demo_world *world, uint64_t *bytes)
{
    struct stat status;
    if (stat(world->source, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) {
        app_error("not a file that can be moved", world->source, "name a regular file of at least one byte");
        return APP_EXIT_USAGE;
    }
    *bytes = (uint64_t)status.st_size;
    return APP_EXIT_SUCCESS;
}

static int run(struct demo_world *world, const struct demo_options *options)
{
    uint64_t bytes = options->size_bytes;
    struct demo_report reports[2] = {0};
    struct demo_losses losses;
    char hash[2 * HASH_BYTES + 1] = "";
    int code = demo_world_create(world, options);
    if (code == APP_EXIT_SUCCESS && !interrupted) {
        code = size_of_source(world, &bytes);
    }
    if (code != APP_EXIT_SUCCESS || interrupted) {
        return code;
    }
    tell(options, "1. the file:   %s, %" PRIu64 " bytes", options->file != NULL ? options->file : "random", bytes);
    tell(options,
         "2. the switch: a process; towards each host %.3g Gb/s, %.3g us, %.3g %% of the frames lost, seed %" PRIu64,
         (double)options->rate_bps / 1e9, (double)options->delay_ns / 1e3, options->loss * 100, options->seed);
    tell(options,
         "3. the hosts:  10.0.0.1 puts pieces of 1 MiB into the memory of 10.0.0.2, each a process with a memif ...");
    code = run_hosts(world, bytes, reports);
    bool counted = demo_world_counters(world, &losses);
    if (code == APP_EXIT_SUCCESS && !counted) {
        app_error("the switch gives no counters", world->socket, "this is a bug: please report it");
        code = APP_EXIT_FAILURE;
    }
    if (code == APP_EXIT_SUCCESS) {
        code = verify(world, options, bytes, hash);
    }
    if (code == APP_EXIT_SUCCESS) {
        show(options, bytes, reports, &losses, hash);
    }
    return code;
}

static const char usage[] =
    "demo [OPTION...]\n"
    "\n"
    "Moves a file between two emulated hosts, each a process, through a `causeway switch` that loses frames, verifies\n"
    "it and shows the numbers. Exit code 0: identical.";

int demo_main(int argc, char **argv)
{
    struct demo_options demo = {.loss = 0.01,
                                .rate_bps = 1000000000,
                                .delay_ns = 50000,
                                .queue_bytes = 1000000,
                                .size_bytes = 64 << 20,
                                .seed = 1};
    const struct app_option options[] = {
        OPTION_BYTES("size", "of the random file; default 64 MiB", &demo.size_bytes, 1, 1ull << 40),
        OPTION_TEXT("file", "PATH", "moves this file instead", &demo.file),
        {"loss", "SHARE", "of the frames, in both directions; default 1%", APP_OPTION_PERCENT, &demo.loss, 0, 0, NULL},
        {"rate", "RATE", "of the links; default 1Gbps", APP_OPTION_RATE, &demo.rate_bps, 1000, 1000000000000, NULL},
        OPTION_TIME("delay", "of the links; default 50us", &demo.delay_ns, 0, 10000000000),
        OPTION_BYTES("queue", "in front of each link; default 1MB", &demo.queue_bytes, 2000, 0),
        OPTION_COUNT("seed", "of the file and of the losses; default 1", &demo.seed, 0, 0),
        OPTION_FLAG("json", "prints one JSON object instead of the steps", &demo.json),
        {0},
    };
    int code;
    if (app_options_parse(usage, options, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (sodium_init() < 0) {
        app_error("libsodium does not start", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    struct sigaction action = {.sa_handler = signal_note};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    struct demo_world world;
    code = run(&world, &demo);
    demo_world_destroy(&world);
    if (interrupted) {
        app_error("interrupted", "everything is cleaned up", NULL);
        return APP_EXIT_FAILURE;
    }
    return code;
}
