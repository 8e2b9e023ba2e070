/* Hosts of the simulator: endpoints on its nodes, by the public header alone. */
#include "tests/test.h"

#include "dataplane/fabric/simulator.h"

enum { HOSTS = 3 };
static const uint64_t US = 1000, MS = 1000000;

struct host {
    uint32_t number;
    uint64_t turns, last_ns; /* of turns of the application */
    uint64_t every_ns;       /* between turns that it asks for; 0: none */
    uint64_t messages, up, down;
    int down_status;
    bool ends; /* its own process, in its next turn */
};

static struct host hosts[HOSTS];
static struct cw_simulator *simulator;

static uint64_t turn(void *context, uint64_t now_ns)
{
    struct host *host = context;
    struct cw_endpoint *endpoint = cw_simulator_endpoint(simulator, host->number);
    struct cw_event event;
    host->turns++;
    host->last_ns = now_ns;
    while (cw_endpoint_events(endpoint, &event, 1) == 1) {
        host->messages += event.kind == CW_EVENT_MESSAGE;
        host->up += event.kind == CW_EVENT_PEER_UP;
        host->down += event.kind == CW_EVENT_PEER_DOWN;
        host->down_status = event.kind == CW_EVENT_PEER_DOWN ? event.status : host->down_status;
        if (event.kind == CW_EVENT_MESSAGE) {
            assert_int_equal(cw_message_release(endpoint, event.slot), CW_OK);
        }
    }
    if (host->ends) {
        host->ends = false;
        cw_simulator_host_close(simulator, host->number);
    }
    return host->every_ns != 0 ? now_ns + host->every_ns : CW_SIMULATOR_NEVER;
}

static int start(uint32_t number)
{
    struct cw_endpoint_config config;
    char error[CW_ERROR_TEXT_BYTES] = "";
    cw_simulator_endpoint_config_init(&config, HOSTS);
    config.failure_timeout_ns = 100 * MS;
    if (number < HOSTS) {
        hosts[number] = (struct host){.number = number};
    }
    int status =
        cw_simulator_host_start(simulator, number, &config, turn, &hosts[number % HOSTS], error, sizeof(error));
    assert_true((status == CW_OK) == (error[0] == '\0'));
    return status;
}

static int set_up(void **state)
{
    struct cw_simulator_config config;
    struct cw_simulator_node_config node;
    cw_simulator_config_init(&config);
    cw_simulator_node_config_init(&node);
    assert_int_equal(cw_simulator_create(&config, &simulator), CW_OK);
    assert_int_equal(cw_simulator_star(simulator, HOSTS, &node), 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(start(i), CW_OK);
    }
    return 0;
}

static int tear_down(void **state)
{
    cw_simulator_destroy(simulator);
    return 0;
}

/* From outside of the host's turns. */
static void message_send(uint32_t from, uint32_t to)
{
    struct cw_message message = {.source = {.contiguous = {.data = "x", .bytes = 1}}};
    assert_int_equal(cw_simulator_peer(simulator, from, to, &message.peer), CW_OK);
    assert_int_equal(cw_message_send(cw_simulator_endpoint(simulator, from), &message), CW_OK);
    cw_simulator_wake(simulator, from);
}

static void set_loss(double loss)
{
    struct cw_simulator_node_config node;
    cw_simulator_node_config_init(&node);
    node.up.loss = loss;
    for (uint32_t i = 0; i < HOSTS; i++) {
        cw_link_configure(cw_simulator_link_up(simulator, i), &node.up);
    }
}

static void a_run_ends_when_nothing_is_left(void **state)
{
    message_send(0, 1);
    assert_true(cw_simulator_run(simulator, 1000 * MS));
    uint64_t end_ns = cw_simulator_now(simulator);
    assert_true(end_ns > 20 * US && end_ns < 1000 * MS);
    assert_int_equal(hosts[1].messages, 1);
    assert_false(cw_simulator_step(simulator));
    hosts[2].every_ns = 7 * MS; /* it never rests */
    cw_simulator_wake(simulator, 2);
    assert_false(cw_simulator_run(simulator, end_ns + 70 * MS + US));
    assert_int_equal(cw_simulator_now(simulator), end_ns + 70 * MS + US);
    assert_int_equal(hosts[2].last_ns, end_ns + 70 * MS);
}

static void hosts_start_and_end(void **state)
{
    uint32_t peer;
    assert_int_equal(start(HOSTS), CW_ERROR_ARGUMENT);
    assert_int_equal(start(1), CW_ERROR_BUSY);
    message_send(0, 1);
    assert_true(cw_simulator_run(simulator, 1000 * MS));
    cw_simulator_host_close(simulator, 1); /* with a goodbye */
    assert_null(cw_simulator_endpoint(simulator, 1));
    assert_int_equal(cw_simulator_peer(simulator, 0, 1, &peer), CW_ERROR_CLOSED);
    assert_true(cw_simulator_run(simulator, 2000 * MS));
    assert_int_equal(hosts[0].down, 1);
    assert_int_equal(hosts[0].down_status, CW_ERROR_CLOSED);
    assert_int_equal(start(1), CW_OK); /* another process there */
    message_send(0, 1);
    assert_true(cw_simulator_run(simulator, 3000 * MS));
    assert_int_equal(hosts[1].messages, 1);
    cw_simulator_crash(simulator, 1); /* without: the next operation with it finds out */
    assert_true(cw_simulator_run(simulator, 4000 * MS));
    assert_int_equal(hosts[0].down, 1);
    uint32_t there;
    struct cw_message message = {.source = {.contiguous = {.data = "x", .bytes = 1}}};
    assert_int_equal(cw_simulator_peer(simulator, 0, 2, &there), CW_OK);
    assert_int_equal(cw_message_send(cw_simulator_endpoint(simulator, 0), &message), CW_OK); /* peer 0: host 1 */
    cw_simulator_wake(simulator, 0);
    assert_true(cw_simulator_run(simulator, 5000 * MS));
    assert_int_equal(hosts[0].down_status, CW_ERROR_PEER_FAILED);
    hosts[2].ends = true; /* in its own turn */
    cw_simulator_wake(simulator, 2);
    assert_true(cw_simulator_run(simulator, 6000 * MS));
    assert_null(cw_simulator_endpoint(simulator, 2));
}

static void periods_begin_and_end_at_their_times(void **state)
{
    assert_int_equal(cw_simulator_partition_at(simulator, HOSTS, 0, MS), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_simulator_stop_at(simulator, 0, MS, MS - 1), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_simulator_partition_at(simulator, 1, 10 * MS, 20 * MS), CW_OK);
    assert_int_equal(cw_simulator_stop_at(simulator, 2, 10 * MS, 20 * MS), CW_OK);
    for (uint32_t i = 1; i < HOSTS; i++) {
        hosts[i].every_ns = MS;
        cw_simulator_wake(simulator, i);
    }
    cw_simulator_run_until(simulator, 10 * MS + US);
    uint64_t turns = hosts[2].turns;
    message_send(0, 1);
    message_send(0, 2);
    cw_simulator_run_until(simulator, 20 * MS - US);
    assert_int_equal(hosts[1].messages + hosts[2].messages, 0);
    assert_true(hosts[1].last_ns > 19 * MS - US); /* it is cut off and runs; the other one is stopped */
    assert_int_equal(hosts[2].turns, turns);
    cw_simulator_run_until(simulator, 90 * MS);
    assert_int_equal(hosts[1].messages, 1);
    assert_int_equal(hosts[2].messages, 1);
}

static void scripts_are_bounded(void **state)
{
    struct cw_simulator_config config;
    cw_simulator_config_init(&config);
    for (uint32_t i = 0; i < config.script_count_max / 2; i++) {
        assert_int_equal(cw_simulator_stop_at(simulator, 1, 2ull * i, 2ull * i + 1), CW_OK);
    }
    assert_int_equal(cw_simulator_stop_at(simulator, 1, 0, 1), CW_ERROR_LIMIT);
}

static void healed_links_lose_nothing(void **state)
{
    set_loss(1);
    cw_simulator_partition(simulator, 2, true);
    message_send(0, 1);
    message_send(0, 2);
    cw_simulator_run_until(simulator, 30 * MS);
    assert_int_equal(hosts[1].messages + hosts[2].messages, 0);
    cw_simulator_heal(simulator);
    assert_true(cw_simulator_run(simulator, 1000 * MS));
    assert_int_equal(hosts[1].messages, 1);
    assert_int_equal(hosts[2].messages, 1);
}

int main(void)
{
    return TESTS_RUN_EACH(set_up, tear_down, a_run_ends_when_nothing_is_left, hosts_start_and_end,
                          periods_begin_and_end_at_their_times, scripts_are_bounded, healed_links_lose_nothing);
}
