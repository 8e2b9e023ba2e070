/* causeway paper: starts paper.py. */
#include "apps/cli/cli.h"
#include "apps/cli/script.h"

int paper_main(int argc, char **argv)
{
    return app_script_become("paper/paper.py", argc, argv);
}
