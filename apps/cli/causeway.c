/* The `causeway` command: finds the subcommand in a table and calls it. */
#include <stdio.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "control/settings/setting.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static int help_main(int argc, char **argv);

static const struct command commands[] = {
    {"agent", agent_main, "run the ranks of a remote host; `causeway run` starts it there, not a user"},
    {"bench", bench_main, "measure latency, throughput and cost; every transfer is verified"},
#ifdef CW_HAVE_DPDK
    {"demo", demo_main, "move a file between two emulated hosts through a switch that loses packets, and verify it"},
#endif
    {"doctor", doctor_main, "check this machine: capabilities, choices of Causeway, problems and their remedies"},
    {"draw", draw_main, "draw pictures of an emulated network: throughput, queues, predicted and measured times"},
#ifdef CW_HAVE_DPDK
    {"gateway", gateway_main,
     "join the networks of two sites over a long link: at its rate, encrypted, in several streams"},
#endif
    {"help", help_main, "print this help, or that of one command: causeway help COMMAND"},
#ifdef CW_HAVE_DPDK
    {"node", node_main, "own a NIC of this host and share it among the ranks of all jobs and users"},
#endif
    {"offload", offload_main, "list the offloads of a NIC: the state of each, and the reason"},
    {"paper", paper_main, "rebuild tables and figures of the papers behind Causeway, on simulated networks"},
    {"plan", plan_main, "build, check, price, run and draw the schedules of collectives"},
    {"plogp", plogp_main, "measure this machine for MPI: the speed of its paths and algorithms"},
    {"run", run_main, "start an MPI program, or any other program, as one job on one or several hosts"},
#ifdef CW_HAVE_DPDK
    {"switch", switch_main,
     "emulate an Ethernet switch: rates, delays, queues and losses between processes and devices"},
#endif
    {"top", top_main, "show the network activity of all jobs on this machine; also for Prometheus"},
};

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static int command_unknown(const char *name)
{
    app_error("unknown command", name, "`causeway help` lists them");
    return APP_EXIT_USAGE;
}

static void overview_print(FILE *stream)
{
    fputs("usage: causeway COMMAND [OPTION...]\n\n"
          "Causeway runs MPI programs on clusters and emulated networks, and moves data past the kernel.\n"
          "To start a program: causeway run -n 4 ./program. To check this machine: causeway doctor.\n"
          "Each error is one line on stderr. It names the problem, the place and the remedy.\n\n"
          "commands:\n",
          stream);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        fprintf(stream, "  %-8s %s\n", commands[i].name, commands[i].help);
    }
    fputs("\noptions:\n"
          "  -h, --help                   print this help\n"
          "  --version                    print the version\n"
          "\nunits:\n"
          "  sizes     1500, 64K or 64KiB (1024), 64KB (1000)\n"
          "  rates     10Gbps\n"
          "  durations 20us, 3s\n"
          "  shares    1%\n"
          "\n"
          "exit codes:\n"
          "  0 success\n"
          "  1 the command ran and found a failure, such as a failing seed or a damaged file\n"
          "  2 wrong usage or bad input\n"
          "  3 the machine lacks a resource: a device, a privilege or memory\n"
          "  4 internal error\n",
          stream);
}

static int help_main(int argc, char **argv)
{
    char help_option[] = "--help";
    const struct command *command;

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        overview_print(stdout);
        return APP_EXIT_SUCCESS;
    }
    command = command_find(argv[1]);
    if (!command) {
        return command_unknown(argv[1]);
    }
    app_command_set(command->name);
    return command->run(2, (char *[]){argv[1], help_option, NULL});
}

static void unknown_report(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "causeway: %s\n", line);
}

int main(int argc, char **argv)
{
    const struct command *command;

    if (argc < 2) {
        overview_print(stderr);
        return APP_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("causeway " CW_VERSION);
        return APP_EXIT_SUCCESS;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        overview_print(stdout);
        return APP_EXIT_SUCCESS;
    }
    command = command_find(argv[1]);
    if (!command) {
        return command_unknown(argv[1]);
    }
    if (command->run != help_main) {
        app_command_set(command->name);
    }
    if (strcmp(command->name, "doctor") != 0 &&
        strcmp(command->name, "agent") != 0) { /* one reports more, one has no user */
        cw_settings_check(unknown_report, NULL);
        cw_settings_export();
    }
    int code = command->run(argc - 1, argv + 1);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == APP_EXIT_SUCCESS) {
        app_error("the results cannot be written", "stdout", "is the disk full, or the reader gone?");
        return APP_EXIT_MACHINE;
    }
    return code;
}
