/* `causeway plan` as a user calls it: what is built is checked, priced, run, drawn; what is wrong is refused in one
 * line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/algorithms/build.h"
#include "collectives/check/check.h"
#include "collectives/file/plan_file.h"
#include "control/settings/settings.h"
#include "dataplane/status.h"
#include "tests/schedules/mutate.h"
#include "tests/test.h"

enum { OUTPUT_BYTES = 1 << 16 };

static char folder[] = "/tmp/causeway-lab-plan-XXXXXX";

/* Runs `causeway plan ARGUMENTS` in the folder of this test; its exit code. Both streams go to `output`. */
static int run_plan(const char *arguments, char output[OUTPUT_BYTES])
{
    char command[1024];
    snprintf(command, sizeof(command), "cd %s && '%s' plan %s 2>&1", folder, getenv("CW_CAUSEWAY"), arguments);
    FILE *stream = popen(command, "r");
    assert_non_null(stream);
    size_t length = fread(output, 1, OUTPUT_BYTES - 1, stream);
    output[length] = '\0';
    while (fread(command, 1, sizeof(command), stream) > 0) {
    }
    int status = pclose(stream);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void assert_plan(const char *arguments, int code, const char *words)
{
    char output[OUTPUT_BYTES];
    int found = run_plan(arguments, output);
    if (found != code || strstr(output, words) == NULL) {
        fail_msg("plan %s: exit code %d, wanted %d with \"%s\"; it printed:\n%s", arguments, found, code, words,
                 output);
    }
}

/* One line on stderr that says what, and nothing else. */
static void assert_refused(const char *arguments, const char *words)
{
    char output[OUTPUT_BYTES];
    int code = run_plan(arguments, output);
    const char *end = strchr(output, '\n');
    if (code != 2 || strstr(output, words) == NULL || strncmp(output, "causeway plan", 13) != 0 || end == NULL ||
        end[1] != '\0') {
        fail_msg("plan %s: exit code %d, wanted 2 and one line with \"%s\"; it printed:\n%s", arguments, code, words,
                 output);
    }
}

static void test_the_whole_way(void **state)
{
    assert_plan("list", 0, "segmented-chain");
    assert_plan("build --collective bcast --algorithm segmented-chain --ranks 16 --root 3 --size 100003 -o x.plan", 0,
                "");
    assert_plan("check x.plan", 0, "passed");
    assert_plan("check x.plan --json", 0, "\"passed\":true");
    assert_plan("dump x.plan --rank 4", 0, "repeat 13 times");
    assert_plan("price x.plan --network gigabit", 0, "closed form");
    assert_plan("run x.plan --seeds 3", 0, "");
    assert_plan("run x.plan --over puts --loss 1%", 0, "");
    assert_plan("draw x.plan -o x.svg && tail -1 x.svg", 0, "</svg>");
    assert_plan("choose --collective allreduce --ranks 12 --size 1M -o best.plan", 0, " 1. ");
    assert_plan("check best.plan", 0, "passed");
    assert_plan("build --collective alltoall --algorithm greedy --ranks 3 --counts 0,5,6,7,0,1K,9,10,0 -o a.plan", 0,
                "");
    assert_plan("draw a.plan --matrix -o -", 0, "phase 1");
    assert_plan("build --collective bcast --algorithm clusters-heads --clusters 4,3 --senders 2 --ranks 7 --size 1000 "
                "-o c.plan",
                0, "");
    assert_plan("check c.plan", 0, "passed");
    assert_plan("networks --json", 0, "\"latency_ns\"");
}

static void test_files_that_are_no_plans(void **state)
{
    char command[512];
    assert_plan("build --collective gather --algorithm binomial --ranks 5 --size 100 -o x.plan", 0, "");
    snprintf(command, sizeof(command),
             "cd %s && head -c 100 x.plan > short.plan && cp x.plan altered.plan && "
             "printf 'X' | dd of=altered.plan bs=1 seek=60 conv=notrunc 2>/dev/null && echo text > text.plan",
             folder);
    assert_int_equal(system(command), 0);
    assert_refused("check short.plan", "cut off");
    assert_refused("check altered.plan", "altered");
    assert_refused("dump text.plan", "no plan file");
    assert_refused("price nowhere.plan", "nowhere.plan");
    assert_refused("draw . -o y.svg", "cannot be read");
    assert_refused("dump x.plan --rank 5", "rank");
}

static void file_write(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_true(fputs(text, stream) >= 0);
    assert_int_equal(fclose(stream), 0);
}

static void test_counts_are_read_strictly(void **state)
{
    static const struct {
        const char *counts;
        const char *words;
    } rows[] = {
        {"1,,3,4", "line 1, entry 2"},
        {"1,2,3,4,", "a count is missing"},
        {",1,2,3,4", "entry 1"},
        {"1,2,3,", "a count is missing"},
        {"", "0 of 4"},
        {"1,2,3,4,5", "more counts"},
        {"1,2,x,4", "entry 3, x"},
        {"1,-2,3,4", "entry 2, -2"},
        {"1,2;3,4,5", "entry 2, 2;3"},
        {"1,2,3,6000000000000000000000000000000000000000000", "entry 4, 6000"},
        {"1,2,3,00000000000000000000000000000007K", "entry 4, 0000"}, /* 31 characters of it would have been a size */
    };
    char arguments[256];
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(arguments, sizeof(arguments),
                 "build --collective scatter --algorithm flat --ranks 4 --counts '%s' -o x.plan", rows[i].counts);
        assert_refused(arguments, rows[i].words);
    }
    file_write("counts.txt", "1 2,\n3, 4\n");
    file_write("holes.txt", "1, 2,\n,3, 4\n");
    assert_plan("build --collective scatter --algorithm flat --ranks 4 --counts @counts.txt -o x.plan", 0, "");
    assert_plan("dump x.plan", 0, "counts: 1, 2, 3, 4\n");
    assert_refused("build --collective scatter --algorithm flat --ranks 4 --counts @holes.txt -o x.plan",
                   "line 2, entry 3");
    assert_refused("build --collective scatter --algorithm flat --ranks 2 --element 4 --counts 8,6 -o x.plan",
                   "entry 2, 6");
    assert_refused("build --collective bcast --algorithm flat --ranks 4 --clusters 2,2, --size 1 -o x.plan",
                   "--clusters");
    assert_refused("build --collective bcast --algorithm flat --ranks 4 --clusters ' 2,2' --size 1 -o x.plan",
                   "--clusters");
    assert_refused(
        "build --collective bcast --algorithm flat --ranks 3 --clusters 1,1,1 --via 0-2:1, --size 1 -o x.plan",
        "--via");
}

static void test_options_that_would_be_ignored(void **state)
{
    assert_refused("build --collective scatter --algorithm flat --ranks 2 --size 8 --counts 1,2 -o x.plan",
                   "both --size and --counts");
    assert_refused("choose --collective scatter --ranks 2 --size 8 --counts 1,2", "both --size and --counts");
    assert_refused("build --collective barrier --algorithm tree --ranks 2 --size 8 -o x.plan", "--size");
    assert_refused("build --collective bcast --algorithm flat --ranks 2 --counts 1,2 -o x.plan", "give one size");
    assert_refused("build --collective bcast --algorithm flat --ranks 2 --size 8 --segment 4 -o x.plan", "--segment");
    assert_refused("build --collective bcast --algorithm flat --ranks 2 --size 8 --degree 2 -o x.plan", "--degree");
    assert_refused("build --collective bcast --algorithm flat --ranks 2 --size 8 --concurrency 2 -o x.plan",
                   "--concurrency");
    assert_refused("build --collective bcast --algorithm flat --ranks 2 --size 8 --senders 1 -o x.plan", "--senders");
    assert_refused("build --collective bcast --algorithm flat --ranks 2 --size 8 --threshold 1 -o x.plan",
                   "--threshold");
    assert_plan("build --collective alltoall --algorithm direct --ranks 2 --size 8 -o x.plan", 0, "");
    assert_refused("run x.plan --loss 1%", "--over puts");
    assert_refused("run x.plan --over puts --eager-buffers=2", "--over memory");
    assert_refused("draw x.plan --matrix --network wan -o x.svg", "--matrix");
}

static void test_networks_with_unknown_keys(void **state)
{
    assert_plan("networks wan --json > wan.json", 0, "");
    assert_plan("build --collective bcast --algorithm flat --ranks 3 --size 8 -o x.plan", 0, "");
    assert_plan("price x.plan --network @wan.json", 0, "rank");
    file_write("top.json", "{\"lan\": {\"latency_ns\": 1, \"points\": [[0, 1, 1, 1]]}, \"port\": 2}");
    file_write("inner.json", "{\"lan\": {\"latency\": 1, \"points\": [[0, 1, 1, 1]]}}");
    assert_refused("price x.plan --network @top.json", "unknown key: port (known here: name lan wan ports");
    assert_refused("price x.plan --network @inner.json", "unknown key: lan.latency (known here: latency_ns points");
}

static void test_more_than_memory_holds(void **state)
{
    assert_refused("build --collective alltoall --algorithm pairwise --ranks 1000000 --size 8 -o x.plan",
                   "too much memory");
    assert_refused("build --collective allgather --algorithm ring --ranks 1000000 --size 8 -o x.plan",
                   "too much memory");
    assert_refused("build --collective alltoall --algorithm direct --ranks 1000000 --counts 1,2 -o x.plan",
                   "2 of 1000000000000");
    assert_plan("build --collective bcast --algorithm flat --ranks 2 --size 1G -o x.plan", 0, "");
    assert_plan("build --collective bcast --algorithm flat --ranks 30 --size 1G -o y.plan", 0, "");
    assert_plan("run y.plan", 3, "8 GiB");
    char output[OUTPUT_BYTES];
    assert_int_equal(run_plan("run y.plan --first-seed 9", output), 3);
    assert_null(strstr(output, "seed")); /* nothing was run with one */
}

/* What a failing run says is typed as it stands, and fails alike. */
static void test_failures_are_seen_again(void **state)
{
    static const char again[] = "again: causeway plan ";
    char output[OUTPUT_BYTES];
    char first[OUTPUT_BYTES];
    assert_plan("build --collective bcast --algorithm flat --ranks 3 --size 8 -o 'an odd name.plan'", 0, "");
    /* no time is enough for that: what fails is the run, not the plan */
    assert_int_equal(run_plan("run 'an odd name.plan' --over puts --first-seed 7 --seeds=3 --loss 99%", first), 1);
    char *line = strstr(first, again);
    assert_non_null(line);
    line[strcspn(line, "\n")] = '\0';
    assert_string_equal(line + strlen(again), "run --over puts --loss 99% 'an odd name.plan' --seeds 1 --first-seed 7");
    assert_int_equal(run_plan(line + strlen(again), output), 1);
    assert_memory_equal(first, output, strcspn(first, "\n"));
}

/* Tries each subcommand on a plan with a checksum that fits. What the checker refuses may be looked at, and nothing
 * else. */
static void mutant_try(const struct cw_plan *plan, const char *name)
{
    static const char *const others[] = {"price m.plan", "draw m.plan -o m.svg", "run m.plan --seeds 1",
                                         "run m.plan --over puts --seeds 1"};
    char output[OUTPUT_BYTES], path[64];
    struct cw_check_report report;
    void *bytes;
    size_t length;
    assert_int_equal(cw_check(plan, &report), CW_OK);
    if (report.fault == CW_CHECK_PASSED || report.fault == CW_CHECK_INVALID) {
        return;
    }
    assert_int_equal(cw_plan_encode(plan, &bytes, &length), CW_OK);
    struct cw_plan *read;
    if (cw_plan_decode(bytes, length, &read, output, sizeof(output)) != CW_OK) {
        free(bytes); /* there is no such file */
        return;
    }
    cw_plan_destroy(read);
    snprintf(path, sizeof(path), "%s/m.plan", folder);
    assert_true(cw_settings_write(path, bytes, length));
    free(bytes);
    print_message("%s: %s\n", name, report.text);
    assert_plan("check m.plan", 1, cw_check_fault_name(report.fault));
    assert_int_equal(run_plan("dump m.plan", output), 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_refused(others[i], "the plan is wrong: ");
    }
}

static void test_wrong_plans_with_right_checksums(void **state)
{
    static const struct {
        enum cw_collective collective;
        const char *algorithm;
    } rows[] = {{CW_BCAST, "segmented-chain"}, {CW_ALLREDUCE, "rabenseifner"}, {CW_ALLTOALL, "greedy-barriers"}};
    enum { SITES = 12, SITES_APART = 5 };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (uint32_t j = 0; j < MUTATION_COUNT * SITES; j += SITES_APART) {
            char error[200];
            struct cw_problem *problem;
            struct cw_plan *plan;
            struct cw_parameters parameters = {.segment_bytes = 40, .eager_max_bytes = 16};
            struct cw_problem_request request = {
                .collective = rows[i].collective, .ranks = 4, .element_bytes = 4, .count = 40};
            bool changed = false;
            assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_OK);
            assert_int_equal(cw_plan_build(problem, cw_algorithm_find(rows[i].collective, rows[i].algorithm),
                                           &parameters, &plan, error, sizeof(error)),
                             CW_OK);
            if (plan_mutate(plan, (enum mutation)(j / SITES), j % SITES, &changed) && changed) {
                mutant_try(plan, mutation_name((enum mutation)(j / SITES)));
            }
            cw_plan_destroy(plan);
        }
    }
}

static void test_what_is_printed(void **state)
{
    assert_plan("build --collective alltoall --algorithm direct --ranks 3 --counts 0,5,5,7,7,7,7,7,7 -o x.plan", 0, "");
    assert_plan("dump x.plan", 0, "counts of rank 0: 0, 2 x 5\ncounts of ranks 1 to 2: 3 x 7\n");
    assert_plan("choose --collective bcast --ranks 4 --size 1K", 0, "--eager 4096");
    assert_plan("choose --collective bcast --ranks 4 --size 1K --eager all", 0, "--eager all");
    assert_plan("list --collective alltoall", 0, "; of use only where --counts differ");
    assert_plan("draw --help", 0, "drawn as bands");
}

static void test_problems_that_cannot_be(void **state)
{
    assert_refused("build --collective bcast --algorithm flat --ranks 4 -o x.plan", "--size");
    assert_refused("build --collective bcast --algorithm none --ranks 4 --size 1 -o x.plan", "segmented-chain");
    assert_refused("build --collective none --algorithm flat --ranks 4 --size 1 -o x.plan", "no such collective");
    assert_refused("build --collective bcast --algorithm flat --ranks 4 --root 4 --size 1 -o x.plan", "root");
    assert_refused("build --collective scatter --algorithm flat --ranks 4 --counts 1,2,3 -o x.plan", "3 of 4");
    assert_refused("build --collective bcast --algorithm clusters-heads --ranks 4 --size 1 -o x.plan", "two clusters");
    assert_refused("build --collective bcast --algorithm flat --clusters 2,3 --ranks 4 --size 1 -o x.plan", "clusters");
    assert_refused("build --collective reduce --algorithm ring --ordered --ranks 4 --size 4 -o x.plan", "commutative");
    assert_refused("build --collective bcast --algorithm flat --ranks 4 --size 10 --element 4 -o x.plan", "--element");
    assert_refused("choose --collective bcast --ranks 4 --size 10 --network none", "gigabit");
    assert_refused("none", "unknown subcommand");
}

static int folder_make(void **state)
{
    return mkdtemp(folder) == NULL;
}

static int folder_remove(void **state)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    if (getenv("CW_CAUSEWAY") == NULL) {
        fprintf(stderr, "CW_CAUSEWAY must name the program\n");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_whole_way),
        cmocka_unit_test(test_files_that_are_no_plans),
        cmocka_unit_test(test_problems_that_cannot_be),
        cmocka_unit_test(test_counts_are_read_strictly),
        cmocka_unit_test(test_options_that_would_be_ignored),
        cmocka_unit_test(test_networks_with_unknown_keys),
        cmocka_unit_test(test_more_than_memory_holds),
        cmocka_unit_test(test_failures_are_seen_again),
        cmocka_unit_test(test_wrong_plans_with_right_checksums),
        cmocka_unit_test(test_what_is_printed),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
