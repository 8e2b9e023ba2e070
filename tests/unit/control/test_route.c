/* Routes: what the kernel's answers say, whatever they are cut to; and that this host has one to itself. */
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/net/route.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"

struct answer {
    _Alignas(struct nlmsghdr) uint8_t bytes[256];
    uint32_t length;
};

static void attribute_add(struct answer *answer, uint16_t type, const void *data, uint16_t bytes)
{
    struct rtattr attribute = {.rta_len = (uint16_t)(sizeof(attribute) + bytes), .rta_type = type};
    memcpy(answer->bytes + answer->length, &attribute, sizeof(attribute));
    memcpy(answer->bytes + answer->length + sizeof(attribute), data, bytes);
    answer->length += RTA_ALIGN(attribute.rta_len);
    memcpy(answer->bytes, &answer->length, sizeof(answer->length));
}

static void answer_begin(struct answer *answer, uint16_t type, uint8_t kind)
{
    struct nlmsghdr header = {.nlmsg_type = type, .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg))};
    struct rtmsg message = {.rtm_family = AF_INET, .rtm_type = kind};
    memset(answer, 0, sizeof(*answer));
    memcpy(answer->bytes, &header, sizeof(header));
    memcpy(answer->bytes + NLMSG_HDRLEN, &message, sizeof(message));
    answer->length = header.nlmsg_len;
}

/* lo, from 10.0.0.1 through 10.0.0.254, whose path is known to be of 1,400 bytes */
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

/* Each in memory of its own length, so that the sanitizer sees who reads on. */
static void broken_answers_do_no_harm(void **state)
{
    struct answer answer;
    struct cw_route route;
    struct cw_random random;
    cw_random_seed(&random, 7);
    answer_make(&answer);
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t length = (uint32_t)cw_random_below(&random, answer.length + 1);
        uint8_t *copy = malloc(length + 1);
        memcpy(copy, answer.bytes, length);
        for (uint64_t flips = cw_random_below(&random, 4); flips > 0 && length > 0; flips--) {
            copy[cw_random_below(&random, length)] = (uint8_t)cw_random_next(&random);
        }
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
        if (cw_route_ask(&ip, &route) == CW_ERROR_NOT_FOUND && i == 1) {
            continue; /* a kernel without IPv6 */
        }
        assert_string_equal(route.interface, "lo");
        assert_true(cw_ip_is_none(&route.gateway));
        assert_true(route.mtu_bytes >= 1280);
        cw_route_diagnose(&ip, 1, text, sizeof(text)); /* tcpmux: nobody has it */
        snprintf(wanted, sizeof(wanted), "sent by lo from %s, MTU", loopback[i]);
        assert_non_null(strstr(text, wanted));
        assert_non_null(strstr(text, "nobody has that port"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_read),
        cmocka_unit_test(broken_answers_do_no_harm),
        cmocka_unit_test(this_host_has_one_to_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
