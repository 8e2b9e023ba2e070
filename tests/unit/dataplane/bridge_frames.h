/* Shared by the tests of the bridge: input frames, and the ports that they leave by. */
#pragma once

#include "dataplane/fabric/bridge.h"
#include "tests/test.h"

enum { PORTS = 6 };

static const uint64_t SECOND = 1000000000u;
static const uint32_t GROUP = 0xef010203; /* 239.1.2.3 */

/* ---- frames ---- */

struct frame {
    uint8_t bytes[1514];
    uint32_t length;
};

static inline void put16(uint8_t *bytes, uint32_t value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

static inline void put32(uint8_t *bytes, uint32_t value)
{
    put16(bytes, value >> 16);
    put16(bytes + 2, value & 0xffff);
}

static inline void mac_of(uint8_t mac[6], uint32_t host)
{
    mac[0] = 2;
    mac[1] = 0;
    put32(mac + 2, host);
}

static inline void group_mac_of(uint8_t mac[6], uint32_t group)
{
    mac[0] = 1;
    mac[1] = 0;
    put32(mac + 2, 0x5e000000 | (group & 0x7fffff));
}

static inline struct frame unicast(uint32_t from, uint32_t to)
{
    struct frame frame = {.length = 60};
    mac_of(frame.bytes, to);
    mac_of(frame.bytes + 6, from);
    put16(frame.bytes + 12, 0x88b5);
    return frame;
}

static inline void checksum_set(uint8_t *bytes, uint32_t length, uint32_t at)
{
    uint32_t sum = 0;
    put16(bytes + at, 0);
    for (uint32_t i = 0; i < length; i += 2) {
        sum += (uint32_t)bytes[i] << 8 | (i + 1 < length ? bytes[i + 1] : 0u);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    put16(bytes + at, ~sum & 0xffff);
}

/* An IPv4 frame to a multicast address, `payload_bytes` of payload still to be written behind byte 34. */
static inline struct frame ipv4(uint32_t from, uint32_t to, uint8_t protocol, uint32_t payload_bytes)
{
    struct frame frame = {.length = 34 + payload_bytes};
    uint8_t *ip = frame.bytes + 14;
    group_mac_of(frame.bytes, to);
    mac_of(frame.bytes + 6, from);
    put16(frame.bytes + 12, 0x0800);
    ip[0] = 0x45;
    put16(ip + 2, 20 + payload_bytes);
    ip[9] = protocol;
    put32(ip + 12, 0x0a000000 | from);
    put32(ip + 16, to);
    return frame;
}

static inline struct frame igmp_v2(uint32_t from, uint8_t type, uint32_t group)
{
    struct frame frame = ipv4(from, type == 0x16 ? group : 0xe0000002, 2, 8);
    frame.bytes[34] = type;
    put32(frame.bytes + 38, group);
    checksum_set(frame.bytes + 34, 8, 2);
    return frame;
}

static inline struct frame igmp_query(uint32_t from)
{
    struct frame frame = ipv4(from, 0xe0000001, 2, 8);
    frame.bytes[34] = 0x11;
    checksum_set(frame.bytes + 34, 8, 2);
    return frame;
}

struct record {
    uint8_t type;
    uint32_t source_count;
    uint32_t group;
};

static inline struct frame igmp_v3(uint32_t from, const struct record *records, uint32_t count)
{
    uint32_t bytes = 8, at = 42;
    struct frame frame;
    for (uint32_t i = 0; i < count; i++) {
        bytes += 8 + 4 * records[i].source_count;
    }
    frame = ipv4(from, 0xe0000016, 2, bytes);
    frame.bytes[34] = 0x22;
    put16(frame.bytes + 40, count);
    for (uint32_t i = 0; i < count; i++) {
        frame.bytes[at] = records[i].type;
        put16(frame.bytes + at + 2, records[i].source_count);
        put32(frame.bytes + at + 4, records[i].group);
        at += 8 + 4 * records[i].source_count;
    }
    checksum_set(frame.bytes + 34, bytes, 2);
    return frame;
}

/* ---- the bridge ---- */

/* Of the test that runs; made again, the one before ends. */
static struct cw_bridge *bridge;

static inline int bridge_end(void **state)
{
    cw_bridge_destroy(bridge);
    bridge = NULL;
    return 0;
}

static inline void bridge_make(uint32_t addresses, uint32_t groups, bool flood)
{
    struct cw_bridge_config config;
    (void)bridge_end(NULL);
    cw_bridge_config_init(&config);
    config.port_count = PORTS;
    config.address_count_max = addresses;
    config.group_count_max = groups;
    config.flood_unregistered = flood;
    config.hash_seed = 99;
    assert_int_equal(cw_bridge_create(&config, &bridge), CW_OK);
}

/* The ports the frame goes out of, as bits. A copy of exactly its length lets ASan see any read beyond it. */
static inline uint64_t forward(uint64_t now_ns, uint32_t port, const struct frame *frame)
{
    uint16_t ports[PORTS];
    uint8_t *exact = test_malloc(frame->length + 1);
    uint64_t bits = 0;
    uint32_t count;
    memcpy(exact + 1, frame->bytes, frame->length); /* unaligned, too */
    count = cw_bridge_forward(bridge, now_ns, port, exact + 1, frame->length, ports);
    test_free(exact);
    assert_true(count < PORTS);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(ports[i] < PORTS && ports[i] != port && (bits >> ports[i] & 1) == 0);
        bits |= 1ull << ports[i];
    }
    return bits;
}

#define FORWARD(now_ns, port, ...) forward(now_ns, port, &(struct frame[]){__VA_ARGS__}[0])
#define PORT(n)                    (1ull << (n))
#define ALL_BUT(n)                 (((1ull << PORTS) - 1) & ~PORT(n))
