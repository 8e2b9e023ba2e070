/* The settings of MPI: the file of measured parameters, overrides of algorithms, transports and time-outs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/doctor/doctor.h"
#include "collectives/choose/measured.h"
#include "collectives/choose/override.h"
#include "control/job/wan_choice.h"
#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "dataplane/status.h"

static const char todo[] = "`causeway plogp` measures this machine and writes the file";

static void report_file(struct doctor *doctor, const struct cw_settings_place *place)
{
    struct cw_measured *measured;
    char error[400];
    char text[CW_SETTINGS_PATH_BYTES + 500];
    size_t length;
    char *read = place->path[0] == '\0' ? NULL : cw_settings_read(place->path, CW_MEASURED_TEXT_MAX, &length);
    if (read == NULL) {
        bool is_wrong = place->path[0] != '\0' && (place->is_wanted || errno != ENOENT);
        snprintf(text, sizeof(text), "%s%s%s", is_wrong ? place->path : "none: built-in parameters are used",
                 is_wrong ? ": " : "", is_wrong ? strerror(errno) : "");
        doctor_report(doctor, "choice", "measured parameters", is_wrong ? DOCTOR_MISSING : DOCTOR_NOTE, text, todo);
        return;
    }
    if (cw_measured_decode(read, length, &measured, error, sizeof(error)) == CW_OK) {
        snprintf(text, sizeof(text), "%s: %" PRIu32 " tables of parameters, %" PRIu32 " tests of algorithms",
                 place->path, measured->network_count, measured->test_count);
        doctor_report(doctor, "choice", "measured parameters", DOCTOR_GOOD, text, NULL);
        cw_measured_destroy(measured);
    } else {
        snprintf(text, sizeof(text), "%s: %s", place->path, error);
        doctor_report(doctor, "choice", "measured parameters", DOCTOR_MISSING, text, todo);
    }
    free(read);
}

/* Reports an error in a value, and the accepted values. */
static void complain(struct doctor *doctor, enum cw_setting setting, const char *what)
{
    char text[700];
    snprintf(text, sizeof(text), "'%.60s': %s", cw_setting(setting), what);
    doctor_report(doctor, "choice", cw_setting_name(setting), DOCTOR_MISSING, text, "MPI_Init will fail");
}

/* Those settings whose values are checked here. */
static void values_check(struct doctor *doctor)
{
    struct cw_wan_choice choice = {.pacing = CW_PACING_ON};
    struct cw_override override;
    uint64_t bound_ns;
    const char *origin;
    char text[600];
    if (!cw_settings_watchdog(&bound_ns, &origin)) {
        complain(doctor, CW_SETTING_WATCHDOG, "expected: a number of seconds, or 0 for never");
    }
    if (!cw_settings_failure_timeout(&bound_ns, &origin)) {
        complain(doctor, CW_SETTING_FAILURE_TIMEOUT, "expected: seconds, 1 or more, or 0 for never");
    }
    for (uint32_t i = 0; i < CW_WAN_VARIABLES; i++) {
        if (!cw_wan_value_set(i, cw_setting(cw_wan_variables[i].setting), &choice)) {
            snprintf(text, sizeof(text), "expected: %s", cw_wan_variables[i].wanted);
            complain(doctor, cw_wan_variables[i].setting, text);
        }
    }
    const char *words = cw_setting(CW_SETTING_ALGORITHM);
    if (words != NULL && cw_override_parse(words, &override, text, sizeof(text)) != CW_OK) {
        complain(doctor, CW_SETTING_ALGORITHM, text);
    }
}

static void unknown_report(void *context, const char *line)
{
    doctor_report(context, "choice", "settings", DOCTOR_MISSING, line, "unset or correct it");
}

void doctor_choices(struct doctor *doctor)
{
    struct cw_settings_place place;
    cw_settings_plogp(&place);
    for (uint32_t i = 0; i < CW_SETTINGS; i++) {
        enum cw_setting setting = (enum cw_setting)i;
        const char *value = cw_setting(setting), *origin = cw_setting_origin(setting);
        if (setting == CW_SETTING_PLOGP) { /* it is found without a setting, too */
            value = place.path[0] == '\0' ? NULL : place.path;
            origin = place.origin;
        }
        if (cw_setting_kind(setting) != CW_SETTING_LAUNCHER) {
            value = setting == CW_SETTING_JOB_KEY && value != NULL ? "(secret)" : value;
            doctor_setting(doctor, cw_setting_name(setting), value != NULL ? value : cw_setting_default(setting),
                           origin, cw_setting_meaning(setting));
        }
    }
    report_file(doctor, &place);
    values_check(doctor);
    cw_settings_check(unknown_report, doctor);
}
