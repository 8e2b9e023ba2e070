/* Comparison of the ranks' counts; the notice of a rank that cannot take part. */
#include "dataplane/status.h"
#include "mpi/collective/compiled/count_matrix.h"
#include "tests/test.h"

enum { RANKS = 3 };

/* Row by row: the rank's sends, then its expected receives. Rank `from` sends `to` 10 from + to + 1 bytes. */
static void rows_fill(uint64_t *all)
{
    for (uint64_t rank = 0; rank < RANKS; rank++) {
        for (uint64_t other = 0; other < RANKS; other++) {
            all[2 * RANKS * rank + other] = 10 * rank + other + 1;
            all[2 * RANKS * rank + RANKS + other] = 10 * other + rank + 1;
        }
    }
}

static void rows_that_agree_are_a_matrix(void **state)
{
    uint64_t all[2 * RANKS * RANKS], matrix[RANKS * RANKS];
    char why[200] = "";
    rows_fill(all);
    assert_int_equal(mpi_count_matrix_join(all, RANKS, matrix, why, sizeof(why)), MPI_SUCCESS);
    for (uint64_t pair = 0; pair < RANKS * RANKS; pair++) {
        assert_int_equal(matrix[pair], 10 * (pair / RANKS) + pair % RANKS + 1);
    }
    assert_string_equal(why, "");
}

static void rows_that_differ_name_the_first_pair(void **state)
{
    static const struct {
        uint32_t at; /* which entry is another one */
        uint64_t is;
        int code;
        const char *says;
    } rows[] = {
        {1, 3, MPI_ERR_TRUNCATE, "rank 0 sends rank 1 3 bytes, but rank 1 expects 2 of it"},
        {1, 0, MPI_ERR_COUNT, "rank 0 sends rank 1 0 bytes, but rank 1 expects 2 of it"},
        {2 * 2 * RANKS + RANKS + 1, 14, MPI_ERR_COUNT, "rank 1 sends rank 2 13 bytes, but rank 2 expects 14 of it"},
        {2 * 2 * RANKS + RANKS + 2, 0, MPI_ERR_TRUNCATE, "rank 2 sends rank 2 23 bytes, but rank 2 expects 0 of it"},
        {1, 1ull << 63, MPI_ERR_TRUNCATE, "rank 0 sends rank 1 9223372036854775808 bytes"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t all[2 * RANKS * RANKS], matrix[RANKS * RANKS];
        char why[200] = "";
        rows_fill(all);
        all[rows[i].at] = rows[i].is;
        assert_int_equal(mpi_count_matrix_join(all, RANKS, matrix, why, sizeof(why)), rows[i].code);
        assert_true_msg(strstr(why, rows[i].says) != NULL, "'%s' instead of '%s'", why, rows[i].says);
    }
}

static void refusals_show_which_counts(void **state)
{
    static const struct {
        struct mpi_refusal refusal;
        const char *says;
    } rows[] = {
        {{.reason = MPI_REFUSAL_SENDS, .peer = 5, .planned = 100, .given = 96},
         "rank 2 sends rank 5 100 bytes, but its call says 96"},
        {{.reason = MPI_REFUSAL_EXPECTS, .peer = 5, .planned = 100, .given = 96},
         "rank 2 gets 100 bytes of rank 5, but its call says 96"},
        {{.reason = MPI_REFUSAL_FAILED, .peer = -1, .given = (uint64_t)(int64_t)CW_ERROR_REMOTE_ACCESS},
         "rank 2 does not continue: the target refused the access"},
        {{.reason = MPI_REFUSAL_MISMATCH, .peer = -1}, "rank 2 does not continue"},
        {{.reason = 77, .peer = -1}, "rank 2 does not continue"}, /* of a later version */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        mpi_refusal_text(&rows[i].refusal, 2, text, sizeof(text));
        assert_true_msg(strstr(text, rows[i].says) != NULL, "'%s' instead of '%s'", text, rows[i].says);
        assert_true(strlen(text) + 1 < sizeof(text)); /* nothing is cut off */
    }
}

int main(void)
{
    return TESTS_RUN(rows_that_agree_are_a_matrix, rows_that_differ_name_the_first_pair, refusals_show_which_counts);
}
