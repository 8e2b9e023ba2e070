#include "mpi/state/process.h"

#include <stdlib.h>

struct mpi_process mpi_process = {.dead_rank = UINT32_MAX};

void mpi_process_abort(int code)
{
    if (mpi_process.job != NULL) {
        cw_job_abort(mpi_process.job, code, "");
    }
    exit(code == 0 ? 1 : code);
}
