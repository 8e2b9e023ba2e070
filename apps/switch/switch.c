/* `causeway switch`: an Ethernet switch between processes, and an emulated network on one machine. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/cli/folder.h"
#include "apps/cli/process.h"
#include "apps/switch/command.h"
#include "apps/switch/config.h"
#include "apps/switch/fabric.h"

static void ready_print(const struct switch_fabric *fabric)
{
    const struct switch_config *config = fabric->config;
    printf("ready: %u ports, socket %s", config->port_count, config->path != NULL ? config->path : "none");
    if (config->topology != NULL) {
        printf(", %u hosts in %u clusters, %u links, room for %.1f MB on the lines", fabric->host_count,
               fabric->cluster_count, cw_topology_link_count(config->topology), (double)fabric->pool.line_bytes / 1e6);
    }
    printf("\n");
    fflush(stdout);
}

/* For the handler. */
static struct app_signals *signals;
static pid_t owner;

/* Comes when the owner has ended, and at each SIGCONT. */
static void owner_look(int number)
{
    (void)number;
    if (getppid() != owner) {
        signals->stop = 1;
    }
}

/* From here on it ends with its owner; `folder`: of the socket. */
static int owner_watch(const struct switch_config *config, char folder[SWITCH_PATH_BYTES])
{
    struct sigaction action = {.sa_handler = owner_look};
    owner = (pid_t)config->owner;
    sigaction(SIGCONT, &action, NULL);
    if (getppid() != owner) {
        return APP_EXIT_FAILURE; /* no process is left to notify */
    }
    run_folder_of(config->path, folder, SWITCH_PATH_BYTES);
    return run_folder_make(folder);
}

static int forward(struct switch_fabric *fabric, const struct switch_config *config)
{
    char folder[SWITCH_PATH_BYTES];
    sigset_t before;
    signals = app_signals_hold(&before);
    int code = config->owner != 0 ? owner_watch(config, folder) : APP_EXIT_SUCCESS;
    bool made = config->owner != 0 && code == APP_EXIT_SUCCESS;
    code = code == APP_EXIT_SUCCESS ? app_pin(config->core) : code;
    if (code == APP_EXIT_SUCCESS) {
        code = switch_fabric_open(fabric, config);
    }
    if (code == APP_EXIT_SUCCESS) {
        prctl(PR_SET_TIMERSLACK, 1000ul); /* sleeps end in time for frames that are due */
        ready_print(fabric);
        if (made && freopen("/dev/null", "we", stdout) == NULL) {
            return APP_EXIT_INTERNAL; /* its owner reads no further, and must not be waited for */
        }
        sigprocmask(SIG_SETMASK, &before, NULL);
        switch_fabric_run(fabric, signals);
        code = switch_fabric_close(fabric);
    }
    if (made) {
        run_folder_remove(folder);
    }
    return code;
}

int switch_main(int argc, char **argv)
{
    struct switch_config *config = calloc(1, sizeof(*config));
    struct switch_fabric *fabric = malloc(sizeof(*fabric));
    int code = APP_EXIT_MACHINE;
    if (config == NULL || fabric == NULL) {
        app_error("out of memory", NULL, NULL);
    } else if (switch_config_parse(config, argc, argv, &code)) {
        code = config->command != NULL ? switch_command_send(config->path, config->command) : forward(fabric, config);
    }
    if (config != NULL) {
        switch_config_dispose(config);
    }
    free(fabric);
    free(config);
    return code;
}
