/* `causeway run`: starts the processes of a job on this machine. */
#include <stdio.h>
#include <string.h>

#include "apps/apps.h"
#include "apps/run_emulate.h"
#include "apps/run_options.h"

/* Between hosts that are processes of this machine. */
static int run_emulated(struct run_options *options)
{
    struct run_emulation emulation;
    uint32_t ranks = 0;
    for (size_t i = 0; i < options->launch.program_count; i++) {
        ranks += options->programs[i].count;
    }
    int code = run_emulate_start(&emulation, options->emulate, ranks);
    if (code == 0) {
        options->launch.networks = run_emulate_networks(&emulation);
        code = cw_launch_run(&options->launch);
    }
    run_emulate_stop(&emulation);
    return code;
}

int run_main(int argc, char **argv)
{
    struct run_options options;
    int code = APP_EXIT_SUCCESS;
    if (run_options_parse(&options, argc, argv, &code)) {
        code = options.emulate == NULL ? cw_launch_run(&options.launch) : run_emulated(&options);
        run_options_dispose(&options);
    }
    return code;
}
