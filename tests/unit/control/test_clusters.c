/* Clusters: places of ranks, by blocks and by names; shares of shared links; rejections. */
#include "control/topology/clusters.h"
#include "dataplane/dataplane.h"
#include "dataplane/limits.h"
#include "dataplane/status.h"
#include "tests/test.h"

#define TWO                                                                                                    \
    "{\"clusters\": [{\"name\": \"delft\", \"hosts\": [\"das[0-1]\"], \"rate\": \"100Mbps\"},"                 \
    " {\"name\": \"leiden\", \"hosts\": 2, \"rate\": \"1Gbps\"}],"                                             \
    " \"links\": [{\"name\": \"sea\", \"between\": [\"delft\", \"leiden\"], \"rate\": \"80Mbps\", \"delay\": " \
    "\"5ms\"%s}]}"

/* Three clusters around one place: traffic to or from one of them shares its link. */
static const char star[] =
    "{\"clusters\": [{\"name\": \"a\", \"hosts\": 2}, {\"name\": \"b\", \"hosts\": 4}, {\"name\": \"c\", \"hosts\": "
    "1}], \"places\": [\"middle\"], \"links\": [{\"between\": [\"a\", \"middle\"], \"rate\": \"100Mbps\", \"delay\": "
    "\"1ms\"}, {\"between\": [\"middle\", \"b\"], \"rate\": \"1Gbps\", \"delay\": \"1ms\", \"streams\": 2}, "
    "{\"between\": [\"middle\", \"c\"], \"rate\": \"60Mbps\", \"delay\": \"1ms\"}]}";

static const char *host_name(void *context, uint32_t rank)
{
    return ((const char *const *)context)[rank];
}

static int create(const char *text, uint32_t ranks, uint32_t emulated, const char *const *names,
                  struct cw_clusters **clusters, char error[600])
{
    struct cw_clusters_request request = {
        .text = text,
        .length = strlen(text),
        .place = "wide.json",
        .ranks = ranks,
        .emulated = emulated,
        .host_name = host_name,
        .context = (void *)(uintptr_t)names,
    };
    error[0] = '\0';
    return cw_clusters_create(&request, clusters, error, 600);
}

static struct cw_clusters *made(const char *text, uint32_t ranks, uint32_t emulated)
{
    char error[600];
    struct cw_clusters *clusters = NULL;
    assert_true_msg(create(text, ranks, emulated, NULL, &clusters, error) == CW_OK, "%s", error);
    return clusters;
}

static void without_a_file(void **state)
{
    assert_int_equal(cw_clusters_count(NULL), 1);
    assert_int_equal(cw_clusters_of(NULL, 7), 0);
    cw_clusters_destroy(NULL);
}

static void emulated_hosts_get_ranks_in_blocks(void **state)
{
    char text[600];
    snprintf(text, sizeof(text), TWO, "");
    struct cw_clusters *clusters = made(text, 6, 4);
    static const uint32_t hosts[] = {0, 0, 1, 2, 2, 3};
    static const uint32_t in[] = {0, 0, 0, 1, 1, 1};
    assert_int_equal(cw_clusters_count(clusters), 2);
    for (uint32_t rank = 0; rank < 6; rank++) {
        assert_int_equal(cw_clusters_host(clusters, rank), hosts[rank]);
        assert_int_equal(cw_clusters_of(clusters, rank), in[rank]);
        assert_string_equal(cw_clusters_name(clusters, rank), in[rank] == 0 ? "delft" : "leiden");
    }
    assert_int_equal(cw_clusters_host_share_bps(clusters, 0), 50000000); /* two ranks on its host */
    assert_int_equal(cw_clusters_host_share_bps(clusters, 2), 100000000);
    cw_clusters_destroy(clusters);
}

static void others_are_found_by_name(void **state)
{
    char text[600], error[600];
    struct cw_clusters *clusters = NULL;
    snprintf(text, sizeof(text), TWO, "");
    static const char *const names[] = {"leiden1", "das0.example.org", "das0"};
    assert_int_equal(create(text, 3, 0, names, &clusters, error), CW_OK);
    assert_int_equal(cw_clusters_host(clusters, 0), 3);
    assert_int_equal(cw_clusters_host(clusters, 1), 0);
    assert_int_equal(cw_clusters_of(clusters, 2), 0);
    cw_clusters_destroy(clusters);
    static const char *const strangers[] = {"das0", "elsewhere.example.org"};
    assert_int_equal(create(text, 2, 0, strangers, &clusters, error), CW_ERROR_NOT_FOUND);
    assert_non_null(strstr(error, "wide.json: rank 1: "));
    assert_non_null(strstr(error, "elsewhere.example.org"));
    assert_non_null(strstr(error, "das1")); /* which there are */
    assert_null(strchr(error, '\n'));
}

static void what_is_rejected(void **state)
{
    char text[600], error[600];
    struct cw_clusters *clusters = NULL;
    snprintf(text, sizeof(text), TWO, "");
    assert_int_equal(create(text, 6, 3, NULL, &clusters, error), CW_ERROR_ARGUMENT);
    assert_non_null(strstr(error, "4 hosts, and 3 are emulated"));
    assert_int_equal(create("{\"clusters\": 3}", 6, 3, NULL, &clusters, error), CW_ERROR_ARGUMENT);
    assert_non_null(strstr(error, "wide.json: "));
    assert_null(clusters);
}

static void a_link_is_divided_among_senders(void **state)
{
    char text[600];
    snprintf(text, sizeof(text), TWO, "");
    struct cw_clusters *clusters = made(text, 8, 4);
    struct cw_clusters_share share = cw_clusters_share(clusters, 0, 1);
    assert_int_equal(share.rate_bps, 20000000); /* 80 Mb/s among four ranks */
    assert_int_equal(share.link_rate_bps, 80000000);
    assert_int_equal(share.shaper, 0);
    cw_clusters_destroy(clusters);
    snprintf(text, sizeof(text), TWO, ", \"streams\": 1");
    clusters = made(text, 8, 4);
    assert_int_equal(cw_clusters_share(clusters, 0, 1).rate_bps, 50000000); /* half of its host's link */
    assert_int_equal(cw_clusters_share(clusters, 7, 0).rate_bps, 80000000); /* all of the long one */
    cw_clusters_destroy(clusters);
    snprintf(text, sizeof(text), TWO, ", \"streams\": 100");
    clusters = made(text, 8, 4);
    assert_int_equal(cw_clusters_share(clusters, 0, 1).rate_bps, 20000000); /* the maximum is four */
    cw_clusters_destroy(clusters);
}

/* Of three clusters one is joined by a link of unknown rate: traffic across it has no share to keep to. */
static void rates_that_nobody_knows(void **state)
{
    char text[sizeof(star)];
    memcpy(text, star, sizeof(star));
    char *rate = strstr(text, "\"60Mbps\"");
    assert_non_null(rate);
    memcpy(rate, "\"found\" ", strlen("\"60Mbps\""));
    struct cw_clusters *clusters = made(text, 7, 7);
    struct cw_clusters_share share = cw_clusters_share(clusters, 0, 2);
    assert_int_equal(share.rate_bps, 0);
    assert_int_equal(share.link_rate_bps, 0);
    assert_int_equal(share.shaper, CW_SHAPER_NONE);
    share = cw_clusters_share(clusters, 0, 1);
    assert_int_equal(share.rate_bps, 50000000); /* 100 Mb/s of two ranks */
    assert_int_equal(share.shaper, 0);
    assert_int_equal(cw_clusters_share(clusters, 6, 0).rate_bps, 0);
    cw_clusters_destroy(clusters);
}

static void links_are_shared_by_all_that_cross(void **state)
{
    struct cw_clusters *clusters = made(star, 7, 7);
    /* from a: its link among its two ranks, 50; b's among min(2, 2) of a and 1 of c; c's, 60, among 2 of a and 4 of
     * b */
    struct cw_clusters_share to_b = cw_clusters_share(clusters, 0, 1);
    struct cw_clusters_share to_c = cw_clusters_share(clusters, 0, 2);
    assert_int_equal(to_b.rate_bps, 50000000);
    assert_int_equal(to_b.link_rate_bps, 100000000);
    assert_int_equal(to_c.rate_bps, 10000000);
    assert_int_equal(to_c.link_rate_bps, 60000000);
    assert_int_not_equal(to_b.shaper, to_c.shaper);
    /* from c: its own link bounds both ways: they share a shaper; but a's has 100 among 4 of b and 1 of c */
    assert_int_equal(cw_clusters_share(clusters, 6, 1).rate_bps, 60000000);
    assert_int_equal(cw_clusters_share(clusters, 6, 0).rate_bps, 20000000);
    /* from b: its link gives 500 to each of two senders, a and c */
    assert_int_equal(cw_clusters_share(clusters, 2, 0).rate_bps, 20000000);
    assert_int_equal(cw_clusters_share(clusters, 2, 2).rate_bps, 10000000);
    cw_clusters_destroy(clusters);
}

/* A cluster at the hub of `leaves` others, all links alike: its own hosts' links, or the long ones, bound it. */
static struct cw_clusters *hub(uint32_t leaves, const char *host_rate)
{
    size_t room = 1000 + 200 * (size_t)leaves;
    char *text = malloc(room);
    int used = snprintf(text, room, "{\"clusters\": [{\"name\": \"hub\", \"hosts\": 1, \"rate\": \"%s\"}", host_rate);
    for (uint32_t i = 0; i < leaves; i++) {
        used += snprintf(text + used, room - (size_t)used, ", {\"name\": \"leaf%u\", \"hosts\": 1}", i);
    }
    used += snprintf(text + used, room - (size_t)used, "], \"links\": [");
    for (uint32_t i = 0; i < leaves; i++) {
        used += snprintf(text + used, room - (size_t)used,
                         "%s{\"between\": [\"hub\", \"leaf%u\"], \"rate\": \"%uMbps\", \"delay\": \"1ms\"}",
                         i > 0 ? ", " : "", i, 1000 - 10 * i);
    }
    snprintf(text + used, room - (size_t)used, "]}");
    struct cw_clusters *clusters = made(text, leaves + 1, leaves + 1);
    free(text);
    return clusters;
}

static void shapers_go_by_bottleneck(void **state)
{
    struct cw_clusters *clusters = hub(3, "10Mbps");
    for (uint32_t to = 1; to <= 3; to++) { /* the host's own link bounds all of them together */
        assert_int_equal(cw_clusters_share(clusters, 0, to).shaper, 0);
        assert_int_equal(cw_clusters_share(clusters, 0, to).rate_bps, 10000000);
    }
    cw_clusters_destroy(clusters);
    /* the link to a leaf carries what comes from all other leaves, too */
    clusters = hub(CW_SHAPERS_MAX, "10Gbps");
    for (uint32_t to = 1; to <= CW_SHAPERS_MAX; to++) {
        assert_int_equal(cw_clusters_share(clusters, 0, to).shaper, to - 1);
        assert_int_equal(cw_clusters_share(clusters, 0, to).rate_bps,
                         (1000 - 10 * (to - 1)) * UINT64_C(1000000) / CW_SHAPERS_MAX);
    }
    cw_clusters_destroy(clusters);
    clusters = hub(CW_SHAPERS_MAX + 4, "10Gbps");
    for (uint32_t to = CW_SHAPERS_MAX; to <= CW_SHAPERS_MAX + 4; to++) { /* the last one has the least of the rest */
        assert_int_equal(cw_clusters_share(clusters, 0, to).shaper, CW_SHAPERS_MAX - 1);
        assert_int_equal(cw_clusters_share(clusters, 0, to).rate_bps,
                         (1000 - 10 * (CW_SHAPERS_MAX + 3)) * UINT64_C(1000000) / (CW_SHAPERS_MAX + 4));
    }
    cw_clusters_destroy(clusters);
}

static void links_report_what_is_sealed(void **state)
{
    static const char line[] =
        "{\"clusters\": [{\"name\": \"a\", \"hosts\": 1}, {\"name\": \"b\", \"hosts\": 1}, {\"name\": \"c\", "
        "\"hosts\": 1}], \"links\": [{\"between\": [\"a\", \"b\"], \"rate\": \"1Gbps\", \"delay\": \"1ms\", "
        "\"encrypt\": false}, "
        "{\"between\": [\"b\", \"c\"], \"rate\": \"1Gbps\", \"delay\": \"1ms\"}]}";
    struct cw_clusters *clusters = made(line, 3, 3);
    assert_false(cw_clusters_is_sealed(clusters, 0, 1));
    assert_true(cw_clusters_is_sealed(clusters, 1, 2));
    assert_true(cw_clusters_is_sealed(clusters, 0, 2)); /* one of two */
    assert_true(cw_clusters_is_sealed(clusters, 2, 0));
    cw_clusters_destroy(clusters);
}

int main(void)
{
    return TESTS_RUN(without_a_file, emulated_hosts_get_ranks_in_blocks, others_are_found_by_name, what_is_rejected,
                     a_link_is_divided_among_senders, rates_that_nobody_knows, links_are_shared_by_all_that_cross,
                     shapers_go_by_bottleneck, links_report_what_is_sealed);
}
