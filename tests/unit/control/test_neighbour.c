/* Neighbours: entries of the kernel's table, ARP replies and advertisements, truncated and altered at any place;
 * reserved ports. */
#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <sys/socket.h>

#include "control/net/neighbour.h"
#include "control/net/reservation.h"
#include "control/net/solicit.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "dataplane/wire/wire.h"
#include "tests/test.h"
#include "tests/unit/control/netlink_answer.h"

enum { INTERFACE = 7, ROOM = 8 };

/* One more of the table, with the last byte of its MAC address; 0: it has none. */
static void neighbour_add(struct answer *answer, const char *text, uint16_t state, int interface, uint8_t last)
{
    const uint8_t mac[6] = {2, 0, 0, 0, 0, last};
    const struct cw_ip ip = ip_of(text);
    uint16_t bytes = cw_ip_is_v4(&ip) ? 4 : 16;
    const struct ndmsg message = {
        .ndm_family = bytes == 4 ? AF_INET : AF_INET6, .ndm_state = state, .ndm_ifindex = interface};
    message_add(answer, RTM_NEWNEIGH, &message, sizeof(message));
    attribute_add(answer, NDA_DST, ip.bytes + 16 - bytes, bytes);
    if (last != 0) {
        attribute_add(answer, NDA_LLADDR, mac, sizeof(mac));
    }
}

static void answer_make(struct answer *answer)
{
    memset(answer, 0, sizeof(*answer));
    neighbour_add(answer, "10.0.0.1", NUD_REACHABLE, INTERFACE, 1);
    neighbour_add(answer, "10.0.0.2", NUD_REACHABLE, INTERFACE + 1, 2); /* of another interface */
    neighbour_add(answer, "10.0.0.3", NUD_FAILED, INTERFACE, 0);
    neighbour_add(answer, "10.0.0.4", NUD_STALE, INTERFACE, 4);
    neighbour_add(answer, "10.0.0.5", NUD_INCOMPLETE, INTERFACE, 5);
    neighbour_add(answer, "10.0.0.6", NUD_PERMANENT, INTERFACE, 6);
    neighbour_add(answer, "fe80::7", NUD_DELAY, INTERFACE, 7);
    neighbour_add(answer, "ff02::1", NUD_NOARP, INTERFACE, 8);
}

static void found_expect(const struct cw_neighbour *found, const char *text, uint8_t last, bool is_sure)
{
    const struct cw_ip ip = ip_of(text);
    assert_true(cw_ip_is_equal(&found->ip, &ip));
    assert_int_equal(found->mac[5], last);
    assert_int_equal(found->is_sure, is_sure);
}

static void tables_are_read(void **state)
{
    struct answer answer;
    struct cw_neighbour found[ROOM];
    uint32_t count = 0;
    answer_make(&answer);
    assert_int_equal(cw_neighbours_parse(answer.bytes, answer.length, INTERFACE, found, ROOM, &count), CW_OK);
    assert_int_equal(count, 4);
    found_expect(&found[0], "10.0.0.1", 1, true);
    found_expect(&found[1], "10.0.0.4", 4, false);
    found_expect(&found[2], "10.0.0.6", 6, true);
    found_expect(&found[3], "fe80::7", 7, true);
    /* no room: the first entries are used */
    count = 0;
    assert_int_equal(cw_neighbours_parse(answer.bytes, answer.length, INTERFACE, found, 2, &count), CW_ERROR_NOT_FOUND);
    assert_int_equal(count, 2);
    struct nlmsghdr done = {.nlmsg_len = sizeof(done), .nlmsg_type = NLMSG_DONE};
    assert_int_equal(cw_neighbours_parse(&done, sizeof(done), INTERFACE, found, ROOM, &count), CW_ERROR_NOT_FOUND);
    done.nlmsg_type = NLMSG_ERROR;
    assert_int_equal(cw_neighbours_parse(&done, sizeof(done), INTERFACE, found, ROOM, &count), CW_ERROR_SYSTEM);
}

static void broken_tables_do_no_harm(void **state)
{
    struct answer answer;
    struct cw_random random;
    cw_random_seed(&random, 7);
    answer_make(&answer);
    for (uint32_t round = 0; round < 20000; round++) {
        struct cw_neighbour found[ROOM];
        uint32_t count = 0, length = (uint32_t)cw_random_below(&random, answer.length + 1);
        length = round % 3 == 0 ? answer.length : length;
        uint8_t *copy = broken_copy(&answer, length, &random);
        int status = cw_neighbours_parse(copy, length, INTERFACE, found, ROOM, &count);
        assert_true(status == CW_OK || status == CW_ERROR_NOT_FOUND || status == CW_ERROR_SYSTEM);
        assert_true(count <= ROOM);
        free(copy);
    }
}

static void cuts_are_no_answers(const uint8_t *frame, size_t bytes)
{
    struct cw_ip ip;
    uint8_t mac[6];
    for (size_t cut = 0; cut < bytes; cut++) {
        uint8_t *copy = malloc(cut + 1);
        memcpy(copy, frame, cut);
        assert_false(cw_solicit_parse(copy, cut, &ip, mac));
        free(copy);
    }
}

static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 9}, other_mac[6] = {2, 0, 0, 0, 0, 1};

static void replies_are_distinguished_from_others(void **state)
{
    const struct cw_ip own = ip_of("10.0.0.9"), other = ip_of("10.0.0.1");
    uint8_t frame[CW_SOLICIT_BYTES_MAX], mac[6];
    struct cw_ip ip;
    assert_int_equal(cw_solicit_write(frame, &own, own_mac, &other), CW_ARP_BYTES);
    assert_int_equal(frame[0], 0xff);
    assert_int_equal(frame[41], 1);
    assert_false(cw_solicit_parse(frame, CW_ARP_BYTES, &ip, mac)); /* a request */
    frame[21] = 2;
    memcpy(frame + 22, other_mac, 6);
    frame[31] = 1;
    assert_true(cw_solicit_parse(frame, CW_ARP_BYTES, &ip, mac));
    assert_true(cw_ip_is_equal(&ip, &other));
    assert_memory_equal(mac, other_mac, 6);
    cuts_are_no_answers(frame, CW_ARP_BYTES);
    static const uint8_t fixed[] = {12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
    for (size_t i = 0; i < sizeof(fixed); i++) {
        frame[fixed[i]] ^= 0x40;
        assert_false(cw_solicit_parse(frame, CW_ARP_BYTES, &ip, mac));
        frame[fixed[i]] ^= 0x40;
    }
    frame[22] |= 1; /* a group address is no host */
    assert_false(cw_solicit_parse(frame, CW_ARP_BYTES, &ip, mac));
}

/* ---- Neighbour Discovery ---- */

enum { ADVERTISEMENT_BYTES = 102, AT_FIRST = 78, AT_SECOND = 86, PADDING = 8 };

/* Corrects the checksum of the frame. */
static void nd_sign(uint8_t *frame, size_t bytes)
{
    const uint8_t pseudo[8] = {0, 0, 0, (uint8_t)(bytes - 54), 0, 0, 0, 58};
    struct cw_wire_sum sum = {0};
    memset(frame + 56, 0, 2);
    cw_wire_sum_add(&sum, frame + 22, 32);
    cw_wire_sum_add(&sum, pseudo, sizeof(pseudo));
    cw_wire_sum_add(&sum, frame + 54, bytes - 54);
    uint16_t checksum = cw_wire_sum_end(&sum);
    memcpy(frame + 56, &checksum, sizeof(checksum));
}

/* The answer of fe80::12:3456, with an unknown option in front of the MAC address. */
static void nd_answer(uint8_t frame[ADVERTISEMENT_BYTES])
{
    const struct cw_ip own = ip_of("fd77::9"), other = ip_of("fe80::12:3456");
    const uint8_t head[] = {0x86, 0xdd, 0x60, 0, 0, 0, 0, ADVERTISEMENT_BYTES - 54, 58, 255};
    memset(frame, 0, ADVERTISEMENT_BYTES);
    memcpy(frame, own_mac, 6);
    memcpy(frame + 6, other_mac, 6);
    memcpy(frame + 12, head, sizeof(head));
    memcpy(frame + 22, other.bytes, 16);
    memcpy(frame + 38, own.bytes, 16);
    frame[54] = 136;
    frame[58] = 0x60; /* solicited, override */
    memcpy(frame + 62, other.bytes, 16);
    frame[AT_FIRST] = 200;
    frame[AT_FIRST + 1] = 1;
    frame[AT_SECOND] = 2;
    frame[AT_SECOND + 1] = 2; /* longer than a MAC address: none */
    nd_sign(frame, ADVERTISEMENT_BYTES);
}

static void solicitations_are_written(void **state)
{
    const struct cw_ip own = ip_of("fd77::9"), other = ip_of("fe80::12:3456"), group = ip_of("ff02::1:ff12:3456");
    static const uint8_t group_mac[6] = {0x33, 0x33, 0xff, 0x12, 0x34, 0x56};
    uint8_t frame[CW_SOLICIT_BYTES_MAX], again[2], mac[6];
    struct cw_ip ip;
    assert_int_equal(cw_solicit_write(frame, &own, own_mac, &other), CW_ND_BYTES);
    assert_memory_equal(frame, group_mac, 6);
    assert_memory_equal(frame + 6, own_mac, 6);
    assert_memory_equal(frame + 22, own.bytes, 16);
    assert_memory_equal(frame + 38, group.bytes, 16);
    assert_memory_equal(frame + 62, other.bytes, 16);
    assert_memory_equal(frame + 80, own_mac, 6);
    assert_true(frame[19] == 32 && frame[20] == 58 && frame[21] == 255 && frame[54] == 135 && frame[78] == 1);
    memcpy(again, frame + 56, 2);
    nd_sign(frame, CW_ND_BYTES);
    assert_memory_equal(frame + 56, again, 2);
    assert_false(cw_solicit_parse(frame, CW_ND_BYTES, &ip, mac)); /* a request */
}

static void advertisements_are_distinguished_from_others(void **state)
{
    const struct cw_ip other = ip_of("fe80::12:3456");
    uint8_t frame[ADVERTISEMENT_BYTES + PADDING] = {0}, mac[6];
    struct cw_ip ip;
    nd_answer(frame);
    assert_false(cw_solicit_parse(frame, ADVERTISEMENT_BYTES, &ip, mac)); /* without a MAC address */
    frame[AT_SECOND + 1] = 1;
    frame[AT_SECOND + 8] = 201;
    frame[AT_SECOND + 9] = 1;
    memcpy(frame + AT_SECOND + 2, other_mac, 6);
    nd_sign(frame, ADVERTISEMENT_BYTES);
    for (size_t bytes = ADVERTISEMENT_BYTES; bytes <= sizeof(frame); bytes += PADDING) {
        assert_true(cw_solicit_parse(frame, bytes, &ip, mac));
        assert_true(cw_ip_is_equal(&ip, &other));
        assert_memory_equal(mac, other_mac, 6);
    }
    cuts_are_no_answers(frame, ADVERTISEMENT_BYTES);
    for (size_t at = 12; at < ADVERTISEMENT_BYTES; at++) { /* fixed, or under the checksum; but class and label */
        frame[at] ^= 0x40;
        assert_int_equal(cw_solicit_parse(frame, ADVERTISEMENT_BYTES, &ip, mac), at >= 15 && at < 18);
        frame[at] ^= 0x40;
    }
    static const struct {
        uint8_t at, value;
    } wrong[] = {{54, 135},          {55, 1},           {21, 254},
                 {62, 0xff},         {AT_FIRST + 1, 0}, {AT_FIRST + 1, 4},
                 {AT_SECOND + 9, 2}, {AT_SECOND, 1},    {AT_SECOND + 2, 3}}; /* whoever signs it */
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint8_t before = frame[wrong[i].at];
        frame[wrong[i].at] = wrong[i].value;
        nd_sign(frame, ADVERTISEMENT_BYTES);
        assert_false(cw_solicit_parse(frame, ADVERTISEMENT_BYTES, &ip, mac));
        frame[wrong[i].at] = before;
    }
}

/* Each in memory of its own length, signed, so that options are looked at. */
static void broken_advertisements_do_no_harm(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 8);
    for (uint32_t round = 0; round < 20000; round++) {
        uint8_t frame[ADVERTISEMENT_BYTES], mac[6];
        struct cw_ip ip;
        size_t bytes = 54 + 8 + cw_random_below(&random, ADVERTISEMENT_BYTES - 54 - 8 + 1);
        nd_answer(frame);
        for (size_t at = AT_FIRST; at < ADVERTISEMENT_BYTES; at++) {
            frame[at] = (uint8_t)cw_random_below(&random, 4);
        }
        frame[19] = (uint8_t)(bytes - 54);
        nd_sign(frame, bytes);
        uint8_t *copy = malloc(bytes);
        memcpy(copy, frame, bytes);
        (void)cw_solicit_parse(copy, bytes, &ip, mac);
        free(copy);
    }
}

/* One port of an address of this host, which is taken then; and none of an address of no host. */
static void port_reserve(const char *here, const char *nowhere, const char *words)
{
    struct cw_reservation one, none;
    const struct cw_ip own = ip_of(here), other = ip_of(nowhere);
    char error[200] = "";
    assert_true_msg(cw_reservation_open(&own, 0, 1, &one, error, sizeof(error)) == CW_OK, "%s", error);
    assert_true(one.udp_port != 0);
    assert_int_equal(cw_reservation_open(&own, one.udp_port, 1, &none, error, sizeof(error)), CW_ERROR_BUSY);
    assert_non_null(strstr(error, words));
    assert_int_equal(cw_reservation_open(&other, 0, 1, &none, error, sizeof(error)), CW_ERROR_NOT_FOUND);
    cw_reservation_close(&one);
    cw_reservation_close(&one);
}

/* No other process gets the ports, and the kernel does not answer that they are closed. */
static void ports_are_reserved(void **state)
{
    struct cw_reservation more;
    const struct cw_ip loopback = ip_of("127.0.0.1");
    char error[200] = "";
    port_reserve("127.0.0.1", "1.2.3.4", "is in use");
    int status = CW_ERROR_BUSY;
    for (uint16_t first = 50000; status == CW_ERROR_BUSY && first < 60000; first = (uint16_t)(first + 16)) {
        status = cw_reservation_open(&loopback, first, 16, &more, error, sizeof(error));
    }
    assert_int_equal(status, CW_OK);
    assert_int_equal(more.count, 16);
    for (uint16_t i = 0; i < 16; i++) {
        const struct sockaddr_in to = {.sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)(more.udp_port + i)),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(file, (const struct sockaddr *)&to, sizeof(to)), 0);
        assert_int_equal(send(file, "", 1, 0), 1);
        assert_int_equal(send(file, "", 1, 0), 1); /* an ICMP error of the first would come back here */
        close(file);
    }
    cw_reservation_close(&more);
}

static void ports_are_reserved_over_ipv6(void **state)
{
    struct cw_reservation first;
    const struct cw_ip loopback = ip_of("::1");
    char error[200] = "";
    if (cw_reservation_open(&loopback, 0, 1, &first, error, sizeof(error)) != CW_OK) {
        print_message("skipped: this host has no IPv6: %s\n", error);
        skip();
    }
    cw_reservation_close(&first);
    port_reserve("::1", "fd99::1", "of ::1 is in use");
}

int main(void)
{
    return TESTS_RUN(tables_are_read, broken_tables_do_no_harm, replies_are_distinguished_from_others,
                     solicitations_are_written, advertisements_are_distinguished_from_others,
                     broken_advertisements_do_no_harm, ports_are_reserved, ports_are_reserved_over_ipv6);
}
