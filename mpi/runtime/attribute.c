#include "mpi/runtime/attribute.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/runtime/error.h"
#include "mpi/state/comm.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"

enum {
    KEY_FIRST = 0x1000, /* above the ABI's predefined keys */
    KEY_MAX = 1 << 20,
};

enum key_kind {
    KEY_COMM,
    KEY_TYPE,
};

struct key {
    enum key_kind kind;
    int number;
    uint32_t references;
    bool is_freed; /* by the program */
    union {
        MPI_Comm_copy_attr_function *copy_comm; /* 0: values are not copied; 1: as they are (MPI_COMM_DUP_FN) */
        MPI_Type_copy_attr_function *copy_type;
    };
    union {
        MPI_Comm_delete_attr_function *delete_comm;
        MPI_Type_delete_attr_function *delete_type;
    };
    void *extra_state;
};

struct attribute {
    struct key *key;
    void *value;
};

/* In the order in which they were set. */
struct mpi_attributes {
    uint32_t count;
    uint32_t capacity;
    struct attribute *all;
};

/* The first argument of functions: the object that has the attributes. */
struct owner {
    enum key_kind kind;
    MPI_Comm comm;
    MPI_Datatype datatype;
};

static struct key **keys;
static int key_count;

static struct key *key_find(enum key_kind kind, int number)
{
    int index = number >= KEY_FIRST ? number - KEY_FIRST : -1;
    struct key *key = index >= 0 && index < key_count ? keys[index] : NULL;
    return key != NULL && key->kind == kind ? key : NULL;
}

/* An index for a new key. New ones come before used ones: an old number should not soon name another key. -1: none. */
static int key_index(void)
{
    if (key_count < KEY_MAX) {
        struct key **grown = realloc(keys, (size_t)(key_count + 1) * sizeof(struct key *));
        if (grown == NULL) {
            return -1;
        }
        keys = grown;
        keys[key_count] = NULL;
        return key_count++;
    }
    for (int index = 0; index < key_count; index++) {
        if (keys[index] == NULL) {
            return index;
        }
    }
    return -1;
}

static int key_make(struct key value, int *number)
{
    int index = key_index();
    struct key *key = index < 0 ? NULL : malloc(sizeof(*key));
    if (key == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for another key of attributes");
    }
    *key = value;
    key->references = 1;
    key->number = KEY_FIRST + index;
    keys[index] = key;
    *number = key->number;
    return MPI_SUCCESS;
}

static void key_release(struct key *key)
{
    assert(key->references > 0);
    if (--key->references == 0) {
        keys[key->number - KEY_FIRST] = NULL;
        free(key);
    }
}

static bool is_library_key(int number)
{
    return number >= MPI_TAG_UB && number <= MPI_UNIVERSE_SIZE;
}

static int key_unknown(MPI_Comm comm, int number)
{
    const char *what = "there is no such key for this kind of object";
    if (number == MPI_KEYVAL_INVALID) {
        what = "the key is MPI_KEYVAL_INVALID";
    } else if (is_library_key(number)) {
        what = "attributes of the library cannot be set, deleted or freed";
    }
    return mpi_error(comm, MPI_ERR_KEYVAL, "%s", what);
}

static int key_free(enum key_kind kind, int *number)
{
    struct key *key = key_find(kind, *number);
    if (key == NULL) {
        return key_unknown(MPI_COMM_NULL, *number);
    }
    if (!key->is_freed) { /* by a copy of the key: attributes keep it, so that it is still known */
        key->is_freed = true;
        key_release(key);
    }
    *number = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

static struct attribute *attribute_find(const struct mpi_attributes *attributes, const struct key *key)
{
    for (uint32_t i = 0; attributes != NULL && i < attributes->count; i++) {
        if (attributes->all[i].key == key) {
            return &attributes->all[i];
        }
    }
    return NULL;
}

/* Puts a value at the end; it has none of this key. False: no memory. */
static bool attribute_append(struct mpi_attributes **attributes, struct key *key, void *value)
{
    if (*attributes == NULL) {
        *attributes = calloc(1, sizeof(**attributes));
    }
    struct mpi_attributes *all = *attributes;
    if (all == NULL) {
        return false;
    }
    if (all->count == all->capacity) {
        uint32_t capacity = 2 * all->capacity + 2;
        struct attribute *grown = realloc(all->all, capacity * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        all->all = grown;
        all->capacity = capacity;
    }
    all->all[all->count++] = (struct attribute){.key = key, .value = value};
    key->references++;
    return true;
}

static void attribute_remove(struct mpi_attributes *attributes, const struct key *key)
{
    struct attribute *found = attribute_find(attributes, key);
    if (found != NULL) {
        struct key *released = found->key;
        attributes->count--;
        memmove(found, found + 1, (size_t)(&attributes->all[attributes->count] - found) * sizeof(*found));
        key_release(released);
    }
}

static int call_copy(struct owner owner, const struct key *key, void *value, void **copy, int *flag)
{
    if (key->copy_comm == MPI_COMM_NULL_COPY_FN || key->copy_comm == MPI_COMM_DUP_FN) {
        *copy = value;
        *flag = key->copy_comm == MPI_COMM_DUP_FN;
        return MPI_SUCCESS;
    }
    *flag = 0;
    return owner.kind == KEY_COMM ? key->copy_comm(owner.comm, key->number, key->extra_state, value, copy, flag)
                                  : key->copy_type(owner.datatype, key->number, key->extra_state, value, copy, flag);
}

static int call_delete(struct owner owner, const struct key *key, void *value)
{
    if (key->delete_comm == MPI_COMM_NULL_DELETE_FN) {
        return MPI_SUCCESS;
    }
    return owner.kind == KEY_COMM ? key->delete_comm(owner.comm, key->number, value, key->extra_state)
                                  : key->delete_type(owner.datatype, key->number, value, key->extra_state);
}

/* Calls the delete function of one value, and removes the value if it agrees. */
static int attribute_delete(struct owner owner, struct mpi_attributes *attributes, struct key *key)
{
    struct attribute *found = attribute_find(attributes, key);
    if (found == NULL) {
        return MPI_SUCCESS;
    }
    key->references++; /* it stays here while its function runs */
    int code = call_delete(owner, key, found->value);
    if (code == MPI_SUCCESS) {
        attribute_remove(attributes, key);
    }
    key_release(key);
    return code;
}

static void attributes_drop(struct mpi_attributes **attributes)
{
    if (*attributes != NULL) {
        while ((*attributes)->count > 0) {
            key_release((*attributes)->all[--(*attributes)->count].key);
        }
        free((*attributes)->all);
        free(*attributes);
        *attributes = NULL;
    }
}

static int attributes_copy(struct owner owner, struct mpi_attributes *attributes, struct mpi_attributes **copy)
{
    *copy = NULL;
    int code = MPI_SUCCESS;
    for (uint32_t i = 0; code == MPI_SUCCESS && attributes != NULL && i < attributes->count; i++) {
        struct key *key = attributes->all[i].key;
        void *value = NULL;
        int flag = 0;
        key->references++; /* the function may delete the attribute */
        code = call_copy(owner, key, attributes->all[i].value, &value, &flag);
        if (code == MPI_SUCCESS && flag && !attribute_append(copy, key, value)) {
            code = MPI_ERR_NO_MEM;
        }
        key_release(key);
    }
    if (code != MPI_SUCCESS) {
        attributes_drop(copy);
    }
    return code;
}

static int attributes_free(struct owner owner, struct mpi_attributes **attributes)
{
    int code = MPI_SUCCESS;
    while (code == MPI_SUCCESS && *attributes != NULL && (*attributes)->count > 0) {
        code = attribute_delete(owner, *attributes, (*attributes)->all[(*attributes)->count - 1].key);
    }
    if (code == MPI_SUCCESS) {
        attributes_drop(attributes);
    }
    return code;
}

static struct owner owner_comm(MPI_Comm comm)
{
    return (struct owner){.kind = KEY_COMM, .comm = comm};
}

static struct owner owner_type(MPI_Datatype datatype)
{
    return (struct owner){.kind = KEY_TYPE, .datatype = datatype};
}

int mpi_attributes_copy_comm(MPI_Comm old, struct mpi_attributes *attributes, struct mpi_attributes **copy)
{
    return attributes_copy(owner_comm(old), attributes, copy);
}

int mpi_attributes_copy_type(MPI_Datatype old, struct mpi_attributes *attributes, struct mpi_attributes **copy)
{
    return attributes_copy(owner_type(old), attributes, copy);
}

int mpi_attributes_free_comm(MPI_Comm comm, struct mpi_attributes **attributes)
{
    return attributes_free(owner_comm(comm), attributes);
}

int mpi_attributes_free_type(MPI_Datatype datatype, struct mpi_attributes **attributes)
{
    return attributes_free(owner_type(datatype), attributes);
}

/* Deletes the old value, if there is one, and sets the new one. Errors are raised through `comm`. */
static int attribute_set(MPI_Comm comm, struct owner owner, struct mpi_attributes **attributes, int number, void *value)
{
    struct key *key = key_find(owner.kind, number);
    if (key == NULL) {
        return key_unknown(comm, number);
    }
    key->references++;
    int code = attribute_delete(owner, *attributes, key);
    if (code == MPI_SUCCESS && !attribute_append(attributes, key, value)) {
        code = MPI_ERR_NO_MEM;
    }
    key_release(key);
    return code == MPI_SUCCESS
               ? code
               : mpi_error(comm, code, "the attribute could not be set: %s",
                           code == MPI_ERR_NO_MEM ? "no memory" : "the old value's delete function failed");
}

static int attribute_get(MPI_Comm comm, enum key_kind kind, const struct mpi_attributes *attributes, int number,
                         void *attribute_val, int *flag)
{
    const struct key *key = key_find(kind, number);
    if (key == NULL) {
        return key_unknown(comm, number);
    }
    const struct attribute *found = attribute_find(attributes, key);
    *flag = found != NULL;
    if (found != NULL) {
        *(void **)attribute_val = found->value;
    }
    return MPI_SUCCESS;
}

static int attribute_unset(MPI_Comm comm, struct owner owner, struct mpi_attributes *attributes, int number)
{
    struct key *key = key_find(owner.kind, number);
    if (key == NULL) {
        return key_unknown(comm, number);
    }
    int code = attribute_delete(owner, attributes, key);
    return code == MPI_SUCCESS ? code : mpi_error(comm, code, "the attribute's delete function failed");
}

int mpi_attribute_set_type(MPI_Datatype datatype, struct mpi_attributes **attributes, int number, void *value)
{
    return attribute_set(MPI_COMM_NULL, owner_type(datatype), attributes, number, value);
}

int mpi_attribute_get_type(const struct mpi_attributes *attributes, int number, void *value, int *flag)
{
    return attribute_get(MPI_COMM_NULL, KEY_TYPE, attributes, number, value, flag);
}

int mpi_attribute_unset_type(MPI_Datatype datatype, struct mpi_attributes *attributes, int number)
{
    return attribute_unset(MPI_COMM_NULL, owner_type(datatype), attributes, number);
}

int mpi_comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn,
                           MPI_Comm_delete_attr_function *comm_delete_attr_fn, int *comm_keyval, void *extra_state)
{
    return key_make((struct key){.kind = KEY_COMM,
                                 .copy_comm = comm_copy_attr_fn,
                                 .delete_comm = comm_delete_attr_fn,
                                 .extra_state = extra_state},
                    comm_keyval);
}

int mpi_comm_free_keyval(int *comm_keyval)
{
    return key_free(KEY_COMM, comm_keyval);
}

int mpi_type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn,
                           MPI_Type_delete_attr_function *type_delete_attr_fn, int *type_keyval, void *extra_state)
{
    return key_make((struct key){.kind = KEY_TYPE,
                                 .copy_type = type_copy_attr_fn,
                                 .delete_type = type_delete_attr_fn,
                                 .extra_state = extra_state},
                    type_keyval);
}

int mpi_type_free_keyval(int *type_keyval)
{
    return key_free(KEY_TYPE, type_keyval);
}

/* The library's own values as attributes of any communicator: a pointer to int, which stays valid. NULL: not known. */
static int *library_value(int number)
{
    static int values[MPI_UNIVERSE_SIZE - MPI_TAG_UB + 1];
    int *value = &values[number - MPI_TAG_UB];
    struct cw_bootstrap_info info = {.app_number = -1};
    if (mpi_process.job != NULL) {
        info = cw_job_info(mpi_process.job);
    }
    switch (number) {
    case MPI_TAG_UB:
        *value = MPI_TAG_MAX;
        return value;
    case MPI_IO:
        *value = MPI_ANY_SOURCE;
        return value;
    case MPI_HOST:
        *value = MPI_PROC_NULL;
        return value;
    case MPI_WTIME_IS_GLOBAL:
        *value = 0;
        return value;
    case MPI_APPNUM:
        *value = info.app_number;
        return info.app_number < 0 ? NULL : value;
    case MPI_UNIVERSE_SIZE:
        *value = (int)info.universe_size;
        return info.universe_size == 0 ? NULL : value;
    default: /* MPI_LASTUSEDCODE */
        *value = mpi_error_last_used();
        return value;
    }
}

static int comm_unknown(void)
{
    return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
}

int mpi_comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val)
{
    struct mpi_comm *found = mpi_comm_find(comm);
    return found == NULL ? comm_unknown()
                         : attribute_set(comm, owner_comm(comm), &found->attributes, comm_keyval, attribute_val);
}

int mpi_comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag)
{
    const struct mpi_comm *found = mpi_comm_find(comm);
    if (found == NULL) {
        return comm_unknown();
    }
    if (is_library_key(comm_keyval)) {
        int *value = library_value(comm_keyval);
        *flag = value != NULL;
        if (value != NULL) {
            *(void **)attribute_val = value;
        }
        return MPI_SUCCESS;
    }
    return attribute_get(comm, KEY_COMM, found->attributes, comm_keyval, attribute_val, flag);
}

int mpi_comm_delete_attr(MPI_Comm comm, int comm_keyval)
{
    struct mpi_comm *found = mpi_comm_find(comm);
    return found == NULL ? comm_unknown() : attribute_unset(comm, owner_comm(comm), found->attributes, comm_keyval);
}

/* The deprecated names of the same (MPI 5.0, 16.1). */
int mpi_keyval_create(MPI_Copy_function *copy_fn, MPI_Delete_function *delete_fn, int *keyval, void *extra_state)
{
    return mpi_comm_create_keyval(copy_fn, delete_fn, keyval, extra_state);
}

int mpi_keyval_free(int *keyval)
{
    return mpi_comm_free_keyval(keyval);
}

int mpi_attr_put(MPI_Comm comm, int keyval, void *attribute_val)
{
    return mpi_comm_set_attr(comm, keyval, attribute_val);
}

int mpi_attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag)
{
    return mpi_comm_get_attr(comm, keyval, attribute_val, flag);
}

int mpi_attr_delete(MPI_Comm comm, int keyval)
{
    return mpi_comm_delete_attr(comm, keyval);
}
