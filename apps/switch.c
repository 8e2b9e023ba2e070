/* `causeway switch`: an Ethernet switch between processes, and an emulated network on one machine. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "apps/apps.h"
#include "apps/switch_command.h"
#include "apps/switch_config.h"
#include "apps/switch_fabric.h"

/* Handlers can reach nothing else. */
static struct switch_signals signals;

static void signal_note(int number)
{
    if (number == SIGUSR1) {
        signals.report = 1;
    } else {
        signals.stop = 1;
    }
}

/* Notes the signals from now on, but lets none in until signals_release: DPDK's threads, which start in between, keep them
 * out for good, so that each one ends the sleep of the thread that is to hear of it. */
static void signals_hold(sigset_t *before)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    struct sigaction action = {.sa_handler = signal_note};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigaction(numbers[i], &action, NULL);
        sigaddset(&set, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &set, before);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigdelset(before, numbers[i]);
    }
    signal(SIGPIPE, SIG_IGN); /* whoever reads the counters may go; the switch stays */
}

static int pin(uint64_t core)
{
    if (core == SWITCH_CORE_ANY) {
        return APP_EXIT_SUCCESS;
    }
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET((size_t)core, &cores);
    if (sched_setaffinity(0, sizeof(cores), &cores) != 0) {
        char where[32];
        snprintf(where, sizeof(where), "--core %u", (unsigned)core);
        app_error("cannot run on that core", where, "`nproc` and `taskset -p $$` say which there are");
        return errno == EINVAL ? APP_EXIT_USAGE : APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

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
    signals_hold(&before);
    int code = pin(config->core);
    if (code == APP_EXIT_SUCCESS) {
        code = switch_fabric_open(fabric, config);
    }
    if (code == APP_EXIT_SUCCESS) {
        prctl(PR_SET_TIMERSLACK, 1000ul); /* sleeps end in time for frames that are due */
        ready_tell(fabric);
        sigprocmask(SIG_SETMASK, &before, NULL);
        switch_fabric_run(fabric, &signals);
        switch_fabric_close(fabric);
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
