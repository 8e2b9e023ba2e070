/* Handles and statuses between C and Fortran (MPI 5.0, 19.3.4 and 19.3.5), in addition to the ABI's MPI_Comm_toint.
 *
 * They are symbols of the library that mpicc links, with Fortran or without: configure scripts look for them there. */
#include <stdint.h>
#include <string.h>

#include "mpi.h"

/* The weak name is the one that a tool may take. */
#define ALIAS(name) extern __typeof__(P##name) name __attribute__((weak, alias("P" #name)))

#define CONVERSIONS(type, name)             \
    MPI_Fint PMPI_##name##_c2f(type handle) \
    {                                       \
        return (MPI_Fint)(intptr_t)handle;  \
    }                                       \
    type PMPI_##name##_f2c(MPI_Fint number) \
    {                                       \
        return (type)(intptr_t)number;      \
    }                                       \
    ALIAS(MPI_##name##_c2f);                \
    ALIAS(MPI_##name##_f2c)

CONVERSIONS(MPI_Comm, Comm);
CONVERSIONS(MPI_Errhandler, Errhandler);
CONVERSIONS(MPI_File, File);
CONVERSIONS(MPI_Group, Group);
CONVERSIONS(MPI_Info, Info);
CONVERSIONS(MPI_Message, Message);
CONVERSIONS(MPI_Op, Op);
CONVERSIONS(MPI_Request, Request);
CONVERSIONS(MPI_Session, Session);
CONVERSIONS(MPI_Datatype, Type);
CONVERSIONS(MPI_Win, Win);

/* In programs with Fortran its common blocks of these names become one with them: aligned as Fortran aligns them. */
extern MPI_Fint mpi_f_status_ignore_[MPI_F_STATUS_SIZE], mpi_f_statuses_ignore_[MPI_F_STATUS_SIZE];
__attribute__((aligned(32))) MPI_Fint mpi_f_status_ignore_[MPI_F_STATUS_SIZE];
__attribute__((aligned(32))) MPI_Fint mpi_f_statuses_ignore_[MPI_F_STATUS_SIZE];

MPI_Fint *const MPI_F_STATUS_IGNORE = mpi_f_status_ignore_;
MPI_Fint *const MPI_F_STATUSES_IGNORE = mpi_f_statuses_ignore_;

_Static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint), "both are the same integers");

int PMPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    if (c_status == MPI_STATUS_IGNORE || f_status == NULL) {
        return MPI_ERR_ARG;
    }
    memcpy(f_status, c_status, sizeof(*c_status));
    return MPI_SUCCESS;
}

int PMPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    if (f_status == NULL || f_status == MPI_F_STATUS_IGNORE || f_status == MPI_F_STATUSES_IGNORE || c_status == NULL) {
        return MPI_ERR_ARG;
    }
    memcpy(c_status, f_status, sizeof(*c_status));
    return MPI_SUCCESS;
}

ALIAS(MPI_Status_c2f);
ALIAS(MPI_Status_f2c);
