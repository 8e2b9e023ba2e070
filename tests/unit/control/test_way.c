/* Ways: texts of CAUSEWAY_NET; the rule, which gives all ranks of a host the same. */
#include <stdlib.h>
#include <string.h>

#include "control/net/net.h"
#include "control/net/way.h"
#include "dataplane/status.h"
#include "tests/test.h"

static void texts_are_read(void **state)
{
    static const struct {
        const char *text;
        enum cw_way way;
        const char *what;
    } rows[] = {
        {"udp", CW_WAY_UDP, ""},
        {"af_packet", CW_WAY_AF_PACKET, ""},
        {"af_xdp", CW_WAY_AF_XDP, ""},
        {"af_packet:eth0", CW_WAY_AF_PACKET, "eth0"},
        {"af_packet:", CW_WAY_AF_PACKET, ""},
        {"udp:10.1.0.0/16", CW_WAY_UDP, "10.1.0.0/16"},
        {"af_xdp:10.1.0.7", CW_WAY_AF_XDP, "10.1.0.7"},
        {"udp:eth0:1", CW_WAY_UDP, "eth0:1"},
        {"eth0:1", CW_WAY_NONE, "eth0:1"},
        {"eth0", CW_WAY_NONE, "eth0"},
        {"udp0", CW_WAY_NONE, "udp0"},
        {"af_packe", CW_WAY_NONE, "af_packe"},
        {"AF_PACKET", CW_WAY_NONE, "AF_PACKET"},
        {"", CW_WAY_NONE, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *what = NULL;
        assert_int_equal(cw_way_read(rows[i].text, &what), rows[i].way);
        assert_string_equal(what, rows[i].what);
    }
}

/* What a user is told of texts that make no sense. */
static void nonsense_is_named(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *said;
    } rows[] = {
        {"af_pakcet", CW_ERROR_NOT_FOUND, "ways are udp, af_packet and af_xdp"},
        {"af_pakcet:eth0", CW_ERROR_NOT_FOUND, "ways are udp, af_packet and af_xdp"},
        {"af_packet:nosuch0", CW_ERROR_NOT_FOUND, "has nothing like that"},
        {"udp:10.0.0.0/33", CW_ERROR_ARGUMENT, "a subnet has 0 to 32 bits"},
        {"udp:af_packet:nosuch0", CW_ERROR_ARGUMENT, "an interface (eth0)"},
        {"an_interface_of_this_length", CW_ERROR_ARGUMENT, "or a way: udp, af_packet"},
        {"af_packet:127.0.0.1", CW_OK, ""},
        {"af_xdp", CW_OK, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_net_offer offer;
        char error[400] = "";
        setenv("CAUSEWAY_NET", rows[i].text, 1);
        assert_int_equal(cw_net_offer_make(&offer, error, sizeof(error)), rows[i].status);
        assert_non_null(strstr(error, rows[i].said));
    }
    struct cw_net_offer offer;
    setenv("CAUSEWAY_NET", "af_packet:127.0.0.0/8", 1);
    assert_int_equal(cw_net_offer_make(&offer, NULL, 0), CW_OK);
    assert_int_equal(offer.way, CW_WAY_AF_PACKET);
    assert_int_equal(cw_ip_to_v4(&offer.addresses[0].ip), 0x7f000001u);
    unsetenv("CAUSEWAY_NET");
}

static void hosts_go_one_way(void **state)
{
    /* the networks of four ranks, what they name, the way of rank 0; NONE: an error that says so */
    static const struct {
        uint8_t networks[4], ways[4];
        enum cw_way way;
        const char *said;
    } rows[] = {
        {{1, 1, 2, 2}, {0, 0, 0, 0}, CW_WAY_UDP, ""},
        {{1, 1, 2, 2}, {0, CW_WAY_AF_PACKET, 0, 0}, CW_WAY_AF_PACKET, ""},
        {{1, 1, 2, 2}, {CW_WAY_UDP, 0, CW_WAY_AF_PACKET, CW_WAY_AF_PACKET}, CW_WAY_UDP, ""},
        {{1, 1, 2, 2},
         {CW_WAY_AF_PACKET, CW_WAY_UDP, 0, 0},
         CW_WAY_NONE,
         "rank 0 is to go by af_packet and rank 1 by udp"},
        {{1, 2, 2, 1}, {0, CW_WAY_UDP, CW_WAY_AF_PACKET, 0}, CW_WAY_UDP, ""},
        {{1, 2, 3, 4}, {CW_WAY_AF_XDP, CW_WAY_AF_XDP, 0, 0}, CW_WAY_AF_XDP, ""},
        {{1, 1, 3, 4}, {CW_WAY_AF_XDP, CW_WAY_AF_XDP, 0, 0}, CW_WAY_NONE, "one rank for an interface"},
        {{1, 2, 2, 2}, {CW_WAY_UDP, CW_WAY_AF_XDP, CW_WAY_AF_XDP, 0}, CW_WAY_UDP, ""}, /* the others' */
        {{1, 1, 2, 2}, {0, 250, 0, 0}, CW_WAY_UDP, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_net_offer offers[4];
        enum cw_way way = CW_WAY_NONE;
        char error[400] = "";
        memset(offers, 0, sizeof(offers));
        for (uint32_t rank = 0; rank < 4; rank++) {
            offers[rank].network[0] = rows[i].networks[rank];
            offers[rank].way = rows[i].ways[rank];
        }
        int status = cw_way_choose(offers, 4, 0, &way, error, sizeof(error));
        assert_int_equal(status, rows[i].way == CW_WAY_NONE ? CW_ERROR_ARGUMENT : CW_OK);
        assert_int_equal(way, rows[i].way);
        assert_non_null(strstr(error, rows[i].said));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read),
        cmocka_unit_test(nonsense_is_named),
        cmocka_unit_test(hosts_go_one_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
