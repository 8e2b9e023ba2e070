/* Schedules with a race or a deadlock fail over the memory transport under some seeds; the same ones without it never
 * do. This is what makes a plan that passes worth something. Barrier ops, which no race needs, run well. (The sweeps of
 * tests/schedules run the plans of all algorithms.) */
#include "check_plans.h"
#include "tests/schedules/trial.h"
#include "tests/test.h"

enum { SEEDS = 1000, BYTES = 16 };

/* What is built with and without the fault. */
struct racy {
    const char *name;
    void (*build)(struct test_plan *test, bool wrong);
    const char *words;      /* in at least one of the errors */
    uint32_t eager_buffers; /* UINT32_MAX: several */
    uint32_t at_least;      /* seeds of SEEDS that must show it */
};

/* A copy of the root's, sent from scratch memory that is then used for other things; `after` tells what for the wrong
 * one waits. */
static void source_overwritten(struct test_plan *test, bool wrong, bool acknowledged, uint16_t flags)
{
    plan_begin_simple(test, CW_BCAST, 2, BYTES);
    plan_scratch(test, 2 * BYTES);
    copy(test, 0, SEND(0), SCRATCH(0), BYTES);
    uint32_t out = put(test, 0, 1, 0, SCRATCH(0), NOWHERE, BYTES);
    plan_after(test, 0, 0);
    uint32_t heard = wait_signal(test, 0, 1, 5);
    copy(test, 0, SCRATCH(BYTES), SCRATCH(0), BYTES);
    if (!wrong) {
        plan_after(test, 0, out);
    } else if (flags != 0) {
        plan_after_flags(test, 0, out, 0, flags);
    } else {
        plan_after(test, 0, acknowledged ? heard : 0);
    }
    uint32_t in = wait_eager(test, 1, 0, 0, RECEIVE(0), BYTES);
    signal_to(test, 1, 0, 5);
    plan_after(test, 1, in);
}

static void build_overwritten_at_once(struct test_plan *test, bool wrong)
{
    source_overwritten(test, wrong, false, 0);
}

static void build_overwritten_once_it_has_arrived(struct test_plan *test, bool wrong)
{
    source_overwritten(test, wrong, true, 0);
}

static void build_overwritten_once_sent(struct test_plan *test, bool wrong)
{
    source_overwritten(test, wrong, false, CW_DEPENDENCY_SENT);
}

/* Two puts to the same bytes; the second starts when the first is complete at its source, which says nothing of the
 * target. */
static void build_two_puts_to_one_place(struct test_plan *test, bool wrong)
{
    plan_begin_simple(test, CW_SCATTER, 2, BYTES);
    copy(test, 0, SEND(0), RECEIVE(0), BYTES);
    uint32_t ready = wait_signal(test, 0, 1, 5);
    uint32_t first = put(test, 0, 1, 0, SEND(0), RECEIVE(0), BYTES);
    plan_after(test, 0, ready);
    uint32_t heard = wait_signal(test, 0, 1, 6);
    put(test, 0, 1, 1, SEND(BYTES), RECEIVE(0), BYTES);
    plan_after(test, 0, wrong ? first : heard);
    signal_to(test, 1, 0, 5);
    uint32_t in = wait_direct(test, 1, 0, 0, RECEIVE(0), BYTES);
    signal_to(test, 1, 0, 6);
    plan_after(test, 1, in);
    wait_direct(test, 1, 0, 1, RECEIVE(0), BYTES);
    plan_after(test, 1, in);
}

/* Rank 1 passes on what a signal says is there; but the signal may overtake the data. */
static void build_read_before_the_wait(struct test_plan *test, bool wrong)
{
    plan_begin_simple(test, CW_BCAST, 3, BYTES);
    uint32_t ready = wait_signal(test, 0, 1, 5);
    uint32_t out = put(test, 0, 1, 0, SEND(0), RECEIVE(0), BYTES);
    plan_after(test, 0, ready);
    signal_to(test, 0, 1, 1);
    plan_after(test, 0, out);
    signal_to(test, 1, 0, 5);
    uint32_t in = wait_direct(test, 1, 0, 0, RECEIVE(0), BYTES);
    uint32_t told = wait_signal(test, 1, 0, 1);
    put(test, 1, 2, 0, RECEIVE(0), NOWHERE, BYTES);
    plan_after(test, 1, wrong ? told : in);
    wait_eager(test, 2, 1, 0, RECEIVE(0), BYTES);
}

/* A direct put to two ranks when one of them has been heard of. */
static void build_not_entered(struct test_plan *test, bool wrong)
{
    plan_begin_simple(test, CW_BCAST, 3, BYTES);
    for (uint32_t rank = 1; rank < 3; rank++) {
        wait_direct(test, rank, 0, 0, RECEIVE(0), BYTES);
        signal_to(test, rank, 0, 5);
        wait_signal(test, 0, rank, 5);
    }
    multicast(test, 0, 1, 2, 0, SEND(0), RECEIVE(0), BYTES);
    plan_after(test, 0, 0);
    if (!wrong) {
        plan_after(test, 0, 1);
    }
}

/* Both send first and receive then. */
static void build_needs_buffers(struct test_plan *test, bool wrong)
{
    plan_begin_simple(test, CW_ALLTOALL, 2, BYTES);
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t peer = 1 - rank;
        copy(test, rank, SEND(rank * BYTES), RECEIVE(rank * BYTES), BYTES);
        uint32_t out = put(test, rank, peer, 0, SEND(peer * BYTES), NOWHERE, BYTES);
        wait_eager(test, rank, peer, 0, RECEIVE(peer * BYTES), BYTES);
        if (wrong) {
            plan_after(test, rank, out);
        }
    }
}

/* A place for one segment, used again before its last put is complete. */
static void build_slot_used_too_early(struct test_plan *test, bool wrong)
{
    enum { SEGMENTS = 6 };
    plan_begin_simple(test, CW_BCAST, 2, SEGMENTS * BYTES);
    plan_scratch(test, BYTES);
    struct cw_place step = SEND(0);
    step.step = BYTES;
    uint32_t loop = repeat(test, 0, 2, SEGMENTS);
    copy(test, 0, step, SCRATCH(0), BYTES);
    plan_after_flags(test, 0, loop + 2, wrong ? 2 : 1, 0);
    put(test, 0, 1, 0, SCRATCH(0), NOWHERE, BYTES);
    plan_after(test, 0, loop + 1);
    step.buffer = CW_BUFFER_RECEIVE;
    repeat(test, 1, 1, SEGMENTS);
    wait_eager(test, 1, 0, 0, step, BYTES);
}

/* Puts that share a tag. */
static void build_tag_twice(struct test_plan *test, bool wrong)
{
    plan_begin_simple(test, CW_BCAST, 2, BYTES);
    put(test, 0, 1, 0, SEND(0), NOWHERE, BYTES);
    if (wrong) {
        put(test, 0, 1, 0, SEND(0), NOWHERE, BYTES);
    }
    wait_eager(test, 1, 0, 0, RECEIVE(0), BYTES);
}

static void build_unmatched(struct test_plan *test, bool wrong)
{
    plan_begin_simple(test, CW_BCAST, 2, BYTES);
    put(test, 0, 1, 0, SEND(0), NOWHERE, BYTES);
    if (wrong) {
        put(test, 0, 1, 1, SEND(0), NOWHERE, BYTES);
    }
    wait_eager(test, 1, 0, 0, RECEIVE(0), BYTES);
}

/* A local op that can start at once has not been started yet when what comes from elsewhere has gone on. */
static void build_local_op_put_off(struct test_plan *test, bool wrong)
{
    plan_begin_simple(test, CW_GATHER, 2, BYTES);
    plan_scratch(test, 2 * BYTES);
    put(test, 1, 0, 0, SEND(0), NOWHERE, BYTES);
    uint32_t local = copy(test, 0, SEND(0), SCRATCH(0), BYTES);
    uint32_t in = wait_eager(test, 0, 1, 0, SCRATCH(BYTES), BYTES);
    copy(test, 0, SCRATCH(0), RECEIVE(0), 2 * BYTES);
    plan_after(test, 0, in);
    if (!wrong) {
        plan_after(test, 0, local);
    }
}

/* Operands combined as they come. */
static void build_reduce_in_no_order(struct test_plan *test, bool wrong)
{
    plan_begin(test, &(struct cw_problem_request){
                         .collective = CW_REDUCE, .ranks = 3, .element_bytes = 1, .ordered = true, .count = BYTES});
    plan_scratch(test, 3 * BYTES);
    uint32_t last = copy(test, 0, SEND(0), RECEIVE(0), BYTES);
    for (uint32_t rank = 1; rank < 3; rank++) {
        put(test, rank, 0, 0, SEND(0), NOWHERE, BYTES);
        uint32_t in = wait_eager(test, 0, rank, 0, SCRATCH(rank * BYTES), BYTES);
        uint32_t op = reduce(test, 0, SCRATCH(rank * BYTES), RECEIVE(0), BYTES, false);
        plan_after(test, 0, in);
        plan_after(test, 0, last);
        last = wrong ? last : op;
    }
}

/* A barrier that one rank passes by itself. */
static void build_barrier_left_early(struct test_plan *test, bool wrong)
{
    plan_begin_simple(test, CW_BARRIER, 3, 0);
    for (uint32_t rank = 0; rank < 3; rank++) {
        for (uint32_t distance = 1; distance < (wrong ? 2 : 3); distance++) { /* wrong: the last round is missing */
            signal_to(test, rank, (rank + distance) % 3, distance);
            wait_signal(test, rank, (rank + 3 - distance) % 3, distance);
        }
    }
}

static const struct racy racies[] = {
    {"source overwritten at once", build_overwritten_at_once, "the source of its put", UINT32_MAX, 300},
    {"source overwritten once it has arrived", build_overwritten_once_it_has_arrived, "the source", UINT32_MAX, 100},
    {"source overwritten once sent", build_overwritten_once_sent, "the source", UINT32_MAX, 100},
    {"two puts to one place", build_two_puts_to_one_place, "changed before it had arrived", UINT32_MAX, 100},
    {"two puts to one place, the result", build_two_puts_to_one_place, "received is", UINT32_MAX, 100},
    {"read before the wait", build_read_before_the_wait, "changed before", UINT32_MAX, 100},
    {"rank not entered", build_not_entered, "which has not entered", UINT32_MAX, 50},
    {"no buffers", build_needs_buffers, "deadlock: ", 0, 1000},
    {"slot used too early", build_slot_used_too_early, "the source", UINT32_MAX, 100},
    {"tag twice", build_tag_twice, "two puts with tag 0", UINT32_MAX, 1000},
    {"unmatched", build_unmatched, "no wait", 2, 1000},
    {"local op put off", build_local_op_put_off, "received is", UINT32_MAX, 50},
    {"reduced in no order", build_reduce_in_no_order, "received is", UINT32_MAX, 100},
    {"barrier left early", build_barrier_left_early, "leaves the barrier", UINT32_MAX, 100},
};

static void plan_free(struct test_plan *test)
{
    cw_problem_destroy(test->plan.problem);
    free(test->plan.schedules);
    free(test->ranks);
}

/* How many seeds show a fault; whether one of the errors has the words. */
static uint32_t seeds_that_fail(struct test_plan *test, const struct racy *racy, bool *found)
{
    static const uint32_t several[] = {0, 1, 2, PLAN_TRIAL_EAGER_BUFFERS_MANY};
    char error[800];
    struct plan_trial *trial = NULL;
    if (cw_plan_validate(&test->plan, error, sizeof(error)) != CW_OK ||
        plan_trial_create(&test->plan, 7, &trial, error, sizeof(error)) != 0) {
        fail_msg("%s: %s", racy->name, error);
    }
    uint32_t failures = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint32_t buffers = racy->eager_buffers == UINT32_MAX ? several[seed % 4] : racy->eager_buffers;
        error[0] = '\0';
        if (plan_trial_run(trial, seed, buffers, error, sizeof(error)) != 0) {
            failures++;
            *found = *found || strstr(error, racy->words) != NULL;
            assert_true(strlen(error) > 20);
        }
    }
    plan_trial_destroy(trial);
    return failures;
}

static void test_races_show(void **state)
{
    for (size_t i = 0; i < sizeof(racies) / sizeof(racies[0]); i++) {
        struct test_plan test;
        bool found = false;
        racies[i].build(&test, true);
        uint32_t failures = seeds_that_fail(&test, &racies[i], &found);
        plan_free(&test);
        print_message("%-40s %u of %u seeds\n", racies[i].name, failures, (unsigned)SEEDS);
        assert_true(failures >= racies[i].at_least);
        assert_true(found);
        racies[i].build(&test, false);
        assert_int_equal(seeds_that_fail(&test, &racies[i], &found), 0);
        plan_free(&test);
    }
}

/* The trial sees a rank that leaves before all have come. */
static void test_barriers(void **state)
{
    static const uint32_t ranks[] = {1, 2, 3, 4, 5, 8, 16, 33};
    static const struct racy barriers = {.name = "barriers", .words = "", .eager_buffers = UINT32_MAX};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        struct test_plan test;
        bool found = false;
        plan_begin_simple(&test, CW_BARRIER, ranks[i], 0);
        for (uint32_t rank = 0; rank < ranks[i]; rank++) {
            uint32_t second = barrier(&test, rank, 1); /* in no order of their numbers, and at once */
            uint32_t first = barrier(&test, rank, 0);
            barrier(&test, rank, 2);
            plan_after(&test, rank, first);
            plan_after(&test, rank, second);
        }
        assert_int_equal(seeds_that_fail(&test, &barriers, &found), 0);
        plan_free(&test);
    }
}

/* A seed gives the same run again, whatever ran before. */
static void test_seeds_replay(void **state)
{
    struct test_plan test;
    build_read_before_the_wait(&test, true);
    struct plan_trial *trial = NULL;
    char first[800] = "";
    char error[800] = "";
    assert_int_equal(plan_trial_create(&test.plan, 1, &trial, error, sizeof(error)), 0);
    for (uint64_t seed = 0; seed < 100; seed++) {
        first[0] = error[0] = '\0';
        int result = plan_trial_run(trial, seed, 1, first, sizeof(first));
        plan_trial_run(trial, seed + 1000, 0, error, sizeof(error));
        error[0] = '\0';
        assert_int_equal(plan_trial_run(trial, seed, 1, error, sizeof(error)), result);
        assert_string_equal(error, first);
    }
    plan_trial_destroy(trial);
    plan_free(&test);
}

int main(void)
{
    return TESTS_RUN(test_races_show, test_barriers, test_seeds_replay);
}
