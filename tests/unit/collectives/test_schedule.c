/* What cw_schedule_validate refuses: one valid schedule, and each thing that can be wrong with one, alone. */
#include "built_plans.h"

enum { RANKS = 4, SAMPLE_OPS = 13, SAMPLE_DEPENDENCIES = 9, SAMPLE_BYTES = 256 };

/* All of a schedule in one piece, so that a breakage is an offset and a value. */
struct sample {
    struct cw_schedule schedule;
    struct cw_op ops[SAMPLE_OPS];
    struct cw_dependency dependencies[SAMPLE_DEPENDENCIES];
    struct cw_group_range groups[2];
    uint32_t members[4];
    uint64_t buffer_bytes[4];
    uint32_t ranks;
};

#define TAG(number, kind) ((number)*CW_TAG_STEP + (kind))
#define PLACE(where, at, by)                                      \
    {                                                             \
        .buffer = CW_BUFFER_##where, .offset = (at), .step = (by) \
    }
#define DEPENDS(first, count) .dependency_first = (first), .dependency_count = (count)
#define BYTES(all, last)      .bytes = (all), .last_bytes = (last)
#define ONCE                  .iterations = 1, .blocks = 1

static const struct sample valid = {
    .schedule = {.rank = 1,
                 .op_count = SAMPLE_OPS,
                 .dependency_count = SAMPLE_DEPENDENCIES,
                 .group_count = 2,
                 .member_count = 4,
                 .barrier_count = 2,
                 .scratch_bytes = SAMPLE_BYTES},
    .ops =
        {
            {.kind = CW_OP_PUT, .flags = CW_OP_EAGER, .peer = 2, ONCE, BYTES(16, 16), .from = PLACE(SEND, 0, 0)},
            {.kind = CW_OP_WAIT, .peer = 0, ONCE, BYTES(16, 16), .to = PLACE(RECEIVE, 0, 0)},
            {.kind = CW_OP_PUT,
             .peer = 3,
             ONCE,
             BYTES(16, 16),
             DEPENDS(0, 1),
             .from = PLACE(RECEIVE, 0, 0),
             .to = PLACE(RECEIVE, 9999, 0)},
            {.kind = CW_OP_COPY,
             .iterations = 1,
             .blocks = 3,
             BYTES(16, 8),
             .from = PLACE(SEND, 0, 0),
             .to = PLACE(SCRATCH, 0, 0),
             .from_stride = 16,
             .to_stride = 32},
            {.kind = CW_OP_REDUCE,
             .flags = CW_OP_LEFT,
             ONCE,
             BYTES(16, 16),
             DEPENDS(1, 1),
             .from = PLACE(RECEIVE, 240, 0),
             .to = PLACE(SCRATCH, 0, 0)},
            {.kind = CW_OP_REPEAT, .body_count = 3, .iterations = 10, .blocks = 1, DEPENDS(2, 1)},
            {.kind = CW_OP_WAIT,
             .flags = CW_OP_EAGER,
             .peer = 0,
             .tag = TAG(1, CW_TAG_DATA),
             .iterations = 10,
             .blocks = 1,
             BYTES(20, 4),
             DEPENDS(3, 1),
             .to = PLACE(RECEIVE, 64, 20)},
            {.kind = CW_OP_COPY,
             .iterations = 10,
             .blocks = 1,
             BYTES(20, 4),
             .from = PLACE(RECEIVE, 64, 20),
             .to = PLACE(SCRATCH, 64, 20)},
            {.kind = CW_OP_PUT,
             .peer = 2,
             .tag = TAG(1, CW_TAG_DATA),
             .iterations = 10,
             .blocks = 1,
             BYTES(20, 4),
             DEPENDS(4, 2),
             .from = PLACE(SCRATCH, 64, 20),
             .to = PLACE(RECEIVE, 64, 20)},
            {.kind = CW_OP_MULTICAST,
             .flags = CW_OP_EAGER,
             .peer = 1,
             .tag = TAG(0, CW_TAG_MULTICAST),
             ONCE,
             BYTES(8, 8),
             .from = PLACE(SEND, 248, 0)},
            {.kind = CW_OP_BARRIER, .tag = 1, ONCE, DEPENDS(6, 1)},
            {.kind = CW_OP_BARRIER, .tag = 0, ONCE},
            {.kind = CW_OP_JOIN, ONCE, DEPENDS(7, 2)},
        },
    .dependencies =
        {
            {.op = 1},
            {.op = 3},
            {.op = 2, .flags = CW_DEPENDENCY_SENT},
            {.op = 8, .back = 63},
            {.op = 7},
            {.op = 4},
            {.op = 8, .flags = CW_DEPENDENCY_SENT},
            {.op = 5},
            {.op = 10},
        },
    .groups = {{.first = 2, .count = 2}, {.first = 0, .count = 2}},
    .members = {2, 3, 0, 3},
    .buffer_bytes = {0, SAMPLE_BYTES, SAMPLE_BYTES, SAMPLE_BYTES},
    .ranks = RANKS,
};

struct poke {
    size_t offset;
    size_t bytes;
    uint64_t value;
};

/* One thing that is wrong; some need several fields. */
struct breakage {
    const char *words; /* in the error */
    struct poke pokes[3];
};

#define POKE(field, to)                                                           \
    {                                                                             \
        offsetof(struct sample, field), sizeof(((struct sample *)0)->field), (to) \
    }
#define WRONG(words, field, to) \
    {                           \
        words,                  \
        {                       \
            POKE(field, to)     \
        }                       \
    }
#define WRONG2(words, field, to, other, other_to)  \
    {                                              \
        words,                                     \
        {                                          \
            POKE(field, to), POKE(other, other_to) \
        }                                          \
    }

static const struct breakage breakages[] = {
    /* the schedule */
    WRONG("there are 0 ranks", ranks, 0),
    WRONG("there are 1048577 ranks", ranks, CW_RANKS_MAX + 1),
    WRONG("rank 4: there are 4 ranks", schedule.rank, 4),
    WRONG("more than a schedule may have: 16777217 ops", schedule.op_count, CW_OPS_MAX + 1),
    WRONG("more than a schedule may have", schedule.dependency_count, CW_DEPENDENCIES_MAX + 1),
    WRONG("more than a schedule may have", schedule.group_count, UINT32_MAX),
    WRONG("more than a schedule may have", schedule.member_count, UINT32_MAX),
    WRONG("more than a schedule may have", schedule.barrier_count, CW_BARRIERS_MAX + 1),
    WRONG("more than a schedule may have", schedule.scratch_bytes, CW_BUFFER_BYTES_MAX + 1),
    WRONG("a list is missing", schedule.ops, 0),
    WRONG("a list is missing", schedule.dependencies, 0),
    WRONG("a list is missing", schedule.groups, 0),
    WRONG("a list is missing", schedule.members, 0),
    WRONG("phases_apart is 3", schedule.promise.phases_apart, 3),
    /* groups */
    WRONG("group 0 lies outside the list of members", groups[0].first, 5),
    WRONG("group 1 lies outside the list of members", groups[1].count, 5),
    WRONG("group 1 lies outside the list of members", groups[1].first, UINT32_MAX),
    WRONG("group 1 shares members", groups[1].count, 3),
    WRONG("group 1: member 4 is no rank", members[0], 4),
    WRONG("group 1: member 1 is this rank itself", members[0], 1),
    WRONG("group 1: member 3 is there twice", members[0], 3),
    /* the shape of ops */
    WRONG("op 0 (unknown op): kind 0", ops[0].kind, 0),
    WRONG("op 0 (unknown op): kind 10", ops[0].kind, 10),
    WRONG("op 0 (put): has no use for a collective", ops[0].root, 1),
    WRONG("op 0 (put): flags 2", ops[0].flags, CW_OP_LEFT),
    WRONG("op 0 (put): flags 5", ops[0].flags, CW_OP_EAGER + 4),
    WRONG("op 4 (reduce): flags 1", ops[4].flags, CW_OP_EAGER),
    WRONG("op 3 (copy): flags 2", ops[3].flags, CW_OP_LEFT),
    WRONG("op 12 (join): flags 1", ops[12].flags, CW_OP_EAGER),
    WRONG("op 3 (copy): 0 blocks", ops[3].blocks, 0),
    WRONG("op 0 (put): 2 blocks", ops[0].blocks, 2),
    WRONG("op 0 (put): 2 iterations", ops[0].iterations, 2),
    WRONG("op 0 (put): 0 iterations", ops[0].iterations, 0),
    WRONG("op 0 (put): 1 iterations of 1 ops", ops[0].body_count, 1),
    WRONG("op 6 (wait): 9 iterations", ops[6].iterations, 9),
    WRONG("op 7 (repeat): a body holds no repeat", ops[7].kind, CW_OP_REPEAT),
    WRONG("op 7 (barrier): a body holds no repeat, no barrier", ops[7].kind, CW_OP_BARRIER),
    WRONG("no strided copy", ops[7].blocks, 2),
    WRONG("the last of its pieces of 16 bytes has 17", ops[0].last_bytes, 17),
    WRONG("the last of its pieces of 16 bytes has 15", ops[0].last_bytes, 15),
    WRONG("the last of its pieces of 20 bytes has 21", ops[6].last_bytes, 21),
    WRONG("the last of its pieces of 20 bytes has 0", ops[6].last_bytes, 0),
    WRONG("the last of its pieces of 0 bytes has 16", ops[0].bytes, 0),
    WRONG2("the last of its pieces", ops[0].bytes, UINT64_MAX, ops[0].last_bytes, UINT64_MAX),
    WRONG("strides of 1 and 0 bytes", ops[0].from_stride, 1),
    WRONG("strides of 16 and 18446744073709551615", ops[3].to_stride, UINT64_MAX),
    /* repeat */
    WRONG("op 5 (repeat): 0 iterations", ops[5].iterations, 0),
    WRONG("op 5 (repeat): 131073 iterations", ops[5].iterations, CW_REPEAT_COUNT_MAX + 1),
    WRONG("op 5 (repeat): a body of 0 ops", ops[5].body_count, 0),
    WRONG("op 5 (repeat): a body of 8 ops", ops[5].body_count, SAMPLE_OPS - 5),
    WRONG("op 5 (repeat): a body of 4294967295 ops", ops[5].body_count, UINT32_MAX),
    WRONG2("op 5 (repeat): moves no bytes, but names 4", ops[5].bytes, 4, ops[5].last_bytes, 4),
    /* places */
    WRONG("op 0 (put): `from` is in no buffer (0)", ops[0].from.buffer, CW_BUFFER_NONE),
    WRONG("op 0 (put): `from` is in no buffer (4)", ops[0].from.buffer, 4),
    WRONG("op 0 (put): `from` has a step of 8 bytes outside a body", ops[0].from.step, 8),
    WRONG("op 6 (wait): `to` has a step", ops[6].to.step, CW_BUFFER_BYTES_MAX + 1),
    WRONG("op 0 (put): `from` ends beyond any buffer", ops[0].from.offset, UINT64_MAX),
    WRONG("op 6 (wait): `to` ends beyond any buffer", ops[6].to.step, CW_BUFFER_BYTES_MAX / 8),
    WRONG("op 3 (copy): `to` ends beyond any buffer", ops[3].to_stride, CW_BUFFER_BYTES_MAX),
    WRONG("op 8 (put): `to` ends beyond any buffer", ops[8].to.offset, CW_BUFFER_BYTES_MAX),
    WRONG("op 0 (put): `from` ends at byte 257 of the send buffer, which has 256", ops[0].from.offset, 241),
    WRONG("op 6 (wait): `to` ends at byte 257 of the receive buffer", ops[6].to.offset, 73),
    WRONG("op 6 (wait): `to` ends at byte 257 of the receive buffer", ops[6].last_bytes, 13),
    WRONG("op 3 (copy): `from` ends at byte 257 of the send buffer", ops[3].from.offset, 217),
    WRONG("op 3 (copy): `from` ends at byte 264 of the send buffer", ops[3].from_stride, 128),
    WRONG("`from` ends at byte 256 of the receive buffer, which has 255", buffer_bytes[CW_BUFFER_RECEIVE], 255),
    WRONG("op 7 (copy): `to` ends at byte 248 of the scratch buffer, which has 247", schedule.scratch_bytes, 247),
    WRONG("op 1 (wait): `to` is in the send buffer, which is never written", ops[1].to.buffer, CW_BUFFER_SEND),
    WRONG("op 2 (put): `to` is in the send buffer", ops[2].to.buffer, CW_BUFFER_SEND),
    WRONG("op 2 (put): `to` is in no buffer", ops[2].to.buffer, CW_BUFFER_NONE),
    WRONG("op 3 (copy): `to` is in the send buffer", ops[3].to.buffer, CW_BUFFER_SEND),
    WRONG("op 4 (reduce): `to` is in the send buffer", ops[4].to.buffer, CW_BUFFER_SEND),
    WRONG("op 0 (put): has no use for `to`", ops[0].to.buffer, CW_BUFFER_RECEIVE),
    WRONG("op 0 (put): has no use for `to`", ops[0].to.offset, 1),
    WRONG("op 9 (multicast): has no use for `to`", ops[9].to.buffer, CW_BUFFER_RECEIVE),
    WRONG("op 1 (wait): has no use for `from`", ops[1].from.buffer, CW_BUFFER_SEND),
    WRONG("op 10 (barrier): has no use for `from`", ops[10].from.buffer, CW_BUFFER_SEND),
    WRONG("op 12 (join): has no use for `to`", ops[12].to.buffer, CW_BUFFER_SCRATCH),
    WRONG("op 12 (join): has no use for `to`", ops[12].to.step, 1),
    WRONG("op 5 (repeat): has no use for `from`", ops[5].from.step, 1),
    /* overlaps within an op */
    WRONG("op 3 (copy): its blocks overlap", ops[3].to_stride, 15),
    WRONG2("op 4 (reduce): `from` and `to` overlap", ops[4].from.buffer, CW_BUFFER_SCRATCH, ops[4].from.offset, 15),
    WRONG2("op 4 (reduce): `from` and `to` overlap", ops[4].from.buffer, CW_BUFFER_SCRATCH, ops[4].from.offset, 0),
    WRONG2("op 3 (copy): `from` and `to` overlap", ops[3].from.buffer, CW_BUFFER_SCRATCH, ops[3].from_stride, 32),
    WRONG2("op 7 (copy): `from` and `to` overlap", ops[7].from.buffer, CW_BUFFER_SCRATCH, ops[7].from.offset, 45),
    {"op 7 (copy): `from` and `to` overlap", /* in iteration 1 */
     {POKE(ops[7].from.buffer, CW_BUFFER_SCRATCH), POKE(ops[7].from.offset, 44), POKE(ops[7].from.step, 21)}},
    WRONG2("op 7 (copy): `from` and `to` overlap", ops[7].to.buffer, CW_BUFFER_RECEIVE, ops[7].to.step, 0),
    /* messages */
    WRONG("op 0 (put): peer 4 is no rank", ops[0].peer, 4),
    WRONG("op 0 (put): peer 1 is itself", ops[0].peer, 1),
    WRONG("op 1 (wait): peer 1 is itself", ops[1].peer, 1),
    WRONG("op 9 (multicast): group 2 does not exist", ops[9].peer, 2),
    WRONG("op 9 (multicast): group 1 does not exist or is empty", groups[1].count, 0),
    WRONG("op 0 (put): tag 1048576 has more than 20 bits", ops[0].tag, 1u << CW_SCHEDULE_TAG_BITS),
    WRONG("op 0 (put): tag 4294967295 has more than 20 bits", ops[0].tag, UINT32_MAX),
    WRONG("op 6 (wait): tag 1048576 has more than 20 bits", ops[6].tag, (1u << CW_SCHEDULE_TAG_BITS) - 36),
    WRONG("op 0 (put): signal 131072 has a number that barriers use", ops[0].tag, TAG(1 << 17, CW_TAG_SIGNAL)),
    WRONG("op 6 (wait): signal 131072 has a number that barriers use", ops[6].tag, TAG((1 << 17) - 9, CW_TAG_SIGNAL)),
    WRONG2("op 1 (wait): a direct put has no bytes", ops[1].bytes, 0, ops[1].last_bytes, 0),
    WRONG2("op 2 (put): a direct put has no bytes", ops[2].bytes, 0, ops[2].last_bytes, 0),
    WRONG2("op 4 (reduce): moves no bytes", ops[4].bytes, 0, ops[4].last_bytes, 0),
    /* barriers */
    WRONG("op 10 (barrier): number 2, but there are 2 barriers", ops[10].tag, 2),
    WRONG("op 11 (barrier): number 1 is there twice", ops[11].tag, 1),
    WRONG("barrier 2 is missing", schedule.barrier_count, 3),
    WRONG2("op 12 (join): moves no bytes, but names 8", ops[12].bytes, 8, ops[12].last_bytes, 8),
    /* dependencies */
    WRONG("op 2 (put): its dependencies lie outside", ops[2].dependency_first, SAMPLE_DEPENDENCIES),
    WRONG("op 2 (put): its dependencies lie outside", ops[2].dependency_first, UINT32_MAX),
    WRONG("op 12 (join): its dependencies lie outside", ops[12].dependency_count, 3),
    WRONG("op 12 (join): its dependencies lie outside", ops[12].dependency_count, UINT32_MAX),
    WRONG("op 12 (join): shares dependencies", ops[11].dependency_count, 1),
    WRONG("op 2 (put): depends on op 2, which is not before it", dependencies[0].op, 2),
    WRONG("op 2 (put): depends on op 3, which is not before it", dependencies[0].op, 3),
    WRONG("op 2 (put): depends on op 4294967295", dependencies[0].op, UINT32_MAX),
    WRONG("op 2 (put): depends on op 1, 1 iterations back", dependencies[0].back, 1),
    WRONG("op 6 (wait): depends on op 8, 64 iterations back", dependencies[3].back, CW_BACK_MAX + 1),
    WRONG("op 6 (wait): depends on op 8, which is not before it", dependencies[3].back, 0),
    WRONG("op 6 (wait): depends on op 9, which is not before it", dependencies[3].op, 9),
    WRONG("op 6 (wait): depends on op 4, 63 iterations back", dependencies[3].op, 4),
    WRONG("op 8 (put): depends on its own repeat", dependencies[4].op, 5),
    WRONG("op 10 (barrier): depends on op 8, 1 iterations back", dependencies[6].back, 1),
    WRONG("op 2 (put): a dependency has flags 2", dependencies[0].flags, 2),
    WRONG("op 2 (put): op 1 (wait) is never sent", dependencies[0].flags, CW_DEPENDENCY_SENT),
    WRONG("op 12 (join): op 5 (repeat) is never sent", dependencies[7].flags, CW_DEPENDENCY_SENT),
};

/* Valid forms that may look wrong. */
static const struct breakage permitted[] = {
    WRONG("", ops[0].phase, UINT16_MAX),
    WRONG("", ops[2].to.offset, 1 << 30), /* another rank's buffers are unknown */
    WRONG2("", ops[0].bytes, 0, ops[0].last_bytes, 0),
    WRONG2("", ops[6].bytes, 0, ops[6].last_bytes, 0),
    WRONG("", ops[3].from_stride, 0), /* a block spread */
    WRONG("", ops[3].last_bytes, 16),
    WRONG2("", ops[3].from.buffer, CW_BUFFER_SCRATCH, ops[3].from.offset, 80),
    WRONG2("", ops[7].from.buffer, CW_BUFFER_SCRATCH, ops[7].from.offset, 44),
    WRONG("", groups[0].count, 0), /* that no multicast uses */
    WRONG("", ops[0].tag, TAG((1 << 17) - 1, CW_TAG_SIGNAL)),
    WRONG("", ops[0].tag, TAG(1 << 17, CW_TAG_CLEAR)),
    WRONG("", ops[6].tag, TAG((1 << 18) - 10, CW_TAG_DATA)),
    WRONG("", dependencies[3].op, 6), /* itself, iterations back */
    WRONG("", dependencies[8].op, 6),
};

static void poke_all(struct sample *sample, const struct breakage *breakage)
{
    *sample = valid;
    sample->schedule.ops = sample->ops;
    sample->schedule.dependencies = sample->dependencies;
    sample->schedule.groups = sample->groups;
    sample->schedule.members = sample->members;
    for (int i = 0; i < 3; i++) {
        const struct poke *poke = &breakage->pokes[i];
        memcpy((uint8_t *)sample + poke->offset, &poke->value, poke->bytes); /* little-endian, as all we run on */
    }
}

static int validate(const struct sample *sample, char *error, size_t error_bytes)
{
    return cw_schedule_validate(&sample->schedule, sample->ranks, sample->buffer_bytes, error, error_bytes);
}

static void test_valid(void **state)
{
    struct sample sample;
    char error[200] = "";
    static const struct breakage none = {"", {{0, 0, 0}}};
    poke_all(&sample, &none);
    assert_int_equal(validate(&sample, error, sizeof(error)), CW_OK);
    assert_string_equal(error, "");
    assert_int_equal(cw_schedule_validate(&sample.schedule, RANKS, NULL, error, sizeof(error)), CW_OK);
    struct cw_schedule empty = {.rank = 0};
    assert_int_equal(cw_schedule_validate(&empty, 1, sample.buffer_bytes, error, sizeof(error)), CW_OK);
}

static void test_each_breakage_is_rejected(void **state)
{
    for (size_t i = 0; i < sizeof(breakages) / sizeof(breakages[0]); i++) {
        struct sample sample;
        char error[240] = "";
        poke_all(&sample, &breakages[i]);
        int status = validate(&sample, error, sizeof(error));
        assert_true_msg(status == CW_ERROR_ARGUMENT && strstr(error, breakages[i].words) != NULL,
                        "breakage %zu: expected \"%s\", got %d \"%s\"", i, breakages[i].words, status, error);
        assert_memory_equal(error, "rank ", 5);
        assert_null(strchr(error, '\n'));
        char small[8];
        assert_int_equal(validate(&sample, small, sizeof(small)), CW_ERROR_ARGUMENT);
        assert_int_equal(strlen(small), sizeof(small) - 1);
    }
}

static void test_permitted(void **state)
{
    for (size_t i = 0; i < sizeof(permitted) / sizeof(permitted[0]); i++) {
        struct sample sample;
        char error[240] = "";
        poke_all(&sample, &permitted[i]);
        assert_true_msg(validate(&sample, error, sizeof(error)) == CW_OK, "permitted %zu: %s", i, error);
    }
}

/* Without the buffers' sizes only the scratch buffer's is known. */
static void test_sizes_unknown(void **state)
{
    struct sample sample;
    char error[240] = "";
    static const struct breakage beyond = WRONG("", ops[1].to.offset, 1 << 20);
    poke_all(&sample, &beyond);
    assert_int_equal(validate(&sample, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_schedule_validate(&sample.schedule, RANKS, NULL, error, sizeof(error)), CW_OK);
    static const struct breakage scratch = WRONG("", schedule.scratch_bytes, 100);
    poke_all(&sample, &scratch);
    assert_int_equal(cw_schedule_validate(&sample.schedule, RANKS, NULL, error, sizeof(error)), CW_ERROR_ARGUMENT);
}

static void test_plan(void **state)
{
    const struct cw_parameters parameters = {.eager_max_bytes = CW_EAGER_ALL};
    struct cw_plan *plan =
        plan_built(&(struct cw_problem_request){.collective = CW_BCAST, .ranks = 2, .element_bytes = 1, .count = 8},
                   "flat", &parameters);
    struct cw_op *receive = &plan->schedules[1].ops[0];
    char error[240] = "";
    assert_int_equal(cw_plan_validate(plan, error, sizeof(error)), CW_OK);
    receive->bytes = receive->last_bytes = 9;
    assert_int_equal(cw_plan_validate(plan, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_string_equal(error, "rank 1, op 0 (wait): `to` ends at byte 9 of the receive buffer, which has 8");
    receive->bytes = receive->last_bytes = 8;
    plan->schedules[1].rank = 0;
    assert_int_equal(cw_plan_validate(plan, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_string_equal(error, "the schedule in place 1 is that of rank 0");
    cw_plan_destroy(plan);
}

int main(void)
{
    return TESTS_RUN(test_valid, test_each_breakage_is_rejected, test_permitted, test_sizes_unknown, test_plan);
}
