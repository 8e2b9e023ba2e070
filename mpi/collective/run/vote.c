#include "mpi/collective/run/vote.h"

#include <stdlib.h>

#include "mpi/collective/compiled/pattern.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/collective/run/pairs.h"
#include "mpi/runtime/error.h"

int mpi_vote_make(struct mpi_collective *collective, bool is_scheduled)
{
    uint32_t ranks = (uint32_t)collective->comm->size;
    uint32_t words = mpi_replay_words(collective->comm);
    struct mpi_vote *made = calloc(1, sizeof(*made));
    collective->vote = made;
    if (made != NULL) {
        *made = (struct mpi_vote){.is_scheduled = is_scheduled, .words = words};
        made->all = calloc((ranks + 1ull) * words, sizeof(*made->all));
    }
    uint64_t *row = malloc(2ull * ranks * sizeof(*row));
    bool is_made = made != NULL && made->all != NULL && row != NULL;
    if (is_made) {
        mpi_pattern_row(&collective->send, &collective->receive, row);
        mpi_replay_fit(collective->comm, row, mpi_vote_own(made, ranks));
    }
    free(row);
    return is_made ? MPI_SUCCESS
                   : mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "no memory for the counts of %u ranks", ranks);
}

void mpi_vote_free(struct mpi_vote *vote)
{
    if (vote != NULL) {
        free(vote->all);
        free(vote);
    }
}

uint64_t *mpi_vote_own(struct mpi_vote *vote, uint32_t ranks)
{
    return vote->all + (uint64_t)ranks * vote->words;
}

struct cw_problem_request mpi_vote_exchange(const struct mpi_collective *collective)
{
    return (struct cw_problem_request){
        .collective = CW_ALLGATHER,
        .ranks = (uint32_t)collective->comm->size,
        .element_bytes = 1,
        .count = collective->vote->words * sizeof(uint64_t),
    };
}

int mpi_vote_settle(struct mpi_collective *collective)
{
    struct mpi_vote *vote = collective->vote;
    vote->is_over = true;
    collective->booked = mpi_replay_elect(collective->comm, vote->all);
    if (collective->booked != NULL) {
        return MPI_SUCCESS;
    }
    collective->by_pairs = !vote->is_scheduled;
    return vote->is_scheduled ? mpi_pattern_make(collective) : mpi_pairs_all(collective);
}
