/* More communicators that multicast than a process may have groups: those that get none give the same results.
 * Broadcasts around all lengths at which the algorithm changes; the limit for a root that runs ahead. */
#include <stdlib.h>

#include "tests/mpi/expect.h"

enum { COMMS = 520, KEPT = 8 /* so that the report lists their groups */, BYTES_MAX = 65537 };

static const int lengths[] = {0, 1, 8224, 8225, 16352, 16353, 33000, 65536, 65537};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static unsigned char byte_of(int comm, int length, int at)
{
    return (unsigned char)(comm * 89 + length * 31 + at * 7 + (at >> 8));
}

static void broadcast(MPI_Comm comm, int number, int length, unsigned char *buffer)
{
    int root = (number + length) % expect_size;
    int bytes = lengths[length];
    buffer[bytes] = 0xa5;
    for (int at = 0; at < bytes; at++) {
        buffer[at] = expect_rank == root ? byte_of(number, length, at) : 0;
    }
    EXPECT_EQUAL(MPI_Bcast(buffer, bytes, MPI_BYTE, root, comm), MPI_SUCCESS);
    int wrong = 0;
    for (int at = 0; at < bytes; at++) {
        wrong += buffer[at] != byte_of(number, length, at);
    }
    EXPECT_EQUAL(wrong, 0);
    EXPECT_EQUAL(buffer[bytes], 0xa5);
}

/* A root that needs no other rank does not leave the others behind forever: early messages would fill their memory. So
 * it cannot have ended its broadcasts before they begin theirs. */
static void the_root_waits(MPI_Comm comm, unsigned char *buffer)
{
    enum { CALLS = 300, BYTES = 60000, LOOKS = 1000000 };
    int has_ended = 0;
    for (int look = 0; expect_rank == 1 && look < LOOKS; look++) {
        MPI_Iprobe(0, 5, comm, &has_ended, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(has_ended, 0);
    }
    for (int call = 0; call < CALLS; call++) {
        EXPECT_EQUAL(MPI_Bcast(buffer, BYTES, MPI_BYTE, 0, comm), MPI_SUCCESS);
    }
    if (expect_rank == 0) {
        MPI_Send(buffer, 1, MPI_BYTE, 1, 5, comm);
    } else if (expect_rank == 1) {
        MPI_Recv(buffer, 1, MPI_BYTE, 0, 5, comm, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    static MPI_Comm comms[COMMS];
    unsigned char *buffer = malloc(BYTES_MAX + 1);
    expect_start(&argc, &argv);
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    }
    for (int length = 0; length < LENGTHS; length++) {
        for (int i = 0; i < COMMS; i++) {
            broadcast(comms[i], i, length, buffer);
        }
    }
    the_root_waits(MPI_COMM_WORLD, buffer);
    for (int i = 0; i < COMMS - KEPT; i++) {
        MPI_Comm_free(&comms[i]);
    }
    free(buffer);
    return expect_end();
}
