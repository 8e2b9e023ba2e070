/* `causeway demo` moves a file intact, says so, and leaves nothing behind. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

enum { LINE_BYTES = 8192 };

/* Runs the demo with an own folder for its files, which must be empty afterwards; the first line it prints goes to
 * `line`. */
static int run_demo(const char *arguments, char line[LINE_BYTES])
{
    char folder[] = "/tmp/causeway-lab-demo-XXXXXX";
    char command[512];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof(command), "TMPDIR=%s '%s' demo %s", folder, getenv("CW_CAUSEWAY"), arguments);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    line[0] = 0;
    if (fgets(line, LINE_BYTES, output) == NULL) {
        line[0] = 0;
    }
    int status = pclose(output);
    assert_int_equal(rmdir(folder), 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_file_arrives_intact(void **state)
{
    char line[LINE_BYTES];
    assert_int_equal(run_demo("--size 4100000 --json", line), 0);
    json_t *result = json_loads(line, 0, NULL);
    assert_non_null(result);
    assert_true(json_is_true(json_object_get(result, "identical")));
    assert_int_equal(json_integer_value(json_object_get(result, "file_bytes")), 4100000);
    assert_int_equal(json_integer_value(json_object_get(result, "notifications")), 4);
    /* some 2,900 packets: the chance that none is lost is below 1e-12 */
    assert_true(json_integer_value(json_object_get(result, "lost_frames")) > 0);
    assert_true(json_integer_value(json_object_get(result, "retransmitted_packets")) >=
                json_integer_value(json_object_get(result, "lost_data_frames")) -
                    json_integer_value(json_object_get(result, "probes")));
    json_decref(result);
}

static void test_bad_input_is_refused(void **state)
{
    char line[LINE_BYTES];
    assert_int_equal(run_demo("--size none 2>&1", line), 2);
    assert_non_null(strstr(line, "--size none"));
    assert_int_equal(run_demo("--file /no/such/file 2>&1", line), 2);
    assert_non_null(strstr(line, "/no/such/file"));
}

int main(void)
{
    if (getenv("CW_CAUSEWAY") == NULL) {
        fprintf(stderr, "CW_CAUSEWAY must name the program\n");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_arrives_intact),
        cmocka_unit_test(test_bad_input_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
