/* The file of measured parameters: JSON, a line for each network and each test.
 *
 *   {"causeway-plogp": 1,
 *    "networks": [{"path": "shared", "ranks": 2, "latency_ns": L, "points": [[bytes, g, os, or], ...], "ports": 1,
 *    "copy_ns_per_byte": ..,
 *                  "reduce_ns_per_byte": .., "contention": .., "concurrent": [[bytes, puts, one_ns, all_ns, first_ns],
 *                  ...]}, ...],
 *    "tests": [{"path": "shared", "collective": "bcast", "ranks": 2, "bytes": 8, "ns": {"flat": 210, ...},
 *    "segment_bytes": {"segmented-chain": 8192}, ...}]} */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/choose/measured.h"
#include "dataplane/status.h"

/* Beyond it doubles skip numbers. */
#define COUNT_MAX   (1ll << 53)
#define TIME_NS_MAX 1e15

/* Where a reader is, for errors. */
struct reader {
    char *error;
    size_t error_bytes;
    char place[64]; /* "tests, row 3" */
};

__attribute__((format(printf, 2, 3))) static bool reject(const struct reader *reader, const char *format, ...)
{
    char what[200];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    snprintf(reader->error, reader->error_bytes, "%s: %s; `causeway plogp -o FILE` writes a good one", reader->place,
             what);
    return false;
}

/* All keys of an object are among `known`, which NULL ends; those without '?' in front are there. */
static bool keys_check(const struct reader *reader, json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object)) {
        return reject(reader, "an object is wanted");
    }
    json_object_foreach(object, key, value)
    {
        size_t at = 0;
        while (known[at] != NULL && strcmp(known[at] + (known[at][0] == '?'), key) != 0) {
            at++;
        }
        if (known[at] == NULL) {
            return reject(reader, "unknown key \"%.40s\"", key);
        }
    }
    for (size_t at = 0; known[at] != NULL; at++) {
        if (known[at][0] != '?' && json_object_get(object, known[at]) == NULL) {
            return reject(reader, "\"%s\" is missing", known[at]);
        }
    }
    return true;
}

static bool count_parse(const struct reader *reader, const json_t *value, const char *name, uint64_t least,
                        uint64_t most, uint64_t *count)
{
    if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)least ||
        (uint64_t)json_integer_value(value) > most) {
        return reject(reader, "\"%s\" is no whole number from %llu to %llu", name, (unsigned long long)least,
                      (unsigned long long)most);
    }
    *count = (uint64_t)json_integer_value(value);
    return true;
}

static bool number_parse(const struct reader *reader, const json_t *value, const char *name, double *number)
{
    double given = json_number_value(value);
    if (!json_is_number(value) || !(given >= 0 && given <= TIME_NS_MAX)) {
        return reject(reader, "\"%s\" is no number from 0 to 1e15", name);
    }
    *number = given;
    return true;
}

static bool path_parse(const struct reader *reader, const json_t *object, enum cw_measured_path *path)
{
    const char *name = json_string_value(json_object_get(object, "path"));
    *path = name == NULL ? CW_MEASURED_PATHS : cw_measured_path_find(name);
    return *path != CW_MEASURED_PATHS || reject(reader, "\"path\" is none of \"shared\", \"wire\" and \"rdma\"");
}

static bool ranks_parse(const struct reader *reader, const json_t *object, uint32_t *ranks)
{
    uint64_t count = 0;
    bool taken = count_parse(reader, json_object_get(object, "ranks"), "ranks", 1, CW_RANKS_MAX, &count);
    *ranks = (uint32_t)count;
    return taken;
}

/* ---- networks ---- */

static bool points_parse(const struct reader *reader, const json_t *rows, struct cw_plogp *plogp)
{
    size_t count = json_array_size(rows);
    if (!json_is_array(rows) || count == 0 || count > CW_PLOGP_POINTS_MAX) {
        return reject(reader, "\"points\" is no list of 1 to %d points", CW_PLOGP_POINTS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(rows, i);
        struct cw_plogp_point *point = &plogp->points[i];
        if (json_array_size(row) != 4) {
            return reject(reader, "point %zu is not [bytes, g, os, or]", i + 1);
        }
        if (!count_parse(reader, json_array_get(row, 0), "bytes", 0, COUNT_MAX, &point->bytes) ||
            !number_parse(reader, json_array_get(row, 1), "g", &point->gap_ns) ||
            !number_parse(reader, json_array_get(row, 2), "os", &point->send_ns) ||
            !number_parse(reader, json_array_get(row, 3), "or", &point->receive_ns)) {
            return false;
        }
    }
    plogp->count = (uint32_t)count;
    return true;
}

static bool concurrent_parse(const struct reader *reader, const json_t *rows, struct cw_measured_network *network)
{
    size_t count = json_array_size(rows);
    if (rows != NULL && (!json_is_array(rows) || count > CW_MEASURED_CONCURRENT_MAX)) {
        return reject(reader, "\"concurrent\" is no list of at most %d rows", CW_MEASURED_CONCURRENT_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(rows, i);
        struct cw_measured_concurrent *test = &network->concurrent[i];
        uint64_t puts = 0;
        if (json_array_size(row) != 5) {
            return reject(reader, "concurrent %zu is not [bytes, puts, one_ns, all_ns, first_ns]", i + 1);
        }
        if (!count_parse(reader, json_array_get(row, 0), "bytes", 0, COUNT_MAX, &test->bytes) ||
            !count_parse(reader, json_array_get(row, 1), "puts", 1, CW_RANKS_MAX, &puts) ||
            !number_parse(reader, json_array_get(row, 2), "one_ns", &test->one_ns) ||
            !number_parse(reader, json_array_get(row, 3), "all_ns", &test->all_ns) ||
            !number_parse(reader, json_array_get(row, 4), "first_ns", &test->first_ns)) {
            return false;
        }
        test->puts = (uint32_t)puts;
    }
    network->concurrent_count = (uint32_t)count;
    return true;
}

static bool network_parse(const struct reader *reader, json_t *object, struct cw_measured_network *row)
{
    static const char *const known[] = {
        "path",       "ranks",       "latency_ns", "points", "ports", "copy_ns_per_byte", "reduce_ns_per_byte",
        "contention", "?concurrent", NULL};
    struct cw_network *network = &row->network;
    struct cw_plogp *plogp = &network->paths[CW_PATH_LAN];
    uint64_t ports = 0;
    char reason[200];
    memset(row, 0, sizeof(*row));
    if (!keys_check(reader, object, known) || !path_parse(reader, object, &row->path) ||
        !ranks_parse(reader, object, &row->ranks) ||
        !number_parse(reader, json_object_get(object, "latency_ns"), "latency_ns", &plogp->latency_ns) ||
        !points_parse(reader, json_object_get(object, "points"), plogp) ||
        !count_parse(reader, json_object_get(object, "ports"), "ports", 1, CW_NETWORK_PORTS_MAX, &ports) ||
        !number_parse(reader, json_object_get(object, "copy_ns_per_byte"), "copy_ns_per_byte",
                      &network->copy_ns_per_byte) ||
        !number_parse(reader, json_object_get(object, "reduce_ns_per_byte"), "reduce_ns_per_byte",
                      &network->reduce_ns_per_byte) ||
        !number_parse(reader, json_object_get(object, "contention"), "contention", &network->contention) ||
        !concurrent_parse(reader, json_object_get(object, "concurrent"), row)) {
        return false;
    }
    network->ports = (uint32_t)ports;
    network->paths[CW_PATH_WAN] = *plogp;
    return cw_network_validate(network, reason, sizeof(reason)) == CW_OK || reject(reader, "%s", reason);
}

/* ---- tests ---- */

/* Parameters stand apart from times, by algorithm: most algorithms have none. */
static const struct {
    const char *key;
    uint64_t most;
} parameter_keys[] = {{"segment_bytes", COUNT_MAX}, {"degree", CW_RANKS_MAX}, {"concurrency", CW_RANKS_MAX}};

enum { PARAMETERS = sizeof(parameter_keys) / sizeof(parameter_keys[0]) };

static bool parameters_parse(const struct reader *reader, const json_t *object, const char *algorithm,
                             struct cw_parameters *parameters)
{
    uint64_t values[PARAMETERS] = {0};
    for (size_t i = 0; i < PARAMETERS; i++) {
        const json_t *value = json_object_get(json_object_get(object, parameter_keys[i].key), algorithm);
        if (value != NULL &&
            !count_parse(reader, value, parameter_keys[i].key, 1, parameter_keys[i].most, &values[i])) {
            return false;
        }
    }
    parameters->segment_bytes = values[0];
    parameters->degree = (uint32_t)values[1];
    parameters->concurrency = (uint32_t)values[2];
    return true;
}

/* A parameter of an algorithm that has no time would be lost. */
static bool parameters_check(const struct reader *reader, const json_t *object)
{
    for (size_t i = 0; i < PARAMETERS; i++) {
        json_t *list = json_object_get(object, parameter_keys[i].key);
        const char *algorithm;
        json_t *value;
        if (list != NULL && !json_is_object(list)) {
            return reject(reader, "\"%s\" is no object", parameter_keys[i].key);
        }
        json_object_foreach(list, algorithm, value)
        {
            if (json_object_get(json_object_get(object, "ns"), algorithm) == NULL) {
                return reject(reader, "\"%s\" names \"%.40s\", which has no time", parameter_keys[i].key, algorithm);
            }
        }
    }
    return true;
}

/* Any that an algorithm could have: also one of another version of this program. */
static bool name_is_good(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return length > 0 && length < CW_ALGORITHM_NAME_MAX && name[length] == '\0';
}

static bool tests_parse(const struct reader *reader, json_t *object, struct cw_measured *measured, int *status)
{
    static const char *const known[] = {"path",           "collective", "ranks",        "bytes", "ns",
                                        "?segment_bytes", "?degree",    "?concurrency", NULL};
    struct cw_measured_test test = {0};
    const char *algorithm;
    json_t *value;
    if (!keys_check(reader, object, known) || !path_parse(reader, object, &test.path) ||
        !ranks_parse(reader, object, &test.ranks) ||
        !count_parse(reader, json_object_get(object, "bytes"), "bytes", 0, COUNT_MAX, &test.bytes)) {
        return false;
    }
    const char *collective = json_string_value(json_object_get(object, "collective"));
    test.collective = collective == NULL ? CW_COLLECTIVE_COUNT : cw_collective_find(collective);
    json_t *times = json_object_get(object, "ns");
    if (test.collective == CW_COLLECTIVE_COUNT || !json_is_object(times)) {
        return reject(reader, test.collective == CW_COLLECTIVE_COUNT ? "\"collective\" is none that there is"
                                                                     : "\"ns\" is no object");
    }
    if (!parameters_check(reader, object)) {
        return false;
    }
    json_object_foreach(times, algorithm, value)
    {
        if (!name_is_good(algorithm)) {
            return reject(reader, "\"%.60s\" is no name of an algorithm", algorithm);
        }
        memset(test.algorithm, 0, sizeof(test.algorithm));
        memcpy(test.algorithm, algorithm, strlen(algorithm));
        if (!number_parse(reader, value, algorithm, &test.time_ns) ||
            !parameters_parse(reader, object, algorithm, &test.parameters)) {
            return false;
        }
        if (test.time_ns < 1) {
            return reject(reader, "\"%.40s\" took less than a nanosecond", algorithm);
        }
        *status = cw_measured_add_test(measured, &test);
        if (*status != CW_OK) {
            return reject(reader, *status == CW_ERROR_LIMIT ? "too many tests" : "no memory");
        }
    }
    return true;
}

/* ---- the whole ---- */

static bool file_parse(struct reader *reader, json_t *file, struct cw_measured *measured, int *status)
{
    static const char *const known[] = {"causeway-plogp", "?made_by", "networks", "tests", NULL};
    uint64_t version = 0;
    if (!keys_check(reader, file, known) ||
        !count_parse(reader, json_object_get(file, "causeway-plogp"), "causeway-plogp", CW_MEASURED_VERSION,
                     CW_MEASURED_VERSION, &version)) {
        return false;
    }
    json_t *networks = json_object_get(file, "networks");
    json_t *tests = json_object_get(file, "tests");
    if (!json_is_array(networks) || !json_is_array(tests)) {
        return reject(reader, "\"networks\" and \"tests\" are lists");
    }
    for (size_t i = 0; i < json_array_size(networks); i++) {
        struct cw_measured_network network;
        snprintf(reader->place, sizeof(reader->place), "networks, row %zu", i + 1);
        if (!network_parse(reader, json_array_get(networks, i), &network)) {
            return false;
        }
        *status = cw_measured_add_network(measured, &network);
        if (*status != CW_OK) {
            return reject(reader, *status == CW_ERROR_LIMIT ? "too many networks" : "no memory");
        }
    }
    for (size_t i = 0; i < json_array_size(tests); i++) {
        snprintf(reader->place, sizeof(reader->place), "tests, row %zu", i + 1);
        if (!tests_parse(reader, json_array_get(tests, i), measured, status)) {
            return false;
        }
    }
    return true;
}

int cw_measured_decode(const char *text, size_t length, struct cw_measured **measured, char *error, size_t error_bytes)
{
    struct reader reader = {.error = error, .error_bytes = error_bytes, .place = "the file"};
    json_error_t where;
    if (length > CW_MEASURED_TEXT_MAX) {
        reject(&reader, "longer than 16 MiB");
        return CW_ERROR_ARGUMENT;
    }
    json_t *file = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (file == NULL) {
        snprintf(reader.place, sizeof(reader.place), "line %d, column %d", where.line, where.column);
        reject(&reader, "%s", where.text);
        return CW_ERROR_ARGUMENT;
    }
    struct cw_measured *made = cw_measured_create();
    int status = made == NULL ? CW_ERROR_MEMORY : CW_OK;
    if (made != NULL && !file_parse(&reader, file, made, &status)) {
        status = status == CW_ERROR_MEMORY ? status : CW_ERROR_ARGUMENT;
    }
    json_decref(file);
    if (status != CW_OK) {
        cw_measured_destroy(made);
        return status;
    }
    *measured = made;
    return CW_OK;
}
