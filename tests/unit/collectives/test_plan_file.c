/* Plan files: a written plan is read again; any other content is rejected with a reason, and never trusted. fuzz_record
 * reads contents that no writer has made. */
#include "built_plans.h"
#include "collectives/file/pack.h"
#include "collectives/file/plan_file.h"
#include "collectives/schedule/dump.h"

enum {
    RANKS = 7,
    JOINS = 1 << 20, /* 112 MiB of ops that come as a few KiB */
    HEADER = 24,
    CHECKSUM = 8,
};

static const struct cw_pack_kind kind = {"CWPLAN\r\n", "plan", CW_PLAN_VERSION};

/* With clusters, or with hosts if the algorithm needs them. */
static struct cw_plan *plan_make(enum cw_collective collective, const char *algorithm, uint32_t ranks)
{
    static const uint32_t cluster_of[] = {0, 1, 2, 0, 1, 2, 0};
    static const uint32_t via[] = {CW_DIRECT, CW_DIRECT, 1, CW_DIRECT, CW_DIRECT, CW_DIRECT, 1, CW_DIRECT, CW_DIRECT};
    const bool has_hosts = strcmp(algorithm, "hierarchical") == 0, has_clusters = !has_hosts && ranks >= 3;
    uint64_t counts[RANKS * RANKS];
    for (uint32_t i = 0; i < RANKS * RANKS; i++) {
        counts[i] = i * 7919 % 301;
    }
    struct cw_parameters parameters = cw_parameters_default();
    parameters.segment_bytes = 40;
    parameters.multicast_eager_max_bytes = 5000;
    parameters.single_eager_max_bytes = 6000;
    const struct cw_problem_request request = {
        .collective = collective,
        .ranks = ranks,
        .element_bytes = 4,
        .count = 333,
        .counts = cw_collective_accepts_counts(collective) ? counts : NULL,
        .cluster_count = has_clusters ? 3 : 0,
        .cluster_of = cluster_of,
        .cluster_via = has_clusters ? via : NULL,
        .host_count = has_hosts ? 3 : 0,
        .host_of = cluster_of,
    };
    return plan_built(&request, algorithm, &parameters);
}

static void *encode(const struct cw_plan *plan, size_t *length)
{
    void *bytes;
    assert_int_equal(cw_plan_encode(plan, &bytes, length), CW_OK);
    return bytes;
}

static struct cw_plan *decode(const void *bytes, size_t length)
{
    struct cw_plan *plan = NULL;
    char error[300] = "";
    assert_true_msg(cw_plan_decode(bytes, length, &plan, error, sizeof(error)) == CW_OK, "%s", error);
    return plan;
}

/* All of a plan as text, to be freed. */
static char *text_of(const struct cw_plan *plan)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    cw_plan_dump_head(plan, stream);
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        fprintf(stream, "cluster %u, host %u, ", cw_problem_cluster(plan->problem, rank),
                cw_problem_host(plan->problem, rank));
        cw_schedule_dump(&plan->schedules[rank], stream);
    }
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void test_written_and_read(void **state)
{
    static const struct {
        enum cw_collective collective;
        const char *algorithm;
    } plans[] = {
        {CW_BCAST, "segmented-chain"},       {CW_BCAST, "multicast"},
        {CW_BCAST, "clusters-overlapped"},   {CW_SCATTER, "binomial"},
        {CW_ALLGATHER, "concurrent"},        {CW_ALLTOALL, "greedy-barriers"},
        {CW_ALLREDUCE, "clusters-two-tier"}, {CW_REDUCE_SCATTER, "pairwise"},
        {CW_BARRIER, "dissemination"},       {CW_ALLREDUCE, "hierarchical"},
    };
    for (uint32_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        size_t length, length_again;
        struct cw_plan *plan = plan_make(plans[i].collective, plans[i].algorithm, RANKS);
        void *bytes = encode(plan, &length);
        struct cw_plan *again = decode(bytes, length);
        void *bytes_again = encode(again, &length_again);
        char *text = text_of(plan), *text_again = text_of(again);
        assert_string_equal(text, text_again);
        assert_true(plan->parameters.multicast_eager_max_bytes == again->parameters.multicast_eager_max_bytes);
        assert_int_equal(length, length_again);
        assert_memory_equal(bytes, bytes_again, length);
        free(text);
        free(text_again);
        free(bytes);
        free(bytes_again);
        cw_plan_destroy(plan);
        cw_plan_destroy(again);
    }
}

static void assert_rejected(const void *bytes, size_t length, const char *words)
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
    assert_true_msg(strstr(error, words) != NULL, "\"%s\" does not say \"%s\"", error, words);
}

static void test_cut_off_or_altered(void **state)
{
    struct cw_plan *plan = plan_make(CW_ALLGATHER, "bruck", 5);
    size_t length;
    uint8_t *bytes = encode(plan, &length);
    for (size_t cut = 0; cut < length; cut++) {
        assert_rejected(bytes, cut, cut < 8 ? "no plan file" : "cut off");
    }
    for (size_t i = 0; i < length; i++) {
        bytes[i] ^= 0x10;
        assert_rejected(bytes, length, i < 8 ? "no plan file" : i < 12 ? "version" : "altered");
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

/* A file cannot make its reader take thousands of times its length: a plan whose ops are all the same is written as it
 * is, and packed it is refused. */
static void test_memory_by_length(void **state)
{
    struct cw_op *joins = calloc(JOINS, sizeof(*joins));
    assert_non_null(joins);
    for (uint32_t i = 0; i < JOINS; i++) {
        joins[i] = (struct cw_op){.kind = CW_OP_JOIN, .iterations = 1, .blocks = 1};
    }
    struct cw_plan *plan = plan_make(CW_BARRIER, "dissemination", 1);
    struct cw_schedule kept = plan->schedules[0];
    plan->schedules[0].ops = joins;
    plan->schedules[0].op_count = JOINS;
    size_t length, bomb_length;
    uint8_t *file = encode(plan, &length);
    plan->schedules[0] = kept;
    cw_plan_destroy(plan);
    plan = decode(file, length);
    assert_int_equal(plan->schedules[0].op_count, JOINS);
    assert_rejected(file, length - 1, "altered");
    uint8_t *bomb = file_of(file + HEADER, length - HEADER - CHECKSUM, &bomb_length);
    assert_true(bomb_length < JOINS / 16);
    assert_rejected(bomb, bomb_length, "more memory than a file of this length");
    cw_plan_destroy(plan);
    free(joins);
    free(file);
    free(bomb);
}

/* The first rank that is wrong is the last one to be read: it is named, not what is wrong behind it. */
static void test_ranks_are_checked_one_by_one(void **state)
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
    assert_rejected(file, length, "rank 1");
    cw_plan_destroy(plan);
    free(bytes);
    free(content);
    free(file);
}

int main(void)
{
    return TESTS_RUN(test_written_and_read, test_cut_off_or_altered, test_memory_by_length,
                     test_ranks_are_checked_one_by_one);
}
