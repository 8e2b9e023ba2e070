/* Neighbours: what the kernel's table and ARP replies say, whatever they are cut and altered to; reserved ports. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/net/neighbour.h"
#include "control/net/reservation.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { INTERFACE = 7, ROOM = 8, ANSWER_BYTES = 1024 };

struct answer {
    _Alignas(struct nlmsghdr) uint8_t bytes[ANSWER_BYTES];
    uint32_t length;
};

static void attribute_add(struct answer *answer, uint16_t type, const void *data, uint16_t bytes)
{
    struct rtattr attribute = {.rta_len = (uint16_t)(sizeof(attribute) + bytes), .rta_type = type};
    memcpy(answer->bytes + answer->length, &attribute, sizeof(attribute));
    memcpy(answer->bytes + answer->length + sizeof(attribute), data, bytes);
    answer->length += RTA_ALIGN(attribute.rta_len);
}

/* One more of the table, with the last byte of its MAC address; 0: it has none. */
static void neighbour_add(struct answer *answer, uint32_t ipv4, uint16_t state, int interface, uint8_t last)
{
    const uint8_t mac[6] = {2, 0, 0, 0, 0, last};
    const uint32_t address = htonl(ipv4);
    uint32_t begin = answer->length;
    struct nlmsghdr header = {.nlmsg_type = RTM_NEWNEIGH};
    struct ndmsg message = {.ndm_family = AF_INET, .ndm_state = state, .ndm_ifindex = interface};
    memcpy(answer->bytes + begin + NLMSG_HDRLEN, &message, sizeof(message));
    answer->length += NLMSG_LENGTH(sizeof(message));
    attribute_add(answer, NDA_DST, &address, sizeof(address));
    if (last != 0) {
        attribute_add(answer, NDA_LLADDR, mac, sizeof(mac));
    }
    header.nlmsg_len = answer->length - begin;
    memcpy(answer->bytes + begin, &header, sizeof(header));
}

static void answer_make(struct answer *answer)
{
    memset(answer, 0, sizeof(*answer));
    neighbour_add(answer, 0x0a000001u, NUD_REACHABLE, INTERFACE, 1);
    neighbour_add(answer, 0x0a000002u, NUD_REACHABLE, INTERFACE + 1, 2); /* of another interface */
    neighbour_add(answer, 0x0a000003u, NUD_FAILED, INTERFACE, 0);
    neighbour_add(answer, 0x0a000004u, NUD_STALE, INTERFACE, 4);
    neighbour_add(answer, 0x0a000005u, NUD_INCOMPLETE, INTERFACE, 5);
    neighbour_add(answer, 0x0a000006u, NUD_PERMANENT, INTERFACE, 6);
}

static void tables_are_read(void **state)
{
    struct answer answer;
    struct cw_neighbour found[ROOM];
    uint32_t count = 0;
    answer_make(&answer);
    assert_int_equal(cw_neighbours_parse(answer.bytes, answer.length, INTERFACE, found, ROOM, &count), CW_OK);
    assert_int_equal(count, 3);
    assert_true(found[0].ipv4 == 0x0a000001u && found[0].mac[5] == 1 && found[0].is_sure);
    assert_true(found[1].ipv4 == 0x0a000004u && found[1].mac[5] == 4 && !found[1].is_sure);
    assert_true(found[2].ipv4 == 0x0a000006u && found[2].mac[5] == 6 && found[2].is_sure);
    /* no room: what there is of it is taken */
    count = 0;
    assert_int_equal(cw_neighbours_parse(answer.bytes, answer.length, INTERFACE, found, 2, &count), CW_ERROR_NOT_FOUND);
    assert_int_equal(count, 2);
    struct nlmsghdr done = {.nlmsg_len = sizeof(done), .nlmsg_type = NLMSG_DONE};
    assert_int_equal(cw_neighbours_parse(&done, sizeof(done), INTERFACE, found, ROOM, &count), CW_ERROR_NOT_FOUND);
    done.nlmsg_type = NLMSG_ERROR;
    assert_int_equal(cw_neighbours_parse(&done, sizeof(done), INTERFACE, found, ROOM, &count), CW_ERROR_SYSTEM);
}

/* Each in memory of its own length, so that the sanitizer sees who reads on. */
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
        uint8_t *copy = malloc(length + 1);
        memcpy(copy, answer.bytes, length);
        for (uint64_t flips = cw_random_below(&random, 4); flips > 0 && length > 0; flips--) {
            copy[cw_random_below(&random, length)] = (uint8_t)cw_random_next(&random);
        }
        int status = cw_neighbours_parse(copy, length, INTERFACE, found, ROOM, &count);
        assert_true(status == CW_OK || status == CW_ERROR_NOT_FOUND || status == CW_ERROR_SYSTEM);
        assert_true(count <= ROOM);
        free(copy);
    }
}

static void replies_are_told_from_others(void **state)
{
    const uint8_t own[6] = {2, 0, 0, 0, 0, 9}, other[6] = {2, 0, 0, 0, 0, 1};
    uint8_t frame[CW_ARP_BYTES], mac[6];
    uint32_t ipv4;
    cw_arp_write(frame, 0x0a000009u, own, 0x0a000001u);
    assert_int_equal(frame[0], 0xff);
    assert_int_equal(frame[41], 1);
    assert_false(cw_arp_parse(frame, sizeof(frame), &ipv4, mac)); /* a request */
    frame[21] = 2;
    memcpy(frame + 22, other, 6);
    frame[31] = 1;
    assert_true(cw_arp_parse(frame, sizeof(frame), &ipv4, mac));
    assert_int_equal(ipv4, 0x0a000001u);
    assert_memory_equal(mac, other, 6);
    for (uint32_t cut = 0; cut < sizeof(frame); cut++) {
        uint8_t *copy = malloc(cut + 1);
        memcpy(copy, frame, cut);
        assert_false(cw_arp_parse(copy, cut, &ipv4, mac));
        free(copy);
    }
    static const uint8_t fixed[] = {12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
    for (size_t i = 0; i < sizeof(fixed); i++) {
        frame[fixed[i]] ^= 0x40;
        assert_false(cw_arp_parse(frame, sizeof(frame), &ipv4, mac));
        frame[fixed[i]] ^= 0x40;
    }
    frame[22] |= 1; /* a group is nobody */
    assert_false(cw_arp_parse(frame, sizeof(frame), &ipv4, mac));
}

/* Nobody else gets the ports, and the kernel does not say that they are nobody's. */
static void ports_are_reserved(void **state)
{
    struct cw_reservation one, more, none;
    char error[200] = "";
    assert_int_equal(cw_reservation_open(INADDR_LOOPBACK, 0, 1, &one, error, sizeof(error)), CW_OK);
    assert_true(one.udp_port != 0);
    assert_int_equal(cw_reservation_open(INADDR_LOOPBACK, one.udp_port, 1, &none, error, sizeof(error)), CW_ERROR_BUSY);
    assert_non_null(strstr(error, "is taken"));
    assert_int_equal(cw_reservation_open(0x01020304u, 0, 1, &none, error, sizeof(error)), CW_ERROR_NOT_FOUND);
    int status = CW_ERROR_BUSY;
    for (uint16_t first = 50000; status == CW_ERROR_BUSY && first < 60000; first = (uint16_t)(first + 16)) {
        status = cw_reservation_open(INADDR_LOOPBACK, first, 16, &more, error, sizeof(error));
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
    cw_reservation_close(&one);
    cw_reservation_close(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_read),
        cmocka_unit_test(broken_tables_do_no_harm),
        cmocka_unit_test(replies_are_told_from_others),
        cmocka_unit_test(ports_are_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
