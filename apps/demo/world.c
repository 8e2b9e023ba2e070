/* The folder, the source file and the switch of the demo; all are removed at the end. */
#include "apps/demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#define LIMIT_NS 1000000000000000000ull /* years: the hosts have a time-out of their own */

enum { CHUNK_BYTES = 1 << 20, OUTPUT_BYTES = 16384, MTU_BYTES = 1500 };

/* ---- the source ---- */

static int write_all(int file, const uint8_t *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(file, data, bytes);
        if (written < 0 && errno == EINTR && !demo_interrupted) {
            continue;
        }
        if (written <= 0) {
            return -1;
        }
        data += written;
        bytes -= (size_t)written;
    }
    return 0;
}

/* Writes random bytes that depend on the seed only, so that a run can be repeated. */
static int generate_source(const struct demo_world *world, const struct demo_options *options)
{
    int file = open(world->source, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    uint8_t *chunk = malloc(CHUNK_BYTES);
    int failed = file < 0 || chunk == NULL;
    for (uint64_t done = 0; done < options->size_bytes && !failed && !demo_interrupted; done += CHUNK_BYTES) {
        uint64_t left = options->size_bytes - done;
        uint8_t seed[randombytes_SEEDBYTES] = {0};
        memcpy(seed, &options->seed, sizeof(options->seed));
        memcpy(seed + sizeof(options->seed), &done, sizeof(done));
        randombytes_buf_deterministic(chunk, CHUNK_BYTES, seed);
        failed = write_all(file, chunk, left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES);
    }
    if (failed) {
        app_error("cannot write the source file", world->source, "is the disk full? try --size 4M, or set TMPDIR");
    }
    free(chunk);
    if (file >= 0) {
        close(file);
    }
    return failed ? APP_EXIT_MACHINE : APP_EXIT_SUCCESS;
}

/* ---- the switch ---- */

static int switch_start(struct demo_world *world, const struct demo_options *options)
{
    char rate[32], delay[32], queue[32], loss[32], seed[32];
    snprintf(rate, sizeof(rate), "%" PRIu64, options->rate_bps);
    snprintf(delay, sizeof(delay), "%" PRIu64 "ns", options->delay_ns);
    snprintf(queue, sizeof(queue), "%" PRIu64, options->queue_bytes);
    snprintf(loss, sizeof(loss), "%.9f%%", options->loss * 100);
    snprintf(seed, sizeof(seed), "%" PRIu64, options->seed);
    const char *const words[] = {"--rate", rate, "--delay", delay, "--queue", queue,
                                 "--loss", loss, "--seed",  seed,  "--json",  NULL};
    return bench_fabric_create(&world->fabric, BENCH_FABRIC_SWITCH, MTU_BYTES, words);
}

/* ---- counters ---- */

static uint64_t count_of(const json_t *line, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(line, key));
}

static void port_add(struct demo_losses *losses, const json_t *line)
{
    static const char *const others[] = {"dropped_port_full_frames", "dropped_port_down_frames", "dropped_pool_frames",
                                         "dropped_oversize_frames", "dropped_receive_frames"};
    bool data = count_of(line, "port") == 1;
    uint64_t lost = count_of(line, "dropped_loss_frames");
    uint64_t queue = count_of(line, "dropped_queue_frames");
    uint64_t queue_max = count_of(line, "queue_max_bytes");
    losses->in_frames += count_of(line, "in_frames");
    losses->lost_frames += lost;
    losses->lost_data_frames += data ? lost : 0;
    losses->queue_frames += queue;
    losses->queue_data_frames += data ? queue : 0;
    losses->queue_max_bytes = queue_max > losses->queue_max_bytes ? queue_max : losses->queue_max_bytes;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        losses->other_frames += count_of(line, others[i]);
    }
}

bool demo_world_counters(struct demo_world *world, struct demo_losses *losses)
{
    *losses = (struct demo_losses){0};
    if (world->fabric.switch_process == 0) {
        return false;
    }
    kill(world->fabric.switch_process, SIGTERM);
    FILE *output = fdopen(dup(world->fabric.switch_output), "r");
    uint32_t ports = 0;
    char *text = malloc(OUTPUT_BYTES);
    while (output != NULL && text != NULL && fgets(text, OUTPUT_BYTES, output) != NULL) {
        json_t *line = json_loads(text, 0, NULL);
        const char *kind = json_string_value(json_object_get(line, "kind"));
        if (kind != NULL && strcmp(kind, "port") == 0) {
            port_add(losses, line);
            ports++;
        }
        json_decref(line);
    }
    free(text);
    if (output != NULL) {
        fclose(output);
    }
    return ports == 2;
}

/* ---- beginning and end ---- */

int demo_world_create(struct demo_world *world, const struct demo_options *options)
{
    struct stat status;
    *world = (struct demo_world){.options = options};
    int code = switch_start(world, options);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    snprintf(world->target, sizeof(world->target), "%s/target", world->fabric.folder);
    snprintf(world->source, sizeof(world->source), "%s/source", world->fabric.folder);
    if (options->file != NULL) {
        snprintf(world->source, sizeof(world->source), "%s", options->file);
    } else if ((code = generate_source(world, options)) != APP_EXIT_SUCCESS) {
        return code;
    }
    if (stat(world->source, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) {
        app_error("not a regular file, or empty", world->source, "name a regular file of at least one byte");
        return APP_EXIT_USAGE;
    }
    world->bytes = (uint64_t)status.st_size;
    return APP_EXIT_SUCCESS;
}

int demo_world_transfer(struct demo_world *world, struct demo_report reports[2])
{
    struct bench_group group;
    const struct bench_group_config config = {
        .doorbell = true,
        .region_bytes = world->bytes,
        .result_bytes = sizeof(struct demo_report),
        .limit_ns = LIMIT_NS,
        .settings = world,
        .stop = &demo_interrupted,
        .reference = demo_host_map,
        .run = demo_host_run,
    };
    int code = bench_group_start(&group, &world->fabric, &config);
    code = code == APP_EXIT_SUCCESS ? bench_group_finish(&group) : code;
    for (uint32_t i = 0; i < 2 && code == APP_EXIT_SUCCESS; i++) {
        memcpy(&reports[i], bench_group_result(&group, i), sizeof(reports[i]));
    }
    bench_group_free(&group);
    return code;
}

void demo_world_destroy(struct demo_world *world)
{
    bench_fabric_destroy(&world->fabric);
}
