/* Processors of ranks and dataplane threads, on machines described to hwloc (HWLOC_SYNTHETIC). */
#include "control/launch/binding.h"
#include "dataplane/status.h"
#include "tests/test.h"

static cpu_set_t set_of(const char *list)
{
    struct cw_dedicate_wish wish;
    char text[200], error[200];
    cpu_set_t set;
    snprintf(text, sizeof(text), "cores:%s", list);
    assert_int_equal(cw_dedicate_read(text, &wish, error, sizeof(error)), 0);
    CPU_ZERO(&set);
    for (uint32_t i = 0; i < wish.count; i++) {
        CPU_SET(wish.cores[i], &set);
    }
    return set;
}

struct expected {
    const char *machine; /* as hwloc has it; processors are numbered along it */
    const char *allowed;
    struct launch_binding_wish wish;
    int dedicated[4];     /* of all ranks; -1: none */
    const char *ranks[4]; /* processors of each rank */
};

static int first_of(const cpu_set_t *set)
{
    int first = 0;
    while (first < CPU_SETSIZE && !CPU_ISSET((size_t)first, set)) {
        first++;
    }
    return first;
}

static void check(const struct expected *expected)
{
    struct launch_binding binding;
    struct launch_binding_wish wish = expected->wish;
    char error[300] = "";
    cpu_set_t allowed = set_of(expected->allowed);
    setenv("HWLOC_SYNTHETIC", expected->machine, 1);
    wish.allowed = &allowed;
    wish.isolated = wish.isolated == NULL ? "" : wish.isolated;
    assert_true_msg(launch_binding_make(&wish, &binding, error, sizeof(error)), "%s: %s", expected->machine, error);
    if (expected->dedicated[0] < 0) {
        assert_null(binding.dedicated);
        assert_true(binding.undedicated[0] != 0);
    }
    for (uint32_t rank = 0; rank < wish.count; rank++) {
        cpu_set_t ranks = set_of(expected->ranks[rank]);
        assert_true_msg(CPU_EQUAL(&ranks, &binding.cores[rank]), "%s of %s, rank %u: %d processors from %d on, not %s",
                        expected->allowed, expected->machine, rank, CPU_COUNT(&binding.cores[rank]),
                        first_of(&binding.cores[rank]), expected->ranks[rank]);
    }
    for (uint32_t i = 0; expected->dedicated[0] >= 0 && i < expected->wish.count * binding.threads; i++) {
        assert_int_equal(binding.dedicated[i], expected->dedicated[i]);
    }
    launch_binding_dispose(&binding);
}

static void test_dedicated_cores_are_whole_and_apart(void **state)
{
    static const struct expected cases[] = {
        /* the last cores, with all their hardware threads */
        {"core:4 pu:2", "0-7", {.word = "none", .dedicated = "1", .count = 2}, {6, 4}, {"0-3", "0-3"}},
        {"core:4 pu:2", "0-7", {.word = "core", .dedicated = "1", .count = 2}, {6, 4}, {"0,1", "2,3"}},
        {"core:4 pu:2", "0-7", {.word = "hwthread", .dedicated = "1", .count = 2}, {6, 4}, {"0", "1"}},
        {"core:6 pu:1", "0-5", {.word = "core", .dedicated = "2", .count = 2}, {5, 4, 3, 2}, {"0", "1"}},
        {"core:5 pu:1", "0-4", {.word = "none", .dedicated = "2", .count = 2}, {-1}, {"0-4", "0-4"}},
        {"core:6 pu:1",
         "0-5",
         {.word = "none", .dedicated = "2,cores:4,0-2", .count = 2},
         {4, 0, 1, 2},
         {"3,5", "3,5"}},
        {"core:6 pu:1", "0-5", {.word = "none", .dedicated = "2,cores:0-2", .count = 2}, {-1}, {"0-5", "0-5"}},
        /* only processors that this process may use */
        {"core:4 pu:2", "0-5", {.word = "none", .dedicated = "1", .count = 1}, {4}, {"0-3"}},
        /* too few cores, though there are hardware threads enough */
        {"core:2 pu:2", "0-3", {.word = "none", .dedicated = "1", .count = 2}, {-1}, {"0-3", "0-3"}},
        {"core:3 pu:1", "0-2", {.word = "core", .dedicated = "1", .count = 2}, {-1}, {"0", "1"}},
        /* named by a list; its hardware threads are reserved then */
        {"core:4 pu:2", "0-7", {.word = "none", .dedicated = "cores:0,3", .count = 2}, {0, 3}, {"4-7", "4-7"}},
        {"core:4 pu:2", "0-7", {.word = "none", .dedicated = "cores:1", .count = 2}, {-1}, {"0-7", "0-7"}},
        {"core:2 pu:1", "0-1", {.word = "none", .dedicated = "cores:0,1", .count = 2}, {0, 1}, {"0,1", "0,1"}},
        /* cores kept free by the kernel, which others may not use */
        {"core:4 pu:1", "0-1", {.word = "core", .dedicated = "1", .count = 2, .isolated = "2-3"}, {2, 3}, {"0", "1"}},
        {"core:4 pu:1", "0-2", {.word = "none", .dedicated = "1", .count = 2, .isolated = "3"}, {-1}, {"0-2", "0-2"}},
        /* nothing is wanted */
        {"core:2 pu:1", "0-1", {.word = "core", .dedicated = "off", .count = 2}, {0, 0}, {"0", "1"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(&cases[i]);
    }
    struct launch_binding binding;
    char error[300];
    setenv("HWLOC_SYNTHETIC", "core:2 pu:1", 1);
    cpu_set_t allowed = set_of("0-1");
    struct launch_binding_wish none = {.word = "none", .dedicated = NULL, .count = 2, .allowed = &allowed};
    assert_true(launch_binding_make(&none, &binding, error, sizeof(error)));
    assert_null(binding.cores);
    assert_null(binding.dedicated);
    assert_string_equal(binding.undedicated, "");
}

static void test_errors_have_a_count(void **state)
{
    struct launch_binding binding;
    char error[300];
    cpu_set_t allowed = set_of("0-3");
    setenv("HWLOC_SYNTHETIC", "core:4 pu:1", 1);
    struct launch_binding_wish wish = {
        .word = "core", .dedicated = "cores:3", .count = 1, .allowed = &allowed, .isolated = ""};
    assert_true(launch_binding_make(&wish, &binding, error, sizeof(error)));
    launch_binding_dispose(&binding);
    wish = (struct launch_binding_wish){.word = "core", .count = 5, .allowed = &allowed, .isolated = ""};
    assert_false(launch_binding_make(&wish, &binding, error, sizeof(error)));
    assert_non_null(strstr(error, "5 ranks, and there is one for 4 of them"));
    wish = (struct launch_binding_wish){.word = "core", .dedicated = "cores:4-", .count = 1, .allowed = &allowed};
    assert_false(launch_binding_make(&wish, &binding, error, sizeof(error)));
    assert_non_null(strstr(error, "'cores:4-' dedicates no cores"));
}

/* ---- without the launcher ---- */

static struct cw_dedicate_place place_of(uint32_t number, uint32_t count, const char *allowed, uint16_t all)
{
    struct cw_dedicate_place place = {.number = number, .count = count, .allowed = set_of(allowed)};
    place.cores = (struct cw_process_cores){.own = (uint16_t)CPU_COUNT(&place.allowed), .all = all};
    return place;
}

/* `core`: of the last thread. */
static void choose(const char *text, struct cw_dedicate_place place, int core, const char *rest)
{
    struct cw_dedicate_wish wish;
    struct cw_dedicated dedicated;
    char error[300];
    cpu_set_t left, wanted = set_of(rest);
    assert_int_equal(cw_dedicate_read(text, &wish, error, sizeof(error)), 0);
    cw_dedicate_choose(&wish, &place, &left, &dedicated);
    assert_int_equal(dedicated.count, core < 0 ? 0 : wish.threads);
    assert_int_equal(core < 0 ? core : dedicated.cores[dedicated.count - 1], core);
    assert_true(CPU_EQUAL(&left, &wanted));
    assert_int_equal(dedicated.why[0] != 0, core < 0 && wish.threads > 0);
}

static void test_ranks_of_other_launchers_find_their_own(void **state)
{
    choose(NULL, place_of(0, 2, "0-7", 8), -1, "0-7");
    choose("off", place_of(0, 2, "0-7", 8), -1, "0-7");
    choose("1", place_of(0, 2, "0-7", 8), 7, "0-5"); /* they share all */
    choose("1", place_of(1, 2, "0-7", 8), 6, "0-5");
    choose("1", place_of(3, 4, "0-7", 8), 4, "0-3");
    choose("1", place_of(4, 5, "0-7", 8), -1, "0-7");
    choose("1", place_of(1, 2, "2,3", 8), 3, "2"); /* each is bound */
    choose("1", place_of(1, 2, "2", 8), -1, "2");
    choose("cores:5,1-2", place_of(0, 2, "0-7", 8), 5, "0,2-4,6,7");
    choose("cores:5,1-2", place_of(2, 3, "0-7", 8), 2, "0,3,4,6,7");
    choose("cores:5,1-2", place_of(3, 4, "0-7", 8), -1, "0-7");
    choose("cores:9", place_of(0, 1, "0-7", 16), 9, "0-7");
    choose("2", place_of(0, 2, "0-5", 6), 4, "0,1"); /* two threads each */
    choose("2", place_of(1, 2, "0-5", 6), 2, "0,1");
    choose("2", place_of(1, 2, "0-4", 5), -1, "0-4");
    choose("2", place_of(1, 2, "3-5", 6), 4, "3");
    choose("2", place_of(1, 2, "4,5", 6), -1, "4,5");
    choose("2,cores:1-4", place_of(1, 2, "0-5", 6), 4, "0,5");
    choose("2,cores:1-3", place_of(1, 2, "0-5", 6), -1, "0-5");
    choose("2,cores:0,1", place_of(0, 1, "0,1", 2), 1, "0,1");
}

static void test_texts(void **state)
{
    static const char *const wrong[] = {"9",        "1x",         "2,",        "2,cores:",    "2cores:1",
                                        "2,1",      "2,,cores:1", "-1",        "cores:",      "cores:a",
                                        "cores:1,", "cores:3-1",  "cores:1,1", "cores:1-3,2", "cores:99999",
                                        "on",       "1,2",        "cores:1 2", "cores:-1",    "cores:1--2"};
    struct cw_dedicate_wish wish;
    struct cw_dedicated dedicated;
    char error[300];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_true_msg(cw_dedicate_read(wrong[i], &wish, error, sizeof(error)) != 0, "'%s' is taken", wrong[i]);
        assert_non_null(strstr(error, wrong[i]));
    }
    assert_int_equal(cw_dedicate_parse("none: too few", &dedicated), 0);
    assert_int_equal(dedicated.count, 0);
    assert_string_equal(dedicated.why, "too few");
    assert_int_equal(cw_dedicate_parse("11", &dedicated), 0);
    assert_true(dedicated.count == 1 && dedicated.cores[0] == 11);
    assert_int_equal(cw_dedicate_parse("11,3", &dedicated), 0);
    assert_true(dedicated.count == 2 && dedicated.cores[0] == 11 && dedicated.cores[1] == 3);
    static const char *const untold[] = {"11x", "", "4096", "1,", ",1", "1,,2", "0,1,2,3,4,5,6,7,8"};
    for (size_t i = 0; i < sizeof(untold) / sizeof(untold[0]); i++) {
        assert_int_equal(cw_dedicate_parse(untold[i], &dedicated), CW_ERROR_ARGUMENT);
    }
}

int main(void)
{
    return TESTS_RUN(test_dedicated_cores_are_whole_and_apart, test_errors_have_a_count,
                     test_ranks_of_other_launchers_find_their_own, test_texts);
}
