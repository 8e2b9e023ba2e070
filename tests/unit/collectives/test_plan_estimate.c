/* Estimated memory of plans: near the real size, and reported at once for plans that cannot be built. */
#include "built_plans.h"

static struct cw_problem *problem_make(enum cw_collective collective, uint32_t ranks, uint64_t count)
{
    return problem_built(
        &(struct cw_problem_request){.collective = collective, .ranks = ranks, .element_bytes = 1, .count = count});
}

static uint64_t estimate(const struct cw_problem *problem, const struct cw_algorithm *algorithm)
{
    struct cw_parameters parameters = cw_parameters_default();
    uint64_t bytes;
    char error[200];
    int status = cw_plan_estimate(problem, algorithm, &parameters, &bytes, error, sizeof(error));
    assert_true_msg(status == CW_OK, "%s: %s", algorithm->name, error);
    return bytes;
}

/* Within a factor of three of every algorithm's plan, except its root's own data. */
static void test_near_the_time_of_plans(void **state)
{
    const struct cw_algorithm *algorithm;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        if ((algorithm->needs & (CW_NEEDS_CLUSTERS | CW_NEEDS_COUNTS | CW_NEEDS_ONE_HOST | CW_NEEDS_HOSTS)) != 0) {
            continue;
        }
        struct cw_parameters parameters = cw_parameters_default();
        struct cw_problem *problem = problem_make(algorithm->collective, 300, 8000);
        struct cw_plan *plan;
        char error[200];
        uint64_t guess = estimate(problem, algorithm);
        assert_int_equal(cw_plan_build(problem, algorithm, &parameters, &plan, error, sizeof(error)), CW_OK);
        uint64_t root = cw_schedule_memory_bytes(&plan->schedules[0]);
        uint64_t bytes = cw_plan_memory_bytes(plan);
        assert_true_msg(guess <= 3 * bytes && bytes - root <= 3 * guess, "%s %s: %llu bytes, %llu guessed",
                        cw_collective_name(algorithm->collective), algorithm->name, (unsigned long long)bytes,
                        (unsigned long long)guess);
        cw_plan_destroy(plan);
    }
}

/* A million ranks: sizes that grow with their square are too much, sizes that grow with their logarithm are not. */
static void test_absurd_numbers_of_ranks(void **state)
{
    static const struct {
        enum cw_collective collective;
        const char *algorithm;
        bool fits;
    } rows[] = {
        {CW_ALLTOALL, "pairwise", false}, {CW_ALLTOALL, "greedy", false}, {CW_ALLTOALL, "bruck", false},
        {CW_SCAN, "direct", false},       {CW_ALLGATHER, "ring", false},  {CW_ALLREDUCE, "direct", false},
        {CW_BCAST, "binomial", true},     {CW_SCAN, "chain", true},       {CW_GATHER, "chain", true},
    };
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_problem *problem = problem_make(rows[i].collective, 1000000, 8);
        uint64_t bytes = estimate(problem, cw_algorithm_find(rows[i].collective, rows[i].algorithm));
        assert_true_msg((bytes <= CW_PLAN_BYTES_MAX) == rows[i].fits, "%s: %llu bytes guessed", rows[i].algorithm,
                        (unsigned long long)bytes);
        cw_problem_destroy(problem);
    }
}

int main(void)
{
    return TESTS_RUN(test_near_the_time_of_plans, test_absurd_numbers_of_ranks);
}
