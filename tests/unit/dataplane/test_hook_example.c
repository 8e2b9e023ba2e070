/* The hook of dataplane/port/offload/README.md, as the page has it, on a device that can do what it wants; and one that
 * refuses. */
#include <errno.h>

#include <rte_ethdev.h>

#include "dataplane/port/ethdev.h"
#include "dataplane/status.h"
#include "tests/test.h"

#include "hook_example.h" /* which the build takes from the page */

static void it_has_the_device_before_it_starts(void **state)
{
    char error[CW_PORT_TEXT_BYTES] = "";
    struct cw_port *port = NULL;
    uint32_t receive_queues = 0;
    int status = port_open("net_ring0", &receive_queues, &port, error, sizeof(error));
    assert_true_msg(status == CW_OK, "%d: %s", status, error);
    assert_int_equal(receive_queues, 1);
    assert_int_equal(rte_eth_promiscuous_get(cw_port_ethdev_id(port)), 1);
    cw_port_close(port);
}

/* Whether the queues are there, and the device does not run yet. */
static int look(uint16_t device_id, void *context)
{
    struct rte_eth_rxq_info receive;
    struct rte_eth_txq_info transmit;
    *(bool *)context =
        rte_eth_rx_queue_info_get(device_id, 0, &receive) != -EINVAL && /* the error for an invalid queue */
        rte_eth_tx_queue_info_get(device_id, 0, &transmit) != -EINVAL &&
        rte_eth_dev_rx_queue_start(device_id, 0) == -EINVAL; /* ... a device that does not run */
    return 0;
}

static void it_runs_between_configuration_and_start(void **state)
{
    char error[CW_PORT_TEXT_BYTES] = "";
    struct cw_port *port = NULL;
    bool is_between = false;
    struct cw_port_ethdev_config config;
    cw_port_ethdev_config_init(&config);
    config.device = "net_ring0";
    config.before_start = look;
    config.before_start_context = &is_between;
    assert_int_equal(cw_port_ethdev_open(&config, &port, error, sizeof(error)), CW_OK);
    assert_true(is_between);
    assert_int_not_equal(rte_eth_dev_rx_queue_start(cw_port_ethdev_id(port), 0), -EINVAL);
    cw_port_close(port);
}

static int reject(uint16_t device_id, void *context)
{
    ++*(uint32_t *)context;
    return -ENOTSUP;
}

static void what_it_rejects_is_not_opened(void **state)
{
    char error[CW_PORT_TEXT_BYTES] = "";
    struct cw_port *port = NULL;
    uint32_t asked = 0;
    struct cw_port_ethdev_config config;
    cw_port_ethdev_config_init(&config);
    config.device = "net_null0";
    config.before_start = reject;
    config.before_start_context = &asked;
    assert_int_equal(cw_port_ethdev_open(&config, &port, error, sizeof(error)), CW_ERROR_UNSUPPORTED);
    assert_null(port);
    assert_int_equal(asked, 1);
    assert_non_null(strstr(error, "its caller refuses it: Operation not supported"));
    config.before_start = NULL; /* and is there for the next one */
    assert_int_equal(cw_port_ethdev_open(&config, &port, error, sizeof(error)), CW_OK);
    cw_port_close(port);
}

int main(void)
{
    return TESTS_RUN(it_has_the_device_before_it_starts, it_runs_between_configuration_and_start,
                     what_it_rejects_is_not_opened);
}
