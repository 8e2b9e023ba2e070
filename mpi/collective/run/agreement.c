#include "mpi/collective/run/agreement.h"

#include <stdlib.h>

#include "mpi/collective/compiled/count_matrix.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/runtime/error.h"

int mpi_agreement_make(struct mpi_collective *collective, bool is_scheduled)
{
    uint32_t ranks = (uint32_t)collective->comm->size;
    uint32_t words = mpi_replay_words(collective->comm);
    struct mpi_agreement *made = calloc(1, sizeof(*made));
    collective->agreement = made;
    if (made != NULL) {
        *made = (struct mpi_agreement){.is_scheduled = is_scheduled, .words = words};
        made->all = calloc((ranks + 1ull) * words, sizeof(*made->all));
    }
    uint64_t *row = malloc(2ull * ranks * sizeof(*row));
    bool is_made = made != NULL && made->all != NULL && row != NULL;
    if (is_made) {
        mpi_count_matrix_row(&collective->send, &collective->receive, row);
        mpi_replay_fit(collective->comm, row, mpi_agreement_own(made, ranks));
    }
    free(row);
    return is_made ? MPI_SUCCESS
                   : mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "no memory for the counts of %u ranks", ranks);
}

void mpi_agreement_free(struct mpi_agreement *agreement)
{
    free(agreement->all);
    free(agreement);
}

uint64_t *mpi_agreement_own(struct mpi_agreement *agreement, uint32_t ranks)
{
    return agreement->all + (uint64_t)ranks * agreement->words;
}

struct cw_problem_request mpi_agreement_exchange(const struct mpi_collective *collective)
{
    return (struct cw_problem_request){
        .collective = CW_ALLGATHER,
        .ranks = (uint32_t)collective->comm->size,
        .element_bytes = 1,
        .count = collective->agreement->words * sizeof(uint64_t),
    };
}

int mpi_agreement_finish(struct mpi_collective *collective)
{
    struct mpi_agreement *agreement = collective->agreement;
    agreement->is_over = true;
    collective->planned = mpi_replay_elect(collective->comm, agreement->all);
    if (collective->planned != NULL) {
        return MPI_SUCCESS;
    }
    collective->by_pairs = !agreement->is_scheduled;
    return agreement->is_scheduled ? mpi_count_matrix_make(collective) : MPI_SUCCESS;
}
