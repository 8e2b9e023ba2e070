/* Plan files: what is written is read again; anything else is refused with a reason, and never trusted. fuzz_record reads
 * contents that nobody has written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "collectives/algorithms/build.h"
#include "collectives/file/pack.h"
#include "collectives/file/plan_file.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum {
    HEADER = 24,
    CHECKSUM = 8,
};

static const struct cw_pack_kind kind = {"CWPLAN\r\n", "plan", CW_PLAN_VERSION};

static struct cw_plan *plan_make(enum cw_collective collective, const char *algorithm, uint32_t ranks)
{
    static const uint32_t cluster_of[] = {0, 1, 2, 0, 1, 2, 0};
    static const uint32_t via[] = {CW_DIRECT, CW_DIRECT, 1, CW_DIRECT, CW_DIRECT, CW_DIRECT, 1, CW_DIRECT, CW_DIRECT};
    const struct cw_algorithm *found = cw_algorithm_find(collective, algorithm);
    struct cw_parameters parameters = cw_parameters_default();
    uint64_t counts[49];
    char error[200];
    assert_non_null(found);
    for (uint32_t i = 0; i < 49; i++) {
        counts[i] = i * 7919 % 301;
    }
    parameters.segment_bytes = 40;
    parameters.multicast_eager_max_bytes = 5000;
    parameters.single_eager_max_bytes = 6000;
    struct cw_problem_request request = {
        .collective = collective,
        .ranks = ranks,
        .element_bytes = 4,
        .count = 333,
        .counts = cw_collective_takes_counts(collective) ? counts : NULL,
        .cluster_count = 3,
        .cluster_of = cluster_of,
        .cluster_via = via,
    };
    struct cw_problem *problem;
    struct cw_plan *plan;
    assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_OK);
    assert_int_equal(cw_plan_build(problem, found, &parameters, &plan, error, sizeof(error)), CW_OK);
    return plan;
}

static const struct {
    enum cw_collective collective;
    const char *algorithm;
} plans[] = {
    {CW_BCAST, "segmented-chain"},       {CW_BCAST, "multicast"},
    {CW_BCAST, "clusters-overlapped"},   {CW_SCATTER, "binomial"},
    {CW_ALLGATHER, "concurrent"},        {CW_ALLTOALL, "greedy-barriers"},
    {CW_ALLREDUCE, "clusters-two-tier"}, {CW_REDUCE_SCATTER, "pairwise"},
    {CW_BARRIER, "dissemination"},
};
enum { PLANS = sizeof(plans) / sizeof(plans[0]) };

static void *encode(const struct cw_plan *plan, size_t *length)
{
    void *bytes;
    assert_int_equal(cw_plan_encode(plan, &bytes, length), CW_OK);
    return bytes;
}

static void assert_places_equal(const struct cw_place *one, const struct cw_place *other)
{
    assert_true(one->buffer == other->buffer && one->offset == other->offset && one->step == other->step);
}

static void assert_ops_equal(const struct cw_op *one, const struct cw_op *other)
{
    assert_true(one->kind == other->kind && one->flags == other->flags && one->phase == other->phase);
    assert_true(one->peer == other->peer && one->tag == other->tag);
    assert_true(one->dependency_first == other->dependency_first && one->dependency_count == other->dependency_count);
    assert_true(one->body_count == other->body_count && one->iterations == other->iterations);
    assert_true(one->bytes == other->bytes && one->last_bytes == other->last_bytes);
    assert_true(one->blocks == other->blocks && one->from_stride == other->from_stride &&
                one->to_stride == other->to_stride);
    assert_places_equal(&one->from, &other->from);
    assert_places_equal(&one->to, &other->to);
}

static void assert_schedules_equal(const struct cw_schedule *one, const struct cw_schedule *other)
{
    struct cw_schedule lists = *other; /* these of one, and all else of the other */
    lists.ops = one->ops;
    lists.dependencies = one->dependencies;
    lists.groups = one->groups;
    lists.members = one->members;
    assert_memory_equal(&lists, one, sizeof(lists));
    for (uint32_t i = 0; i < one->op_count; i++) {
        assert_ops_equal(&one->ops[i], &other->ops[i]);
    }
    assert_memory_equal(one->dependencies, other->dependencies, one->dependency_count * sizeof(*one->dependencies));
    if (one->group_count > 0) {
        assert_memory_equal(one->groups, other->groups, one->group_count * sizeof(*one->groups));
        assert_memory_equal(one->members, other->members, one->member_count * sizeof(*one->members));
    }
}

static void test_written_and_read(void **state)
{
    for (uint32_t i = 0; i < PLANS; i++) {
        struct cw_plan *plan = plan_make(plans[i].collective, plans[i].algorithm, 7);
        struct cw_plan *again;
        char error[300];
        size_t length;
        size_t length_again;
        void *bytes = encode(plan, &length);
        assert_int_equal(cw_plan_decode(bytes, length, &again, error, sizeof(error)), CW_OK);
        assert_string_equal(plan->algorithm, again->algorithm);
        assert_true(plan->parameters.segment_bytes == again->parameters.segment_bytes);
        assert_true(plan->parameters.multicast_eager_max_bytes == again->parameters.multicast_eager_max_bytes);
        assert_true(plan->parameters.single_eager_max_bytes == again->parameters.single_eager_max_bytes);
        assert_true(plan->problem->count == again->problem->count && plan->problem->root == again->problem->root);
        for (uint32_t rank = 0; rank < 7; rank++) {
            assert_schedules_equal(&plan->schedules[rank], &again->schedules[rank]);
            for (uint32_t buffer = 1; buffer <= 2; buffer++) {
                assert_true(cw_problem_buffer_bytes(plan->problem, rank, buffer) ==
                            cw_problem_buffer_bytes(again->problem, rank, buffer));
            }
            assert_int_equal(cw_problem_cluster(plan->problem, rank), cw_problem_cluster(again->problem, rank));
        }
        void *bytes_again = encode(again, &length_again);
        assert_int_equal(length, length_again);
        assert_memory_equal(bytes, bytes_again, length);
        free(bytes);
        free(bytes_again);
        cw_plan_destroy(plan);
        cw_plan_destroy(again);
    }
}

static void assert_refused(const void *bytes, size_t length, const char *words)
{
    struct cw_plan *plan = NULL;
    char error[300] = "";
    /* a copy of exactly that length, so that a read beyond it shows under the sanitizers */
    void *copy = malloc(length + (length == 0));
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    assert_true(cw_plan_decode(copy, length, &plan, error, sizeof(error)) < 0);
    free(copy);
    assert_null(plan);
    if (strstr(error, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", error, words);
    }
}

static void test_cut_off_or_altered(void **state)
{
    struct cw_plan *plan = plan_make(CW_ALLGATHER, "bruck", 5);
    size_t length;
    uint8_t *bytes = encode(plan, &length);
    for (size_t cut = 0; cut < length; cut++) {
        assert_refused(bytes, cut, cut < 8 ? "no plan file" : "cut off");
    }
    for (size_t i = 0; i < length; i++) {
        bytes[i] ^= 0x10;
        assert_refused(bytes, length, i < 8 ? "no plan file" : i < 12 ? "version" : "altered");
        bytes[i] ^= 0x10;
    }
    free(bytes);
    cw_plan_destroy(plan);
}

/* The file of a content, with a valid checksum. */
static void *file_of(const void *content, size_t content_length, size_t *length)
{
    struct cw_packer packer = {0};
    void *file;
    cw_pack_bytes(&packer, content, content_length);
    assert_int_equal(cw_pack_file(&kind, &packer, &file, length), CW_OK);
    free(packer.bytes);
    return file;
}

/* ---- Small files of large plans ---- */

enum {
    JOINS = 1 << 20, /* 112 MiB of ops that come as a few KiB */
    PACKING = 12,    /* where the header says how the content is there */
};

/* A barrier of one rank with `ops` joins, which is valid if useless: 4 bytes an op, all the same. */
static uint8_t *joins_make(uint32_t ops, size_t *length)
{
    static const uint8_t problem[] = {CW_BARRIER, 1, 0, 1, 0, 0, 0, 1, 0};
    static const uint8_t how[] = {1, 'x', 0, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t lists_and_promises[11] = {0};
    static const uint8_t join[] = {CW_OP_JOIN, 0, 0, 0};
    uint8_t *content = malloc(64 + ops * sizeof(join));
    assert_non_null(content);
    uint8_t *at = content;
    memcpy(at, problem, sizeof(problem));
    at += sizeof(problem);
    memcpy(at, how, sizeof(how));
    at += sizeof(how);
    uint32_t rest = ops;
    for (; rest >= 0x80; rest >>= 7) {
        *at++ = (uint8_t)(rest | 0x80);
    }
    *at++ = (uint8_t)rest;
    memcpy(at, lists_and_promises, sizeof(lists_and_promises));
    at += sizeof(lists_and_promises);
    for (uint32_t i = 0; i < ops; i++, at += sizeof(join)) {
        memcpy(at, join, sizeof(join));
    }
    *length = (size_t)(at - content);
    return content;
}

static uint8_t *file_as_it_is(const uint8_t *content, size_t content_length, const uint8_t *header, size_t *length)
{
    uint8_t *file = malloc(HEADER + content_length + CHECKSUM);
    uint64_t announced = content_length;
    assert_non_null(file);
    memcpy(file, header, 16);
    file[PACKING] = 1;
    memcpy(file + 16, &announced, 8);
    memcpy(file + HEADER, content, content_length);
    uint64_t checksum = XXH3_64bits(file, HEADER + content_length);
    memcpy(file + HEADER + content_length, &checksum, CHECKSUM);
    *length = HEADER + content_length + CHECKSUM;
    return file;
}

/* A file cannot make its reader take thousands of times its length; what is as long as it should be is read, and
 * written so again. */
static void test_memory_by_length(void **state)
{
    struct cw_plan *plan = plan_make(CW_BARRIER, "dissemination", 4);
    struct cw_plan *read = NULL;
    char error[300] = "";
    size_t length;
    size_t content_length;
    uint8_t *header = encode(plan, &length);
    uint8_t *content = joins_make(JOINS, &content_length);
    uint8_t *bomb = file_of(content, content_length, &length);
    assert_true(length < JOINS / 16);
    assert_refused(bomb, length, "more memory than a file of this length");
    uint8_t *file = file_as_it_is(content, content_length, header, &length);
    if (cw_plan_decode(file, length, &read, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }
    assert_int_equal(read->schedules[0].op_count, JOINS);
    size_t length_again;
    uint8_t *again = encode(read, &length_again);
    assert_int_equal(length_again, length);
    assert_memory_equal(again, file, length);
    assert_refused(file, length - 1, "altered");
    cw_plan_destroy(read);
    cw_plan_destroy(plan);
    free(header);
    free(content);
    free(bomb);
    free(file);
    free(again);
}

/* The first rank that is wrong is the last one to be read: it is named, not what is wrong behind it. */
static void test_ranks_are_judged_one_by_one(void **state)
{
    struct cw_plan *plan = plan_make(CW_BCAST, "flat", 4);
    struct cw_schedule *schedule = &plan->schedules[1];
    size_t length;
    struct cw_unpacker unpacker;
    uint8_t *content;
    char error[300];
    schedule->ops[schedule->op_count - 1].peer = 77;
    uint8_t *bytes = encode(plan, &length);
    assert_int_equal(cw_unpack_file(&kind, bytes, length, &content, &unpacker, error, sizeof(error)), CW_OK);
    content[unpacker.length - 1] = 0xff; /* rank 3 ends in the midst of a number */
    uint8_t *file = file_of(content, unpacker.length, &length);
    assert_refused(file, length, "rank 1");
    cw_plan_destroy(plan);
    free(bytes);
    free(content);
    free(file);
}

int main(void)
{
    return TESTS_RUN(test_written_and_read, test_cut_off_or_altered, test_memory_by_length,
                     test_ranks_are_judged_one_by_one);
}
