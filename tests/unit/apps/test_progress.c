/* Reports of a command about its progress. */
#include "apps/cli/progress.h"
#include "tests/test.h"

#define S 1000000000ull

static void texts_are_as_they_should(void **state)
{
    static const struct {
        const char *what, *step;
        uint64_t done, all, done_ns, elapsed_ns;
        const char *text;
    } rows[] = {
        {"bench put", "", 0, 0, 0, 0, "bench put: 0 s"},
        {"bench put", "", 0, 0, 0, 12 * S + 9, "bench put: 12 s"},
        {"paper", "", 0, 100, 0, 0, "paper: 0 %, 0 s"},
        {"paper", "", 50, 100, 1 * S, 1 * S, "paper: 50 %, 1 s"}, /* too soon to tell */
        {"paper", "", 50, 100, 2 * S, 2 * S, "paper: 50 %, 2 s, about 2 s left"},
        {"paper", "", 50, 100, 4 * S, 6 * S,
         "paper: 50 %, 6 s, about 2 s left"},                     /* it goes down while a part takes long */
        {"paper", "", 50, 100, 4 * S, 9 * S, "paper: 50 %, 9 s"}, /* longer than was expected */
        {"bench codec", "bytes of text", 1, 3, 20 * S, 20 * S,
         "bench codec: bytes of text: 33 %, 20 s, about 40 s left"},
        {"plogp", "shared, 8 ranks", 1, 101, 6 * S, 6 * S, "plogp: shared, 8 ranks: 0 %, 6 s, about 10 min left"},
        {"paper", "", 100, 100, 90 * S, 90 * S, "paper: 100 %, 90 s"},
        {"paper", "", 1ull << 61, 1ull << 63, 5 * S, 5 * S, "paper: 25 %, 5 s, about 15 s left"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[APP_PROGRESS_BYTES];
        app_progress_text(text, rows[i].what, rows[i].step, rows[i].done, rows[i].all, rows[i].done_ns,
                          rows[i].elapsed_ns);
        assert_string_equal(text, rows[i].text);
    }
}

/* A line that a terminal would wrap could not be taken away again. */
static void long_ones_are_cut(void **state)
{
    char text[APP_PROGRESS_BYTES], step[200];
    memset(step, 'x', sizeof(step) - 1);
    step[sizeof(step) - 1] = '\0';
    app_progress_text(text, "bench", step, 1, 100, UINT64_MAX / 100, UINT64_MAX / 100);
    assert_int_equal(strlen(text), APP_PROGRESS_BYTES - 1);
}

/* Without a terminal there is none, and all calls do nothing. */
static void nothing_without_a_terminal(void **state)
{
    app_progress_step(1, 2, "x");
    app_progress_begin("x", true);
    app_progress_step(1, 2, "x");
    app_progress_hide();
    app_progress_end();
}

int main(void)
{
    return TESTS_RUN(texts_are_as_they_should, long_ones_are_cut, nothing_without_a_terminal);
}
