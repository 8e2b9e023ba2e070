/* The PMI-1 client: one line is asked, one line is answered, over a descriptor that was inherited (PMI_FD) or a
 * connection (PMI_PORT, PMI_ID). */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/bootstrap/pmi1_line.h"
#include "control/bootstrap/private.h"
#include "control/settings/setting.h"
#include "dataplane/status.h"

enum {
    KVSNAME_BYTES = 257,
    HOST_BYTES = 256,
};

struct pmi1 {
    int descriptor;
    long key_max; /* characters */
    long batch;   /* requests that the launcher takes before it has been asked for the answers; 1: PMI-1 as it is */
    char kvsname[KVSNAME_BYTES];
    struct cw_pmi1_writer request;
    struct cw_pmi1_line answer; /* points into `text` */
    size_t used;                /* of `bytes`: read and not yet taken */
    char bytes[CW_PMI1_LINE_MAX + 1];
    char text[CW_PMI1_LINE_MAX + 1];
};

/* ---- lines over the descriptor ---- */

static int request_send(struct cw_bootstrap *bootstrap)
{
    struct pmi1 *pmi = bootstrap->state;
    if (cw_pmi1_end(&pmi->request) != CW_OK) {
        return FAIL(bootstrap, CW_ERROR_SYSTEM, "a request to the launcher is too long");
    }
    return bootstrap_pmi_write(bootstrap, pmi->descriptor, pmi->request.text, pmi->request.length);
}

/* Reads until there is a whole line; *length is its length without its end. */
static int line_await(struct cw_bootstrap *bootstrap, size_t *length)
{
    struct pmi1 *pmi = bootstrap->state;
    for (;;) {
        const char *end = memchr(pmi->bytes, '\n', pmi->used);
        if (end != NULL) {
            *length = (size_t)(end - pmi->bytes);
            return CW_OK;
        }
        if (pmi->used == CW_PMI1_LINE_MAX) {
            return FAIL(bootstrap, CW_ERROR_SYSTEM, "the launcher sends a line without end: is it one for PMI-1?");
        }
        size_t got = 0;
        int status =
            bootstrap_pmi_read(bootstrap, pmi->descriptor, pmi->bytes + pmi->used, CW_PMI1_LINE_MAX - pmi->used, &got);
        if (status != CW_OK) {
            return status;
        }
        pmi->used += got;
    }
}

/* Takes the next line apart; it must be the command `expected`. */
static int answer_parse(struct cw_bootstrap *bootstrap, const char *expected)
{
    struct pmi1 *pmi = bootstrap->state;
    size_t length = 0;
    int status = line_await(bootstrap, &length);
    if (status != CW_OK) {
        return status;
    }
    memcpy(pmi->text, pmi->bytes, length);
    pmi->used -= length + 1;
    memmove(pmi->bytes, pmi->bytes + length + 1, pmi->used);
    if (cw_pmi1_parse(pmi->text, length, &pmi->answer) != CW_OK) {
        return FAIL(bootstrap, CW_ERROR_SYSTEM, "the launcher's answer is no line of PMI-1");
    }
    const char *command = cw_pmi1_value(&pmi->answer, "cmd");
    if (command == NULL || strcmp(command, expected) != 0) {
        return FAIL(bootstrap, CW_ERROR_SYSTEM, "the launcher answered '%.60s' where '%s' was due",
                    command != NULL ? command : pmi->answer.words[0].name, expected);
    }
    return CW_OK;
}

/* Sends the request and takes its answer. */
static int query(struct cw_bootstrap *bootstrap, const char *expected)
{
    int status = request_send(bootstrap);
    return status == CW_OK ? answer_parse(bootstrap, expected) : status;
}

/* The same for requests without arguments. */
static int query_plain(struct cw_bootstrap *bootstrap, const char *command, const char *expected)
{
    struct pmi1 *pmi = bootstrap->state;
    cw_pmi1_begin(&pmi->request, command);
    return query(bootstrap, expected);
}

/* Whether the launcher's answer says that it has done it. */
static bool answer_is_good(const struct pmi1 *pmi)
{
    long code = 0;
    return cw_pmi1_value(&pmi->answer, "rc") == NULL || (cw_pmi1_number(&pmi->answer, "rc", 0, 0, &code) && code == 0);
}

static const char *answer_message(const struct pmi1 *pmi)
{
    const char *message = cw_pmi1_value(&pmi->answer, "msg");
    return message != NULL ? message : "no reason given";
}

/* ---- connecting ---- */

static int port_connect(struct cw_bootstrap *bootstrap, const char *place)
{
    struct pmi1 *pmi = bootstrap->state;
    char host[HOST_BYTES];
    const char *colon = strrchr(place, ':');
    if (colon == NULL || colon == place || (size_t)(colon - place) >= sizeof(host)) {
        return FAIL(bootstrap, CW_ERROR_UNSUPPORTED, "PMI_PORT is '%.80s', where host:port is wanted", place);
    }
    memcpy(host, place, (size_t)(colon - place));
    host[colon - place] = 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(host, colon + 1, &hints, &found);
    if (failed != 0) {
        return FAIL(bootstrap, CW_ERROR_SYSTEM, "PMI_PORT %.80s: %s", place, gai_strerror(failed));
    }
    int error = ECONNREFUSED;
    for (const struct addrinfo *at = found; at != NULL && pmi->descriptor < 0; at = at->ai_next) {
        int descriptor = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (descriptor >= 0 && connect(descriptor, at->ai_addr, at->ai_addrlen) == 0) {
            pmi->descriptor = descriptor;
            break;
        }
        error = errno;
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
    freeaddrinfo(found);
    return pmi->descriptor >= 0 ? CW_OK
                                : FAIL(bootstrap, CW_ERROR_SYSTEM, "PMI_PORT %.80s: %s", place, strerror(error));
}

/* The launcher sends rank and size, one a line, once it knows the caller. */
static int port_introduce(struct cw_bootstrap *bootstrap, long id)
{
    static const char *const names[] = {"size", "rank", "debug"};
    struct pmi1 *pmi = bootstrap->state;
    long numbers[3] = {0};
    cw_pmi1_begin(&pmi->request, "initack");
    cw_pmi1_add_number(&pmi->request, "pmiid", id);
    int status = query(bootstrap, "initack");
    for (size_t i = 0; i < 3 && status == CW_OK; i++) {
        status = answer_parse(bootstrap, "set");
        if (status == CW_OK && !cw_pmi1_number(&pmi->answer, names[i], 0, BOOTSTRAP_RANKS_MAX, &numbers[i])) {
            status =
                FAIL(bootstrap, CW_ERROR_UNSUPPORTED, "the launcher does not send the %s where it is due", names[i]);
        }
    }
    if (status == CW_OK && numbers[1] >= numbers[0]) {
        status = FAIL(bootstrap, CW_ERROR_UNSUPPORTED, "the launcher says rank %ld of %ld", numbers[1], numbers[0]);
    }
    if (status == CW_OK) {
        bootstrap->info.size = (uint32_t)numbers[0];
        bootstrap->info.rank = (uint32_t)numbers[1];
    }
    return status;
}

static int port_open(struct cw_bootstrap *bootstrap)
{
    long id = 0;
    int status = bootstrap_pmi_number(bootstrap, "PMI_ID", 0, BOOTSTRAP_RANKS_MAX, &id);
    if (status == CW_OK) {
        status = port_connect(bootstrap, cw_environment("PMI_PORT"));
    }
    return status == CW_OK ? port_introduce(bootstrap, id) : status;
}

/* ---- the first questions ---- */

static int versions_agree(struct cw_bootstrap *bootstrap)
{
    struct pmi1 *pmi = bootstrap->state;
    long version = 0;
    cw_pmi1_begin(&pmi->request, "init");
    cw_pmi1_add_number(&pmi->request, "pmi_version", 1);
    cw_pmi1_add_number(&pmi->request, "pmi_subversion", 1);
    int status = query(bootstrap, "response_to_init");
    if (status != CW_OK) {
        return status;
    }
    if (!answer_is_good(pmi) || !cw_pmi1_number(&pmi->answer, "pmi_version", 1, 1, &version)) {
        const char *theirs = cw_pmi1_value(&pmi->answer, "pmi_version");
        return FAIL(bootstrap, CW_ERROR_UNSUPPORTED, "the launcher speaks version %.20s of PMI, this program version 1",
                    theirs != NULL ? theirs : "(none)");
    }
    return CW_OK;
}

static int limits_learn(struct cw_bootstrap *bootstrap)
{
    struct pmi1 *pmi = bootstrap->state;
    long value_max = 0;
    int status = query_plain(bootstrap, "get_maxes", "maxes");
    if (status != CW_OK) {
        return status;
    }
    /* both count the 0 at the end */
    if (!cw_pmi1_number(&pmi->answer, "keylen_max", 2, 1 << 24, &pmi->key_max) ||
        !cw_pmi1_number(&pmi->answer, "vallen_max", 2, 1 << 24, &value_max)) {
        return FAIL(bootstrap, CW_ERROR_UNSUPPORTED,
                    "the launcher does not send the maximum lengths of keys and values");
    }
    pmi->batch = 1;
    (void)cw_pmi1_number(&pmi->answer, CW_PMI1_BATCH, 1, CW_PMI1_BATCH_MAX, &pmi->batch);
    pmi->key_max--;
    value_max--;
    bootstrap->info.value_max = value_max < CW_BOOTSTRAP_VALUE_MAX ? (uint32_t)value_max : CW_BOOTSTRAP_VALUE_MAX;
    return CW_OK;
}

static int job_learn(struct cw_bootstrap *bootstrap)
{
    struct pmi1 *pmi = bootstrap->state;
    long number = 0;
    int status = query_plain(bootstrap, "get_my_kvsname", "my_kvsname");
    if (status != CW_OK) {
        return status;
    }
    const char *name = cw_pmi1_value(&pmi->answer, "kvsname");
    if (name == NULL || name[0] == 0 || strlen(name) >= sizeof(pmi->kvsname)) {
        return FAIL(bootstrap, CW_ERROR_UNSUPPORTED, "the launcher does not send the name of its table");
    }
    snprintf(pmi->kvsname, sizeof(pmi->kvsname), "%s", name);
    snprintf(bootstrap->info.job, sizeof(bootstrap->info.job), "%.*s", CW_BOOTSTRAP_JOB_MAX, name);
    bootstrap->info.app_number = -1;
    status = query_plain(bootstrap, "get_appnum", "appnum");
    if (status == CW_OK && cw_pmi1_number(&pmi->answer, "appnum", 0, BOOTSTRAP_RANKS_MAX, &number)) {
        bootstrap->info.app_number = (int)number;
    }
    if (status == CW_OK) {
        status = query_plain(bootstrap, "get_universe_size", "universe_size");
    }
    if (status == CW_OK && cw_pmi1_number(&pmi->answer, "size", 1, BOOTSTRAP_RANKS_MAX, &number)) {
        bootstrap->info.universe_size = (uint32_t)number;
    }
    return status;
}

/* ---- the calls ---- */

static int pmi1_put(struct cw_bootstrap *bootstrap, const char *key, const char *value)
{
    struct pmi1 *pmi = bootstrap->state;
    if ((long)strlen(key) > pmi->key_max) {
        return FAIL(bootstrap, CW_ERROR_ARGUMENT, "a key of %zu characters: the launcher's table takes %ld",
                    strlen(key), pmi->key_max);
    }
    cw_pmi1_begin(&pmi->request, "put");
    cw_pmi1_add(&pmi->request, "kvsname", pmi->kvsname);
    cw_pmi1_add(&pmi->request, "key", key);
    cw_pmi1_add(&pmi->request, "value", value);
    int status = query(bootstrap, "put_result");
    if (status == CW_OK && !answer_is_good(pmi)) {
        status = FAIL(bootstrap, CW_ERROR_SYSTEM, "the launcher does not take %s: %.100s", key, answer_message(pmi));
    }
    return status;
}

static void get_begin(struct pmi1 *pmi, const char *key)
{
    cw_pmi1_begin(&pmi->request, "get");
    cw_pmi1_add(&pmi->request, "kvsname", pmi->kvsname);
    cw_pmi1_add(&pmi->request, "key", key);
}

/* The answer to a get, of which there may be several on their way. */
static int get_end(struct cw_bootstrap *bootstrap, const char *key, const char **value)
{
    struct pmi1 *pmi = bootstrap->state;
    int status = answer_parse(bootstrap, "get_result");
    if (status != CW_OK) {
        return status;
    }
    *value = cw_pmi1_value(&pmi->answer, "value");
    if (!answer_is_good(pmi) || *value == NULL) {
        return FAIL(bootstrap, CW_ERROR_NOT_FOUND, "%s: the launcher has no such key: %.100s", key,
                    answer_message(pmi));
    }
    return CW_OK;
}

static int pmi1_get(struct cw_bootstrap *bootstrap, const char *key, char *value, size_t value_bytes)
{
    struct pmi1 *pmi = bootstrap->state;
    const char *found = NULL;
    get_begin(pmi, key);
    int status = request_send(bootstrap);
    status = status == CW_OK ? get_end(bootstrap, key, &found) : status;
    if (status == CW_OK && strlen(found) >= value_bytes) {
        return FAIL(bootstrap, CW_ERROR_LIMIT, "%s: its %zu characters do not fit", key, strlen(found));
    }
    if (status == CW_OK) {
        memcpy(value, found, strlen(found) + 1);
    }
    return status;
}

/* Asks for several values in one piece. */
static int batch_send(struct cw_bootstrap *bootstrap, uint32_t first, uint32_t count,
                      const struct cw_bootstrap_reader *reader)
{
    struct pmi1 *pmi = bootstrap->state;
    char key[CW_BOOTSTRAP_KEY_MAX + 1], text[CW_PMI1_BATCH_BYTES];
    size_t used = 0;
    int status = CW_OK;
    for (uint32_t i = 0; i < count && status == CW_OK; i++) {
        reader->key(reader->context, first + i, key);
        get_begin(pmi, key);
        if (cw_pmi1_end(&pmi->request) != CW_OK) {
            return FAIL(bootstrap, CW_ERROR_SYSTEM, "a request to the launcher is too long");
        }
        if (used + pmi->request.length > sizeof(text)) {
            status = bootstrap_pmi_write(bootstrap, pmi->descriptor, text, used);
            used = 0;
        }
        memcpy(text + used, pmi->request.text, pmi->request.length);
        used += pmi->request.length;
    }
    return status == CW_OK ? bootstrap_pmi_write(bootstrap, pmi->descriptor, text, used) : status;
}

/* Takes all answers of a batch also after one that is not good: the next request's comes behind them. */
static int batch_receive(struct cw_bootstrap *bootstrap, uint32_t first, uint32_t count,
                         const struct cw_bootstrap_reader *reader)
{
    char key[CW_BOOTSTRAP_KEY_MAX + 1];
    int first_status = CW_OK;
    for (uint32_t i = 0; i < count; i++) {
        const char *value = NULL;
        reader->key(reader->context, first + i, key);
        int status = get_end(bootstrap, key, &value);
        if (status != CW_OK && status != CW_ERROR_NOT_FOUND) {
            return status;
        }
        if (status == CW_OK && first_status == CW_OK) {
            status = reader->receive(reader->context, first + i, value);
        }
        first_status = first_status == CW_OK ? status : first_status;
    }
    return first_status;
}

static int pmi1_get_each(struct cw_bootstrap *bootstrap, uint32_t count, const struct cw_bootstrap_reader *reader)
{
    const struct pmi1 *pmi = bootstrap->state;
    int status = CW_OK;
    for (uint32_t first = 0; first < count && status == CW_OK; first += (uint32_t)pmi->batch) {
        uint32_t part = count - first < (uint32_t)pmi->batch ? count - first : (uint32_t)pmi->batch;
        status = batch_send(bootstrap, first, part, reader);
        status = status == CW_OK ? batch_receive(bootstrap, first, part, reader) : status;
    }
    return status;
}

static int pmi1_fence(struct cw_bootstrap *bootstrap)
{
    struct pmi1 *pmi = bootstrap->state;
    int status = query_plain(bootstrap, "barrier_in", "barrier_out");
    if (status == CW_OK && !answer_is_good(pmi)) {
        status = FAIL(bootstrap, CW_ERROR_CLOSED, "the launcher's barrier has failed: %.100s", answer_message(pmi));
    }
    return status;
}

static void pmi1_abort(struct cw_bootstrap *bootstrap, int code)
{
    struct pmi1 *pmi = bootstrap->state;
    cw_pmi1_begin(&pmi->request, "abort");
    cw_pmi1_add_number(&pmi->request, "exitcode", code);
    request_send(bootstrap); /* a launcher that is gone ends us anyway, and nothing more can be done here */
}

static bool pmi1_is_cut(const struct cw_bootstrap *bootstrap)
{
    const struct pmi1 *pmi = bootstrap->state;
    return bootstrap_pmi_is_cut(pmi->descriptor);
}

static void pmi1_finish(struct cw_bootstrap *bootstrap)
{
    query_plain(bootstrap, "finalize", "finalize_ack"); /* no recipient is left for a failure */
}

static void pmi1_release(struct cw_bootstrap *bootstrap)
{
    struct pmi1 *pmi = bootstrap->state;
    if (pmi->descriptor >= 0) {
        close(pmi->descriptor);
    }
    free(pmi);
}

int bootstrap_pmi1_open(struct cw_bootstrap *bootstrap)
{
    static const struct bootstrap_client client = {
        .put = pmi1_put,
        .get = pmi1_get,
        .get_each = pmi1_get_each,
        .fence = pmi1_fence,
        .abort = pmi1_abort,
        .is_cut = pmi1_is_cut,
        .finish = pmi1_finish,
        .release = pmi1_release,
    };
    struct pmi1 *pmi = calloc(1, sizeof(*pmi));
    if (pmi == NULL) {
        return FAIL(bootstrap, CW_ERROR_MEMORY, "no memory for the connection to the launcher");
    }
    const char *inherited = cw_environment("PMI_FD");
    pmi->descriptor = -1;
    bootstrap->client = &client;
    bootstrap->state = pmi;
    bootstrap->info.launcher = "PMI-1";
    int status = inherited != NULL && inherited[0] != 0 ? bootstrap_pmi_inherit(bootstrap, &pmi->descriptor)
                                                        : port_open(bootstrap);
    if (status == CW_OK) {
        status = versions_agree(bootstrap);
    }
    if (status == CW_OK) {
        status = limits_learn(bootstrap);
    }
    if (status == CW_OK) {
        status = job_learn(bootstrap);
    }
    if (status != CW_OK) {
        pmi1_release(bootstrap);
    }
    return status;
}
