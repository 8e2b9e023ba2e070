/* The host's dataplane for one job (CAUSEWAY_NODE): `causeway node`, which is started before the ranks of this host and
 * ends after them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/launch/local.h"
#include "control/lease/lease.h"
#include "control/settings/setting.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"

enum { LOOK_MS = 10, STILL_MS = 1000, TEXT_BYTES = 512, PLACE_BYTES = 64 };

#define FOLDER "causeway-node-"

#define READY_NS UINT64_C(20000000000) /* EAL takes its time on a large machine */
#define END_MS   2000

static void socket_path(const struct launch_node *node, char path[LAUNCH_NODE_PATH_BYTES])
{
    snprintf(path, LAUNCH_NODE_PATH_BYTES, "%s/node", node->folder);
}

/* In the child: becomes the node; its errors go to our stderr. */
static _Noreturn void node_exec(const struct launch_local *local, const char *nic, pid_t parent)
{
    char path[LAUNCH_NODE_PATH_BYTES];
    socket_path(&local->node, path);
    const char *const arguments[] = {"causeway", "node", "--transport", nic, "--socket", path, NULL};
    setpgid(0, 0); /* Ctrl-C is for the launcher, which ends the rest in order */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (getppid() != parent || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0) {
        _exit(CW_LAUNCH_EXIT_MACHINE);
    }
    sigprocmask(SIG_SETMASK, local->config.mask, NULL);
    execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
    _exit(CW_LAUNCH_EXIT_MACHINE);
}

static void ended_fail(struct launch_local *local)
{
    siginfo_t info = {.si_pid = 0};
    (void)waitid(P_PID, (id_t)local->node.process, &info, WEXITED | WNOHANG | WNOWAIT);
    launch_local_fail(local, CW_LAUNCH_EXIT_MACHINE, "the host's dataplane (causeway node --transport %.80s) %s %d",
                      cw_setting(CW_SETTING_NODE),
                      info.si_code == CLD_EXITED ? "has ended with exit code" : "was ended by signal", info.si_status);
}

/* Until it answers. False: it has ended, is late, or the start is interrupted. */
static bool node_await(struct launch_local *local)
{
    char path[LAUNCH_NODE_PATH_BYTES], error[TEXT_BYTES] = "";
    uint64_t until_ns = cw_clock_ns() + READY_NS, still_ns = cw_clock_ns();
    socket_path(&local->node, path);
    for (;;) {
        struct cw_lease_nic nic;
        struct pollfd wait[2] = {{.fd = local->node.handle, .events = POLLIN},
                                 {.fd = local->config.interrupt, .events = POLLIN}};
        if (access(path, F_OK) == 0 && cw_lease_hello(path, &nic, error, sizeof(error)) == CW_OK) {
            return true;
        }
        (void)poll(wait, 2, LOOK_MS);
        uint64_t now_ns = cw_clock_ns();
        if (wait[0].revents != 0) {
            ended_fail(local);
            return false;
        }
        if (wait[1].revents != 0 || now_ns >= local->config.deadline_ns) {
            return false; /* the loop learns why */
        }
        if (now_ns >= until_ns) {
            launch_local_fail(
                local, CW_LAUNCH_EXIT_MACHINE,
                "the host's dataplane does not answer within %d s (try it alone: causeway node --transport "
                "%.80s)",
                (int)(READY_NS / 1000000000), cw_setting(CW_SETTING_NODE));
            return false;
        }
        if (local->config.still != NULL && now_ns >= still_ns) {
            if (!local->config.still(local->config.context)) {
                return false;
            }
            still_ns = now_ns + STILL_MS * UINT64_C(1000000);
        }
    }
}

/* Takes away what a node has left. */
static void folder_remove(const char *folder)
{
    char path[LAUNCH_NODE_PATH_BYTES + 16];
    snprintf(path, sizeof(path), "%s/node", folder);
    (void)unlink(path);
    snprintf(path, sizeof(path), "%s/node.leases", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}

/* Removes folders of launchers that were killed: their lock is free. */
static void folders_sweep(const char *place)
{
    DIR *all = opendir(place);
    for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        char folder[LAUNCH_NODE_PATH_BYTES];
        int length = snprintf(folder, sizeof(folder), "%s/%s", place, entry->d_name);
        if (strncmp(entry->d_name, FOLDER, strlen(FOLDER)) != 0 || length >= (int)sizeof(folder)) {
            continue;
        }
        int lock = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
            folder_remove(folder);
        }
        if (lock >= 0) {
            close(lock);
        }
    }
    if (all != NULL) {
        closedir(all);
    }
}

/* A folder for the socket, which is this process's for as long as it has the lock. */
static bool folder_make(struct launch_node *node, const char *place)
{
    if (place == NULL || place[0] != '/' || strlen(place) >= PLACE_BYTES) {
        return false;
    }
    folders_sweep(place);
    snprintf(node->folder, sizeof(node->folder), "%s/" FOLDER "XXXXXX", place);
    if (mkdtemp(node->folder) == NULL) {
        node->folder[0] = 0;
        return false;
    }
    node->lock = open(node->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (node->lock >= 0) {
        (void)flock(node->lock, LOCK_EX | LOCK_NB);
    }
    return true;
}

bool launch_local_node_start(struct launch_local *local)
{
    struct launch_node *node = &local->node;
    const char *nic = cw_setting(CW_SETTING_NODE);
    char variable[LAUNCH_NODE_PATH_BYTES + 8];
    if (nic == NULL || nic[0] == 0) {
        return true;
    }
    if (!folder_make(node, cw_environment("XDG_RUNTIME_DIR")) && !folder_make(node, "/tmp")) {
        launch_local_fail(local, CW_LAUNCH_EXIT_MACHINE, "no folder for the host's dataplane: %s", strerror(errno));
        return false;
    }
    pid_t parent = getpid();
    node->process = fork();
    if (node->process == 0) {
        node_exec(local, nic, parent);
    }
    node->handle = node->process > 0 ? pidfd_open(node->process, 0) : -1;
    if (node->handle < 0) {
        launch_local_fail(local, CW_LAUNCH_EXIT_MACHINE, "the host's dataplane cannot be started: %s", strerror(errno));
        return false;
    }
    if (!node_await(local)) {
        return false;
    }
    launch_watch(local->config.set, node->handle, EPOLLIN, LAUNCH_NODE, 0);
    snprintf(variable, sizeof(variable), "node:%s/node", node->folder);
    (void)cw_setting_set(CW_SETTING_TRANSPORT, variable);
    return true;
}

void launch_local_node_ended(struct launch_local *local)
{
    launch_unwatch(local->config.set, local->node.handle);
    ended_fail(local);
}

void launch_local_node_end(struct launch_local *local)
{
    struct launch_node *node = &local->node;
    if (node->handle >= 0) {
        struct pollfd wait = {.fd = node->handle, .events = POLLIN};
        kill(node->process, SIGTERM);
        (void)poll(&wait, 1, END_MS);
        launch_unwatch(local->config.set, node->handle);
        close(node->handle);
        node->handle = -1;
    }
    if (node->folder[0] != 0) {
        folder_remove(node->folder);
        node->folder[0] = 0;
        if (node->lock >= 0) {
            close(node->lock);
        }
    }
}
