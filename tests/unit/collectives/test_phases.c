/* Count matrices of an all-to-all in phases: the paper's example, and random ones against what a division must be and
 * its bounds. */
#include "built_plans.h"
#include "collectives/phases/count_matrix.h"
#include "dataplane/base/random.h"

enum { RANDOM_COUNT_MATRICES = 1000 };

/* Every byte of every message once and in order, and in no phase two messages out of or into one rank. */
static void assert_division(const struct cw_count_matrix *count_matrix, const struct cw_phases *phases)
{
    uint64_t *done = calloc(count_matrix->message_count + 1ull, sizeof(*done));
    uint32_t *out = calloc(count_matrix->ranks, sizeof(*out));
    uint32_t *in = calloc(count_matrix->ranks, sizeof(*in));
    assert_true(done != NULL && out != NULL && in != NULL);
    uint32_t phase_before = 0;
    for (uint32_t i = 0; i < phases->message_count; i++) {
        const struct cw_phase_message *part = &phases->messages[i];
        const struct cw_count_matrix_message *message = &count_matrix->messages[part->message];
        assert_true(part->phase >= phase_before && part->phase < phases->phase_count);
        phase_before = part->phase;
        assert_true(part->bytes > 0 && done[part->message] == 0);
        done[part->message] += part->bytes;
        if (phases->last_is_mixed && part->phase + 1 == phases->phase_count) {
            continue;
        }
        assert_true(out[message->from] != part->phase + 1 && in[message->to] != part->phase + 1);
        out[message->from] = in[message->to] = part->phase + 1;
    }
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        assert_true(done[i] == count_matrix->messages[i].bytes);
    }
    free(done);
    free(out);
    free(in);
}

/* The sum over phases of their longest message. */
static uint64_t phases_bytes(const struct cw_phases *phases)
{
    uint64_t sum = 0;
    uint64_t longest = 0;
    for (uint32_t i = 0; i < phases->message_count; i++) {
        const struct cw_phase_message *message = &phases->messages[i];
        longest = message->bytes > longest ? message->bytes : longest;
        if (i + 1 == phases->message_count || phases->messages[i + 1].phase != message->phase) {
            sum += longest;
            longest = 0;
        }
    }
    return sum;
}

/* The most bytes that one rank sends or receives: no division takes less time. */
static uint64_t matrix_load(const struct cw_count_matrix *count_matrix)
{
    uint64_t load = 0;
    for (uint32_t rank = 0; rank < count_matrix->ranks; rank++) {
        uint64_t out = 0;
        uint64_t in = 0;
        for (uint32_t i = 0; i < count_matrix->message_count; i++) {
            out += count_matrix->messages[i].from == rank ? count_matrix->messages[i].bytes : 0;
            in += count_matrix->messages[i].to == rank ? count_matrix->messages[i].bytes : 0;
        }
        load = out > load ? out : load;
        load = in > load ? in : load;
    }
    return load;
}

enum scheduler { GREEDY, ALL_TO_ALL_BASED, SCHEDULERS };

struct division {
    uint32_t phases, parts;
    uint64_t bytes;
    bool last_is_mixed;
};

/* A scheduler's division of a count matrix. `phase_of`: the phase of each message; NULL: any. */
static struct division divide(enum scheduler scheduler, const struct cw_count_matrix *matrix, uint64_t threshold,
                              const uint32_t *phase_of)
{
    struct cw_phases phases;
    int status = scheduler == GREEDY ? cw_schedule_greedy(matrix, threshold, &phases)
                                     : cw_schedule_all_to_all_based(matrix, threshold, &phases);
    assert_int_equal(status, CW_OK);
    assert_division(matrix, &phases);
    for (uint32_t i = 0; phase_of != NULL && i < phases.message_count; i++) {
        assert_int_equal(phases.messages[i].phase, phase_of[phases.messages[i].message]);
    }
    const struct division found = {phases.phase_count, phases.message_count, phases_bytes(&phases),
                                   phases.last_is_mixed};
    cw_phases_dispose(&phases);
    return found;
}

/* ---- Figure 3 ---- */

enum { MB = 1000000, KB = 1000 };

static void test_figure_3(void **state)
{
    static struct cw_count_matrix_message messages[] = {{0, 1, MB},  {1, 3, MB},  {0, 2, 10 * KB},
                                                        {2, 3, 100}, {1, 5, 100}, {2, 1, 100}};
    static const struct cw_count_matrix figure = {6, 6, messages};
    static const struct {
        enum scheduler scheduler;
        uint64_t threshold; /* shorter messages fill phases of longer ones, and the rest shares the last one */
        uint32_t phases;
        bool last_is_mixed;
        uint32_t phase_of[6]; /* all 0: not compared */
    } rows[] = {
        {GREEDY, 0, 3, false, {0, 0, 1, 1, 1, 2}},
        {GREEDY, 1000, 3, true, {0}},
        {GREEDY, 2 * MB, 1, true, {0}},
        {ALL_TO_ALL_BASED, 0, 2, false, {0, 1, 1, 0, 0, 1}},
        {ALL_TO_ALL_BASED, 1000, 2, false, {0}},
        {ALL_TO_ALL_BASED, 2 * MB, 1, true, {0}},

    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const uint32_t *phase_of = rows[i].phase_of;
        struct division found =
            divide(rows[i].scheduler, &figure, rows[i].threshold, phase_of[2] > 0 ? phase_of : NULL);
        assert_int_equal(found.phases, rows[i].phases);
        assert_int_equal(found.last_is_mixed, rows[i].last_is_mixed);
    }
}

/* ---- Random count matrices ---- */

static struct cw_count_matrix random_count_matrix(struct cw_random *random, uint32_t ranks, uint32_t density_percent)
{
    struct cw_count_matrix count_matrix = {.ranks = ranks};
    count_matrix.messages = malloc((uint64_t)ranks * ranks * sizeof(*count_matrix.messages));
    assert_non_null(count_matrix.messages);
    for (uint32_t from = 0; from < ranks; from++) {
        for (uint32_t to = 0; to < ranks; to++) {
            if (from != to && cw_random_below(random, 100) < density_percent) {
                uint64_t bytes = 1 + cw_random_below(random, 1ull << cw_random_below(random, 24));
                count_matrix.messages[count_matrix.message_count++] = (struct cw_count_matrix_message){from, to, bytes};
            }
        }
    }
    return count_matrix;
}

/* Table 3: 16 nodes; 160 messages of 64 KB, 20 of 16 KB, 60 of 100 B between random pairs: 240 is all pairs. */
static struct cw_count_matrix table_3_count_matrix(struct cw_random *random)
{
    struct cw_count_matrix count_matrix = random_count_matrix(random, 16, 100);
    assert_int_equal(count_matrix.message_count, 240);
    for (uint32_t i = 0; i < 240; i++) {
        count_matrix.messages[i].bytes = i < 160 ? 64 << 10 : i < 180 ? 16 << 10 : 100;
    }
    for (uint32_t i = 239; i > 0; i--) {
        uint32_t j = (uint32_t)cw_random_below(random, i + 1);
        uint64_t swap = count_matrix.messages[i].bytes;
        count_matrix.messages[i].bytes = count_matrix.messages[j].bytes;
        count_matrix.messages[j].bytes = swap;
    }
    return count_matrix;
}

static void assert_bounds(const struct cw_count_matrix *count_matrix)
{
    const uint64_t load = matrix_load(count_matrix);

    assert_true(divide(GREEDY, count_matrix, 0, NULL).bytes >= load);
    assert_true(divide(ALL_TO_ALL_BASED, count_matrix, 0, NULL).phases <= count_matrix->ranks - 1);
}

static void test_random_count_matrices(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 20031);
    for (uint32_t i = 0; i < RANDOM_COUNT_MATRICES; i++) {
        uint32_t ranks = 2 + (uint32_t)cw_random_below(&random, 30);
        struct cw_count_matrix count_matrix =
            i % 4 == 0 ? table_3_count_matrix(&random)
                       : random_count_matrix(&random, ranks, 5 + (uint32_t)cw_random_below(&random, 96));
        assert_bounds(&count_matrix);
        cw_count_matrix_dispose(&count_matrix);
    }
}

static void test_nothing_to_do(void **state)
{
    struct cw_count_matrix_message none;
    const struct cw_count_matrix count_matrix = {5, 0, &none};
    for (enum scheduler scheduler = 0; scheduler < SCHEDULERS; scheduler++) {
        const struct division found = divide(scheduler, &count_matrix, 0, NULL);
        assert_true(found.phases == 0 && found.parts == 0);
    }
}

int main(void)
{
    return TESTS_RUN(test_figure_3, test_random_count_matrices, test_nothing_to_do);
}
