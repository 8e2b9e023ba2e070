/* run_member WHAT [RANK]: a rank that ends otherwise than it should, or not at all, for run_usage.py.
 *
 * RANK does so, and the others wait for it in a fence:
 *
 *   crash     SIGSEGV
 *   leave     ends without a goodbye
 *   nonsense  says to the launcher what is no line of PMI
 *
 * All ranks:
 *
 *   wait            says that it is ready, and waits for its end
 *   daemon          the same, with a descendant that has left the group and does not listen
 *   daemon-and-end  ends well, with such a descendant */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/bootstrap/bootstrap.h"

static void daemon_start(void)
{
    if (fork() == 0) {
        setsid();
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        for (;;) {
            pause();
        }
    }
}

static _Noreturn void wait_for_the_end(void)
{
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        pause();
    }
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    struct cw_bootstrap *bootstrap;
    char error[256];
    if (cw_bootstrap_open(&bootstrap, error, sizeof(error)) != 0) {
        fprintf(stderr, "%s\n", error);
        return 99;
    }
    if (strncmp(what, "daemon", strlen("daemon")) == 0) {
        daemon_start();
    }
    if (strcmp(what, "wait") == 0 || strcmp(what, "daemon") == 0) {
        wait_for_the_end();
    }
    if (count > 2 && cw_bootstrap_info(bootstrap).rank == strtoul(arguments[2], NULL, 10)) {
        if (strcmp(what, "leave") == 0) {
            cw_bootstrap_drop(bootstrap);
            return 0;
        }
        if (strcmp(what, "crash") == 0) {
            signal(SIGSEGV, SIG_DFL); /* the sanitizer has its own way */
            raise(SIGSEGV);
        }
        if (strcmp(what, "nonsense") == 0) {
            dprintf((int)strtol(getenv("PMI_FD"), NULL, 10), "GET / HTTP/1.1\r\n");
        }
    }
    int status = cw_bootstrap_fence(bootstrap);
    cw_bootstrap_close(bootstrap);
    return status == 0 ? 0 : 77;
}
