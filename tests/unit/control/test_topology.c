/* Topology files: their contents, every error, and the routes against an independent all-pairs computation. */
#include "control/topology/topology.h"
#include "dataplane/base/random.h"
#include "dataplane/limits.h"
#include "dataplane/status.h"
#include "tests/test.h"

static struct cw_topology *decode(const char *text)
{
    struct cw_topology *topology = NULL;
    char error[CW_TOPOLOGY_ERROR_BYTES] = "";
    assert_true_msg(cw_topology_decode(text, strlen(text), &topology, error, sizeof(error)) == CW_OK, "%s", error);
    return topology;
}

static const char sample[] = "{\"clusters\": [{\"name\": \"delft\", \"hosts\": [\"das[08-11]\", \"fs\"], \"rate\": "
                             "\"1Gbps\", \"delay\": \"20us\","
                             " \"queue\": \"256KB\", \"loss\": \"1%\"}, {\"name\": \"leiden\", \"hosts\": 3}, "
                             "{\"name\": \"groningen\", \"hosts\": [\"g\"]}],"
                             " \"places\": [\"amsterdam\"],"
                             " \"links\": [{\"between\": [\"delft\", \"amsterdam\"], \"rate\": \"1Gbps\", \"delay\": "
                             "\"10ms\", \"loss\": \"10%\"},"
                             " {\"name\": \"sea\", \"between\": [\"groningen\", \"amsterdam\"], \"rate\": \"100Mbps\", "
                             "\"delay\": \"1ms\", \"loss\": \"50%\","
                             " \"streams\": 4, \"encrypt\": false, \"queue\": \"1MB\"},"
                             " {\"between\": [\"leiden\", \"delft\"], \"rate\": \"10Mbps\", \"delay\": \"5ms\"}]}";

static void contents_of_the_file(void **state)
{
    struct cw_topology *topology = decode(sample);
    assert_int_equal(cw_topology_cluster_count(topology), 3);
    assert_int_equal(cw_topology_host_count(topology), 9);
    assert_int_equal(cw_topology_link_count(topology), 3);
    static const char *const names[] = {"das08", "das09", "das10", "das11", "fs", "leiden0", "leiden1", "leiden2", "g"};
    static const uint32_t clusters[] = {0, 0, 0, 0, 0, 1, 1, 1, 2};
    for (uint32_t i = 0; i < 9; i++) {
        uint32_t host = 99;
        assert_string_equal(cw_topology_host_name(topology, i), names[i]);
        assert_int_equal(cw_topology_host_cluster(topology, i), clusters[i]);
        assert_int_equal(cw_topology_host_find(topology, names[i], &host, NULL, 0), CW_OK);
        assert_int_equal(host, i);
    }
    const struct cw_topology_cluster *delft = cw_topology_cluster(topology, 0);
    assert_int_equal(delft->host_count, 5);
    assert_int_equal(delft->host_link.rate_bps, 1000000000);
    assert_int_equal(delft->host_link.delay_ns, 20000);
    assert_int_equal(delft->host_link.queue_limit_bytes, 256000);
    assert_true(delft->host_link.loss > 0.0099 && delft->host_link.loss < 0.0101);
    assert_int_equal(delft->host_link.overhead_bytes, CW_ETHERNET_OVERHEAD_BYTES);
    assert_int_equal(cw_topology_cluster(topology, 1)->host_link.rate_bps, 0);
    const struct cw_topology_link *link = cw_topology_link(topology, 1);
    assert_string_equal(link->name, "sea");
    assert_int_equal(link->streams, 4);
    assert_false(link->encrypt);
    link = cw_topology_link(topology, 2);
    assert_string_equal(link->name, "leiden-delft");
    assert_true(link->encrypt);
    assert_int_equal(link->streams, 0);
    assert_string_equal(cw_topology_site_name(topology, 3), "amsterdam");
    cw_topology_destroy(topology);
}

static void routes_and_what_they_make(void **state)
{
    struct cw_topology *topology = decode(sample);
    uint32_t count;
    const struct cw_topology_hop *hops = cw_topology_route(topology, 1, 2, &count);
    assert_int_equal(count, 3); /* leiden-delft, delft-amsterdam, sea backwards */
    assert_int_equal(hops[0].link, 2);
    assert_int_equal(hops[0].direction, 0);
    assert_int_equal(hops[1].link, 0);
    assert_int_equal(hops[1].direction, 0);
    assert_int_equal(hops[2].link, 1);
    assert_int_equal(hops[2].direction, 1);
    assert_int_equal(cw_topology_rate_bps(topology, 1, 2), 10000000);
    assert_int_equal(cw_topology_delay_ns(topology, 2, 1), 16000000);
    assert_int_equal(cw_topology_via(topology, 1, 2), 0);
    assert_int_equal(cw_topology_via(topology, 2, 1), 0);
    assert_int_equal(cw_topology_via(topology, 0, 2), CW_TOPOLOGY_DIRECT); /* a place is no cluster */
    (void)cw_topology_route(topology, 1, 1, &count);
    assert_int_equal(count, 0);
    assert_int_equal(cw_topology_rate_bps(topology, 1, 1), 0);
    cw_topology_destroy(topology);
}

static void ties_are_broken_by_links_and_order(void **state)
{
    /* a to b: x is 2 + 2, direct is 4, and so is a second direct one: fewest links, then the first of them */
    struct cw_topology *topology =
        decode("{\"clusters\": [{\"name\": \"a\", \"hosts\": 1}, {\"name\": \"b\", \"hosts\": 1}], \"places\": "
               "[\"x\"], \"links\": ["
               "{\"between\": [\"a\", \"x\"], \"rate\": \"1G\", \"delay\": \"2ms\"}, {\"between\": [\"x\", \"b\"], "
               "\"rate\": \"1G\", \"delay\": \"2ms\"},"
               "{\"name\": \"one\", \"between\": [\"b\", \"a\"], \"rate\": \"1G\", \"delay\": \"4ms\"},"
               "{\"name\": \"two\", \"between\": [\"a\", \"b\"], \"rate\": \"1G\", \"delay\": \"4ms\"}]}");
    uint32_t count;
    const struct cw_topology_hop *hops = cw_topology_route(topology, 0, 1, &count);
    assert_int_equal(count, 1);
    assert_int_equal(hops[0].link, 2);
    assert_int_equal(hops[0].direction, 1);
    cw_topology_destroy(topology);
}

#define HOSTS(name)  "{\"name\": \"" name "\", \"hosts\": 1}"
#define LINK(a, b)   "\"between\": [\"" a "\", \"" b "\"], \"rate\": \"1G\", \"delay\": \"1ms\""
#define AB           "{\"clusters\": [" HOSTS("a") ", " HOSTS("b") "], \"places\": [\"p\"], \"links\": [{"
#define END          "}]}"
#define CLUSTER(...) "{\"clusters\": [{\"name\": \"a\", " __VA_ARGS__ "}]}"

static const struct {
    const char *text;
    const char *said;
} faults[] = {
    {"", "line 1:"},
    {"{\"clusters\":\n\n [}", "line 3:"},
    {"[]", "the file: an object is wanted"},
    {"{\"clusters\": [], \"clusters\": []}", "duplicate"},
    {"{}", "clusters: a list is wanted"},
    {"{\"clusters\": []}", "of at least one"},
    {"{\"cluster\": []}", "unknown key 'cluster' (known are clusters, places, links)"},
    {"{\"clusters\": [7]}", "clusters[0]: an object is wanted"},
    {"{\"clusters\": [{\"name\": \"a\", \"hosts\": 1, \"speed\": 1}]}", "unknown key 'speed'"},
    {"{\"clusters\": [{\"hosts\": 1}]}", "clusters[0].name: a name"},
    {"{\"clusters\": [{\"name\": \"a b\", \"hosts\": 1}]}", "clusters[0].name: a name"},
    {"{\"clusters\": [" HOSTS("a") "," HOSTS("a") "]}", "clusters[1].name: another site is called 'a'"},
    {CLUSTER("\"rate\": \"1G\""), "clusters[0].hosts: a list of names"},
    {CLUSTER("\"hosts\": []"), "cluster 'a' has no hosts"},
    {CLUSTER("\"hosts\": 0"), "cluster 'a' has no hosts"},
    {CLUSTER("\"hosts\": -1"), "-1 hosts are not possible"},
    {CLUSTER("\"hosts\": 5000"), "5000 hosts are not possible"},
    {CLUSTER("\"hosts\": [1]"), "clusters[0].hosts[0]: the name of a host"},
    {CLUSTER("\"hosts\": [\"\"]"), "cannot be the name of a host"},
    {CLUSTER("\"hosts\": [\"h[3-1]\"]"), "'h[3-1]' is no range"},
    {CLUSTER("\"hosts\": [\"h[0-3\"]"), "is no range"},
    {CLUSTER("\"hosts\": [\"h[0-1]x[0-1]\"]"), "is no range"},
    {CLUSTER("\"hosts\": [\"h[0-9999999999]\"]"), "is no range"},
    {CLUSTER("\"hosts\": [\"h[0-99999]\"]"), "more than 4096 hosts"},
    {CLUSTER("\"hosts\": [\"h\", \"h\"]"), "host 'h' of cluster 'a' is in cluster 'a' already"},
    {"{\"clusters\": [{\"name\": \"a\", \"hosts\": [\"h\"]}, {\"name\": \"b\", \"hosts\": [\"h\"]}]}",
     "host 'h' of cluster 'b' is in cluster 'a' already"},
    {CLUSTER("\"hosts\": 1, \"rate\": \"0\""), "clusters[0].rate: no link has 0"},
    {CLUSTER("\"hosts\": 1, \"rate\": \"-1Gbps\""), "clusters[0].rate: a rate is wanted"},
    {CLUSTER("\"hosts\": 1, \"rate\": \"11Tbps\""), "no link has 11Tbps"},
    {CLUSTER("\"hosts\": 1, \"rate\": 1000"), "clusters[0].rate: a rate is wanted"},
    {CLUSTER("\"hosts\": 1, \"delay\": \"11s\""), "clusters[0].delay: 11s is too long"},
    {CLUSTER("\"hosts\": 1, \"delay\": \"5\""), "clusters[0].delay: a delay is wanted"},
    {CLUSTER("\"hosts\": 1, \"rate\": \"1G\", \"queue\": \"0\""), "clusters[0].queue: a queue is wanted"},
    {CLUSTER("\"hosts\": 1, \"queue\": \"1MB\""), "without a rate nothing waits"},
    {CLUSTER("\"hosts\": 1, \"loss\": \"101%\""), "clusters[0].loss: a share is wanted"},
    {"{\"clusters\": [" HOSTS("a") "], \"places\": \"p\"}", "places: a list is wanted"},
    {"{\"clusters\": [" HOSTS("a") "], \"places\": [1]}", "places[0]: a name is wanted"},
    {"{\"clusters\": [" HOSTS("a") "], \"places\": [\"a\"]}", "places[0]: another site is called 'a'"},
    {"{\"clusters\": [" HOSTS("a") "], \"links\": {}}", "links: a list is wanted"},
    {"{\"clusters\": [" HOSTS("a") "], \"links\": [1]}", "links[0]: an object"},
    {AB "\"between\": [\"a\"]" END, "links[0].between: two sites"},
    {AB LINK("a", "c") END, "links[0].between: no site is called 'c'"},
    {AB LINK("a", "a") END, "links[0].between: 'a' is joined with itself"},
    {CLUSTER("\"hosts\": 1, \"rate\": \"found\""), "clusters[0].rate: a rate is wanted"},
    {AB "\"between\": [\"a\", \"b\"], \"rate\": \"Found\", \"delay\": \"1ms\"" END, "rate: a rate is wanted"},
    {AB "\"between\": [\"a\", \"b\"], \"rate\": \"found\", \"delay\": \"1ms\", \"queue\": \"1MB\"" END,
     "without a rate nothing waits"},
    {AB "\"between\": [\"a\", \"b\"], \"delay\": \"1ms\"" END, "a link has a \"rate\" and a \"delay\""},
    {AB "\"between\": [\"a\", \"b\"], \"rate\": \"1G\"" END, "a link has a \"rate\" and a \"delay\""},
    {AB LINK("a", "b") ", \"colour\": 1" END, "unknown key 'colour'"},
    {AB LINK("a", "b") ", \"name\": 1" END, "links[0].name: a name"},
    {AB LINK("a", "b") ", \"name\": \"a0\"" END, "a host is called 'a0'"},
    {AB LINK("a", "b") ", \"streams\": 0" END, "links[0].streams: a number"},
    {AB LINK("a", "b") ", \"encrypt\": 1" END, "links[0].encrypt: true or false"},
    {AB LINK("a", "b") "}, {" LINK("a", "b") END, "links[1]: links[0] is called 'a-b', too"},
    {AB LINK("a", "p") END, "no wide-area link between the clusters 'a' and 'b'"},
    {"{\"clusters\": [" HOSTS("a") "," HOSTS("b") "]}", "no wide-area link between"},
};

static void every_error_is_reported(void **state)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct cw_topology *topology = NULL;
        char error[CW_TOPOLOGY_ERROR_BYTES] = "";
        int status = cw_topology_decode(faults[i].text, strlen(faults[i].text), &topology, error, sizeof(error));
        assert_true_msg(status == CW_ERROR_ARGUMENT && strstr(error, faults[i].said) != NULL &&
                            strchr(error, '\n') == NULL,
                        "%s\ngave %d '%s', not '%s'", faults[i].text, status, error, faults[i].said);
        assert_null(topology);
    }
}

static void lookups_list_what_there_is(void **state)
{
    char error[CW_TOPOLOGY_ERROR_BYTES];
    uint32_t found = 7;
    struct cw_topology *topology = decode(sample);
    assert_int_equal(cw_topology_host_find(topology, "das07", &found, error, sizeof(error)), CW_ERROR_NOT_FOUND);
    assert_string_equal(error,
                        "no host is called 'das07': there are das08 to fs of delft, leiden0 to leiden2 of leiden, "
                        "g of groningen");
    assert_int_equal(cw_topology_link_find(topology, "ocean", &found, error, sizeof(error)), CW_ERROR_NOT_FOUND);
    assert_string_equal(error, "no link is called 'ocean': there are delft-amsterdam, sea, leiden-delft");
    assert_int_equal(found, 7);
    assert_int_equal(cw_topology_link_find(topology, "sea", &found, error, sizeof(error)), CW_OK);
    assert_int_equal(found, 1);
    cw_topology_destroy(topology);
}

static void files_that_are_not_there(void **state)
{
    char error[CW_TOPOLOGY_ERROR_BYTES];
    char path[] = "/tmp/causeway-topology-XXXXXX";
    struct cw_topology *topology = NULL;
    assert_int_equal(cw_topology_load("/nonsense/x.json", &topology, error, sizeof(error)), CW_ERROR_SYSTEM);
    assert_non_null(strstr(error, "/nonsense/x.json cannot be read"));
    int file = mkstemp(path);
    assert_int_equal(write(file, "{}", 2), 2);
    close(file);
    assert_int_equal(cw_topology_load(path, &topology, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_ptr_equal(strstr(error, path), error);
    unlink(path);
}

/* ---- against Floyd and Warshall ---- */

enum { SITES = 12 };

struct cost {
    uint64_t delay_ns; /* UINT64_MAX: none */
    uint32_t links;
};

static bool cheaper(uint64_t delay_ns, uint32_t links, const struct cost *than)
{
    return delay_ns < than->delay_ns || (delay_ns == than->delay_ns && links < than->links);
}

/* A random graph of single-digit delays, so that ties are frequent; its file goes to `text`. */
static void graph_draw(struct cw_random *random, uint32_t clusters, struct cost costs[SITES][SITES], char *text,
                       size_t room)
{
    size_t used = (size_t)snprintf(text, room, "{\"clusters\": [");
    for (uint32_t i = 0; i < SITES; i++) {
        for (uint32_t j = 0; j < SITES; j++) {
            costs[i][j] = i == j ? (struct cost){0, 0} : (struct cost){UINT64_MAX, 0};
        }
        used += (size_t)snprintf(text + used, room - used,
                                 i < clusters    ? "%s{\"name\": \"s%u\", \"hosts\": 1}"
                                 : i == clusters ? "%.0s], \"places\": [\"s%u\""
                                                 : "%s\"s%u\"",
                                 i == 0 ? "" : ", ", i);
    }
    used += (size_t)snprintf(text + used, room - used, "], \"links\": [");
    uint32_t count = 8 + (uint32_t)cw_random_below(random, 20);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = (uint32_t)cw_random_below(random, SITES);
        uint32_t b = (a + 1 + (uint32_t)cw_random_below(random, SITES - 1)) % SITES;
        uint64_t delay_ns = cw_random_below(random, 6);
        used += (size_t)snprintf(
            text + used, room - used,
            "%s{\"name\": \"l%u\", \"between\": [\"s%u\", \"s%u\"], \"rate\": \"%uM\", \"delay\": \"%uns\"}",
            i == 0 ? "" : ", ", i, a, b, 1 + (uint32_t)cw_random_below(random, 9), (uint32_t)delay_ns);
        if (cheaper(delay_ns, 1, &costs[a][b])) {
            costs[a][b] = costs[b][a] = (struct cost){delay_ns, 1};
        }
    }
    snprintf(text + used, room - used, "]}");
}

static void all_pairs(struct cost costs[SITES][SITES])
{
    for (uint32_t k = 0; k < SITES; k++) {
        for (uint32_t i = 0; i < SITES; i++) {
            for (uint32_t j = 0; j < SITES; j++) {
                const struct cost *a = &costs[i][k], *b = &costs[k][j];
                if (a->delay_ns != UINT64_MAX && b->delay_ns != UINT64_MAX &&
                    cheaper(a->delay_ns + b->delay_ns, a->links + b->links, &costs[i][j])) {
                    costs[i][j] = (struct cost){a->delay_ns + b->delay_ns, a->links + b->links};
                }
            }
        }
    }
}

/* A route leads from `from` to `to`, with the reported sums, and is the same in reverse. */
static void route_check(const struct cw_topology *topology, uint32_t from, uint32_t to, const struct cost *cost)
{
    uint32_t count, count_back, site = from, passed = 0, via = CW_TOPOLOGY_DIRECT;
    uint64_t delay_ns = 0, rate_bps = UINT64_MAX;
    const struct cw_topology_hop *hops = cw_topology_route(topology, from, to, &count);
    const struct cw_topology_hop *back = cw_topology_route(topology, to, from, &count_back);
    assert_int_equal(count, cost->links);
    assert_int_equal(count_back, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct cw_topology_link *link = cw_topology_link(topology, hops[i].link);
        assert_int_equal(link->sites[hops[i].direction], site);
        site = link->sites[1 - hops[i].direction];
        delay_ns += link->link.delay_ns;
        rate_bps = link->link.rate_bps < rate_bps ? link->link.rate_bps : rate_bps;
        assert_int_equal(back[count - 1 - i].link, hops[i].link);
        assert_int_equal(back[count - 1 - i].direction, 1 - hops[i].direction);
        if (site != to && site < cw_topology_cluster_count(topology)) {
            passed++;
            via = site;
        }
    }
    assert_int_equal(site, to);
    assert_int_equal(delay_ns, cost->delay_ns);
    assert_int_equal(cw_topology_delay_ns(topology, from, to), delay_ns);
    assert_int_equal(cw_topology_rate_bps(topology, from, to), rate_bps);
    uint32_t told = cw_topology_via(topology, from, to);
    assert_int_equal(told, cw_topology_via(topology, to, from));
    if (told != CW_TOPOLOGY_DIRECT) {
        assert_int_equal(passed, 1);
        assert_int_equal(told, via);
        assert_int_equal(cw_topology_via(topology, from, told), CW_TOPOLOGY_DIRECT);
        assert_int_equal(cw_topology_via(topology, told, to), CW_TOPOLOGY_DIRECT);
    }
}

static void routes_are_the_shortest(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", 300));
    uint64_t joined = 0, vias = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct cost costs[SITES][SITES];
        struct cw_random random;
        struct cw_topology *topology = NULL;
        char text[8192];
        char error[CW_TOPOLOGY_ERROR_BYTES];
        cw_random_seed(&random, seed);
        uint32_t clusters = 2 + (uint32_t)cw_random_below(&random, SITES - 2);
        graph_draw(&random, clusters, costs, text, sizeof(text));
        all_pairs(costs);
        bool whole = true;
        for (uint32_t i = 0; i < clusters; i++) {
            whole = whole && costs[0][i].delay_ns != UINT64_MAX;
        }
        int status = cw_topology_decode(text, strlen(text), &topology, error, sizeof(error));
        assert_true_msg(status == (whole ? CW_OK : CW_ERROR_ARGUMENT), "seed %llu: %d %s\n%s", (unsigned long long)seed,
                        status, error, text);
        for (uint32_t from = 0; whole && from < clusters; from++) {
            for (uint32_t to = 0; to < clusters; to++) {
                if (from != to) {
                    route_check(topology, from, to, &costs[from][to]);
                    vias += cw_topology_via(topology, from, to) != CW_TOPOLOGY_DIRECT;
                }
            }
        }
        joined += whole;
        cw_topology_destroy(topology);
    }
    print_message("%llu of %llu graphs are joined, %llu pairs go by way of a cluster\n", (unsigned long long)joined,
                  (unsigned long long)seeds.count, (unsigned long long)vias);
    assert_true(!seeds.is_all || (joined > seeds.count / 10 && vias > 0));
}

int main(void)
{
    return TESTS_RUN(contents_of_the_file, routes_and_what_they_make, ties_are_broken_by_links_and_order,
                     every_error_is_reported, lookups_list_what_there_is, files_that_are_not_there,
                     routes_are_the_shortest);
}
