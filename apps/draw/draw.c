/* causeway draw: starts draw.py. */
#include "apps/cli/cli.h"
#include "apps/cli/script.h"

int draw_main(int argc, char **argv)
{
    return app_script_become("draw/draw.py", argc, argv);
}
