#include "apps/run/wan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "control/job/wan_choice.h"
#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "control/topology/clusters.h"
#include "dataplane/status.h"

static const char *host_name(void *context, uint32_t rank)
{
    (void)rank;
    return context;
}

/* Emulated hosts that are a number; 0: none. */
static uint32_t emulated_count(const char *emulate)
{
    unsigned long hosts = emulate == NULL ? 0 : strtoul(emulate, NULL, 10);
    return hosts <= CW_TOPOLOGY_HOSTS_MAX ? (uint32_t)hosts : 0;
}

static int topology_check(const char *path, const char *emulate)
{
    char host[CW_TOPOLOGY_NAME_BYTES] = "";
    char place[CW_SETTINGS_PATH_BYTES + 32];
    char error[CW_TOPOLOGY_ERROR_BYTES + sizeof(place)];
    struct cw_clusters *clusters = NULL;
    size_t length = 0;
    char *text = cw_settings_read(path, CW_TOPOLOGY_FILE_BYTES, &length);
    if (text == NULL) {
        app_error("CAUSEWAY_TOPOLOGY cannot be read", path, strerror(errno));
        return APP_EXIT_USAGE;
    }
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(place, sizeof(place), "CAUSEWAY_TOPOLOGY: %.1000s", path);
    const struct cw_clusters_request request = {
        .text = text,
        .length = length,
        .place = place,
        .ranks = 1,
        .emulated = emulated_count(emulate),
        .host_name = host_name,
        .context = host,
    };
    int status = cw_clusters_create(&request, &clusters, error, sizeof(error));
    free(text);
    cw_clusters_destroy(clusters);
    if (status != CW_OK) {
        app_error(error, NULL, NULL);
    }
    return status == CW_OK ? 0 : status == CW_ERROR_MEMORY ? APP_EXIT_MACHINE : APP_EXIT_USAGE;
}

int run_wan_check(const char *emulate)
{
    const char *path = cw_setting(CW_SETTING_TOPOLOGY);
    struct cw_wan_choice choice = {.pacing = CW_PACING_ON};
    bool brings_own = emulate != NULL && strncmp(emulate, "topology=", strlen("topology=")) == 0;
    for (uint32_t i = 0; i < CW_WAN_VARIABLES; i++) {
        const char *word = cw_setting(cw_wan_variables[i].setting);
        if (!cw_wan_value_set(i, word, &choice)) {
            char wanted[120];
            snprintf(wanted, sizeof(wanted), "%s is %s", cw_setting_name(cw_wan_variables[i].setting),
                     cw_wan_variables[i].wanted);
            app_error("bad value", word, wanted);
            return APP_EXIT_USAGE;
        }
    }
    return path == NULL || path[0] == '\0' || brings_own ? 0 : topology_check(path, emulate);
}
