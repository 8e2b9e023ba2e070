#include "apps/run/hosts.h"

#include <string.h>

#include "apps/cli/cli.h"
#include "dataplane/status.h"

/* Tells; an exit code. */
static int reject(int status, const char *error)
{
    app_error(error, NULL, NULL);
    return status == CW_ERROR_MEMORY ? APP_EXIT_MACHINE : APP_EXIT_USAGE;
}

static int allocation_read(struct run_options *options)
{
    char error[512] = "";
    const char *source = NULL;
    struct cw_launch_allocation *allocation = &options->allocation;
    int status = CW_OK;
    if (options->hosts != NULL) {
        status = cw_launch_hosts_list(allocation, "--hosts", options->hosts, error, sizeof(error));
    }
    if (status == CW_OK && options->hostfile != NULL) {
        status = cw_launch_hosts_file(allocation, options->hostfile, error, sizeof(error));
    }
    if (status == CW_OK && options->hosts == NULL && options->hostfile == NULL) {
        status = cw_launch_hosts_environment(allocation, &source, error, sizeof(error));
        if (source != NULL && strcmp(source, "Slurm") == 0 && options->launch.launcher == NULL) {
            options->launch.launcher = "srun"; /* ssh may be forbidden there, and Slurm counts what it starts itself */
        }
    }
    return status == CW_OK ? 0 : reject(status, error);
}

int run_hosts_apply(struct run_options *options)
{
    struct cw_launch_allocation *allocation = &options->allocation;
    bool is_named = options->hosts != NULL || options->hostfile != NULL;
    if (options->emulate != NULL) {
        return is_named ? reject(CW_ERROR_ARGUMENT, "--emulate brings its own hosts: leave --hosts and --hostfile out")
                        : 0;
    }
    int code = allocation_read(options);
    if (code != 0 || allocation->count == 0) {
        return code;
    }
    for (uint32_t i = 0; i < allocation->count && options->per_host > 0; i++) {
        allocation->slots += options->per_host - allocation->hosts[i].slots;
        allocation->hosts[i].slots = options->per_host;
    }
    if (!options->counts_given && options->launch.program_count == 1) {
        options->programs[0].count = allocation->slots;
    }
    options->launch.hosts = allocation->hosts;
    options->launch.host_count = allocation->count;
    return 0;
}

void run_hosts_dispose(struct run_options *options)
{
    cw_launch_allocation_dispose(&options->allocation);
}
