#include "apps/run/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/cli/job.h"
#include "apps/simulate/simulate.h"
#include "control/job/key.h"
#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"

enum { BACKLOG = 4096, KEY_STREAM = 1 << 20 };

/* A listening socket in a folder of this user's; -1: the reason has been reported. */
static int socket_open(struct run_simulation *simulation)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (run_folder_name(simulation->folder) != 0) {
        return -1;
    }
    run_folder_sweep(simulation->folder);
    if (run_folder_make(simulation->folder) != 0) {
        simulation->folder[0] = '\0';
        return -1;
    }
    int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", simulation->folder);
    int listener = length < (int)sizeof(address.sun_path) ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;
    if (listener < 0 || bind(listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, BACKLOG) != 0) {
        app_error("the simulator has no socket", simulation->folder, strerror(errno));
        if (listener >= 0) {
            close(listener);
        }
        return -1;
    }
    return listener;
}

/* The program's clock (apps/simulate/clock.c), before what the user preloads. */
static bool preload_set(void)
{
    char path[CW_SETTINGS_PATH_BYTES], *all = NULL;
    const char *before = cw_environment("LD_PRELOAD");
    if (!app_job_program("simulated_clock.so", path, sizeof(path)) ||
        asprintf(&all, "%s%s%s", path, before != NULL && before[0] != '\0' ? ":" : "", before != NULL ? before : "") <
            0) {
        return false;
    }
    (void)cw_environment_set("LD_PRELOAD", all);
    free(all);
    return true;
}

/* The job's key comes from the seed: packets carry tags made with it. */
static int environment_set(const struct run_simulation *simulation, const struct simulate_config *config)
{
    char emulate[RUN_FOLDER_BYTES + 64], seed[24], error[200];
    uint8_t key[CW_JOB_KEY_BYTES];
    struct cw_random random;
    cw_random_seed(&random, cw_random_derive(config->seed, KEY_STREAM));
    cw_random_fill(&random, key, sizeof(key));
    if (cw_job_key_keep(key, error, sizeof(error)) != CW_OK) {
        app_error(error, NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    snprintf(emulate, sizeof(emulate), "%u,simulated,%u,%" PRIu64 ",%s/s", config->hosts, config->mtu_bytes,
             config->link.rate_bps, simulation->folder);
    (void)cw_setting_set(CW_SETTING_EMULATE, emulate);
    snprintf(seed, sizeof(seed), "%" PRIu64, config->seed);
    (void)cw_setting_set(CW_SETTING_SEED, seed); /* for programs that draw their own numbers */
    if (!preload_set()) {
        return APP_EXIT_MACHINE;
    }
    if (config->topology[0] != '\0') {
        (void)cw_setting_set(CW_SETTING_TOPOLOGY, config->topology);
    }
    return 0;
}

/* Reserves a core among simulations, for as long as this process lives: a name in the abstract namespace (unix(7)). */
static bool core_reserve(size_t core)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "causeway-simulation-%zu", core);
    int reservation = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (reservation >= 0 && bind(reservation, (const struct sockaddr *)&name, bytes) == 0) {
        return true;
    }
    if (reservation >= 0) {
        close(reservation);
    }
    return false;
}

/* One process of the simulation runs at a time. On one core a handover takes 3 us; on two it wakes a core that sleeps.
 * Simulations have different cores, as far as there are some. */
static void core_share(void)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return;
    }
    CPU_ZERO(&one);
    for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; core++) {
        if (CPU_ISSET(core, &allowed) && core_reserve(core)) {
            CPU_SET(core, &one);
        }
    }
    if (CPU_COUNT(&one) > 0) {
        (void)sched_setaffinity(0, sizeof(one), &one); /* else the kernel places all of it */
    }
}

static _Noreturn void simulator_run(const struct simulate_config *config, int listener, int parent)
{
    struct rlimit files;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_NAME, "cw-simulator");
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* a socket for each rank */
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    setpgid(0, 0); /* Ctrl-C is for the launcher, which ends the rest in order */
    int code = getppid() == parent ? simulate_serve(config, listener) : APP_EXIT_INTERNAL;
    fflush(stderr);
    _exit(code);
}

/* The seed of a repetition (run_simulation_seeds), in the place of the command's. */
static bool seed_set(struct simulate_config *config)
{
    const char *seed = cw_setting(CW_SETTING_SIMULATION_SEED);
    bool is_right = seed == NULL || app_parse_count(seed, &config->seed);
    cw_setting_clear(CW_SETTING_SIMULATION_SEED);
    return is_right;
}

int run_simulation_start(struct run_simulation *simulation, const char *text, uint32_t ranks)
{
    char error[4 * SIMULATE_ERROR_BYTES] = "CAUSEWAY_SIMULATION_SEED: a number is wanted; unset it";
    struct simulate_config *config = malloc(sizeof(*config));
    *simulation = (struct run_simulation){.process = 0};
    if (config == NULL) {
        app_error("out of memory", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    if (!simulate_config_parse(text, ranks, config, error, sizeof(error)) || !seed_set(config) ||
        simulate_config_complete(config, error, sizeof(error)) != CW_OK) {
        app_error("bad value", "--simulate", error);
        free(config);
        return APP_EXIT_USAGE;
    }
    int listener = socket_open(simulation);
    int code = listener < 0 ? APP_EXIT_MACHINE : environment_set(simulation, config);
    if (code == 0) {
        int parent = getpid();
        core_share(); /* children have it, too */
        simulation->process = fork();
        if (simulation->process == 0) {
            simulator_run(config, listener, parent);
        }
        code = simulation->process < 0 ? APP_EXIT_MACHINE : 0;
    }
    if (listener >= 0) {
        close(listener);
    }
    free(config);
    return code;
}

static int seed_run(char **arguments)
{
    int status = 0, parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() == parent) {
            execv("/proc/self/exe", arguments);
        }
        _exit(APP_EXIT_INTERNAL);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child < 0 ? APP_EXIT_MACHINE : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The command that repeats one seed: the first --simulate gets it, and the first --seeds is left out. */
static void repeat_print(const char *text, uint64_t seed, int code, int argc, char **words)
{
    bool has_simulate = false, has_seeds = false;
    fprintf(stderr, "causeway run: --seeds: this one fails with exit code %d: causeway run", code);
    for (int i = 1; i < argc; i++) {
        const char *name = words[i] + strspn(words[i], "-");
        if (!has_seeds && strncmp(name, "seeds", 5) == 0 && (name[5] == '\0' || name[5] == '=')) {
            has_seeds = true;
            i += name[5] == '\0';
        } else if (!has_simulate && strcmp(words[i], text) == 0) {
            has_simulate = true;
            fprintf(stderr, " %s,seed=%" PRIu64, words[i], seed);
        } else if (!has_simulate && strncmp(name, "simulate=", 9) == 0) {
            has_simulate = true;
            fprintf(stderr, " %s,seed=%" PRIu64, words[i], seed);
        } else {
            fprintf(stderr, " %s", words[i]);
        }
    }
    fputs("\n", stderr);
}

int run_simulation_seeds(uint64_t seeds, const char *text, uint32_t ranks, int argc, char **words)
{
    char number[24], error[4 * SIMULATE_ERROR_BYTES];
    char **arguments = calloc((size_t)argc + 2, sizeof(*arguments));
    struct simulate_config *config = malloc(sizeof(*config));
    bool done = arguments != NULL && config != NULL;
    if (!done || !simulate_config_parse(text, ranks, config, error, sizeof(error))) {
        app_error(done ? "bad value" : "out of memory", done ? "--simulate" : NULL, done ? error : NULL);
        free(arguments);
        free(config);
        return done ? APP_EXIT_USAGE : APP_EXIT_MACHINE;
    }
    uint64_t seed = config->seed;
    int code = 0;
    arguments[0] = "causeway";
    arguments[1] = "run";
    memcpy(arguments + 2, words + 1, (size_t)(argc - 1) * sizeof(*words));
    for (uint64_t i = 0; i < seeds && code == 0; i++, seed += code == 0) {
        snprintf(number, sizeof(number), "%" PRIu64, seed);
        (void)cw_setting_set(CW_SETTING_SIMULATION_SEED, number);
        code = seed_run(arguments);
    }
    cw_setting_clear(CW_SETTING_SIMULATION_SEED);
    if (code != 0) {
        repeat_print(text, seed, code, argc, words);
    }
    free(arguments);
    free(config);
    return code;
}

int run_simulation_stop(struct run_simulation *simulation)
{
    int status = 0;
    if (simulation->process > 0) {
        kill(simulation->process, SIGTERM);
        while (waitpid(simulation->process, &status, 0) < 0 && errno == EINTR) {
        }
    }
    if (simulation->folder[0] != '\0') {
        char path[RUN_FOLDER_BYTES + 8];
        snprintf(path, sizeof(path), "%s/s", simulation->folder);
        unlink(path);
        run_folder_remove(simulation->folder);
    }
    *simulation = (struct run_simulation){.process = 0};
    return WIFEXITED(status) ? WEXITSTATUS(status) : APP_EXIT_MACHINE;
}
