/* What the files of job share: job/job.c opens and closes it, job/table.c the launcher's table. */
#pragma once

#include "control/job/job.h"
#include "control/job/wire.h"

struct cw_job {
    struct cw_bootstrap *bootstrap;
    struct cw_bootstrap_info info;
    struct cw_paths *paths;
    struct cw_wire wire; /* zero: none */
    struct cw_job_handler handler;
    struct cw_path_watcher watcher;
    struct cw_groups *groups;
    struct cw_control *control; /* NULL: not yet */
    uint8_t note[CW_JOB_NOTE_BYTES];
    bool notes_differ;
    char (*hosts)[CW_JOB_HOST_BYTES]; /* names, per rank */
};
