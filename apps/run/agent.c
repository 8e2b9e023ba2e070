/* `causeway agent`: the other end of `causeway run` on each further host. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "control/launch/agent.h"

static const char help[] = "usage: causeway agent\n"
                           "\n"
                           "Serves a job on this host for `causeway run`, which starts it by ssh, or by what its "
                           "--launcher names, and is at the\n"
                           "other end of its standard files. It ends its ranks and itself when these close.\n"
                           "\n"
                           "options:\n"
                           "  -h, --help                   prints this\n";

int agent_main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return APP_EXIT_SUCCESS;
    }
    if (argc > 1 || isatty(STDIN_FILENO)) {
        app_error(argc > 1 ? "unexpected argument" : "nothing to serve", argc > 1 ? argv[1] : NULL,
                  "`causeway run --hosts HOST,HOST PROGRAM` starts agents where they are wanted");
        return APP_EXIT_USAGE;
    }
    return cw_launch_agent();
}
