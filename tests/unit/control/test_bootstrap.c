/* Bootstrap: alone, and over PMI-1 against a launcher that answers what a table says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/bootstrap/bootstrap.h"
#include "dataplane/status.h"
#include "tests/test.h"

#define GREETING                                                 \
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n" \
    "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=100\n"   \
    "cmd=my_kvsname kvsname=kvs_1\n"                             \
    "cmd=appnum appnum=2\n"                                      \
    "cmd=universe_size size=16\n"

static int launcher = -1; /* our end */

static void environment_clear(void)
{
    static const char *const names[] = {"PMI_FD",
                                        "PMI_PORT",
                                        "PMI_ID",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "PMIX_RANK",
                                        "PMIX_NAMESPACE",
                                        "PMI_JOBID",
                                        "SLURM_MPI_TYPE",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "SLURM_NTASKS",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "PALS_RANKID"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsetenv(names[i]);
    }
    if (launcher >= 0) {
        close(launcher);
        launcher = -1;
    }
}

static int set_up(void **state)
{
    environment_clear();
    return 0;
}

/* A launcher whose answers are all there before they are asked for, and which ends then. */
static void launcher_start(const char *answers)
{
    int ends[2];
    char text[16];
    environment_clear();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(write(ends[0], answers, strlen(answers)), strlen(answers));
    shutdown(ends[0], SHUT_WR);
    launcher = ends[0];
    snprintf(text, sizeof(text), "%d", ends[1]);
    setenv("PMI_FD", text, 1);
    setenv("PMI_RANK", "3", 1);
    setenv("PMI_SIZE", "8", 1);
}

static void test_alone(void **state)
{
    struct cw_bootstrap *bootstrap = NULL;
    char error[256] = "";
    char value[CW_BOOTSTRAP_VALUE_MAX + 1];
    char longest[CW_BOOTSTRAP_VALUE_MAX + 2];
    memset(longest, 'v', sizeof(longest));
    assert_int_equal(cw_bootstrap_open(&bootstrap, error, sizeof(error)), CW_OK);
    struct cw_bootstrap_info info = cw_bootstrap_info(bootstrap);
    assert_int_equal(info.rank, 0);
    assert_int_equal(info.size, 1);
    assert_string_equal(info.launcher, "none");
    assert_int_equal(cw_bootstrap_get(bootstrap, "a", value, sizeof(value)), CW_ERROR_NOT_FOUND);
    assert_int_equal(cw_bootstrap_put(bootstrap, "a", "b"), CW_OK);
    assert_int_equal(cw_bootstrap_put(bootstrap, "a", "cde"), CW_OK);
    assert_int_equal(cw_bootstrap_fence(bootstrap), CW_OK);
    assert_int_equal(cw_bootstrap_get(bootstrap, "a", value, 3), CW_ERROR_LIMIT);
    assert_int_equal(cw_bootstrap_get(bootstrap, "a", value, 4), CW_OK);
    assert_string_equal(value, "cde");
    longest[CW_BOOTSTRAP_VALUE_MAX + 1] = 0;
    assert_int_equal(cw_bootstrap_put(bootstrap, "a", longest), CW_ERROR_ARGUMENT);
    longest[CW_BOOTSTRAP_VALUE_MAX] = 0;
    assert_int_equal(cw_bootstrap_put(bootstrap, "a", longest), CW_OK);
    assert_int_equal(cw_bootstrap_get(bootstrap, "a", value, sizeof(value)), CW_OK);
    assert_string_equal(value, longest);
    static const char *const bad[] = {"", "a b", "a=b", "a;b", "a\n", "\x7f"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(cw_bootstrap_put(bootstrap, bad[i], "b"), CW_ERROR_ARGUMENT);
        assert_int_equal(cw_bootstrap_put(bootstrap, "b", bad[i]), CW_ERROR_ARGUMENT);
    }
    cw_bootstrap_close(bootstrap);
    cw_bootstrap_close(NULL);
}

/* NAME=VALUE */
static void variable_set(const char *text)
{
    char name[64];
    const char *value = strchr(text, '=');
    snprintf(name, sizeof(name), "%.*s", (int)(value - text), text);
    setenv(name, value + 1, 1);
}

/* N processes must not become N jobs of one; a program of one process runs in a batch script. */
static void unknown_launchers_are_rejected(void **state)
{
    static const struct {
        const char *variables[2]; /* NAME=VALUE */
        const char *remedy;       /* NULL: it is alone */
    } rows[] = {
        {{"OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=0"}, "causeway run -n 4"},
        {{"OMPI_COMM_WORLD_SIZE=1", "PMIX_RANK=0"}, NULL},
        {{"PMIX_RANK=1"}, "causeway run"},
        {{"SLURM_NTASKS=4", "SLURM_STEP_NUM_TASKS=4"}, "srun --mpi=pmi2"},
        {{"SLURM_NTASKS=4", "SLURM_PROCID=0"}, NULL},
        {{"SLURM_NTASKS=4", "SLURM_STEP_NUM_TASKS=1"}, NULL},
        {{"PMI_RANK=0", "PMI_SIZE=2"}, "mpiexec.hydra -n 2"},
        {{"PMI_RANK=0", "PMI_SIZE=1"}, NULL},
        {{"PALS_RANKID=3"}, "PALS_RANKID=3"},
        {{"PMIX_RANK=x", "OMPI_COMM_WORLD_SIZE="}, NULL},
        {{"SLURM_STEP_NUM_TASKS=3", "SLURM_MPI_TYPE=pmi2"}, "srun --mpi=pmi2"}, /* without PMI_FD */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_bootstrap *bootstrap = NULL;
        char error[256] = "";
        environment_clear();
        for (size_t j = 0; j < 2 && rows[i].variables[j] != NULL; j++) {
            variable_set(rows[i].variables[j]);
        }
        int status = cw_bootstrap_open(&bootstrap, error, sizeof(error));
        assert_int_equal(status, rows[i].remedy != NULL ? CW_ERROR_UNSUPPORTED : CW_OK);
        if (rows[i].remedy != NULL && strstr(error, rows[i].remedy) == NULL) {
            fail_msg("'%s' is not in '%s'", rows[i].remedy, error);
        }
        cw_bootstrap_close(bootstrap);
    }
    environment_clear();
}

static void test_pmi1(void **state)
{
    struct cw_bootstrap *bootstrap = NULL;
    char error[256] = "";
    char value[64];
    launcher_start(GREETING "cmd=put_result rc=0 msg=success\n"
                            "cmd=put_result rc=-1 msg=full\n"
                            "cmd=barrier_out\n"
                            "cmd=get_result rc=0 msg=success value=x=y\n"
                            "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"
                            "cmd=get_result rc=0 value=abcd\n");
    assert_int_equal(cw_bootstrap_open(&bootstrap, error, sizeof(error)), CW_OK);
    struct cw_bootstrap_info info = cw_bootstrap_info(bootstrap);
    assert_int_equal(info.rank, 3);
    assert_int_equal(info.size, 8);
    assert_int_equal(info.universe_size, 16);
    assert_int_equal(info.app_number, 2);
    assert_int_equal(info.value_max, 99);
    assert_string_equal(info.job, "kvs_1");
    char longer[101];
    memset(longer, 'v', 100);
    longer[100] = 0;
    assert_int_equal(cw_bootstrap_put(bootstrap, "a", longer), CW_ERROR_ARGUMENT);
    assert_non_null(strstr(cw_bootstrap_failure(bootstrap), "99"));
    assert_int_equal(cw_bootstrap_put(bootstrap, "a", "b"), CW_OK);
    assert_int_equal(cw_bootstrap_put(bootstrap, "a", "b"), CW_ERROR_SYSTEM);
    assert_int_equal(cw_bootstrap_fence(bootstrap), CW_OK);
    assert_int_equal(cw_bootstrap_get(bootstrap, "a", value, sizeof(value)), CW_OK);
    assert_string_equal(value, "x=y");
    assert_int_equal(cw_bootstrap_get(bootstrap, "a", value, sizeof(value)), CW_ERROR_NOT_FOUND);
    assert_int_equal(cw_bootstrap_get(bootstrap, "a", value, 4), CW_ERROR_LIMIT);
    /* it has ended */
    assert_int_equal(cw_bootstrap_fence(bootstrap), CW_ERROR_CLOSED);
    assert_int_equal(cw_bootstrap_put(bootstrap, "a", "b"), CW_ERROR_CLOSED);
    cw_bootstrap_close(bootstrap);
}

/* The results of get_each: each value in its place. */
struct got {
    char values[8][8];
    uint32_t refused; /* this one is not taken */
};

static void each_key(void *context, uint32_t index, char key[CW_BOOTSTRAP_KEY_MAX + 1])
{
    snprintf(key, CW_BOOTSTRAP_KEY_MAX + 1, "k%u", index);
}

static int each_receive(void *context, uint32_t index, const char *value)
{
    struct got *got = context;
    snprintf(got->values[index], sizeof(got->values[index]), "%s", value);
    return index == got->refused ? CW_ERROR_LIMIT : CW_OK;
}

/* Several requests at a time only if the launcher supports it; after any failure of one of them, the answers of the
 * next calls are their own. */
static void test_pmi1_get_each(void **state)
{
    static const char batched[] = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
                                  "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=100 causeway_batch=2\n"
                                  "cmd=my_kvsname kvsname=kvs_1\ncmd=appnum appnum=2\ncmd=universe_size size=16\n";
    static const char answers[] = "cmd=get_result rc=0 value=a\ncmd=get_result rc=0 value=b\n"
                                  "cmd=get_result rc=0 value=c\n"
                                  "cmd=get_result rc=0 value=d\ncmd=get_result rc=0 value=e\n"
                                  "cmd=get_result rc=0 value=f\n";
    static const char request[] = "cmd=get kvsname=kvs_1 key=k0\n";
    for (int batch = 1; batch <= 2; batch++) {
        struct cw_bootstrap *bootstrap = NULL;
        struct got got = {.refused = UINT32_MAX};
        const struct cw_bootstrap_reader reader = {.context = &got, .key = each_key, .receive = each_receive};
        char error[256] = "", text[1024], value[8];
        snprintf(text, sizeof(text), "%s%s", batch == 1 ? GREETING : batched, answers);
        launcher_start(text);
        assert_int_equal(cw_bootstrap_open(&bootstrap, error, sizeof(error)), CW_OK);
        ssize_t greeted = recv(launcher, text, sizeof(text), MSG_DONTWAIT);
        assert_true(greeted > 0);
        assert_int_equal(cw_bootstrap_get_each(bootstrap, 3, &reader), CW_OK);
        assert_string_equal(got.values[0], "a");
        assert_string_equal(got.values[2], "c");
        assert_int_equal(recv(launcher, text, sizeof(text), MSG_DONTWAIT), 3 * strlen(request));
        got.refused = 0;
        assert_int_equal(cw_bootstrap_get_each(bootstrap, 2, &reader), CW_ERROR_LIMIT);
        assert_int_equal(cw_bootstrap_get(bootstrap, "a", value, sizeof(value)), CW_OK);
        assert_string_equal(value, batch == 1 ? "e" : "f"); /* without batches, the second was not requested */
        struct cw_bootstrap_traffic traffic = cw_bootstrap_traffic(bootstrap);
        assert_int_equal(traffic.requests, 6);
        assert_true(traffic.bytes > sizeof(answers));
        cw_bootstrap_close(bootstrap);
    }
}

/* How many processes there are, by the environment alone: before the launcher is asked, and after it is gone. */
static void test_size_advertised(void **state)
{
    static const struct {
        const char *variables[4]; /* NAME=VALUE */
        uint32_t size;
    } rows[] = {
        {{NULL}, 1},
        {{"PMI_FD=0", "PMI_SIZE=8"}, 8},
        {{"PMI_FD=0"}, 0},
        {{"PMI_FD=0", "PMI_SIZE=x"}, 0},
        {{"PMI_PORT=a:1"}, 0},
        {{"SLURM_STEP_NUM_TASKS=4"}, 1},
        {{"PMIX_NAMESPACE=slurm.pmix.1.0", "PMIX_RANK=0", "SLURM_STEP_NUM_TASKS=4", "OMPI_COMM_WORLD_SIZE=2"}, 4},
        {{"PMIX_NAMESPACE=123", "PMIX_RANK=0", "SLURM_STEP_NUM_TASKS=1", "OMPI_COMM_WORLD_SIZE=2"}, 2},
        {{"PMIX_NAMESPACE=123", "PMIX_RANK=0"}, 0},
        {{"PMIX_NAMESPACE=123", "PMIX_RANK=0", "PMI_FD=0", "PMI_SIZE=3"}, 3},
        {{"PMIX_NAMESPACE=123", "OMPI_COMM_WORLD_SIZE=5", "PMIX_RANK=0", "PMI_FD=999"}, 5},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        environment_clear();
        for (size_t j = 0; j < 4 && rows[i].variables[j] != NULL; j++) {
            variable_set(rows[i].variables[j]);
        }
        assert_int_equal(cw_bootstrap_size_advertised(), rows[i].size);
    }
    environment_clear();
}

/* A PMI_FD that is not open is not that of a PMIx launcher's processes. */
static void test_stale_variables(void **state)
{
    struct cw_bootstrap *bootstrap = NULL;
    char error[512] = "";
    setenv("PMI_FD", "999", 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "1", 1);
    setenv("PMIX_NAMESPACE", "nobody", 1);
    setenv("PMIX_RANK", "0", 1);
    assert_int_not_equal(cw_bootstrap_open(&bootstrap, error, sizeof(error)), CW_OK);
    assert_non_null(strstr(error, "PMIx"));
    environment_clear();
}

static void test_bad_launchers(void **state)
{
    static const struct {
        const char *answers;
        int status;
    } rows[] = {
        {"", CW_ERROR_CLOSED},
        {"cmd=response_to_init pmi_version=1", CW_ERROR_CLOSED},
        {"cmd=response_to_init pmi_version=2 rc=0\n", CW_ERROR_UNSUPPORTED},
        {"cmd=response_to_init pmi_version=1 rc=-1\n", CW_ERROR_UNSUPPORTED},
        {"hello\n", CW_ERROR_SYSTEM},
        {"\n", CW_ERROR_SYSTEM},
        {"cmd=response_to_init pmi_version=1 rc=0\ncmd=maxes\n", CW_ERROR_UNSUPPORTED},
        {"cmd=response_to_init pmi_version=1 rc=0\ncmd=maxes keylen_max=-1 vallen_max=9\n", CW_ERROR_UNSUPPORTED},
        {"cmd=response_to_init pmi_version=1 rc=0\ncmd=maxes keylen_max=64 vallen_max=64\ncmd=my_kvsname\n",
         CW_ERROR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_bootstrap *bootstrap = NULL;
        char error[256] = "";
        launcher_start(rows[i].answers);
        assert_int_equal(cw_bootstrap_open(&bootstrap, error, sizeof(error)), rows[i].status);
        assert_null(bootstrap);
        assert_true(strlen(error) > 0);
    }
    char endless[5001];
    memset(endless, 'a', sizeof(endless) - 1);
    endless[5000] = 0;
    struct cw_bootstrap *bootstrap = NULL;
    launcher_start(endless);
    assert_int_equal(cw_bootstrap_open(&bootstrap, NULL, 0), CW_ERROR_SYSTEM);
}

static void test_bad_environments(void **state)
{
    static const struct {
        const char *descriptor;
        const char *rank;
        const char *size;
        const char *port;
        int status;
    } rows[] = {
        {"x", "0", "1", NULL, CW_ERROR_UNSUPPORTED},    {"-1", "0", "1", NULL, CW_ERROR_UNSUPPORTED},
        {"5", NULL, "1", NULL, CW_ERROR_UNSUPPORTED},   {"5", "0", NULL, NULL, CW_ERROR_UNSUPPORTED},
        {"5", "1", "1", NULL, CW_ERROR_UNSUPPORTED},    {"5", "0", "0", NULL, CW_ERROR_UNSUPPORTED},
        {"999", "0", "1", NULL, CW_ERROR_SYSTEM},       {NULL, NULL, NULL, "nowhere", CW_ERROR_UNSUPPORTED},
        {NULL, NULL, NULL, ":1", CW_ERROR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_bootstrap *bootstrap = NULL;
        const char *const names[] = {"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_PORT"};
        const char *const values[] = {rows[i].descriptor, rows[i].rank, rows[i].size, rows[i].port};
        char error[256] = "";
        environment_clear();
        setenv("PMI_ID", "0", 1);
        for (size_t j = 0; j < 4; j++) {
            if (values[j] != NULL) {
                setenv(names[j], values[j], 1);
            }
        }
        assert_int_equal(cw_bootstrap_open(&bootstrap, error, sizeof(error)), rows[i].status);
        assert_true(strlen(error) > 0);
    }
    environment_clear();
}

int main(void)
{
    return TESTS_RUN_EACH(set_up, NULL, test_alone, unknown_launchers_are_rejected, test_pmi1, test_pmi1_get_each,
                          test_bad_launchers, test_size_advertised, test_stale_variables, test_bad_environments);
}
