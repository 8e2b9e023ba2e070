/* detect measure: measures what detect.h asks for between the hosts of a job, and decides what comes of it.
 *
 * By rounds, all ranks at once: rank 0 says who is measured to; the first rank of each other host measures, and puts
 * what it has found into the launcher's table; rank 0 takes it from there. Sessions of their own serve for it
 * (CW_WIRE_STREAM_MEASURE), in which nothing is said: whether those for data are sealed is decided by what is found.
 *
 * A round trip is the shortest of 3 if it is a LAN's beyond doubt; of all that fit 200 ms, 12 at least, if it is
 * none's; of all that fit a second in between: among processes that share cores some are answered at once. */
#pragma once

#include "control/detect/detect.h"
#include "control/job/job.h"

struct cw_detect_job {
    struct cw_job *job;
    const char *(*host_name)(void *context, uint32_t rank); /* valid until the next call */
    void *context;
};

/* All ranks of the job call it before they have sent anything to other hosts; it takes a third of a second for each
 * cluster, more if it is a second away, and a second where hosts answer in 0.25 to 5 ms. *text: a topology file
 * (detect.h), the same at all ranks, to be freed; "": one cluster. `why`: a line of CW_DETECT_WHY_BYTES. Within
 * CAUSEWAY_FAILURE_TIMEOUT CW_ERROR_PEER_FAILED: a host does not answer another one; else CW_ERROR_MEMORY,
 * CW_ERROR_SYSTEM, CW_ERROR_CLOSED or what cw_detect_encode says; a line in `error`: rank 0's is the one to be told. */
int cw_detect_job(const struct cw_detect_job *of, char **text, char *why, char *error, size_t error_bytes);
