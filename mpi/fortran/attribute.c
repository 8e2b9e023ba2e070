#include "mpi/fortran/attribute.h"

#include <pthread.h>
#include <stdlib.h>

enum { BUCKETS = 256 };

struct value {
    MPI_Aint number; /* first: C reads it */
    bool is_shared;
    struct value *next;
};

struct key {
    struct fortran_key key; /* first */
    int number;
    struct key *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows; nothing is called while it is held */
static struct value *values[BUCKETS];                    /* by address */
static struct value *shared[BUCKETS];                    /* by number */
static struct key *keys[BUCKETS];                        /* by number, the last one first */

static unsigned bucket_of(const void *address)
{
    return ((uintptr_t)address >> 5) % BUCKETS;
}

struct fortran_key *fortran_key_make(struct fortran_key key)
{
    struct key *made = malloc(sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    *made = (struct key){.key = key};
    return &made->key;
}

void fortran_key_number(struct fortran_key *key, int number)
{
    struct key *made = (struct key *)key;
    pthread_mutex_lock(&lock);
    made->number = number;
    made->next = keys[(unsigned)number % BUCKETS];
    keys[(unsigned)number % BUCKETS] = made;
    pthread_mutex_unlock(&lock);
}

void fortran_key_drop(struct fortran_key *key)
{
    free(key);
}

/* Within the lock. */
static bool is_made_here(int key_number)
{
    struct key *key = keys[(unsigned)key_number % BUCKETS];
    while (key != NULL && key->number != key_number) {
        key = key->next;
    }
    return key != NULL;
}

static struct value **value_find(const void *address)
{
    struct value **link = &values[bucket_of(address)];
    while (*link != NULL && *link != address) {
        link = &(*link)->next;
    }
    return link;
}

static struct value *shared_find(MPI_Aint number)
{
    struct value *value = shared[(size_t)number % BUCKETS];
    while (value != NULL && value->number != number) {
        value = value->next;
    }
    return value;
}

void *fortran_value_make(int key_number, MPI_Aint number)
{
    pthread_mutex_lock(&lock);
    bool is_shared = !is_made_here(key_number);
    struct value *value = is_shared ? shared_find(number) : NULL;
    if (value == NULL && (value = malloc(sizeof(*value))) != NULL) {
        struct value **bucket = is_shared ? &shared[(size_t)number % BUCKETS] : &values[bucket_of(value)];
        *value = (struct value){.number = number, .is_shared = is_shared, .next = *bucket};
        *bucket = value;
    }
    pthread_mutex_unlock(&lock);
    return value;
}

void fortran_value_drop(void *value)
{
    pthread_mutex_lock(&lock);
    struct value **link = value_find(value);
    struct value *found = *link;
    if (found != NULL) {
        *link = found->next;
    }
    pthread_mutex_unlock(&lock);
    free(found);
}

/* The number that Fortran has set; false: it has not. */
static bool number_find(const void *address, MPI_Aint *number)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    const struct value *value = *value_find(address);
    for (unsigned i = 0; value == NULL && i < BUCKETS; i++) { /* rare: such a key was made in C */
        for (value = shared[i]; value != NULL && value != address; value = value->next) {
        }
    }
    if (value != NULL) {
        *number = value->number;
        found = true;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

MPI_Aint fortran_value_read(int key_number, const void *value)
{
    MPI_Aint number = (MPI_Aint)value;
    if (key_number == MPI_WIN_SIZE) {
        return *(const MPI_Aint *)value;
    }
    if ((key_number >= MPI_TAG_UB && key_number <= MPI_UNIVERSE_SIZE) ||
        (key_number > MPI_WIN_BASE && key_number <= MPI_WIN_MODEL)) {
        return *(const int *)value; /* the library's own are pointers to integers in C */
    }
    (void)number_find(value, &number);
    return number;
}

/* The predefined functions, which programs name and may call. One body serves both widths of values: `out` is as wide
 * as `in`. */
#define PREDEFINED(name, type)                                                                                        \
    void mpi_##name##null_copy_fn_(const MPI_Fint *object, const MPI_Fint *keyval, const type *extra_state,           \
                                   const type *in, type *out, MPI_Fint *flag, MPI_Fint *ierror)                       \
    {                                                                                                                 \
        (void)object, (void)keyval, (void)extra_state, (void)in, (void)out;                                           \
        *flag = 0;                                                                                                    \
        *ierror = MPI_SUCCESS;                                                                                        \
    }                                                                                                                 \
    void mpi_##name##dup_fn_(const MPI_Fint *object, const MPI_Fint *keyval, const type *extra_state, const type *in, \
                             type *out, MPI_Fint *flag, MPI_Fint *ierror)                                             \
    {                                                                                                                 \
        (void)object, (void)keyval, (void)extra_state;                                                                \
        *out = *in;                                                                                                   \
        *flag = 1;                                                                                                    \
        *ierror = MPI_SUCCESS;                                                                                        \
    }                                                                                                                 \
    void mpi_##name##null_delete_fn_(const MPI_Fint *object, const MPI_Fint *keyval, const type *value,               \
                                     const type *extra_state, MPI_Fint *ierror)                                       \
    {                                                                                                                 \
        (void)object, (void)keyval, (void)extra_state, (void)value;                                                   \
        *ierror = MPI_SUCCESS;                                                                                        \
    }

PREDEFINED(, MPI_Fint)
PREDEFINED(comm_, MPI_Aint)
PREDEFINED(type_, MPI_Aint)
PREDEFINED(win_, MPI_Aint)

/* A duplicate of a pointer that C has set stays a pointer of C: so MPI_COMM_DUP_FN is not called, but done here. */
static bool is_dup(const struct fortran_key *key)
{
    fortran_function *function = key->copy_function;
    return function == (fortran_function *)mpi_dup_fn_ || function == (fortran_function *)mpi_comm_dup_fn_ ||
           function == (fortran_function *)mpi_type_dup_fn_ || function == (fortran_function *)mpi_win_dup_fn_;
}

/* Values as the key's functions take them: by address, of which they read the lower half if they are short. */
typedef void copy_function(const MPI_Fint *object, const MPI_Fint *keyval, const MPI_Aint *extra_state,
                           const MPI_Aint *in, MPI_Aint *out, MPI_Fint *flag, MPI_Fint *ierror);
typedef void delete_function(const MPI_Fint *object, const MPI_Fint *keyval, const MPI_Aint *value,
                             const MPI_Aint *extra_state, MPI_Fint *ierror);

static int attribute_copy(MPI_Fint object, int keyval, const struct fortran_key *key, void *value, void *copy,
                          int *flag)
{
    MPI_Aint in = (MPI_Aint)value;
    MPI_Aint out = 0;
    MPI_Aint extra_state = key->extra_state;
    MPI_Fint code = MPI_SUCCESS;
    bool is_ours = number_find(value, &in);
    if (is_dup(key)) {
        *flag = 1;
        out = in;
        if (!is_ours) {
            *(void **)copy = value;
            return MPI_SUCCESS;
        }
    } else {
        MPI_Fint copies = 0;
        ((copy_function *)key->copy_function)(&object, &keyval, &extra_state, &in, &out, &copies, &code);
        *flag = copies != 0;
        out = key->is_short ? (MPI_Fint)out : out;
    }
    if (code == MPI_SUCCESS && *flag) {
        *(void **)copy = fortran_value_make(keyval, out);
        code = *(void **)copy == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    }
    return code;
}

static int attribute_delete(MPI_Fint object, int keyval, void *value, const struct fortran_key *key)
{
    MPI_Aint number = (MPI_Aint)value;
    MPI_Aint extra_state = key->extra_state;
    MPI_Fint code = MPI_SUCCESS;
    (void)number_find(value, &number);
    ((delete_function *)key->delete_function)(&object, &keyval, &number, &extra_state, &code);
    if (code == MPI_SUCCESS) {
        fortran_value_drop(value);
    }
    return code;
}

#define FUNCTIONS(kind, type)                                                                       \
    int fortran_copy_##kind(type object, int keyval, void *key, void *value, void *copy, int *flag) \
    {                                                                                               \
        return attribute_copy(FORTRAN_NUMBER(object), keyval, key, value, copy, flag);              \
    }                                                                                               \
    int fortran_delete_##kind(type object, int keyval, void *value, void *key)                      \
    {                                                                                               \
        return attribute_delete(FORTRAN_NUMBER(object), keyval, value, key);                        \
    }

FUNCTIONS(comm, MPI_Comm)
FUNCTIONS(type, MPI_Datatype)
FUNCTIONS(win, MPI_Win)
