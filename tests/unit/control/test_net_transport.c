/* Transports: texts of CAUSEWAY_TRANSPORT; the rule, which gives all ranks of a host the same. */
#include "control/net/net.h"
#include "control/net/transport.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum {
    NONE = CW_NET_TRANSPORT_NONE,
    UDP = CW_NET_TRANSPORT_UDP,
    NODE = CW_NET_TRANSPORT_NODE,
    PACKET = CW_NET_TRANSPORT_AF_PACKET
};

static void texts_are_read(void **state)
{
    static const struct {
        const char *text;
        int transport;
        const char *what;
    } rows[] = {
        {"udp", UDP, ""},
        {"af_packet", PACKET, ""},
        {"af_xdp", NONE, "af_xdp"},
        {"af_packet:eth0", PACKET, "eth0"},
        {"af_packet:", PACKET, ""},
        {"udp:10.1.0.0/16", UDP, "10.1.0.0/16"},
        {"af_packet:10.1.0.7", PACKET, "10.1.0.7"},
        {"udp:eth0:1", UDP, "eth0:1"},
        {"eth0:1", NONE, "eth0:1"},
        {"eth0", NONE, "eth0"},
        {"udp0", NONE, "udp0"},
        {"af_packe", NONE, "af_packe"},
        {"AF_PACKET", NONE, "AF_PACKET"},
        {"", NONE, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *what = NULL;
        assert_int_equal(cw_net_transport_read(rows[i].text, &what), rows[i].transport);
        assert_string_equal(what, rows[i].what);
    }
}

/* Error messages for invalid texts. */
static void nonsense_is_named(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *said;
    } rows[] = {
        {"af_pakcet", CW_ERROR_NOT_FOUND, "transports are udp, alone"},
        {"af_pakcet:eth0", CW_ERROR_NOT_FOUND, "transports are udp, alone"},
        {"af_packet:nosuch0", CW_ERROR_NOT_FOUND, "has nothing like that"},
        {"udp:10.0.0.0/33", CW_ERROR_ARGUMENT, "a subnet has 0 to 32 bits"},
        {"udp:af_packet:nosuch0", CW_ERROR_ARGUMENT, "an interface (eth0)"},
        {"an_interface_of_this_length", CW_ERROR_ARGUMENT, "or a transport: udp, alone"},
        {"af_packet:127.0.0.1", CW_OK, ""},
        {"af_xdp", CW_ERROR_NOT_FOUND, "transports are udp, alone"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_net_offer offer;
        char error[400] = "";
        setenv("CAUSEWAY_TRANSPORT", rows[i].text, 1);
        assert_int_equal(cw_net_offer_make(&offer, error, sizeof(error)), rows[i].status);
        assert_non_null(strstr(error, rows[i].said));
    }
    struct cw_net_offer offer;
    setenv("CAUSEWAY_TRANSPORT", "af_packet:127.0.0.0/8", 1);
    assert_int_equal(cw_net_offer_make(&offer, NULL, 0), CW_OK);
    assert_int_equal(offer.transport, PACKET);
    assert_int_equal(cw_ip_to_v4(&offer.addresses[0].ip), 0x7f000001u);
    unsetenv("CAUSEWAY_TRANSPORT");
}

static void ranks_of_a_host_use_one_transport(void **state)
{
    /* the networks of four ranks, their settings, the transport of rank 0; NONE: an error */
    static const struct {
        uint8_t networks[4], named[4];
        int transport;
        const char *said;
    } rows[] = {
        {{1, 1, 2, 2}, {0, 0, 0, 0}, UDP, ""},
        {{1, 1, 2, 2}, {0, NODE, 0, 0}, NODE, ""},
        {{1, 1, 2, 2}, {0, PACKET, 0, 0}, NONE, "causeway node"},
        {{1, 1, 2, 2}, {UDP, 0, NODE, NODE}, UDP, ""},
        {{1, 1, 2, 2}, {NODE, UDP, 0, 0}, NONE, "rank 0 is to use node and rank 1 udp"},
        {{1, 2, 2, 1}, {0, UDP, NODE, 0}, UDP, ""},
        {{1, 2, 2, 2}, {UDP, NODE, NODE, 0}, UDP, ""}, /* the others' */
        {{1, 1, 2, 2}, {0, 250, 0, 0}, UDP, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_net_offer offers[4];
        enum cw_net_transport transport = CW_NET_TRANSPORT_NONE;
        char error[400] = "";
        memset(offers, 0, sizeof(offers));
        for (uint32_t rank = 0; rank < 4; rank++) {
            offers[rank].network[0] = rows[i].networks[rank];
            offers[rank].transport = rows[i].named[rank];
        }
        int status = cw_net_transport_choose(offers, 4, 0, &transport, error, sizeof(error));
        assert_int_equal(status, rows[i].transport == NONE ? CW_ERROR_ARGUMENT : CW_OK);
        assert_int_equal(transport, rows[i].transport);
        assert_non_null(strstr(error, rows[i].said));
    }
}

int main(void)
{
    return TESTS_RUN(texts_are_read, nonsense_is_named, ranks_of_a_host_use_one_transport);
}
