/* Topology files that somebody has damaged: refused with one line, or sound: every pair of clusters has a route that is
 * one. Bytes are changed, cut and doubled, and words replaced by ones at the edges. CW_TEST_PACKETS (100,000) / 5
 * files. */
#include <stdlib.h>
#include <string.h>

#include "control/topology/topology.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/fuzz/fuzz_text.h"
#include "tests/test.h"

static const char sample[] = "{\"clusters\": [{\"name\": \"a\", \"hosts\": [\"h[00-11]x\", \"f\"], \"rate\": "
                             "\"1Gbps\", \"delay\": \"20us\", \"queue\": \"256KB\", "
                             "\"loss\": \"1%\"},\n{\"name\": \"b\", \"hosts\": 3}, {\"name\": \"c\", \"hosts\": "
                             "[\"g\"]}],\n\"places\": [\"p\", \"q\"],\n\"links\": "
                             "[{\"between\": [\"a\", \"p\"], \"rate\": \"1Gbps\", \"delay\": \"10ms\", \"loss\": "
                             "\"10%\"},\n{\"name\": \"sea\", \"between\": [\"c\", \"p\"], "
                             "\"rate\": \"100Mbps\", \"delay\": \"1ms\", \"streams\": 4, \"encrypt\": "
                             "false},\n{\"between\": [\"b\", \"a\"], \"rate\": \"10M\", \"delay\": "
                             "\"5ms\"}, {\"between\": [\"b\", \"q\"], \"rate\": \"1k\", \"delay\": \"0\"}]}\n";

static const char *const words[] = {
    "-1",    "0",     "1e308",    "4294967296",    "9223372036854775807", "null",    "\"\"",    "[]",
    "{}",    "true",  "\"a\"",    "\"h[0-4096]\"", "\"h[1-2]\"",          "\"10s\"", "\"10T\"", "\"100%\"",
    "\"c\"", "\"p\"", "\"found\""};

/* Puts one of the words in the place of a text, a number or a list that begins at a quote or digit. */
static size_t word_replace(struct cw_random *random, char *text, size_t length, size_t room)
{
    size_t at = (size_t)cw_random_below(random, length);
    at += strcspn(text + at, "\"0123456789");
    size_t gone = text[at] == '"' ? strcspn(text + at + 1, "\"") + 2 : strspn(text + at, "0123456789");
    const char *word = words[cw_random_below(random, sizeof(words) / sizeof(words[0]))];
    return fuzz_text_splice(text, length, room, at, gone, word);
}

static void sound(const struct cw_topology *topology)
{
    uint32_t clusters = cw_topology_cluster_count(topology);
    assert_in_range(cw_topology_host_count(topology), clusters, CW_TOPOLOGY_HOSTS_MAX);
    for (uint32_t host = 0; host < cw_topology_host_count(topology); host++) {
        assert_true(cw_topology_host_cluster(topology, host) < clusters);
    }
    for (uint32_t from = 0; from < clusters; from++) {
        for (uint32_t to = 0; to < clusters; to++) {
            uint32_t count, site = from;
            const struct cw_topology_hop *hops = cw_topology_route(topology, from, to, &count);
            for (uint32_t i = 0; i < count; i++) {
                const struct cw_topology_link *link = cw_topology_link(topology, hops[i].link);
                assert_int_equal(link->sites[hops[i].direction], site);
                assert_true(cw_link_config_valid(&link->link, NULL)); /* a rate of 0 is to be found */
                site = link->sites[1 - hops[i].direction];
            }
            assert_int_equal(site, to);
        }
    }
}

static void damaged_files_are_refused_or_sound(void **state)
{
    uint64_t files = test_count("CW_TEST_PACKETS", 100000) / 5;
    uint64_t taken = 0;
    struct cw_random random;
    cw_random_seed(&random, 1);
    for (uint64_t file = 0; file < files; file++) {
        char text[2 * sizeof(sample)] = {0};
        char error[CW_TOPOLOGY_ERROR_BYTES] = "";
        struct cw_topology *topology = NULL;
        size_t length = sizeof(sample) - 1;
        memcpy(text, sample, sizeof(sample));
        uint32_t wounds = 1 + (uint32_t)cw_random_below(&random, 3);
        for (uint32_t i = 0; i < wounds && length > 0; i++) {
            length = fuzz_text_damage(&random, text, length, sizeof(text), 6, word_replace);
        }
        char *exact = malloc(length + 1); /* so that reading beyond the end is seen */
        assert_non_null(exact);
        memcpy(exact, text, length);
        int status = cw_topology_decode(exact, length, &topology, error, sizeof(error));
        free(exact);
        if (status != CW_OK) {
            assert_true(status == CW_ERROR_ARGUMENT && error[0] != '\0' && topology == NULL);
            continue;
        }
        taken++;
        sound(topology);
        cw_topology_destroy(topology);
    }
    print_message("%llu of %llu damaged files make sense\n", (unsigned long long)taken, (unsigned long long)files);
    assert_in_range(taken, 1, files - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_files_are_refused_or_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
