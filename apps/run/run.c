/* `causeway run`: starts the processes of a job on this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "apps/run/emulate.h"
#include "apps/run/hosts.h"
#include "apps/run/options.h"
#include "apps/run/plan.h"
#include "apps/run/simulate.h"
#include "apps/run/wan.h"
#include "control/settings/setting.h"

static void emulation_orphaned(void *caller)
{
    run_emulate_stop(caller);
}

/* Between hosts that are processes of this machine. */
static int run_emulated(struct run_options *options, uint32_t ranks)
{
    struct run_emulation emulation;
    sigset_t handled, before;
    cw_launch_hold(&handled, &before);
    int code = run_emulate_start(&emulation, options->emulate, ranks, &handled);
    if (code == 0) {
        options->launch.mask = &before;
        options->launch.helper = (struct cw_launch_helper){
            .process = emulation.net.process, /* it still has statistics to write */
            .name = "the switch between the emulated hosts",
            .orphaned = emulation_orphaned,
            .caller = &emulation,
        };
        code = cw_launch_run(&options->launch);
    }
    int switch_code = run_emulate_stop(&emulation);
    return code == 0 ? switch_code : code;
}

/* Between hosts of a simulated network, in virtual time. */
static int run_simulated(struct run_options *options, uint32_t ranks)
{
    struct run_simulation simulation;
    sigset_t handled, before;
    cw_launch_hold(&handled, &before);
    int code = run_simulation_start(&simulation, options->simulate, ranks);
    if (code == 0) {
        options->launch.mask = &before;
        options->launch.helper = (struct cw_launch_helper){.process = simulation.process, .name = "the simulator"};
        code = cw_launch_run(&options->launch);
    }
    int simulator_code = run_simulation_stop(&simulation);
    return code == 0 ? simulator_code : code;
}

/* The words of a command line as they are before they are parsed; NULL: no memory. */
static char **words_copy(int argc, char **argv)
{
    char **words = calloc((size_t)argc + 1, sizeof(*words));
    for (int i = 0; words != NULL && i < argc; i++) {
        words[i] = strdup(argv[i]);
        if (words[i] == NULL) {
            return NULL; /* the command ends */
        }
    }
    return words;
}

static int job_run(struct run_options *options, uint32_t ranks, int argc, char **words)
{
    if (options->seeds > 0 && cw_setting(CW_SETTING_SIMULATION_SEED) == NULL) {
        return run_simulation_seeds(options->seeds, options->simulate, ranks, argc, words);
    }
    return options->simulate != NULL  ? run_simulated(options, ranks)
           : options->emulate != NULL ? run_emulated(options, ranks)
                                      : cw_launch_run(&options->launch);
}

int run_main(int argc, char **argv)
{
    struct run_options options;
    int code = APP_EXIT_SUCCESS;
    char **words = words_copy(argc, argv);
    if (words == NULL) {
        app_error("out of memory", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    if (run_options_parse(&options, argc, argv, &code)) {
        uint32_t ranks = 0;
        code = run_hosts_apply(&options);
        for (size_t i = 0; i < options.launch.program_count; i++) {
            ranks += options.programs[i].count;
        }
        code = code != 0 || options.plan == NULL ? code : run_plan_apply(options.plan, ranks);
        code = code == 0 ? run_wan_check(options.emulate) : code;
        if (code == 0) {
            code = job_run(&options, ranks, argc, words);
            int recorded = run_plan_recorded();
            code = code == 0 ? recorded : code;
        }
        run_hosts_dispose(&options);
        run_options_dispose(&options);
    }
    for (int i = 0; i < argc; i++) {
        free(words[i]);
    }
    free(words);
    return code;
}
