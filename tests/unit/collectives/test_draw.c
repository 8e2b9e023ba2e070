/* Pictures: well-formed, and of what the trace has: a bar for each thing that was sent and received, the last rank
 * marked. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/draw/draw.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { PICTURE_BYTES_MAX = 500000, CLUSTERED_RANKS = 32 };

static struct cw_plan *plan_of(const struct cw_problem_request *request, const char *algorithm)
{
    struct cw_parameters parameters = cw_parameters_default();
    struct cw_problem *problem;
    struct cw_plan *plan;
    char error[200];
    parameters.eager_max_bytes = CW_EAGER_ALL;
    assert_int_equal(cw_problem_create(request, &problem, error, sizeof(error)), CW_OK);
    assert_int_equal(cw_plan_build(problem, cw_algorithm_find(request->collective, algorithm), &parameters, &plan,
                                   error, sizeof(error)),
                     CW_OK);
    return plan;
}

static struct cw_plan *plan_make(enum cw_collective collective, const char *algorithm, uint32_t ranks, uint64_t count,
                                 const uint64_t *counts)
{
    return plan_of(
        &(struct cw_problem_request){
            .collective = collective, .ranks = ranks, .element_bytes = 1, .count = count, .counts = counts},
        algorithm);
}

static char *timeline_of(const struct cw_plan *plan, struct cw_price *price)
{
    struct cw_network network;
    struct cw_trace trace;
    char *text = NULL;
    size_t length;
    assert_int_equal(cw_network_find("gigabit", &network), CW_OK);
    assert_int_equal(cw_price_interpret(plan, &network, price, &trace), CW_OK);
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    assert_int_equal(cw_draw_timeline(plan, &trace, price, stream), CW_OK);
    fclose(stream);
    cw_trace_dispose(&trace);
    return text;
}

static uint32_t count_of(const char *text, const char *word)
{
    uint32_t count = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        count++;
    }
    return count;
}

/* Every element is closed, in order; attributes are quoted; no number is broken. */
static void assert_well_formed(const char *text)
{
    char open[16][16];
    uint32_t depth = 0;
    assert_null(strstr(text, "\"nan"));
    assert_null(strstr(text, "\"-nan"));
    assert_null(strstr(text, "\"inf"));
    for (const char *at = strchr(text, '<'); at != NULL; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        assert_non_null(end);
        uint32_t quotes = 0;
        for (const char *c = at; c < end; c++) {
            quotes += *c == '"';
        }
        assert_int_equal(quotes % 2, 0);
        char name[16] = "";
        const char *begin = at[1] == '/' ? at + 2 : at + 1;
        for (uint32_t i = 0; i + 1 < sizeof(name) && isalpha((unsigned char)begin[i]); i++) {
            name[i] = begin[i];
        }
        if (at[1] == '/') {
            assert_true(depth > 0);
            assert_string_equal(open[--depth], name);
        } else if (end[-1] != '/') {
            assert_true(depth < 16);
            memcpy(open[depth++], name, sizeof(name));
        }
    }
    assert_int_equal(depth, 0);
}

static void test_timeline(void **state)
{
    struct cw_plan *plan = plan_make(CW_BCAST, "binomial", 16, 65536, NULL);
    struct cw_price price;
    char *text = timeline_of(plan, &price);
    char last[32];
    assert_well_formed(text);
    assert_int_equal(count_of(text, "phase 0, op"), 15 * 3); /* sent, received, and a line: each says so on its own */
    assert_int_equal(count_of(text, ">rank "), 16 + 16);     /* rows and where they are done */
    snprintf(last, sizeof(last), "bold\">rank %u<", price.last_rank);
    assert_non_null(strstr(text, last));
    assert_int_equal(count_of(text, "font-weight=\"bold\">rank "), 1);
    free(text);
    cw_plan_destroy(plan);
}

static void test_timelines_of_any_plan(void **state)
{
    const struct cw_algorithm *algorithm;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        if ((algorithm->needs & CW_NEEDS_CLUSTERS) != 0) {
            continue;
        }
        for (uint32_t ranks = 1; ranks <= 5; ranks += 2) {
            struct cw_plan *plan =
                plan_make(algorithm->collective, algorithm->name, ranks, ranks == 3 ? 0 : 20000, NULL);
            struct cw_price price;
            char *text = timeline_of(plan, &price);
            assert_well_formed(text);
            free(text);
            cw_plan_destroy(plan);
        }
    }
}

/* A pipeline of thousands of segments: some hundred kilobytes, and all parts are told. */
static void test_long_pipelines_are_bands(void **state)
{
    struct cw_plan *plan = plan_make(CW_BCAST, "segmented-chain", 12, 8192ull * 4000, NULL);
    struct cw_price price;
    char *text = timeline_of(plan, &price);
    assert_well_formed(text);
    assert_int_equal(price.messages, 11 * 4000);
    assert_in_range(strlen(text), 1000, PICTURE_BYTES_MAX);
    assert_non_null(strstr(text, "rank 0 sends "));
    assert_non_null(strstr(text, "rank 11 receives "));
    assert_int_equal(count_of(text, "rank 11 sends "), 0);
    uint64_t parts = 0;
    for (const char *at = strstr(text, "rank 5 receives "); at != NULL; at = strstr(at + 1, "rank 5 receives ")) {
        parts += strtoull(strstr(at, " in ") + 4, NULL, 10);
    }
    assert_int_equal(parts, 4000);
    free(text);
    cw_plan_destroy(plan);
}

/* 32 MB across two clusters: some hundred kilobytes, in the colours of the clusters. */
static void test_clusters_are_coloured(void **state)
{
    static const char *const algorithms[] = {"clusters-overlapped", "van-de-geijn"};
    uint32_t cluster_of[CLUSTERED_RANKS];
    for (uint32_t rank = 0; rank < CLUSTERED_RANKS; rank++) {
        cluster_of[rank] = rank / (CLUSTERED_RANKS / 2);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct cw_plan *plan = plan_of(&(struct cw_problem_request){.collective = CW_BCAST,
                                                                    .ranks = CLUSTERED_RANKS,
                                                                    .element_bytes = 1,
                                                                    .count = 32 << 20,
                                                                    .cluster_count = 2,
                                                                    .cluster_of = cluster_of},
                                       algorithms[i]);
        struct cw_price price;
        char *text = timeline_of(plan, &price);
        assert_well_formed(text);
        assert_in_range(strlen(text), 1000, PICTURE_BYTES_MAX);
        assert_int_equal(count_of(text, ">cluster "), 2);
        assert_int_equal(count_of(text, ">phase "), 0);
        assert_non_null(strstr(text, ", to cluster 1<"));
        assert_non_null(strstr(text, ", from cluster 0<"));
        free(text);
        cw_plan_destroy(plan);
    }
}

static void test_matrix(void **state)
{
    static const uint64_t counts[] = {9, 100, 200, 300, 9, 0, 7, 0, 9};
    struct cw_plan *plan = plan_make(CW_ALLTOALL, "greedy", 3, 0, counts);
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    assert_int_equal(cw_draw_matrix(plan, stream), CW_OK);
    fclose(stream);
    assert_well_formed(text);
    assert_non_null(strstr(text, "1 to 0: 300 B in phase 0"));
    assert_non_null(strstr(text, "0 to 2: 200 B in phase 0"));
    assert_non_null(strstr(text, "0 to 1: 100 B in phase 1"));
    assert_null(strstr(text, "1 to 2:"));
    assert_null(strstr(text, "1 to 1:"));
    free(text);
    cw_plan_destroy(plan);
    plan = plan_make(CW_ALLTOALL, "direct", CW_DRAW_MATRIX_RANKS_MAX + 1, 1, NULL);
    assert_int_equal(cw_draw_matrix(plan, stdout), CW_ERROR_LIMIT);
    cw_plan_destroy(plan);
    plan = plan_make(CW_BCAST, "flat", 3, 5, NULL);
    assert_int_equal(cw_draw_matrix(plan, stdout), CW_ERROR_UNSUPPORTED);
    cw_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_timelines_of_any_plan),
        cmocka_unit_test(test_long_pipelines_are_bands),
        cmocka_unit_test(test_clusters_are_coloured),
        cmocka_unit_test(test_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
