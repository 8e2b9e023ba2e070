/* The packet format: known vectors, written packets are read, and malformed ones are rejected. */
#include "dataplane/base/random.h"
#include "dataplane/wire/sealed.h"
#include "dataplane/wire/tags.h"
#include "dataplane/wire/wire.h"
#include "tests/test.h"

enum { FRAME_BYTES = 200, PAYLOAD_BYTES = 24, OWN_IPV4 = 0x0a000002, OWN_PORT = 29300 };

static void sip_rounds(uint64_t v[4], int count)
{
    for (int i = 0; i < count; i++) {
        v[0] += v[1], v[1] = v[1] << 13 | v[1] >> 51, v[1] ^= v[0], v[0] = v[0] << 32 | v[0] >> 32;
        v[2] += v[3], v[3] = v[3] << 16 | v[3] >> 48, v[3] ^= v[2];
        v[0] += v[3], v[3] = v[3] << 21 | v[3] >> 43, v[3] ^= v[0];
        v[2] += v[1], v[1] = v[1] << 17 | v[1] >> 47, v[1] ^= v[2], v[2] = v[2] << 32 | v[2] >> 32;
    }
}

/* SipHash-c-d of 32 bytes, step by step as its paper has it (section 2). */
static uint64_t sip_hash(int c, int d, const uint8_t bytes[32], const uint8_t key[16])
{
    uint64_t k[2], v[4];
    memcpy(k, key, sizeof(k));
    memcpy(v, "uespemosmodnarodarenegylsetybdet", sizeof(v));
    for (int i = 0; i < 4; i++) {
        v[i] ^= k[i % 2];
    }
    for (int i = 0; i < 5; i++) {
        uint64_t word = 32ull << 56;
        if (i < 4) {
            memcpy(&word, bytes + 8 * i, sizeof(word));
        }
        v[3] ^= word;
        sip_rounds(v, c);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    sip_rounds(v, d);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The bytes 0 .. 31 under the key 0 .. 15. Its authors' vectors are of SipHash-2-4 (64-bit output, length 32); the
 * steps above that give that one give SipHash-1-3, too. */
static void test_tag_vector(void **state)
{
    struct cw_wire_header header;
    uint8_t bytes[sizeof(header)] = {0};
    for (uint8_t i = 0; i < 32; i++) {
        bytes[i] = i;
    }
    memcpy(&header, bytes, sizeof(header));
    struct cw_wire_key key;
    for (uint8_t i = 0; i < 16; i++) {
        key.bytes[i] = i;
    }
    /* bytes 4 .. 7 are `flow`, replaced by the high half of the number */
    uint64_t tag = cw_wire_tag(&header, 0x07060504, &key);
    assert_true(sip_hash(2, 4, bytes, key.bytes) == 0x7127512f72f27cceull);
    assert_true(tag == sip_hash(1, 3, bytes, key.bytes));
    header.flow = 99; /* not covered: the key represents it */
    assert_true(cw_wire_tag(&header, 0x07060504, &key) == tag);
    assert_true(cw_wire_tag(&header, 0x07060505, &key) != tag);
}

/* Bit by bit, as RFC 3720 defines it, of bytes behind others with this checksum. */
static uint32_t checksum_by_bits(uint32_t checksum, const uint8_t *data, size_t bytes)
{
    uint32_t sum = ~checksum;
    for (size_t i = 0; i < bytes; i++) {
        sum ^= data[i];
        for (uint32_t bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ ((sum & 1) != 0 ? 0x82f63b78u : 0);
        }
    }
    return ~sum;
}

/* Of any length, at any address, behind any other bytes, with and without a copy. */
static void test_checksums_in_all_ways(void **state)
{
    enum { LENGTHS = 700, ROUNDS = 2000, LONG_MAX = 20000, EDGE = 64 };
    static uint8_t data[LONG_MAX + EDGE], target[EDGE + LONG_MAX + EDGE], before[sizeof(target)];
    struct cw_random random;
    assert_int_equal(checksum_by_bits(0, (const uint8_t *)"123456789", 9), 0xe3069283);
    cw_random_seed(&random, 11);
    cw_random_fill(&random, data, sizeof(data));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        size_t bytes = i < LENGTHS    ? i
                       : i % 100 == 0 ? cw_random_below(&random, LONG_MAX)
                                      : cw_random_below(&random, LENGTHS);
        size_t from = cw_random_below(&random, EDGE), to = cw_random_below(&random, EDGE);
        uint32_t first = (uint32_t)cw_random_next(&random), right = checksum_by_bits(first, data + from, bytes);
        assert_int_equal(cw_wire_checksum(first, data + from, bytes), right);
        for (enum cw_wire_checksum_way way = CW_WIRE_CHECKSUM_LIBRARY; way <= CW_WIRE_CHECKSUM_VECTORS; way++) {
            uint32_t checksum = first;
            if (!cw_wire_checksum_as(way, &checksum, NULL, data + from, bytes)) {
                assert_true(way != CW_WIRE_CHECKSUM_LIBRARY); /* this core has no such instructions */
                continue;
            }
            assert_int_equal(checksum, right);
            memset(target, (int)i, sizeof(target));
            memcpy(before, target, sizeof(target));
            memcpy(before + to, data + from, bytes);
            checksum = first;
            assert_true(cw_wire_checksum_as(way, &checksum, target + to, data + from, bytes));
            assert_int_equal(checksum, right);
            assert_memory_equal(target, before, sizeof(target));
        }
        memset(target, 0, sizeof(target));
        assert_int_equal(cw_wire_checksum_copy(first, target + to, data + from, bytes), right);
        assert_memory_equal(target + to, data + from, bytes);
    }
}

/* Any number of tags at once are the ones the library gives for each header alone. */
static void test_tags_of_many(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 7);
    for (uint32_t count = 0; count <= CW_WIRE_TAGS_MAX; count++) {
        static struct cw_wire_tags tags;
        struct cw_wire_header headers[CW_WIRE_TAGS_MAX];
        struct cw_wire_key keys[CW_WIRE_TAGS_MAX];
        uint32_t high[CW_WIRE_TAGS_MAX];
        cw_random_fill(&random, headers, sizeof(headers));
        cw_random_fill(&random, keys, sizeof(keys));
        cw_random_fill(&random, high, sizeof(high));
        tags.count = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t words[CW_WIRE_TAG_WORDS];
            uint64_t stored[CW_WIRE_TAG_WORDS];
            cw_wire_header_words(&headers[i], words);
            memcpy(stored, &headers[i], sizeof(stored));
            assert_memory_equal(words, stored, sizeof(stored));
            words[0] = (words[0] & UINT32_MAX) | (uint64_t)high[i] << 32;
            cw_wire_tags_add(&tags, words, &keys[i]);
        }
        for (enum cw_wire_tags_way way = CW_WIRE_TAGS_BEST; way <= CW_WIRE_TAGS_AVX512VL; way++) {
            memset(tags.value, 0, sizeof(tags.value));
            if (!cw_wire_tags_compute_as(&tags, way)) {
                assert_true(way >= CW_WIRE_TAGS_AVX2); /* this core has no such registers */
                continue;
            }
            for (uint32_t i = 0; i < count; i++) {
                assert_true(tags.value[i] == cw_wire_tag(&headers[i], high[i], &keys[i]));
            }
        }
        for (uint32_t i = 0; i < count; i++) {
            assert_true(cw_wire_tags_key_is(&tags, i, &keys[i]));
            keys[i].bytes[i % 16] ^= 1;
            assert_false(cw_wire_tags_key_is(&tags, i, &keys[i]));
        }
    }
}

static void test_keys_differ_by_direction_and_session(void **state)
{
    static const uint8_t job[16] = {1};
    static const uint8_t other[16] = {2};
    struct cw_wire_key keys[4];
    cw_wire_key_derive(&keys[0], job, 5, 6);
    cw_wire_key_derive(&keys[1], job, 6, 5);
    cw_wire_key_derive(&keys[2], job, 5, 7);
    cw_wire_key_derive(&keys[3], other, 5, 6);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = i + 1; k < 4; k++) {
            assert_memory_not_equal(&keys[i], &keys[k], sizeof(keys[0]));
        }
    }
}

static void test_numbers_expand_to_the_nearest(void **state)
{
    static const struct {
        uint64_t expected;
        uint32_t low;
        uint64_t number;
    } rows[] = {
        {5, 6, 6},
        {0xfffffffe, 0xffffffff, 0xffffffff},
        {0xfffffffe, 1, 0x100000001ull},
        {0x100000001ull, 0xfffffffe, 0xfffffffe},
        {0x7ffffffffull, 0, 0x800000000ull},
        {0x300000000ull, 0x7fffffff, 0x37fffffffull},
        {0x300000000ull, 0x80000000, 0x280000000ull},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(cw_wire_number_expand(rows[i].expected, rows[i].low) == rows[i].number);
    }
}

static const struct cw_ip own = {
    {[10] = 0xff, 0xff, OWN_IPV4 >> 24, OWN_IPV4 >> 16 & 255, OWN_IPV4 >> 8 & 255, OWN_IPV4 & 255}};

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};

static void network_write(uint8_t *frame, uint32_t to, uint16_t to_port, uint32_t payload_bytes)
{
    struct cw_wire_network *network = (struct cw_wire_network *)frame;
    cw_wire_network_init(network, mac, mac, 0x0a000001, to, OWN_PORT, to_port);
    cw_wire_network_finish(network, payload_bytes);
}

/* A good packet; returns its length. */
static uint32_t write_packet(uint8_t *frame)
{
    memset(frame, 0, FRAME_BYTES);
    network_write(frame, OWN_IPV4, OWN_PORT, PAYLOAD_BYTES);
    struct cw_wire_header *header = (struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
    header->version = CW_WIRE_VERSION;
    header->type = CW_WIRE_DATA;
    header->payload_bytes = PAYLOAD_BYTES;
    return CW_WIRE_OVERHEAD_BYTES + PAYLOAD_BYTES;
}

struct altered {
    uint32_t at;
    uint8_t value;
    enum cw_wire_verdict verdict;
};

/* A good packet is found, with padding of Ethernet, too; no shorter one is, and altered ones are detected. */
static void check_packets(uint32_t write(uint8_t *frame), const struct cw_ip *to, uint32_t network_bytes,
                          const struct altered *rows, size_t count)
{
    uint8_t frame[FRAME_BYTES];
    const struct cw_wire_header *header = NULL;
    uint32_t length = write(frame);
    for (uint32_t cut = 0; cut < length; cut++) {
        assert_int_equal(cw_wire_parse(frame, cut, to, OWN_PORT, 1, 0, &header), CW_WIRE_SHORT);
        assert_null(header);
    }
    for (uint32_t padding = 0; padding <= 30; padding += 30) {
        assert_int_equal(cw_wire_parse(frame, length + padding, to, OWN_PORT, 1, 0, &header), CW_WIRE_GOOD);
        assert_ptr_equal(header, frame + network_bytes);
    }
    for (size_t i = 0; i < count; i++) {
        length = write(frame);
        frame[rows[i].at] = rows[i].value;
        enum cw_wire_verdict verdict = cw_wire_parse(frame, length, to, OWN_PORT, 1, 0, &header);
        assert_true_msg(verdict == rows[i].verdict, "byte %u = %u: verdict %d, expected %d", rows[i].at, rows[i].value,
                        (int)verdict, (int)rows[i].verdict);
    }
}

static void test_packets_over_ipv4(void **state)
{
    static const struct altered rows[] = {
        {12, 0x86, CW_WIRE_FOREIGN}, /* ether type */
        {14, 0x46, CW_WIRE_FOREIGN}, /* IPv4 options */
        {20, 0x20, CW_WIRE_FOREIGN}, /* more fragments */
        {21, 0x01, CW_WIRE_FOREIGN}, /* fragment offset */
        {23, 6, CW_WIRE_FOREIGN},    /* TCP */
        {33, 3, CW_WIRE_FOREIGN},    /* another host */
        {37, 0, CW_WIRE_FOREIGN},    /* another port */
        {17, 200, CW_WIRE_SHORT},    /* IPv4 length beyond the frame */
        {17, 60, CW_WIRE_SHORT},     /* ... too short for a header */
        {39, 71, CW_WIRE_MALFORMED}, /* UDP length */
        {42, CW_WIRE_VERSION - 1, CW_WIRE_OTHER_VERSION},
        {42, 0, CW_WIRE_OTHER_VERSION},
        {44, CW_WIRE_ENCRYPTED, CW_WIRE_GOOD}, /* sealed: its lengths are known after opening */
        {45, 0x80, CW_WIRE_MALFORMED},         /* unknown flag */
        {68, PAYLOAD_BYTES + 1, CW_WIRE_MALFORMED},
        {69, 1, CW_WIRE_MALFORMED},
    };
    uint8_t frame[FRAME_BYTES];
    uint32_t sum = 0; /* the IPv4 header sums up to all ones (RFC 791) */
    check_packets(write_packet, &own, CW_WIRE_NETWORK_BYTES, rows, sizeof(rows) / sizeof(rows[0]));
    (void)write_packet(frame);
    for (uint32_t i = 14; i < 34; i += 2) {
        sum += (uint32_t)frame[i] << 8 | frame[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
}

/* Over IPv6: a good packet from fd77::1 to fd77::2, and its UDP checksum; returns its length. */
static const struct cw_ip own_v6 = {{0xfd, 0x77, [15] = 2}};

static uint32_t write_packet_v6(uint8_t *frame)
{
    const struct cw_ip from = {{0xfd, 0x77, [15] = 1}};
    const struct cw_wire_receiver receiver = {.ip = own_v6, .port = OWN_PORT, .own_port = OWN_PORT};
    struct cw_wire_outer outer;
    struct cw_wire_sum sum;
    memset(frame, 0, FRAME_BYTES);
    cw_wire_outer_init(&outer, mac, &from);
    cw_wire_outer_write(&outer, &receiver, frame, PAYLOAD_BYTES);
    struct cw_wire_header *header = (struct cw_wire_header *)(frame + CW_WIRE_NETWORK_V6_BYTES);
    header->version = CW_WIRE_VERSION;
    header->type = CW_WIRE_DATA;
    header->payload_bytes = PAYLOAD_BYTES;
    uint32_t length = CW_WIRE_NETWORK_V6_BYTES + CW_WIRE_HEADER_BYTES + PAYLOAD_BYTES;
    assert_true(cw_wire_udp_checksum_begin(&sum, frame, length));
    cw_wire_udp_checksum_set(&sum, frame);
    assert_false(cw_wire_udp_checksum_begin(&sum, frame, length)); /* it has one now */
    return length;
}

static enum cw_wire_verdict parse(const uint8_t *frame, uint32_t length, const struct cw_wire_header **header)
{
    return cw_wire_parse(frame, length, &own, OWN_PORT, 1, 0, header);
}

static void test_packets_over_ipv6(void **state)
{
    static const struct altered rows[] = {
        {12, 0x08, CW_WIRE_FOREIGN}, /* ether type */
        {14, 0x40, CW_WIRE_FOREIGN}, /* IP version */
        {15, 0xff, CW_WIRE_GOOD},    /* traffic class and flow label are others' */
        {20, 0, CW_WIRE_FOREIGN},    /* hop-by-hop options */
        {20, 44, CW_WIRE_FOREIGN},   /* a fragment */
        {53, 3, CW_WIRE_FOREIGN},    /* another host */
        {38, 0xff, CW_WIRE_FOREIGN}, /* a group: data is not sent to those */
        {57, 0, CW_WIRE_FOREIGN},    /* another port */
        {19, 200, CW_WIRE_SHORT},    /* length beyond the frame */
        {19, 47, CW_WIRE_SHORT},     /* ... too short for a header */
        {59, 71, CW_WIRE_MALFORMED}, /* UDP length */
        {62, CW_WIRE_VERSION - 1, CW_WIRE_OTHER_VERSION},
        {88, PAYLOAD_BYTES + 1, CW_WIRE_MALFORMED},
    };
    uint8_t frame[FRAME_BYTES];
    const struct cw_wire_header *header = NULL;
    check_packets(write_packet_v6, &own_v6, CW_WIRE_NETWORK_V6_BYTES, rows, sizeof(rows) / sizeof(rows[0]));
    uint32_t length = write_packet_v6(frame);
    assert_int_equal(parse(frame, length, &header), CW_WIRE_FOREIGN);
    assert_int_equal(cw_wire_datagram_bytes((const struct cw_wire_header *)(frame + CW_WIRE_NETWORK_V6_BYTES)),
                     8 + CW_WIRE_HEADER_BYTES + PAYLOAD_BYTES);
    (void)write_packet(frame);
    assert_int_equal(cw_wire_parse(frame, length, &own_v6, OWN_PORT, 1, 0, &header), CW_WIRE_FOREIGN);
}

/* Summed up at once, 16 bits at a time, as RFC 1071 has it; however the bytes are cut into pieces. */
static void test_checksums_of_pieces(void **state)
{
    struct cw_random random;
    uint8_t bytes[300];
    cw_random_seed(&random, 5);
    for (uint32_t round = 0; round < 5000; round++) {
        uint32_t count = (uint32_t)cw_random_below(&random, sizeof(bytes) + 1), expected = 0, at = 0;
        struct cw_wire_sum sum = {0};
        cw_random_fill(&random, bytes, sizeof(bytes));
        if (round % 8 == 0) {
            memset(bytes, 0xff, sizeof(bytes));
        }
        for (uint32_t i = 0; i < count; i++) {
            expected += (uint32_t)bytes[i] << (i % 2 == 0 ? 8 : 0);
        }
        while (expected >> 16 != 0) {
            expected = (expected & 0xffff) + (expected >> 16);
        }
        while (at < count) {
            uint32_t piece = (uint32_t)cw_random_between(&random, 0, count - at);
            cw_wire_sum_add(&sum, bytes + at, piece);
            at += piece;
        }
        uint16_t stored = cw_wire_sum_end(&sum);
        uint8_t wire[2];
        memcpy(wire, &stored, sizeof(wire));
        assert_int_equal(wire[0] << 8 | wire[1], ~expected & 0xffff);
    }
}

static void test_only_signed_data_goes_without_crc(void **state)
{
    uint8_t frame[FRAME_BYTES];
    uint32_t length = write_packet(frame);
    struct cw_wire_header *header = (struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
    const struct cw_wire_header *found;
    header->flags = CW_WIRE_SUMMED;
    assert_int_equal(parse(frame, length, &found), CW_WIRE_GOOD);
    header->flags = CW_WIRE_SUMMED | CW_WIRE_ENCRYPTED;
    assert_int_equal(parse(frame, length, &found), CW_WIRE_MALFORMED);
    header->flags = CW_WIRE_SUMMED;
    header->type = CW_WIRE_ACK;
    assert_int_equal(parse(frame, length, &found), CW_WIRE_MALFORMED);
}

static void test_groups_have_a_port_of_their_own(void **state)
{
    static const struct {
        uint32_t to;
        uint16_t port, group_port;
        uint8_t type;
        enum cw_wire_verdict verdict;
    } rows[] = {
        {0xef000001, OWN_PORT, 0, CW_WIRE_EXTENSION_FIRST, CW_WIRE_GOOD},
        {0xef000001, OWN_PORT + 1, 0, CW_WIRE_EXTENSION_FIRST, CW_WIRE_FOREIGN},
        {0xef000001, OWN_PORT, 0, CW_WIRE_DATA, CW_WIRE_FOREIGN},
        {0xef000001, 700, 700, CW_WIRE_EXTENSION_FIRST, CW_WIRE_GOOD},
        {0xef000001, 700, 700, CW_WIRE_DATA, CW_WIRE_FOREIGN},
        {0xef000001, OWN_PORT, 700, CW_WIRE_EXTENSION_FIRST, CW_WIRE_FOREIGN},
        {OWN_IPV4, 700, 700, CW_WIRE_EXTENSION_FIRST, CW_WIRE_FOREIGN}, /* it is of groups only */
        {OWN_IPV4, OWN_PORT, 700, CW_WIRE_DATA, CW_WIRE_GOOD},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct cw_wire_header *found;
        uint8_t frame[FRAME_BYTES];
        uint32_t length = write_packet(frame);
        network_write(frame, rows[i].to, rows[i].port, PAYLOAD_BYTES);
        ((struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES))->type = rows[i].type;
        assert_int_equal(cw_wire_parse(frame, length, &own, OWN_PORT, 1, rows[i].group_port, &found), rows[i].verdict);
    }
}

static void test_sealed_packets_have_room_for_their_mac(void **state)
{
    uint8_t frame[FRAME_BYTES];
    uint32_t length = write_packet(frame);
    struct cw_wire_header *header = (struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
    const struct cw_wire_header *found;
    header->flags = CW_WIRE_ENCRYPTED;
    header->payload_bytes = 0xffff; /* is not looked at */
    assert_int_equal(parse(frame, length, &found), CW_WIRE_GOOD);
    assert_int_equal(cw_wire_sealed_bytes(found), CW_WIRE_FIELDS_BYTES + PAYLOAD_BYTES - CW_WIRE_MAC_BYTES);
    header->type = CW_WIRE_EXTENSION_FIRST; /* which nobody seals */
    assert_int_equal(parse(frame, length, &found), CW_WIRE_MALFORMED);
    header->type = CW_WIRE_DATA;
    for (uint32_t payload = 0; payload <= PAYLOAD_BYTES; payload++) {
        network_write(frame, OWN_IPV4, OWN_PORT, payload);
        assert_int_equal(parse(frame, length, &found), payload < CW_WIRE_MAC_BYTES ? CW_WIRE_MALFORMED : CW_WIRE_GOOD);
    }
}

static void test_sealed_form_and_back(void **state)
{
    struct cw_wire_header header = {.version = CW_WIRE_VERSION,
                                    .type = CW_WIRE_DATA,
                                    .flags = CW_WIRE_ACK_NOW,
                                    .flow = 0x12345678,
                                    .number = 2,
                                    .timestamp = 3,
                                    .acknowledged = 4,
                                    .echo = 5,
                                    .echo_delay = 6,
                                    .payload_bytes = 100};
    struct cw_wire_sealed sealed;
    cw_wire_sealed_write(&sealed, &header, 0x1122334455667788);
    assert_int_equal(sealed.count, 0x1122334455667788);
    assert_int_equal(sealed.flow, header.flow);
    assert_int_equal(sealed.flags, CW_WIRE_ACK_NOW | CW_WIRE_ENCRYPTED);
    struct cw_wire_header back;
    memcpy(&back, &sealed, sizeof(back));
    assert_true(cw_wire_sealed_restore(&back, CW_WIRE_FIELDS_BYTES + 100));
    header.flags |= CW_WIRE_ENCRYPTED;
    assert_memory_equal(&back, &header, sizeof(back));
    memcpy(&back, &sealed, sizeof(back));
    assert_false(cw_wire_sealed_restore(&back, CW_WIRE_FIELDS_BYTES + 101));
}

static void test_set_up_tag_covers_all_of_it(void **state)
{
    struct {
        struct cw_wire_header header;
        struct cw_wire_hello hello;
    } setup;
    struct cw_wire_key key = {.bytes = {1, 2, 3}};
    memset(&setup, 0x5a, sizeof(setup));
    uint64_t tag = cw_wire_setup_tag(&setup.header, &setup.hello, &key);
    for (size_t bit = 0; bit < 8 * sizeof(setup); bit++) {
        bool is_tag = bit / 8 - offsetof(struct cw_wire_header, tag) < sizeof(setup.header.tag);
        ((uint8_t *)&setup)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(cw_wire_setup_tag(&setup.header, &setup.hello, &key) == tag, is_tag);
        ((uint8_t *)&setup)[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    key.bytes[15] ^= 1;
    assert_true(cw_wire_setup_tag(&setup.header, &setup.hello, &key) != tag);
}

static void test_sealed_set_up(void **state)
{
    uint8_t job_key[16] = {1};
    uint8_t key[CW_WIRE_SETUP_KEY_BYTES], other[CW_WIRE_SETUP_KEY_BYTES];
    cw_wire_setup_derive(key, job_key);
    job_key[0] = 2;
    cw_wire_setup_derive(other, job_key);
    struct cw_wire_sealed_setup setup = {
        .version = CW_WIRE_VERSION, .type = CW_WIRE_HELLO, .flags = CW_WIRE_ENCRYPTED, .echo = 7};
    setup.hello.session = 77;
    struct cw_wire_sealed_setup opened;
    cw_wire_setup_nonce(setup.nonce, key, "this", 4);
    cw_wire_setup_seal(&setup, key);
    assert_true(setup.hello.session != 77);
    assert_true(cw_wire_setup_unseal(&setup, key, &opened));
    assert_int_equal(opened.hello.session, 77);
    assert_int_equal(opened.echo, 7);
    assert_false(cw_wire_setup_unseal(&setup, other, &opened));
    for (uint32_t bit = 0; bit < 8 * sizeof(setup); bit++) {
        struct cw_wire_sealed_setup altered = setup;
        ((uint8_t *)&altered)[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_false(cw_wire_setup_unseal(&altered, key, &opened));
    }
}

static void test_seal_keys_differ_by_direction_and_session(void **state)
{
    static const uint8_t job_key[16] = {1};
    static const uint64_t sessions[][2] = {{1, 2}, {2, 1}, {1, 3}, {3, 2}};
    struct cw_wire_seal_key keys[4];
    for (uint32_t i = 0; i < 4; i++) {
        cw_wire_seal_derive(&keys[i], job_key, sessions[i][0], sessions[i][1]);
        for (uint32_t k = 0; k < i; k++) {
            assert_memory_not_equal(keys[i].key, keys[k].key, 16);
            assert_memory_not_equal(keys[i].salt, keys[k].salt, 4);
        }
    }
}

int main(void)
{
    return TESTS_RUN(
        test_checksums_in_all_ways, test_tag_vector, test_tags_of_many, test_keys_differ_by_direction_and_session,
        test_numbers_expand_to_the_nearest, test_packets_over_ipv4, test_packets_over_ipv6, test_checksums_of_pieces,
        test_only_signed_data_goes_without_crc, test_groups_have_a_port_of_their_own,
        test_sealed_packets_have_room_for_their_mac, test_sealed_form_and_back, test_set_up_tag_covers_all_of_it,
        test_sealed_set_up, test_seal_keys_differ_by_direction_and_session);
}
