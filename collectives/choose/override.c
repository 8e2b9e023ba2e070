#include "collectives/choose/override.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

enum { WORD_MAX = 160 };

__attribute__((format(printf, 3, 4))) static int reject(char *error, size_t error_bytes, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, error_bytes, format, list);
    va_end(list);
    return CW_ERROR_ARGUMENT;
}

static const struct cw_override_way ways[] = {
    {CW_OVERRIDE_ALLTOALLV, CW_OVERRIDE_PAIRS, "a message between each pair of ranks, all at once", "Causeway"},
    {CW_OVERRIDE_SCATTERV, CW_OVERRIDE_PAIRS, "the root sends each rank its block", "Causeway"},
    {CW_OVERRIDE_SCATTERV, CW_OVERRIDE_STATIC,
     "counts, then all blocks in one multicast to the communicator's group; each rank takes its own",
     "Karwande, Yuan and Lowenthal 2003, section 4.1"},
    {CW_OVERRIDE_SCATTERV, CW_OVERRIDE_DYNAMIC,
     "counts to the communicator's group, all blocks to a group of the receivers, opened for it",
     "Karwande, Yuan and Lowenthal 2003, section 4.1"},
};

const struct cw_override_way *cw_override_way_at(uint32_t index)
{
    return index < sizeof(ways) / sizeof(ways[0]) ? &ways[index] : NULL;
}

static bool way_is_known(uint32_t call, const char *name)
{
    const struct cw_override_way *way;
    for (uint32_t i = 0; (way = cw_override_way_at(i)) != NULL; i++) {
        if (way->call == call && strcmp(way->name, name) == 0) {
            return true;
        }
    }
    return false;
}

const char *cw_override_call_name(uint32_t call)
{
    return call == CW_OVERRIDE_ALLTOALLV  ? "alltoallv"
           : call == CW_OVERRIDE_SCATTERV ? "scatterv"
                                          : cw_collective_name((enum cw_collective)call);
}

/* CW_OVERRIDE_COUNT: there is none of that name. */
static uint32_t call_find(const char *name)
{
    uint32_t call = 0;
    while (call < CW_OVERRIDE_COUNT && strcmp(name, cw_override_call_name(call)) != 0) {
        call++;
    }
    return call;
}

/* Whether a call can be served by an algorithm of the registry. An alltoallv has different counts, and phases that know
 * no clusters; those of a scatterv are the root's. */
static bool call_accepts(uint32_t call, const struct cw_algorithm *algorithm)
{
    return call == CW_OVERRIDE_ALLTOALLV
               ? algorithm->collective == CW_ALLTOALL &&
                     (algorithm->needs & (CW_NEEDS_EQUAL | CW_NEEDS_CLUSTERS | CW_NEEDS_ONE_HOST)) == 0
               : (uint32_t)algorithm->collective == call;
}

static bool algorithm_is_known(uint32_t call, const char *name)
{
    if (call >= CW_COLLECTIVE_COUNT) {
        const struct cw_algorithm *algorithm =
            call == CW_OVERRIDE_ALLTOALLV ? cw_algorithm_find(CW_ALLTOALL, name) : NULL;
        return way_is_known(call, name) || (algorithm != NULL && call_accepts(call, algorithm));
    }
    return cw_algorithm_find((enum cw_collective)call, name) != NULL;
}

static int reject_collective(const char *name, char *error, size_t error_bytes)
{
    char names[300] = "";
    for (uint32_t i = 0; i < CW_OVERRIDE_COUNT; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, " %s", cw_override_call_name(i));
    }
    return reject(error, error_bytes, "'%.40s' is no collective; there are%s", name, names);
}

static int reject_algorithm(uint32_t call, const char *name, char *error, size_t error_bytes)
{
    char names[500] = "";
    const struct cw_override_way *way;
    for (uint32_t i = 0; (way = cw_override_way_at(i)) != NULL; i++) {
        if (way->call == call) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof(names) - used, " %s", way->name);
        }
    }
    const struct cw_algorithm *algorithm;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        if (call_accepts(call, algorithm)) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof(names) - used, " %s", algorithm->name);
        }
    }
    return reject(error, error_bytes, "%s has no algorithm '%.40s'; there are%s", cw_override_call_name(call), name,
                  names);
}

static int parameter_parse(char *word, struct cw_parameters *parameters, char *error, size_t error_bytes)
{
    char *value = strchr(word, '=');
    char *end = NULL;
    errno = 0;
    unsigned long long number = value == NULL || value[1] < '0' || value[1] > '9' ? 0 : strtoull(value + 1, &end, 10);
    if (number == 0 || errno != 0 || *end != '\0' || number > 1ull << 46) {
        return reject(error, error_bytes, "'%.60s' is no parameter with a number above 0, such as segment=8192", word);
    }
    *value = '\0';
    if (strcmp(word, "segment") == 0) {
        parameters->segment_bytes = number;
    } else if (strcmp(word, "degree") == 0 && number <= CW_RANKS_MAX) {
        parameters->degree = (uint32_t)number;
    } else if (strcmp(word, "concurrency") == 0 && number <= CW_RANKS_MAX) {
        parameters->concurrency = (uint32_t)number;
    } else if (strcmp(word, "threshold") == 0) {
        parameters->threshold_bytes = number;
    } else if (strcmp(word, "senders") == 0 && number <= CW_RANKS_MAX) {
        parameters->senders = (uint32_t)number;
    } else {
        return reject(
            error, error_bytes,
            "no parameter '%.60s' of that size; there are segment, degree, concurrency, threshold and senders", word);
    }
    return CW_OK;
}

static int word_parse(char *word, struct cw_override *override, char *error, size_t error_bytes)
{
    char *rest = NULL;
    char *name = strchr(word, '=');
    if (name == NULL) {
        return reject(error, error_bytes, "'%.60s' is not COLLECTIVE=ALGORITHM, such as bcast=binomial", word);
    }
    *name++ = '\0';
    uint32_t call = call_find(word);
    if (call == CW_OVERRIDE_COUNT) {
        return reject_collective(word, error, error_bytes);
    }
    char *parameter = strchr(name, ':');
    if (parameter != NULL) {
        *parameter++ = '\0';
    }
    if (name[0] == '\0' || strlen(name) >= CW_ALGORITHM_NAME_MAX || !algorithm_is_known(call, name)) {
        return reject_algorithm(call, name, error, error_bytes);
    }
    struct cw_parameters parameters = cw_parameters_default();
    int status = CW_OK;
    for (char *next = parameter == NULL ? NULL : strtok_r(parameter, ":", &rest); next != NULL && status == CW_OK;
         next = strtok_r(NULL, ":", &rest)) {
        status = parameter_parse(next, &parameters, error, error_bytes);
    }
    if (status == CW_OK) {
        snprintf(override->of[call].name, sizeof(override->of[call].name), "%s", name);
        override->of[call].parameters = parameters;
    }
    return status;
}

int cw_override_parse(const char *text, struct cw_override *override, char *error, size_t error_bytes)
{
    struct cw_override made;
    memset(&made, 0, sizeof(made));
    while (*text != '\0') {
        char word[WORD_MAX];
        size_t length = strcspn(text, ",");
        if (length >= sizeof(word)) {
            return reject(error, error_bytes, "'%.60s...' is longer than any name", text);
        }
        memcpy(word, text, length);
        word[length] = '\0';
        int status = length == 0 ? CW_OK : word_parse(word, &made, error, error_bytes);
        if (status != CW_OK) {
            return status;
        }
        text += length + (text[length] == ',');
    }
    *override = made;
    return CW_OK;
}

void cw_override_write(const struct cw_algorithm *algorithm, const struct cw_parameters *parameters, char *text,
                       size_t text_bytes)
{
    char segment[40] = "", degree[24] = "", concurrency[32] = "", threshold[40] = "", senders[28] = "";
    if ((algorithm->takes & CW_TAKES_SEGMENT) != 0 && parameters->segment_bytes > 0) {
        snprintf(segment, sizeof(segment), ":segment=%" PRIu64, parameters->segment_bytes);
    }
    if ((algorithm->takes & CW_TAKES_DEGREE) != 0 && parameters->degree > 0) {
        snprintf(degree, sizeof(degree), ":degree=%" PRIu32, parameters->degree);
    }
    if ((algorithm->takes & CW_TAKES_CONCURRENCY) != 0 && parameters->concurrency > 0) {
        snprintf(concurrency, sizeof(concurrency), ":concurrency=%" PRIu32, parameters->concurrency);
    }
    if ((algorithm->takes & CW_TAKES_THRESHOLD) != 0 && parameters->threshold_bytes > 0) {
        snprintf(threshold, sizeof(threshold), ":threshold=%" PRIu64, parameters->threshold_bytes);
    }
    if ((algorithm->takes & CW_TAKES_SENDERS) != 0 && parameters->senders > 0) {
        snprintf(senders, sizeof(senders), ":senders=%" PRIu32, parameters->senders);
    }
    snprintf(text, text_bytes, "%s=%s%s%s%s%s%s", cw_collective_name(algorithm->collective), algorithm->name, segment,
             degree, concurrency, threshold, senders);
}
