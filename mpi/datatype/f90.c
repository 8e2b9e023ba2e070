/* Datatypes by precision and range, of the kinds that gfortran's selected_real_kind and selected_int_kind answer with
 * (MPI 5.0, 19.1.9). The same question has the same answer, which is predefined: it is made when it is first asked for,
 * and stays. */
#include <stdlib.h>

#include "mpi/datatype/contents.h"
#include "mpi/datatype/draft.h"
#include "mpi/datatype/predefined.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

struct kind {
    int precision; /* decimal digits; of integers: the range */
    int range;     /* decimal exponent */
    MPI_Datatype datatype;
    MPI_Datatype complex_datatype;
};

static const struct kind reals[] = {
    {6, 37, MPI_REAL4, MPI_COMPLEX8},
    {15, 307, MPI_REAL8, MPI_COMPLEX16},
    {18, 4931, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX}, /* kind 10, which has no name in the ABI */
    {33, 4931, MPI_REAL16, MPI_COMPLEX32},
};

static const struct kind integers[] = {
    {2, 0, MPI_INTEGER1, MPI_DATATYPE_NULL},   {4, 0, MPI_INTEGER2, MPI_DATATYPE_NULL},
    {9, 0, MPI_INTEGER4, MPI_DATATYPE_NULL},   {18, 0, MPI_INTEGER8, MPI_DATATYPE_NULL},
    {38, 0, MPI_INTEGER16, MPI_DATATYPE_NULL},
};

struct made {
    int combiner;
    int precision;
    int range;
    struct mpi_type *type;
    struct made *next;
};

static struct made *all;

/* The smallest kind that suffices; NULL: none does. */
static const struct kind *kind_find(const struct kind kinds[], size_t count, int precision, int range)
{
    for (size_t i = 0; i < count; i++) {
        if (precision <= kinds[i].precision && range <= kinds[i].range) {
            return &kinds[i];
        }
    }
    return NULL;
}

static struct mpi_type *type_make(int combiner, int precision, int range, MPI_Datatype basic, int *code)
{
    bool has_range = combiner != MPI_COMBINER_F90_INTEGER;
    struct mpi_contents *contents = mpi_contents_make(combiner, has_range ? 2 : 1, 0, 0, 0);
    if (contents != NULL) {
        mpi_contents_integer(contents, precision);
        if (has_range) {
            mpi_contents_integer(contents, range);
        }
    }
    struct mpi_draft draft = mpi_draft_of(mpi_predefined_find(basic));
    struct mpi_type *type = mpi_draft_type(&draft, contents, code);
    if (type != NULL && mpi_type_handle_make(type) == MPI_DATATYPE_NULL) {
        mpi_type_release(type);
        *code = mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for another datatype's handle");
        return NULL;
    }
    if (type != NULL) {
        type->predefined = true;
        type->committed = true;
    }
    return type;
}

static int type_return(int combiner, int precision, int range, MPI_Datatype basic, MPI_Datatype *newtype)
{
    struct made *made = all;
    while (made != NULL && (made->combiner != combiner || made->precision != precision || made->range != range)) {
        made = made->next;
    }
    if (made == NULL) {
        int code = MPI_SUCCESS;
        struct mpi_type *type = type_make(combiner, precision, range, basic, &code);
        if (type == NULL) {
            return code;
        }
        made = malloc(sizeof(*made));
        if (made == NULL) {
            return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for another datatype");
        }
        *made = (struct made){.combiner = combiner, .precision = precision, .range = range, .type = type, .next = all};
        all = made;
    }
    *newtype = made->type->handle;
    return MPI_SUCCESS;
}

static int real_return(int combiner, int p, int r, MPI_Datatype *newtype)
{
    const struct kind *kind = kind_find(reals, sizeof(reals) / sizeof(reals[0]), p, r);
    if ((p == MPI_UNDEFINED && r == MPI_UNDEFINED) || kind == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "no kind of real has a precision of %d and a range of %d", p, r);
    }
    bool is_complex = combiner == MPI_COMBINER_F90_COMPLEX;
    return type_return(combiner, p, r, is_complex ? kind->complex_datatype : kind->datatype, newtype);
}

int mpi_type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
    return real_return(MPI_COMBINER_F90_REAL, p, r, newtype);
}

int mpi_type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
    return real_return(MPI_COMBINER_F90_COMPLEX, p, r, newtype);
}

int mpi_type_create_f90_integer(int r, MPI_Datatype *newtype)
{
    const struct kind *kind = kind_find(integers, sizeof(integers) / sizeof(integers[0]), r, 0);
    if (kind == NULL || r == MPI_UNDEFINED) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "no kind of integer has a range of %d", r);
    }
    return type_return(MPI_COMBINER_F90_INTEGER, r, 0, kind->datatype, newtype);
}
