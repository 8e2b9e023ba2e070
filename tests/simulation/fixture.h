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
    assert_true_msg(sim_hosts_restart(&hosts, node, error, sizeof(error)) == CW_OK, "%s", error);
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

/* What a host knows of a peer. */
static inline struct cw_peer_info peer_info(uint32_t node, uint32_t peer)
{
    struct cw_peer_info info;
    assert_int_equal(cw_peer_query(hosts.list[node].endpoint, peer, &info), CW_OK);
    return info;
}

/* The work of a host runs, and so much time passes. */
static inline void host_run(uint32_t node, uint64_t duration_ns)
{
    sim_host_wake(&hosts.list[node]);
    sim_hosts_run(&hosts, duration_ns);
}

/* So many operations of a host have ended, and all of them well. */
#define assert_completed(node, count) \
    (assert_int_equal(hosts.list[node].completed, (count)), assert_int_equal(hosts.list[node].failed, 0))

/* A message, and a get, of one host to another one. CW_OK, or as cw_message_send and cw_get. */
static inline int message_post(uint32_t from, uint32_t to, uint64_t bytes)
{
    struct sim_host *host = &hosts.list[from];
    const struct cw_message message = {.peer = sim_hosts_peer(&hosts, from, to),
                                       .source = {.contiguous = {.data = host->memory, .bytes = bytes}}};
    sim_host_wake(host);
    return cw_message_send(host->endpoint, &message);
}

static inline int get_post(uint32_t from, uint32_t to, uint64_t bytes, enum cw_element element)
{
    struct sim_host *host = &hosts.list[from];
    const struct cw_get get = {.peer = sim_hosts_peer(&hosts, from, to),
                               .region = hosts.list[to].token,
                               .bytes = bytes,
                               .local_region = host->token,
                               .element = element};
    sim_host_wake(host);
    return cw_get(host->endpoint, &get);
}

/* The given number of both; all must come through. */
static inline void messages_and_gets(uint32_t from, uint32_t to, uint32_t count)
{
    uint64_t messages = hosts.list[to].arrived_messages, got = hosts.list[from].got;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(message_post(from, to, 100), CW_OK);
        assert_int_equal(get_post(from, to, 3000, CW_ELEMENT_BYTES), CW_OK);
    }
    sim_hosts_run(&hosts, 20 * SIMULATION_MS);
    assert_int_equal(hosts.list[to].arrived_messages - messages, count);
    assert_int_equal(hosts.list[from].got - got, count);
}

/* As TESTS_RUN (tests/test.h). */
#define HOSTS_TESTS_RUN(...) TESTS_RUN_EACH(NULL, hosts_end, __VA_ARGS__)
