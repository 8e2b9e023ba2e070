/* A tool that takes calls of C and, below them, of Fortran. */
#include <mpi.h>

static int taken;

int c_taken(void);

int c_taken(void)
{
    return taken;
}

int MPI_Barrier(MPI_Comm comm)
{
    taken++;
    return PMPI_Barrier(comm);
}

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    taken++;
    return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}
