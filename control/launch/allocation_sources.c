/* Where the texts come from that name hosts: files, and variables of batch systems. */
#include "control/launch/allocation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/setting.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum { READ_BYTES = 65536 };

int cw_launch_hosts_file(struct cw_launch_allocation *allocation, const char *path, char *error, size_t error_bytes)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t length = 0;
    size_t got = 1;
    int status = CW_OK;
    while (file != NULL && status == CW_OK && got > 0) {
        char *more = realloc(text, length + READ_BYTES);
        if (more == NULL) {
            status = cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "%s: no memory for it", path);
            break;
        }
        text = more;
        got = fread(text + length, 1, READ_BYTES, file);
        length += got;
        if (length > CW_LAUNCH_HOSTFILE_BYTES) {
            status = cw_error_text(error, error_bytes, CW_ERROR_LIMIT,
                                   "%s: more than %d MB are no file of hosts (a host a line: a:4)", path,
                                   CW_LAUNCH_HOSTFILE_BYTES >> 20);
        }
    }
    if (file == NULL || (status == CW_OK && ferror(file) != 0)) {
        status = cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "%s: the hosts cannot be read: %s", path,
                               strerror(errno));
    }
    if (file != NULL) {
        fclose(file);
    }
    status = status == CW_OK ? cw_launch_hosts_lines(allocation, path, text, length, error, error_bytes) : status;
    free(text);
    return status;
}

static const char *variable(const char *name)
{
    const char *value = cw_environment(name);
    return value != NULL && value[0] != 0 ? value : NULL;
}

int cw_launch_hosts_environment(struct cw_launch_allocation *allocation, const char **source, char *error,
                                size_t error_bytes)
{
    const char *nodes = variable("SLURM_JOB_NODELIST");
    const char *file = variable("PBS_NODEFILE");
    int status = CW_OK;
    if (nodes != NULL) {
        const char *tasks = variable("SLURM_TASKS_PER_NODE");
        tasks = tasks != NULL ? tasks : variable("SLURM_JOB_CPUS_PER_NODE"); /* the same form */
        status = cw_launch_hosts_slurm(allocation, nodes, tasks, error, error_bytes);
    } else if (file != NULL) {
        status = cw_launch_hosts_file(allocation, file, error, error_bytes);
    }
    if (status == CW_OK) {
        *source = nodes != NULL ? "Slurm" : file != NULL ? "PBS" : NULL;
    }
    return status;
}
