/* Which address ranks of other hosts use: the rule on offers of all hosts, written as people write addresses. */
#include "control/net/net.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { HOSTS_MAX = 4 };

/* "10.0.0.1/24 1000 1500 default": address, subnet, Mb/s, MTU; or "tunnel", "virtual": no NIC. Several of a host, and
 * those of several hosts: "A, B | C". */
struct row {
    const char *what, *offers;
    const char *chosen, *why; /* by each host, or "none" */
    uint32_t mtu_bytes;       /* of the first host's choice */
};

static const struct row rows[] = {
    {"one subnet", "10.0.0.1/24 1000 1500 | 10.0.0.2/24 1000 1500", "10.0.0.1 10.0.0.2", "all hosts are in 10.0.0.0/24",
     1500},
    {"the faster one",
     "10.0.0.1/24 1000 1500 default, 10.1.0.1/16 10000 1500 | "
     "10.1.9.2/16 10000 1500, 10.0.0.2/24 1000 1500",
     "10.1.0.1 10.1.9.2", "all hosts are in 10.1.0.0/16", 1500},
    {"as fast as its slowest",
     "10.0.0.1/24 1000 1500 default, 10.1.0.1/16 10000 1500 | "
     "10.1.9.2/16 100 1500, 10.0.0.2/24 1000 1500",
     "10.0.0.1 10.0.0.2", "all hosts are in 10.0.0.0/24", 1500},
    {"the larger MTU, as large as its smallest",
     "10.0.0.1/24 0 1500, 10.1.0.1/24 0 9000 | 10.0.0.2/24 0 1500, 10.1.0.2/24 0 4000", "10.1.0.1 10.1.0.2",
     "10.1.0.0/24", 4000},
    {"no tunnel, whatever rate it claims",
     "10.8.0.1/24 10000 9000 tunnel, 10.0.0.1/24 1000 1500 | "
     "10.8.0.2/24 10000 9000 tunnel, 10.0.0.2/24 1000 1500",
     "10.0.0.1 10.0.0.2", "10.0.0.0/24", 1500},
    {"a NIC before what is virtual, as good as its worst",
     "10.8.0.1/24 10000 9000, 10.0.0.1/24 0 1500 | 10.8.0.2/24 10000 9000 virtual, 10.0.0.2/24 0 1500",
     "10.0.0.1 10.0.0.2", "10.0.0.0/24", 1500},
    {"virtual before a tunnel, and its rate is not trusted",
     "10.8.0.1/24 10000 9000 tunnel, 10.0.0.1/24 10000 1500 virtual, 10.1.0.1/24 1000 1600 virtual | "
     "10.8.0.2/24 10000 9000, 10.0.0.2/24 10000 1500 virtual, 10.1.0.2/24 1000 1600 virtual",
     "10.1.0.1 10.1.0.2", "10.1.0.0/24", 1600},
    {"the default route's", "10.0.0.1/24 0 1500, 10.1.0.1/24 0 1500 default | 10.0.0.2/24 0 1500, 10.1.0.2/24 0 1500",
     "10.1.0.1 10.1.0.2", "10.1.0.0/24", 1500},
    {"IPv4 before IPv6, in either order",
     "fd77::1/64 0 1500 default, 10.1.0.1/24 0 1500 default | fd77::2/64 0 1500, 10.1.0.2/24 0 1500",
     "10.1.0.1 10.1.0.2", "10.1.0.0/24", 1500},
    {"IPv6 where it alone is shared", "10.0.0.1/24 0 1500, fd77::1/64 0 1500 | 10.1.0.2/24 0 1500, fd77::2/64 0 1500",
     "fd77::1 fd77::2", "all hosts are in fd77::/64", 1500},
    {"subnets of other lengths are others", "fd77::1/64 0 1500 | fd77::2/48 0 1500", "fd77::1 fd77::2",
     "the hosts share no subnet", 1500},
    {"bridges of containers lead nowhere",
     "172.17.0.1/16 10000 1500, 10.0.0.1/24 0 1500 | 172.17.0.1/16 10000 1500, 10.0.0.2/24 0 1500", "10.0.0.1 10.0.0.2",
     "10.0.0.0/24", 1500},
    {"routers between",
     "10.0.0.1/24 0 1500, 10.5.0.1/24 0 1500 default | 10.1.0.2/24 0 1500 default | 10.2.0.3/24 0 1500",
     "10.5.0.1 10.1.0.2 10.2.0.3", "the hosts share no subnet: the address of the default route", 1500},
    {"routers between, and smaller packets there", "10.0.0.1/24 0 9000 default | 10.1.0.2/24 0 1500 default",
     "10.0.0.1 10.1.0.2", "the hosts share no subnet", 1500},
    {"routers between, and IPv4 is not everywhere",
     "10.0.0.1/24 0 1500 default, fd77:1::1/64 0 1500 | fd77:2::2/64 0 1500", "fd77:1::1 fd77:2::2",
     "the hosts share no subnet", 1500},
    {"a host without an address", "10.0.0.1/24 0 1500 |", "10.0.0.1 none", "", 0},
    {"two kinds of IP", "10.0.0.1/24 0 1500 | fd77::2/64 0 1500", "10.0.0.1 none", "", 0},
    {"nothing but bridges", "172.17.0.1/16 0 1500 | 172.17.0.1/16 0 1500", "none none", "", 0},
};

static void offer_read(struct cw_net_offer *offer, char *texts, uint8_t network)
{
    char *rest;
    memset(offer, 0, sizeof(*offer));
    offer->network[0] = network;
    for (char *text = strtok_r(texts, ",", &rest); text != NULL; text = strtok_r(NULL, ",", &rest)) {
        struct cw_net_address *at = &offer->addresses[offer->count++];
        char ip[CW_IP_TEXT_BYTES], word[16] = "";
        unsigned bits, speed, mtu;
        assert_true(sscanf(text, " %45[^/]/%u %u %u %15s", ip, &bits, &speed, &mtu, word) >= 4);
        assert_true(cw_ip_read(ip, &at->ip));
        at->bits = (uint8_t)(bits + (cw_ip_is_v4(&at->ip) ? CW_IP_V4_BITS : 0));
        at->speed_mbps = speed;
        at->mtu_bytes = (uint16_t)mtu;
        at->is_default = strcmp(word, "default") == 0;
        at->kind = strcmp(word, "tunnel") == 0    ? CW_NET_TUNNEL
                   : strcmp(word, "virtual") == 0 ? CW_NET_VIRTUAL
                                                  : CW_NET_NIC;
    }
}

/* Of all hosts, each with a network of its own; how many there are. */
static uint32_t offers_read(const char *texts, struct cw_net_offer offers[HOSTS_MAX])
{
    char copy[400], *rest = copy;
    uint32_t count = 0;
    snprintf(copy, sizeof(copy), "%s", texts);
    for (char *host; (host = strsep(&rest, "|")) != NULL; count++) {
        offer_read(&offers[count], host, (uint8_t)(count + 1));
    }
    return count;
}

static void all_choose_by_one_rule(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct cw_net_offer offers[HOSTS_MAX];
        uint32_t count = offers_read(row->offers, offers);
        char choices[100], *rest = choices;
        snprintf(choices, sizeof(choices), "%s", row->chosen);
        for (uint32_t own = 0; own < count; own++) {
            struct cw_net_address chosen;
            char why[CW_NET_TEXT_BYTES] = "", ip[CW_IP_TEXT_BYTES] = "none";
            bool has = cw_net_choose(offers, count, own, &chosen, why);
            if (has) {
                cw_ip_write(&chosen.ip, ip);
            }
            const char *wanted = strsep(&rest, " ");
            if (strcmp(ip, wanted) != 0 || strstr(why, row->why) == NULL ||
                (own == 0 && row->mtu_bytes != 0 && chosen.mtu_bytes != row->mtu_bytes)) {
                fail_msg("%s: host %u chooses %s (MTU %u), not %s: %s", row->what, own, ip,
                         has ? (unsigned)chosen.mtu_bytes : 0, wanted, why);
            }
        }
    }
}

/* Ranks that share their interfaces have the same addresses, and these lead to them. */
static void ranks_of_a_host_share_addresses(void **state)
{
    struct cw_net_offer offers[HOSTS_MAX];
    struct cw_net_address chosen;
    char why[CW_NET_TEXT_BYTES];
    (void)offers_read("10.0.0.1/24 0 1500 | 10.0.0.1/24 0 1500 | 10.0.0.2/24 0 1500 | 10.0.0.2/24 0 1500", offers);
    for (uint32_t rank = 0; rank < 4; rank++) {
        offers[rank].network[0] = (uint8_t)(rank / 2 + 1);
    }
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_true(cw_net_choose(offers, 4, rank, &chosen, why));
        assert_int_equal(cw_ip_to_v4(&chosen.ip), 0x0a000001u + rank / 2);
    }
}

/* Texts of CAUSEWAY_TRANSPORT on this host, which has a loopback. */
static void wishes_are_read(void **state)
{
    static const struct {
        const char *net;
        int status;
        const char *said;
        uint32_t count; /* of addresses left */
    } texts[] = {
        {"lo", CW_OK, "", 1},
        {"127.0.0.1", CW_OK, "", 1},
        {"127.0.0.0/8", CW_OK, "", 1},
        {"127.0.0.0/33", CW_ERROR_ARGUMENT, "a subnet has 0 to 32 bits", 0},
        {"fd00::/129", CW_ERROR_ARGUMENT, "a subnet has 0 to 128 bits", 0},
        {"fd00::/x", CW_ERROR_ARGUMENT, "a subnet has", 0},
        {"::/0", CW_OK, "", 0}, /* and no IPv4 */
        {"eth0/5", CW_ERROR_ARGUMENT, "an interface", 0},
        {"203.0.113.0/24", CW_ERROR_NOT_FOUND, "this host has nothing like that; it has", 0},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct cw_net_offer offer;
        char error[800] = "";
        setenv("CAUSEWAY_TRANSPORT", texts[i].net, 1);
        assert_int_equal(cw_net_offer_make(&offer, error, sizeof(error)), texts[i].status);
        assert_non_null(strstr(error, texts[i].said));
        assert_true(texts[i].status != CW_OK || offer.count >= texts[i].count);
        for (uint32_t j = 0; strcmp(texts[i].net, "::/0") == 0 && j < offer.count; j++) {
            assert_false(cw_ip_is_v4(&offer.addresses[j].ip));
        }
    }
    unsetenv("CAUSEWAY_TRANSPORT");
}

int main(void)
{
    return TESTS_RUN(all_choose_by_one_rule, ranks_of_a_host_share_addresses, wishes_are_read);
}
