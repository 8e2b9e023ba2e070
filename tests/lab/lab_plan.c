/* `causeway plan` as a user calls it: what is built is checked, priced, run, drawn; what is wrong is refused in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    (void)state;
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
    (void)state;
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

static void test_problems_that_cannot_be(void **state)
{
    (void)state;
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
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int folder_remove(void **state)
{
    (void)state;
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
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
