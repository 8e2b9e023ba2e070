/* Functions of Fortran that C calls by others: generalized requests and data representations (MPI 5.0, 13.2,
 * 14.5.3). */
#include <stdlib.h>

#include "mpi/fortran/entry.h"

typedef void query_function(MPI_Aint *extra_state, MPI_Fint *status, MPI_Fint *ierror);
typedef void free_function(MPI_Aint *extra_state, MPI_Fint *ierror);
typedef void cancel_function(MPI_Aint *extra_state, MPI_Fint *complete, MPI_Fint *ierror);

struct general {
    query_function *query;
    free_function *free;
    cancel_function *cancel;
    MPI_Aint *extra_state; /* the program's own variable, as with MPICH and Open MPI */
};

static int general_query(void *state, MPI_Status *status)
{
    struct general *general = state;
    MPI_Fint code = MPI_SUCCESS;
    general->query(general->extra_state, (MPI_Fint *)status, &code);
    return code;
}

/* The last that is called of a request. */
static int general_free(void *state)
{
    struct general *general = state;
    MPI_Fint code = MPI_SUCCESS;
    general->free(general->extra_state, &code);
    free(general);
    return code;
}

static int general_cancel(void *state, int complete)
{
    struct general *general = state;
    MPI_Fint is_complete = complete != 0;
    MPI_Fint code = MPI_SUCCESS;
    general->cancel(general->extra_state, &is_complete, &code);
    return code;
}

void FORTRAN_ENTRY(grequest_start)(query_function *query_fn, free_function *free_fn, cancel_function *cancel_fn,
                                   MPI_Aint *extra_state, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request request_c = MPI_REQUEST_NULL;
    struct general *general = malloc(sizeof(*general));
    if (general == NULL) {
        *ierror = MPI_ERR_NO_MEM;
        return;
    }
    *general = (struct general){.query = query_fn, .free = free_fn, .cancel = cancel_fn, .extra_state = extra_state};
    *ierror = FORTRAN_CALL(Grequest_start)(general_query, general_free, general_cancel, general, &request_c);
    *request = FORTRAN_NUMBER(request_c);
    if (*ierror != MPI_SUCCESS) {
        free(general);
    }
}

typedef void convert_function(void *userbuf, MPI_Fint *datatype, MPI_Fint *count, void *filebuf, MPI_Offset *position,
                              MPI_Aint *extra_state, MPI_Fint *ierror);
typedef void extent_function(MPI_Fint *datatype, MPI_Aint *extent, MPI_Aint *extra_state, MPI_Fint *ierror);

/* Of the same name as a program's MPI_CONVERSION_FN_NULL, which is never called. */
void mpi_conversion_fn_null_(void);

#ifdef FORTRAN_PROFILED
void mpi_conversion_fn_null_(void)
{
}
#endif

struct representation {
    convert_function *read;
    convert_function *write;
    extent_function *extent;
    MPI_Aint *extra_state;
};

static int represent(convert_function *function, void *userbuf, MPI_Datatype datatype, int count, void *filebuf,
                     MPI_Offset position, struct representation *representation)
{
    MPI_Fint datatype_number = FORTRAN_NUMBER(datatype);
    MPI_Fint code = MPI_SUCCESS;
    function(userbuf, &datatype_number, &count, filebuf, &position, representation->extra_state, &code);
    return code;
}

static int represent_read(void *userbuf, MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position,
                          void *state)
{
    return represent(((struct representation *)state)->read, userbuf, datatype, count, filebuf, position, state);
}

static int represent_write(void *userbuf, MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position,
                           void *state)
{
    return represent(((struct representation *)state)->write, userbuf, datatype, count, filebuf, position, state);
}

static int represent_extent(MPI_Datatype datatype, MPI_Aint *extent, void *state)
{
    struct representation *representation = state;
    MPI_Fint datatype_number = FORTRAN_NUMBER(datatype);
    MPI_Fint code = MPI_SUCCESS;
    representation->extent(&datatype_number, extent, representation->extra_state, &code);
    return code;
}

static bool is_null(convert_function *function)
{
    return (void (*)(void))function == mpi_conversion_fn_null_;
}

/* A representation stays until the program ends, and so does what is kept of it here. */
void FORTRAN_ENTRY(register_datarep)(const char *datarep, convert_function *read_fn, convert_function *write_fn,
                                     extent_function *extent_fn, MPI_Aint *extra_state, MPI_Fint *ierror,
                                     size_t datarep_length)
{
    struct representation *representation = malloc(sizeof(*representation));
    char *datarep_c = fortran_text(datarep, datarep_length, false);
    if (representation == NULL || datarep_c == NULL) {
        *ierror = MPI_ERR_NO_MEM;
    } else {
        *representation = (struct representation){
            .read = read_fn, .write = write_fn, .extent = extent_fn, .extra_state = extra_state};
        *ierror = FORTRAN_CALL(Register_datarep)(datarep_c, is_null(read_fn) ? MPI_CONVERSION_FN_NULL : represent_read,
                                                 is_null(write_fn) ? MPI_CONVERSION_FN_NULL : represent_write,
                                                 represent_extent, representation);
    }
    if (*ierror != MPI_SUCCESS) {
        free(representation);
    }
    free(datarep_c);
}
