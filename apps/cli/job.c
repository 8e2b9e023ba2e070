#include "apps/cli/job.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "control/settings/setting.h"

/* In the build tree and where it is installed. */
bool app_job_program(const char *program, char *path, size_t bytes)
{
    static const char *const places[] = {"apps", "../libexec/causeway"};
    char self[512];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    const char *folder = dirname(self);
    for (size_t i = 0; length > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, bytes, "%s/%s/%s", folder, places[i], program);
        if (access(path, X_OK) == 0) {
            return true;
        }
    }
    app_error("the measuring program is missing", program, "build it: ninja -C build");
    return false;
}

/* In the child: becomes the launcher. The user's settings for programs do not apply to this one. */
static _Noreturn void launcher_exec(char *const *arguments, int parent, int output)
{
    static const enum cw_setting settings[] = {CW_SETTING_ALGORITHM, CW_SETTING_EXPLAIN, CW_SETTING_HOST,
                                               CW_SETTING_COPY,      CW_SETTING_PLAN,    CW_SETTING_RECORD};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        cw_setting_clear(settings[i]);
    }
    (void)cw_setting_set(CW_SETTING_PLOGP, "none");
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
    if (text != NULL) {
        text[*length] = '\0';
    }
    return text;
}

/* `with_errors`: of standard error, too. */
static char *launcher_run(char *const *arguments, bool with_errors, size_t *length, int *status)
{
    int ends[2];
    int parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0) {
        app_error("cannot make a pipe", strerror(errno), NULL);
        *status = -1;
        return NULL;
    }
    pid_t child = fork();
    if (child == 0) {
        if (with_errors) {
            (void)dup2(ends[1], STDERR_FILENO);
        }
        launcher_exec(arguments, parent, ends[1]);
    }
    close(ends[1]);
    char *text = child < 0 ? NULL : output_read(ends[0], length);
    close(ends[0]);
    while (child > 0 && waitpid(child, status, 0) < 0 && errno == EINTR) {
    }
    return text;
}

char *app_job_output(char *const *arguments, size_t *length, int *code)
{
    int status = -1;
    char *text = launcher_run(arguments, true, length, &status);
    *code = text == NULL ? APP_EXIT_MACHINE : WIFEXITED(status) ? WEXITSTATUS(status) : APP_EXIT_INTERNAL;
    return text;
}

char *app_job_run(char *const *arguments, const char *what, size_t *length, int *code)
{
    int status = -1;
    char *text = launcher_run(arguments, false, length, &status);
    if (text != NULL && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return text;
    }
    free(text);
    if (text != NULL && WIFEXITED(status) && WEXITSTATUS(status) == APP_EXIT_USAGE) {
        *code = APP_EXIT_USAGE; /* it has reported everything */
        return NULL;
    }
    app_error("the measuring job failed", what, "its own words are above; does `causeway run -n 2 true` work?");
    *code = APP_EXIT_FAILURE;
    return NULL;
}
