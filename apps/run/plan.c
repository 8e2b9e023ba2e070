#include "apps/run/plan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "collectives/file/bundle.h"
#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "dataplane/status.h"

enum { BUNDLE_FILE_MAX = 1 << 30 };

/* Sets the name for the ranks, which may run in another folder. False: the name is too long. */
static bool name_publish(enum cw_setting setting, const char *path)
{
    char folder[PATH_MAX] = "", whole[CW_SETTINGS_PATH_BYTES];
    bool is_whole = path[0] == '/' || getcwd(folder, sizeof(folder)) != NULL;
    int length = snprintf(whole, sizeof(whole), "%s%s%s", folder, folder[0] != '\0' ? "/" : "", path);
    return is_whole && length < (int)sizeof(whole) && cw_setting_set(setting, whole);
}

/* Of the file that is to become the trace, before the job. */
static struct stat trace_before;
static bool is_recording;

bool run_plan_record(const char *path, int *exit_code)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        slash[1] = '\0';
    }
    trace_before = (struct stat){0};
    if (stat(path, &trace_before) == 0 && !S_ISREG(trace_before.st_mode)) {
        app_error("the trace cannot be written there", path, "a file is wanted, no folder, device or pipe");
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    if (path[0] == '\0' || (slash != NULL && slash[1] == '\0' && path[strlen(path) - 1] == '/') ||
        access(slash == NULL ? "." : folder, W_OK) != 0) {
        app_error("the trace cannot be written there", path, path[0] == '\0' ? "a file is wanted" : strerror(errno));
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    if (!name_publish(CW_SETTING_RECORD, path)) {
        app_error("the name of the trace is too long", path, "a shorter one is wanted");
        *exit_code = APP_EXIT_USAGE;
        return false;
    }
    is_recording = true;
    return true;
}

/* A trace is written under another name first: a new one is another file. */
int run_plan_recorded(void)
{
    struct stat now;
    const char *path = cw_setting(CW_SETTING_RECORD);
    if (is_recording && path != NULL && (stat(path, &now) != 0 || now.st_ino == trace_before.st_ino)) {
        app_error("nothing was recorded", path,
                  "the program has to come to its MPI_Finalize, and the trace to fit on the disk");
        return APP_EXIT_FAILURE;
    }
    return APP_EXIT_SUCCESS;
}

int run_plan_apply(const char *path, uint32_t ranks)
{
    size_t length;
    struct cw_bundle *bundle;
    char error[400];
    char *bytes = cw_settings_read(path, BUNDLE_FILE_MAX, &length);
    if (bytes == NULL) {
        app_error("the plan cannot be read", path, strerror(errno));
        return APP_EXIT_USAGE;
    }
    int status = cw_bundle_decode(bytes, length, &bundle, error, sizeof(error));
    free(bytes);
    if (status != CW_OK) {
        app_error(error, path, "`causeway plan compile` makes one");
        return status == CW_ERROR_MEMORY ? APP_EXIT_MACHINE : APP_EXIT_USAGE;
    }
    uint32_t wanted = bundle->ranks;
    cw_bundle_destroy(bundle);
    if (wanted != ranks) {
        snprintf(error, sizeof(error), "the plan is for %u ranks, this job has %u", wanted, ranks);
        app_error(error, path, "record and compile it with as many");
        return APP_EXIT_USAGE;
    }
    if (!name_publish(CW_SETTING_PLAN, path)) {
        app_error("the name of the plan is too long", path, "a shorter one is wanted");
        return APP_EXIT_USAGE;
    }
    return APP_EXIT_SUCCESS;
}
