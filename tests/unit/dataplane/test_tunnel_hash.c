/* Tunnel hash: one flow, one stream; other flows, other ones; with any headers in between, and truncated at any
 * place. */
#include "dataplane/base/random.h"
#include "dataplane/tunnel/hash.h"
#include "tests/test.h"

enum { ROOM = 256 };

/* A frame that grows by headers. */
struct frame {
    uint32_t length;
    uint8_t bytes[ROOM];
};

static void add(struct frame *frame, const uint8_t *bytes, uint32_t count)
{
    assert_true(frame->length + count <= ROOM);
    if (count > 0) {
        memcpy(frame->bytes + frame->length, bytes, count);
    }
    frame->length += count;
}

static void ethernet(struct frame *frame)
{
    static const uint8_t macs[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
    frame->length = 0;
    add(frame, macs, sizeof(macs));
}

static void type(struct frame *frame, uint16_t number)
{
    add(frame, (const uint8_t[]){(uint8_t)(number >> 8), (uint8_t)number}, 2);
}

static void vlan(struct frame *frame, uint16_t kind, uint16_t tag)
{
    type(frame, kind);
    type(frame, tag);
}

/* Header and 8 bytes of the payload: ports and the rest. */
static void ipv4(struct frame *frame, uint8_t protocol, uint16_t fragment, uint8_t host, uint16_t port)
{
    const uint8_t header[20] = {0x45,
                                0,
                                0,
                                28,
                                (uint8_t)port,
                                1,
                                (uint8_t)(fragment >> 8),
                                (uint8_t)fragment,
                                64,
                                protocol,
                                0,
                                0,
                                10,
                                0,
                                0,
                                host,
                                10,
                                0,
                                1,
                                1};
    type(frame, 0x0800);
    add(frame, header, sizeof(header));
    add(frame, (const uint8_t[]){(uint8_t)(port >> 8), (uint8_t)port, 0, 80, 1, 2, 3, 4}, 8);
}

static void ipv6(struct frame *frame, const uint8_t *extensions, uint32_t extension_bytes, uint8_t first, uint8_t host,
                 uint16_t port)
{
    uint8_t header[40] = {0x60, 0, 0, 0, 0, 8, first, 64, [8] = 0xfd, [23] = host, [24] = 0xfd, [39] = 9};
    type(frame, 0x86dd);
    add(frame, header, sizeof(header));
    add(frame, extensions, extension_bytes);
    add(frame, (const uint8_t[]){(uint8_t)(port >> 8), (uint8_t)port, 0, 80, 1, 2, 3, 4}, 8);
}

static uint64_t hash(const struct frame *frame)
{
    return cw_tunnel_hash(frame->bytes, frame->length);
}

static uint64_t of_ipv4(uint8_t protocol, uint16_t fragment, uint8_t host, uint16_t port)
{
    struct frame frame;
    ethernet(&frame);
    ipv4(&frame, protocol, fragment, host, port);
    return hash(&frame);
}

static void ipv4_by_addresses_protocol_and_ports(void **state)
{
    uint64_t one = of_ipv4(6, 0x4000, 1, 1000); /* "don't fragment" is no fragment */
    assert_int_equal(of_ipv4(6, 0, 1, 1000), one);
    assert_int_not_equal(of_ipv4(17, 0, 1, 1000), one);
    assert_int_not_equal(of_ipv4(6, 0, 2, 1000), one);
    assert_int_not_equal(of_ipv4(6, 0, 1, 1001), one);
    assert_int_equal(of_ipv4(1, 0, 1, 1000), of_ipv4(1, 0, 1, 1001)); /* ICMP has no ports */
    struct frame frame;
    ethernet(&frame);
    ipv4(&frame, 6, 0, 1, 1000);
    frame.bytes[0] = 4;              /* by another router */
    frame.bytes[14 + 8] = 3;         /* nearer */
    frame.bytes[frame.length - 1]++; /* the bytes after the ports */
    assert_int_equal(hash(&frame), one);
}

static void fragments_go_together(void **state)
{
    uint64_t first = of_ipv4(17, 0x2000, 1, 1000); /* more to come */
    assert_int_equal(of_ipv4(17, 0x2001, 1, 7), first);
    assert_int_equal(of_ipv4(17, 0x0002, 1, 9), first); /* the last one */
    assert_int_not_equal(of_ipv4(17, 0x2000, 2, 1000), first);
    const uint8_t start[8] = {17, 0, 0, 1, 0, 0, 0, 7};
    const uint8_t end[8] = {17, 0, 2, 0, 0, 0, 0, 7};
    struct frame a, b;
    ethernet(&a);
    ipv6(&a, start, 8, 44, 1, 1000);
    ethernet(&b);
    ipv6(&b, end, 8, 44, 1, 5);
    assert_int_equal(hash(&a), hash(&b));
}

static void ipv6_behind_extension_headers(void **state)
{
    const uint8_t extensions[24] = {60, 0, [8] = 6, 1}; /* hop by hop, 8 bytes; destination, 16 bytes; then TCP */
    struct frame plain, extended, other;
    ethernet(&plain);
    ipv6(&plain, NULL, 0, 6, 1, 1000);
    ethernet(&extended);
    ipv6(&extended, extensions, sizeof(extensions), 0, 1, 1000);
    assert_int_equal(hash(&plain), hash(&extended));
    ethernet(&other);
    ipv6(&other, extensions, sizeof(extensions), 0, 1, 1001);
    assert_int_not_equal(hash(&other), hash(&plain));
    ethernet(&other);
    ipv6(&other, NULL, 0, 6, 2, 1000);
    assert_int_not_equal(hash(&other), hash(&plain));
}

static void vlans_are_networks(void **state)
{
    struct frame frames[5];
    for (uint32_t i = 0; i < 5; i++) {
        ethernet(&frames[i]);
    }
    vlan(&frames[1], 0x8100, 5);
    vlan(&frames[2], 0x8100, 0xe005); /* another priority */
    vlan(&frames[3], 0x8100, 6);
    vlan(&frames[4], 0x88a8, 5);
    vlan(&frames[4], 0x8100, 6);
    for (uint32_t i = 0; i < 5; i++) {
        ipv4(&frames[i], 6, 0, 1, 1000);
    }
    assert_int_equal(hash(&frames[1]), hash(&frames[2]));
    for (uint32_t i = 0; i < 5; i++) {
        for (uint32_t j = i + 1; j < 5; j++) {
            assert_true((hash(&frames[i]) == hash(&frames[j])) == (i == 1 && j == 2));
        }
    }
    frames[1].bytes[frames[1].length - 7]++; /* a port behind the tag */
    assert_int_not_equal(hash(&frames[1]), hash(&frames[2]));
}

static void others_by_their_macs(void **state)
{
    struct frame a, b;
    ethernet(&a);
    type(&a, 0x0806);
    b = a;
    add(&a, (const uint8_t[]){1, 2, 3, 4}, 4);
    add(&b, (const uint8_t[]){5, 6}, 2);
    assert_int_equal(hash(&a), hash(&b));
    b.bytes[5]++;
    assert_int_not_equal(hash(&a), hash(&b));
}

/* Every flow has one of the streams, and each stream about as many flows. */
static void streams_share_evenly(void **state)
{
    uint32_t counts[4] = {0};
    for (uint16_t port = 0; port < 4000; port++) {
        uint32_t stream = cw_tunnel_stream_of(of_ipv4(6, 0, 1, port), 4);
        assert_true(stream < 4);
        counts[stream]++;
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_in_range(counts[i], 850, 1150);
    }
    assert_int_equal(cw_tunnel_stream_of(UINT64_MAX, 1), 0);
}

/* Cut off anywhere, and of random bytes: memory of just that size, which a sanitizer watches. */
static void nothing_is_read_beyond_the_frame(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 1);
    for (int round = 0; round < 20000; round++) {
        struct frame frame;
        uint8_t extensions[64];
        ethernet(&frame);
        cw_random_fill(&random, extensions, sizeof(extensions));
        extensions[0] = (uint8_t)(cw_random_chance(&random, 0.5) ? 60 : extensions[0]);
        extensions[1] &= 3;
        for (uint64_t tags = cw_random_below(&random, 4); tags > 0; tags--) {
            vlan(&frame, 0x8100, (uint16_t)cw_random_next(&random));
        }
        if (cw_random_chance(&random, 0.5)) {
            static const uint8_t kinds[] = {0, 43, 44, 60, 6, 17};
            ipv6(&frame, extensions, (uint32_t)cw_random_below(&random, 64), kinds[cw_random_below(&random, 6)], 1, 1);
        } else {
            ipv4(&frame, 6, 0, 1, 1);
            frame.bytes[14] = (uint8_t)(0x40 | cw_random_below(&random, 16));
        }
        uint32_t length = (uint32_t)cw_random_below(&random, frame.length + 1);
        uint8_t *exact = malloc(length + 1);
        memcpy(exact + 1, frame.bytes, length);
        uint64_t before = cw_tunnel_hash(exact + 1, length);
        assert_int_equal(cw_tunnel_hash(exact + 1, length), before);
        free(exact);
    }
}

int main(void)
{
    return TESTS_RUN(ipv4_by_addresses_protocol_and_ports, fragments_go_together, ipv6_behind_extension_headers,
                     vlans_are_networks, others_by_their_macs, streams_share_evenly, nothing_is_read_beyond_the_frame);
}
