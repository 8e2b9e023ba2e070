/* C's half of attribute.f90: C's view of attributes, handles and statuses that come from Fortran. */
#include <mpi.h>

static int own;
static int copy_calls;

int c_reads_aint(const MPI_Fint *comm, const int *keyval, const MPI_Aint *value);
int c_reads_int(const MPI_Fint *comm, const int *keyval, const int *value);
int c_sets(const MPI_Fint *comm, const int *keyval);
int c_reads_own(const MPI_Fint *comm, const int *keyval);
MPI_Aint c_address(void);
int c_makes_key(void);
int c_copies(void);
int c_status(const MPI_Fint *f_status);
int c_ignores(const MPI_Fint *f_status, const MPI_Fint *f_statuses);

int c_reads_aint(const MPI_Fint *comm, const int *keyval, const MPI_Aint *value)
{
    MPI_Aint *found = NULL;
    int flag = 0;
    MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *keyval, &found, &flag);
    return flag && *found == *value;
}

int c_reads_int(const MPI_Fint *comm, const int *keyval, const int *value)
{
    int *found = NULL;
    int flag = 0;
    MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *keyval, &found, &flag);
    return flag && *found == *value;
}

int c_sets(const MPI_Fint *comm, const int *keyval)
{
    return MPI_Comm_set_attr(MPI_Comm_f2c(*comm), *keyval, &own);
}

int c_reads_own(const MPI_Fint *comm, const int *keyval)
{
    int *found = NULL;
    int flag = 0;
    MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *keyval, &found, &flag);
    return flag && found == &own;
}

MPI_Aint c_address(void)
{
    return (MPI_Aint)&own;
}

static int copy(MPI_Comm comm, int keyval, void *extra_state, void *value, void *value_copy, int *flag)
{
    (void)keyval;
    copy_calls += extra_state == &copy_calls && comm != MPI_COMM_NULL;
    *(void **)value_copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}

int c_makes_key(void)
{
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &keyval, &copy_calls);
    return keyval;
}

int c_copies(void)
{
    return copy_calls;
}

/* The tag of a status that has gone to C and back; -1: it is another one then. */
int c_status(const MPI_Fint *f_status)
{
    MPI_Status status;
    MPI_Fint back[MPI_F_STATUS_SIZE] = {0};
    int count = 0;
    if (MPI_Status_f2c(f_status, &status) != MPI_SUCCESS || MPI_Status_c2f(&status, back) != MPI_SUCCESS) {
        return -1;
    }
    MPI_Get_count(&status, MPI_INTEGER, &count);
    for (int i = 0; i < MPI_F_STATUS_SIZE; i++) {
        if (back[i] != f_status[i] || count != 1 || back[MPI_F_TAG] != status.MPI_TAG) {
            return -1;
        }
    }
    return status.MPI_TAG;
}

int c_ignores(const MPI_Fint *f_status, const MPI_Fint *f_statuses)
{
    MPI_Status status;
    return f_status == MPI_F_STATUS_IGNORE && f_statuses == MPI_F_STATUSES_IGNORE &&
           MPI_Status_f2c(f_status, &status) == MPI_ERR_ARG && MPI_Comm_c2f(MPI_COMM_SELF) == 0x102;
}
