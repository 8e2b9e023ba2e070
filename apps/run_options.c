#include "apps/run_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/apps.h"
#include "apps/run_plan.h"
#include "control/units.h"

#define NS_PER_SECOND 1000000000ull
#define TIMEOUT_MAX_S (365ull * 24 * 3600)

enum {
    OPTION_ENV = 256,
    OPTION_TIMEOUT,
    OPTION_WDIR,
    OPTION_STDIN,
    OPTION_EMULATE,
    OPTION_EXPLAIN,
    OPTION_RECORD,
    OPTION_PLAN
};

static const char help[] =
    "usage: causeway run [-n RANKS] [OPTION...] PROGRAM [ARGUMENT...] [: [-n RANKS] [OPTION...] PROGRAM ...]\n"
    "\n"
    "Starts RANKS processes of a program on this machine as one job, passes their output on by whole lines, and ends\n"
    "them all when one of them fails. Several programs make one job, their ranks in the order given.\n"
    "\n"
    "options:\n"
    "  -n, --np RANKS               processes of this program, default 1\n"
    "  -l, --label                  \"[RANK] \" before each line of output\n"
    "  --env NAME=VALUE             a variable for this program; may be repeated\n"
    "  --wdir DIRECTORY             where this program runs, default here\n"
    "  --stdin RANK|all|none        who reads the standard input, default 0\n"
    "  --emulate HOSTS,memif[,rate=R][,delay=T][,queue=BYTES][,loss=SHARE]\n"
    "                               puts the ranks on so many emulated hosts, which reach each other through a switch\n"
    "                               (,multicast=snoop|flood|drop, too: what it does with multicast; also with veth)\n"
    "  --emulate topology=FILE,memif\n"
    "                               the same on the hosts of a file, in clusters that are joined by long links\n"
    "                               (,stats=FILE, also without a topology: what links do in each millisecond, as CSV "
    "for\n"
    "                               `causeway draw`; ,stats-interval=TIME)\n"
    "  --emulate HOSTS,veth[,af_packet|af_xdp][,mtu=N]\n"
    "                               the same with network namespaces and a bridge of the kernel, default af_packet "
    "and\n"
    "                               1500; any program runs in them, not only MPI's; needs root\n"
    "  --explain                    rank 0 tells at the end which paths and algorithms MPI took (CAUSEWAY_EXPLAIN=1)\n"
    "  --record FILE                writes which collective calls the ranks made, and how long they took, for\n"
    "                               `causeway plan compile` (CAUSEWAY_RECORD)\n"
    "  --plan FILE                  serves them by the plans in FILE where they come again (CAUSEWAY_PLAN)\n"
    "  --timeout SECONDS            ends the job after so long (or 90s, 2min); before that each rank says which MPI "
    "call it\n"
    "                               waits in, and for whom, and a last line which rank is missing\n"
    "  --help                       prints this\n"
    "\n"
    "exit code: that of the rank that fails first, or 128 + the signal that ended it; 124 after --timeout,\n"
    "126 if a program cannot be executed, 127 if there is none of that name, 2 for wrong usage.\n";

static bool refuse(int *exit_code, const char *option, const char *text, const char *todo)
{
    char where[256];
    snprintf(where, sizeof(where), "%s %s", option, text);
    app_error("bad value", where, todo);
    *exit_code = APP_EXIT_USAGE;
    return false;
}

static bool count_take(struct cw_launch_program *program, const char *text, int *exit_code)
{
    uint64_t count = 0;
    if (!app_parse_count(text, &count) || count == 0 || count > CW_LAUNCH_RANKS_MAX) {
        char todo[64];
        snprintf(todo, sizeof(todo), "a number of ranks between 1 and %d is wanted", CW_LAUNCH_RANKS_MAX);
        return refuse(exit_code, "-n", text, todo);
    }
    program->count = (uint32_t)count;
    return true;
}

static bool timeout_take(struct run_options *options, const char *text, int *exit_code)
{
    uint64_t seconds = 0;
    uint64_t duration_ns = 0;
    if (app_parse_count(text, &seconds) && seconds <= TIMEOUT_MAX_S) {
        duration_ns = seconds * NS_PER_SECOND;
    } else if (!cw_units_duration(text, &duration_ns) || duration_ns > TIMEOUT_MAX_S * NS_PER_SECOND) {
        duration_ns = 0;
    }
    if (duration_ns == 0) {
        return refuse(exit_code, "--timeout", text,
                      "a number of seconds above 0, or a duration like 90s or 2min, is wanted");
    }
    options->launch.timeout_ns = duration_ns;
    return true;
}

static bool stdin_take(struct run_options *options, const char *text, int *exit_code)
{
    uint64_t rank = 0;
    if (strcmp(text, "all") == 0) {
        options->launch.stdin_rank = CW_LAUNCH_STDIN_ALL;
    } else if (strcmp(text, "none") == 0) {
        options->launch.stdin_rank = CW_LAUNCH_STDIN_NONE;
    } else if (app_parse_count(text, &rank) && rank < CW_LAUNCH_RANKS_MAX) {
        options->launch.stdin_rank = (int64_t)rank;
    } else {
        return refuse(exit_code, "--stdin", text, "a rank, 'all' or 'none' is wanted");
    }
    return true;
}

static bool variable_take(struct cw_launch_program *program, char *text, int *exit_code)
{
    size_t count = 0;
    if (text[0] == '=' || strchr(text, '=') == NULL) {
        return refuse(exit_code, "--env", text, "NAME=VALUE is wanted");
    }
    while (program->variables != NULL && program->variables[count] != NULL) {
        count++;
    }
    char **grown = realloc(program->variables, (count + 2) * sizeof(*grown));
    if (grown == NULL) {
        app_error("out of memory", NULL, NULL);
        *exit_code = APP_EXIT_MACHINE;
        return false;
    }
    grown[count] = text;
    grown[count + 1] = NULL;
    program->variables = grown;
    return true;
}

static bool option_take(struct run_options *options, struct cw_launch_program *program, int option, int *exit_code)
{
    switch (option) {
    case 'n':
        return count_take(program, optarg, exit_code);
    case 'l':
        options->launch.label = true;
        return true;
    case OPTION_ENV:
        return variable_take(program, optarg, exit_code);
    case OPTION_EMULATE:
        options->emulate = optarg;
        return true;
    case OPTION_EXPLAIN:
        setenv("CAUSEWAY_EXPLAIN", "1", 0);
        return true;
    case OPTION_RECORD:
        return run_plan_record(optarg, exit_code);
    case OPTION_PLAN:
        options->plan = optarg;
        return true;
    case OPTION_WDIR:
        program->directory = optarg;
        return true;
    case OPTION_STDIN:
        return stdin_take(options, optarg, exit_code);
    case OPTION_TIMEOUT:
        return timeout_take(options, optarg, exit_code);
    default:
        fputs(help, stdout);
        *exit_code = APP_EXIT_SUCCESS;
        return false;
    }
}

/* One program with its options: argv[0] is no part of it, and argv[argc] is NULL. */
static bool program_parse(struct run_options *options, int argc, char **argv, int *exit_code)
{
    static const struct option rows[] = {
        {"np", required_argument, NULL, 'n'},
        {"label", no_argument, NULL, 'l'},
        {"env", required_argument, NULL, OPTION_ENV},
        {"emulate", required_argument, NULL, OPTION_EMULATE},
        {"explain", no_argument, NULL, OPTION_EXPLAIN},
        {"record", required_argument, NULL, OPTION_RECORD},
        {"plan", required_argument, NULL, OPTION_PLAN},
        {"wdir", required_argument, NULL, OPTION_WDIR},
        {"stdin", required_argument, NULL, OPTION_STDIN},
        {"timeout", required_argument, NULL, OPTION_TIMEOUT},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    if (options->launch.program_count == RUN_PROGRAMS_MAX) {
        app_error("too many programs", NULL, "a job has at most 64");
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    struct cw_launch_program *program = &options->programs[options->launch.program_count++];
    int found;
    *program = (struct cw_launch_program){.count = 1};
    optind = 0; /* GNU: starts afresh */
    opterr = 0;
    /* the standard's mpiexec has long options with one dash, as -wdir */
    while ((found = getopt_long_only(argc, argv, "+:n:lh", rows, NULL)) != -1) {
        if (found == ':' || found == '?') {
            app_error(found == ':' ? "an argument is missing" : "unknown option", argv[optind - 1],
                      "--help lists the options");
            *exit_code = APP_EXIT_USAGE;
            return false;
        }
        if (!option_take(options, program, found, exit_code)) {
            return false;
        }
    }
    if (optind >= argc || argv[optind][0] == 0) {
        app_error("no program", NULL, "causeway run -n 4 PROGRAM ARGUMENT...; --help shows the options");
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    program->arguments = argv + optind;
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
    return true;
}

void run_options_dispose(struct run_options *options)
{
    for (size_t i = 0; i < options->launch.program_count; i++) {
        free(options->programs[i].variables);
        options->programs[i].variables = NULL;
    }
}
