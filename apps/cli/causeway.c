/* The `causeway` command: finds the subcommand in a table and calls it. */
#include <stdio.h>
#include <string.h>

#include "apps/cli/cli.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static int help_main(int argc, char **argv);

static const struct command commands[] = {
    {"agent", agent_main, "serves `causeway run` on another host, which starts it; nobody else does"},
    {"bench", bench_main, "measures puts, beside the raw limit of the same run, and multicast"},
#ifdef CW_HAVE_DPDK
    {"demo", demo_main, "moves a file between two emulated hosts through a lossy switch and verifies it"},
#endif
    {"doctor", doctor_main,
     "tells what this machine can do, what Causeway would choose, and what to do about obstacles"},
    {"draw", draw_main, "draws what an emulated network did: throughput, queues, predicted and measured times"},
#ifdef CW_HAVE_DPDK
    {"gateway", gateway_main, "joins the networks of two sites across a wide area: paced, in several streams, sealed"},
#endif
    {"help", help_main, "prints this, or the help of one command: causeway help COMMAND"},
#ifdef CW_HAVE_DPDK
    {"node", node_main, "owns a NIC of this host, and serves the ranks of all jobs and users with it"},
#endif
    {"offload", offload_main, "lists what a NIC takes over from the core, what of it is on, and why not"},
    {"plan", plan_main, "builds, checks, prices, runs and draws the schedules of collectives"},
    {"plogp", plogp_main, "measures this machine's paths and algorithms, for MPI to choose by"},
    {"run", run_main, "starts the processes of a program, any number of them, as one job on this machine or several"},
    {"sim", sim_main, "runs random traffic under random faults in virtual time, many seeds, every byte checked"},
#ifdef CW_HAVE_DPDK
    {"switch", switch_main, "joins processes and devices by an Ethernet switch with rates, delays, queues and losses"},
#endif
    {"top", top_main, "shows what the processes of all jobs on this machine do on the network, or tells Prometheus"},
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
          "Causeway moves bytes between processes by one verb, the notified put, over any network interface.\n"
          "An error is one line on stderr: what, where and what to do.\n\n"
          "commands:\n",
          stream);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        fprintf(stream, "  %-8s %s\n", commands[i].name, commands[i].help);
    }
    fputs("\noptions:\n"
          "  -h, --help                   prints this\n"
          "  --version                    prints the version\n"
          "\nunits:\n"
          "  sizes     1500, 64K or 64KiB (1024), 64KB (1000)\n"
          "  rates     10Gbps\n"
          "  durations 20us, 3s\n"
          "  shares    1%\n"
          "\n"
          "exit codes:\n"
          "  0 success\n"
          "  1 the command ran and found a failure (a failing seed, a damaged file)\n"
          "  2 wrong usage or bad input\n"
          "  3 the machine lacks something (a device, a privilege, memory)\n"
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
    int code = command->run(argc - 1, argv + 1);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == APP_EXIT_SUCCESS) {
        app_error("the results cannot be written", "stdout", "is the disk full, or the reader gone?");
        return APP_EXIT_MACHINE;
    }
    return code;
}
