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
#include "control/settings/settings.h"
#include "dataplane/status.h"

static const char todo[] = "`causeway plogp` measures this machine and writes the file";

static void tell_file(struct doctor *doctor, const struct cw_settings_place *place)
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
        doctor_tell(doctor, "choice", "measured parameters", is_wrong ? DOCTOR_MISSING : DOCTOR_NOTE, text, todo);
        return;
    }
    if (cw_measured_decode(read, length, &measured, error, sizeof(error)) == CW_OK) {
        snprintf(text, sizeof(text), "%s: %" PRIu32 " tables of parameters, %" PRIu32 " tests of algorithms",
                 place->path, measured->network_count, measured->test_count);
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

/* A number of seconds, from `read`. */
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
            snprintf(wanted, sizeof(wanted), "expected: %s", variable->wanted);
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
                   "file of measured parameters, from which MPI chooses algorithms");
    doctor_setting(doctor, "CAUSEWAY_ALGORITHM", is_set ? words : "none", is_set ? "environment" : "default",
                   "algorithms by name, instead of the choice of MPI");
    tell_variable(doctor, "CAUSEWAY_PLAN", "file of plans for recurring collective calls");
    tell_variable(doctor, "CAUSEWAY_RECORD", "file that records the collective calls of a run");
    tell_variable(doctor, "CAUSEWAY_NET", "transport, interface, address or subnet for packets to other hosts");
    tell_variable(doctor, "CAUSEWAY_RDMA",
                  "RDMA device: auto (the one that has the address of the rank), off, or a name");
    tell_variable(doctor, "CAUSEWAY_NODE", "NIC for a node that is started on each host, for the job only");
    tell_variable(doctor, "CAUSEWAY_PORTS", "UDP ports that ranks may use between hosts");
    tell_variable(doctor, "CAUSEWAY_INTEGRITY",
                  "end-to-end: compute CRCs even if NICs, kernels or memory make them unnecessary");
    tell_variable(doctor, "CAUSEWAY_CONGESTION", "loss: congestion control as in the TCP of 2003, to compare with");
    tell_variable(doctor, "CAUSEWAY_COMPRESSION",
                  "compression in flight: auto (if it shortens delivery), off, on, or a codec");
    tell_variable(doctor, "CAUSEWAY_MULTICAST", "off: collectives do not use multicast groups");
    tell_variable(doctor, "CAUSEWAY_MULTICAST_FILTERS",
                  "multicast addresses that a port accepts at a time, 2 to 64; default 20");
    tell_seconds(doctor, "CAUSEWAY_WATCHDOG", cw_settings_watchdog,
                 "expected: a number of seconds, or 0 for never; MPI_Init will fail",
                 "duration of an MPI wait after which all ranks report the call that blocks them");
    tell_seconds(doctor, "CAUSEWAY_FAILURE_TIMEOUT", cw_settings_failure_timeout,
                 "expected: seconds, 1 or more, or 0 for never; MPI_Init will fail",
                 "maximum silence of a rank that has requests outstanding, before it is declared failed");
    tell_variable(doctor, "CAUSEWAY_TOPOLOGY", "file of the clusters, hosts and links of a wide area");
    tell_wan(doctor);
    tell_file(doctor, &place);
    if (is_set && cw_override_parse(words, NULL, &override, error, sizeof(error)) != CW_OK) {
        doctor_tell(doctor, "choice", "CAUSEWAY_ALGORITHM", DOCTOR_MISSING, error, "MPI_Init will fail");
    }
}
