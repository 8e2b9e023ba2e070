/* The parts of offloads that need no DPDK: their names, and the Toeplitz hash. */
#include "dataplane/port/offload/offload.h"
#include "dataplane/port/offload/toeplitz.h"
#include "dataplane/status.h"
#include "tests/test.h"

/* ---- names ---- */

static void texts_are_read(void **state)
{
    static const struct {
        const char *text;
        uint32_t offloads;
    } rows[] = {
        {"auto", CW_OFFLOADS_AUTO},
        {"off", 0},
        {"all", CW_OFFLOADS_ALL},
        {"steer", 1 << CW_OFFLOAD_STEER},
        {"header-split,udp-checksum-in", 1 << CW_OFFLOAD_SPLIT | 1 << CW_OFFLOAD_CHECKSUM_IN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char error[256] = "";
        uint32_t offloads = 0xdead;
        assert_int_equal(cw_offload_read(rows[i].text, &offloads, error, sizeof(error)), CW_OK);
        assert_int_equal(offloads, rows[i].offloads);
    }
    static const char *const bad[] = {"", "Steer", "steer,", ",steer", "steer;rss", "auto,steer", "steer rss"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char error[256] = "";
        uint32_t offloads = 0xdead;
        assert_int_equal(cw_offload_read(bad[i], &offloads, error, sizeof(error)), CW_ERROR_ARGUMENT);
        assert_int_equal(offloads, 0xdead);
        assert_non_null(strstr(error, "departure-time")); /* all there are */
    }
}

static void each_has_a_name_of_its_own(void **state)
{
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        assert_true(strlen(cw_offload_name(i)) > 0 && strlen(cw_offload_meaning(i)) > 0 &&
                    strlen(cw_offload_software(i)) > 0);
        for (uint32_t other = 0; other < i; other++) {
            assert_string_not_equal(cw_offload_name(i), cw_offload_name(other));
        }
    }
}

/* ---- Toeplitz ---- */

/* "Verifying the RSS Hash Calculation", of Microsoft's specification. */
static const uint8_t key[CW_TOEPLITZ_KEY_BYTES] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                                   0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                                   0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                                   0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

static void hashes_are_those_of_the_specification(void **state)
{
    static const struct {
        const char *destination;
        uint16_t destination_port;
        const char *source;
        uint16_t source_port;
        uint32_t addresses;
        uint32_t ports;
    } rows[] = {
        {"161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2, 0x51ccc178},
        {"65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea},
        {"12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de, 0x5c2b394a},
        {"209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xafc7327f},
        {"202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5, 0x10e828a2},
        {"3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc18cd5, 0x40207d3d},
        {"ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c461c, 0xdde51bbf},
        {"fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985, 0x02d1feef},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_toeplitz_flow flow = {.source_port = rows[i].source_port,
                                        .destination_port = rows[i].destination_port};
        assert_true(cw_ip_read(rows[i].source, &flow.source) && cw_ip_read(rows[i].destination, &flow.destination));
        assert_int_equal(cw_toeplitz_flow(key, &flow, false), rows[i].addresses);
        assert_int_equal(cw_toeplitz_flow(key, &flow, true), rows[i].ports);
    }
}

/* Each block is one that a mask names, they lie side by side, and no two of them make one. */
static void ports_make_blocks(void **state)
{
    for (uint32_t first = 29000; first < 29300; first += 7) {
        for (uint32_t count = 1; count <= 1024; count++) {
            uint32_t at = first, left = count, blocks = 0, before = 0;
            for (; left > 0; blocks++) {
                uint32_t block = cw_offload_ports_block(at, left);
                assert_true(block <= left && (block & (block - 1)) == 0 && (at & (block - 1)) == 0);
                assert_false(block == before && ((at - block) & (2 * block - 1)) == 0);
                before = block;
                at += block;
                left -= block;
            }
            assert_int_equal(at, first + count);
            assert_int_equal(blocks, cw_offload_ports_blocks(first, count));
        }
    }
    assert_int_equal(cw_offload_ports_blocks(0, 65536), 1);
    assert_int_equal(cw_offload_ports_blocks(29300, 0), 0);
}

int main(void)
{
    return TESTS_RUN(texts_are_read, each_has_a_name_of_its_own, hashes_are_those_of_the_specification,
                     ports_make_blocks);
}
