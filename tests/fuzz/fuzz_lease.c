/* What clients and the host's node say to each other, damaged, and frames of ranks: refused, or sound. CW_TEST_PACKETS
 * (100,000) of each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/node/packet.h"
#include "control/lease/lease_text.h"
#include "dataplane/base/random.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"
#include "dataplane/wire/wire.h"
#include "mcast/igmp.h"
#include "mcast/mld.h"
#include "tests/fuzz/fuzz_text.h"
#include "tests/test.h"

enum { WORD_MAX = 24, FRAME_MAX = 128 };

static uint64_t rounds(void)
{
    return test_count("CW_TEST_PACKETS", 100000);
}

/* A number or a word for what was there. */
static size_t word_replace(struct cw_random *random, char *text, size_t length, size_t room)
{
    static const char *const words[] = {
        "0",   "1",     "64",    "65", "65535", "65536", "4294967296", "18446744073709551616",
        "-1",  "",      "=",     ",",  " ",     "-",     "::1",        "10.0.0.1",
        "0.0", "lease", "hops ", "\"", "ports="};
    size_t at = (size_t)cw_random_below(random, length);
    return fuzz_text_splice(text, length, room, at, 1 + (size_t)cw_random_below(random, 8),
                            words[cw_random_below(random, sizeof(words) / sizeof(words[0]))]);
}

static void damage(struct cw_random *random, char line[CW_LEASE_LINE_BYTES])
{
    size_t length = strlen(line);
    for (uint64_t wounds = cw_random_below(random, 4); wounds > 0 && length > 0; wounds--) {
        length = fuzz_text_damage(random, line, length, CW_LEASE_LINE_BYTES, 6, word_replace);
        line[length] = 0;
    }
}

/* Whatever is read writes a line that reads as the same. */
static void request_check(const char *line)
{
    char error[256] = "", again[CW_LEASE_LINE_BYTES];
    struct cw_lease_request request, other;
    int status = cw_lease_read(line, &request, error, sizeof(error));
    if (status != CW_OK) {
        assert_true(status == CW_ERROR_ARGUMENT || status == CW_ERROR_UNSUPPORTED);
        assert_true(error[0] != 0);
        return;
    }
    if (request.ask == CW_LEASE_LEASE) {
        assert_in_range(request.ports, 1, CW_LEASE_PORTS_MAX);
        assert_true(strpbrk(request.job, " \"\\\n") == NULL && memchr(request.job, 0, sizeof(request.job)) != NULL);
    }
    assert_in_range(request.hop_count, 0, CW_LEASE_HOPS_MAX);
    cw_lease_request_write(&request, again);
    assert_int_equal(cw_lease_read(again, &other, error, sizeof(error)), CW_OK);
    assert_memory_equal(&request, &other, sizeof(request));
}

static void test_requests(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 1);
    uint64_t count = rounds();
    for (uint64_t i = 0; i < count; i++) {
        static const char *const lines[] = {"hello 3", "status",
                                            "lease ports=34 first=29400 rank=7 memory=5 job=causeway-1234",
                                            "hops 10.0.0.2,fd77::1,10.0.0.3"};
        char line[CW_LEASE_LINE_BYTES];
        snprintf(line, sizeof(line), "%s", lines[i % 4]);
        damage(&random, line);
        request_check(line);
    }
    struct cw_lease_request request;
    char error[256];
    memset(&request, 0, sizeof(request)); /* the most that a line may say */
    char line[CW_LEASE_LINE_BYTES] = "hops ";
    for (uint32_t i = 0; i < CW_LEASE_HOPS_MAX; i++) {
        strcat(line, i > 0 ? ",ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255" : "::1");
    }
    assert_int_equal(cw_lease_read(line, &request, error, sizeof(error)), CW_OK);
    assert_int_equal(request.hop_count, CW_LEASE_HOPS_MAX);
    strcat(line, ",::1");
    assert_int_equal(cw_lease_read(line, &request, error, sizeof(error)), CW_ERROR_ARGUMENT);
}

static void test_answers(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 2);
    uint64_t count = rounds();
    for (uint64_t i = 0; i < count; i++) {
        const struct cw_lease_nic whole = {.ip = cw_ip_v4(0x0a000001 + (uint32_t)i),
                                           .bits = (uint8_t)cw_random_below(&random, 129),
                                           .mac = {2, 0, 0, 0, 0, (uint8_t)i},
                                           .mtu_bytes = CW_PORT_MTU_MIN + (uint32_t)cw_random_below(&random, 9000),
                                           .rate_bps = cw_random_next(&random) >> 1,
                                           .reports = i % 2 != 0};
        struct cw_lease_nic nic;
        char line[CW_LEASE_LINE_BYTES];
        memset(&nic, 0, sizeof(nic));
        cw_lease_nic_write(&whole, line);
        assert_true(cw_lease_nic_read(line, &nic));
        assert_true(cw_ip_is_equal(&nic.ip, &whole.ip) && nic.bits == whole.bits && nic.mtu_bytes == whole.mtu_bytes);
        assert_true(memcmp(nic.mac, whole.mac, 6) == 0 && nic.rate_bps == whole.rate_bps &&
                    nic.reports == whole.reports);
        damage(&random, line);
        if (cw_lease_nic_read(line, &nic)) {
            assert_in_range(nic.mtu_bytes, CW_PORT_MTU_MIN, CW_PORT_MTU_MAX);
            assert_in_range(nic.bits, 0, 128);
        }
        snprintf(line, sizeof(line), "hops ");
        cw_lease_hop_write(whole.mac, line);
        cw_lease_hop_write(NULL, line);
        damage(&random, line);
        const char *at = line + (strlen(line) < 5 ? strlen(line) : 5);
        uint8_t mac[6];
        bool is_known;
        for (int hop = 0; hop < 4 && cw_lease_hop_read(&at, mac, &is_known); hop++) {
        }
        assert_true(at <= line + strlen(line));
    }
}

/* In memory of its own length, so that the sanitizer sees who reads on. What is taken for a rank's packet lies within
 * the frame. */
static void test_packets(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 3);
    uint64_t count = rounds(), udp = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t length = (uint32_t)cw_random_below(&random, FRAME_MAX);
        uint8_t *frame = malloc(length + 1);
        assert_non_null(frame);
        for (uint32_t k = 0; k < length; k++) {
            frame[k] = (uint8_t)cw_random_next(&random);
        }
        bool is_v6 = cw_random_below(&random, 2) == 0;
        const uint8_t v4[] = {0x08, 0x00, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 17},
                      v6[] = {0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 17};
        size_t head = is_v6 ? sizeof(v6) : sizeof(v4);
        if (length >= 12 + head) {
            memcpy(frame + 12, is_v6 ? v6 : v4, head);
            frame[12 + cw_random_below(&random, head)] ^= (uint8_t)(cw_random_below(&random, 3) == 0 ? 1 << i % 8 : 0);
        }
        if (length >= 62 && cw_random_below(&random, 4) != 0) { /* most are sound from end to end */
            uint8_t *ip = frame + 14, *header = ip + (is_v6 ? 40 : 20);
            frame[0] &= 0xfe;
            ip[is_v6 ? 8 : 12] = ip[is_v6 ? 24 : 16] = 10;
            header[4] = 0;
            header[5] = (uint8_t)(8 + cw_random_below(&random, 14)); /* up to 20 bytes of payload, and one too many */
        }
        const struct node_packet packet = node_packet_read(frame, length);
        if (packet.kind == NODE_PACKET_UDP) {
            uint32_t at = 14 + (frame[12] == 8 ? 20 : 40);
            assert_true(at + 8 <= length && packet.is_v4 == (frame[12] == 8));
            assert_ptr_equal(packet.from, frame + 14 + (packet.is_v4 ? 12 : 8));
            assert_ptr_equal(packet.to, frame + 14 + (packet.is_v4 ? 16 : 24));
            assert_int_equal(packet.from_port, frame[at] << 8 | frame[at + 1]);
            assert_int_equal(packet.to_port, frame[at + 2] << 8 | frame[at + 3]);
            assert_true(packet.bytes <= length && (packet.is_group == (frame[0] & 1)));
            udp++;
        }
        struct node_report report;
        const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
        const struct cw_ip own = cw_ip_v4(0x0a000001);
        assert_false(node_report_read(frame, length, mac, &own, &report));
        free(frame);
    }
    assert_true(udp > count / 10);
}

/* The reports that ranks write are read, and no other: neither with one bit changed, nor of another host, nor of a group that
 * routers use. */
static void test_reports(void **state)
{
    const uint8_t mac[6] = {2, 0, 0, 0, 0, 1}, other[6] = {2, 0, 0, 0, 0, 2};
    const struct cw_ip ips[] = {cw_ip_v4(0x0a000001), {{0xfd, 0x77, [15] = 1}}};
    for (uint32_t kind = 0; kind < 4; kind++) {
        bool is_v6 = kind % 2 != 0, has_left = kind / 2 != 0;
        uint32_t ipv4 = 0xef0a0b00 + kind, length = is_v6 ? CW_MCAST_MLD_BYTES : CW_MCAST_IGMP_BYTES;
        const struct cw_ip *own = &ips[is_v6], group = cw_wire_group(ipv4, is_v6);
        uint8_t frame[CW_MCAST_MLD_BYTES + 1] = {0}, group_mac[6];
        struct node_report report;
        if (is_v6) {
            cw_mcast_mld_write(frame, mac, &group, has_left);
        } else {
            cw_mcast_igmp_write(frame, mac, cw_ip_to_v4(own), ipv4, has_left);
        }
        cw_wire_group_mac(&group, group_mac);
        assert_true(node_report_read(frame, length, mac, own, &report));
        assert_memory_equal(report.group, group_mac, sizeof(group_mac));
        assert_int_equal(report.has_left, has_left);
        assert_false(node_report_read(frame, length, other, own, &report));
        assert_false(node_report_read(frame, length, mac, &ips[!is_v6], &report));
        assert_false(node_report_read(frame, length - 1, mac, own, &report));
        assert_false(node_report_read(frame, length + 1, mac, own, &report));
        assert_int_equal(node_packet_read(frame, length).kind, NODE_PACKET_OTHER);
        for (uint32_t bit = 0; bit < 8 * length; bit++) {
            frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_false(node_report_read(frame, length, mac, own, &report));
            frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    uint8_t frame[CW_MCAST_IGMP_BYTES];
    struct node_report report;
    cw_mcast_igmp_write(frame, mac, 0x0a000001, 0xe0000001, false); /* all hosts */
    assert_false(node_report_read(frame, sizeof(frame), mac, &ips[0], &report));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_reports),
    };
    return cmocka_run_group_tests_name("fuzz_lease", tests, NULL, NULL);
}
