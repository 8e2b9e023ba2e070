/* The checker: results of all collectives against the standard, and reductions. */
#include "check_plans.h"
#include "tests/test.h"

enum { NONE = UINT32_MAX, RANKS = 4 };

/* What rank `rank` gets of rank `from`, where that is one block: the collectives that move data. */
struct block {
    uint64_t send_offset;
    uint64_t receive_offset;
    uint64_t bytes;
};

static const uint64_t counts[RANKS] = {3, 0, 5, 2};

/* The standard's text once more, with counts that are all different; by hand, as far as it goes. */
static struct block block_of(const struct cw_problem *problem, uint32_t from, uint32_t rank)
{
    static const uint64_t before[RANKS] = {0, 3, 3, 8};
    uint32_t size = problem->element_bytes;
    switch (problem->collective) {
    case CW_BCAST:
        return (struct block){0, 0, from == problem->root && rank != from ? problem->count * size : 0};
    case CW_SCATTER:
        return (struct block){before[rank] * size, 0, from == problem->root ? counts[rank] * size : 0};
    case CW_GATHER:
        return (struct block){0, before[from] * size, rank == problem->root ? counts[from] * size : 0};
    case CW_ALLGATHER:
        return (struct block){0, before[from] * size, counts[from] * size};
    default: { /* all-to-all: rank i sends i + j elements to rank j */
        struct block block = {0, 0, (uint64_t)(from + rank) * size};
        for (uint32_t i = 0; i < rank; i++) {
            block.send_offset += (uint64_t)(from + i) * size;
        }
        for (uint32_t i = 0; i < from; i++) {
            block.receive_offset += (uint64_t)(i + rank) * size;
        }
        return block;
    }
    }
}

/* Everybody sends everybody what is due, without any order. */
static void begin_moving(struct test_plan *test, enum cw_collective collective, uint32_t root)
{
    uint64_t pairs[RANKS * RANKS];
    for (uint32_t i = 0; i < RANKS * RANKS; i++) {
        pairs[i] = i / RANKS + i % RANKS;
    }
    plan_begin(test, &(struct cw_problem_request){.collective = collective,
                                                  .ranks = RANKS,
                                                  .root = root,
                                                  .element_bytes = 3,
                                                  .count = collective == CW_BCAST ? 7 : 0,
                                                  .counts = collective == CW_BCAST      ? NULL
                                                            : collective == CW_ALLTOALL ? pairs
                                                                                        : counts});
    for (uint32_t from = 0; from < RANKS; from++) {
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            struct block block = block_of(test->plan.problem, from, rank);
            if (block.bytes == 0) {
                continue;
            }
            if (from == rank) {
                copy(test, rank, SEND(block.send_offset), RECEIVE(block.receive_offset), block.bytes);
            } else {
                put(test, from, rank, 1, SEND(block.send_offset), NOWHERE, block.bytes);
                wait_eager(test, rank, from, 1, RECEIVE(block.receive_offset), block.bytes);
            }
        }
    }
}

static void test_moving(void **state)
{
    static const struct {
        enum cw_collective collective;
        uint32_t root;
    } cases[] = {{CW_BCAST, 2}, {CW_SCATTER, 2}, {CW_GATHER, 2}, {CW_ALLGATHER, 0}, {CW_ALLTOALL, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_plan test;
        begin_moving(&test, cases[i].collective, cases[i].root);
        plan_passes(&test);
        /* Each place where a rank receives or copies something, one after another, is made wrong. */
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            for (uint32_t op = 0;; op++) {
                begin_moving(&test, cases[i].collective, cases[i].root);
                if (op >= test.plan.schedules[rank].op_count) {
                    plan_passes(&test);
                    break;
                }
                struct cw_op *changed = &test.ranks[rank].ops[op];
                struct cw_place *from = &changed->from;
                if (changed->kind == CW_OP_WAIT) {
                    from = &test.ranks[changed->peer].ops[0].from;
                    for (uint32_t k = 0; test.ranks[changed->peer].ops[k].kind != CW_OP_PUT ||
                                         test.ranks[changed->peer].ops[k].peer != rank;
                         k++) {
                        from = &test.ranks[changed->peer].ops[k + 1].from;
                    }
                }
                uint32_t sender = changed->kind == CW_OP_WAIT ? changed->peer : rank;
                uint32_t target = changed->kind == CW_OP_PUT ? changed->peer : rank;
                uint64_t limit = cw_problem_buffer_bytes(test.plan.problem, sender, CW_BUFFER_SEND);
                if (from->offset + changed->bytes < limit) {
                    from->offset++;
                } else if (from->offset > 0) {
                    from->offset--;
                } else {
                    plan_passes(&test); /* the whole buffer: nothing else could be sent */
                    continue;
                }
                plan_expect(&test, CW_CHECK_WRONG_RESULT, target, NONE);
            }
        }
    }
}

static void test_wrong_source(void **state)
{
    struct test_plan test;
    plan_begin_simple(&test, CW_ALLGATHER, 2, 4);
    for (uint32_t rank = 0; rank < 2; rank++) {
        copy(&test, rank, SEND(0), RECEIVE(rank == 0 ? 0 : 0), 4); /* rank 1 mixes its places up */
        put(&test, rank, 1 - rank, 1, SEND(0), NOWHERE, 4);
        wait_eager(&test, rank, 1 - rank, 1, RECEIVE(4), 4);
    }
    plan_expect(&test, CW_CHECK_WRONG_RESULT, 1, NONE);
    assert_non_null(strstr(test.report.text, "comes from rank 1 instead of rank 0"));
    plan_begin_simple(&test, CW_ALLGATHER, 1, 8);
    copy(&test, 0, SEND(0), RECEIVE(0), 5);
    plan_expect(&test, CW_CHECK_WRONG_RESULT, 0, NONE);
    assert_int_equal(test.report.byte, 5);
    assert_non_null(strstr(test.report.text, "never written"));
}

/* ---- reductions ---- */

static void begin_reducing(struct test_plan *test, enum cw_collective collective, uint32_t ranks, bool ordered,
                           uint64_t count)
{
    plan_begin(test,
               &(struct cw_problem_request){
                   .collective = collective, .ranks = ranks, .element_bytes = 4, .ordered = ordered, .count = count});
    plan_scratch(test, 4 * count * ranks);
}

/* All send to rank 0, which combines them in the order of `operands`; the first one begins. */
static void begin_linear(struct test_plan *test, bool ordered, const uint32_t *operands, uint32_t count, bool left)
{
    begin_reducing(test, CW_REDUCE, 3, ordered, 2);
    uint32_t before[4] = {NONE, NONE, NONE, NONE};
    for (uint32_t i = 1; i < 3; i++) {
        put(test, i, 0, 1, SEND(0), NOWHERE, 8);
        before[i] = wait_eager(test, 0, i, 1, SCRATCH(8 * i), 8);
    }
    uint32_t last = NONE;
    for (uint32_t i = 0; i < count; i++) {
        struct cw_place from = operands[i] == 0 ? SEND(0) : SCRATCH(8 * operands[i]);
        uint32_t op = i == 0 ? copy(test, 0, from, RECEIVE(0), 8) : reduce(test, 0, from, RECEIVE(0), 8, left);
        if (last != NONE) {
            plan_after(test, 0, last);
        }
        if (before[operands[i]] != NONE) {
            plan_after(test, 0, before[operands[i]]);
        }
        last = op;
    }
}

static void test_reduce(void **state)
{
    static const struct {
        uint32_t operands[4];
        uint32_t count;
        bool ordered;
        bool left;
        enum cw_check_fault fault;
        uint32_t op;
    } cases[] = {
        {{0, 1, 2}, 3, false, false, CW_CHECK_PASSED, NONE},
        {{0, 1, 2}, 3, true, false, CW_CHECK_PASSED, NONE},
        {{2, 0, 1}, 3, false, true, CW_CHECK_PASSED, NONE},
        {{2, 1, 0}, 3, true, true, CW_CHECK_PASSED, NONE},
        {{2, 1, 0}, 3, true, false, CW_CHECK_WRONG_REDUCTION, 3},
        {{0, 1, 2}, 3, true, true, CW_CHECK_WRONG_REDUCTION, 3},
        {{0, 2, 1}, 3, true, false, CW_CHECK_WRONG_REDUCTION, 3},
        {{0, 1, 1}, 3, false, false, CW_CHECK_WRONG_REDUCTION, 4},
        {{0, 1, 2, 1}, 4, false, false, CW_CHECK_WRONG_REDUCTION, 5},
        {{0, 1, 2, 2}, 4, true, false, CW_CHECK_WRONG_REDUCTION, 5},
        {{0, 2}, 2, false, false, CW_CHECK_WRONG_RESULT, NONE},
        {{0, 1}, 2, true, false, CW_CHECK_WRONG_RESULT, NONE},
        {{1, 2}, 2, true, false, CW_CHECK_WRONG_RESULT, NONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_plan test;
        begin_linear(&test, cases[i].ordered, cases[i].operands, cases[i].count, cases[i].left);
        plan_expect(&test, cases[i].fault, cases[i].fault == CW_CHECK_PASSED ? NONE : 0, cases[i].op);
    }
}

static void test_reduce_elements(void **state)
{
    struct test_plan test;
    static const struct {
        uint64_t from;
        uint64_t to;
        uint64_t bytes;
    } cases[] = {{4, 0, 4}, {0, 0, 6}, {2, 2, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) { /* another element; half an element; two halves */
        begin_reducing(&test, CW_REDUCE, 2, false, 2);
        put(&test, 1, 0, 1, SEND(0), NOWHERE, 8);
        copy(&test, 0, SEND(0), RECEIVE(0), 8);
        wait_eager(&test, 0, 1, 1, SCRATCH(0), 8);
        reduce(&test, 0, SCRATCH(cases[i].from), RECEIVE(cases[i].to), cases[i].bytes, false);
        plan_after(&test, 0, 0);
        plan_after(&test, 0, 1);
        plan_expect(&test, CW_CHECK_WRONG_REDUCTION, 0, 2);
    }
    /* A collective that only moves data combines nothing. */
    plan_begin_simple(&test, CW_ALLGATHER, 1, 8);
    copy(&test, 0, SEND(0), RECEIVE(0), 8);
    reduce(&test, 0, SEND(0), RECEIVE(0), 8, false);
    plan_after(&test, 0, 0);
    plan_expect(&test, CW_CHECK_WRONG_REDUCTION, 0, 1);
}

/* Each rank adds its own to what it gets from the left, and passes it on; an inclusive scan keeps the sum, an exclusive
 * one what it got. */
static void begin_scan(struct test_plan *test, bool exclusive, bool left)
{
    begin_reducing(test, exclusive ? CW_EXSCAN : CW_SCAN, 4, true, 2);
    for (uint32_t rank = 0; rank < 4; rank++) {
        if (rank == 0) {
            put(test, rank, 1, 1, SEND(0), NOWHERE, 8);
            if (!exclusive) {
                copy(test, rank, SEND(0), RECEIVE(0), 8);
            }
            continue;
        }
        uint32_t got = wait_eager(test, rank, rank - 1, 1, exclusive ? RECEIVE(0) : SCRATCH(0), 8);
        copy(test, rank, SEND(0), exclusive ? SCRATCH(0) : RECEIVE(0), 8);
        uint32_t sum =
            reduce(test, rank, exclusive ? RECEIVE(0) : SCRATCH(0), exclusive ? SCRATCH(0) : RECEIVE(0), 8, left);
        plan_after(test, rank, got);
        plan_after(test, rank, got + 1);
        if (rank < 3) {
            put(test, rank, rank + 1, 1, exclusive ? SCRATCH(0) : RECEIVE(0), NOWHERE, 8);
            plan_after(test, rank, sum);
        }
    }
}

static void test_scan(void **state)
{
    for (uint32_t exclusive = 0; exclusive <= 1; exclusive++) {
        struct test_plan test;
        begin_scan(&test, exclusive != 0, true);
        plan_passes(&test);
        begin_scan(&test, exclusive != 0, false);
        plan_expect(&test, CW_CHECK_WRONG_REDUCTION, 1, 2);
        /* Rank 2 does not add its own. */
        begin_scan(&test, exclusive != 0, true);
        test.ranks[2].ops[2].kind = CW_OP_JOIN;
        test.ranks[2].ops[2].flags = 0;
        test.ranks[2].ops[2].from = NOWHERE;
        test.ranks[2].ops[2].to = NOWHERE;
        test.ranks[2].ops[2].bytes = 0;
        test.ranks[2].ops[2].last_bytes = 0;
        if (exclusive ==
            0) { /* and passes on only its own: seen where rank 3 combines it, or in the result of rank 2 */
            plan_expect(&test, CW_CHECK_WRONG_RESULT, 2, NONE);
        } else {
            plan_expect(&test, CW_CHECK_WRONG_RESULT, 3, NONE);
        }
    }
}

/* Reduce-scatter of irregular blocks, each rank collecting its own block. */
static void test_reduce_scatter(void **state)
{
    for (uint32_t wrong = 0; wrong <= 1; wrong++) {
        struct test_plan test;
        static const uint64_t blocks[3] = {1, 3, 2};
        static const uint64_t before[3] = {0, 4, 16};
        plan_begin(&test, &(struct cw_problem_request){
                              .collective = CW_REDUCE_SCATTER, .ranks = 3, .element_bytes = 4, .counts = blocks});
        plan_scratch(&test, 48);
        for (uint32_t rank = 0; rank < 3; rank++) {
            uint64_t bytes = 4 * blocks[rank];
            uint32_t last = copy(&test, rank, SEND(before[rank]), RECEIVE(0), bytes);
            for (uint32_t i = 0; i < 3; i++) {
                if (i != rank) {
                    uint64_t at = wrong != 0 && rank == 1 ? before[rank] - 4 : before[rank];
                    put(&test, i, rank, 1, SEND(at), NOWHERE, bytes);
                    uint32_t got = wait_eager(&test, rank, i, 1, SCRATCH(12 * i), bytes);
                    uint32_t sum = reduce(&test, rank, SCRATCH(12 * i), RECEIVE(0), bytes, false);
                    plan_after(&test, rank, got);
                    plan_after(&test, rank, last);
                    last = sum;
                }
            }
        }
        if (wrong != 0) {
            assert_int_equal(cw_check(&test.plan, &test.report), CW_OK);
            plan_expect(&test, CW_CHECK_WRONG_REDUCTION, 1, test.report.op);
        } else {
            plan_passes(&test);
        }
    }
}

/* Recursive doubling: partners exchange and combine, in rank order. With `sideways` rank 3 combines in another tree. */
static void begin_doubling(struct test_plan *test, bool ordered, bool sideways)
{
    begin_reducing(test, CW_ALLREDUCE, 4, ordered, 2);
    for (uint32_t rank = 0; rank < 4; rank++) {
        uint32_t last = copy(test, rank, SEND(0), RECEIVE(0), 8);
        for (uint32_t distance = 1; distance < 4; distance *= 2) {
            uint32_t peer = rank ^ distance;
            uint32_t sent = put(test, rank, peer, distance, RECEIVE(0), NOWHERE, 8);
            plan_after(test, rank, last);
            uint32_t got = wait_eager(test, rank, peer, distance, SCRATCH(8 * distance), 8);
            last = reduce(test, rank, SCRATCH(8 * distance), RECEIVE(0), 8, peer < rank);
            plan_after(test, rank, got);
            plan_after(test, rank, sent);
        }
    }
    if (sideways) { /* ranks 0, 1 and 2 also send their own operand to rank 3, which adds one by one */
        test->plan.schedules[3].op_count = 0;
        test->plan.schedules[3].dependency_count = 0;
        put(test, 3, 2, 1, SEND(0), NOWHERE, 8);
        wait_eager(test, 3, 2, 1, SCRATCH(0), 8);
        copy(test, 3, SCRATCH(0), RECEIVE(0), 8);
        plan_after(test, 3, 1);
        copy(test, 3, SEND(0), SCRATCH(8), 8); /* (rank 2 OP rank 3), as the others: sent to rank 1 */
        reduce(test, 3, SCRATCH(0), SCRATCH(8), 8, true);
        plan_after(test, 3, 1);
        plan_after(test, 3, 3);
        put(test, 3, 1, 2, SCRATCH(8), NOWHERE, 8);
        plan_after(test, 3, 4);
        wait_eager(test, 3, 1, 2, SCRATCH(16), 8); /* (rank 0 OP rank 1) OP rank 2, then OP rank 3 */
        reduce(test, 3, SCRATCH(16), RECEIVE(0), 8, true);
        plan_after(test, 3, 6);
        plan_after(test, 3, 2);
        reduce(test, 3, SEND(0), RECEIVE(0), 8, false);
        plan_after(test, 3, 7);
    }
}

static void test_allreduce(void **state)
{
    for (uint32_t ordered = 0; ordered <= 1; ordered++) {
        struct test_plan test;
        begin_doubling(&test, ordered != 0, false);
        plan_passes(&test);
        begin_doubling(&test, ordered != 0, true);
        plan_expect(&test, CW_CHECK_DIFFERENT_RESULTS, 3, NONE);
        assert_int_equal(test.report.byte, 0);
    }
    /* Sides do not matter where the operation commutes, and do where it does not. */
    for (uint32_t ordered = 0; ordered <= 1; ordered++) {
        struct test_plan test;
        begin_doubling(&test, ordered != 0, false);
        test.ranks[1].ops[3].flags = 0;
        plan_expect(&test, ordered != 0 ? CW_CHECK_WRONG_REDUCTION : CW_CHECK_PASSED, ordered != 0 ? 1 : NONE,
                    ordered != 0 ? 3 : NONE);
    }
}

/* Two different halves of a vector are combined with whole ones: pieces are taken apart and joined again. */
static void test_pieces(void **state)
{
    struct test_plan test;
    begin_reducing(&test, CW_ALLREDUCE, 2, false, 4);
    for (uint32_t rank = 0; rank < 2; rank++) {
        copy(&test, rank, SEND(0), SCRATCH(0), 16);
        put(&test, rank, 1 - rank, 1, SEND(8), NOWHERE, 8);
        put(&test, rank, 1 - rank, 2, SEND(0), NOWHERE, 8);
        wait_eager(&test, rank, 1 - rank, 1, SCRATCH(24), 8);
        wait_eager(&test, rank, 1 - rank, 2, SCRATCH(16), 8);
        /* Half of the own operand and half of the other one's in each: the sum is one piece again. */
        copy(&test, rank, SCRATCH(rank == 0 ? 16 : 0), RECEIVE(0), 8);
        plan_after(&test, rank, rank == 0 ? 4 : 0);
        copy(&test, rank, SCRATCH(24), RECEIVE(8), 8);
        plan_after(&test, rank, 3);
        reduce(&test, rank, SCRATCH(rank == 0 ? 0 : 16), RECEIVE(0), 8, false);
        plan_after(&test, rank, rank == 0 ? 0 : 4);
        plan_after(&test, rank, 5);
        reduce(&test, rank, SCRATCH(8), RECEIVE(8), 8, false);
        plan_after(&test, rank, 0);
        plan_after(&test, rank, 6);
    }
    plan_passes(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moving),    cmocka_unit_test(test_wrong_source),
        cmocka_unit_test(test_reduce),    cmocka_unit_test(test_reduce_elements),
        cmocka_unit_test(test_scan),      cmocka_unit_test(test_reduce_scatter),
        cmocka_unit_test(test_allreduce), cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
