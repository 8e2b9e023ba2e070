/* Doctor: the findings of `causeway doctor`, by topic. Each finding is printed as soon as it is known. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum doctor_verdict {
    DOCTOR_GOOD,    /* present and used */
    DOCTOR_NOTE,    /* information; nothing is wrong */
    DOCTOR_MISSING, /* a problem; `todo` is the remedy */
};

/* Form of the output: lines of text, or one JSON object for each finding. */
struct doctor {
    bool json;
    unsigned missing;
};

/* Prints a finding: its name `what`, the value that was found, and the remedy `todo` (NULL: none). */
void doctor_report(struct doctor *doctor, const char *topic, const char *what, enum doctor_verdict verdict,
                   const char *value, const char *todo);

/* Prints a setting with its value, the origin of the value ("default", "environment", ...) and its meaning. */
void doctor_setting(struct doctor *doctor, const char *name, const char *value, const char *origin,
                    const char *meaning);

/* The topics. */
void doctor_machine(struct doctor *doctor); /* cores, memory, huge pages, clock, kernel */
void doctor_rights(struct doctor *doctor);  /* privileges and limits */
void doctor_network(struct doctor *doctor); /* interfaces, DPDK and its drivers, verbs devices */
void doctor_choice(struct doctor *doctor);  /* transports and modes that Causeway would choose */
void doctor_choices(struct doctor *doctor); /* ... those of MPI; called by settings_report */

/* Tries each transport to these hosts, with a job that has a rank on each. Returns an exit code. */
int doctor_hosts(struct doctor *doctor, char *const *hosts, int count);
/* A rank of such a job. Returns an exit code. */
int doctor_rank(void);

/* Checks whether a rank of this host can use a device (control/net/device.h), by opening it for a moment. Returns an
 * exit code: APP_EXIT_MACHINE if there is a problem. */
int doctor_device(struct doctor *doctor, const char *text);

/* The MPI functions that raise MPI_ERR_UNSUPPORTED_OPERATION. */
void doctor_mpi(struct doctor *doctor);
