/* Hosts and their slots from lists, files and batch systems' variables. */
#include "control/launch/allocation.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { ERROR_BYTES = 512 };

/* "a:4 b:1", as the allocation has them. */
static void assert_hosts(const struct cw_launch_allocation *allocation, const char *expected)
{
    char text[1024] = "";
    size_t length = 0;
    uint32_t slots = 0;
    for (uint32_t i = 0; i < allocation->count; i++) {
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s:%u", i > 0 ? " " : "",
                                   allocation->hosts[i].name, allocation->hosts[i].slots);
        assert_in_range(length, 1, sizeof(text) - 1);
        slots += allocation->hosts[i].slots;
    }
    assert_string_equal(text, expected);
    assert_int_equal(allocation->slots, slots);
}

static const struct row {
    const char *text;
    const char *tasks; /* of Slurm's rows */
    const char *hosts; /* NULL: refused */
    const char *error; /* a part of it */
} lists[] =
    {
        {"a:4,b:4", NULL, "a:4 b:4", NULL},
        {"a", NULL, "a:1", NULL},
        {"a:2,b,a", NULL, "a:3 b:1", NULL},
        {"node[01-03,7]:2", NULL, "node01:2 node02:2 node03:2 node7:2", NULL},
        {"r[1-2]n[8-9],x", NULL, "r1n8:1 r1n9:1 r2n8:1 r2n9:1 x:1", NULL},
        {"n[08-11]x.example.org", NULL, "n08x.example.org:1 n09x.example.org:1 n10x.example.org:1 n11x.example.org:1",
         NULL},
        {"me@a.example.org:3,10.0.0.1", NULL, "me@a.example.org:3 10.0.0.1:1", NULL},
        {"[fd77::1]:4,[fd77::2]", NULL, "fd77::1:4 fd77::2:1", NULL},
        {"", NULL, NULL, "a host is missing"},
        {"a,,b", NULL, NULL, "a host is missing"},
        {"a,", NULL, NULL, "a host is missing"},
        {"a:0", NULL, NULL, "'a:0'"},
        {"a:", NULL, NULL, "such as a:4"},
        {":4", NULL, NULL, "cannot be the name"},
        {"a:4x", NULL, NULL, "'a:4x'"},
        {"a:-1", NULL, NULL, "'a:-1'"},
        {"a:9999999999", NULL, NULL, "'a:9999999999'"},
        {"a:262144,b", NULL, NULL, "more than 262144 slots"},
        {"fd77::1:4", NULL, NULL, "in brackets"},
        {"[fd77::1", NULL, NULL, "in brackets"},
        {"[fd77:::1]", NULL, NULL, "cannot be the name"},
        {"[1-3]", NULL, NULL, "a name is missing"},
        {"-oProxyCommand=x", NULL, NULL, "cannot be the name"},
        {"me@-a", NULL, NULL, "cannot be the name"},
        {"@a", NULL, NULL, "cannot be the name"},
        {"me@you@a", NULL, NULL, "cannot be the name"},
        {"a b", NULL, NULL, "cannot be the name"},
        {"a;reboot", NULL, NULL, "cannot be the name"},
        {"n[3-1]", NULL, NULL, "no range"},
        {"n[1", NULL, NULL, "no range"},
        {"n[]", NULL, NULL, "no range"},
        {"n[1,]", NULL, NULL, "no range"},
        {"n[1-]", NULL, NULL, "no range"},
        {"n[1-2-3]", NULL, NULL, "no range"},
        {"n[0-1][0-1][0-1][0-1][0-1]", NULL, NULL, "no range"},
        {"n[0-999999999]", NULL, NULL, "more than 4096 hosts"},
        {"n[0-99][0-99]", NULL, NULL, "more than 4096 hosts"},
},
  files[] =
      {
          {"a\nb\n", NULL, "a:1 b:1", NULL},
          {"# the cluster\n\n  a:4  # first\r\nb slots=2 max_slots=8\nc\tmax-slots=3\n", NULL, "a:4 b:2 c:1", NULL},
          {"n1\nn1\nn2\nn1\n", NULL, "n1:3 n2:1", NULL},
          {"node[1-2] slots=3", NULL, "node1:3 node2:3", NULL},
          {"[fd77::1]:2\n", NULL, "fd77::1:2", NULL},
          {"", NULL, NULL, "file: there is no host in it"},
          {"# nobody\n", NULL, NULL, "file: there is no host in it"},
          {"a\nb slots=x\n", NULL, NULL, "file:2: 'slots=x'"},
          {"a slots=\n", NULL, NULL, "file:1: 'slots='"},
          {"a slots=0\n", NULL, NULL, "a number from 1 on"},
          {"a:4 slots=4\n", NULL, NULL, "the line says it already"},
          {"a slots=4 slots=4\n", NULL, NULL, "the line says it already"},
          {"a slots=4 max_slots=2\n", NULL, NULL, "max_slots=2 is less"},
          {"a\n\nb 4\n", NULL, NULL, "file:3: '4': behind a host"},
          {"a ifname=eth0\n", NULL, NULL, "slots=N and max_slots=N are known"},
          {"a,b\n", NULL, NULL, "a line has one host"},
          {"\xff\xfe\n", NULL, NULL, "file:1: "},
},
  slurm[] = {
      {"node[01-03,7]", "2(x3),1", "node01:2 node02:2 node03:2 node7:1", NULL},
      {"a,b,c", "1,2,3", "a:1 b:2 c:3", NULL},
      {"a", "16", "a:16", NULL},
      {"a[1-2]", NULL, "a1:1 a2:1", NULL},
      {"a[1-3]", "2(x2)", NULL, "the tasks of node 3"},
      {"a[1-2]", "2(x3)", NULL, "fewer nodes"},
      {"a", "1,1", NULL, "fewer nodes"},
      {"a", "", NULL, "the tasks of node 1"},
      {"a", "0", NULL, "the tasks of node 1"},
      {"a", "2(x0)", NULL, "the tasks of node 1"},
      {"a", "2(x", NULL, "the tasks of node 1"},
      {"a", "2(x1", NULL, "the tasks of node 1"},
      {"a", "2,", NULL, "the tasks of node 1"},
      {"a", "2;", NULL, "the tasks of node 1"},
      {"a:2", "2", NULL, "Slurm does not write"},
};

enum kind { LIST, LINES, SLURM };

static void row_run(const struct row *row, enum kind kind)
{
    char error[ERROR_BYTES] = "";
    struct cw_launch_allocation allocation = {0};
    char *text = malloc(strlen(row->text) + 1); /* so that reading beyond the end is seen */
    assert_non_null(text);
    memcpy(text, row->text, strlen(row->text) + (kind != LINES));
    int status = kind == LIST ? cw_launch_hosts_list(&allocation, "--hosts", text, error, sizeof(error))
                 : kind == LINES
                     ? cw_launch_hosts_lines(&allocation, "file", text, strlen(row->text), error, sizeof(error))
                     : cw_launch_hosts_slurm(&allocation, text, row->tasks, error, sizeof(error));
    free(text);
    if (row->hosts != NULL) {
        assert_string_equal(error, "");
        assert_int_equal(status, CW_OK);
        assert_hosts(&allocation, row->hosts);
    } else {
        assert_true(status == CW_ERROR_ARGUMENT || status == CW_ERROR_LIMIT);
        assert_true_msg(strstr(error, row->error) != NULL, "'%s' was refused by '%s'", row->text, error);
        assert_true(allocation.hosts == NULL && allocation.count == 0 && allocation.slots == 0);
    }
    cw_launch_allocation_dispose(&allocation);
}

static void test_lists(void **state)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        row_run(&lists[i], LIST);
    }
}

static void test_files(void **state)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        row_run(&files[i], LINES);
    }
}

static void test_slurm(void **state)
{
    for (size_t i = 0; i < sizeof(slurm) / sizeof(slurm[0]); i++) {
        row_run(&slurm[i], SLURM);
    }
}

/* Hosts of several texts are combined; a rejected text changes nothing. */
static void test_together(void **state)
{
    char error[ERROR_BYTES] = "";
    struct cw_launch_allocation allocation = {0};
    assert_int_equal(cw_launch_hosts_list(&allocation, "--hosts", "a:2,b", error, sizeof(error)), CW_OK);
    assert_int_equal(cw_launch_hosts_list(&allocation, "--hosts", "c,a,d:x", error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_hosts(&allocation, "a:2 b:1");
    assert_int_equal(cw_launch_hosts_lines(&allocation, "file", "b 3\n", 4, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_hosts(&allocation, "a:2 b:1");
    assert_int_equal(cw_launch_hosts_list(&allocation, "--hosts", "c,a", error, sizeof(error)), CW_OK);
    assert_hosts(&allocation, "a:3 b:1 c:1");
    cw_launch_allocation_dispose(&allocation);
}

static void test_environment(void **state)
{
    char path[] = "/tmp/test_allocation.XXXXXX";
    char error[ERROR_BYTES] = "";
    const char *source = "?";
    struct cw_launch_allocation allocation = {0};
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("SLURM_TASKS_PER_NODE");
    unsetenv("SLURM_JOB_CPUS_PER_NODE");
    unsetenv("PBS_NODEFILE");
    assert_int_equal(cw_launch_hosts_environment(&allocation, &source, error, sizeof(error)), CW_OK);
    assert_true(source == NULL && allocation.count == 0);
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, "n1\nn1\nn2\n", 9), 9);
    close(file);
    setenv("PBS_NODEFILE", path, 1);
    assert_int_equal(cw_launch_hosts_environment(&allocation, &source, error, sizeof(error)), CW_OK);
    assert_string_equal(source, "PBS");
    assert_hosts(&allocation, "n1:2 n2:1");
    cw_launch_allocation_dispose(&allocation);
    unlink(path);
    assert_int_equal(cw_launch_hosts_environment(&allocation, &source, error, sizeof(error)), CW_ERROR_SYSTEM);
    assert_non_null(strstr(error, path));
    setenv("PBS_NODEFILE", "/", 1);
    assert_int_equal(cw_launch_hosts_environment(&allocation, &source, error, sizeof(error)), CW_ERROR_SYSTEM);
    setenv("SLURM_JOB_NODELIST", "h[0-1]", 1);
    setenv("SLURM_JOB_CPUS_PER_NODE", "4(x2)", 1);
    assert_int_equal(cw_launch_hosts_environment(&allocation, &source, error, sizeof(error)), CW_OK);
    assert_string_equal(source, "Slurm");
    assert_hosts(&allocation, "h0:4 h1:4");
    cw_launch_allocation_dispose(&allocation);
    setenv("SLURM_TASKS_PER_NODE", "2,1", 1);
    assert_int_equal(cw_launch_hosts_environment(&allocation, &source, error, sizeof(error)), CW_OK);
    assert_hosts(&allocation, "h0:2 h1:1");
    cw_launch_allocation_dispose(&allocation);
}

int main(void)
{
    return TESTS_RUN(test_lists, test_files, test_slurm, test_together, test_environment);
}
