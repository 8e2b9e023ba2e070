#include "control/settings/settings.h"
#include "control/settings/setting.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/limits.h"

static_assert(CW_SETTINGS_WATCHDOG_DEFAULT_S == 60 && CW_DEFAULT_FAILURE_TIMEOUT_NS == 10000000000ull,
              "the table of setting.h says so");

void cw_settings_plogp(struct cw_settings_place *place)
{
    cw_settings_place_find(cw_setting(CW_SETTING_PLOGP), cw_setting_name(CW_SETTING_PLOGP), "plogp.json", place);
}

/* A number of seconds, 0 or at least `least_s`. */
static bool seconds_read(enum cw_setting setting, double least_s, uint64_t *bound_ns, const char **origin)
{
    const char *word = cw_setting(setting);
    char *end = NULL;
    *origin = cw_setting_origin(setting);
    if (word == NULL) {
        return true;
    }
    double seconds = strtod(word, &end);
    if (end == word || *end != '\0' || !(seconds == 0 || (seconds >= least_s && seconds <= 1e8))) {
        return false;
    }
    *bound_ns = (uint64_t)(seconds * 1e9);
    return true;
}

bool cw_settings_watchdog(uint64_t *bound_ns, const char **origin)
{
    *bound_ns = CW_SETTINGS_WATCHDOG_DEFAULT_S * UINT64_C(1000000000);
    return seconds_read(CW_SETTING_WATCHDOG, 0, bound_ns, origin);
}

bool cw_settings_failure_timeout(uint64_t *bound_ns, const char **origin)
{
    *bound_ns = CW_DEFAULT_FAILURE_TIMEOUT_NS;
    return seconds_read(CW_SETTING_FAILURE_TIMEOUT, 1, bound_ns, origin);
}
