/* Statistics pages of processes: read back by another process, and rejected if invalid. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "control/statistics/statistics_page.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"

static const struct cw_statistics_page_identity identity = {
    .rank = 3, .size = 8, .job = "job \033[2J\"x\"", .program = "prog"};

/* The page of this process, by its number; NULL: it has none. */
static const struct cw_statistics_page_view *own_view(const struct cw_statistics_page_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (views[i].identity.process == (uint32_t)getpid()) {
            return &views[i];
        }
    }
    return NULL;
}

static void test_what_is_written_is_read(void **state)
{
    struct cw_statistics_page *page;
    struct cw_statistics_page_view *views;
    size_t count;
    char error[200];
    assert_int_equal(cw_statistics_page_open(&identity, &page, error, sizeof(error)), CW_OK);
    for (uint64_t round = 1; round < 4; round++) {
        const struct cw_statistics_page_figures figures = {.time_ns = round, .bytes_out = 100 * round, .peers = 7};
        cw_statistics_page_write(page, &figures);
        assert_int_equal(cw_statistics_pages_read(&views, &count), CW_OK);
        const struct cw_statistics_page_view *own = own_view(views, count);
        assert_non_null(own);
        assert_int_equal(own->identity.rank, 3);
        assert_int_equal(own->user, geteuid());
        assert_string_equal(own->identity.job, "job ?[2J?x?"); /* nothing that a terminal would obey */
        assert_memory_equal(&own->figures, &figures, sizeof(figures));
        free(views);
    }
    cw_statistics_page_close(page);
    assert_int_equal(cw_statistics_pages_read(&views, &count), CW_OK);
    assert_null(own_view(views, count));
    free(views);
    cw_statistics_page_close(NULL);
}

/* While it is written all the time, a read gives the state of one moment. */
static void test_figures_belong_together(void **state)
{
    struct cw_statistics_page *page;
    char error[200];
    assert_int_equal(cw_statistics_page_open(&identity, &page, error, sizeof(error)), CW_OK);
    pid_t writer = fork();
    if (writer == 0) {
        for (uint64_t round = 1;; round++) {
            const struct cw_statistics_page_figures figures = {
                .time_ns = round, .bytes_in = round, .round_trip_ns = round};
            cw_statistics_page_write(page, &figures);
        }
    }
    int found = 0;
    for (int looks = 0; found < 20 && looks < 10000; looks++) {
        struct cw_statistics_page_view *views;
        size_t count;
        assert_int_equal(cw_statistics_pages_read(&views, &count), CW_OK);
        const struct cw_statistics_page_view *own = own_view(views, count);
        if (own != NULL) {
            found++;
            assert_true(own->figures.time_ns == own->figures.bytes_in &&
                        own->figures.time_ns == own->figures.round_trip_ns);
        }
        free(views);
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    assert_true(found > 0);
    cw_statistics_page_close(page);
}

static void test_hostile_pages(void **state)
{
    struct cw_random random;
    uint8_t bytes[1024];
    struct cw_statistics_page_view view;
    cw_random_seed(&random, 5);
    for (int round = 0; round < 100000; round++) {
        size_t count = (size_t)cw_random_below(&random, sizeof(bytes));
        for (size_t i = 0; i < sizeof(bytes); i += 8) {
            uint64_t word = cw_random_next(&random);
            memcpy(bytes + i, &word, sizeof(word));
        }
        if (round % 2 == 0) {
            memcpy(bytes, "CWPAGE\n\0\1\0\0\0\2\0\0\0", 16);
        }
        if (cw_statistics_page_parse(bytes, count, &view) == CW_OK) {
            assert_true(view.identity.rank < view.identity.size);
            assert_true(strlen(view.identity.job) < CW_STATISTICS_PAGE_TEXT_BYTES &&
                        strchr(view.identity.host, '\033') == NULL);
        }
    }
    int empty = memfd_create("causeway-page", MFD_CLOEXEC); /* a file of that name, with nothing in it */
    struct cw_statistics_page_view *views;
    size_t count;
    assert_true(empty >= 0);
    assert_int_equal(cw_statistics_pages_read(&views, &count), CW_OK);
    assert_null(own_view(views, count));
    free(views);
    close(empty);
}

int main(void)
{
    return TESTS_RUN(test_what_is_written_is_read, test_figures_belong_together, test_hostile_pages);
}
