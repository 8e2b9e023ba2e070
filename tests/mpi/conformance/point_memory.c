/* Buffers that come and go (MPI 5.0, 3.7.3, 6.12): the program unmaps a buffer as soon as a send or a collective call
 * has completed, and the next mapping there has other bytes. */
#include "tests/mpi/expect.h"

#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 30, BYTES_MAX = 400000 };

/* Where the round before had another mapping, mostly. */
static unsigned char *map(size_t bytes)
{
    void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return made;
}

static unsigned char byte_of(int rank, int round, int at)
{
    return (unsigned char)(rank * 31 + round * 7 + at * 3 + (at >> 8));
}

static unsigned char *map_filled(int bytes, int rank, int round)
{
    unsigned char *made = map((size_t)bytes);
    for (int i = 0; i < bytes; i++) {
        made[i] = byte_of(rank, round, i);
    }
    return made;
}

static int wrong_bytes(const unsigned char *in, int bytes, int rank, int round)
{
    int wrong = 0;
    for (int i = 0; i < bytes; i++) {
        wrong += in[i] != byte_of(rank, round, i);
    }
    return wrong;
}

static int bytes_of(int round)
{
    return 100000 + round * 70001 % (BYTES_MAX - 100000);
}

static void messages_from_memory_that_goes(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        int bytes = bytes_of(round);
        unsigned char *out = map_filled(bytes, expect_rank, round), *in = map((size_t)bytes);
        MPI_Irecv(in, bytes, MPI_BYTE, expect_left, round, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, bytes, MPI_BYTE, expect_right, round, MPI_COMM_WORLD, &requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        munmap(out, (size_t)bytes);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        EXPECT_EQUAL(wrong_bytes(in, bytes, expect_left, round), 0);
        munmap(in, (size_t)bytes);
    }
}

static void messages_that_are_replaced(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        int bytes = bytes_of(round);
        unsigned char *both = map_filled(bytes, expect_rank, round);
        MPI_Sendrecv_replace(both, bytes, MPI_BYTE, expect_right, 1, expect_left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(wrong_bytes(both, bytes, expect_left, round), 0);
        munmap(both, (size_t)bytes);
    }
}

static void collective_calls_on_memory_that_goes(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        int bytes = bytes_of(round), root = round % expect_size;
        unsigned char *all = map((size_t)bytes * (size_t)expect_size);
        unsigned char *own = map_filled(bytes, expect_rank, round);
        MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD);
        munmap(own, (size_t)bytes);
        for (int rank = 0; rank < expect_size; rank++) {
            EXPECT_EQUAL(wrong_bytes(all + (size_t)rank * (size_t)bytes, bytes, rank, round), 0);
        }
        munmap(all, (size_t)bytes * (size_t)expect_size);
        unsigned char *from = map_filled(bytes, root, round);
        if (expect_rank != root) {
            memset(from, 0, (size_t)bytes);
        }
        MPI_Bcast(from, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        EXPECT_EQUAL(wrong_bytes(from, bytes, root, round), 0);
        munmap(from, (size_t)bytes);
    }
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    messages_from_memory_that_goes();
    messages_that_are_replaced();
    collective_calls_on_memory_that_goes();
    return expect_end();
}
