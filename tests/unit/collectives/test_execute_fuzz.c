/* Hostile schedules: valid ones with fields changed at random. Validation either refuses one, or the executor lives
 * through it: it may stall or fail, but touches nothing beyond its buffers (run it with
 * -fsanitize=address,undefined). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/plan/trial.h"
#include "collectives/algorithms/build.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { MUTANTS_PER_PLAN = 120, CHANGES_MAX = 3, SCRATCH_BYTES_MAX = 1 << 20 };

struct field {
    size_t offset;
    size_t bytes;
};

#define FIELD(type, name)                                             \
    {                                                                 \
        offsetof(struct type, name), sizeof(((struct type *)0)->name) \
    }

static const struct field op_fields[] = {
    FIELD(cw_op, kind),        FIELD(cw_op, flags),       FIELD(cw_op, phase),
    FIELD(cw_op, peer),        FIELD(cw_op, tag),         FIELD(cw_op, dependency_first),
    FIELD(cw_op, body_count),  FIELD(cw_op, iterations),  FIELD(cw_op, dependency_count),
    FIELD(cw_op, blocks),      FIELD(cw_op, from.buffer), FIELD(cw_op, from.offset),
    FIELD(cw_op, from.step),   FIELD(cw_op, to.buffer),   FIELD(cw_op, to.offset),
    FIELD(cw_op, to.step),     FIELD(cw_op, bytes),       FIELD(cw_op, last_bytes),
    FIELD(cw_op, from_stride), FIELD(cw_op, to_stride),
};

static const struct field dependency_fields[] = {
    FIELD(cw_dependency, op),
    FIELD(cw_dependency, back),
    FIELD(cw_dependency, flags),
};

static const struct field schedule_fields[] = {
    FIELD(cw_schedule, op_count),     FIELD(cw_schedule, dependency_count), FIELD(cw_schedule, group_count),
    FIELD(cw_schedule, member_count), FIELD(cw_schedule, barrier_count),    FIELD(cw_schedule, scratch_bytes),
};

/* All that a mutant of a schedule can differ in. */
struct copy {
    struct cw_schedule schedule;
    struct cw_op *ops;
    struct cw_dependency *dependencies;
};

struct tally {
    uint64_t refused, ran, failed;
};

static uint64_t value_draw(struct cw_random *random, uint64_t before, uint64_t elsewhere)
{
    static const uint64_t extremes[] = {0, 1, UINT8_MAX, UINT16_MAX, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    switch (cw_random_below(random, 6)) {
    case 0:
        return extremes[cw_random_below(random, sizeof(extremes) / sizeof(extremes[0]))];
    case 1:
        return before + 1;
    case 2:
        return before - 1;
    case 3:
        return cw_random_below(random, 16);
    case 4:
        return 1ull << cw_random_below(random, 64);
    default:
        return elsewhere;
    }
}

/* Changes one of `fields` in one of `count` records; often to what another record has there. */
static void field_change(struct cw_random *random, void *records, uint32_t count, size_t record_bytes,
                         const struct field *fields, size_t field_count)
{
    if (count == 0) {
        return;
    }
    const struct field *field = &fields[cw_random_below(random, field_count)];
    uint8_t *at = (uint8_t *)records + cw_random_below(random, count) * record_bytes + field->offset;
    const uint8_t *other = (uint8_t *)records + cw_random_below(random, count) * record_bytes + field->offset;
    uint64_t before = 0;
    uint64_t elsewhere = 0;
    memcpy(&before, at, field->bytes);
    memcpy(&elsewhere, other, field->bytes);
    uint64_t value = value_draw(random, before, elsewhere);
    memcpy(at, &value, field->bytes);
}

#define COUNT(fields) (sizeof(fields) / sizeof((fields)[0]))

static void schedule_change(struct cw_random *random, struct cw_schedule *schedule)
{
    uint64_t kind = cw_random_below(random, 16);
    if (kind == 0) {
        field_change(random, schedule, 1, sizeof(*schedule), schedule_fields, COUNT(schedule_fields));
    } else if (kind <= 5) {
        field_change(random, schedule->dependencies, schedule->dependency_count, sizeof(*schedule->dependencies),
                     dependency_fields, COUNT(dependency_fields));
    } else if (kind == 6 && schedule->op_count > 0) { /* a repeat of another length, all through */
        uint32_t first = (uint32_t)cw_random_below(random, schedule->op_count);
        uint32_t iterations = (uint32_t)cw_random_between(random, 1, 70);
        for (uint32_t i = first; i < schedule->op_count; i++) {
            schedule->ops[i].iterations = schedule->ops[i].iterations > 1 ? iterations : 1;
        }
    } else {
        field_change(random, schedule->ops, schedule->op_count, sizeof(*schedule->ops), op_fields, COUNT(op_fields));
    }
}

static void mutant_run(struct cw_random *random, const struct cw_plan *plan, struct tally *tally)
{
    static const uint32_t buffers[] = {0, 1, PLAN_TRIAL_EAGER_BUFFERS_MANY};
    char error[800];
    struct plan_trial *trial = NULL;
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        if (plan->schedules[rank].scratch_bytes > SCRATCH_BYTES_MAX) {
            return;
        }
    }
    if (cw_plan_validate(plan, error, sizeof(error)) != CW_OK) {
        assert_memory_equal(error, "rank ", 5);
        tally->refused++;
        return;
    }
    if (plan_trial_create(plan, 1, &trial, error, sizeof(error)) != 0) {
        tally->refused++;
        return;
    }
    for (int i = 0; i < 4; i++) {
        int result = plan_trial_run(trial, cw_random_next(random), buffers[i % 3], error, sizeof(error));
        *(result == 0 ? &tally->ran : &tally->failed) += 1;
    }
    plan_trial_destroy(trial);
}

/* Changes the schedules of a plan, runs it, and puts them back. */
static void mutate(struct cw_random *random, struct cw_plan *plan, struct tally *tally)
{
    uint32_t rank = (uint32_t)cw_random_below(random, plan->problem->ranks);
    struct cw_schedule *schedule = &plan->schedules[rank];
    size_t op_bytes = schedule->op_count * sizeof(*schedule->ops);
    size_t dependency_bytes = schedule->dependency_count * sizeof(*schedule->dependencies);
    struct copy kept = {*schedule, malloc(op_bytes + 1), malloc(dependency_bytes + 1)};
    assert_true(kept.ops != NULL && kept.dependencies != NULL);
    if (op_bytes > 0) {
        memcpy(kept.ops, schedule->ops, op_bytes);
    }
    if (dependency_bytes > 0) {
        memcpy(kept.dependencies, schedule->dependencies, dependency_bytes);
    }
    for (uint64_t left = 1 + cw_random_below(random, CHANGES_MAX); left > 0; left--) {
        struct cw_schedule whole = *schedule; /* counts that were changed must not lead the next change astray */
        whole.op_count = kept.schedule.op_count;
        whole.dependency_count = kept.schedule.dependency_count;
        schedule_change(random, &whole);
        if (whole.op_count > kept.schedule.op_count || whole.dependency_count > kept.schedule.dependency_count ||
            whole.group_count > kept.schedule.group_count || whole.member_count > kept.schedule.member_count) {
            continue; /* nothing can be told of lists that are shorter than they say */
        }
        *schedule = whole;
    }
    mutant_run(random, plan, tally);
    *schedule = kept.schedule;
    if (op_bytes > 0) {
        memcpy(schedule->ops, kept.ops, op_bytes);
    }
    if (dependency_bytes > 0) {
        memcpy(schedule->dependencies, kept.dependencies, dependency_bytes);
    }
    free(kept.ops);
    free(kept.dependencies);
}

static struct cw_plan *plan_create(const struct cw_algorithm *algorithm, uint32_t ranks, uint64_t eager_max_bytes)
{
    bool reduces = cw_collective_reduces(algorithm->collective);
    struct cw_problem_request request = {
        .collective = algorithm->collective,
        .ranks = ranks,
        .element_bytes = 2,
        .ordered = reduces && (algorithm->needs & CW_NEEDS_COMMUTATIVE) == 0,
        .count = algorithm->collective == CW_BARRIER ? 0 : 40,
    };
    struct cw_parameters parameters = {.segment_bytes = 10, .eager_max_bytes = eager_max_bytes};
    struct cw_problem *problem = NULL;
    struct cw_plan *plan = NULL;
    char error[200];
    assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_OK);
    if (cw_algorithm_fits(algorithm, problem, error, sizeof(error)) != CW_OK ||
        cw_plan_build(problem, algorithm, &parameters, &plan, error, sizeof(error)) != CW_OK) {
        cw_problem_destroy(problem);
        return NULL;
    }
    return plan;
}

static void test_mutants(void **state)
{
    struct test_seeds seeds = test_seeds(1, 1);
    struct tally tally = {0};
    struct cw_random generator, *random = &generator;
    cw_random_seed(random, test_seeds_next(&seeds));
    for (uint32_t i = 0; cw_algorithm_at(i) != NULL; i++) {
        for (uint32_t eager = 0; eager < 2; eager++) {
            struct cw_plan *plan = plan_create(cw_algorithm_at(i), 4, eager != 0 ? CW_EAGER_ALL : 0);
            for (int mutant = 0; mutant < MUTANTS_PER_PLAN && plan != NULL; mutant++) {
                mutate(random, plan, &tally);
            }
            cw_plan_destroy(plan);
        }
    }
    print_message("%llu refused, %llu runs well, %llu not\n", (unsigned long long)tally.refused,
                  (unsigned long long)tally.ran, (unsigned long long)tally.failed);
    assert_true(tally.refused > 1000 && tally.failed > 1000);
    (void)test_seeds_next(&seeds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mutants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
