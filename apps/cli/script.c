#include "apps/cli/script.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/cli/job.h"

enum { ARGUMENTS_MAX = 64 };

int app_script_become(const char *script, int argc, char **argv)
{
    char path[600], self[600], interpreter[] = "python3";
    char *arguments[ARGUMENTS_MAX + 4] = {interpreter, path, self};
    if (argc > ARGUMENTS_MAX) {
        app_error("too many arguments", argv[ARGUMENTS_MAX], "--help has the usage");
        return APP_EXIT_USAGE;
    }
    if (!app_job_program(script, path, sizeof(path))) {
        return APP_EXIT_MACHINE;
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    for (int i = 1; i < argc; i++) {
        arguments[2 + i] = argv[i];
    }
    execvp(interpreter, arguments);
    app_error("python3 cannot be started", strerror(errno), "apt-get install python3");
    return APP_EXIT_MACHINE;
}
