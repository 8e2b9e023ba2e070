#include "mpi/collective/exchange/call_kind.h"

#include <stdio.h>
#include <string.h>

#include "collectives/schedule/problem.h"

static void kind_text(uint32_t kind, char *text, size_t text_bytes)
{
    uint32_t collective = (kind & ~MPI_CALL_LEVELS) >> MPI_CALL_WORD_BITS;
    uint32_t root = kind & ((1u << MPI_CALL_WORD_BITS) - 1);
    if (collective == MPI_CALL_COUNTS) {
        snprintf(text, text_bytes, "alltoallv, exchanging counts");
    } else if (collective == MPI_CALL_ALLTOALLV && root != 0) {
        snprintf(text, text_bytes, "alltoallv by phases %06x", root);
    } else if (collective == MPI_CALL_AGREEMENT) {
        snprintf(text, text_bytes, "alltoallv, agreeing on a plan");
    } else if (collective == MPI_CALL_PLANNED) {
        snprintf(text, text_bytes, "alltoallv by plan %u", root);
    } else if (collective == MPI_CALL_TELLING) {
        snprintf(text, text_bytes, "scatterv, root %u, telling counts", root);
    } else if (collective == MPI_CALL_SCATTERV) {
        snprintf(text, text_bytes, "scatterv, root %u", root);
    } else if (collective == MPI_CALL_ALLTOALLV) {
        snprintf(text, text_bytes, "alltoallv");
    } else if (collective >= CW_COLLECTIVE_COUNT) {
        snprintf(text, text_bytes, "an unknown collective");
    } else if (cw_collective_rooted((enum cw_collective)collective)) {
        snprintf(text, text_bytes, "%s, root %u", cw_collective_name(collective),
                 root & ((1u << MPI_CALL_ROOT_BITS) - 1));
    } else {
        snprintf(text, text_bytes, "%s", cw_collective_name(collective));
    }
}

/* Both kinds for users; false: they differ in sizes only, and `text` says so. */
static bool kinds_text(uint32_t theirs, uint32_t ours, int rank, int own, char their_text[64], char our_text[64],
                       char *text, size_t text_bytes)
{
    kind_text(theirs, their_text, 64);
    kind_text(ours, our_text, 64);
    if (strcmp(their_text, our_text) != 0) {
        return true;
    }
    if (((theirs ^ ours) & MPI_CALL_LEVELS) != 0) {
        snprintf(text, text_bytes, "rank %d carries out %s by %s, rank %d does not, since a call before has failed",
                 rank, our_text, (theirs & MPI_CALL_LEVELS) != 0 ? "shared memory" : "messages alone", own);
        return false;
    }
    snprintf(text, text_bytes, "rank %d is in %s with another count than rank %d, or with a type of another size", rank,
             our_text, own);
    return false;
}

void mpi_call_kind_late(const struct mpi_comm *comm, int rank, uint32_t theirs, uint32_t ours, char *text,
                        size_t text_bytes)
{
    char their_text[64], our_text[64];
    if (kinds_text(theirs, ours, rank, comm->rank, their_text, our_text, text, text_bytes)) {
        snprintf(text, text_bytes, "rank %d was in %s, when rank %d was in %s", rank, their_text, comm->rank, our_text);
    }
}

void mpi_call_kind_mismatch(struct mpi_exchange *exchange, int rank, uint32_t kind)
{
    char theirs[64], ours[64];
    int own = exchange->comm->rank;
    if (kinds_text(kind, exchange->kind, rank, own, theirs, ours, exchange->why, sizeof(exchange->why))) {
        snprintf(exchange->why, sizeof(exchange->why), "rank %d is in %s, rank %d in %s", rank, theirs, own, ours);
    }
}
