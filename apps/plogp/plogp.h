/* plogp: shared by the files of `causeway plogp`. The measuring itself is done by a job of another program,
 * plogp/measure.c. */
#pragma once

#include "apps/cli/report.h"
#include "collectives/choose/measured.h"
#include "control/settings/settings.h"

enum {
    PLOGP_RANKS_MAX = 16,     /* numbers of ranks to measure */
    PLOGP_JOB_RANKS_MAX = 63, /* of one job: the number of ports of emulated hosts */
};

struct plogp_options {
    const char *path;     /* "shared", "memif", "all" */
    const char *hosts;    /* the wire is theirs, a rank on each; NULL: emulated hosts', joined by memif */
    const char *launcher; /* command that starts ranks there; NULL: as `causeway run` */
    const char *file;     /* NULL: where MPI looks for it */
    const char *sizes;
    uint32_t ranks[PLOGP_RANKS_MAX];
    uint32_t rank_count;
    uint64_t time_ns;
    bool noisy; /* noisy results are written, too */
    struct app_report report;
    struct cw_settings_place place;
};

/* Runs plogp_measure with `ranks` ranks on a path for their share of the time. MPI chooses by built-in figures there.
 * Returns the exit code of the command, and reports the reason; 0: the caller destroys *result, *noise is that of its
 * noisiest parameter. */
int plogp_job_run(const struct plogp_options *options, enum cw_measured_path path, uint32_t ranks,
                  struct cw_measured **result, double *noise);

/* The part of the time for a job of this number of ranks: more ranks take longer for the same, and so does the wire. */
uint64_t plogp_time_share(const struct plogp_options *options, enum cw_measured_path path, uint32_t ranks);
