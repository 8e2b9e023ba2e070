/* Software DSM: makes the pages of a shared memory consistent at a barrier, as in section 5.3 of CC-MPI (Karwande, Yuan
 * and Lowenthal 2003). In each iteration every rank writes to some pages; then homes get the diffs (all-to-all-v),
 * apply them, and send the new pages to all ranks (all-to-all-v): dsm_pages.h. An all-to-all before each of the two
 * exchanges the sizes, since no rank knows the writes of the others; a rank that has received both has heard from all,
 * so that this is the barrier.
 *
 * The all-to-all-v takes one of two ways: dynamic, messages between pairs, all at once; or level 1, the hint by which
 * Causeway exchanges all counts and moves the data in phases (mpi/COMPILED.md). Other MPIs do not know the hint. */
#include "apps/kernels/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/kernels/dsm_pages.h"
#include "dataplane/statistics.h"

enum {
    EXCHANGES = 2,
    BOTH = EXCHANGES,
    PAGES_LIST_MAX = 16,
    ITERATIONS_MAX = 10000,
    OUTGOING_WORDS = DSM_PAGES_PER_RANK * DSM_DIFF_WORDS_MAX,
};

static const struct {
    const char *name;
    const char *hint;
} exchanges[EXCHANGES] = {{"dynamic", "alltoallv=pairs"}, {"level1", "alltoallv=all-to-all-based"}};

/* One way to exchange, with a memory of its own. */
struct side {
    int exchange;
    MPI_Comm communicator;
    struct dsm_pages memory;
    double *seconds; /* [iterations]: of this rank */
    double communication_seconds;
    double diff_bytes; /* sent by this rank, in all iterations, as the next ones */
    double page_bytes;
};

struct dsm {
    struct kernel kernel;

    /* arguments */
    int pages[PAGES_LIST_MAX];
    int pages_count;
    int exchange; /* an index, or BOTH */
    int iterations;
    uint64_t seed;
    int altered; /* the iteration in which a byte is altered; 0: none */
    bool is_json;

    struct side sides[EXCHANGES];
    int side_count;
    uint32_t *reference; /* the correct contents: computed from the seed by this rank alone */
    struct dsm_write *writes;
    uint32_t *outgoing;
    uint32_t *incoming;
    int incoming_room;
};

/* ---- arguments ---- */

static const char usage[] = "dsm [--pages LIST] [--exchange dynamic|level1|both] [--iterations N] [--seed N] [--json]";

static void help_print(void)
{
    printf("usage: %s\n\n"
           "Software DSM: every rank writes to some pages of %d bytes, a barrier makes all copies the same; "
           "all-to-all-v.\n\n"
           "  --pages LIST        written by each rank in an iteration, up to %d (1,4,8)\n"
           "  --exchange NAME     dynamic: pairs; level1: exchanged counts and phases; both: in turn, with their ratio "
           "(both)\n"
           "  --iterations N      up to %d (100)\n"
           "  --seed N            of what is written where (1)\n"
           "  --json              one object\n"
           "  --alter N           alters a byte in iteration N, after its barrier: verification has to fail\n\n"
           "Started by an MPI launcher with 1 to %d ranks: causeway run -n 4 dsm --pages 4\n"
           "Every iteration is verified, outside of what is timed. Times are the slowest rank's; a barrier's is the "
           "median.\n"
           "Ratio: dynamic over level 1, so above 1 level 1 is ahead.\n"
           "Exit codes: 0 verified, 1 wrong result, 2 wrong usage, 3 out of memory.\n",
           usage, DSM_PAGE_BYTES, DSM_PAGES_WRITTEN_MAX, ITERATIONS_MAX, KERNEL_RANKS_MAX);
}

/* A number from `least` to `most` at *text, which then points behind it; -1: there is none. */
static long number_read(const char **text, long least, long most)
{
    char *end;
    errno = 0;
    long number = strtol(*text, &end, 10);
    if (end == *text || (*text)[0] < '0' || (*text)[0] > '9' || errno != 0 || number < least || number > most)
        return -1;
    *text = end;
    return number;
}

/* A number that is all of `text`; -1: it is not. */
static long number_of(const char *text, long least, long most)
{
    long number = number_read(&text, least, most);
    return *text == '\0' ? number : -1;
}

static bool pages_read(struct dsm *dsm, const char *text)
{
    for (dsm->pages_count = 0; dsm->pages_count < PAGES_LIST_MAX; text++) {
        long pages = number_read(&text, 1, DSM_PAGES_WRITTEN_MAX);
        if (pages < 0)
            return false;
        dsm->pages[dsm->pages_count++] = (int)pages;
        if (*text != ',')
            return *text == '\0';
    }
    return false;
}

static bool exchange_read(struct dsm *dsm, const char *text)
{
    dsm->exchange = strcmp(text, "both") == 0 ? BOTH : -1;
    for (int i = 0; i < EXCHANGES; i++) {
        if (strcmp(text, exchanges[i].name) == 0)
            dsm->exchange = i;
    }
    return dsm->exchange >= 0;
}

/* NULL, or the error in the value. */
static const char *option_read(struct dsm *dsm, const char *option, const char *value)
{
    if (strcmp(option, "--pages") == 0)
        return pages_read(dsm, value) ? NULL : "--pages wants numbers from 1 to 16, such as 1,4,8";
    if (strcmp(option, "--exchange") == 0)
        return exchange_read(dsm, value) ? NULL : "no such exchange";
    long number = number_of(value, 0, INT32_MAX);
    bool is_iteration = number >= 1 && number <= ITERATIONS_MAX;
    if (strcmp(option, "--iterations") == 0) {
        dsm->iterations = (int)number;
        return is_iteration ? NULL : "--iterations wants a number from 1 to 10000";
    }
    if (strcmp(option, "--seed") == 0) {
        dsm->seed = (uint64_t)number;
        return number >= 0 ? NULL : "--seed wants a number from 0 to 2147483647";
    }
    if (strcmp(option, "--alter") == 0) {
        dsm->altered = (int)number;
        return is_iteration ? NULL : "--alter wants the number of an iteration";
    }
    return "no such option";
}

static bool option_is_known(const char *option)
{
    static const char *const known[] = {"--pages", "--exchange", "--iterations", "--seed", "--alter"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(option, known[i]) == 0)
            return true;
    }
    return false;
}

/* False: `problem` describes the error in the call. */
static bool arguments_read(struct dsm *dsm, int argc, char **argv, char *problem, size_t problem_bytes)
{
    for (int i = 1; i < argc; i++) {
        const char *wrong = NULL;
        const char *of = argv[i];
        if (strcmp(argv[i], "--json") == 0)
            dsm->is_json = true;
        else if (!option_is_known(argv[i]))
            wrong = "no such option";
        else if (i + 1 == argc)
            wrong = "no value behind";
        else {
            wrong = option_read(dsm, argv[i], argv[i + 1]);
            of = argv[++i];
        }
        if (wrong) {
            snprintf(problem, problem_bytes, "%s: %s", wrong, of);
            return false;
        }
    }
    if (dsm->kernel.ranks > KERNEL_RANKS_MAX)
        snprintf(problem, problem_bytes, "too many ranks: %d (start at most %d)", dsm->kernel.ranks, KERNEL_RANKS_MAX);
    else if (dsm->altered > dsm->iterations)
        snprintf(problem, problem_bytes, "--alter: there is no iteration %d", dsm->altered);
    else
        return true;
    return false;
}

/* ---- the barrier ---- */

static void incoming_reserve(struct dsm *dsm, int room)
{
    room = room > 0 ? room : 1; /* there is memory even if nothing comes */
    if (room <= dsm->incoming_room)
        return;
    free(dsm->incoming);
    dsm->incoming = kernel_allocate((size_t)room, sizeof(*dsm->incoming));
    dsm->incoming_room = room;
}

/* Exchanges the ranks' data, from `outgoing` into `incoming`; fills the counts and offsets of the received data. */
static void words_exchange(struct dsm *dsm, const struct side *side, const int *counts, const int *offsets,
                           int *expected, int *places)
{
    kernel_communication_begin(&dsm->kernel);
    MPI_Alltoall(counts, 1, MPI_INT, expected, 1, MPI_INT, side->communicator);
    kernel_communication_end(&dsm->kernel);
    incoming_reserve(dsm, kernel_offsets(places, expected, dsm->kernel.ranks));
    kernel_communication_begin(&dsm->kernel);
    MPI_Alltoallv(dsm->outgoing, counts, offsets, MPI_UINT32_T, dsm->incoming, expected, places, MPI_UINT32_T,
                  side->communicator);
    kernel_communication_end(&dsm->kernel);
}

static void diffs_exchange(struct dsm *dsm, struct side *side)
{
    int counts[KERNEL_RANKS_MAX], offsets[KERNEL_RANKS_MAX], expected[KERNEL_RANKS_MAX], places[KERNEL_RANKS_MAX];
    int end = 0;
    for (int home = 0; home < dsm->kernel.ranks; home++) {
        offsets[home] = end;
        counts[home] = dsm_diffs_pack(&side->memory, home, dsm->outgoing + end);
        end += counts[home];
    }
    side->diff_bytes += 4.0 * end;
    words_exchange(dsm, side, counts, offsets, expected, places);
    for (int from = 0; from < dsm->kernel.ranks; from++) {
        bool right = dsm_diffs_apply(&side->memory, dsm->incoming + places[from], expected[from]);
        kernel_require(&dsm->kernel, right, "data from rank %d are no diffs of pages of this home", from);
    }
}

/* All ranks get the same pages, from the same place. */
static void pages_exchange(struct dsm *dsm, struct side *side)
{
    int counts[KERNEL_RANKS_MAX], offsets[KERNEL_RANKS_MAX] = {0}, expected[KERNEL_RANKS_MAX], places[KERNEL_RANKS_MAX];
    int count = dsm_pages_pack(&side->memory, dsm->outgoing);
    for (int to = 0; to < dsm->kernel.ranks; to++)
        counts[to] = to == dsm->kernel.rank ? 0 : count;
    side->page_bytes += 4.0 * count * (dsm->kernel.ranks - 1);
    words_exchange(dsm, side, counts, offsets, expected, places);
    for (int from = 0; from < dsm->kernel.ranks; from++) {
        bool right = from == dsm->kernel.rank ||
                     dsm_pages_receive(&side->memory, from, dsm->incoming + places[from], expected[from]);
        kernel_require(&dsm->kernel, right, "data from rank %d are no pages of that home", from);
    }
    dsm_pages_finish(&side->memory);
}

static void side_iterate(struct dsm *dsm, struct side *side, int iteration, int write_count)
{
    dsm->kernel.communication_seconds = 0;
    kernel_timer_start(&dsm->kernel);
    for (int i = 0; i < write_count; i++)
        dsm_pages_write(&side->memory, &dsm->writes[i]);
    diffs_exchange(dsm, side);
    pages_exchange(dsm, side);
    kernel_timer_stop(&dsm->kernel);
    side->seconds[iteration - 1] = dsm->kernel.seconds;
    side->communication_seconds += dsm->kernel.communication_seconds;
    if (iteration == dsm->altered && dsm->kernel.rank == dsm->kernel.ranks - 1)
        side->memory.words[iteration] ^= 0x100;
}

/* ---- verification ---- */

static void reference_advance(struct dsm *dsm, int iteration, int pages)
{
    for (int rank = 0; rank < dsm->kernel.ranks; rank++) {
        int count = dsm_writes_draw(dsm->seed, iteration, rank, dsm->kernel.ranks, pages, dsm->writes);
        for (int i = 0; i < count; i++)
            dsm->reference[dsm->writes[i].page * DSM_PAGE_WORDS + dsm->writes[i].word] = dsm->writes[i].value;
    }
}

static void memory_verify(struct dsm *dsm, const struct side *side, int iteration)
{
    int words = side->memory.count * DSM_PAGE_WORDS;
    int wrong = 0;
    int first = 0;
    for (int i = words - 1; i >= 0; i--) {
        if (side->memory.words[i] != dsm->reference[i]) {
            wrong++;
            first = i;
        }
    }
    kernel_require(&dsm->kernel, wrong == 0,
                   "%s, iteration %d: %d words are wrong, the first in page %d, word %d: %08x instead of %08x",
                   exchanges[side->exchange].name, iteration, wrong, first / DSM_PAGE_WORDS, first % DSM_PAGE_WORDS,
                   side->memory.words[first], dsm->reference[first]);
}

/* ---- the program ---- */

/* False: something is wrong. */
static bool iterate(struct dsm *dsm, int iteration, int pages)
{
    int rank = dsm->kernel.rank;
    int count = dsm_writes_draw(dsm->seed, iteration, rank, dsm->kernel.ranks, pages, dsm->writes);
    for (int i = 0; i < dsm->side_count; i++) /* neither is always the first */
        side_iterate(dsm, &dsm->sides[(i + iteration) % dsm->side_count], iteration, count);
    reference_advance(dsm, iteration, pages);
    for (int i = 0; i < dsm->side_count; i++)
        memory_verify(dsm, &dsm->sides[i], iteration);
    return kernel_is_verified(&dsm->kernel);
}

struct row {
    double seconds;
    double barrier_seconds;
    double communication_seconds;
    double diff_bytes; /* of all ranks, in an iteration */
    double page_bytes;
};

/* Collective; for rank 0. */
static struct row row_of(struct dsm *dsm, struct side *side)
{
    struct row row = {0};
    double bytes[2] = {side->diff_bytes / dsm->iterations, side->page_bytes / dsm->iterations};
    double sums[2] = {0};
    double *slowest = kernel_allocate((size_t)dsm->iterations, sizeof(*slowest));
    MPI_Reduce(side->seconds, slowest, dsm->iterations, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&side->communication_seconds, &row.communication_seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(bytes, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int i = 0; i < dsm->iterations; i++)
        row.seconds += slowest[i];
    row.barrier_seconds = cw_statistics_median(slowest, (size_t)dsm->iterations);
    row.diff_bytes = sums[0];
    row.page_bytes = sums[1];
    free(slowest);
    return row;
}

static void row_print(const struct dsm *dsm, const struct side *side, int pages, const struct row *row)
{
    const char *name = exchanges[side->exchange].name;
    if (dsm->is_json)
        printf(", \"%s\": {\"seconds\": %.6f, \"barrier_median_seconds\": %.9f, \"communication_seconds\": %.6f, "
               "\"diff_bytes\": %.1f, \"page_bytes\": %.1f}",
               name, row->seconds, row->barrier_seconds, row->communication_seconds, row->diff_bytes, row->page_bytes);
    else
        printf("%5d  %-8s %9.4f %12.3f %15.4f %14.1f %14.1f\n", pages, name, row->seconds, row->barrier_seconds * 1e3,
               row->communication_seconds, row->diff_bytes, row->page_bytes);
}

static void rows_print(struct dsm *dsm, int index)
{
    struct row rows[EXCHANGES];
    for (int i = 0; i < dsm->side_count; i++)
        rows[i] = row_of(dsm, &dsm->sides[i]);
    if (dsm->kernel.rank != 0)
        return;
    int pages = dsm->pages[index];
    if (dsm->is_json)
        printf("%s\n {\"pages_per_rank\": %d", index > 0 ? "," : "", pages);
    for (int i = 0; i < dsm->side_count; i++)
        row_print(dsm, &dsm->sides[i], pages, &rows[i]);
    if (dsm->side_count == EXCHANGES) {
        double ratio = rows[0].barrier_seconds / rows[1].barrier_seconds;
        printf(dsm->is_json ? ", \"ratio_dynamic_level1\": %.4f" : "       ratio %.2f\n", ratio);
    }
    printf(dsm->is_json ? "}" : "");
    fflush(stdout);
}

/* All iterations with one number of pages, from an empty memory; false: something was wrong. */
static bool pages_run(struct dsm *dsm, int index)
{
    bool right = true;
    for (int i = 0; i < dsm->side_count; i++) {
        struct side *side = &dsm->sides[i];
        dsm_pages_init(&side->memory, dsm->kernel.rank, dsm->kernel.ranks);
        side->communication_seconds = side->diff_bytes = side->page_bytes = 0;
    }
    memset(dsm->reference, 0, (size_t)dsm->kernel.ranks * DSM_PAGES_PER_RANK * DSM_PAGE_BYTES);
    for (int iteration = 1; iteration <= dsm->iterations && right; iteration++)
        right = iterate(dsm, iteration, dsm->pages[index]);
    if (right)
        rows_print(dsm, index);
    for (int i = 0; i < dsm->side_count; i++)
        dsm_pages_dispose(&dsm->sides[i].memory);
    return right;
}

static void side_init(struct dsm *dsm, int exchange)
{
    MPI_Info info;
    struct side *side = &dsm->sides[dsm->side_count++];
    side->exchange = exchange;
    side->seconds = kernel_allocate((size_t)dsm->iterations, sizeof(*side->seconds));
    MPI_Info_create(&info);
    MPI_Info_set(info, "causeway_algorithm", exchanges[exchange].hint);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &side->communicator);
    MPI_Info_free(&info);
}

static void dsm_init(struct dsm *dsm)
{
    for (int exchange = 0; exchange < EXCHANGES; exchange++) {
        if (dsm->exchange == exchange || dsm->exchange == BOTH)
            side_init(dsm, exchange);
    }
    dsm->reference = kernel_allocate((size_t)dsm->kernel.ranks * DSM_PAGES_PER_RANK, DSM_PAGE_BYTES);
    dsm->writes = kernel_allocate(DSM_WRITES_MAX, sizeof(*dsm->writes));
    dsm->outgoing = kernel_allocate(OUTGOING_WORDS, sizeof(*dsm->outgoing));
}

static void dsm_dispose(struct dsm *dsm)
{
    for (int i = 0; i < dsm->side_count; i++) {
        MPI_Comm_free(&dsm->sides[i].communicator);
        free(dsm->sides[i].seconds);
    }
    free(dsm->reference);
    free(dsm->writes);
    free(dsm->outgoing);
    free(dsm->incoming);
}

static void frame_print(const struct dsm *dsm, bool is_end, bool right)
{
    if (dsm->kernel.rank != 0)
        return;
    if (!is_end && dsm->is_json)
        printf("{\"ranks\": %d, \"iterations\": %d, \"pages\": %d, \"page_bytes\": %d, \"seed\": %llu, \"rows\": [",
               dsm->kernel.ranks, dsm->iterations, dsm->kernel.ranks * DSM_PAGES_PER_RANK, DSM_PAGE_BYTES,
               (unsigned long long)dsm->seed);
    else if (!is_end)
        printf("pages  exchange   total/s   barrier/ms  of it in MPI/s  diffs/barrier  pages/barrier (bytes)\n");
    else if (dsm->is_json)
        printf("],\n \"verified\": %s}\n", right ? "true" : "false");
    else
        printf("dsm: %d ranks, %d iterations, %d pages, %s\n", dsm->kernel.ranks, dsm->iterations,
               dsm->kernel.ranks * DSM_PAGES_PER_RANK, right ? "verified" : "NOT VERIFIED");
}

static const struct kernel_about about = {.name = "dsm"};

int main(int argc, char **argv)
{
    static struct dsm dsm;
    char problem[256];
    dsm = (struct dsm){.pages = {1, 4, 8}, .pages_count = 3, .exchange = BOTH, .iterations = 100, .seed = 1};
    kernel_open(&dsm.kernel, &about, &argc, &argv);
    bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
    if (is_help || !arguments_read(&dsm, argc, argv, problem, sizeof(problem))) {
        if (dsm.kernel.rank == 0 && is_help)
            help_print();
        else if (dsm.kernel.rank == 0)
            fprintf(stderr, "dsm: %s (usage: %s; dsm --help lists all)\n", problem, usage);
        kernel_close();
        return is_help ? KERNEL_EXIT_SUCCESS : KERNEL_EXIT_USAGE;
    }
    dsm_init(&dsm);
    frame_print(&dsm, false, true);
    bool right = true;
    for (int i = 0; i < dsm.pages_count && right; i++)
        right = pages_run(&dsm, i);
    frame_print(&dsm, true, right);
    dsm_dispose(&dsm);
    kernel_close();
    return right ? KERNEL_EXIT_SUCCESS : KERNEL_EXIT_FAILURE;
}
