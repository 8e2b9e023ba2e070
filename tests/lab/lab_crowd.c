/* `causeway bench crowd` and `causeway bench idle` with real processes: every put is verified, what they print is
 * complete, what is wrong is refused, and nobody is left behind. Their figures are not judged here: they depend on what
 * else runs. */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

enum { LINE_BYTES = 8192, IDLE_LINES = 7 };

/* Runs `causeway bench ARGUMENTS`; up to `count` lines that it prints go to `lines`, the rest stay empty. Its exit
 * code. */
static int run_bench(const char *arguments, char lines[][LINE_BYTES], uint32_t count)
{
    char command[512];
    char rest[LINE_BYTES];
    snprintf(command, sizeof(command), "'%s' bench %s", getenv("CW_CAUSEWAY"), arguments);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    for (uint32_t i = 0; i < count; i++) {
        if (fgets(lines[i], LINE_BYTES, output) == NULL) {
            lines[i][0] = 0;
        }
    }
    assert_null(fgets(rest, sizeof(rest), output));
    int status = pclose(output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static json_t *parse(const char *line)
{
    json_t *result = json_loads(line, 0, NULL);
    assert_non_null(result);
    return result;
}

static void assert_numbers(const json_t *object, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        if (!json_is_number(json_object_get(object, *keys))) {
            fail_msg("no number: %s", *keys);
        }
    }
}

static json_int_t count_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void test_crowd_is_verified(void **state)
{
    static const char *const keys[] = {
        "latency_p50_ns", "latency_p90_ns",     "latency_p99_ns", "latency_max_ns",      "rate_puts_per_s",
        "data_packets",   "spurious_packets",   "ratio_spurious", "ratio_retransmitted", "retransmitted_packets",
        "probes",         "raw_latency_p50_ns", "ratio_cores",    "ratio_cores_switch",  NULL,
    };
    char lines[1][LINE_BYTES];
    assert_int_equal(run_bench("crowd --processes 4 --duration 300ms --json", lines, 1), 0);
    json_t *result = parse(lines[0]);
    assert_numbers(result, keys);
    assert_int_equal(count_of(result, "processes"), 4);
    assert_int_equal(count_of(result, "size_bytes"), 8);
    assert_int_equal(count_of(result, "duration_ns"), 300000000);
    assert_true(count_of(result, "puts_verified") > 0);
    assert_true(count_of(result, "data_packets") > 0);
    json_decref(result);
}

/* Puts of several packets, whose sources must stay until they are complete; two rounds. */
static void test_crowd_of_large_puts(void **state)
{
    char lines[1][LINE_BYTES];
    assert_int_equal(
        run_bench("crowd --processes 3 --size 20000 --duration 100ms --rounds 2 --gap 50us --no-raw --json", lines, 1),
        0);
    json_t *result = parse(lines[0]);
    assert_int_equal(count_of(result, "rounds"), 2);
    assert_true(count_of(result, "puts_verified") > 0);
    assert_true(count_of(result, "data_packets") > count_of(result, "puts_verified"));
    assert_null(json_object_get(result, "raw_latency_p50_ns"));
    json_decref(result);
}

static void test_idle_tells_all(void **state)
{
    static const char *const keys[] = {"processes", "duration_ns", "cpu_ns", "ratio_core", NULL};
    static const char *const networks[IDLE_LINES] = {
        "memif-nap", "memif-nap", "memif-doorbell", "memif-doorbell", "switch", "switch", "switch",
    };
    char lines[IDLE_LINES][LINE_BYTES];
    assert_int_equal(run_bench("idle --duration 50ms --json", lines, IDLE_LINES), 0);
    for (uint32_t i = 0; i < IDLE_LINES; i++) {
        json_t *result = parse(lines[i]);
        assert_numbers(result, keys);
        assert_string_equal(json_string_value(json_object_get(result, "network")), networks[i]);
        json_decref(result);
    }
}

static void test_bad_input_is_refused(void **state)
{
    static const struct {
        const char *arguments;
        const char *named; /* in the error */
    } rows[] = {
        {"crowd --processes 1", "--processes 1"},
        {"crowd --processes 33", "--processes 33"},
        {"crowd --processes many", "--processes many"},
        {"crowd --size 7", "--size 7"},
        {"crowd --size 1M", "--size 1M"},
        {"crowd --gap 5", "--gap 5"},
        {"crowd --duration 0", "--duration 0"},
        {"crowd --people 8", "--people"},
        {"crowd 8", "8"},
        {"idle --duration 5", "--duration 5"},
        {"idle --processes 8", "--processes"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char arguments[256];
        char lines[1][LINE_BYTES];
        snprintf(arguments, sizeof(arguments), "%s 2>&1", rows[i].arguments);
        assert_int_equal(run_bench(arguments, lines, 1), 2);
        assert_non_null(strstr(lines[0], rows[i].named));
    }
}

/* Starts a crowd that would go on for minutes; returns its first process once the switch runs and members have been
 * forked. */
static pid_t start_long_crowd(void)
{
    pid_t process = fork();
    assert_true(process >= 0);
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(getenv("CW_CAUSEWAY"), "causeway", "bench", "crowd", "--processes", "4", "--duration", "5min", "--no-raw",
              NULL);
        _exit(127);
    }
    return process;
}

/* The processes that `parent` has now, up to `count`. */
static uint32_t children_of(pid_t parent, pid_t *children, uint32_t count)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
    FILE *file = fopen(path, "r");
    uint32_t found = 0;
    assert_non_null(file);
    while (found < count && fscanf(file, "%d", &children[found]) == 1) {
        found++;
    }
    fclose(file);
    return found;
}

/* Members and switch end with the process that started them: they become ours, and all of them are seen to end, with
 * nothing left. */
static void test_nobody_is_left_behind(void **state)
{
    enum { CHILDREN = 6 }; /* members, the switch, and who cleans up */
    pid_t children[CHILDREN];
    char folder[] = "/tmp/causeway-lab-crowd-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("TMPDIR", folder, 1), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t process = start_long_crowd();
    while (children_of(process, children, CHILDREN) < CHILDREN) {
        assert_int_equal(waitpid(process, NULL, WNOHANG), 0);
    }
    assert_int_equal(kill(process, SIGKILL), 0);
    uint32_t ended = 0;
    while (wait(NULL) > 0) {
        ended++;
    }
    assert_int_equal(errno, ECHILD);
    assert_int_equal(ended, 1 + CHILDREN);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    /* who is killed cannot tidy up; another process has */
    assert_int_equal(rmdir(folder), 0);
}

/* A member that dies ends the run, and the run says so. */
static void test_death_of_a_member_is_told(void **state)
{
    enum { CHILDREN = 6 }; /* members, the switch, and who cleans up */
    pid_t children[CHILDREN];
    int status;
    pid_t process = start_long_crowd();
    while (children_of(process, children, CHILDREN) < CHILDREN) {
        assert_int_equal(waitpid(process, NULL, WNOHANG), 0);
    }
    assert_int_equal(kill(children[CHILDREN - 1], SIGKILL), 0); /* the first one is the switch */
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 4);
}

int main(void)
{
    if (getenv("CW_CAUSEWAY") == NULL) {
        fprintf(stderr, "CW_CAUSEWAY must name the program\n");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crowd_is_verified),     cmocka_unit_test(test_crowd_of_large_puts),
        cmocka_unit_test(test_idle_tells_all),        cmocka_unit_test(test_bad_input_is_refused),
        cmocka_unit_test(test_nobody_is_left_behind), cmocka_unit_test(test_death_of_a_member_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
