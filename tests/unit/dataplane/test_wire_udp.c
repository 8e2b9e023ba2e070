/* The UDP checksum of packets over IPv4 and IPv6, right and wrong. */
#include <arpa/inet.h>

#include "dataplane/wire/wire.h"
#include "tests/test.h"

enum { FRAME_BYTES = 200, PAYLOAD_BYTES = 24, PORT = 29300 };

/* A packet to 10.0.0.2, or fd77::2; returns its length. */
static uint32_t packet_write(uint8_t *frame, bool is_v4)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
    const struct cw_ip from = is_v4 ? cw_ip_v4(0x0a000001) : (struct cw_ip){{0xfd, 0x77, [15] = 1}};
    const struct cw_wire_receiver receiver = {
        .ip = is_v4 ? cw_ip_v4(0x0a000002) : (struct cw_ip){{0xfd, 0x77, [15] = 2}}, .port = PORT, .own_port = PORT};
    struct cw_wire_outer outer;
    memset(frame, 0, FRAME_BYTES);
    cw_wire_outer_init(&outer, mac, &from);
    cw_wire_outer_write(&outer, &receiver, frame, PAYLOAD_BYTES);
    return outer.bytes + (uint32_t)CW_WIRE_HEADER_BYTES + PAYLOAD_BYTES;
}

/* The UDP checksum of a frame is right, and with any bit turned over that it covers it is not. */
static void check_udp_checksum(uint8_t *frame, uint32_t length, bool is_v4)
{
    uint32_t network = is_v4 ? CW_WIRE_NETWORK_BYTES : CW_WIRE_NETWORK_V6_BYTES;
    const struct cw_wire_header *header = (const struct cw_wire_header *)(frame + network);
    for (uint32_t i = network; i < length; i++) {
        frame[i] = frame[i] == 0 ? (uint8_t)(i * 7) : frame[i];
    }
    cw_wire_udp_checksum_store(frame, 0, is_v4);
    assert_false(cw_wire_udp_checksum_present(header));
    uint16_t checksum = cw_wire_udp_checksum(frame, length, is_v4);
    cw_wire_udp_checksum_store(frame, checksum, is_v4);
    assert_true(cw_wire_udp_checksum_present(header) && cw_wire_udp_checksum_right(header, is_v4));
    assert_int_equal(cw_wire_udp_checksum(frame, length, is_v4), checksum); /* the stored value does not count */
    for (uint32_t bit = 8 * network; bit < 8 * length; bit++) {
        frame[bit / 8] = (uint8_t)(frame[bit / 8] ^ 1u << bit % 8);
        assert_false(cw_wire_udp_checksum_right(header, is_v4));
        frame[bit / 8] = (uint8_t)(frame[bit / 8] ^ 1u << bit % 8);
    }
    for (uint32_t bit = 0; bit < 16; bit++) { /* as a trial has it */
        cw_wire_udp_checksum_store(frame, (uint16_t)(checksum ^ 1u << bit), is_v4);
        assert_false(cw_wire_udp_checksum_right(header, is_v4));
    }
}

static void test_udp_checksums(void **state)
{
    uint8_t frame[FRAME_BYTES];
    check_udp_checksum(frame, packet_write(frame, true), true);
    check_udp_checksum(frame, packet_write(frame, false), false);
    /* computed by hand: 10.0.0.1:1 to 10.0.0.2:2, "a" */
    static const uint8_t known[] = {[23] = 17, [26] = 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 9, 0, 0, 'a'};
    uint16_t checksum = cw_wire_udp_checksum(known, sizeof(known), true);
    uint32_t sum = 0x0a00 + 1 + 0x0a00 + 2 + 17 + 9 + 1 + 2 + 9 + 0x6100;
    assert_int_equal(htons(checksum), ~sum & 0xffff);
}

int main(void)
{
    return TESTS_RUN(test_udp_checksums);
}
