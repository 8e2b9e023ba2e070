/* The PMIx client. The library of PMIx is loaded when a launcher's environment asks for it: other jobs need none.
 *
 * PMIx keeps a table for each process, ours is one for all. The values that a process puts between two fences become
 * one entry of its own table, "causeway.ROUND", with "key=value " for each. A get searches the entries of the ranks,
 * and requests each entry when it reaches that rank. It begins with the rank whose number is in the key, or rank 0.
 * (Not all servers answer a get from any rank, PMIX_RANK_UNDEF.) */
#include "control/bootstrap/private.h"
#include "dataplane/status.h"

#if defined(CW_HAVE_PMIX)

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pmix.h>

#include "control/bootstrap/pmi1_line.h"

#define LIBRARY "libpmix.so.2"

/* The functions of libpmix that we call. */
struct pmix_calls {
    __typeof__(PMIx_Init) *initialize;
    __typeof__(PMIx_Finalize) *finalize;
    __typeof__(PMIx_Abort) *abort;
    __typeof__(PMIx_Put) *put;
    __typeof__(PMIx_Commit) *commit;
    __typeof__(PMIx_Fence) *fence;
    __typeof__(PMIx_Get) *get;
    __typeof__(PMIx_Register_event_handler) *handler_register;
    __typeof__(PMIx_Error_string) *error_string;
};

static const struct call {
    const char *name;
    size_t offset;
} call_table[] = {
    {"PMIx_Init", offsetof(struct pmix_calls, initialize)},
    {"PMIx_Finalize", offsetof(struct pmix_calls, finalize)},
    {"PMIx_Abort", offsetof(struct pmix_calls, abort)},
    {"PMIx_Put", offsetof(struct pmix_calls, put)},
    {"PMIx_Commit", offsetof(struct pmix_calls, commit)},
    {"PMIx_Fence", offsetof(struct pmix_calls, fence)},
    {"PMIx_Get", offsetof(struct pmix_calls, get)},
    {"PMIx_Register_event_handler", offsetof(struct pmix_calls, handler_register)},
    {"PMIx_Error_string", offsetof(struct pmix_calls, error_string)},
};

enum {
    ROUNDS_MAX = 1 << 16,      /* fences */
    ENTRY_BYTES_MAX = 1 << 24, /* of an entry */
    NAME_BYTES = 32,
};

/* Values put before a fence: entries[rank], NULL until it is requested. */
struct round {
    char **entries;
};

struct pmix {
    struct pmix_calls calls;
    pmix_proc_t self;
    struct round *rounds;
    uint32_t round_count;
    char *pending; /* values put since the last fence; NULL: none */
    size_t pending_length;
};

/* The library's thread notifies a handler, which gets no argument of ours, that the server is gone. */
static atomic_bool server_is_gone;

static void server_closed(size_t registration, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                          size_t info_count, pmix_info_t *results, size_t result_count,
                          pmix_event_notification_cbfunc_fn_t done, void *argument)
{
    (void)registration, (void)status, (void)source, (void)info, (void)info_count, (void)results, (void)result_count;
    atomic_store_explicit(&server_is_gone, true, memory_order_relaxed);
    if (done != NULL) {
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, argument);
    }
}

/* A failure of PMIx as one of ours. */
static int pmix_fail(struct cw_bootstrap *bootstrap, const char *call, pmix_status_t status)
{
    const struct pmix *pmix = bootstrap->state;
    bool is_closed =
        status == PMIX_ERR_LOST_CONNECTION || status == PMIX_ERR_UNREACH || status == PMIX_ERR_COMM_FAILURE;
    return FAIL(bootstrap, is_closed ? CW_ERROR_CLOSED : CW_ERROR_SYSTEM, "%s: %s%s", call,
                pmix->calls.error_string(status),
                is_closed ? ": the launcher's PMIx server has ended, or ends the job" : "");
}

/* A directive that is on. */
static void info_set(pmix_info_t *info, const char *key)
{
    memset(info, 0, sizeof(*info));
    snprintf(info->key, sizeof(info->key), "%s", key);
    info->value.type = PMIX_BOOL;
    info->value.data.flag = true;
}

/* ---- the calls ---- */

static int pmix_put(struct cw_bootstrap *bootstrap, const char *key, const char *value)
{
    struct pmix *pmix = bootstrap->state;
    size_t more = strlen(key) + 1 + strlen(value) + 1;
    char *text =
        pmix->pending_length + more < ENTRY_BYTES_MAX ? realloc(pmix->pending, pmix->pending_length + more + 1) : NULL;
    if (text == NULL) {
        return FAIL(bootstrap, CW_ERROR_MEMORY, "%s: no room for more before a fence", key);
    }
    snprintf(text + pmix->pending_length, more + 1, "%s=%s ", key, value);
    pmix->pending = text;
    pmix->pending_length += more;
    return CW_OK;
}

static void round_name(char name[NAME_BYTES], uint32_t round)
{
    snprintf(name, NAME_BYTES, "causeway.%" PRIu32, round);
}

/* Asks for an entry unless it is there. */
static int entry_load(struct cw_bootstrap *bootstrap, uint32_t round, uint32_t rank)
{
    struct pmix *pmix = bootstrap->state;
    char name[NAME_BYTES];
    pmix_proc_t of = pmix->self;
    pmix_value_t *found = NULL;
    if (pmix->rounds[round].entries[rank] != NULL) {
        return CW_OK;
    }
    of.rank = rank;
    round_name(name, round);
    pmix_status_t status = pmix->calls.get(&of, name, NULL, 0, &found);
    if (status != PMIX_SUCCESS || found == NULL) {
        return pmix_fail(bootstrap, "PMIx_Get", status);
    }
    bool is_text = found->type == PMIX_STRING && found->data.string != NULL;
    if (is_text) {
        pmix->rounds[round].entries[rank] = found->data.string; /* ours now */
    }
    free(found);
    return is_text ? CW_OK
                   : FAIL(bootstrap, CW_ERROR_SYSTEM, "rank %" PRIu32 " is no process of this program's kind", rank);
}

/* Looks for a key in an entry; the last one counts. *length: of its value. NULL: it is not there. */
static const char *entry_find(const char *entry, const char *key, size_t *length)
{
    size_t key_length = strlen(key);
    const char *found = NULL;
    for (const char *at = entry, *end; (end = strchr(at, ' ')) != NULL; at = end + 1) {
        if (strncmp(at, key, key_length) == 0 && at[key_length] == '=') {
            found = at + key_length + 1;
            *length = (size_t)(end - found);
        }
    }
    return found;
}

/* Looks for a key of that rank in all rounds, the last one first. CW_OK: *found, or NULL. */
static int rank_find(struct cw_bootstrap *bootstrap, uint32_t rank, const char *key, const char **found, size_t *length)
{
    struct pmix *pmix = bootstrap->state;
    int status = CW_OK;
    *found = NULL;
    for (uint32_t round = pmix->round_count; round-- > 0 && status == CW_OK && *found == NULL;) {
        status = entry_load(bootstrap, round, rank);
        *found = status == CW_OK ? entry_find(pmix->rounds[round].entries[rank], key, length) : NULL;
    }
    return status;
}

static int pmix_get(struct cw_bootstrap *bootstrap, const char *key, char *value, size_t value_bytes)
{
    uint32_t size = bootstrap->info.size;
    uint32_t first = (uint32_t)strtoul(key + strcspn(key, "0123456789"), NULL, 10) % size;
    const char *found = NULL;
    size_t length = 0;
    int status = CW_OK;
    for (uint32_t i = 0; i < size && status == CW_OK && found == NULL; i++) {
        status = rank_find(bootstrap, (first + i) % size, key, &found, &length);
    }
    if (status != CW_OK) {
        return status;
    }
    if (found == NULL) {
        return FAIL(bootstrap, CW_ERROR_NOT_FOUND, "%s: no rank has put such a key", key);
    }
    if (length >= value_bytes) {
        return FAIL(bootstrap, CW_ERROR_LIMIT, "%s: its %zu characters do not fit", key, length);
    }
    memcpy(value, found, length);
    value[length] = 0;
    return CW_OK;
}

static int round_add(struct cw_bootstrap *bootstrap)
{
    struct pmix *pmix = bootstrap->state;
    struct round *rounds =
        pmix->round_count < ROUNDS_MAX ? realloc(pmix->rounds, (pmix->round_count + 1) * sizeof(*rounds)) : NULL;
    if (rounds != NULL) {
        pmix->rounds = rounds;
        rounds[pmix->round_count].entries = calloc(bootstrap->info.size, sizeof(char *));
    }
    if (rounds == NULL || rounds[pmix->round_count].entries == NULL) {
        return FAIL(bootstrap, CW_ERROR_SYSTEM, "no room for the entries of the ranks in fence %" PRIu32,
                    pmix->round_count);
    }
    pmix->round_count++;
    return CW_OK;
}

static int pmix_fence(struct cw_bootstrap *bootstrap)
{
    struct pmix *pmix = bootstrap->state;
    char name[NAME_BYTES];
    char nothing[] = "";
    pmix_value_t value = {.type = PMIX_STRING};
    pmix_info_t collect;
    info_set(&collect, PMIX_COLLECT_DATA);
    round_name(name, pmix->round_count);
    value.data.string = pmix->pending != NULL ? pmix->pending : nothing;
    pmix_status_t status = pmix->calls.put(PMIX_GLOBAL, name, &value);
    if (status != PMIX_SUCCESS) {
        return pmix_fail(bootstrap, "PMIx_Put", status);
    }
    status = pmix->calls.commit();
    if (status != PMIX_SUCCESS) {
        return pmix_fail(bootstrap, "PMIx_Commit", status);
    }
    status = pmix->calls.fence(NULL, 0, &collect, 1);
    if (status != PMIX_SUCCESS) {
        (void)pmix_fail(bootstrap, "PMIx_Fence", status);
        return CW_ERROR_CLOSED; /* a missing rank does not arrive any more */
    }
    free(pmix->pending);
    pmix->pending = NULL;
    pmix->pending_length = 0;
    return round_add(bootstrap);
}

static void pmix_abort(struct cw_bootstrap *bootstrap, int code)
{
    const struct pmix *pmix = bootstrap->state;
    char text[64];
    snprintf(text, sizeof(text), "rank %" PRIu32 " ends the job with code %d", bootstrap->info.rank, code);
    pmix->calls.abort(code, text, NULL, 0);
}

static bool pmix_is_cut(const struct cw_bootstrap *bootstrap)
{
    (void)bootstrap;
    return atomic_load_explicit(&server_is_gone, memory_order_relaxed);
}

static void pmix_finish(struct cw_bootstrap *bootstrap)
{
    const struct pmix *pmix = bootstrap->state;
    pmix->calls.finalize(NULL, 0);
}

static void pmix_release(struct cw_bootstrap *bootstrap)
{
    struct pmix *pmix = bootstrap->state;
    for (uint32_t round = 0; round < pmix->round_count; round++) {
        for (uint32_t rank = 0; rank < bootstrap->info.size; rank++) {
            free(pmix->rounds[round].entries[rank]);
        }
        free(pmix->rounds[round].entries);
    }
    free(pmix->rounds);
    free(pmix->pending);
    free(pmix); /* the library stays: it has threads, and nothing says when these have ended */
}

/* ---- opening ---- */

static int library_load(struct cw_bootstrap *bootstrap)
{
    struct pmix *pmix = bootstrap->state;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return FAIL(bootstrap, CW_ERROR_NOT_FOUND,
                    "the launcher uses PMIx, but libpmix cannot be loaded: %.120s (on Debian: apt-get install "
                    "libpmix2; elsewhere LD_LIBRARY_PATH)",
                    dlerror());
    }
    for (size_t i = 0; i < sizeof(call_table) / sizeof(call_table[0]); i++) {
        void *found = dlsym(library, call_table[i].name);
        if (found == NULL) {
            dlclose(library);
            return FAIL(bootstrap, CW_ERROR_NOT_FOUND,
                        LIBRARY " has no %s: it is of another version than %s, for which this program was built",
                        call_table[i].name, CW_PMIX_VERSION);
        }
        memcpy((char *)&pmix->calls + call_table[i].offset, &found, sizeof(found));
    }
    return CW_OK;
}

/* A number that the server keeps for the job, or for this process. False: it has none. */
static bool number_get(const struct pmix *pmix, const char *key, pmix_rank_t rank, uint32_t *number)
{
    pmix_proc_t of = pmix->self;
    pmix_value_t *found = NULL;
    pmix_info_t local;
    of.rank = rank;
    info_set(&local, PMIX_OPTIONAL); /* these are there from the beginning, or never */
    if (pmix->calls.get(&of, key, &local, 1, &found) != PMIX_SUCCESS || found == NULL) {
        return false;
    }
    bool is_number = found->type == PMIX_UINT32;
    *number = is_number ? found->data.uint32 : *number;
    free(found);
    return is_number;
}

static int job_learn(struct cw_bootstrap *bootstrap)
{
    const struct pmix *pmix = bootstrap->state;
    struct cw_bootstrap_info *info = &bootstrap->info;
    uint32_t number = 0;
    if (!number_get(pmix, PMIX_JOB_SIZE, PMIX_RANK_WILDCARD, &info->size) || pmix->self.rank >= info->size ||
        info->size > BOOTSTRAP_RANKS_MAX) {
        return FAIL(bootstrap, CW_ERROR_UNSUPPORTED, "the launcher's PMIx server says rank %" PRIu32 " of %" PRIu32,
                    pmix->self.rank, info->size);
    }
    info->rank = pmix->self.rank;
    snprintf(info->job, sizeof(info->job), "%.*s", CW_BOOTSTRAP_JOB_MAX, pmix->self.nspace);
    if (number_get(pmix, PMIX_UNIV_SIZE, PMIX_RANK_WILDCARD, &number)) {
        info->universe_size = number;
    }
    info->app_number = number_get(pmix, PMIX_APPNUM, info->rank, &number) ? (int)number : -1;
    return CW_OK;
}

/* Joins the job; the library's threads take no signals, which are the program's. */
static int server_join(struct cw_bootstrap *bootstrap)
{
    struct pmix *pmix = bootstrap->state;
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pmix_status_t status = pmix->calls.initialize(&pmix->self, NULL, 0);
    if (status == PMIX_SUCCESS) {
        pmix->calls.handler_register(&code, 1, NULL, 0, server_closed, NULL, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != PMIX_SUCCESS) {
        return FAIL(bootstrap, CW_ERROR_SYSTEM,
                    "PMIx_Init: %s: the launcher's PMIx server does not answer (a launcher of another version of PMIx, "
                    "or PMIX_NAMESPACE from an environment that is not ours)",
                    pmix->calls.error_string(status));
    }
    status = job_learn(bootstrap);
    if (status != CW_OK) {
        pmix_finish(bootstrap);
    }
    return status;
}

int bootstrap_pmix_open(struct cw_bootstrap *bootstrap)
{
    static const struct bootstrap_client client = {
        .put = pmix_put,
        .get = pmix_get,
        .fence = pmix_fence,
        .abort = pmix_abort,
        .is_cut = pmix_is_cut,
        .finish = pmix_finish,
        .release = pmix_release,
    };
    struct pmix *pmix = calloc(1, sizeof(*pmix));
    if (pmix == NULL) {
        return FAIL(bootstrap, CW_ERROR_MEMORY, "no memory for the connection to the launcher");
    }
    bootstrap->client = &client;
    bootstrap->state = pmix;
    bootstrap->info.launcher = "PMIx";
    bootstrap->info.value_max = CW_BOOTSTRAP_VALUE_MAX;
    int status = library_load(bootstrap);
    status = status == CW_OK ? server_join(bootstrap) : status;
    if (status != CW_OK) {
        pmix_release(bootstrap);
    }
    return status;
}

#else

int bootstrap_pmix_open(struct cw_bootstrap *bootstrap)
{
    return FAIL(bootstrap, CW_ERROR_NOT_FOUND,
                "the launcher speaks PMIx, without which this program was built (on Debian: apt-get install "
                "libpmix-dev, and build again)");
}

#endif
