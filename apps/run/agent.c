/* `causeway agent`: the other end of `causeway run` on each further host. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "control/launch/agent.h"

static const char help[] =
    "usage: causeway agent\n"
    "\n"
    "Runs the ranks of this host for a job of `causeway run`, which starts the agent with ssh or "
    "its --launcher.\n"
    "Both talk over the standard files of the agent. When these close, the agent ends its ranks "
    "and exits.\n"
    "\n"
    "options:\n"
    "  -h, --help                   print this help\n";

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
