/* Keys and attributes: the calls (MPI 5.0, 7.7, 16.1). */
#include "mpi/fortran/attribute.h"

#define KEY(function_copy, function_delete, state, short_form)                  \
    fortran_key_make((struct fortran_key){.copy_function = (function_copy),     \
                                          .delete_function = (function_delete), \
                                          .extra_state = (state),               \
                                          .is_short = (short_form)})

static void key_end(struct fortran_key *key, int code, int number)
{
    if (code == MPI_SUCCESS) {
        fortran_key_number(key, number);
    } else if (key != NULL) {
        fortran_key_drop(key);
    }
}

#define CALLS(kind, Kind, type)                                                                                      \
    void FORTRAN_ENTRY(kind##_create_keyval)(fortran_function * copy, fortran_function * delete, MPI_Fint * keyval,  \
                                             const MPI_Aint *extra_state, MPI_Fint *ierror)                          \
    {                                                                                                                \
        struct fortran_key *key = KEY(copy, delete, *extra_state, false);                                            \
        *ierror = key == NULL                                                                                        \
                      ? MPI_ERR_NO_MEM                                                                               \
                      : FORTRAN_CALL(Kind##_create_keyval)(fortran_copy_##kind, fortran_delete_##kind, keyval, key); \
        key_end(key, *ierror, *keyval);                                                                              \
    }                                                                                                                \
    void FORTRAN_ENTRY(kind##_set_attr)(const MPI_Fint *object, const MPI_Fint *keyval, const MPI_Aint *number,      \
                                        MPI_Fint *ierror)                                                            \
    {                                                                                                                \
        void *value = fortran_value_make(*keyval, *number);                                                          \
        *ierror = value == NULL ? MPI_ERR_NO_MEM                                                                     \
                                : FORTRAN_CALL(Kind##_set_attr)(FORTRAN_HANDLE(type, object), *keyval, value);       \
        if (*ierror != MPI_SUCCESS && value != NULL) {                                                               \
            fortran_value_drop(value);                                                                               \
        }                                                                                                            \
    }                                                                                                                \
    void FORTRAN_ENTRY(kind##_get_attr)(const MPI_Fint *object, const MPI_Fint *keyval, MPI_Aint *number,            \
                                        MPI_Fint *flag, MPI_Fint *ierror)                                            \
    {                                                                                                                \
        void *value = NULL;                                                                                          \
        int found = 0;                                                                                               \
        *ierror = FORTRAN_CALL(Kind##_get_attr)(FORTRAN_HANDLE(type, object), *keyval, &value, &found);              \
        *flag = found != 0;                                                                                          \
        if (found) {                                                                                                 \
            *number = fortran_value_read(*keyval, value);                                                            \
        }                                                                                                            \
    }

CALLS(comm, Comm, MPI_Comm)
CALLS(type, Type, MPI_Datatype)
CALLS(win, Win, MPI_Win)

void FORTRAN_ENTRY(keyval_create)(fortran_function *copy, fortran_function *delete, MPI_Fint *keyval,
                                  const MPI_Fint *extra_state, MPI_Fint *ierror)
{
    struct fortran_key *key = KEY(copy, delete, *extra_state, true);
    *ierror =
        key == NULL ? MPI_ERR_NO_MEM : FORTRAN_CALL(Keyval_create)(fortran_copy_comm, fortran_delete_comm, keyval, key);
    key_end(key, *ierror, *keyval);
}

void FORTRAN_ENTRY(attr_put)(const MPI_Fint *comm, const MPI_Fint *keyval, const MPI_Fint *number, MPI_Fint *ierror)
{
    void *value = fortran_value_make(*keyval, *number);
    *ierror = value == NULL ? MPI_ERR_NO_MEM : FORTRAN_CALL(Attr_put)(FORTRAN_HANDLE(MPI_Comm, comm), *keyval, value);
    if (*ierror != MPI_SUCCESS && value != NULL) {
        fortran_value_drop(value);
    }
}

void FORTRAN_ENTRY(attr_get)(const MPI_Fint *comm, const MPI_Fint *keyval, MPI_Fint *number, MPI_Fint *flag,
                             MPI_Fint *ierror)
{
    void *value = NULL;
    int found = 0;
    *ierror = FORTRAN_CALL(Attr_get)(FORTRAN_HANDLE(MPI_Comm, comm), *keyval, &value, &found);
    *flag = found != 0;
    if (found) {
        *number = (MPI_Fint)fortran_value_read(*keyval, value);
    }
}
