/* plogp: what the files of `causeway plogp` share. The measuring itself is done by a job of another program,
 * plogp/measure.h. */
#pragma once

#include "apps/cli/report.h"
#include "collectives/choose/measured.h"
#include "control/settings/settings.h"

enum {
    PLOGP_RANKS_MAX = 16,     /* numbers of ranks to measure */
    PLOGP_JOB_RANKS_MAX = 63, /* of one job: what emulated hosts have ports for */
};

/* What plogp_measure is to do. */
enum plogp_mode { PLOGP_MEASURE, PLOGP_VERIFY };

struct plogp_options {
    const char *path;     /* "shared", "memif", "all" */
    const char *hosts;    /* the wire is theirs, a rank on each; NULL: emulated hosts', joined by memif */
    const char *launcher; /* what starts ranks there; NULL: as `causeway run` */
    const char *file;     /* NULL: where MPI looks for it */
    const char *sizes;
    const char *data;
    uint32_t ranks[PLOGP_RANKS_MAX];
    uint32_t rank_count;
    uint64_t time_ns;
    bool verify;
    bool noisy; /* what is noise is written, too */
    struct app_report report;
    struct cw_settings_place place;
};

/* Runs plogp_measure with `ranks` ranks on a path for their share of the time; what MPI chooses by is the file `known`,
 * or built-in figures ("none"). Returns the exit code of the command, the reason told; 0: *result is to be destroyed,
 * *noise is that of its noisiest parameter. */
int plogp_job_run(const struct plogp_options *options, enum cw_measured_path path, uint32_t ranks, enum plogp_mode mode,
                  const char *known, struct cw_measured **result, double *noise);

/* What a job of so many ranks gets of the time: more ranks take longer for the same, and so does the wire. */
uint64_t plogp_time_share(const struct plogp_options *options, enum cw_measured_path path, uint32_t ranks);

/* Says on a terminal that the job of ranks[index] on a path begins. */
void plogp_progress_tell(const struct plogp_options *options, enum cw_measured_path path, uint32_t index);

/* Whether a path is among those that were asked for. */
bool plogp_path_is_asked(const struct plogp_options *options, enum cw_measured_path path);

/* Reads a file of measured parameters; an exit code, the reason told. */
int plogp_file_read(const char *path, struct cw_measured **measured);

/* Measures all algorithms and compares what would have been chosen with the best. An exit code. */
int plogp_verify(const struct plogp_options *options);
