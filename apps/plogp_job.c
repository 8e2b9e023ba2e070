/* A job of plogp_measure, by `causeway run`, and what it writes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/plogp.h"
#include "dataplane/status.h"

enum { ARGUMENTS = 16, GRACE_S = 120 };

/* In the build tree and where it is installed. */
static bool program_find(char *path, size_t bytes)
{
    static const char *const places[] = {"apps/plogp_measure", "../libexec/causeway/plogp_measure"};
    char self[512];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length <= 0) {
        return false;
    }
    self[length] = '\0';
    const char *folder = dirname(self);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, bytes, "%s/%s", folder, places[i]);
        if (access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* In the child: becomes the launcher. What the user has set for programs is not for this one. */
static _Noreturn void launcher_exec(char *const *arguments, const char *known, int parent, int output)
{
    static const char *const names[] = {"CAUSEWAY_ALGORITHM", "CAUSEWAY_EXPLAIN", "CAUSEWAY_HOST",
                                        "CAUSEWAY_COPY",      "CAUSEWAY_PLAN",    "CAUSEWAY_RECORD"};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsetenv(names[i]);
    }
    setenv("CAUSEWAY_PLOGP", known, 1);
    if (getppid() != parent || dup2(output, STDOUT_FILENO) < 0) {
        _exit(APP_EXIT_INTERNAL);
    }
    execv("/proc/self/exe", arguments);
    _exit(APP_EXIT_INTERNAL);
}

static char *output_read(int from, size_t *length)
{
    size_t room = 1 << 16;
    char *text = malloc(room);
    *length = 0;
    while (text != NULL) {
        ssize_t got = read(from, text + *length, room - *length);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            free(text);
            return NULL;
        }
        *length += got < 0 ? 0 : (size_t)got;
        if (*length == room) {
            room *= 2;
            char *grown = realloc(text, room);
            if (grown == NULL) {
                free(text);
            }
            text = grown;
        }
    }
    return text;
}

/* Its whole output, to be freed; NULL: reported, with an exit code. */
static char *launcher_run(char *const *arguments, const char *known, size_t *length, int *code)
{
    int ends[2];
    int status = 0;
    int parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0) {
        app_error("cannot make a pipe", strerror(errno), NULL);
        *code = APP_EXIT_MACHINE;
        return NULL;
    }
    pid_t child = fork();
    if (child == 0) {
        launcher_exec(arguments, known, parent, ends[1]);
    }
    close(ends[1]);
    char *text = child < 0 ? NULL : output_read(ends[0], length);
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (text == NULL || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        free(text);
        app_error("the measuring job failed", arguments[3],
                  "its own words are above; does `causeway run -n 2 true` work?");
        *code = APP_EXIT_FAILURE;
        return NULL;
    }
    return text;
}

int plogp_job_run(enum cw_measured_path path, uint32_t ranks, uint64_t time_ns, bool verify, const char *sizes,
                  const char *known, struct cw_measured **result)
{
    char program[600], count[16], hosts[32], budget[24], timeout[24], error[400];
    char *arguments[ARGUMENTS] = {"causeway", "run", "-n", count, "--timeout", timeout};
    size_t at = 6;
    size_t length = 0;
    int code = APP_EXIT_SUCCESS;
    if (!program_find(program, sizeof(program))) {
        app_error("the measuring program is missing", "plogp_measure", "build it: ninja -C build");
        return APP_EXIT_MACHINE;
    }
    snprintf(count, sizeof(count), "%" PRIu32, ranks);
    snprintf(hosts, sizeof(hosts), "%" PRIu32 ",memif", ranks);
    snprintf(budget, sizeof(budget), "%" PRIu64, time_ns / 1000000);
    snprintf(timeout, sizeof(timeout), "%" PRIu64, 4 * time_ns / 1000000000 + GRACE_S);
    if (path == CW_MEASURED_WIRE) {
        arguments[at++] = "--emulate";
        arguments[at++] = hosts;
    }
    arguments[at++] = program;
    arguments[at++] = (char *)(uintptr_t)cw_measured_path_name(path);
    arguments[at++] = budget;
    arguments[at++] = verify ? "verify" : "measure";
    arguments[at++] = (char *)(uintptr_t)sizes;
    char *text = launcher_run(arguments, known, &length, &code);
    if (text == NULL) {
        return code;
    }
    int status = cw_measured_decode(text, length, result, error, sizeof(error));
    free(text);
    if (status != CW_OK) {
        app_error("the measuring job wrote what cannot be understood", error, NULL);
        return APP_EXIT_INTERNAL;
    }
    return APP_EXIT_SUCCESS;
}
