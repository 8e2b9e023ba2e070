#include "apps/run/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "apps/run/foreign.h"
#include "apps/run/plan.h"
#include "control/job/dedicate.h"
#include "control/launch/binding.h"
#include "control/net/net.h"
#include "control/net/rdma.h"
#include "control/settings/setting.h"
#include "control/settings/units.h"
#include "dataplane/status.h"

#define NS_PER_SECOND 1000000000ull
#define TIMEOUT_MAX_S (365ull * 24 * 3600)

/* An option as it is being read. */
struct given {
    const char *name; /* as it was given, dashes included */
    char *values[2];
    int value_count;
};

static bool reject(int *exit_code, const char *option, const char *text, const char *todo)
{
    char where[256];
    snprintf(where, sizeof(where), "%s %s", option, text);
    app_error("bad value", where, todo);
    *exit_code = APP_EXIT_USAGE;
    return false;
}

static bool count_parse(struct cw_launch_program *program, const char *text, int *exit_code)
{
    uint64_t count = 0;
    if (!app_parse_count(text, &count) || count == 0 || count > CW_LAUNCH_RANKS_MAX) {
        char todo[64];
        snprintf(todo, sizeof(todo), "a number of ranks between 1 and %d is wanted", CW_LAUNCH_RANKS_MAX);
        return reject(exit_code, "-n", text, todo);
    }
    program->count = (uint32_t)count;
    return true;
}

static bool dedicated_parse(const char *text, int *exit_code)
{
    struct cw_dedicate_wish wish;
    char todo[256];
    if (cw_dedicate_read(text, &wish, todo, sizeof(todo)) != CW_OK) {
        return reject(exit_code, "--dedicated", text, todo);
    }
    (void)cw_setting_set(CW_SETTING_DEDICATED, text);
    return true;
}

static bool rdma_parse(const char *text, int *exit_code)
{
    struct cw_net_rdma rdma;
    char todo[256];
    if (cw_net_rdma_read(text, &rdma, todo, sizeof(todo)) != CW_OK) {
        return reject(exit_code, "--rdma", text, todo);
    }
    (void)cw_setting_set(CW_SETTING_RDMA, text);
    return true;
}

static bool timeout_parse(struct run_options *options, const char *text, int *exit_code)
{
    uint64_t seconds = 0;
    uint64_t duration_ns = 0;
    if (app_parse_count(text, &seconds) && seconds <= TIMEOUT_MAX_S) {
        duration_ns = seconds * NS_PER_SECOND;
    } else if (!cw_units_duration(text, &duration_ns) || duration_ns > TIMEOUT_MAX_S * NS_PER_SECOND) {
        duration_ns = 0;
    }
    if (duration_ns == 0) {
        return reject(exit_code, "--timeout", text,
                      "a number of seconds above 0, or a duration like 90s or 2min, is wanted");
    }
    options->launch.timeout_ns = duration_ns;
    return true;
}

/* They are the ranks' to use, and a range that is none is known here already. */
static bool ports_parse(const char *text, int *exit_code)
{
    uint16_t first, last;
    char error[128];
    (void)cw_setting_set(CW_SETTING_PORTS, text);
    return (text[0] != '\0' && cw_net_ports(&first, &last, error, sizeof(error)) == CW_OK) ||
           reject(exit_code, "--ports", text, "FIRST-LAST is wanted, UDP ports of 1 to 65535");
}

static bool stdin_parse(struct run_options *options, const char *text, int *exit_code)
{
    uint64_t rank = 0;
    if (strcmp(text, "all") == 0) {
        options->launch.stdin_rank = CW_LAUNCH_STDIN_ALL;
    } else if (strcmp(text, "none") == 0) {
        options->launch.stdin_rank = CW_LAUNCH_STDIN_NONE;
    } else if (app_parse_count(text, &rank) && rank < CW_LAUNCH_RANKS_MAX) {
        options->launch.stdin_rank = (int64_t)rank;
    } else {
        return reject(exit_code, "--stdin", text, "a rank, 'all' or 'none' is wanted");
    }
    return true;
}

static bool variable_add(struct cw_launch_program *program, char *text, int *exit_code)
{
    size_t count = 0;
    while (program->variables != NULL && program->variables[count] != NULL) {
        count++;
    }
    char **grown = text == NULL ? NULL : realloc(program->variables, (count + 2) * sizeof(*grown));
    if (grown == NULL) {
        free(text);
        app_error("out of memory", NULL, NULL);
        *exit_code = APP_EXIT_MACHINE;
        return false;
    }
    grown[count] = text;
    grown[count + 1] = NULL;
    program->variables = grown;
    return true;
}

/* --env NAME=VALUE, or as MPICH has it: -env NAME VALUE. */
static bool env_parse(struct run_options *options, struct cw_launch_program *program, struct given *given,
                      int *exit_code)
{
    char *text = NULL;
    (void)options;
    if (given->values[0][0] == '=' || given->values[0][0] == '\0' ||
        (given->value_count == 1 && strchr(given->values[0], '=') == NULL)) {
        return reject(exit_code, given->name, given->values[0], "NAME=VALUE is wanted");
    }
    if (given->value_count == 1) {
        text = strdup(given->values[0]);
    } else if (asprintf(&text, "%s=%s", given->values[0], given->values[1]) < 0) {
        text = NULL;
    }
    return variable_add(program, text, exit_code);
}

/* Ranks of other hosts are to have it, too. */
static bool export_add(struct run_options *options, const char *name, int *exit_code)
{
    size_t count = 0;
    while (options->exported != NULL && options->exported[count] != NULL) {
        count++;
    }
    const char **grown = realloc(options->exported, (count + 2) * sizeof(*grown));
    if (grown == NULL) {
        app_error("out of memory", NULL, NULL);
        *exit_code = APP_EXIT_MACHINE;
        return false;
    }
    grown[count] = name;
    grown[count + 1] = NULL;
    options->exported = grown;
    options->launch.exported = grown;
    return true;
}

/* For all programs: they inherit this process's variables, and --env of one of them goes before. */
static bool genv_parse(struct run_options *options, struct cw_launch_program *program, struct given *given,
                       int *exit_code)
{
    (void)program;
    if (!cw_environment_set(given->values[0], given->values[1])) {
        return reject(exit_code, given->name, given->values[0], "the name of a variable is wanted, and its value");
    }
    return export_add(options, given->values[0], exit_code);
}

/* -x NAME=VALUE is for all programs; so is -x NAME, which ranks of this host have anyway. */
static bool export_parse(struct run_options *options, struct cw_launch_program *program, struct given *given,
                         int *exit_code)
{
    char *value = strchr(given->values[0], '=');
    if (value == NULL) {
        if (cw_environment(given->values[0]) == NULL) {
            fprintf(stderr, "causeway run: %s %s: there is no such variable here, so ranks have none\n", given->name,
                    given->values[0]);
        }
        return export_add(options, given->values[0], exit_code);
    }
    *value = '\0';
    given->values[1] = value + 1;
    return genv_parse(options, program, given, exit_code);
}

static bool per_host_parse(struct run_options *options, const char *text, int *exit_code)
{
    uint64_t count = 0;
    if (!app_parse_count(text, &count) || count == 0 || count > CW_LAUNCH_RANKS_MAX) {
        return reject(exit_code, "-ppn", text, "a number of ranks on each host is wanted");
    }
    options->per_host = (uint32_t)count;
    return true;
}

static bool mapping_parse(struct run_options *options, const char *text, int *exit_code)
{
    static const struct {
        const char *word;
        enum cw_launch_mapping mapping;
    } words[] = {
        {"core", CW_LAUNCH_MAP_CORE},
        {"slot", CW_LAUNCH_MAP_CORE},
        {"numa", CW_LAUNCH_MAP_NUMA},
        {"node", CW_LAUNCH_MAP_NODE},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i].word) == 0) {
            options->launch.mapping = words[i].mapping;
            return true;
        }
    }
    return reject(exit_code, "--map-by", text, "'core', 'numa' or 'node' is wanted");
}

/* Options that are settings of the ranks. */
static bool setting_parse(int option, char *value, int *exit_code)
{
    switch (option) {
    case 'x':
        if (cw_setting(CW_SETTING_EXPLAIN) == NULL) {
            (void)cw_setting_set(CW_SETTING_EXPLAIN, "1");
        }
        return true;
    case 'W':
        (void)cw_setting_set(CW_SETTING_TRANSPORT, value);
        return true;
    case 'D':
        return dedicated_parse(value, exit_code);
    case 'R':
        return rdma_parse(value, exit_code);
    case 'O':
        return ports_parse(value, exit_code);
    case 'E':
        (void)cw_setting_set(CW_SETTING_EAL, value);
        return true;
    case 'T':
        (void)cw_setting_set(CW_SETTING_TELEMETRY, "on");
        return true;
    default:
        return true; /* the default already */
    }
}

static bool simple_parse(struct run_options *options, struct cw_launch_program *program, int option, char *value,
                         int *exit_code)
{
    switch (option) {
    case 'n':
        options->counts_given = true;
        return count_parse(program, value, exit_code);
    case 'l':
        options->launch.label = true;
        return true;
    case 'e':
        options->emulate = value;
        return true;
    case 'S':
        options->simulate = value;
        return true;
    case 'd':
        return (app_parse_count(value, &options->seeds) && options->seeds > 0) ||
               reject(exit_code, "--seeds", value, "a number of seeds is wanted");
    case 'r':
        return run_plan_record(value, exit_code);
    case 'p':
        options->plan = value;
        return true;
    case 'w':
        program->directory = value;
        return true;
    case 's':
        return stdin_parse(options, value, exit_code);
    case 't':
        return timeout_parse(options, value, exit_code);
    case 'b':
        options->launch.binding = value;
        return launch_binding_knows(value) ||
               reject(exit_code, "--bind-to", value, "'core', 'numa', 'hwthread' or 'none' is wanted");
    case 'H':
        options->hosts = value;
        return true;
    case 'F':
        options->hostfile = value;
        return true;
    case 'L':
        options->launch.launcher = value;
        return value[0] != '\0' || reject(exit_code, "--launcher", value, "'ssh', 'srun' or a command is wanted");
    case 'M':
        return mapping_parse(options, value, exit_code);
    case 'P':
        return per_host_parse(options, value, exit_code);
    case 'V':
        puts("causeway " CW_VERSION);
        *exit_code = APP_EXIT_SUCCESS;
        return false;
    case 'h':
        fputs(run_help, stdout);
        *exit_code = APP_EXIT_SUCCESS;
        return false;
    default:
        return setting_parse(option, value, exit_code);
    }
}

struct row {
    const char *name;
    int value_count; /* how many words follow */
    int option;      /* of simple_parse */
    bool (*parse)(struct run_options *options, struct cw_launch_program *program, struct given *given, int *exit_code);
};

static const struct row rows[] = {
    {"n", 1, 'n', NULL},          {"np", 1, 'n', NULL},          {"c", 1, 'n', NULL},
    {"l", 0, 'l', NULL},          {"label", 0, 'l', NULL},       {"prepend-rank", 0, 'l', NULL},
    {"tag-output", 0, 'l', NULL}, {"env", 2, 0, env_parse},      {"genv", 2, 0, genv_parse},
    {"x", 1, 0, export_parse},    {"emulate", 1, 'e', NULL},     {"explain", 0, 'x', NULL},
    {"simulate", 1, 'S', NULL},   {"seeds", 1, 'd', NULL},       {"record", 1, 'r', NULL},
    {"plan", 1, 'p', NULL},       {"wdir", 1, 'w', NULL},        {"wd", 1, 'w', NULL},
    {"stdin", 1, 's', NULL},      {"timeout", 1, 't', NULL},     {"bind-to", 1, 'b', NULL},
    {"hosts", 1, 'H', NULL},      {"host", 1, 'H', NULL},        {"H", 1, 'H', NULL},
    {"hostfile", 1, 'F', NULL},   {"machinefile", 1, 'F', NULL}, {"f", 1, 'F', NULL},
    {"launcher", 1, 'L', NULL},   {"map-by", 1, 'M', NULL},      {"dedicated", 1, 'D', NULL},
    {"transport", 1, 'W', NULL},  {"rdma", 1, 'R', NULL},        {"ports", 1, 'O', NULL},
    {"ppn", 1, 'P', NULL},        {"eal", 1, 'E', NULL},         {"telemetry", 0, 'T', NULL},
    {"perhost", 1, 'P', NULL},    {"version", 0, 'V', NULL},     {"V", 0, 'V', NULL},
    {"help", 0, 'h', NULL},       {"h", 0, 'h', NULL},           {"genvall", 0, 0, NULL},
    {"envall", 0, 0, NULL},       {"oversubscribe", 0, 0, NULL}, {"allow-run-as-root", 0, 0, NULL},
};

static const struct row *row_find(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

static bool option_unknown(const char *given, const char *name, int *exit_code)
{
    const char *advice = run_foreign_advice(name);
    app_error(advice != NULL ? "not an option here" : "unknown option", given,
              advice != NULL ? advice : "--help lists the options");
    *exit_code = APP_EXIT_USAGE;
    return false;
}

/* Takes the option at argv[*at], with the words that follow. As the standard's mpiexec has it, names may have one dash
 * or two; nothing is abbreviated, since what is meant for another mpiexec must not become something else. */
static bool option_read(struct run_options *options, struct cw_launch_program *program, int argc, char **argv, int *at,
                        int *exit_code)
{
    char name[32];
    struct given given = {.name = argv[*at]};
    const char *begin = given.name + (given.name[1] == '-' ? 2 : 1);
    size_t length = strcspn(begin, "=");
    snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1), begin);
    const struct row *row = row_find(name);
    if (row == NULL && given.name[1] == 'n' && given.name[2] >= '0' && given.name[2] <= '9') { /* -n4 */
        *at += 1;
        options->counts_given = true;
        return count_parse(program, argv[*at - 1] + 2, exit_code);
    }
    if (row == NULL || length >= sizeof(name) || (row->value_count == 0 && begin[length] == '=')) {
        return option_unknown(given.name, name, exit_code);
    }
    *at += 1;
    if (begin[length] == '=') {
        given.values[given.value_count++] = argv[*at - 1] + (begin - given.name) + length + 1;
    }
    /* --env NAME=VALUE is one word, -env NAME VALUE two */
    int wanted = row->parse == env_parse && (given.name[1] == '-' || given.value_count > 0 ||
                                             (*at < argc && strchr(argv[*at], '=') != NULL))
                     ? 1
                     : row->value_count;
    while (given.value_count < wanted && *at < argc) {
        given.values[given.value_count++] = argv[(*at)++];
    }
    if (given.value_count < wanted) {
        app_error("an argument is missing", given.name, "--help lists the options");
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    return row->parse != NULL ? row->parse(options, program, &given, exit_code)
                              : simple_parse(options, program, row->option, given.values[0], exit_code);
}

/* One program with its options: argv[0] is no part of it, and argv[argc] is NULL. */
static bool program_parse(struct run_options *options, int argc, char **argv, int *exit_code)
{
    int at = 1;
    if (options->launch.program_count == RUN_PROGRAMS_MAX) {
        app_error("too many programs", NULL, "a job has at most 64");
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    struct cw_launch_program *program = &options->programs[options->launch.program_count++];
    *program = (struct cw_launch_program){.count = 1};
    while (at < argc && argv[at][0] == '-' && argv[at][1] != '\0' && strcmp(argv[at], "--") != 0) {
        if (!option_read(options, program, argc, argv, &at, exit_code)) {
            return false;
        }
    }
    at += at < argc && strcmp(argv[at], "--") == 0;
    if (at >= argc || argv[at][0] == 0) {
        app_error("no program", NULL, "causeway run -n 4 PROGRAM ARGUMENT...; --help shows the options");
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    program->arguments = argv + at;
    return true;
}

/* Arranges the hosts once all programs, and so the number of ranks, are known. */
static bool hosts_arrange(struct run_options *options, int *exit_code)
{
    uint32_t ranks = 0;
    for (size_t i = 0; i < options->launch.program_count; i++) {
        ranks += options->programs[i].count;
    }
    if (options->seeds > 0 && options->simulate == NULL) {
        app_error("--seeds", NULL, "only --simulate has a seed: add it");
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    const char *transport = cw_setting(CW_SETTING_TRANSPORT), *topology = cw_setting(CW_SETTING_TOPOLOGY);
    const char *other = options->simulate == NULL                             ? NULL
                        : options->emulate != NULL                            ? "--emulate"
                        : options->hosts != NULL || options->hostfile != NULL ? "--hosts"
                        : options->per_host > 0                               ? "-ppn"
                        : topology != NULL && topology[0] != '\0'             ? "CAUSEWAY_TOPOLOGY"
                        : transport != NULL && transport[0] != '\0'           ? "--transport"
                                                                              : NULL;
    if (other != NULL) {
        app_error("--simulate", other, "the simulator has the network and its hosts, on this machine: leave one out");
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    unsigned long hosts = options->emulate != NULL ? strtoul(options->emulate, NULL, 10) : 0;
    if (options->per_host > 0 && hosts > 0 && options->per_host * hosts != ranks) {
        char where[64];
        snprintf(where, sizeof(where), "-ppn %u with %u ranks on %lu hosts", options->per_host, ranks, hosts);
        app_error("bad value", where, "hosts have equal blocks of ranks: leave it out, or change one of the three");
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    return true;
}

bool run_options_parse(struct run_options *options, int argc, char **argv, int *exit_code)
{
    memset(options, 0, sizeof(*options));
    options->launch = (struct cw_launch_config){.name = "causeway run", .programs = options->programs};
    int begin = 0;
    for (int end = 1; end <= argc; end++) {
        if (end < argc && strcmp(argv[end], ":") != 0) {
            continue;
        }
        argv[end] = NULL; /* at argc it is */
        if (!program_parse(options, end - begin, argv + begin, exit_code)) {
            run_options_dispose(options);
            return false;
        }
        begin = end;
    }
    if (!hosts_arrange(options, exit_code)) {
        run_options_dispose(options);
        return false;
    }
    return true;
}

void run_options_dispose(struct run_options *options)
{
    for (size_t i = 0; i < options->launch.program_count; i++) {
        for (char **at = options->programs[i].variables; at != NULL && *at != NULL; at++) {
            free(*at);
        }
        free(options->programs[i].variables);
        options->programs[i].variables = NULL;
    }
    free(options->exported);
    options->exported = NULL;
}
