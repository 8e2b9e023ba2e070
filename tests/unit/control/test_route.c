/* Routes: answers of the kernel, truncated at any place; and that this host has one to itself. */
#include <arpa/inet.h>

#include "control/net/route.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"
#include "tests/unit/control/netlink_answer.h"

static void answer_begin(struct answer *answer, uint16_t type, uint8_t kind)
{
    const struct rtmsg message = {.rtm_family = AF_INET, .rtm_type = kind};
    *answer = (struct answer){.length = 0};
    message_add(answer, type, &message, sizeof(message));
}

/* lo, from 10.0.0.1 through 10.0.0.254, with a known path MTU of 1,400 bytes */
static void answer_make(struct answer *answer)
{
    const uint32_t interface = 1, gateway = htonl(0x0a0000feu), source = htonl(0x0a000001u), mtu = 1400;
    struct {
        struct rtattr attribute;
        uint32_t value;
    } metric = {{.rta_len = 8, .rta_type = RTAX_MTU}, mtu};
    answer_begin(answer, RTM_NEWROUTE, RTN_UNICAST);
    attribute_add(answer, RTA_OIF, &interface, 4);
    attribute_add(answer, RTA_GATEWAY, &gateway, 4);
    attribute_add(answer, RTA_PREFSRC, &source, 4);
    attribute_add(answer, RTA_METRICS, &metric, sizeof(metric));
}

static void answers_are_read(void **state)
{
    struct answer answer;
    struct cw_route route;
    answer_make(&answer);
    assert_int_equal(cw_route_parse(answer.bytes, answer.length, &route), CW_OK);
    assert_string_equal(route.interface, "lo");
    assert_int_equal(cw_ip_to_v4(&route.gateway), 0x0a0000feu);
    assert_int_equal(cw_ip_to_v4(&route.source), 0x0a000001u);
    assert_int_equal(route.mtu_bytes, 1400);
    answer_begin(&answer, RTM_NEWROUTE, RTN_UNREACHABLE);
    assert_int_equal(cw_route_parse(answer.bytes, answer.length, &route), CW_ERROR_NOT_FOUND);
    answer_begin(&answer, NLMSG_ERROR, 0);
    assert_int_equal(cw_route_parse(answer.bytes, answer.length, &route), CW_ERROR_NOT_FOUND);
    answer_begin(&answer, RTM_NEWLINK, 0);
    assert_int_equal(cw_route_parse(answer.bytes, answer.length, &route), CW_ERROR_SYSTEM);
}

/* A way to an address of IPv4 by a router that has one of IPv6 only, or the same kind in the other form. */
static void next_hops_of_the_other_kind_are_read(void **state)
{
    static const struct {
        uint16_t family;
        const char *ip;
        uint16_t bytes;     /* of the attribute */
        const char *wanted; /* NULL: none */
    } rows[] = {
        {AF_INET6, "fe80::1", 18, "fe80::1"}, {AF_INET, "10.0.0.254", 6, "10.0.0.254"}, {AF_INET6, "fe80::1", 6, NULL},
        {AF_INET, "10.0.0.254", 2, NULL},     {AF_INET, "10.0.0.254", 1, NULL},         {AF_UNIX, "fe80::1", 18, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct answer answer;
        struct cw_route route;
        struct cw_ip ip;
        uint8_t via[18];
        char text[CW_IP_TEXT_BYTES];
        assert_true(cw_ip_read(rows[i].ip, &ip));
        memcpy(via, &rows[i].family, 2);
        memcpy(via + 2, ip.bytes + (cw_ip_is_v4(&ip) ? 12 : 0), cw_ip_is_v4(&ip) ? 4 : 16);
        answer_begin(&answer, RTM_NEWROUTE, RTN_UNICAST);
        attribute_add(&answer, RTA_VIA, via, rows[i].bytes);
        assert_int_equal(cw_route_parse(answer.bytes, answer.length, &route), CW_OK);
        cw_ip_write(&route.gateway, text);
        assert_int_equal(cw_ip_is_none(&route.gateway), rows[i].wanted == NULL);
        assert_true(rows[i].wanted == NULL || strcmp(text, rows[i].wanted) == 0);
    }
}

static void broken_answers_do_no_harm(void **state)
{
    struct answer answer;
    struct cw_route route;
    struct cw_random random;
    cw_random_seed(&random, 7);
    answer_make(&answer);
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t length = (uint32_t)cw_random_below(&random, answer.length + 1);
        uint8_t *copy = broken_copy(&answer, length, &random);
        if (length >= 4 && round % 2 == 0) {
            memcpy(copy, &length, sizeof(length)); /* the message says so itself */
        }
        int status = cw_route_parse(copy, length, &route);
        assert_true(status == CW_OK || status == CW_ERROR_NOT_FOUND || status == CW_ERROR_SYSTEM);
        free(copy);
    }
}

static void this_host_has_one_to_itself(void **state)
{
    static const char *const loopback[] = {"127.0.0.1", "::1"};
    for (size_t i = 0; i < 2; i++) {
        struct cw_route route;
        struct cw_ip ip;
        char text[400], wanted[100];
        assert_true(cw_ip_read(loopback[i], &ip));
        if (cw_route_query(&ip, &route) == CW_ERROR_NOT_FOUND && i == 1) {
            continue; /* a kernel without IPv6 */
        }
        assert_string_equal(route.interface, "lo");
        assert_true(cw_ip_is_none(&route.gateway));
        assert_true(route.mtu_bytes >= 1280);
        cw_route_diagnose(&ip, 1, text, sizeof(text)); /* tcpmux: no process has it */
        snprintf(wanted, sizeof(wanted), "sent by lo from %s, MTU", loopback[i]);
        assert_non_null(strstr(text, wanted));
        assert_non_null(strstr(text, "no process has that port"));
    }
}

int main(void)
{
    return TESTS_RUN(answers_are_read, next_hops_of_the_other_kind_are_read, broken_answers_do_no_harm,
                     this_host_has_one_to_itself);
}
