#include "control/launch/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/process.h"

enum { OWN_VARIABLES = 6, VARIABLE_BYTES = 32 + CW_DEDICATE_TEXT_BYTES, LOOK_MS = 1000 };

#define DEDICATED "CAUSEWAY_DEDICATED_CORE="

/* Work of the child. */
struct child {
    const struct launch_local *local;
    const struct launch_member *member;
    pid_t parent;
    int descriptors[3]; /* its stdin, stdout, stderr */
    int pmi;
    int watch;             /* -1: none */
    int report;            /* it reports failures here; closes when it executes its program */
    const char *directory; /* NULL: this one */
    char **environment;
};

/* What went wrong. */
struct failure {
    int error;
    const char *what; /* NULL: it could not be executed. The child's addresses are the parent's */
};

static const char no_directory[] = "cannot enter its directory";

/* ---- in the child ---- */

static void child_fail(const struct child *child, const char *what)
{
    struct failure failure = {.error = errno, .what = what};
    ssize_t done = write(child->report, &failure, sizeof(failure)); /* at most PIPE_BUF: written at once */
    (void)done;
    _exit(CW_LAUNCH_EXIT_NOT_FOUND);
}

/* Everything as it was before the launcher arranged itself. */
static void child_restore(const struct child *child)
{
    signal(SIGPIPE, child->local->config.pipe_ignored ? SIG_IGN : SIG_DFL);
    signal(SIGTTIN, SIG_DFL);
    setrlimit(RLIMIT_NOFILE, &child->local->files_before);
    sigprocmask(SIG_SETMASK, child->local->config.mask, NULL);
}

static void child_run(const struct child *child)
{
    if (setpgid(0, 0) != 0) {
        child_fail(child, "cannot create a process group");
    }
    /* from here on it dies with the launcher; if that has died already, no other process would end it */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != child->parent) {
        child_fail(child, "is orphaned");
    }
    for (int i = 0; i < 3; i++) {
        if (child->descriptors[i] != i && dup2(child->descriptors[i], i) < 0) {
            child_fail(child, "cannot redirect stdin, stdout and stderr");
        }
    }
    const cpu_set_t *cores = child->local->binding.cores;
    if (cores != NULL && sched_setaffinity(0, sizeof(*cores), &cores[child->member - child->local->members]) != 0) {
        child_fail(child, "cannot be bound to its processors");
    }
    if (fcntl(child->pmi, F_SETFD, 0) != 0 || (child->watch >= 0 && fcntl(child->watch, F_SETFD, 0) != 0)) {
        child_fail(child, "cannot have its connection to the launcher");
    }
    if (child->directory != NULL && chdir(child->directory) != 0) {
        child_fail(child, no_directory);
    }
    child_restore(child);
    execvpe(child->member->program->arguments[0], child->member->program->arguments, child->environment);
    child_fail(child, NULL);
}

/* ---- the parent ---- */

/* Waits until the child has executed its program or has ended, so that a failure is known at once. A file system may
 * take its time; a child that is stopped in there has a bound. False: the wait was interrupted. */
static bool child_await(const struct launch_local *local, pid_t process, int report, struct failure *failure)
{
    const char *origin;
    uint64_t stopped_ns = 0, bound_ns = 0;
    (void)cw_settings_failure_timeout(&bound_ns, &origin); /* the ranks report an invalid value */
    for (;;) {
        struct pollfd wait[2] = {{.fd = report, .events = POLLIN}, {.fd = local->config.interrupt, .events = POLLIN}};
        int count = poll(wait, 2, LOOK_MS);
        uint64_t now_ns = cw_clock_ns();
        if (wait[0].revents != 0) {
            (void)!read(report, failure, sizeof(*failure)); /* nothing: all is well */
            return true;
        }
        if (count > 0 || now_ns >= local->config.deadline_ns) {
            return false; /* the loop learns why */
        }
        if (local->config.still != NULL && !local->config.still(local->config.context)) {
            return false;
        }
        stopped_ns = !cw_process_is_stopped(process) ? 0 : stopped_ns == 0 ? now_ns : stopped_ns;
        if (stopped_ns != 0 && bound_ns != 0 && now_ns - stopped_ns >= bound_ns) {
            *failure =
                (struct failure){.error = ETIMEDOUT, .what = "is stopped by a signal (state T) before its program"};
            kill(process, SIGKILL);
            return true;
        }
    }
}

/* The number of the process, or -1 with errno. One whose start was interrupted is killed, and not alive for the job. */
static pid_t child_start(struct launch_local *local, struct child *child, struct failure *failure)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    child->report = ends[1];
    pid_t process = fork(); /* and no vfork: a child that is stopped before its program must not stop us */
    if (process == 0) {
        child_run(child);
    }
    int error = errno;
    close(ends[1]);
    if (process > 0 && !child_await(local, process, ends[0], failure)) {
        kill(process, SIGKILL);
        *failure = (struct failure){.error = EINTR, .what = ""};
    }
    close(ends[0]);
    errno = error;
    return process;
}

/* ---- the environment ---- */

/* Whether the variable describes how a process was started: only our values are valid for ranks. */
static bool is_launchers(const char *variable)
{
    return strncmp(variable, "PMI_", 4) == 0 || strncmp(variable, "PMIX_", 5) == 0 ||
           strncmp(variable, DEDICATED, strlen(DEDICATED)) == 0;
}

static size_t name_length(const char *variable)
{
    return strcspn(variable, "=");
}

static void variable_set(char **environment, size_t *count, char *variable)
{
    for (size_t i = 0; i < *count; i++) {
        size_t length = name_length(environment[i]);
        if (length == name_length(variable) && memcmp(environment[i], variable, length) == 0) {
            environment[i] = variable;
            return;
        }
    }
    environment[(*count)++] = variable;
}

/* The rank's variables; `own` are the last ones, up to the first empty one. NULL: no memory. To be freed. */
static char **environment_make(const struct cw_launch_program *program, char own[OWN_VARIABLES][VARIABLE_BYTES])
{
    size_t room = OWN_VARIABLES + 1;
    size_t count = 0;
    for (char **at = environ; *at != NULL; at++) {
        room++;
    }
    for (char **at = program->variables; at != NULL && *at != NULL; at++) {
        room++;
    }
    char **made = calloc(room, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    for (char **at = environ; *at != NULL; at++) {
        if (!is_launchers(*at)) {
            made[count++] = *at;
        }
    }
    for (char **at = program->variables; at != NULL && *at != NULL; at++) {
        variable_set(made, &count, *at);
    }
    for (size_t i = 0; i < OWN_VARIABLES && own[i][0] != 0; i++) {
        variable_set(made, &count, own[i]);
    }
    return made;
}

/* Writes the cores of the rank's dataplane threads; "": none were requested. */
static void dedicated_write(const struct launch_local *local, const struct launch_member *member,
                            char text[VARIABLE_BYTES])
{
    const struct launch_binding *binding = &local->binding;
    text[0] = 0;
    if (binding->dedicated != NULL) {
        const int *cores = &binding->dedicated[(size_t)(member - local->members) * binding->threads];
        int length = snprintf(text, VARIABLE_BYTES, DEDICATED "%d", cores[0]);
        for (uint32_t i = 1; i < binding->threads; i++) {
            length += snprintf(text + length, VARIABLE_BYTES - (size_t)length, ",%d", cores[i]);
        }
    } else if (binding->undedicated[0] != 0) {
        snprintf(text, VARIABLE_BYTES, DEDICATED "none: %s", binding->undedicated);
    }
}

/* ---- one rank ---- */

/* Pairs of descriptors: the launcher's end first. */
struct ends {
    int pmi[2];
    int outputs[2][2];
    int input;
    bool input_own;
};

static void close_all(int *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (descriptors[i] >= 0) {
            close(descriptors[i]);
            descriptors[i] = -1;
        }
    }
}

static bool ends_open(struct launch_local *local, struct launch_member *member, struct ends *ends)
{
    *ends = (struct ends){.pmi = {-1, -1}, .outputs = {{-1, -1}, {-1, -1}}, .input = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends->pmi) != 0 || pipe2(ends->outputs[0], O_CLOEXEC) != 0 ||
        pipe2(ends->outputs[1], O_CLOEXEC) != 0 || fcntl(ends->pmi[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(ends->outputs[0][0], F_SETFL, O_NONBLOCK) != 0 || fcntl(ends->outputs[1][0], F_SETFL, O_NONBLOCK) != 0) {
        return false;
    }
    ends->input = launch_local_input_for(local, member, &ends->input_own);
    return ends->input >= 0;
}

/* Says why a program could not be executed in `directory`; NULL: in this one. */
static void execution_fail(struct launch_local *local, const struct launch_member *member, const char *directory,
                           int error)
{
    const char *program = member->program->arguments[0];
    bool path = strchr(program, '/') != NULL;
    bool is_relative = path && program[0] != '/' && directory != NULL;
    if (error == ENOENT && path && access(program, F_OK) == 0) {
        launch_local_fail(local, CW_LAUNCH_EXIT_NOT_FOUND, "%s: its interpreter is not there (look at its first line)",
                          program);
    } else if ((error == ENOENT || error == ENOTDIR) && path) {
        launch_local_fail(local, CW_LAUNCH_EXIT_NOT_FOUND, "%s: no such program%s%s", program,
                          is_relative ? " in " : "", is_relative ? directory : "");
    } else if (error == ENOENT || error == ENOTDIR) {
        launch_local_fail(local, CW_LAUNCH_EXIT_NOT_FOUND,
                          "%s: no such program in PATH (for one in the working directory write ./%s)", program,
                          program);
    } else if (error == EACCES || error == ENOEXEC || error == EISDIR) {
        launch_local_fail(local, CW_LAUNCH_EXIT_NOT_EXECUTABLE, "%s: %s (chmod +x, and no directory)", program,
                          error == EACCES ? "may not be executed" : strerror(error));
    } else {
        launch_local_fail(local, CW_LAUNCH_EXIT_NOT_EXECUTABLE, "%s: %s", program, strerror(error));
    }
}

static void resource_fail(struct launch_local *local, const struct launch_member *member, const char *what, int error)
{
    launch_local_fail(local, CW_LAUNCH_EXIT_MACHINE,
                      "rank %" PRIu32 ": %s: %s (see `ulimit -a`, or ask for fewer ranks)", member->rank, what,
                      strerror(error));
}

/* Adds the process of a running rank to the epoll set. */
static bool member_watch(struct launch_local *local, struct launch_member *member, struct ends *ends)
{
    uint32_t index = (uint32_t)(member - local->members);
    member->handle = pidfd_open(member->process, 0);
    if (member->handle < 0) {
        int error = errno;
        kill(-member->process, SIGKILL); /* not counted as alive: swept at the end */
        resource_fail(local, member, "cannot be watched", error);
        return false;
    }
    member->pmi = ends->pmi[0];
    member->outputs[0] = ends->outputs[0][0];
    member->outputs[1] = ends->outputs[1][0];
    ends->pmi[0] = ends->outputs[0][0] = ends->outputs[1][0] = -1;
    local->alive++;
    launch_watch(local->config.set, member->handle, EPOLLIN, LAUNCH_PROCESS, index);
    launch_watch(local->config.set, member->pmi, EPOLLIN, LAUNCH_PMI, index);
    launch_local_output_add(local, index);
    launch_local_report(local, LAUNCH_STARTED, member->rank, member->process, NULL, 0);
    return true;
}

static bool member_start(struct launch_local *local, struct launch_member *member, struct ends *ends)
{
    char own[OWN_VARIABLES][VARIABLE_BYTES];
    const struct launch_work *work = local->config.work;
    struct child child = {
        .local = local,
        .member = member,
        .parent = getpid(),
        .descriptors = {ends->input, ends->outputs[0][1], ends->outputs[1][1]},
        .pmi = ends->pmi[1],
        .watch = local->watch != NULL ? cw_watch_descriptor(local->watch) : -1,
        .directory = member->program->directory != NULL ? member->program->directory : work->directory,
    };
    snprintf(own[0], VARIABLE_BYTES, "PMI_FD=%d", ends->pmi[1]);
    snprintf(own[1], VARIABLE_BYTES, "PMI_RANK=%" PRIu32, member->rank);
    snprintf(own[2], VARIABLE_BYTES, "PMI_SIZE=%" PRIu32, work->rank_count);
    snprintf(own[4], VARIABLE_BYTES, "%s=%d", cw_setting_name(CW_SETTING_WORKER), getpid());
    snprintf(own[3], VARIABLE_BYTES, "%s=%d", cw_setting_name(CW_SETTING_WATCH_FD),
             child.watch); /* also where there is none: not somebody else's */
    dedicated_write(local, member, own[5]);
    child.environment = environment_make(member->program, own);
    if (child.environment == NULL) {
        resource_fail(local, member, "cannot be started", ENOMEM);
        return false;
    }
    struct failure failure = {.error = 0};
    member->process = child_start(local, &child, &failure);
    int error = errno;
    free(child.environment);
    if (member->process < 0) {
        member->process = 0;
        resource_fail(local, member, "cannot be started", error);
    } else if (failure.error != 0 && failure.what == NULL) {
        execution_fail(local, member, child.directory, failure.error);
    } else if (failure.error != 0 && failure.what[0] != '\0') {
        bool names = failure.what == no_directory;
        launch_local_fail(local, CW_LAUNCH_EXIT_NOT_EXECUTABLE, "rank %" PRIu32 " %s: %s%s%s", member->rank,
                          failure.what, names ? child.directory : "", names ? ": " : "", strerror(failure.error));
    } else if (failure.error == 0) {
        return member_watch(local, member, ends);
    }
    return false;
}

bool launch_local_spawn(struct launch_local *local, struct launch_member *member)
{
    struct ends ends;
    bool started = false;
    if (ends_open(local, member, &ends)) {
        started = member_start(local, member, &ends);
    } else {
        resource_fail(local, member, "cannot have its pipes", errno);
    }
    close_all(ends.pmi, 2);
    close_all(ends.outputs[0], 2);
    close_all(ends.outputs[1], 2);
    if (ends.input_own && ends.input >= 0) {
        close(ends.input);
    }
    return started;
}
