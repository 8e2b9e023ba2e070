/* More communicators that multicast than a process may have groups: those that get none give the same results. Broadcasts around all lengths at which something changes, by ranks that run ahead. */
#include <stdlib.h>

#include "tests/mpi/expect.h"

enum { COMMS = 520, KEPT = 8 /* so that the report tells of their groups */, BYTES_MAX = 65537 };

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
    for (int i = 0; i < COMMS - KEPT; i++) {
        MPI_Comm_free(&comms[i]);
    }
    free(buffer);
    return expect_end();
}
