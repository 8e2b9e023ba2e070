#include "apps/bench/processes/mirror.h"

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

#include "apps/bench/processes/group_shared.h"
#include "apps/cli/cli.h"
#include "control/launch/remote.h"

enum { LOOK_MS = 1, PATH_BYTES = 512, NOISE_BYTES = 60 };

/* What a member has come to be; its result follows once it leaves. Both hosts have the same build: the bytes are as
 * they lie in memory, and their number is a part of the mark. */
struct record {
    char mark[8];
    uint32_t bytes;
    uint32_t steps;
    uint32_t marks;
    uint32_t measured;
    uint32_t result_bytes;
    uint8_t mac[6];
    uint8_t key[16];
    struct cw_address address;
    uint64_t token;
};

static const char record_mark[8] = "cw-bench";

/* ---- the other host's command ---- */

bool bench_mirror_command(struct bench_mirror *mirror, const struct bench_put_options *options)
{
    char self[PATH_BYTES];
    size_t bytes;
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length < 0 ? 0 : length] = '\0';
    char *executable = cw_launch_quoted(self), *device = cw_launch_quoted(options->devices[1]);
    FILE *line = executable == NULL || device == NULL ? NULL : open_memstream(&mirror->command, &bytes);
    if (line != NULL) {
        fprintf(line, "sh -c 'test -x \"$0\" && exec \"$0\" \"$@\"; exec causeway \"$@\"' %s ", executable);
        fprintf(line, "bench put --member --rounds 1 --peer-device %s ", device);
        fprintf(line, "--mtu %" PRIu64 " --duration %" PRIu64 "ns --peer-core %" PRIu64 "%s --sizes ",
                options->mtu_bytes, options->duration_ns, options->core[1], options->no_raw ? " --no-raw" : "");
    }
    for (size_t i = 0; line != NULL && i < options->sizes.count; i++) {
        fprintf(line, "%s%" PRIu64, i > 0 ? "," : "", options->sizes.values[i]);
    }
    free(executable);
    free(device);
    return line != NULL && fclose(line) == 0;
}

void bench_mirror_free(struct bench_mirror *mirror)
{
    free(mirror->command);
    mirror->command = NULL;
}

/* In the place of this process. */
static _Noreturn void launcher_run(const struct bench_mirror *mirror)
{
    const char *words[CW_LAUNCH_WORDS_MAX];
    char *shell = NULL;
    if (cw_launch_words(mirror->launcher, mirror->host, mirror->command, &shell, words)) {
        execvp(words[0], (char *const *)(uintptr_t)words);
    }
    fprintf(stderr, "causeway bench put: %s: %s\n", mirror->launcher, strerror(errno));
    _exit(127);
}

/* The launcher, with its standard input and output at the ends that `files` gets; -1: an error has been reported. */
static pid_t launcher_start(const struct bench_mirror *mirror, struct bench_mirror *files)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    pid_t parent = getpid();
    bool has_pipes = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0;
    pid_t process = has_pipes ? fork() : -1;
    if (process == 0) {
        /* who loses its input ends by itself; a launcher that does not is not left behind either */
        bool alone = prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent;
        if (!alone && dup2(out[0], STDIN_FILENO) >= 0 && dup2(in[1], STDOUT_FILENO) >= 0) {
            launcher_run(mirror);
        }
        _exit(127);
    }
    if (process < 0) {
        app_error("no process for the launcher", strerror(errno), "raise `ulimit -u` or `ulimit -n`");
        return -1;
    }
    close(in[1]);
    close(out[0]);
    *files = (struct bench_mirror){.host = mirror->host, .in = in[0], .out = out[1]};
    return process;
}

int bench_mirror_files(struct bench_mirror *mirror)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *mirror = (struct bench_mirror){.in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3),
                                    .out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)};
    if (nothing < 0 || mirror->in < 0 || mirror->out < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        app_error("no standard files to talk by", strerror(errno), "causeway bench put --net HOST starts this");
        return APP_EXIT_MACHINE;
    }
    close(nothing);
    return APP_EXIT_SUCCESS;
}

/* ---- records ---- */

static bool write_all(int file, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    while (bytes > 0) {
        ssize_t count = write(file, at, bytes);
        if (count <= 0 && errno != EINTR) {
            return false;
        }
        at += count > 0 ? count : 0;
        bytes -= count > 0 ? (size_t)count : 0;
    }
    return true;
}

/* The bytes that came before the end. */
static size_t read_all(int file, void *data, size_t bytes)
{
    size_t got = 0;
    while (got < bytes) {
        ssize_t count = read(file, (uint8_t *)data + got, bytes - got);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            break;
        }
        got += count > 0 ? (size_t)count : 0;
    }
    return got;
}

/* What changes of a member. */
struct progress {
    uint32_t steps;
    uint32_t marks;
    uint32_t measured;
};

static bool record_write(int file, const struct bench_group *group, uint32_t index, const struct progress *progress)
{
    const struct bench_introduction *own = &group->shared->members[index];
    struct record record;
    memset(&record, 0, sizeof(record)); /* its gaps, too */
    memcpy(record.mark, record_mark, sizeof(record.mark));
    record.bytes = sizeof(record);
    record.steps = progress->steps;
    record.marks = progress->marks;
    record.measured = progress->measured;
    record.result_bytes = progress->steps == BENCH_STEP_COUNT ? (uint32_t)group->config.result_bytes : 0;
    record.address = own->address;
    record.token = own->token;
    memcpy(record.mac, own->mac, sizeof(record.mac));
    memcpy(record.key, own->key, sizeof(record.key));
    return write_all(file, &record, sizeof(record)) &&
           write_all(file, bench_group_result_at(group, index), record.result_bytes);
}

enum reading { READ_RECORD, READ_END, READ_NOISE };

/* One record, taken over for the member. READ_NOISE: what was read instead is in `noise`. */
static enum reading record_read(int file, const struct bench_group *group, uint32_t index, char noise[NOISE_BYTES])
{
    struct bench_group_shared *shared = group->shared;
    struct bench_introduction *other = &shared->members[index];
    struct record record;
    size_t got = read_all(file, &record, sizeof(record));
    if (got < sizeof(record) &&
        (got < sizeof(record.mark) || memcmp(record.mark, record_mark, sizeof(record.mark)) == 0)) {
        return READ_END;
    }
    uint32_t steps_before = atomic_load(&other->steps);
    if (memcmp(record.mark, record_mark, sizeof(record.mark)) != 0 || record.bytes != sizeof(record) ||
        record.steps > BENCH_STEP_COUNT || record.steps < steps_before ||
        record.result_bytes != (record.steps == BENCH_STEP_COUNT ? group->config.result_bytes : 0)) {
        snprintf(noise, NOISE_BYTES, "%.*s", (int)(got < NOISE_BYTES ? got : NOISE_BYTES - 1), (const char *)&record);
        noise[strcspn(noise, "\r\n")] = '\0';
        return READ_NOISE;
    }
    if (read_all(file, bench_group_result_at(group, index), record.result_bytes) < record.result_bytes) {
        return READ_END;
    }
    memcpy(other->mac, record.mac, sizeof(other->mac));
    memcpy(other->key, record.key, sizeof(other->key));
    other->address = record.address;
    other->token = record.token;
    atomic_store(&other->measured, record.measured);
    atomic_store(&other->marks, record.marks);
    atomic_store(&other->steps, record.steps);
    for (uint32_t step = steps_before; step < record.steps; step++) {
        atomic_fetch_add(&shared->reached[step], 1);
    }
    return READ_RECORD;
}

/* Tells and is told until both have left. */
static enum reading records_exchange(const struct bench_mirror *files, const struct bench_group *group, uint32_t index,
                                     char noise[NOISE_BYTES])
{
    const struct bench_introduction *own = &group->shared->members[1 - index], *other = &group->shared->members[index];
    struct progress sent = {.steps = 0};
    while (sent.steps < BENCH_STEP_COUNT || atomic_load(&other->steps) < BENCH_STEP_COUNT) {
        struct pollfd file = {.fd = files->in, .events = POLLIN};
        struct progress now = {.steps = atomic_load(&own->steps),
                               .marks = atomic_load(&own->marks),
                               .measured = atomic_load(&own->measured)};
        if (now.steps != sent.steps || now.marks != sent.marks || now.measured != sent.measured) {
            if (!record_write(files->out, group, 1 - index, &now)) {
                return READ_END;
            }
            sent = now;
        }
        if (poll(&file, 1, LOOK_MS) > 0) {
            enum reading reading = record_read(files->in, group, index, noise);
            if (reading != READ_RECORD) {
                return reading;
            }
        }
    }
    return READ_RECORD;
}

/* What the first host says of a connection that has ended early; the other one says nothing, since nobody would hear
 * it. */
static int end_tell(const struct bench_mirror *mirror, enum reading reading, const char *noise, int status)
{
    char what[200], hint[200];
    if (reading == READ_NOISE) {
        snprintf(what, sizeof(what), "host %.100s: something else writes there: '%s'", mirror->host, noise);
        snprintf(hint, sizeof(hint), "a login that prints nothing is wanted, and the same build of causeway");
    } else {
        snprintf(what, sizeof(what), "host %.100s: its side has ended (exit code %d)", mirror->host,
                 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        snprintf(hint, sizeof(hint), "the reason stands above; if none does, try `%.60s %.60s causeway --version`",
                 mirror->launcher, mirror->host);
    }
    app_error(what, "--net", hint);
    return WIFEXITED(status) && WEXITSTATUS(status) == APP_EXIT_MACHINE ? APP_EXIT_MACHINE : APP_EXIT_FAILURE;
}

int bench_mirror_run(const struct bench_mirror *mirror, const struct bench_group *group, uint32_t index)
{
    struct bench_mirror files = *mirror;
    char noise[NOISE_BYTES] = "";
    int status = 0;
    (void)signal(SIGPIPE, SIG_IGN);
    pid_t launcher = mirror->host != NULL ? launcher_start(mirror, &files) : 0;
    if (launcher < 0) {
        return APP_EXIT_MACHINE;
    }
    enum reading reading = records_exchange(&files, group, index, noise);
    close(files.out);
    close(files.in);
    if (launcher == 0) {
        return reading == READ_RECORD ? APP_EXIT_SUCCESS : APP_EXIT_FAILURE;
    }
    while (waitpid(launcher, &status, 0) < 0 && errno == EINTR) {
    }
    return reading == READ_RECORD && status == 0 ? APP_EXIT_SUCCESS : end_tell(mirror, reading, noise, status);
}
