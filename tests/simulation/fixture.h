/* Fixture: the simulated hosts of the test that runs. A test makes them once or more often; each time, and after the
 * test, those before end. */
#pragma once

#include "tests/simulation/simulation.h"

static struct sim_hosts hosts;

/* Nothing that a test had on its stack is used while they end. */
static inline int hosts_end(void **state)
{
    for (uint32_t node = 0; hosts.list != NULL && node < hosts.count; node++) {
        hosts.list[node].work = NULL;
    }
    if (hosts.simulator != NULL) {
        cw_simulator_tap_set(hosts.simulator, NULL, NULL);
    }
    sim_hosts_destroy(&hosts);
    return 0;
}

static inline void hosts_make(const struct sim_hosts_config *config)
{
    (void)hosts_end(NULL);
    simulation_hosts(&hosts, config);
}

/* Another process starts in the place of one that has ended. */
static inline void host_start(uint32_t node)
{
    char error[200] = "";
    if (sim_hosts_restart(&hosts, node, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }
}

/* The process of a host ends without a goodbye, and another one starts in its place. */
static inline void host_restart(uint32_t node)
{
    sim_hosts_crash(&hosts, node);
    host_start(node);
}

/* A counter of the endpoint of one of them. */
static inline uint64_t counted(uint32_t node, enum cw_counter counter)
{
    return simulation_counted(&hosts, node, counter);
}

/* As TESTS_RUN (tests/test.h). */
#define HOSTS_TESTS_RUN(...) TESTS_RUN_EACH(NULL, hosts_end, __VA_ARGS__)
