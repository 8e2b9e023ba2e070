/* attribute: attributes of Fortran programs, and their conversion from and to those of C (MPI 5.0, 19.3.7).
 *
 * C sets and reads pointers, Fortran integers. A value that Fortran sets is kept in memory of its own, and C gets its
 * address, as the standard requires: C reads a pointer to the integer. The table of these addresses distinguishes
 * Fortran's values, which Fortran reads as integers, from C's, of which it reads the address.
 *
 * Invariants
 *   - Values of keys that were made in Fortran are freed by those keys' delete function, for a delete in any language.
 *     Those of keys made in C stay, since their end is not reported: equal ones share their memory.
 *   - What is known of a key lives on, too: the program may free the key while attributes have it. */
#pragma once

#include "mpi/fortran/entry.h"

typedef void fortran_function(void);

struct fortran_key {
    fortran_function *copy_function;
    fortran_function *delete_function;
    MPI_Aint extra_state;
    bool is_short; /* made by MPI_Keyval_create: its functions take values and state as INTEGER */
};

/* The extra state of a key for C; NULL: no memory. fortran_key_number: the key was made, with this number;
 * fortran_key_drop: it was not made. */
struct fortran_key *fortran_key_make(struct fortran_key key);
void fortran_key_number(struct fortran_key *key, int number);
void fortran_key_drop(struct fortran_key *key);

/* A pointer for C to a value that is set with a key of this number; NULL: no memory. */
void *fortran_value_make(int key_number, MPI_Aint number);
/* C did not take it, after all. */
void fortran_value_drop(void *value);
/* The Fortran value of a pointer from C. */
MPI_Aint fortran_value_read(int key_number, const void *value);

/* Copy and delete functions, for C. */
int fortran_copy_comm(MPI_Comm comm, int keyval, void *key, void *value, void *copy, int *flag);
int fortran_copy_type(MPI_Datatype datatype, int keyval, void *key, void *value, void *copy, int *flag);
int fortran_copy_win(MPI_Win win, int keyval, void *key, void *value, void *copy, int *flag);
int fortran_delete_comm(MPI_Comm comm, int keyval, void *value, void *key);
int fortran_delete_type(MPI_Datatype datatype, int keyval, void *value, void *key);
int fortran_delete_win(MPI_Win win, int keyval, void *value, void *key);
