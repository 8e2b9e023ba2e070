#include "control/launch/local.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* False: there is none but `spared`, or no way to know. */
static bool children_kill(pid_t spared)
{
    char path[64];
    int child;
    bool found = false;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    FILE *list = fopen(path, "re");
    if (list == NULL) {
        return false;
    }
    while (fscanf(list, "%d", &child) == 1) {
        found = (child != spared && kill(child, SIGKILL) == 0) || found;
    }
    fclose(list);
    return found;
}

void launch_sweep(pid_t spared)
{
    /* descendants of a killed process are adopted: repeat until there are none */
    for (;;) {
        pid_t reaped = waitpid(-1, NULL, WNOHANG);
        if (reaped < 0 && errno != EINTR) {
            return;
        }
        if (reaped == 0 && (!children_kill(spared) || waitpid(-1, NULL, 0) < 0)) {
            return;
        }
    }
}
