#include <stdio.h>
#include <stdlib.h>

#include "mpi/state/process.h"
#include "mpi/transport/transport.h"

void mpi_message_lose(uint32_t rank, uint64_t bytes)
{
    fprintf(stderr, "causeway: rank %u: no memory for an unexpected message of %llu bytes from rank %u\n",
            mpi_process.rank, (unsigned long long)bytes, rank);
    mpi_process_abort(MPI_ERR_NO_MEM);
}

void *mpi_message_memory(uint32_t rank, uint64_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) {
        mpi_message_lose(rank, bytes);
    }
    return memory;
}
