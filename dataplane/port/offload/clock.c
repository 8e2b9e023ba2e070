/* The NIC's clock against the owner's, by readings of both now and then. */
#define ALLOW_EXPERIMENTAL_API /* rte_eth_read_clock: in DPDK since 19.08 */

#include "dataplane/port/ethdev_private.h"

#include "dataplane/base/clock.h"

enum { READ_EVERY_NS = 100000000, SPAN_MIN_NS = 10000000 };

bool offload_clock_read(struct ethdev_port *port)
{
    struct offload_clock *clock = &port->offloads.clock;
    uint64_t now_ns = cw_clock_ns(), device;
    bool is_first = clock->host_ns == 0;
    uint64_t wait_ns = clock->tick_ns > 0 ? READ_EVERY_NS : SPAN_MIN_NS;
    if (!is_first && now_ns - clock->host_ns < wait_ns) {
        return true;
    }
    if (rte_eth_read_clock(port->id, &device) != 0) {
        return false;
    }
    if (!is_first && device > clock->device) {
        clock->tick_ns = (double)(now_ns - clock->host_ns) / (double)(device - clock->device);
    } else if (!is_first) {
        clock->tick_ns = 0; /* it has jumped: its rate is measured again */
    }
    clock->device = device;
    clock->host_ns = now_ns;
    return true;
}

uint64_t offload_clock_host_ns(const struct offload_clock *clock, uint64_t device)
{
    if (clock->tick_ns <= 0) {
        return 0;
    }
    double since_ns = (double)(int64_t)(device - clock->device) * clock->tick_ns;
    double host_ns = (double)clock->host_ns + since_ns;
    return host_ns > 0 ? clock->host_ns + (uint64_t)(int64_t)since_ns : 0;
}

uint64_t offload_clock_device(const struct offload_clock *clock, uint64_t host_ns)
{
    return clock->tick_ns <= 0
               ? 0
               : clock->device + (uint64_t)(int64_t)((double)(int64_t)(host_ns - clock->host_ns) / clock->tick_ns);
}
