/* The PMI-2 client: one message is asked, one is answered, over a descriptor that was inherited (PMI_FD). The first
 * lines, which agree on the version, are those of PMI-1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/bootstrap/pmi2_line.h"
#include "control/bootstrap/private.h"
#include "control/settings/setting.h"
#include "dataplane/status.h"

enum {
    GREETING_BYTES = 256,
    REASON_BYTES = 100,
};

struct pmi2 {
    int descriptor;
    struct cw_pmi2_writer request;
    struct cw_pmi1_line answer; /* points into `text` */
    char text[CW_PMI2_MESSAGE_MAX + 1];
};

/* ---- messages over the descriptor ---- */

static int bytes_read(struct cw_bootstrap *bootstrap, char *text, size_t length)
{
    const struct pmi2 *pmi = bootstrap->state;
    int status = CW_OK;
    for (size_t done = 0, got = 0; status == CW_OK && done < length; done += got) {
        status = bootstrap_pmi_read(bootstrap, pmi->descriptor, text + done, length - done, &got);
    }
    return status;
}

static int request_send(struct cw_bootstrap *bootstrap)
{
    struct pmi2 *pmi = bootstrap->state;
    if (cw_pmi2_end(&pmi->request) != CW_OK) {
        return FAIL(bootstrap, CW_ERROR_SYSTEM, "a request to the launcher is too long");
    }
    return bootstrap_pmi_write(bootstrap, pmi->descriptor, pmi->request.text, pmi->request.length);
}

static const char *answer_value(const struct pmi2 *pmi, const char *name)
{
    return cw_pmi1_value(&pmi->answer, name);
}

/* Sends the request and takes its answer apart, which must be "EXPECTED-response". */
static int query(struct cw_bootstrap *bootstrap, const char *expected)
{
    struct pmi2 *pmi = bootstrap->state;
    char header[CW_PMI2_HEADER];
    size_t length = 0;
    int status = request_send(bootstrap);
    status = status == CW_OK ? bytes_read(bootstrap, header, sizeof(header)) : status;
    if (status == CW_OK && !cw_pmi2_header_read(header, &length)) {
        status = FAIL(bootstrap, CW_ERROR_SYSTEM, "the launcher's answer has no length: is it one for PMI-2?");
    }
    status = status == CW_OK ? bytes_read(bootstrap, pmi->text, length) : status;
    if (status != CW_OK) {
        return status;
    }
    if (cw_pmi2_parse(pmi->text, length, &pmi->answer) != CW_OK) {
        return FAIL(bootstrap, CW_ERROR_SYSTEM, "the launcher's answer is no message of PMI-2");
    }
    const char *command = answer_value(pmi, "cmd");
    size_t expected_length = strlen(expected);
    if (command == NULL || strncmp(command, expected, expected_length) != 0 ||
        strcmp(command + expected_length, "-response") != 0) {
        return FAIL(bootstrap, CW_ERROR_SYSTEM, "the launcher answered '%.60s' where '%s-response' was due",
                    command != NULL ? command : pmi->answer.words[0].name, expected);
    }
    return CW_OK;
}

static bool answer_is_good(const struct pmi2 *pmi)
{
    long code = 0;
    return answer_value(pmi, "rc") == NULL || cw_pmi1_number(&pmi->answer, "rc", 0, 0, &code);
}

/* The same; an answer that says no fails with `status`. */
static int query_checked(struct cw_bootstrap *bootstrap, const char *command, int status)
{
    struct pmi2 *pmi = bootstrap->state;
    int asked = query(bootstrap, command);
    if (asked == CW_OK && !answer_is_good(pmi)) {
        const char *reason = answer_value(pmi, "errmsg");
        return FAIL(bootstrap, status, "the launcher refuses %s: %.*s", command, REASON_BYTES,
                    reason != NULL ? reason : "no reason given");
    }
    return asked;
}

/* ---- the first questions ---- */

static int versions_agree(struct cw_bootstrap *bootstrap)
{
    static const char greeting[] = "cmd=init pmi_version=2 pmi_subversion=0\n";
    struct pmi2 *pmi = bootstrap->state;
    char text[GREETING_BYTES];
    long version = 0;
    struct cw_pmi1_line answer;
    size_t length = 0;
    int status = bootstrap_pmi_write(bootstrap, pmi->descriptor, greeting, sizeof(greeting) - 1);
    /* byte by byte: after the line, messages begin */
    for (; status == CW_OK && (length == 0 || text[length - 1] != '\n'); length++) {
        status = length < sizeof(text) ? bytes_read(bootstrap, text + length, 1)
                                       : FAIL(bootstrap, CW_ERROR_SYSTEM, "the launcher sends a line without end");
    }
    if (status != CW_OK) {
        return status;
    }
    if (cw_pmi1_parse(text, length - 1, &answer) != CW_OK || cw_pmi1_value(&answer, "cmd") == NULL ||
        strcmp(cw_pmi1_value(&answer, "cmd"), "response_to_init") != 0) {
        return FAIL(bootstrap, CW_ERROR_SYSTEM, "the launcher's answer is no line of PMI");
    }
    if (cw_pmi1_number(&answer, "pmi_version", 1, 1, &version)) {
        return FAIL(bootstrap, CW_ERROR_NOT_FOUND, "the launcher speaks version 1 of PMI");
    }
    long code = 0;
    if (!cw_pmi1_number(&answer, "pmi_version", 2, 2, &version) || !cw_pmi1_number(&answer, "rc", 0, 0, &code)) {
        const char *theirs = cw_pmi1_value(&answer, "pmi_version");
        return FAIL(bootstrap, CW_ERROR_UNSUPPORTED,
                    "the launcher speaks version %.20s of PMI, or refuses: this program has versions 1 and 2",
                    theirs != NULL ? theirs : "(none)");
    }
    return CW_OK;
}

static int introduce(struct cw_bootstrap *bootstrap)
{
    struct pmi2 *pmi = bootstrap->state;
    struct cw_bootstrap_info *info = &bootstrap->info;
    const char *job = cw_environment("PMI_JOBID");
    char rank_text[24];
    long rank = 0;
    long size = 0;
    long number = 0;
    snprintf(rank_text, sizeof(rank_text), "%u", info->rank);
    cw_pmi2_begin(&pmi->request, "fullinit");
    cw_pmi2_add(&pmi->request, "pmijobid", job != NULL ? job : "");
    cw_pmi2_add(&pmi->request, "pmirank", rank_text);
    cw_pmi2_add(&pmi->request, "threaded", "FALSE");
    int status = query_checked(bootstrap, "fullinit", CW_ERROR_UNSUPPORTED);
    if (status != CW_OK) {
        return status;
    }
    if (!cw_pmi1_number(&pmi->answer, "size", 1, BOOTSTRAP_RANKS_MAX, &size) ||
        !cw_pmi1_number(&pmi->answer, "rank", 0, size - 1, &rank)) {
        return FAIL(bootstrap, CW_ERROR_UNSUPPORTED, "the launcher does not send rank and size where they are due");
    }
    info->rank = (uint32_t)rank;
    info->size = (uint32_t)size;
    info->app_number = -1;
    if (cw_pmi1_number(&pmi->answer, "appnum", 0, BOOTSTRAP_RANKS_MAX, &number)) {
        info->app_number = (int)number;
    }
    return CW_OK;
}

static int job_learn(struct cw_bootstrap *bootstrap)
{
    struct pmi2 *pmi = bootstrap->state;
    struct cw_bootstrap_info *info = &bootstrap->info;
    long number = 0;
    cw_pmi2_begin(&pmi->request, "job-getid");
    int status = query_checked(bootstrap, "job-getid", CW_ERROR_UNSUPPORTED);
    const char *job = status == CW_OK ? answer_value(pmi, "jobid") : NULL;
    if (status == CW_OK && (job == NULL || job[0] == 0)) {
        status = FAIL(bootstrap, CW_ERROR_UNSUPPORTED, "the launcher does not send the name of the job");
    }
    if (status != CW_OK) {
        return status;
    }
    snprintf(info->job, sizeof(info->job), "%.*s", CW_BOOTSTRAP_JOB_MAX, job);
    cw_pmi2_begin(&pmi->request, "info-getjobattr");
    cw_pmi2_add(&pmi->request, "key", "universeSize");
    status = query(bootstrap, "info-getjobattr");
    if (status == CW_OK && cw_pmi1_number(&pmi->answer, "value", 1, BOOTSTRAP_RANKS_MAX, &number)) {
        info->universe_size = (uint32_t)number;
    }
    return status;
}

/* ---- the calls ---- */

static int pmi2_put(struct cw_bootstrap *bootstrap, const char *key, const char *value)
{
    struct pmi2 *pmi = bootstrap->state;
    cw_pmi2_begin(&pmi->request, "kvs-put");
    cw_pmi2_add(&pmi->request, "key", key);
    cw_pmi2_add(&pmi->request, "value", value);
    return query_checked(bootstrap, "kvs-put", CW_ERROR_SYSTEM);
}

static int pmi2_get(struct cw_bootstrap *bootstrap, const char *key, char *value, size_t value_bytes)
{
    struct pmi2 *pmi = bootstrap->state;
    cw_pmi2_begin(&pmi->request, "kvs-get");
    cw_pmi2_add(&pmi->request, "jobid", bootstrap->info.job);
    cw_pmi2_add(&pmi->request, "srcid", "-1"); /* the source may be any rank */
    cw_pmi2_add(&pmi->request, "key", key);
    int status = query(bootstrap, "kvs-get");
    if (status != CW_OK) {
        return status;
    }
    const char *is_found = answer_value(pmi, "found");
    const char *found = answer_value(pmi, "value");
    if (!answer_is_good(pmi) || found == NULL || is_found == NULL || strcmp(is_found, "TRUE") != 0) {
        return FAIL(bootstrap, CW_ERROR_NOT_FOUND, "%s: the launcher has no such key", key);
    }
    if (strlen(found) >= value_bytes) {
        return FAIL(bootstrap, CW_ERROR_LIMIT, "%s: its %zu characters do not fit", key, strlen(found));
    }
    memcpy(value, found, strlen(found) + 1);
    return CW_OK;
}

static int pmi2_fence(struct cw_bootstrap *bootstrap)
{
    struct pmi2 *pmi = bootstrap->state;
    cw_pmi2_begin(&pmi->request, "kvs-fence");
    return query_checked(bootstrap, "kvs-fence", CW_ERROR_CLOSED);
}

/* PMI-2 carries no exit code: the launcher has this process's own. */
static void pmi2_abort(struct cw_bootstrap *bootstrap, int code)
{
    struct pmi2 *pmi = bootstrap->state;
    char text[64];
    snprintf(text, sizeof(text), "rank %u ends the job with code %d", bootstrap->info.rank, code);
    cw_pmi2_begin(&pmi->request, "abort");
    cw_pmi2_add(&pmi->request, "isworld", "TRUE");
    cw_pmi2_add(&pmi->request, "msg", text);
    request_send(bootstrap); /* a launcher that is gone ends us anyway, and nothing more can be done here */
}

static bool pmi2_is_cut(const struct cw_bootstrap *bootstrap)
{
    const struct pmi2 *pmi = bootstrap->state;
    return bootstrap_pmi_is_cut(pmi->descriptor);
}

static void pmi2_finish(struct cw_bootstrap *bootstrap)
{
    struct pmi2 *pmi = bootstrap->state;
    cw_pmi2_begin(&pmi->request, "finalize");
    query(bootstrap, "finalize"); /* no recipient is left for a failure */
}

static void pmi2_release(struct cw_bootstrap *bootstrap)
{
    struct pmi2 *pmi = bootstrap->state;
    if (pmi->descriptor >= 0) {
        close(pmi->descriptor);
    }
    free(pmi);
}

int bootstrap_pmi2_open(struct cw_bootstrap *bootstrap)
{
    static const struct bootstrap_client client = {
        .put = pmi2_put,
        .get = pmi2_get,
        .fence = pmi2_fence,
        .abort = pmi2_abort,
        .is_cut = pmi2_is_cut,
        .finish = pmi2_finish,
        .release = pmi2_release,
    };
    struct pmi2 *pmi = calloc(1, sizeof(*pmi));
    if (pmi == NULL) {
        return FAIL(bootstrap, CW_ERROR_MEMORY, "no memory for the connection to the launcher");
    }
    pmi->descriptor = -1;
    bootstrap->client = &client;
    bootstrap->state = pmi;
    bootstrap->info.launcher = "PMI-2";
    bootstrap->info.value_max = CW_BOOTSTRAP_VALUE_MAX; /* the protocol takes 1024 */
    int status = bootstrap_pmi_inherit(bootstrap, &pmi->descriptor);
    if (status == CW_OK) {
        status = versions_agree(bootstrap);
    }
    if (status == CW_ERROR_NOT_FOUND) {
        pmi->descriptor = -1; /* for PMI-1 */
    }
    if (status == CW_OK) {
        status = introduce(bootstrap);
    }
    if (status == CW_OK) {
        status = job_learn(bootstrap);
    }
    if (status != CW_OK) {
        pmi2_release(bootstrap);
    }
    return status;
}
