/* Frames that a rank hands to `causeway node`. The node accepts a datagram with its addresses within the frame, and a
 * membership report that is, byte for byte, one that mcast/ writes for a host with the rank's addresses. */
#include "tests/fuzz/fuzz.h"

#include "apps/node/packet.h"
#include "dataplane/wire/wire.h"
#include "mcast/igmp.h"
#include "mcast/mld.h"

enum { FRAME_MAX = 128, UDP_BYTES = 80, REPORTS = 4, ALL_HOSTS = REPORTS, UDP_V4, UDP_V6, SEEDS };

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static const struct cw_ip ips[] = {{{[10] = 0xff, 0xff, 10, 0, 0, 1}}, {{0xfd, 0x77, [15] = 1}}};
static uint64_t datagrams, reports[REPORTS];

static size_t report_write(uint8_t *frame, bool is_v6, uint32_t group_ipv4, const struct cw_ip *group, bool has_left)
{
    memset(frame, 0, FRAME_MAX);
    if (is_v6) {
        cw_mcast_mld_write(frame, mac, group, has_left);
        return CW_MCAST_MLD_BYTES;
    }
    cw_mcast_igmp_write(frame, mac, cw_ip_to_v4(&ips[0]), group_ipv4, has_left);
    return CW_MCAST_IGMP_BYTES;
}

static size_t seed(uint32_t index, uint8_t *frame)
{
    static const uint8_t v4[] = {0x08, 0x00, 0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};
    static const uint8_t v6[] = {0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 17, 64};
    if (index <= ALL_HOSTS) {
        uint32_t ipv4 = index == ALL_HOSTS ? 0xe0000001 : 0xef0a0b00 + index;
        struct cw_ip group = cw_wire_group(ipv4, true);
        return report_write(frame, index % 2 != 0, ipv4, &group, index / 2 == 1);
    }
    memset(frame, 0, UDP_BYTES);
    memcpy(frame + 12, index == UDP_V4 ? v4 : v6, index == UDP_V4 ? sizeof(v4) : sizeof(v6));
    if (index == UDP_V6) {
        frame[22] = frame[38] = 0xfd;
    }
    frame[index == UDP_V4 ? 39 : 59] = 20; /* UDP with 12 bytes of payload */
    return index < SEEDS ? UDP_BYTES : 0;
}

static void datagram_check(const struct node_packet *packet, const uint8_t *frame, uint32_t length)
{
    uint32_t at = 14 + (frame[12] == 8 ? 20 : 40);
    assert_true(at + 8 <= length && packet->is_v4 == (frame[12] == 8));
    assert_ptr_equal(packet->from, frame + 14 + (packet->is_v4 ? 12 : 8));
    assert_ptr_equal(packet->to, frame + 14 + (packet->is_v4 ? 16 : 24));
    assert_int_equal(packet->from_port, frame[at] << 8 | frame[at + 1]);
    assert_int_equal(packet->to_port, frame[at + 2] << 8 | frame[at + 3]);
    assert_true(packet->bytes <= length && packet->is_group == (frame[0] & 1));
}

static void report_check(const struct node_report *report, const uint8_t *frame, uint32_t length, bool is_v6)
{
    uint8_t again[FRAME_MAX], group_mac[6];
    struct cw_ip group = cw_ip_v4(0);
    memcpy(group.bytes + (is_v6 ? 0 : 12), frame + (is_v6 ? 70 : 42), is_v6 ? 16 : 4);
    assert_int_equal(report_write(again, is_v6, cw_ip_to_v4(&group), &group, report->has_left), length);
    assert_memory_equal(again, frame, length);
    cw_wire_group_mac(&group, group_mac);
    assert_memory_equal(report->group, group_mac, sizeof(group_mac));
    assert_false(!is_v6 && group.bytes[12] == 224 && group.bytes[13] == 0 && group.bytes[14] == 0);
    reports[2 * report->has_left + is_v6]++;
}

int LLVMFuzzerTestOneInput(const uint8_t *frame, size_t size)
{
    uint32_t length = (uint32_t)size;
    const struct node_packet packet = node_packet_read(frame, length);
    bool is_report = false;
    for (int is_v6 = 0; is_v6 < 2; is_v6++) {
        struct node_report report;
        if (node_report_read(frame, length, mac, &ips[is_v6], &report)) {
            report_check(&report, frame, length, is_v6);
            is_report = true;
        }
    }
    if (packet.kind == NODE_PACKET_UDP) {
        datagram_check(&packet, frame, length);
        datagrams++;
        assert_false(is_report);
    }
    return 0;
}

static void end(uint64_t inputs)
{
    assert_true(datagrams > inputs / 20);
    for (uint32_t kind = 0; kind < REPORTS; kind++) {
        assert_true(reports[kind] > inputs / 100);
    }
}

const struct fuzz_target fuzz_target = {.seed = seed, .bytes_max = FRAME_MAX, .packets = 1, .end = end};
