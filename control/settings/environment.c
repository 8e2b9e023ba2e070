#include <stdlib.h>

#include "control/settings/setting.h"

char *cw_environment(const char *name)
{
    return getenv(name);
}

void cw_environment_clear(const char *name)
{
    unsetenv(name);
}
