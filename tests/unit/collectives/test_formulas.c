/* Closed forms against the interpreter: the promise of each formula's class, over numbers of ranks, sizes, parameters
 * and networks. */
#include <math.h>

#include "built_plans.h"
#include "collectives/price/price.h"

enum { NETWORKS_MAX = 12, RANKS_LIMIT = 128, VARIANTS = 4 };

static struct cw_network networks[NETWORKS_MAX];
static const char *network_names[NETWORKS_MAX];
static uint32_t network_count;

static void network_add(const char *name, struct cw_plogp lan, uint32_t ports)
{
    networks[network_count] = (struct cw_network){
        .paths = {lan, cw_plogp_linear(100000, 100, 1)},
        .ports = ports,
        .wan_bytes_per_ns = 2,
        .reduce_ns_per_byte = 0.5,
        .contention = 0.4,
    };
    network_names[network_count++] = name;
}

/* Those of the program, with copies that cost nothing, and some where one thing or the other is the bottleneck. */
static void networks_make(void)
{
    for (const char *name; (name = cw_network_name(network_count)) != NULL; network_count++) {
        cw_network_find(name, &networks[network_count]);
        networks[network_count].copy_ns_per_byte = 0;
        network_names[network_count] = name;
    }
    network_add("linear", cw_plogp_linear(1000, 100, 1), 1);
    network_add("linear, 2 ports", cw_plogp_linear(1000, 100, 1), 2);
    network_add("linear, 3 ports, slow processor", cw_plogp_linear(50, 700, 1), 3);
    network_add("linear, slow processor", cw_plogp_linear(10, 900, 2), 1);
    network_add("no overheads", cw_plogp_linear(5000, 0, 1), 1);
}

/* ---- Holding a formula to its class ---- */

struct tally {
    uint64_t values[CW_FORMULA_FITTED + 1]; /* by class */
};

static struct tally *tallies; /* by formula */

static bool keeps_promise(const struct cw_formula *formula, const struct cw_formula_value *value, double found)
{
    double slack = 1e-9 * fmax(found, value->time_ns);
    switch (value->kind) {
    case CW_FORMULA_EXACT:
        return fabs(value->time_ns - found) <= slack;
    case CW_FORMULA_UPPER_BOUND:
        return found <= value->time_ns + slack;
    case CW_FORMULA_LOWER_BOUND:
        return found >= value->time_ns - slack;
    case CW_FORMULA_FITTED:
        return found <= value->time_ns * formula->factor && found * formula->factor >= value->time_ns;
    default:
        return isfinite(value->time_ns) && value->time_ns >= 0;
    }
}

static void formulas_check(const struct cw_plan *plan, const struct cw_parameters *parameters, uint32_t network,
                           double found)
{
    const struct cw_formula *formula;
    for (uint32_t i = 0; (formula = cw_formula_at(i)) != NULL; i++) {
        struct cw_formula_value value;
        if (formula->collective != plan->problem->collective || strcmp(formula->algorithm, plan->algorithm) != 0 ||
            cw_formula_evaluate(formula, plan->problem, parameters, &networks[network], &value) != CW_OK) {
            continue;
        }
        tallies[i].values[value.kind] += plan->problem->ranks > 1 ? 1 : 0; /* one rank alone is exact */
        if (!keeps_promise(formula, &value, found)) {
            fail_msg("%s %s, '%s' (class %d): %.9g, but the interpreter finds %.9g; %u ranks, %llu bytes, root %u, "
                     "segment %llu, degree %u, concurrency %u, network '%s'",
                     cw_collective_name(formula->collective), formula->algorithm, formula->text, (int)value.kind,
                     value.time_ns, found, plan->problem->ranks, (unsigned long long)plan->problem->count,
                     plan->problem->root, (unsigned long long)parameters->segment_bytes, parameters->degree,
                     parameters->concurrency, network_names[network]);
        }
    }
}

/* ---- Cases ---- */

struct formula_case {
    const struct cw_algorithm *algorithm;
    uint32_t ranks;
    uint64_t bytes;
    uint32_t variant;
    uint64_t eager_max_bytes;
    uint32_t network_step; /* every network, or some */
};

static struct cw_parameters parameters_of(const struct formula_case *test)
{
    static const uint64_t segments[VARIANTS] = {4, 7, 1, 20};
    return (struct cw_parameters){
        .eager_max_bytes = test->eager_max_bytes,
        .segment_bytes = test->bytes / segments[test->variant] + (test->variant == 1),
        .degree = test->variant == 3 ? 1 : 2 + test->variant,
        .concurrency = 2 + test->variant,
        .senders = test->variant == 0 ? 0 : 4,
    };
}

static void case_run(const struct formula_case *test)
{
    uint32_t cluster_of[RANKS_LIMIT];
    bool clusters = (test->algorithm->needs & CW_NEEDS_CLUSTERS) != 0;
    bool turned = test->variant == 1 && cw_collective_rooted(test->algorithm->collective);
    struct cw_problem_request request = {
        .collective = test->algorithm->collective,
        .ranks = test->ranks,
        .element_bytes = 1,
        .count = test->bytes,
        .root = turned ? test->ranks / 2 : 0,
        .ordered = turned && (test->algorithm->needs & CW_NEEDS_COMMUTATIVE) == 0 &&
                   cw_collective_reduces(test->algorithm->collective),
    };
    if (clusters && test->ranks < 2) {
        return;
    }
    if (clusters) {
        for (uint32_t i = 0; i < test->ranks; i++) {
            cluster_of[i] = i * 2 / test->ranks;
        }
        request.cluster_count = 2;
        request.cluster_of = cluster_of;
    }
    struct cw_parameters parameters = parameters_of(test);
    struct cw_plan *plan = plan_built(&request, test->algorithm->name, &parameters);
    for (uint32_t i = 0; i < network_count; i += test->network_step) {
        struct cw_price price;
        assert_int_equal(cw_price_interpret(plan, &networks[i], &price, NULL), CW_OK);
        formulas_check(plan, &parameters, i, price.time_ns);
    }
    cw_plan_destroy(plan);
}

/* Variants differ in the root and in the algorithm's parameters. */
static uint32_t variants_of(const struct cw_algorithm *algorithm)
{
    uint32_t parameters = CW_TAKES_SEGMENT | CW_TAKES_DEGREE | CW_TAKES_CONCURRENCY | CW_TAKES_SENDERS;
    if ((algorithm->takes & parameters) != 0) {
        return VARIANTS;
    }
    return cw_collective_rooted(algorithm->collective) ? 2 : 1;
}

static const uint64_t sizes[] = {1, 1000, 100000, 131040};

static void ranks_run(uint32_t ranks, uint64_t eager_max_bytes, uint32_t network_step, size_t size_step)
{
    const struct cw_algorithm *algorithm;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        if (cw_formula_find(algorithm->collective, algorithm->name) == NULL) {
            continue;
        }
        for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j += size_step) {
            uint32_t variants = ranks > 40 ? 1 : variants_of(algorithm);
            for (uint32_t variant = 0; variant < variants; variant++) {
                case_run(&(struct formula_case){algorithm, ranks, sizes[j], variant, eager_max_bytes, network_step});
            }
        }
    }
}

static void classes_hold(void **state)
{
    const bool is_short = test_is_short();
    for (uint32_t ranks = 1; ranks <= 40; ranks++) {
        uint32_t network_step = ranks <= 17 ? (is_short ? 7 : 1) : (is_short ? 11 : 3);
        ranks_run(ranks, CW_EAGER_ALL, network_step, ranks <= 17 ? 1 : 3);
    }
    static const uint32_t many[] = {64, 100, 127, 128};
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
        ranks_run(many[i], CW_EAGER_ALL, 4, 2);
    }
    /* Formulas with handshakes promise something there, too. */
    for (uint32_t ranks = 2; ranks <= 20; ranks += 3) {
        ranks_run(ranks, 0, 1, 2);
    }
}

/* Not by the back door of promising nothing. */
static void best_class_is_reached(void **state)
{
    const struct cw_formula *formula;
    for (uint32_t i = 0; (formula = cw_formula_at(i)) != NULL; i++) {
        assert_true_msg(tallies[i].values[formula->kind] != 0, "%s %s, '%s' never was of its class",
                        cw_collective_name(formula->collective), formula->algorithm, formula->text);
        assert_true(formula->kind != CW_FORMULA_FITTED || formula->factor > 1);
        assert_true(strlen(formula->text) > 3 && strlen(formula->source) > 10);
    }
}

/* ---- What the table has ---- */

static void algorithms_have_formulas(void **state)
{
    uint32_t with = 0;
    uint32_t all = 0;
    const struct cw_algorithm *algorithm;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        if ((algorithm->needs & (CW_NEEDS_ONE_HOST | CW_NEEDS_HOSTS)) != 0) {
            continue; /* shared memory and levels are priced by interpretation */
        }
        all++;
        with += cw_formula_find(algorithm->collective, algorithm->name) != NULL ? 1 : 0;
    }
    assert_true(with * 5 >= all * 4);
    const struct cw_formula *formula;
    for (uint32_t i = 0; (formula = cw_formula_at(i)) != NULL; i++) {
        assert_non_null(cw_algorithm_find(formula->collective, formula->algorithm));
    }
    assert_null(cw_formula_find(CW_BCAST, "no such algorithm"));
}

static void what_a_formula_does_not_know_is_not_found(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 4};
    static const uint32_t cluster_of[] = {0, 0, 1, 1};
    struct cw_parameters parameters = cw_parameters_default();
    const struct cw_problem_request requests[] = {
        {.collective = CW_SCATTER, .ranks = 4, .element_bytes = 1, .counts = counts},
        {.collective = CW_SCATTER,
         .ranks = 4,
         .element_bytes = 1,
         .count = 1,
         .cluster_count = 2,
         .cluster_of = cluster_of},
        {.collective = CW_GATHER, .ranks = 4, .element_bytes = 1, .count = 1},
    };
    const struct cw_formula *formula = cw_formula_find(CW_SCATTER, "flat");
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct cw_problem *problem = problem_built(&requests[i]);
        struct cw_formula_value value = {.time_ns = -7};
        assert_int_equal(cw_formula_evaluate(formula, problem, &parameters, &networks[0], &value), CW_ERROR_NOT_FOUND);
        assert_true(value.time_ns < 0);
        cw_problem_destroy(problem);
    }
}

int main(void)
{
    uint32_t count = 0;
    while (cw_formula_at(count) != NULL) {
        count++;
    }
    tallies = calloc(count, sizeof(*tallies));
    networks_make();
    int failed = TESTS_RUN(algorithms_have_formulas, what_a_formula_does_not_know_is_not_found, classes_hold,
                           best_class_is_reached);
    free(tallies);
    return failed;
}
