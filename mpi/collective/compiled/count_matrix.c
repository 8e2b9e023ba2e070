#include "mpi/collective/compiled/count_matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/collective/compiled/phases.h"
#include "mpi/runtime/error.h"

int mpi_count_matrix_make(struct mpi_collective *collective)
{
    size_t ranks = (size_t)collective->comm->size;
    struct mpi_count_matrix *made = calloc(1, sizeof(*made));
    collective->count_matrix = made;
    collective->problem.collective = CW_ALLTOALL;
    collective->counts = malloc(ranks * ranks * sizeof(uint64_t));
    if (made != NULL) {
        made->own = malloc(2 * ranks * sizeof(uint64_t));
        made->all = malloc(2 * ranks * ranks * sizeof(uint64_t));
    }
    if (made == NULL || collective->counts == NULL || made->own == NULL || made->all == NULL) {
        return mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "no memory for the counts of %zu ranks", ranks);
    }
    mpi_count_matrix_row(&collective->send, &collective->receive, made->own);
    return MPI_SUCCESS;
}

int mpi_count_matrix_make_with(struct mpi_collective *collective, struct mpi_phases *phases)
{
    collective->problem.collective = CW_ALLTOALL;
    collective->count_matrix = calloc(1, sizeof(*collective->count_matrix));
    if (collective->count_matrix == NULL) {
        return mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "no memory for a collective call");
    }
    collective->count_matrix->phases = phases;
    mpi_phases_retain(phases);
    return MPI_SUCCESS;
}

void mpi_count_matrix_free(struct mpi_count_matrix *count_matrix)
{
    if (count_matrix->phases != NULL) {
        mpi_phases_release(count_matrix->phases);
    }
    free(count_matrix->own);
    free(count_matrix->all);
    free(count_matrix);
}

struct cw_problem_request mpi_count_matrix_exchange(const struct mpi_collective *collective)
{
    return (struct cw_problem_request){
        .collective = CW_ALLGATHER,
        .ranks = (uint32_t)collective->comm->size,
        .element_bytes = 1,
        .count = 2 * (uint64_t)collective->comm->size * sizeof(uint64_t),
    };
}

void mpi_count_matrix_row(const struct mpi_buffer *send, const struct mpi_buffer *receive, uint64_t *row)
{
    for (int rank = 0; rank < send->block_count; rank++) {
        row[rank] = (uint64_t)mpi_buffer_block_bytes(send, rank);
        row[send->block_count + rank] = (uint64_t)mpi_buffer_block_bytes(receive, rank);
    }
}

int mpi_count_matrix_join(const uint64_t *all, uint32_t ranks, uint64_t *matrix, char *why, size_t why_bytes)
{
    for (uint32_t from = 0; from < ranks; from++) {
        const uint64_t *sends = &all[2ull * ranks * from];
        for (uint32_t to = 0; to < ranks; to++) {
            uint64_t expected = all[2ull * ranks * to + ranks + from];
            if (sends[to] != expected) {
                snprintf(why, why_bytes,
                         "rank %u sends rank %u %llu bytes, but rank %u expects %llu of it; nothing has been sent",
                         from, to, (unsigned long long)sends[to], to, (unsigned long long)expected);
                return sends[to] > expected ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT;
            }
        }
        memcpy(&matrix[(uint64_t)ranks * from], sends, ranks * sizeof(*matrix));
    }
    return MPI_SUCCESS;
}

static void why_set(struct mpi_collective *collective, const char *why)
{
    free(collective->why);
    collective->why = strdup(why);
}

int mpi_count_matrix_finish(struct mpi_collective *collective)
{
    char why[200];
    int code = mpi_count_matrix_join(collective->count_matrix->all, (uint32_t)collective->comm->size,
                                     collective->counts, why, sizeof(why));
    if (code != MPI_SUCCESS) {
        why_set(collective, why);
        return code;
    }
    collective->problem.counts = collective->counts;
    collective->count_matrix->is_known = true;
    return MPI_SUCCESS;
}

/* False: they differ, as `refusal` says. */
static bool counts_fit(const struct mpi_collective *collective, struct mpi_refusal *refusal)
{
    const struct cw_problem *problem = mpi_phases_problem(collective->count_matrix->phases);
    uint32_t own = (uint32_t)collective->comm->rank;
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        uint64_t sends = (uint64_t)mpi_buffer_block_bytes(&collective->send, (int)rank);
        uint64_t gets = (uint64_t)mpi_buffer_block_bytes(&collective->receive, (int)rank);
        uint64_t out = cw_problem_pair_bytes(problem, own, rank);
        uint64_t in = cw_problem_pair_bytes(problem, rank, own);
        if (sends != out || gets != in) {
            *refusal = (struct mpi_refusal){
                .reason = sends != out ? MPI_REFUSAL_SENDS : MPI_REFUSAL_EXPECTS,
                .peer = (int32_t)rank,
                .planned = sends != out ? out : in,
                .given = sends != out ? sends : gets,
            };
            return false;
        }
    }
    return true;
}

int mpi_count_matrix_check(struct mpi_collective *collective)
{
    struct mpi_refusal refusal;
    char why[200];
    if (counts_fit(collective, &refusal)) {
        return MPI_SUCCESS;
    }
    mpi_refusal_text(&refusal, collective->comm->rank, why, sizeof(why));
    why_set(collective, why);
    mpi_exchange_reject(collective->comm, collective->number, collective->run_count, &refusal);
    return MPI_ERR_COUNT;
}
