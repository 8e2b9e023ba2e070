/* What the demo stands on: a folder, a file, a switch; all of it goes away again. */
#include "apps/demo/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "apps/cli/cli.h"
#include "dataplane/core/clock.h"

#define READY_WAIT_NS 10000000000ull

enum { CHUNK_BYTES = 1 << 20, OUTPUT_BYTES = 16384 };

/* ---- the source ---- */

static int write_all(int file, const uint8_t *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(file, data, bytes);
        if (written < 0 && errno == EINTR && !demo_interrupted()) {
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

/* Random bytes that the seed decides, so that a run can be repeated. */
static int generate_source(const struct demo_world *world, const struct demo_options *options)
{
    int file = open(world->source, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    uint8_t *chunk = malloc(CHUNK_BYTES);
    int failed = file < 0 || chunk == NULL;
    for (uint64_t done = 0; done < options->size_bytes && !failed && !demo_interrupted(); done += CHUNK_BYTES) {
        uint64_t left = options->size_bytes - done;
        uint8_t seed[randombytes_SEEDBYTES] = {0};
        memcpy(seed, &options->seed, sizeof(options->seed));
        memcpy(seed + sizeof(options->seed), &done, sizeof(done));
        randombytes_buf_deterministic(chunk, CHUNK_BYTES, seed);
        failed = write_all(file, chunk, left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES);
    }
    if (failed) {
        app_error("cannot write the file to move", world->source, "is the disk full? try --size 4M, or set TMPDIR");
    }
    free(chunk);
    if (file >= 0) {
        close(file);
    }
    return failed ? APP_EXIT_MACHINE : APP_EXIT_SUCCESS;
}

/* ---- the switch ---- */

/* In the child: becomes the switch, and ends with its parent. */
static _Noreturn void exec_switch(const struct demo_world *world, const struct demo_options *options, int output)
{
    char rate[32];
    char delay[32];
    char queue[32];
    char loss[32];
    char seed[32];
    snprintf(rate, sizeof(rate), "%" PRIu64, options->rate_bps);
    snprintf(delay, sizeof(delay), "%" PRIu64 "ns", options->delay_ns);
    snprintf(queue, sizeof(queue), "%" PRIu64, options->queue_bytes);
    snprintf(loss, sizeof(loss), "%.9f%%", options->loss * 100);
    snprintf(seed, sizeof(seed), "%" PRIu64, options->seed);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0); /* Ctrl-C is for the parent, which ends the rest in order */
    if (getppid() != world->parent || dup2(output, STDOUT_FILENO) < 0) {
        _exit(APP_EXIT_INTERNAL);
    }
    execl("/proc/self/exe", "causeway", "switch", "--memif", world->socket, "--ports", "2", "--rate", rate, "--delay",
          delay, "--queue", queue, "--loss", loss, "--seed", seed, "--json", (char *)NULL);
    _exit(APP_EXIT_INTERNAL);
}

/* Reads from the switch until `text` holds a whole line. */
static bool read_line(const struct demo_world *world, char *text, size_t text_bytes)
{
    size_t length = 0;
    uint64_t until_ns = cw_clock_ns() + READY_WAIT_NS;
    text[0] = 0;
    while (strchr(text, '\n') == NULL && length + 1 < text_bytes && cw_clock_ns() < until_ns && !demo_interrupted()) {
        struct pollfd set = {.fd = world->switch_output, .events = POLLIN};
        if (poll(&set, 1, 100) <= 0) {
            continue;
        }
        ssize_t got = read(world->switch_output, text + length, text_bytes - 1 - length);
        if (got <= 0) {
            break;
        }
        length += (size_t)got;
        text[length] = 0;
    }
    return strchr(text, '\n') != NULL;
}

static int start_switch(struct demo_world *world, const struct demo_options *options)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        app_error("cannot make a pipe", strerror(errno), NULL);
        return APP_EXIT_MACHINE;
    }
    world->switch_process = fork();
    if (world->switch_process == 0) {
        exec_switch(world, options, ends[1]);
    }
    close(ends[1]);
    world->switch_output = ends[0];
    if (world->switch_process < 0) {
        world->switch_process = 0;
        app_error("cannot start the switch", strerror(errno), "raise `ulimit -u`");
        return APP_EXIT_MACHINE;
    }
    char line[256];
    if (!read_line(world, line, sizeof(line)) || strncmp(line, "ready:", 6) != 0) {
        if (!demo_interrupted()) {
            app_error("the switch does not start", world->socket, "see above; alone: causeway switch --memif /tmp/s");
        }
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

static void process_end(pid_t *process, int number)
{
    if (*process > 0) {
        kill(*process, number);
        while (waitpid(*process, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    *process = 0;
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
    if (world->switch_process == 0) {
        return false;
    }
    kill(world->switch_process, SIGTERM);
    FILE *output = fdopen(world->switch_output, "r");
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
        world->switch_output = -1;
    }
    process_end(&world->switch_process, SIGTERM);
    return ports == 2;
}

/* ---- beginning and end ---- */

int demo_world_create(struct demo_world *world, const struct demo_options *options)
{
    const char *place = getenv("TMPDIR");
    *world = (struct demo_world){.parent = getpid(), .switch_output = -1};
    place = place != NULL && place[0] == '/' && strlen(place) < DEMO_PATH_BYTES / 2 ? place : "/tmp";
    snprintf(world->folder, sizeof(world->folder), "%s/causeway-demo-XXXXXX", place);
    if (mkdtemp(world->folder) == NULL) {
        world->folder[0] = 0;
        app_error("no temporary folder", place, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    snprintf(world->socket, sizeof(world->socket), "%s/socket", world->folder);
    snprintf(world->target, sizeof(world->target), "%s/target", world->folder);
    if (options->file != NULL) {
        snprintf(world->source, sizeof(world->source), "%s", options->file);
    } else {
        snprintf(world->source, sizeof(world->source), "%s/source", world->folder);
        int code = generate_source(world, options);
        if (code != APP_EXIT_SUCCESS || demo_interrupted()) {
            return code;
        }
    }
    return start_switch(world, options);
}

void demo_world_destroy(struct demo_world *world)
{
    process_end(&world->hosts[0], SIGKILL);
    process_end(&world->hosts[1], SIGKILL);
    process_end(&world->switch_process, SIGTERM);
    if (world->switch_output >= 0) {
        close(world->switch_output);
    }
    if (world->folder[0] == 0) {
        return;
    }
    /* socket and bell are the switch's, but it may have been killed */
    static const char *const names[] = {"source", "target", "socket", "socket.bell"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[DEMO_PATH_BYTES + 16];
        snprintf(path, sizeof(path), "%s/%s", world->folder, names[i]);
        unlink(path);
    }
    rmdir(world->folder);
    world->folder[0] = 0;
}
