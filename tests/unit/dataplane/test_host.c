/* Hosts: texts and cards that are wrong are refused with a reason; two hosts find each other by their cards whichever
 * starts first. The put itself: apps/examples/put.c, tests/lab/library_usage.py. */
#include <string.h>

#include "dataplane/base/random.h"
#include "dataplane/host/host.h"
#include "tests/test.h"

#define SIXTY "012345678901234567890123456789012345678901234567890123456789"

static void test_ports_that_are_none_are_refused(void **state)
{
    static const char *const ports[] = {
        "",
        ",role=server",
        "memif:",
        "memif:/tmp/x",
        "memif:/tmp/x,role=both",
        "memif:,role=server",
        ("memif:/tmp/" SIXTY SIXTY ",role=client"),
    };
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        struct cw_host_config config;
        struct cw_host *host = NULL;
        char error[300] = "";
        cw_host_config_init(&config);
        config.port = ports[i];
        assert_int_equal(cw_host_open(&config, &host, error, sizeof(error)), CW_ERROR_ARGUMENT);
        assert_null(host);
        assert_non_null(strstr(error, "wanted is"));
        assert_null(strchr(error, '\n'));
    }
    struct cw_host_config config;
    struct cw_host *host = NULL;
    char error[300] = "";
    cw_host_config_init(&config);
    assert_int_equal(cw_host_open(&config, &host, error, sizeof(error)), CW_ERROR_ARGUMENT); /* none at all */
}

static void test_a_card_is_its_address(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 1);
    for (int i = 0; i < 10000; i++) {
        struct cw_address address = {.ipv4 = (uint32_t)cw_random_next(&random),
                                     .udp_port = (uint16_t)cw_random_next(&random)};
        struct cw_address read;
        char card[CW_CARD_BYTES], damaged[CW_CARD_BYTES];
        uint64_t mac = cw_random_next(&random);
        memcpy(address.mac, &mac, sizeof(address.mac));
        cw_card_write(&address, card);
        assert_int_equal(cw_card_read(card, &read), CW_OK);
        assert_int_equal(read.ipv4, address.ipv4);
        assert_int_equal(read.udp_port, address.udp_port);
        assert_memory_equal(read.mac, address.mac, sizeof(read.mac));
        /* what is damaged is no card, or that of another address: never of the same */
        memcpy(damaged, card, sizeof(damaged));
        damaged[cw_random_below(&random, strlen(card))] = (char)cw_random_next(&random);
        if (cw_card_read(damaged, &read) == CW_OK) {
            char again[CW_CARD_BYTES];
            cw_card_write(&read, again);
            assert_string_equal(again, damaged);
        }
    }
    static const char *const none[] = {"",
                                       "10.0.0.1",
                                       "10.0.0.1:4791",
                                       "10.0.0.256:1/02:00:00:00:00:01",
                                       "10.0.0.1:65536/02:00:00:00:00:01",
                                       "10.0.0.1:1/02:00:00:00:00:01 "};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct cw_address read = {.udp_port = 7};
        assert_int_equal(cw_card_read(none[i], &read), CW_ERROR_ARGUMENT);
        assert_int_equal(read.udp_port, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_card_is_its_address),
        cmocka_unit_test(test_ports_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
