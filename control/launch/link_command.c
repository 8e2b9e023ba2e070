/* The command that starts an agent on another host. */
#include "control/launch/link.h"
#include "control/launch/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "control/job/key.h"
#include "control/settings/setting.h"

/* The command on the agent's host: this program by the same name, or the one in PATH there. To be freed. */
static char *remote_command(const struct launch_work *work)
{
    char *executable = cw_launch_quoted(work->executable);
    char *made = NULL;
    if (executable == NULL ||
        asprintf(&made, "sh -c 'test -x \"$0\" && exec \"$0\" agent; exec causeway agent' %s", executable) < 0) {
        made = NULL;
    }
    free(executable);
    return made;
}

/* Removes variables with defaults for the steps of a Slurm job: their processors and standard files do not apply to an
 * agent. */
static void step_clear(void)
{
    static const char *const names[] = {"SLURM_EXACT",      "SRUN_CPUS_PER_TASK", "SLURM_LABELIO",
                                        "SLURM_STDINMODE",  "SLURM_STDOUTMODE",   "SLURM_STDERRMODE",
                                        "SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        cw_environment_clear(names[i]);
    }
}

/* In the child: of its own group, so that the terminal's signals are not for it, and dies with us. */
static void command_run(const char *const *words, const int files[3], pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(CW_LAUNCH_EXIT_NOT_FOUND);
    }
    for (int i = 0; i < 3; i++) {
        dup2(files[i], i);
    }
    cw_job_key_drop(); /* the key is sent in frames */
    if (strcmp(words[0], "srun") == 0) {
        step_clear();
    }
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(words[0], (char *const *)(uintptr_t)words);
    dprintf(STDERR_FILENO, "%s: %s\n", words[0], strerror(errno));
    _exit(CW_LAUNCH_EXIT_NOT_FOUND);
}

/* The ends of its pipes become the link's. False: errno. */
static bool command_start(struct launch_link *link, const char *const *words)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1}, errors[2] = {-1, -1};
    pid_t parent = getpid();
    if (pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0) {
        link->process = fork();
        if (link->process == 0) {
            command_run(words, (const int[3]){to[0], from[1], errors[1]}, parent);
        }
    }
    int reason = errno;
    const int theirs[] = {to[0], from[1], errors[1]};
    for (size_t i = 0; i < 3; i++) {
        if (theirs[i] >= 0) {
            close(theirs[i]);
        }
    }
    link->out = to[1];
    link->in = from[0];
    link->errors = errors[0];
    errno = reason;
    return link->process > 0;
}

bool launch_link_command(struct launch_link *link, const char *host)
{
    const char *words[CW_LAUNCH_WORDS_MAX];
    char *shell = NULL, *remote = remote_command(link->config.work);
    bool done = remote != NULL && cw_launch_words(link->config.work->launcher, host, remote, &shell, words);
    done = done && command_start(link, words);
    int reason = errno;
    free(remote);
    free(shell);
    errno = reason;
    return done;
}
