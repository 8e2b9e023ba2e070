/* `causeway switch`: an Ethernet switch between processes, and an emulated network on one machine. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "apps/app_process.h"
#include "apps/apps.h"
#include "apps/switch_command.h"
#include "apps/switch_config.h"
#include "apps/switch_fabric.h"

static void ready_tell(const struct switch_fabric *fabric)
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

static int forward(struct switch_fabric *fabric, const struct switch_config *config)
{
    sigset_t before;
    struct app_signals *signals = app_signals_hold(&before);
    int code = app_pin(config->core);
    if (code == APP_EXIT_SUCCESS) {
        code = switch_fabric_open(fabric, config);
    }
    if (code == APP_EXIT_SUCCESS) {
        prctl(PR_SET_TIMERSLACK, 1000ul); /* sleeps end in time for frames that are due */
        ready_tell(fabric);
        sigprocmask(SIG_SETMASK, &before, NULL);
        switch_fabric_run(fabric, signals);
        code = switch_fabric_close(fabric);
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
        code = config->tell != NULL ? switch_command_tell(config->path, config->tell) : forward(fabric, config);
    }
    if (config != NULL) {
        switch_config_dispose(config);
    }
    free(fabric);
    free(config);
    return code;
}
