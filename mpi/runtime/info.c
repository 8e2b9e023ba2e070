#include "mpi/runtime/info.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/runtime/error.h"
#include "mpi/runtime/info_env.h"
#include "mpi/state/handle.h"
#include "mpi_functions.h"

struct entry {
    char *key;
    char *value;
};

struct mpi_info {
    int count;
    int capacity;
    struct entry *entries;
};

static struct entry *entry_find(const struct mpi_info *info, const char *key)
{
    for (int i = 0; i < info->count; i++) {
        if (strcmp(info->entries[i].key, key) == 0) {
            return &info->entries[i];
        }
    }
    return NULL;
}

static bool entry_append(struct mpi_info *info, const char *key, const char *value)
{
    if (info->count == info->capacity) {
        int capacity = 2 * info->capacity + 4;
        struct entry *grown = realloc(info->entries, (size_t)capacity * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        info->entries = grown;
        info->capacity = capacity;
    }
    struct entry entry = {.key = strdup(key), .value = strdup(value)};
    if (entry.key == NULL || entry.value == NULL) {
        free(entry.key);
        free(entry.value);
        return false;
    }
    info->entries[info->count++] = entry;
    return true;
}

static bool info_put(struct mpi_info *info, const char *key, const char *value)
{
    struct entry *found = entry_find(info, key);
    if (found == NULL) {
        return entry_append(info, key, value);
    }
    char *copy = strdup(value);
    if (copy == NULL) {
        return false;
    }
    free(found->value);
    found->value = copy;
    return true;
}

const char *mpi_info_value(const struct mpi_info *info, const char *key)
{
    const struct entry *found = entry_find(info, key);
    return found == NULL ? NULL : found->value;
}

void mpi_info_free_object(struct mpi_info *info)
{
    if (info == NULL) {
        return;
    }
    for (int i = 0; i < info->count; i++) {
        free(info->entries[i].key);
        free(info->entries[i].value);
    }
    free(info->entries);
    free(info);
}

struct mpi_info *mpi_info_copy(const struct mpi_info *info)
{
    struct mpi_info *copy = calloc(1, sizeof(*copy));
    for (int i = 0; copy != NULL && info != NULL && i < info->count; i++) {
        if (!entry_append(copy, info->entries[i].key, info->entries[i].value)) {
            mpi_info_free_object(copy);
            copy = NULL;
        }
    }
    return copy;
}

/* Known facts about this program. NULL: no memory. */
static struct mpi_info *env_make(int argc, char *const argv[])
{
    struct mpi_info_env env;
    struct mpi_info *info = calloc(1, sizeof(*info));
    mpi_info_env_read(&env, argc, argv);
    for (int i = 0; info != NULL && i < env.count; i++) {
        if (!entry_append(info, env.pairs[i].key, env.pairs[i].value)) {
            mpi_info_free_object(info);
            info = NULL;
        }
    }
    return info;
}

/* MPI_INFO_ENV, made when it is first asked for. */
static struct mpi_info *env_find(void)
{
    static struct mpi_info *env;
    if (env == NULL) {
        env = env_make(0, NULL);
    }
    return env;
}

struct mpi_info *mpi_info_find(MPI_Info handle)
{
    return handle == MPI_INFO_ENV ? env_find() : mpi_handle_object(MPI_KIND_INFO, (uintptr_t)handle);
}

static int no_memory(void)
{
    return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for an info object");
}

/* Takes the object, also on failure; NULL: there was no memory for it. */
static int handle_return(struct mpi_info *info, MPI_Info *handle)
{
    uintptr_t made = info == NULL ? 0 : mpi_handle_make(MPI_KIND_INFO, info);
    if (made == 0) {
        mpi_info_free_object(info);
        return no_memory();
    }
    *handle = (MPI_Info)made;
    return MPI_SUCCESS;
}

int mpi_info_return(const struct mpi_info *info, MPI_Info *handle)
{
    return handle_return(mpi_info_copy(info), handle);
}

/* Finds the object of a call, to be changed or not. NULL: *code has been raised. */
static struct mpi_info *info_argument(MPI_Info handle, bool changes, int *code)
{
    struct mpi_info *info = mpi_info_find(handle);
    *code = MPI_SUCCESS;
    if (handle == MPI_INFO_ENV && changes) {
        *code = mpi_error(MPI_COMM_NULL, MPI_ERR_INFO, "MPI_INFO_ENV can be neither changed nor freed");
        return NULL;
    }
    if (info == NULL) {
        *code = mpi_error(MPI_COMM_NULL, MPI_ERR_INFO, "%s",
                          handle == MPI_INFO_NULL ? "the info object is MPI_INFO_NULL"
                                                  : "unknown info object, or one that was freed");
    }
    return info;
}

static int key_check(const char *key)
{
    if (key != NULL && key[0] != '\0' && strlen(key) < MPI_MAX_INFO_KEY) {
        return MPI_SUCCESS;
    }
    return mpi_error(MPI_COMM_NULL, MPI_ERR_INFO_KEY, "a key has 1 to %d characters", MPI_MAX_INFO_KEY - 1);
}

/* Object and key of a call at once. */
static struct mpi_info *keyed_argument(MPI_Info handle, bool changes, const char *key, int *code)
{
    struct mpi_info *info = info_argument(handle, changes, code);
    if (info != NULL) {
        *code = key_check(key);
    }
    return *code == MPI_SUCCESS ? info : NULL;
}

int mpi_info_create(MPI_Info *info)
{
    return mpi_info_return(NULL, info);
}

int mpi_info_create_env(int argc, char *argv[], MPI_Info *info)
{
    return handle_return(env_make(argc, argv), info);
}

int mpi_info_dup(MPI_Info info, MPI_Info *newinfo)
{
    int code;
    struct mpi_info *found = info_argument(info, false, &code);
    return found == NULL ? code : mpi_info_return(found, newinfo);
}

int mpi_info_free(MPI_Info *info)
{
    int code;
    struct mpi_info *found = info_argument(*info, true, &code);
    if (found != NULL) {
        mpi_handle_free(MPI_KIND_INFO, (uintptr_t)*info);
        mpi_info_free_object(found);
        *info = MPI_INFO_NULL;
    }
    return code;
}

int mpi_info_set(MPI_Info info, const char *key, const char *value)
{
    int code;
    struct mpi_info *found = keyed_argument(info, true, key, &code);
    if (found == NULL) {
        return code;
    }
    if (value == NULL || strlen(value) >= MPI_MAX_INFO_VAL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_INFO_VALUE, "a value has at most %d characters", MPI_MAX_INFO_VAL - 1);
    }
    return info_put(found, key, value) ? MPI_SUCCESS : no_memory();
}

int mpi_info_delete(MPI_Info info, const char *key)
{
    int code;
    struct mpi_info *found = keyed_argument(info, true, key, &code);
    if (found == NULL) {
        return code;
    }
    struct entry *entry = entry_find(found, key);
    if (entry == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_INFO_NOKEY, "there is no key \"%s\"", key);
    }
    free(entry->key);
    free(entry->value);
    found->count--;
    memmove(entry, entry + 1, (size_t)(&found->entries[found->count] - entry) * sizeof(*entry));
    return MPI_SUCCESS;
}

int mpi_info_get_nkeys(MPI_Info info, int *nkeys)
{
    int code;
    const struct mpi_info *found = info_argument(info, false, &code);
    if (found != NULL) {
        *nkeys = found->count;
    }
    return code;
}

int mpi_info_get_nthkey(MPI_Info info, int n, char *key)
{
    int code;
    const struct mpi_info *found = info_argument(info, false, &code);
    if (found == NULL) {
        return code;
    }
    if (n < 0 || n >= found->count) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_INFO_NOKEY, "there is no key number %d; there are %d, counted from 0",
                         n, found->count);
    }
    memcpy(key, found->entries[n].key, strlen(found->entries[n].key) + 1);
    return MPI_SUCCESS;
}

/* The value of a call's key, and whether there is one. */
static int info_look_up(MPI_Info info, const char *key, const char **value, int *flag)
{
    int code;
    const struct mpi_info *found = keyed_argument(info, false, key, &code);
    if (found != NULL) {
        *value = mpi_info_value(found, key);
        *flag = *value != NULL;
    }
    return code;
}

int mpi_info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag)
{
    const char *text = NULL;
    if (*buflen < 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "the length of the buffer is %d", *buflen);
    }
    if (*buflen > 0 && value == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "the value is NULL, but its length is %d", *buflen);
    }
    int code = info_look_up(info, key, &text, flag);
    if (text != NULL) {
        if (*buflen > 0) {
            snprintf(value, (size_t)*buflen, "%s", text);
        }
        *buflen = (int)strlen(text) + 1; /* the required length, with the terminating null */
    }
    return code;
}

int mpi_info_get(MPI_Info info, const char *key, int valuelen, char *value, int *flag)
{
    const char *text = NULL;
    if (valuelen < 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "the length of the value is %d", valuelen);
    }
    int code = info_look_up(info, key, &text, flag);
    if (text != NULL) {
        snprintf(value, (size_t)valuelen + 1, "%s", text); /* valuelen counts without the terminating null */
    }
    return code;
}

int mpi_info_get_valuelen(MPI_Info info, const char *key, int *valuelen, int *flag)
{
    const char *text = NULL;
    int code = info_look_up(info, key, &text, flag);
    if (text != NULL) {
        *valuelen = (int)strlen(text);
    }
    return code;
}
