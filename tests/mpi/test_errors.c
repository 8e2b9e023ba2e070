/* What becomes of a job when a rank errs, aborts or is killed: `test_errors CAUSEWAY WRONG`, the launcher and the
 * program errors/wrong.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../test.h"

static const char *launcher, *program;

static char output[65536];

/* Runs the program as so many ranks; the exit code of the job. What it says is in `output`. */
static int job_run(int ranks, const char *how)
{
    char command[4096];
    snprintf(command, sizeof(command), "'%s' run -n %d --timeout %d '%s' %s 2>&1", launcher, ranks, TEST_HANG_S,
             program, how);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t bytes = fread(output, 1, sizeof(output) - 1, pipe);
    output[bytes] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* How many lines say all of the words (up to NULL). */
static int lines_with(const char *const words[])
{
    int count = 0;
    for (const char *line = output; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char text[1024];
        snprintf(text, sizeof(text), "%.*s", (int)length, line);
        int all = 1;
        for (int i = 0; words[i] != NULL; i++) {
            all = all && strstr(text, words[i]) != NULL;
        }
        count += all;
        line += length + (line[length] == '\n');
    }
    return count;
}

struct way {
    const char *how;
    int code; /* -1: any but 0 */
    int lines;
    const char *words[6]; /* what so many lines say */
};

static void one_line_tells_what_was_wrong(void **state)
{
    static const struct way ways[] = {
        {"rank", -1, 1, {"rank 1:", "MPI_Send", "MPI_COMM_WORLD", "MPI_ERR_RANK"}},
        {"truncate", -1, 1, {"rank 1:", "MPI_Recv", "river", "MPI_ERR_TRUNCATE"}},
        {"abort", 7, 1, {"rank 1:", "MPI_Abort", "7"}},
        {"abort_self", 9, 1, {"rank 1:", "MPI_Abort", "9"}},
        {"files", -1, 1, {"rank 1:", "MPI_Send", "Too many open files", "ulimit -n"}},
        {"exit", 5, 1, {"rank 1 ", "5"}},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        int code = job_run(4, ways[i].how);
        if (ways[i].code >= 0 ? code != ways[i].code : code == 0 || code == 124) {
            fail_msg("%s: exit code %d\n%s", ways[i].how, code, output);
        }
        if (lines_with(ways[i].words) != ways[i].lines || strstr(output, "went on") != NULL) {
            fail_msg("%s: says\n%s", ways[i].how, output);
        }
    }
}

/* Also if nothing but a receive waits for it. */
static void a_rank_that_cannot_be_reached_is_told_at_once(void **state)
{
    static const struct way ways[] = {
        {"files_self", -1, 1, {"rank 1: rank 1 cannot be reached", "inbox", "Too many open files", "ulimit -n"}},
        {"space_self", -1, 1, {"rank 1: rank 1 cannot be reached", "inbox", "Cannot allocate memory", "ulimit -v"}},
        {"space", -1, 1, {"rank 1: rank ", "cannot be reached", "inbox", "Cannot allocate memory", "ulimit -v"}},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        int code = job_run(4, ways[i].how);
        if (code == 0 || code == 124 || lines_with(ways[i].words) < ways[i].lines ||
            strstr(output, "went on") != NULL) {
            fail_msg("%s: exit code %d, says\n%s", ways[i].how, code, output);
        }
    }
}

/* Each rank does it, and the job may end before all have said so. */
static void calls_outside_of_init_and_finalize_end_the_job(void **state)
{
    static const struct way ways[] = {
        {"before", -1, 1, {"MPI_Comm_rank", "before MPI_Init"}},
        {"after", -1, 1, {"MPI_Barrier", "after MPI_Finalize"}},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        int code = job_run(3, ways[i].how);
        if (code == 0 || code == 124 || lines_with(ways[i].words) < ways[i].lines) {
            fail_msg("%s: exit code %d, says\n%s", ways[i].how, code, output);
        }
    }
}

/* The others wait for the rank that is gone: the job ends nevertheless, and not by the launcher's bound (124). Whoever
 * notices first, the launcher or another rank, gives the exit code. */
static void a_killed_rank_ends_the_job(void **state)
{
    for (int number = 0; number < 20; number++) {
        char how[32];
        snprintf(how, sizeof(how), "killed %d", number * 7 + 1);
        int code = job_run(2 + number % 4, how);
        if (code == 0 || code == 124) {
            fail_msg("%s: exit code %d, says\n%s", how, code, output);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: test_errors CAUSEWAY WRONG\n");
        return 2;
    }
    launcher = argv[1];
    program = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_tells_what_was_wrong),
        cmocka_unit_test(a_rank_that_cannot_be_reached_is_told_at_once),
        cmocka_unit_test(calls_outside_of_init_and_finalize_end_the_job),
        cmocka_unit_test(a_killed_rank_ends_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
