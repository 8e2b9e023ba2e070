/* Addresses of this host that other hosts must not use: answers of the kernel, truncated at any place; and a network of
 * this test's own that has some. */
#include <linux/if_addr.h>
#include <sched.h>
#include <sys/socket.h>

#include "control/net/address.h"
#include "control/net/net.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"
#include "tests/unit/control/netlink_answer.h"

enum { ROOM = 8 };

static void address_add(struct answer *answer, const char *text, uint32_t flags)
{
    const struct cw_ip ip = ip_of(text);
    uint16_t bytes = cw_ip_is_v4(&ip) ? 4 : 16;
    const struct ifaddrmsg message = {
        .ifa_family = bytes == 4 ? AF_INET : AF_INET6, .ifa_index = 2, .ifa_flags = (uint8_t)flags};
    message_add(answer, RTM_NEWADDR, &message, sizeof(message));
    attribute_add(answer, bytes == 4 ? IFA_LOCAL : IFA_ADDRESS, ip.bytes + 16 - bytes, bytes);
    attribute_add(answer, IFA_FLAGS, &flags, sizeof(flags));
}

static void answer_make(struct answer *answer)
{
    *answer = (struct answer){.length = 0};
    address_add(answer, "10.0.0.1", IFA_F_PERMANENT);
    address_add(answer, "10.0.0.2", IFA_F_PERMANENT | IFA_F_DEPRECATED);
    address_add(answer, "fd77::1", IFA_F_PERMANENT);
    address_add(answer, "fd77::2", IFA_F_TENTATIVE);
    address_add(answer, "fd77::3", IFA_F_TENTATIVE | IFA_F_OPTIMISTIC);
    address_add(answer, "fd77::4", IFA_F_TENTATIVE | IFA_F_DADFAILED);
    address_add(answer, "fd77::5", IFA_F_DEPRECATED);
}

static void answers_are_read(void **state)
{
    static const struct {
        const char *ip;
        uint32_t interface;
        enum cw_address_state state;
    } rows[] = {
        {"10.0.0.1", 2, CW_ADDRESS_PREFERRED},  {"10.0.0.2", 2, CW_ADDRESS_DEPRECATED},
        {"fd77::1", 2, CW_ADDRESS_PREFERRED},   {"fd77::2", 2, CW_ADDRESS_UNUSABLE},
        {"fd77::2", 3, CW_ADDRESS_PREFERRED},   {"fd77::3", 2, CW_ADDRESS_PREFERRED},
        {"fd77::4", 2, CW_ADDRESS_UNUSABLE},    {"fd77::5", 2, CW_ADDRESS_DEPRECATED},
        {"10.0.0.77", 2, CW_ADDRESS_PREFERRED},
    };
    struct answer answer;
    struct cw_address found[ROOM];
    uint32_t count = 0;
    answer_make(&answer);
    assert_int_equal(cw_addresses_parse(answer.bytes, answer.length, found, ROOM, &count), CW_OK);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_ip ip = ip_of(rows[i].ip);
        assert_int_equal(cw_address_state(found, count, rows[i].interface, &ip), rows[i].state);
    }
    count = 0;
    assert_int_equal(cw_addresses_parse(answer.bytes, answer.length, found, 1, &count), CW_ERROR_NOT_FOUND);
    assert_int_equal(count, 1);
}

static void broken_answers_do_no_harm(void **state)
{
    struct answer answer;
    struct cw_random random;
    cw_random_seed(&random, 7);
    answer_make(&answer);
    for (uint32_t round = 0; round < 20000; round++) {
        struct cw_address found[ROOM];
        uint32_t count = 0, length = (uint32_t)cw_random_below(&random, answer.length + 1);
        length = round % 3 == 0 ? answer.length : length;
        uint8_t *copy = broken_copy(&answer, length, &random);
        int status = cw_addresses_parse(copy, length, found, ROOM, &count);
        assert_true(status == CW_OK || status == CW_ERROR_NOT_FOUND || status == CW_ERROR_SYSTEM);
        assert_true(count <= ROOM);
        free(copy);
    }
}

static void offered_expect(const char *net, const char *wanted)
{
    struct cw_net_offer offer;
    char error[800] = "", offered[400] = "";
    assert_int_equal(setenv("CAUSEWAY_TRANSPORT", net, 1), 0);
    if (net[0] == 0) {
        unsetenv("CAUSEWAY_TRANSPORT");
    }
    (void)cw_net_offer_make(&offer, error, sizeof(error));
    for (uint32_t i = 0; i < offer.count; i++) {
        char text[CW_IP_TEXT_BYTES];
        cw_ip_write(&offer.addresses[i].ip, text);
        snprintf(offered + strlen(offered), sizeof(offered) - strlen(offered), "%s ", text);
    }
    assert_string_equal(offered, wanted);
}

/* Two interfaces that are joined. For addresses added without `nodad`, uniqueness is not known for a minute. */
static const char *const commands[] = {
    "ip link set lo up",
    "ip link add one type veth peer name two",
    "sysctl -qw net.ipv6.conf.one.dad_transmits=60 net.ipv6.conf.one.addr_gen_mode=1 net.ipv6.conf.two.addr_gen_mode=1",
    "ip link set one up",
    "ip link set two up",
    "ip addr add 10.1.0.9/24 dev one preferred_lft 0",
    "ip addr add 10.1.0.1/24 dev one",
    "ip addr add fd77::9/64 dev one nodad preferred_lft 0",
    "ip addr add fd77::1/64 dev one nodad",
    "ip addr add fd77::2/64 dev one",
    "ip addr add fd78::1/64 dev two nodad preferred_lft 0",
};

static void others_learn_what_they_can_use(void **state)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0 || access("/proc/sys/net/ipv6", F_OK) != 0) {
        print_message("not tested: a network of its own needs root and IPv6\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        assert_int_equal(system(commands[i]), 0);
    }
    offered_expect("", "10.1.0.1 fd77::1 fd78::1 "); /* the last: its interface has no other */
    offered_expect("fd77::/64", "fd77::1 ");
    offered_expect("fd77::9", "fd77::9 "); /* who wants it */
    offered_expect("fd77::2", "");
}

int main(void)
{
    return TESTS_RUN(answers_are_read, broken_answers_do_no_harm, others_learn_what_they_can_use);
}
