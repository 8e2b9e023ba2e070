/* The example of dataplane/port/offload/README.md, as the page has it, on a device that is described by hand. */
#include "dataplane/port/offload/hooks.h"
#include "tests/test.h"

enum { CW_OFFLOAD_VLAN = CW_OFFLOAD_SPLIT }; /* in the place of the number that the page has one add */

#include "offload_example.h" /* which the build takes from the page */

static void it_requests_what_the_driver_supports(void **state)
{
    static struct ethdev_port port;
    char why[CW_OFFLOAD_WHY_BYTES] = "";
    struct rte_eth_dev_info info = {.rx_offload_capa = RTE_ETH_RX_OFFLOAD_UDP_CKSUM};
    struct rte_eth_conf conf = {.rxmode.mtu = 1500};
    assert_false(ethdev_offload_vlan.has(&port, &info, why));
    assert_string_equal(why, "the driver leaves VLAN tags where they are");
    info.rx_offload_capa |= RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
    assert_true(ethdev_offload_vlan.has(&port, &info, why));
    ethdev_offload_vlan.configure(&port, &info, &conf);
    assert_int_equal(conf.rxmode.offloads, RTE_ETH_RX_OFFLOAD_VLAN_STRIP);
}

static void it_counts_what_the_nic_has_done(void **state)
{
    static struct ethdev_port port;
    static const uint8_t plain[64] = {[12] = 0x08}, tagged[64] = {[12] = 0x81};
    struct rte_mbuf stripped = {.ol_flags = RTE_MBUF_F_RX_VLAN_STRIPPED}, left = {.ol_flags = 0};
    struct cw_received packets[] = {
        {.data = plain, .length = 64, .handle = &stripped},
        {.data = plain, .length = 64, .handle = &left},
        {.data = tagged, .length = 64, .handle = &stripped}, /* a lie */
    };
    ethdev_offload_vlan.receive(&port, packets, 3);
    assert_int_equal(port.offloads.done[CW_OFFLOAD_VLAN], 1);
    assert_int_equal(port.offloads.undone[CW_OFFLOAD_VLAN], 1);
}

int main(void)
{
    return TESTS_RUN(it_requests_what_the_driver_supports, it_counts_what_the_nic_has_done);
}
