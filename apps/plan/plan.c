/* causeway plan: schedules of collectives as files that are built, checked, read, priced and drawn. */
#include <stdio.h>
#include <string.h>

#include "apps/plan/plan.h"

struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct subcommand subcommands[] = {
    {"list", plan_list_main, "names every collective and its algorithms"},
    {"build", plan_build_main, "builds the schedules of all ranks and writes them to a file"},
    {"compile", plan_compile_main, "makes plans for the collective calls that a run has recorded"},
    {"check", plan_check_main, "proves that a plan is right in every order that it allows"},
    {"dump", plan_dump_main, "prints a plan as text"},
    {"choose", plan_choose_main, "ranks the algorithms for a problem on a network"},
    {"price", plan_price_main, "prints the time of a plan on a network"},
    {"draw", plan_draw_main, "draws a plan as SVG: ranks by time, or an all-to-all's phases"},
    {"networks", plan_networks_main, "names the networks that come with the program"},
};

static void overview_print(FILE *stream)
{
    fputs("usage: causeway plan SUBCOMMAND [OPTION...]\n"
          "\n"
          "A plan is the work of every rank in one collective, as data: puts, waits, copies and reductions with their\n"
          "dependencies.\n"
          "\n"
          "subcommands:\n",
          stream);
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
        fprintf(stream, "  %-8s %s\n", subcommands[i].name, subcommands[i].help);
    }
    fputs("\n"
          "For example:\n"
          "  causeway plan build --collective bcast --algorithm segmented-chain --ranks 16 --root 3 --size 100003 -o "
          "x.plan\n"
          "  causeway plan check x.plan\n"
          "`causeway plan SUBCOMMAND --help` lists the options.\n",
          stream);
}

int plan_main(int argc, char **argv)
{
    static char name[32];
    if (argc < 2) {
        overview_print(stderr);
        return APP_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        overview_print(stdout);
        return APP_EXIT_SUCCESS;
    }
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
        if (strcmp(subcommands[i].name, argv[1]) == 0) {
            snprintf(name, sizeof(name), "plan %s", argv[1]);
            app_command_set(name);
            return subcommands[i].run(argc - 1, argv + 1);
        }
    }
    app_error("unknown subcommand", argv[1], "`causeway plan --help` lists them");
    return APP_EXIT_USAGE;
}
