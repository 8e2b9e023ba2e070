/* Overrides of algorithms: accepted texts, and error texts for others. */
#include "collectives/choose/override.h"
#include "dataplane/status.h"
#include "tests/test.h"

static void words_are_understood(void **state)
{
    struct cw_override override;
    char error[600] = "";
    const char *text =
        "bcast=binomial,allgather=concurrent:concurrency=4,,bcast=d-ary:segment=65536:degree=3,reduce-scatter=ring,"
        "alltoallv=greedy:threshold=1024";
    assert_int_equal(cw_override_parse(text, &override, error, sizeof(error)), CW_OK);
    assert_string_equal(override.of[CW_BCAST].name, "d-ary"); /* the last word counts */
    assert_int_equal(override.of[CW_BCAST].parameters.segment_bytes, 65536);
    assert_int_equal(override.of[CW_BCAST].parameters.degree, 3);
    assert_int_equal(override.of[CW_ALLGATHER].parameters.concurrency, 4);
    assert_string_equal(override.of[CW_REDUCE_SCATTER].name, "ring");
    assert_string_equal(override.of[CW_BARRIER].name, "");
    assert_string_equal(override.of[CW_ALLTOALL].name, ""); /* another call */
    assert_string_equal(override.of[CW_OVERRIDE_ALLTOALLV].name, "greedy");
    assert_int_equal(override.of[CW_OVERRIDE_ALLTOALLV].parameters.threshold_bytes, 1024);
    assert_int_equal(cw_override_parse("alltoallv=pairs,alltoall=bruck", &override, error, sizeof(error)), CW_OK);
    assert_string_equal(override.of[CW_ALLTOALL].name, "bruck");
    assert_string_equal(override.of[CW_OVERRIDE_ALLTOALLV].name, "pairs");
    assert_int_equal(cw_override_parse("scatterv=dynamic,scatter=binomial", &override, error, sizeof(error)), CW_OK);
    assert_string_equal(override.of[CW_SCATTER].name, "binomial");
    assert_string_equal(override.of[CW_OVERRIDE_SCATTERV].name, "dynamic");
    assert_int_equal(cw_override_parse("scatterv=static,scatterv=pairs", &override, error, sizeof(error)), CW_OK);
    assert_string_equal(override.of[CW_OVERRIDE_SCATTERV].name, "pairs");
    assert_int_equal(cw_override_parse("", &override, error, sizeof(error)), CW_OK);
    assert_string_equal(override.of[CW_BCAST].name, "");
    assert_int_equal(cw_override_parse("bcast=hierarchical,scan=host", &override, error, sizeof(error)), CW_OK);
    assert_string_equal(override.of[CW_BCAST].name, "hierarchical");
    assert_string_equal(override.of[CW_SCAN].name, "host");
}

static void the_rest_is_rejected(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        {"bcast", "is not COLLECTIVE=ALGORITHM"},
        {"broadcast=flat", "'broadcast' is no collective; there are bcast scatter"},
        {"bcast=", "bcast has no algorithm ''; there are flat"},
        {"bcast=ring", "there are flat"},
        {"bcast=of-another-kind", "bcast has no algorithm"},
        {"scan=hierarchical", "scan has no algorithm"},
        {"alltoallv=host", "alltoallv has no algorithm 'host'"},
        {"bcast=flat:segment", "is no parameter with a number"},
        {"bcast=flat:segment=0", "is no parameter with a number"},
        {"bcast=flat:segment=-1", "is no parameter with a number"},
        {"bcast=flat:segment=8K", "is no parameter with a number"},
        {"bcast=flat:degree=99999999", "no parameter 'degree' of that size"},
        {"bcast=flat:colour=1", "no parameter 'colour'"},
        {"alltoallv=bruck",
         "alltoallv has no algorithm 'bruck'; there are pairs direct rotated"}, /* equal counts only */
        {"alltoallv=clusters-heads", "alltoallv has no algorithm 'clusters-heads'"},
        {"alltoall=pairs", "alltoall has no algorithm 'pairs'; there are direct"},
        {"alltoallv=static", "alltoallv has no algorithm 'static'"},
        {"scatter=static", "scatter has no algorithm 'static'; there are flat"},
        {"scatterv=flat", "scatterv has no algorithm 'flat'; there are pairs static dynamic"},
        {"scatterv=", "scatterv has no algorithm ''; there are pairs static dynamic"},
        {"alltoallw=direct", "'alltoallw' is no collective"},
        {"alltoallv=greedy:threshold=0", "is no parameter with a number"},
        {"reduce=binomial,bcast=what", "bcast has no algorithm 'what'"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_override override = {.of = {[CW_SCAN] = {.name = "untouched"}}};
        char error[600] = "";
        int status = cw_override_parse(rows[i].text, &override, error, sizeof(error));
        assert_true_msg(status == CW_ERROR_ARGUMENT && strstr(error, rows[i].says) != NULL, "%s: %d, '%s'",
                        rows[i].text, status, error);
        assert_string_equal(override.of[CW_SCAN].name, "untouched");
    }
}

/* The written form of any algorithm is accepted again. */
static void what_is_written_is_understood(void **state)
{
    struct cw_parameters parameters = {.segment_bytes = 12345, .degree = 5, .concurrency = 7, .threshold_bytes = 99};
    const struct cw_algorithm *algorithm;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        struct cw_override override;
        char text[160], error[600] = "";
        cw_override_write(algorithm, &parameters, text, sizeof(text));
        assert_int_equal(cw_override_parse(text, &override, error, sizeof(error)), CW_OK);
        assert_string_equal(override.of[algorithm->collective].name, algorithm->name);
        assert_true((algorithm->takes & CW_TAKES_SEGMENT) == 0 ||
                    override.of[algorithm->collective].parameters.segment_bytes == 12345);
        assert_true((algorithm->takes & CW_TAKES_THRESHOLD) == 0 ||
                    override.of[algorithm->collective].parameters.threshold_bytes == 99);
    }
}

int main(void)
{
    return TESTS_RUN(words_are_understood, the_rest_is_rejected, what_is_written_is_understood);
}
