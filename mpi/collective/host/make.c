/* The segment of a communicator: made by all ranks together, and ended. */
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/clock.h"
#include "dataplane/status.h"
#include "mpi/collective/host/state.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/point/internal.h"
#include "mpi/runtime/explain.h"
#include "mpi/state/process.h"

enum { HOST_SEGMENTS_MAX = 1024 }; /* of a process: mappings are not free */

static uint32_t segment_count;

bool host_all_are_here(const struct mpi_comm *comm)
{
    for (int rank = 0; rank < comm->size; rank++) {
        if (!cw_paths_is_here(mpi_process.paths, comm->group->ranks[rank])) {
            return false;
        }
    }
    return true;
}

enum { VERDICT_SEGMENT = 1, VERDICT_COPIES_ONCE = 2 };

/* What this rank can do with the segment that rank 0 has made. */
static uint32_t segment_try(struct mpi_host *host, const struct cw_segment_place *place)
{
    const struct mpi_comm *comm = host->comm;
    if (place->pid == 0 || (comm->rank > 0 && cw_segment_open(place, (uint32_t)comm->rank, (uint32_t)comm->size,
                                                              &host->segment, host->why, sizeof(host->why)) != CW_OK)) {
        return 0;
    }
    uint32_t verdict = VERDICT_SEGMENT | VERDICT_COPIES_ONCE;
    for (int rank = 0; rank < comm->size; rank++) {
        if (!cw_paths_reaches_memory(mpi_process.paths, comm->group->ranks[rank])) {
            verdict = VERDICT_SEGMENT;
        }
    }
    return verdict;
}

struct mpi_host *host_make(struct mpi_comm *comm)
{
    int tag = MPI_TAG_COLLECTIVE + (int)(comm->collectives->next_number++ & 0x3fffffff);
    struct cw_segment_place place = {0};
    struct mpi_host *host = calloc(1, sizeof(*host));
    uint32_t verdict = 0;
    if (host != NULL) {
        host->comm = comm;
        if (comm->rank == 0 && segment_count < HOST_SEGMENTS_MAX &&
            cw_segment_create((uint32_t)comm->size, cw_clock_ns() ^ comm->context << 32, &host->segment, host->why,
                              sizeof(host->why)) == CW_OK) {
            place = cw_segment_place(&host->segment);
        }
    }
    int code = mpi_internal_bcast(comm, comm->group, tag, &place, sizeof(place));
    if (code == MPI_SUCCESS && host != NULL) {
        verdict = segment_try(host, &place);
    }
    if (code == MPI_SUCCESS) {
        code = mpi_internal_agree(comm, tag, &verdict);
    }
    if (host != NULL && comm->rank == 0 && place.pid != 0) {
        cw_segment_seal(&host->segment);
    }
    if (host != NULL) {
        segment_count += host->segment.shared != NULL; /* mpi_host_destroy takes it off again */
    }
    if (code != MPI_SUCCESS || (verdict & VERDICT_SEGMENT) == 0) {
        mpi_host_destroy(host);
        return NULL;
    }
    host->copies_once = (verdict & VERDICT_COPIES_ONCE) != 0;
    if (mpi_explain_is_wanted()) {
        host->accounts = calloc(CW_COLLECTIVE_COUNT, sizeof(*host->accounts));
    }
    return host;
}

static const char *origin_name(enum mpi_choice_verdict verdict)
{
    return verdict == MPI_CHOICE_OVERRIDE ? cw_measured_origin_name(CW_BY_NAME)
           : verdict == MPI_CHOICE_TESTED ? cw_measured_origin_name(CW_BY_TEST)
                                          : "shared memory";
}

static void accounts_tell(const struct mpi_host *host)
{
    for (int collective = 0; collective < CW_COLLECTIVE_COUNT; collective++) {
        for (int class = 0; class < HOST_SIZE_CLASSES; class ++) {
            const struct host_account *account = &host->accounts[collective][class];
            if (account->calls > 0) {
                mpi_explain_calls(cw_collective_name((enum cw_collective)collective), MPI_HOST_NAME,
                                  (uint32_t)host->comm->size, account->bytes, origin_name(account->verdict),
                                  account->calls, 0, account->measured_ns);
            }
        }
    }
}

void mpi_host_destroy(struct mpi_host *host)
{
    if (host == NULL) {
        return;
    }
    if (host->accounts != NULL) {
        accounts_tell(host);
        free(host->accounts);
    }
    if (host->segment.shared != NULL) {
        cw_segment_close(&host->segment);
        segment_count--;
    }
    free(host);
}

void mpi_host_introduce(void)
{
    for (int collective = 0; collective < CW_COLLECTIVE_COUNT; collective++) {
        mpi_choice_know((enum cw_collective)collective, MPI_HOST_NAME);
    }
}

void mpi_host_reconsider(struct mpi_comm *comm)
{
    if (comm->collectives != NULL) {
        memset(comm->collectives->host_verdicts, 0, sizeof(comm->collectives->host_verdicts));
    }
}
