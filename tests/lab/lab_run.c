/* `causeway run` with real processes: output, input, exit codes, and that nothing is left after the death of any
 * process; and our PMI-1 client under Hydra.
 *
 * The ranks are this very program: `lab_run member WHAT`. It adopts processes that lose their parent, so that a process
 * which stays behind is a child that it finds. Nothing is timed: a hang runs into the time limit of the test. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/bootstrap/bootstrap.h"
#include "dataplane/base/random.h"
#include "tests/test.h"

enum {
    OUTPUT_BYTES = 1 << 20,
    ARGUMENTS_MAX = 32,
    KILL_ROUNDS = 20,
    KILL_RANKS = 4,
    BIG_BYTES = 300000,
};

static char self[256];

/* ---- the ranks ---- */

static struct cw_bootstrap *member_open(void)
{
    struct cw_bootstrap *bootstrap;
    char error[256];
    if (cw_bootstrap_open(&bootstrap, error, sizeof(error)) != 0) {
        fprintf(stderr, "%s\n", error);
        _exit(99);
    }
    return bootstrap;
}

/* Everyone learns from everyone, twice. */
static int member_exchange(struct cw_bootstrap *bootstrap)
{
    struct cw_bootstrap_info info = cw_bootstrap_info(bootstrap);
    for (int round = 0; round < 2; round++) {
        char key[32];
        char value[CW_BOOTSTRAP_VALUE_MAX + 1];
        char wanted[CW_BOOTSTRAP_VALUE_MAX + 1];
        snprintf(key, sizeof(key), "round-%d-%u", round, info.rank);
        snprintf(value, sizeof(value), "%0*u", (int)info.value_max, info.rank);
        if (cw_bootstrap_put(bootstrap, key, value) != 0 || cw_bootstrap_fence(bootstrap) != 0) {
            return 2;
        }
        for (uint32_t rank = 0; rank < info.size; rank++) {
            snprintf(key, sizeof(key), "round-%d-%u", round, rank);
            snprintf(wanted, sizeof(wanted), "%0*u", (int)info.value_max, rank);
            if (cw_bootstrap_get(bootstrap, key, value, sizeof(value)) != 0 || strcmp(value, wanted) != 0) {
                return 3;
            }
        }
    }
    printf("rank %u of %u: %s\n", info.rank, info.size, info.launcher);
    return 0;
}

/* A descendant that has left the group and does not listen. */
static void daemon_start(void)
{
    if (fork() == 0) {
        setsid();
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        for (;;) {
            pause();
        }
    }
}

static _Noreturn void wait_for_the_end(void)
{
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        pause();
    }
}

static int member_main(const char *what, const char *argument)
{
    uint32_t number = argument != NULL ? (uint32_t)strtoul(argument, NULL, 10) : 0;
    if (strcmp(what, "big") == 0) {
        for (int i = 0; i < BIG_BYTES; i++) {
            putchar(i);
        }
        return 0;
    }
    if (strcmp(what, "deaf") == 0) {
        signal(SIGTERM, SIG_IGN);
        wait_for_the_end();
    }
    struct cw_bootstrap *bootstrap = member_open();
    uint32_t rank = cw_bootstrap_info(bootstrap).rank;
    int code = 0;
    if (strcmp(what, "exchange") == 0) {
        code = member_exchange(bootstrap);
    } else if (strcmp(what, "wait") == 0) {
        wait_for_the_end();
    } else if (strcmp(what, "daemon") == 0) {
        daemon_start();
        wait_for_the_end();
    } else if (strcmp(what, "daemon-and-end") == 0) {
        daemon_start();
    } else if (strcmp(what, "abort") == 0 && rank == 1) {
        cw_bootstrap_abort(bootstrap, (int)number, "as asked for");
    } else if (strcmp(what, "leave") == 0 && rank == number) {
        cw_bootstrap_drop(bootstrap); /* without a goodbye */
        return 0;
    } else if (strcmp(what, "crash") == 0 && rank == number) {
        signal(SIGSEGV, SIG_DFL); /* the sanitizer has its own way */
        raise(SIGSEGV);
    } else if (strcmp(what, "nonsense") == 0 && rank == number) {
        dprintf((int)strtol(getenv("PMI_FD"), NULL, 10), "GET / HTTP/1.1\r\n");
    }
    code = code == 0 ? cw_bootstrap_fence(bootstrap) : code;
    cw_bootstrap_close(bootstrap);
    return code == 0 ? 0 : 77;
}

/* ---- running something ---- */

struct run {
    pid_t process;
    int output;
    int error;
    char *text[2]; /* output on stdout and stderr */
    size_t length[2];
};

static struct run started;

/* Starts a program, its output in pipes. `input`: -1 for /dev/null. */
static void start_program(const char *program, const char *const *arguments, int input)
{
    int output[2];
    int error[2];
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    assert_int_equal(pipe2(error, O_CLOEXEC), 0);
    started.process = fork();
    assert_true(started.process >= 0);
    if (started.process == 0) {
        static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
            signal(numbers[i], SIG_DFL); /* the caller of the tests may ignore some, as nohup does */
        }
        setpgid(0, 0);
        dup2(input >= 0 ? input : open("/dev/null", O_RDONLY), STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        dup2(error[1], STDERR_FILENO);
        execvp(program, (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    setpgid(started.process, started.process);
    close(output[1]);
    close(error[1]);
    started.output = output[0];
    started.error = error[0];
}

/* `causeway run` with these words; "MEMBER" is this program and its first argument. */
static void start(const char *words, int input)
{
    static char copy[512];
    const char *arguments[ARGUMENTS_MAX] = {"causeway", "run"};
    size_t count = 2;
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        assert_true(count + 3 < ARGUMENTS_MAX);
        arguments[count++] = strcmp(word, "MEMBER") == 0 ? self : word;
        if (strcmp(word, "MEMBER") == 0) {
            arguments[count++] = "member";
        }
    }
    arguments[count] = NULL;
    start_program(getenv("CW_CAUSEWAY"), arguments, input);
}

/* Reads from one of the two pipes. False: it has ended. */
static bool read_some(int index)
{
    int *descriptor = index == 0 ? &started.output : &started.error;
    ssize_t got = read(*descriptor, started.text[index] + started.length[index],
                       (size_t)OUTPUT_BYTES - 1 - started.length[index]);
    assert_true(got >= 0);
    started.length[index] += (size_t)got;
    started.text[index][started.length[index]] = 0;
    if (got == 0) {
        close(*descriptor);
        *descriptor = -1;
    }
    return got > 0;
}

/* Until `count` ranks have said that they are ready. */
static void await_ready(size_t count)
{
    while (started.length[0] < count * strlen("ready\n")) {
        assert_true(read_some(0));
    }
}

/* Until both pipes and the process have ended; returns what the shell would call its exit code. */
static int finish(void)
{
    int status;
    while (started.output >= 0 || started.error >= 0) {
        struct pollfd wait[2] = {{.fd = started.output, .events = POLLIN}, {.fd = started.error, .events = POLLIN}};
        assert_true(poll(wait, 2, -1) > 0);
        for (int i = 0; i < 2; i++) {
            if (wait[i].revents != 0) {
                read_some(i);
            }
        }
    }
    assert_int_equal(waitpid(started.process, &status, 0), started.process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void assert_nobody_left(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static int run(const char *words)
{
    started.length[0] = started.length[1] = 0;
    start(words, -1);
    int code = finish();
    assert_nobody_left();
    return code;
}

static void restart(const char *words, size_t ranks)
{
    started.length[0] = started.length[1] = 0;
    start(words, -1);
    await_ready(ranks);
}

static size_t lines_count(const char *text)
{
    size_t count = 0;
    for (; *text != 0; text++) {
        count += *text == '\n';
    }
    return count;
}

/* ---- tests ---- */

static void test_programs_without_pmi(void **state)
{
    assert_int_equal(run("-n 3 /bin/echo hello"), 0);
    assert_string_equal(started.text[0], "hello\nhello\nhello\n");
    assert_string_equal(started.text[1], "");
    assert_int_equal(run("-n 64 true"), 0);
}

static void test_labels(void **state)
{
    assert_int_equal(run("-n 3 --label MEMBER exchange"), 0);
    assert_int_equal(lines_count(started.text[0]), 3);
    assert_non_null(strstr(started.text[0], "[0] rank 0 of 3: PMI-1\n"));
    assert_non_null(strstr(started.text[0], "[2] rank 2 of 3: PMI-1\n"));
}

static void test_output_is_binary_safe(void **state)
{
    assert_int_equal(run("-n 1 MEMBER big"), 0);
    assert_int_equal(started.length[0], BIG_BYTES);
    for (int i = 0; i < BIG_BYTES; i++) {
        assert_int_equal((unsigned char)started.text[0][i], i & 0xff);
    }
}

static void test_input(void **state)
{
    static const struct {
        const char *words;
        const char *output;
    } rows[] = {
        {"-n 2 -l cat", "[0] line\n"},
        {"-n 2 -l --stdin 1 cat", "[1] line\n"},
        {"-n 2 --stdin all cat", "line\nline\n"},
        {"-n 2 --stdin none cat", ""},
    };
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        FILE *file = tmpfile(); /* once a file, once a pipe */
        int ends[2];
        assert_non_null(file);
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(write(ends[1], "line\n", 5), 5);
        assert_int_equal(write(fileno(file), "line\n", 5), 5);
        lseek(fileno(file), 0, SEEK_SET);
        close(ends[1]);
        started.length[0] = started.length[1] = 0;
        started.text[0][0] = 0;
        start(rows[i / 2].words, i % 2 == 0 ? ends[0] : fileno(file));
        close(ends[0]);
        fclose(file);
        assert_int_equal(finish(), 0);
        assert_string_equal(started.text[0], rows[i / 2].output);
        assert_nobody_left();
    }
}

static const struct {
    const char *words;
    int code;
    const char *error; /* part of it; NULL: nothing is said */
} exit_codes[] = {
    {"-n 1 false", 1, NULL},
    {"-n 3 MEMBER crash 1", 128 + SIGSEGV, "rank 1 (process "},
    {"-n 3 MEMBER crash 1", 128 + SIGSEGV, "ended by signal 11 (SIGSEGV)"},
    {"-n 3 MEMBER abort 7", 7, "rank 1: as asked for\n"},
    {"-n 2 MEMBER leave 0", 1, "rank 0"},
    {"-n 2 MEMBER leave 1", 1, "without MPI_Finalize"},
    {"-n 1 MEMBER leave 0", 0, NULL},
    {"-n 2 MEMBER nonsense 1", 1, "rank 1"},
    {"-n 1 MEMBER exchange : -n 1 true", 1, "rank 1"},
    {"-n 1 MEMBER exchange : -n 2 MEMBER exchange", 0, NULL},
    {"-n 2 --timeout 50ms sleep 1000", 124, "still running: rank 0-1\n"},
    {"-n 2 ./does-not-exist", 127, "./does-not-exist: no such program\n"},
    {"-n 2 does-not-exist-either", 127, "no such program in PATH"},
    {"-n 2 --wdir /usr ./does-not-exist", 127, "./does-not-exist: no such program in /usr\n"},
    {"-n 1 true : -n 1 does-not-exist-either", 127, "no such program in PATH"},
    {"-n 2 /dev/null", 126, "/dev/null: may not be executed"},
    {"-n 2 /", 126, "/: may not be executed"},
    {"-n 2 --wdir /does-not-exist true", 126, "/does-not-exist"},
    {"-n 0 true", 2, "-n 0"},
    {"-n 5000 true", 2, "-n 5000"},
    {"-n -1 true", 2, "-n -1"},
    {"-n x true", 2, "-n x"},
    {"-n 4096 true : -n 1 true", 2, "4097 ranks"},
    {"-n", 2, "an argument is missing"},
    {"-n 2", 2, "no program"},
    {"-n 2 true :", 2, "no program"},
    {"--what true", 2, "unknown option: --what"},
    {"--env A true", 2, "NAME=VALUE"},
    {"--stdin 2 -n 2 true", 2, "no rank 2"},
    {"--timeout 0 true", 2, "--timeout 0"},
    {"-nolocal true", 2, "not an option here: -nolocal (--hosts, --hostfile, --map-by and --bind-to say"},
    {"-npernode 2 true", 2, "not an option here: -npernode"},
    {"--hosts= true", 2, "--hosts"},
    {"--hosts -x true", 2, "--hosts"},
    {"--hosts a:0 true", 2, "a:0"},
    {"--hostfile=/nonexistent true", 2, "/nonexistent"},
    {"-machinefile /nonexistent -n 2 true", 2, "/nonexistent"},
    {"--launcher= true", 2, "--launcher"},
    {"--ports 40000 true", 2, "bad value: --ports 40000 (FIRST-LAST is wanted, UDP ports of 1 to 65535)"},
    {"--ports 40009-40000 true", 2, "FIRST-LAST is wanted"},
    {"--ports= true", 2, "FIRST-LAST is wanted"},
    {"--mca btl tcp true", 2, "not an option here: --mca"},
    {"--map-by socket true", 2, "--map-by"},
    {"-genvlist A true", 2, "-genvlist"},
    {"-hello true", 2, "unknown option: -hello"},
    {"-lx true", 2, "unknown option: -lx"},
    {"--emul 1,memif true", 2, "unknown option: --emul"},
    {"--label=x true", 2, "unknown option: --label=x"},
    {"-genv A", 2, "an argument is missing: -genv"},
    {"-genv A=B 1 true", 2, "-genv A=B"},
    {"-env A", 2, "an argument is missing"},
    {"-ppn 0 true", 2, "-ppn 0"},
    {"-n 4 -ppn 3 --emulate 2,memif true", 2, "-ppn 3 with 4 ranks on 2 hosts"},
    {"--bind-to socket true", 2, "'core', 'numa', 'hwthread' or 'none'"},
    {"-n 4096 --bind-to hwthread true", 2, "4096 ranks, and there is one for"},
    {"-n 2 -ppn 2 --oversubscribe --allow-run-as-root --bind-to none -genvall true", 0, NULL},
    {"-np 2 -- true", 0, NULL},
    {"-n2 true", 0, NULL},
};

static void test_exit_codes(void **state)
{
    for (size_t i = 0; i < sizeof(exit_codes) / sizeof(exit_codes[0]); i++) {
        int code = run(exit_codes[i].words);
        if (code != exit_codes[i].code || (exit_codes[i].error == NULL && started.length[1] > 0) ||
            (exit_codes[i].error != NULL && strstr(started.text[1], exit_codes[i].error) == NULL)) {
            fail_msg("'%s': %d, '%s'", exit_codes[i].words, code, started.text[1]);
        }
    }
}

static void test_environment(void **state)
{
    assert_int_equal(run("--wdir /tmp --env A=b=c --env LAB=1 env"), 0);
    assert_non_null(strstr(started.text[0], "A=b=c\n"));
    assert_non_null(strstr(started.text[0], "LAB=1\n"));
    assert_non_null(strstr(started.text[0], "PMI_SIZE=1\n"));
    static const struct {
        const char *words;
        const char *output;
    } rows[] = {
        {"-env A 1 printenv A", "1\n"},
        {"-env A=2 printenv A", "2\n"},
        {"-genv A 3 printenv A", "3\n"},
        {"-genv A 3 -env A 4 printenv A", "4\n"},
        {"-x A=5 printenv A", "5\n"},
        {"-genv A 6 -n 1 printenv A : -n 1 printenv A", "6\n6\n"},
        {"-n 1 printenv A : -x A=7 -n 1 printenv A", "7\n7\n"},
        {"-x PATH -wd / pwd", "/\n"},
        {"-n 1 -prepend-rank -wd / pwd : -n 1 true", "[0] /\n"},
        {"--version", "causeway "},
        {"-V", "causeway "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(run(rows[i].words), 0);
        if (rows[i].output != NULL && strncmp(started.text[0], rows[i].output, strlen(rows[i].output)) != 0) {
            fail_msg("'%s': '%s'", rows[i].words, started.text[0]);
        }
    }
    assert_int_equal(run("--wdir / pwd"), 0);
    assert_string_equal(started.text[0], "/\n");
}

/* Each rank may run on a processor of its own, and on no other one. */
static void ranks_are_bound(void **state)
{
    cpu_set_t here;
    char words[128], lists[2][64];
    assert_int_equal(sched_getaffinity(0, sizeof(here), &here), 0);
    uint32_t count = CPU_COUNT(&here) >= 2 ? 2 : 1;
    snprintf(words, sizeof(words), "-n %u --bind-to hwthread grep Cpus_allowed_list: /proc/self/status", count);
    assert_int_equal(run(words), 0);
    const char *at = started.text[0];
    for (uint32_t i = 0; i < count; i++) {
        char *end = NULL;
        assert_int_equal(sscanf(at, "Cpus_allowed_list: %63s", lists[i]), 1);
        assert_true(CPU_ISSET(strtoul(lists[i], &end, 10), &here));
        assert_string_equal(end, "");
        at = strchr(at, '\n') + 1;
    }
    assert_true(count == 1 || strcmp(lists[0], lists[1]) != 0);
    assert_int_equal(run("--bind-to core true"), 0);
}

static pid_t child_of(pid_t parent, size_t index)
{
    char path[64];
    int child = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
    FILE *list = fopen(path, "re");
    assert_non_null(list);
    for (size_t i = 0; i <= index; i++) {
        assert_int_equal(fscanf(list, "%d", &child), 1);
    }
    fclose(list);
    return child;
}

/* A process that ignores SIGTERM is killed; one that has left the group is found. */
static void test_nobody_stays(void **state)
{
    restart("-n 3 MEMBER deaf", 3);
    assert_int_equal(kill(child_of(child_of(started.process, 0), 1), SIGKILL), 0);
    assert_int_equal(finish(), 128 + SIGKILL);
    assert_nobody_left();
    assert_int_equal(run("-n 3 MEMBER daemon-and-end"), 0);
}

static void test_rank_is_killed(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 9);
    for (int round = 0; round < KILL_ROUNDS; round++) {
        char wanted[64];
        restart("-n 4 MEMBER daemon", KILL_RANKS);
        size_t rank = cw_random_below(&random, KILL_RANKS);
        assert_int_equal(kill(child_of(child_of(started.process, 0), rank), SIGKILL), 0);
        assert_int_equal(finish(), 128 + SIGKILL);
        snprintf(wanted, sizeof(wanted), "rank %zu (process ", rank);
        assert_non_null(strstr(started.text[1], wanted));
        assert_nobody_left();
    }
}

/* All processes of the launcher become ours, and must end automatically. */
static void test_launcher_is_killed(void **state)
{
    for (int round = 0; round < KILL_ROUNDS; round++) {
        bool launcher = round % 2 == 0;
        restart("-n 4 MEMBER daemon", KILL_RANKS);
        assert_int_equal(kill(launcher ? child_of(started.process, 0) : started.process, SIGKILL), 0);
        assert_int_equal(finish(), 128 + SIGKILL);
        if (launcher) {
            assert_nobody_left();
        }
        while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
        }
        assert_int_equal(errno, ECHILD);
    }
}

static void test_signals(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < 2 * sizeof(numbers) / sizeof(numbers[0]); i++) {
        int number = numbers[i / 2];
        restart("-n 4 MEMBER wait", KILL_RANKS);
        /* to the launcher, or to all processes of its group, as a terminal does */
        assert_int_equal(kill(i % 2 == 0 ? started.process : -started.process, number), 0);
        assert_int_equal(finish(), 128 + number);
        assert_int_equal(lines_count(started.text[1]), 1);
        assert_nobody_left();
    }
}

/* The reader has gone: ends as a process would. */
static void test_reader_goes(void **state)
{
    started.length[0] = started.length[1] = 0;
    start("-n 2 yes", -1);
    assert_true(read_some(0));
    close(started.output);
    started.output = -1;
    assert_int_equal(finish(), 128 + SIGPIPE);
    assert_nobody_left();
}

static void test_hydra(void **state)
{
    static const char *const counts[] = {"1", "2", "5"};
    const char *const version[] = {"mpiexec.hydra", "--version", NULL};
    started.length[0] = started.length[1] = 0;
    start_program("mpiexec.hydra", version, -1);
    if (finish() == 127) {
        print_message("mpiexec.hydra is not there (apt-get install mpich)\n");
        skip();
    }
    const char *line = strstr(started.text[0], "Version:");
    assert_non_null(line);
    print_message("Hydra: %.*s\n", (int)strcspn(line, "\n"), line);
    for (size_t i = 0; i < 6; i++) {
        const char *with_port[] = {"mpiexec.hydra", "-pmi-port", "-n", counts[i / 2], self, "member", "exchange", NULL};
        const char *without[] = {"mpiexec.hydra", "-n", counts[i / 2], self, "member", "exchange", NULL};
        started.length[0] = started.length[1] = 0;
        start_program("mpiexec.hydra", i % 2 == 0 ? without : with_port, -1);
        assert_int_equal(finish(), 0);
        assert_int_equal(lines_count(started.text[0]), strtoul(counts[i / 2], NULL, 10));
        assert_non_null(strstr(started.text[0], "PMI-1\n"));
    }
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "member") == 0) {
        return member_main(argv[2], argc > 3 ? argv[3] : NULL);
    }
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < 2; i++) {
        started.text[i] = calloc(1, OUTPUT_BYTES);
        assert_non_null(started.text[i]);
    }
    int failed = TESTS_RUN(test_programs_without_pmi, test_labels, test_output_is_binary_safe, test_input,
                           test_exit_codes, test_environment, ranks_are_bound, test_nobody_stays, test_rank_is_killed,
                           test_launcher_is_killed, test_signals, test_reader_goes, test_hydra);
    free(started.text[0]);
    free(started.text[1]);
    return failed;
}
