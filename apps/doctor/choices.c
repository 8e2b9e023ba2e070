/* What MPI chooses its algorithms by: the file of measured parameters, and overrides; and how patient it is. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/doctor/doctor.h"
#include "collectives/choose/measured.h"
#include "collectives/choose/override.h"
#include "control/job/wan_choice.h"
#include "control/settings/settings.h"
#include "dataplane/status.h"

static const char todo[] = "causeway plogp measures and writes one";

static void tell_file(struct doctor *doctor, const struct cw_settings_place *place)
{
    struct cw_measured *measured;
    char error[400];
    char text[CW_SETTINGS_PATH_BYTES + 500];
    size_t length;
    char *read = place->path[0] == '\0' ? NULL : cw_settings_read(place->path, CW_MEASURED_TEXT_MAX, &length);
    if (read == NULL) {
        bool is_wrong = place->path[0] != '\0' && (place->is_wanted || errno != ENOENT);
        snprintf(text, sizeof(text), "%s%s%s", is_wrong ? place->path : "none: built-in figures", is_wrong ? ": " : "",
                 is_wrong ? strerror(errno) : "");
        doctor_tell(doctor, "choice", "measured parameters", is_wrong ? DOCTOR_MISSING : DOCTOR_NOTE, text, todo);
        return;
    }
    if (cw_measured_decode(read, length, &measured, error, sizeof(error)) == CW_OK) {
        snprintf(text, sizeof(text), "%s: %" PRIu32 " tables of parameters, %" PRIu32 " tests", place->path,
                 measured->network_count, measured->test_count);
        doctor_tell(doctor, "choice", "measured parameters", DOCTOR_GOOD, text, NULL);
        cw_measured_destroy(measured);
    } else {
        snprintf(text, sizeof(text), "%s: %s", place->path, error);
        doctor_tell(doctor, "choice", "measured parameters", DOCTOR_MISSING, text, todo);
    }
    free(read);
}

/* 0: never. */
static void tell_duration(struct doctor *doctor, const char *name, uint64_t bound_ns, const char *origin,
                          const char *meaning)
{
    char text[48];
    snprintf(text, sizeof(text), bound_ns == 0 ? "never" : "%g s", (double)bound_ns / 1e9);
    doctor_setting(doctor, name, text, origin, meaning);
}

/* A number of seconds that `read` finds. */
static void tell_seconds(struct doctor *doctor, const char *name, bool (*read)(uint64_t *ns, const char **origin),
                         const char *wanted, const char *what)
{
    uint64_t bound_ns;
    const char *origin;
    if (!read(&bound_ns, &origin)) {
        doctor_tell(doctor, "choice", name, DOCTOR_MISSING, getenv(name), wanted);
    }
    tell_duration(doctor, name, bound_ns, origin, what);
}

static void tell_variable(struct doctor *doctor, const char *name, const char *what)
{
    const char *value = getenv(name);
    bool is_set = value != NULL && value[0] != '\0';
    doctor_setting(doctor, name, is_set ? value : "none", is_set ? "environment" : "default", what);
}

static void tell_wan(struct doctor *doctor)
{
    struct cw_wan_choice choice = {.relays = 0};
    for (uint32_t i = 0; i < CW_WAN_VARIABLES; i++) {
        const struct cw_wan_variable *variable = &cw_wan_variables[i];
        const char *word = getenv(variable->name);
        char value[CW_WAN_WORD_BYTES];
        char wanted[80];
        bool is_good = cw_wan_take(i, word, &choice);
        bool is_set = is_good && word != NULL && word[0] != '\0';
        cw_wan_word(i, &choice, value);
        doctor_setting(doctor, variable->name, value, is_set ? "environment" : "default", variable->what);
        if (!is_good) {
            snprintf(wanted, sizeof(wanted), "%s is wanted", variable->wanted);
            doctor_tell(doctor, "choice", variable->name, DOCTOR_MISSING, wanted, "MPI_Init will fail");
        }
    }
}

void doctor_choices(struct doctor *doctor)
{
    struct cw_settings_place place;
    struct cw_override override;
    char error[600];
    const char *words = getenv("CAUSEWAY_ALGORITHM");
    bool is_set = words != NULL && words[0] != '\0';
    cw_settings_plogp(&place);
    doctor_setting(doctor, "CAUSEWAY_PLOGP", place.path[0] == '\0' ? "none" : place.path, place.origin,
                   "the file of measured parameters that MPI chooses algorithms by");
    doctor_setting(doctor, "CAUSEWAY_ALGORITHM", is_set ? words : "none", is_set ? "environment" : "default",
                   "overrides of algorithms, by name");
    tell_variable(doctor, "CAUSEWAY_PLAN", "plans that serve the collective calls they were made for");
    tell_variable(doctor, "CAUSEWAY_RECORD", "where a run's collective calls are written to");
    tell_variable(doctor, "CAUSEWAY_NET", "the way, interface, address or subnet by which other hosts are reached");
    tell_variable(doctor, "CAUSEWAY_RDMA",
                  "auto: the RDMA device with the rank's address, beside it; off; or the name of one");
    tell_variable(doctor, "CAUSEWAY_NODE", "the NIC on which each host of a job gets a node of its own");
    tell_variable(doctor, "CAUSEWAY_PORTS", "the UDP ports that ranks may use between hosts");
    tell_variable(doctor, "CAUSEWAY_INTEGRITY", "software: CRCs whatever NICs verify");
    tell_variable(doctor, "CAUSEWAY_COMPRESSION",
                  "auto: what is sooner at its target compressed; off; on; or a codec's name");
    tell_variable(doctor, "CAUSEWAY_MULTICAST", "off: collectives without multicast groups");
    tell_variable(doctor, "CAUSEWAY_MULTICAST_FILTERS",
                  "multicast addresses that a port lets in at a time, 2 to 64; 20 if it is not set");
    tell_seconds(doctor, "CAUSEWAY_WATCHDOG", cw_settings_watchdog,
                 "a number of seconds is wanted, or 0 for never; MPI_Init will fail",
                 "how long a wait of MPI lasts before the ranks say what they wait for");
    tell_seconds(doctor, "CAUSEWAY_FAILURE_TIMEOUT", cw_settings_failure_timeout,
                 "seconds are wanted, 1 or more, or 0 for never; MPI_Init will fail",
                 "how long a rank on another host that owes an answer may be silent before it is taken for dead");
    tell_variable(doctor, "CAUSEWAY_TOPOLOGY", "the file of clusters, hosts and links of a wide area");
    tell_wan(doctor);
    tell_file(doctor, &place);
    if (is_set && cw_override_parse(words, NULL, &override, error, sizeof(error)) != CW_OK) {
        doctor_tell(doctor, "choice", "CAUSEWAY_ALGORITHM", DOCTOR_MISSING, error, "MPI_Init will fail");
    }
}
