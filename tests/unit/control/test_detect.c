/* Detection of clusters, against the connected components of what is close by all round trips, over many seeds; few
 * measurements; noise; what is no gap. CW_TEST_SEEDS (300) worlds of each kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/detect/detect.h"
#include "control/topology/clusters.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { HOSTS_MAX = 1000, CLUSTERS_MAX = 16, US = 1000, MS = 1000000 };

/* Hosts and the true round trips between them; what is measured is that and noise, differently each way. */
struct world {
    struct cw_random random;
    uint32_t hosts;
    uint32_t clusters;
    uint32_t of[HOSTS_MAX];
    uint64_t between_ns[CLUSTERS_MAX][CLUSTERS_MAX];
    uint64_t within_ns;
    double noise;      /* round trips are up to so much longer */
    uint32_t measured; /* round trips that were asked for */
};

static struct world world;

static struct test_seeds worlds(void)
{
    return test_seeds(1, test_count("CW_TEST_SEEDS", 300));
}

/* The same for the same pair and direction, whenever it is asked for. */
static uint64_t measured_ns(uint32_t from, uint32_t to)
{
    struct cw_random random;
    uint64_t true_ns =
        world.of[from] == world.of[to] ? world.within_ns : world.between_ns[world.of[from]][world.of[to]];
    cw_random_seed(&random, cw_random_derive(world.random.state[0], (uint64_t)from * HOSTS_MAX + to));
    return true_ns + (uint64_t)((double)true_ns * world.noise * (double)cw_random_below(&random, 1000) / 1000);
}

static struct cw_detect *detected(void)
{
    struct cw_detect *detect = NULL;
    assert_int_equal(cw_detect_create(world.hosts, &detect), CW_OK);
    world.measured = 0;
    for (uint32_t leader; (leader = cw_detect_leader(detect)) != CW_DETECT_NONE;) {
        assert_true(leader < world.hosts);
        for (uint32_t i = 1; i < world.hosts; i++) { /* in any order */
            uint32_t host = (leader + i) % world.hosts;
            assert_int_equal(cw_detect_leader(detect), leader);
            cw_detect_take(detect, host, measured_ns(host, leader));
            world.measured++;
        }
    }
    return detect;
}

/* ---- the reference: all pairs ---- */

static uint64_t pair_ns(uint32_t a, uint32_t b)
{
    uint64_t there = measured_ns(a, b), back = measured_ns(b, a);
    return there < back ? there : back;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* The limit by all pairs. */
static uint64_t reference_limit(uint64_t *trips, size_t count)
{
    qsort(trips, count, sizeof(*trips), compare);
    for (size_t i = 0; i < count; i++) {
        uint64_t shorter = i > 0 ? trips[i - 1] : CW_DETECT_LAN_NS;
        if (trips[i] >= CW_DETECT_FAR_NS && trips[i] >= shorter * CW_DETECT_FACTOR) {
            return trips[i];
        }
    }
    return UINT64_MAX;
}

/* Components by spreading labels until nothing changes: the least host of each. */
static void reference(uint32_t *label)
{
    size_t count = 0;
    bool changes = true;
    uint64_t *trips = malloc((size_t)world.hosts * world.hosts * sizeof(*trips));
    assert_non_null(trips);
    for (uint32_t a = 0; a < world.hosts; a++) {
        label[a] = a;
        for (uint32_t b = 0; b < a; b++) {
            trips[count++] = pair_ns(a, b);
        }
    }
    uint64_t limit = reference_limit(trips, count);
    free(trips);
    while (changes) {
        changes = false;
        for (uint32_t a = 0; a < world.hosts; a++) {
            for (uint32_t b = 0; b < world.hosts; b++) {
                if (a != b && label[b] < label[a] && pair_ns(a, b) < limit) {
                    label[a] = label[b];
                    changes = true;
                }
            }
        }
    }
}

static void check_reference(const struct cw_detect *detect, uint64_t seed)
{
    static uint32_t label[HOSTS_MAX];
    uint32_t numbers[HOSTS_MAX];
    uint32_t count = 0;
    reference(label);
    for (uint32_t host = 0; host < world.hosts; host++) {
        numbers[host] = label[host] == host ? count++ : numbers[label[host]];
        if (cw_detect_cluster(detect, host) != numbers[host]) {
            fail_msg("seed %llu: host %u of %u is in cluster %u, by all pairs in %u", (unsigned long long)seed, host,
                     world.hosts, cw_detect_cluster(detect, host), numbers[host]);
        }
    }
    assert_int_equal(cw_detect_count(detect), count);
}

/* ---- worlds ---- */

/* Clusters of which none is empty. */
static void place(uint64_t seed, uint32_t hosts_max)
{
    cw_random_seed(&world.random, seed);
    world.hosts = (uint32_t)cw_random_between(&world.random, 1, hosts_max);
    world.clusters = (uint32_t)cw_random_between(&world.random, 1, CLUSTERS_MAX);
    world.clusters = world.clusters < world.hosts ? world.clusters : world.hosts;
    for (uint32_t host = 0; host < world.hosts; host++) {
        world.of[host] = host < world.clusters ? host : (uint32_t)cw_random_below(&world.random, world.clusters);
    }
    for (uint32_t i = world.hosts - 1; i > 0; i--) {
        uint32_t other = (uint32_t)cw_random_below(&world.random, i + 1), kept = world.of[i];
        world.of[i] = world.of[other];
        world.of[other] = kept;
    }
}

static void distances(uint64_t least_ns, uint64_t most_ns)
{
    for (uint32_t a = 0; a < CLUSTERS_MAX; a++) {
        for (uint32_t b = 0; b < a; b++) {
            world.between_ns[a][b] = world.between_ns[b][a] = cw_random_between(&world.random, least_ns, most_ns);
        }
    }
}

static void as_by_all_pairs(void **state)
{
    struct test_seeds seeds = worlds();
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        place(seed, seed % 50 == 0 ? 120 : 40);
        world.within_ns = cw_random_between(&world.random, 2 * US, 100 * US);
        world.noise = 0.9;
        distances(10 * MS, 300 * MS);
        struct cw_detect *detect = detected();
        assert_int_equal(cw_detect_count(detect), world.clusters);
        check_reference(detect, seed);
        assert_true(world.measured <= (world.clusters + 1) * world.hosts);
        cw_detect_destroy(detect);
    }
}

static void a_thousand_hosts(void **state)
{
    struct test_seeds seeds = test_seeds(1000, 10);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        place(seed, HOSTS_MAX);
        world.hosts = HOSTS_MAX;
        world.clusters = CLUSTERS_MAX;
        for (uint32_t host = 0; host < world.hosts; host++) {
            world.of[host] = host % CLUSTERS_MAX;
        }
        world.within_ns = 80 * US;
        world.noise = 2;
        distances(2 * MS, 200 * MS);
        struct cw_detect *detect = detected();
        assert_int_equal(cw_detect_count(detect), CLUSTERS_MAX);
        for (uint32_t host = 0; host < world.hosts; host++) {
            assert_int_equal(cw_detect_cluster(detect, host), world.of[host]);
        }
        assert_true(world.measured <= CLUSTERS_MAX * world.hosts);
        cw_detect_destroy(detect);
    }
}

/* Racks of 100 us, a campus of 1 ms, a wide area: the lowest clear gap counts. */
static void three_levels(void **state)
{
    struct test_seeds seeds = worlds();
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        place(seed, 40);
        world.within_ns = cw_random_between(&world.random, 5 * US, 50 * US);
        world.noise = 0.5;
        for (uint32_t a = 0; a < CLUSTERS_MAX; a++) {
            for (uint32_t b = 0; b < CLUSTERS_MAX; b++) {
                world.between_ns[a][b] = a / 4 == b / 4 ? 1 * MS : 20 * MS + (a / 4 + b / 4) * 5 * MS;
            }
        }
        bool has_pair = world.hosts > world.clusters; /* else there is nothing near to tell a campus from a LAN by */
        struct cw_detect *detect = detected();
        assert_true(!has_pair || cw_detect_count(detect) == world.clusters);
        if (has_pair) {
            check_reference(detect, seed);
        }
        cw_detect_destroy(detect);
    }
}

/* Round trips that rise from a LAN's to 3 ms without a step: processes that share cores. */
static void noise_is_no_gap(void **state)
{
    struct test_seeds seeds = worlds();
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        place(seed, 60);
        memset(world.of, 0, sizeof(world.of));
        world.within_ns = cw_random_between(&world.random, 5 * US, 600 * US);
        world.noise = 3.9;
        struct cw_detect *detect = detected();
        assert_int_equal(cw_detect_count(detect), 1);
        assert_true(world.measured <= CW_DETECT_TRIALS * world.hosts);
        cw_detect_destroy(detect);
    }
}

/* ---- by hand ---- */

static struct cw_detect *by_table(uint32_t hosts, const uint64_t table[6][6], uint32_t *rounds)
{
    struct cw_detect *detect = NULL;
    *rounds = 0;
    assert_int_equal(cw_detect_create(hosts, &detect), CW_OK);
    for (uint32_t leader; (leader = cw_detect_leader(detect)) != CW_DETECT_NONE; ++*rounds) {
        for (uint32_t host = 0; host < hosts; host++) {
            if (host != leader) {
                cw_detect_take(detect, host, table[host][leader] * US);
            }
        }
    }
    return detect;
}

/* A host that seemed far once, since it was not scheduled, is measured again, the other way round, and is not split
 * off. */
static void a_second_look(void **state)
{
    static const uint64_t table[6][6] = {
        {0, 40, 50, 60}, {40, 0, 40, 40}, {50, 40, 0, 50}, {9000, 9000, 70, 0}, /* host 3 was slow towards 0 and 1 */
    };
    uint32_t rounds;
    char why[CW_DETECT_WHY_BYTES];
    struct cw_detect *detect = by_table(4, table, &rounds);
    assert_int_equal(rounds, 2);
    assert_int_equal(cw_detect_count(detect), 1);
    cw_detect_why(detect, why, sizeof(why));
    assert_non_null(strstr(why, "clusters detected: 1: round trips are up to 0.060 ms"));
    cw_detect_destroy(detect);
}

/* Each cluster has one host: nothing is near. A campus is left whole then, what is farther is not. */
static void single_hosts(void **state)
{
    static const uint64_t campus[6][6] = {{0, 4000, 3000}, {4000, 0, 3500}, {3000, 3500, 0}};
    static const uint64_t wide[6][6] = {{0, 20000, 9000}, {20000, 0, 9500}, {9000, 9500, 0}};
    uint32_t rounds;
    struct cw_detect *detect = by_table(3, campus, &rounds);
    assert_int_equal(cw_detect_count(detect), 1);
    cw_detect_destroy(detect);
    detect = by_table(3, wide, &rounds);
    assert_int_equal(cw_detect_count(detect), 3);
    assert_int_equal(cw_detect_between_ns(detect, 0, 1),
                     18500000); /* by way of cluster 2: noise has made the straight way longer */
    cw_detect_destroy(detect);
    detect = by_table(1, wide, &rounds);
    assert_int_equal(cw_detect_count(detect), 1);
    assert_int_equal(rounds, 0);
    cw_detect_destroy(detect);
}

/* ---- the file ---- */

static const char *name_of(void *context, uint32_t host)
{
    return ((const char *const *)context)[host];
}

static const uint64_t four[6][6] = {
    {0, 12000, 60, 12500}, {12000, 0, 12100, 40}, {60, 12000, 0, 12300}, {12500, 40, 12300, 0}};

static void as_a_file(void **state)
{
    static const char *const names[] = {"a.example.org", "b", "a.example.org", "d-1"};
    uint32_t rounds;
    char *text = NULL, error[600] = "", why[CW_DETECT_WHY_BYTES];
    struct cw_topology *topology;
    struct cw_detect *detect = by_table(4, four, &rounds);
    assert_int_equal(cw_detect_encode(detect, name_of, (void *)(uintptr_t)names, &text, error, sizeof(error)), CW_OK);
    assert_int_equal(cw_topology_decode(text, strlen(text), &topology, error, sizeof(error)), CW_OK);
    assert_int_equal(cw_topology_cluster_count(topology), 2);
    assert_int_equal(cw_topology_host_count(topology), 3); /* two have one name */
    assert_string_equal(cw_topology_host_name(topology, 0), "a.example.org");
    assert_string_equal(cw_topology_host_name(topology, 1), "b");
    assert_string_equal(cw_topology_cluster(topology, 1)->name, "c1");
    assert_int_equal(cw_topology_delay_ns(topology, 0, 1), 6000000);
    assert_int_equal(cw_topology_rate_bps(topology, 0, 1), 0);
    assert_string_equal(cw_topology_rate_unknown(topology), "c0-c1");
    assert_true(cw_topology_link(topology, 0)->encrypt);
    cw_topology_destroy(topology);
    free(text);
    cw_detect_why(detect, why, sizeof(why));
    assert_string_equal(
        why, "clusters detected: 2: round trips within one are up to 0.060 ms, between two 12.000 to 12.000 ms");
    cw_detect_destroy(detect);
}

static void what_cannot_be_a_file(void **state)
{
    static const char *const same[] = {"localhost", "localhost", "c", "d"}, *const odd[] = {"a", "b b", "c", "d"};
    uint32_t rounds;
    char *text = NULL, error[600] = "";
    struct cw_detect *detect = by_table(4, four, &rounds);
    assert_int_equal(cw_detect_encode(detect, name_of, (void *)(uintptr_t)same, &text, error, sizeof(error)),
                     CW_ERROR_ARGUMENT);
    assert_non_null(strstr(error, "both called 'localhost'"));
    assert_int_equal(cw_detect_encode(detect, name_of, (void *)(uintptr_t)odd, &text, error, sizeof(error)),
                     CW_ERROR_ARGUMENT);
    assert_non_null(strstr(error, "'b b'"));
    assert_null(text);
    cw_detect_destroy(detect);

    world.hosts = 40; /* each far from all */
    world.within_ns = 0;
    world.noise = 0;
    assert_int_equal(cw_detect_create(40, &detect), CW_OK);
    for (uint32_t leader; (leader = cw_detect_leader(detect)) != CW_DETECT_NONE;) {
        for (uint32_t host = 0; host < 40; host++) {
            if (host != leader) {
                cw_detect_take(detect, host, 30 * MS);
            }
        }
    }
    assert_int_equal(cw_detect_count(detect), 40);
    assert_int_equal(cw_detect_encode(detect, name_of, NULL, &text, error, sizeof(error)), CW_ERROR_LIMIT);
    assert_non_null(strstr(error, "40 clusters apart"));
    cw_detect_destroy(detect);
}

static void words(void **state)
{
    assert_null(cw_detect_word(NULL));
    assert_null(cw_detect_word(""));
    assert_null(cw_detect_word("detected.json"));
    assert_null(cw_detect_word("./detect"));
    assert_string_equal(cw_detect_word("detect"), "");
    assert_string_equal(cw_detect_word("detect:x.json"), "x.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_by_all_pairs), cmocka_unit_test(a_thousand_hosts),      cmocka_unit_test(three_levels),
        cmocka_unit_test(noise_is_no_gap), cmocka_unit_test(a_second_look),         cmocka_unit_test(single_hosts),
        cmocka_unit_test(as_a_file),       cmocka_unit_test(what_cannot_be_a_file), cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
