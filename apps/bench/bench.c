/* causeway bench: measurements, each next to the limit of the same run. */
#include "apps/bench/bench.h"

#include <stdio.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "apps/cli/progress.h"

#ifndef CW_HAVE_DPDK
static int bench_without_dpdk(int argc, char **argv)
{
    static const struct app_option none[] = {{0}};
    char usage[128];
    snprintf(usage, sizeof(usage), "bench %s\n\nThis build has no DPDK, which this benchmark needs.", argv[0]);
    int code;
    if (app_options_parse(usage, none, 0, argc, argv, &code) < 0) {
        return code;
    }
    app_error("this build has no DPDK, which this benchmark needs", argv[0],
              "install libdpdk-dev and configure with -Ddpdk=enabled");
    return APP_EXIT_MACHINE;
}
#define bench_put bench_without_dpdk
#endif

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} benchmarks[] = {
    {"put", bench_put, "latency and goodput of puts, compared with the raw limit of the same port"},
    {"cost", bench_cost, "cost of the protocol for a core, without driver and second core"},
    {"codec", bench_codec, "ratios and costs of codecs, and the links for which they pay"},
};

static void list_print(void)
{
    printf("usage: causeway bench SUBCOMMAND [OPTION...]\n\nMeasures puts and their parts.\n\n"
           "subcommands:\n");
    for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++) {
        printf("  %-9s %s\n", benchmarks[i].name, benchmarks[i].help);
    }
    printf("\n"
           "`causeway bench SUBCOMMAND --help` lists the options.\n");
}

/* Programs that read JSON get no other output; and a command that ends at once needs no progress. */
static bool is_quiet(int argc, char **argv)
{
    bool quiet = false;
    for (int i = 1; i < argc; i++) {
        quiet = quiet || strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    }
    return quiet;
}

static int bench_run(size_t number, int argc, char **argv)
{
    char what[32];
    snprintf(what, sizeof(what), "bench %s", benchmarks[number].name);
    app_progress_begin(what, is_quiet(argc, argv));
    int code = benchmarks[number].run(argc, argv);
    app_progress_end();
    return code;
}

int bench_main(int argc, char **argv)
{
    char list[400] = "there are";
    for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++) {
        if (argc > 1 && strcmp(argv[1], benchmarks[i].name) == 0) {
            return bench_run(i, argc - 1, argv + 1);
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s %s", i == 0 ? "" : ",", benchmarks[i].name);
    }
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        list_print();
        return APP_EXIT_SUCCESS;
    }
    size_t used = strlen(list);
    snprintf(list + used, sizeof(list) - used, "; each has --help");
    app_error(argc < 2 ? "which benchmark?" : "no such benchmark", argv[1], list);
    return APP_EXIT_USAGE;
}
