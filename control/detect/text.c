/* What was detected, told: in a line, and as a topology file. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/detect/private.h"
#include "control/topology/private.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

static_assert(CW_DETECT_CLUSTERS_MAX * (CW_DETECT_CLUSTERS_MAX - 1) / 2 <= CW_TOPOLOGY_LINKS_MAX, "a link each pair");

#define WORD "detect"

const char *cw_detect_word(const char *word)
{
    const char *rest = word == NULL || strncmp(word, WORD, strlen(WORD)) != 0 ? NULL : word + strlen(WORD);
    return rest == NULL || (rest[0] != '\0' && rest[0] != ':') ? NULL : rest + (rest[0] == ':');
}

void cw_detect_why(const struct cw_detect *detect, char *text, size_t text_bytes)
{
    uint64_t least_ns = UINT64_MAX, most_ns = 0;
    char within[64] = "none measured";
    if (detect->within_ns > 0) {
        snprintf(within, sizeof(within), "up to %.3f ms", (double)detect->within_ns / 1e6);
    }
    if (detect->cluster_count == 1) {
        snprintf(text, text_bytes, "clusters detected: 1: round trips are %s, and there is no clear gap", within);
        return;
    }
    for (uint32_t i = 0; detect->cluster_count <= CW_DETECT_CLUSTERS_MAX && i < detect->cluster_count; i++) {
        for (uint32_t other = 0; other < i; other++) {
            uint64_t trip_ns = cw_detect_between_ns(detect, i, other);
            least_ns = trip_ns < least_ns ? trip_ns : least_ns;
            most_ns = trip_ns > most_ns ? trip_ns : most_ns;
        }
    }
    snprintf(text, text_bytes,
             "clusters detected: %" PRIu32 ": round trips within one are %s, between two %.3f to %.3f ms",
             detect->cluster_count, within, (double)least_ns / 1e6, (double)most_ns / 1e6);
}

/* ---- the file ---- */

/* Hosts that were looked at, by name. */
struct names {
    const struct cw_detect *detect;
    const char *(*name)(void *context, uint32_t host);
    void *context;
    char *error;
    size_t error_bytes;
};

/* Whether the name is new; `seen` has the hosts of all names. CW_OK or CW_ERROR_ARGUMENT. */
static int name_check(const struct names *names, json_t *seen, uint32_t host, bool *is_new)
{
    const char *name = names->name(names->context, host);
    const json_t *before = json_object_get(seen, name);
    uint32_t other = (uint32_t)json_integer_value(before);
    *is_new = before == NULL;
    if (!topology_name_valid(name)) {
        return cw_error_text(names->error, names->error_bytes, CW_ERROR_ARGUMENT,
                             "a host is called '%.64s', which a topology cannot name (letters, digits, '-', '_' and "
                             "'.'): give it another name, or write a file",
                             name);
    }
    if (before != NULL && cw_detect_cluster(names->detect, other) != cw_detect_cluster(names->detect, host)) {
        return cw_error_text(names->error, names->error_bytes, CW_ERROR_ARGUMENT,
                             "two hosts that are far from one another are both called '%.64s': give each a name of its "
                             "own",
                             name);
    }
    return *is_new && json_object_set_new(seen, name, json_integer(host)) != 0 ? CW_ERROR_MEMORY : CW_OK;
}

/* Each cluster: {"name": "c0", "hosts": [...]}. */
static int clusters_write(const struct names *names, json_t *clusters)
{
    int status = CW_OK;
    json_t *seen = json_object();
    for (uint32_t i = 0; i < names->detect->cluster_count && status == CW_OK; i++) {
        json_t *cluster = json_pack("{s:o, s:[]}", "name", json_sprintf("c%" PRIu32, i), "hosts");
        status = cluster == NULL || json_array_append_new(clusters, cluster) != 0 ? CW_ERROR_MEMORY : CW_OK;
    }
    status = seen == NULL ? CW_ERROR_MEMORY : status;
    for (uint32_t host = 0; host < names->detect->hosts && status == CW_OK; host++) {
        bool is_new = false;
        json_t *list = json_object_get(json_array_get(clusters, cw_detect_cluster(names->detect, host)), "hosts");
        status = name_check(names, seen, host, &is_new);
        if (status == CW_OK && is_new &&
            json_array_append_new(list, json_string(names->name(names->context, host))) != 0) {
            status = CW_ERROR_MEMORY;
        }
    }
    json_decref(seen);
    return status;
}

static int links_write(const struct cw_detect *detect, json_t *links)
{
    for (uint32_t to = 1; to < detect->cluster_count; to++) {
        for (uint32_t from = 0; from < to; from++) {
            json_t *link = json_pack("{s:[o,o], s:s, s:o}", "between", json_sprintf("c%" PRIu32, from),
                                     json_sprintf("c%" PRIu32, to), "rate", "found", "delay",
                                     json_sprintf("%" PRIu64 "ns", cw_detect_between_ns(detect, from, to) / 2));
            if (link == NULL || json_array_append_new(links, link) != 0) {
                return CW_ERROR_MEMORY;
            }
        }
    }
    return CW_OK;
}

/* A list of the file, an entry a line: people are to add to it. */
static bool list_print(FILE *out, const char *key, const json_t *list)
{
    bool good = fprintf(out, "\"%s\": [", key) > 0;
    for (size_t i = 0; i < json_array_size(list) && good; i++) {
        char *line = json_dumps(json_array_get(list, i), 0);
        good = line != NULL && fprintf(out, "%s  %s", i > 0 ? ",\n" : "\n", line) > 0;
        free(line);
    }
    return fputs("]", out) >= 0 && good;
}

/* NULL: no memory. */
static char *file_print(const json_t *file)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    bool good = fputs("{", out) >= 0 && list_print(out, "clusters", json_object_get(file, "clusters")) &&
                fputs(",\n ", out) >= 0 && list_print(out, "links", json_object_get(file, "links")) &&
                fputs("}", out) >= 0;
    if (fclose(out) != 0 || !good) {
        free(text);
        return NULL;
    }
    return text;
}

int cw_detect_encode(const struct cw_detect *detect, const char *(*host_name)(void *context, uint32_t host),
                     void *context, char **text, char *error, size_t error_bytes)
{
    const struct names names = {detect, host_name, context, error, error_bytes};
    assert(detect->is_done);
    if (detect->cluster_count > CW_DETECT_CLUSTERS_MAX) {
        return cw_error_text(error, error_bytes, CW_ERROR_LIMIT,
                             "round trips tell %" PRIu32 " clusters apart, at most %d are possible: write a file",
                             detect->cluster_count, CW_DETECT_CLUSTERS_MAX);
    }
    json_t *file = json_pack("{s:[], s:[]}", "clusters", "links");
    int status = file == NULL ? CW_ERROR_MEMORY : clusters_write(&names, json_object_get(file, "clusters"));
    status = status == CW_OK ? links_write(detect, json_object_get(file, "links")) : status;
    char *made = status == CW_OK ? file_print(file) : NULL;
    json_decref(file);
    if (status == CW_ERROR_MEMORY || (status == CW_OK && made == NULL)) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the topology");
    }
    *text = status == CW_OK ? made : *text;
    return status;
}
