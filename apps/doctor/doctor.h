/* Doctor: what `causeway doctor` finds out, by topic. Each topic is a list of findings, printed as they come. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum doctor_verdict {
    DOCTOR_GOOD,    /* there, and used */
    DOCTOR_NOTE,    /* worth knowing; nothing is wrong */
    DOCTOR_MISSING, /* an obstacle; `todo` says what to do about it */
};

/* How findings are printed: lines for people, or one JSON object each. */
struct doctor {
    bool json;
    unsigned missing;
};

/* One finding. `what` names it, `value` says what was found, `todo` what to do (NULL: nothing). */
void doctor_tell(struct doctor *doctor, const char *topic, const char *what, enum doctor_verdict verdict,
                 const char *value, const char *todo);

/* A setting with its value and where it comes from ("default", "option", ...). */
void doctor_setting(struct doctor *doctor, const char *name, const char *value, const char *origin,
                    const char *meaning);

/* The topics. */
void doctor_machine(struct doctor *doctor);  /* cores, memory, huge pages, clock, kernel */
void doctor_rights(struct doctor *doctor);   /* privileges and limits */
void doctor_network(struct doctor *doctor);  /* interfaces, DPDK and its drivers, verbs devices */
void doctor_choice(struct doctor *doctor);   /* what Causeway would take for what, and why */
void doctor_settings(struct doctor *doctor); /* every setting with value and origin */
void doctor_choices(struct doctor *doctor);  /* ... of them what MPI chooses algorithms by */

/* Tries each way to these hosts, by a job with a rank on each. An exit code. */
int doctor_hosts(struct doctor *doctor, char *const *hosts, int count);
/* A rank of such a job. An exit code. */
int doctor_rank(void);

/* Whether a rank of this host could have a device of its own (control/net/device.h): it is opened, for a moment. An
 * exit code: APP_EXIT_MACHINE with an obstacle. */
int doctor_device(struct doctor *doctor, const char *text);

/* The MPI functions that raise MPI_ERR_UNSUPPORTED_OPERATION. */
void doctor_mpi(struct doctor *doctor);
