/* What C has for Fortran (MPI 5.0, 19.3). It is not part of the ABI, so not of mpi.h: link with -lmpi_abi_fortran. */
#ifndef MPI_FORTRAN_H
#define MPI_FORTRAN_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int MPI_Fint;

/* The addresses by which Fortran programs ask for no status. */
extern MPI_Fint *const MPI_F_STATUS_IGNORE;
extern MPI_Fint *const MPI_F_STATUSES_IGNORE;

/* A status as C and as INTEGER STATUS(MPI_STATUS_SIZE). MPI_ERR_ARG: it is one of the addresses above, or of mpi.h. */
int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status);
int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status);
int PMPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status);
int PMPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status);

/* Handles as C and as INTEGER. */
#define MPI_FORTRAN_HANDLE(type, name)                    \
    static inline MPI_Fint MPI_##name##_c2f(type handle)  \
    {                                                     \
        return MPI_##name##_toint(handle);                \
    }                                                     \
    static inline type MPI_##name##_f2c(MPI_Fint integer) \
    {                                                     \
        return MPI_##name##_fromint(integer);             \
    }

MPI_FORTRAN_HANDLE(MPI_Comm, Comm)
MPI_FORTRAN_HANDLE(MPI_Errhandler, Errhandler)
MPI_FORTRAN_HANDLE(MPI_File, File)
MPI_FORTRAN_HANDLE(MPI_Group, Group)
MPI_FORTRAN_HANDLE(MPI_Info, Info)
MPI_FORTRAN_HANDLE(MPI_Message, Message)
MPI_FORTRAN_HANDLE(MPI_Op, Op)
MPI_FORTRAN_HANDLE(MPI_Request, Request)
MPI_FORTRAN_HANDLE(MPI_Session, Session)
MPI_FORTRAN_HANDLE(MPI_Datatype, Type)
MPI_FORTRAN_HANDLE(MPI_Win, Win)

#undef MPI_FORTRAN_HANDLE

#ifdef __cplusplus
}
#endif

#endif
