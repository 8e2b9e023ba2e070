/* The file: its keys, their values, and errors in them. */
#include "control/topology/private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/settings.h"
#include "control/settings/units.h"
#include "dataplane/limits.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

/* ---- keys and values ---- */

/* Refuses keys that are none. `known` ends with NULL; `where` is "clusters[0]". */
static int keys_check(const struct topology_reader *reader, const char *where, const json_t *object,
                      const char *const *known)
{
    char list[200] = "";
    const char *key;
    json_t *value;
    if (!json_is_object(object)) {
        return topology_reject(reader, "%s: an object is wanted, {\"%s\": ...}", where, known[0]);
    }
    for (const char *const *name = known; *name != NULL; name++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "", *name);
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        const char *const *name = known;
        while (*name != NULL && strcmp(*name, key) != 0) {
            name++;
        }
        if (*name == NULL) {
            return topology_reject(reader, "%s: unknown key '%.60s' (known are %s)", where, key, list);
        }
    }
    return CW_OK;
}

static int name_parse(const struct topology_reader *reader, const char *where, const json_t *value,
                      char name[CW_TOPOLOGY_NAME_BYTES])
{
    const char *text = json_string_value(value);
    if (text == NULL || !topology_name_valid(text)) {
        return topology_reject(reader, "%s: a name is wanted (1 to %d letters, digits, '-', '_' or '.')", where,
                               CW_TOPOLOGY_NAME_BYTES - 1);
    }
    snprintf(name, CW_TOPOLOGY_NAME_BYTES, "%s", text);
    return CW_OK;
}

/* The range of "rate" and the like in one object; `where` is that object. */
static int rate_parse(const struct topology_reader *reader, const char *where, const json_t *value, uint64_t *rate_bps)
{
    const char *text = json_string_value(value);
    uint64_t rate;
    if (text == NULL || !cw_units_rate(text, &rate)) {
        return topology_reject(reader, "%s.rate: a rate is wanted, as \"1Gbps\"", where);
    }
    if (rate == 0 || rate > CW_RATE_MAX_BPS) {
        return topology_reject(reader, "%s.rate: no link has %.40s (more than 0, at most 10Tbps)", where, text);
    }
    *rate_bps = rate;
    return CW_OK;
}

static int delay_parse(const struct topology_reader *reader, const char *where, const json_t *value, uint64_t *delay_ns)
{
    const char *text = json_string_value(value);
    uint64_t delay;
    if (text == NULL || !cw_units_duration(text, &delay)) {
        return topology_reject(reader, "%s.delay: a delay is wanted, as \"20ms\"", where);
    }
    if (delay > CW_TOPOLOGY_DELAY_MAX_NS) {
        return topology_reject(reader, "%s.delay: %.40s is too long (10 s are possible)", where, text);
    }
    *delay_ns = delay;
    return CW_OK;
}

static int queue_parse(const struct topology_reader *reader, const char *where, const json_t *value, uint64_t *bytes)
{
    const char *text = json_string_value(value);
    uint64_t queue;
    if (text == NULL || !cw_units_bytes(text, &queue) || queue == 0 || queue > UINT32_MAX) {
        return topology_reject(reader,
                               "%s.queue: a queue is wanted, as \"256KB\" (at most 4 GiB; leave it out for one "
                               "without limit)",
                               where);
    }
    *bytes = queue;
    return CW_OK;
}

static int loss_parse(const struct topology_reader *reader, const char *where, const json_t *value, double *loss)
{
    const char *text = json_string_value(value);
    if (text == NULL || !cw_units_percent(text, loss)) {
        return topology_reject(reader, "%s.loss: a share is wanted, as \"0.1%%\"", where);
    }
    return CW_OK;
}

/* Whether a rate is unknown: the senders must probe it. */
static bool rate_is_found(const json_t *rate)
{
    const char *text = json_string_value(rate);
    return text != NULL && strcmp(text, "found") == 0;
}

/* rate, delay, queue and loss of a link, as far as they are there. */
static int link_config_parse(const struct topology_reader *reader, const char *where, const json_t *object,
                             bool may_be_found, struct cw_link_config *link)
{
    const json_t *rate = json_object_get(object, "rate");
    const json_t *delay = json_object_get(object, "delay");
    const json_t *queue = json_object_get(object, "queue");
    const json_t *loss = json_object_get(object, "loss");
    *link = (struct cw_link_config){.overhead_bytes = CW_ETHERNET_OVERHEAD_BYTES};
    rate = may_be_found && rate_is_found(rate) ? NULL : rate;
    int status = rate == NULL ? CW_OK : rate_parse(reader, where, rate, &link->rate_bps);
    if (status == CW_OK && delay != NULL) {
        status = delay_parse(reader, where, delay, &link->delay_ns);
    }
    if (status == CW_OK && queue != NULL) {
        status = queue_parse(reader, where, queue, &link->queue_limit_bytes);
    }
    if (status == CW_OK && loss != NULL) {
        status = loss_parse(reader, where, loss, &link->loss);
    }
    if (status == CW_OK && queue != NULL && rate == NULL) {
        return topology_reject(
            reader, "%s.queue: without a rate nothing waits (give it a \"rate\", or leave the queue out)", where);
    }
    return status;
}

/* ---- clusters and places ---- */

/* The number of a site, UINT32_MAX: there is none. */
static uint32_t site_find(const struct cw_topology *topology, const char *name)
{
    for (uint32_t site = 0; site < topology->cluster_count + topology->place_count; site++) {
        if (strcmp(cw_topology_site_name(topology, site), name) == 0) {
            return site;
        }
    }
    return UINT32_MAX;
}

static int cluster_parse(const struct topology_reader *reader, const json_t *object)
{
    static const char *const keys[] = {"name", "hosts", "rate", "delay", "queue", "loss", NULL};
    struct cw_topology *topology = reader->topology;
    uint32_t index = topology->cluster_count;
    struct cw_topology_cluster *cluster = &topology->clusters[index];
    char where[40];
    char key[64];
    snprintf(where, sizeof(where), "clusters[%u]", index);
    snprintf(key, sizeof(key), "%s.name", where);
    int status = keys_check(reader, where, object, keys);
    if (status == CW_OK) {
        status = name_parse(reader, key, json_object_get(object, "name"), cluster->name);
    }
    if (status == CW_OK && site_find(topology, cluster->name) != UINT32_MAX) {
        return topology_reject(reader, "%s: another site is called '%s' (each has a name of its own)", key,
                               cluster->name);
    }
    if (status == CW_OK) {
        status = link_config_parse(reader, where, object, false, &cluster->host_link);
    }
    if (status == CW_OK) {
        topology->cluster_count++;
        status = topology_hosts_parse(reader, index, json_object_get(object, "hosts"));
    }
    return status;
}

static int place_parse(const struct topology_reader *reader, const json_t *value)
{
    struct cw_topology *topology = reader->topology;
    char *name = topology->places[topology->place_count];
    char where[40];
    snprintf(where, sizeof(where), "places[%u]", topology->place_count);
    int status = name_parse(reader, where, value, name);
    if (status == CW_OK && site_find(topology, name) != UINT32_MAX) {
        return topology_reject(reader, "%s: another site is called '%s' (each has a name of its own)", where, name);
    }
    topology->place_count += status == CW_OK;
    return status;
}

/* ---- links ---- */

static int sites_parse(const struct topology_reader *reader, const char *where, const json_t *between,
                       struct cw_topology_link *link)
{
    if (json_array_size(between) != 2 || !json_is_string(json_array_get(between, 0)) ||
        !json_is_string(json_array_get(between, 1))) {
        return topology_reject(reader, "%s.between: two sites are wanted, as [\"east\", \"west\"]", where);
    }
    for (size_t i = 0; i < 2; i++) {
        const char *name = json_string_value(json_array_get(between, i));
        link->sites[i] = site_find(reader->topology, name);
        if (link->sites[i] == UINT32_MAX) {
            return topology_reject(
                reader, "%s.between: no site is called '%.64s' (add it to \"clusters\" or \"places\")", where, name);
        }
    }
    if (link->sites[0] == link->sites[1]) {
        return topology_reject(reader, "%s.between: '%s' is joined with itself (name two different sites)", where,
                               cw_topology_site_name(reader->topology, link->sites[0]));
    }
    return CW_OK;
}

static int link_name_parse(const struct topology_reader *reader, const char *where, const json_t *name,
                           struct cw_topology_link *link)
{
    const struct cw_topology *topology = reader->topology;
    char key[64];
    char own[2 * CW_TOPOLOGY_NAME_BYTES];
    snprintf(key, sizeof(key), "%s.name", where);
    if (name != NULL) {
        int status = name_parse(reader, key, name, link->name);
        if (status != CW_OK) {
            return status;
        }
    } else {
        int length = snprintf(own, sizeof(own), "%s-%s", cw_topology_site_name(topology, link->sites[0]),
                              cw_topology_site_name(topology, link->sites[1]));
        if (length >= CW_TOPOLOGY_NAME_BYTES) {
            return topology_reject(reader, "%s: '%s' is too long for the name of a link (give it a shorter \"name\")",
                                   where, own);
        }
        memcpy(link->name, own, (size_t)length + 1);
    }
    for (uint32_t i = 0; i < topology->link_count; i++) {
        if (strcmp(topology->links[i].name, link->name) == 0) {
            return topology_reject(reader, "%s: links[%u] is called '%s', too (give each a \"name\" of its own)", where,
                                   i, link->name);
        }
    }
    for (uint32_t i = 0; i < topology->host_count; i++) {
        if (strcmp(topology->hosts[i].name, link->name) == 0) {
            return topology_reject(reader, "%s: a host is called '%s', too (give the link another \"name\")", where,
                                   link->name);
        }
    }
    return CW_OK;
}

static int streams_parse(const struct topology_reader *reader, const char *where, const json_t *value,
                         struct cw_topology_link *link)
{
    json_int_t count = json_integer_value(value);
    if (!json_is_integer(value) || count < 1 || count > CW_TOPOLOGY_HOSTS_MAX) {
        return topology_reject(reader,
                               "%s.streams: a number of nodes is wanted (1 to %d; leave it out if all may send)", where,
                               CW_TOPOLOGY_HOSTS_MAX);
    }
    link->streams = (uint32_t)count;
    return CW_OK;
}

/* Keys other than sites, name and those common to all links. */
static int link_rest_parse(const struct topology_reader *reader, const char *where, const json_t *object,
                           struct cw_topology_link *link)
{
    const json_t *streams = json_object_get(object, "streams");
    const json_t *encrypt = json_object_get(object, "encrypt");
    if (json_object_get(object, "rate") == NULL || json_object_get(object, "delay") == NULL) {
        return topology_reject(
            reader, "%s: a link has a \"rate\" and a \"delay\" (add the missing key; an unknown rate is \"found\")",
            where);
    }
    int status = link_config_parse(reader, where, object, true, &link->link);
    if (status == CW_OK && streams != NULL) {
        status = streams_parse(reader, where, streams, link);
    }
    if (status == CW_OK && encrypt != NULL && !json_is_boolean(encrypt)) {
        return topology_reject(reader, "%s.encrypt: true or false is wanted", where);
    }
    link->encrypt = encrypt == NULL || json_is_true(encrypt);
    return status;
}

static int link_parse(const struct topology_reader *reader, const json_t *object)
{
    static const char *const keys[] = {"name", "between", "rate", "delay", "queue", "loss", "streams", "encrypt", NULL};
    struct cw_topology *topology = reader->topology;
    struct cw_topology_link *link = &topology->links[topology->link_count];
    char where[40];
    snprintf(where, sizeof(where), "links[%u]", topology->link_count);
    int status = keys_check(reader, where, object, keys);
    if (status == CW_OK) {
        status = sites_parse(reader, where, json_object_get(object, "between"), link);
    }
    if (status == CW_OK) {
        status = link_name_parse(reader, where, json_object_get(object, "name"), link);
    }
    if (status == CW_OK) {
        status = link_rest_parse(reader, where, object, link);
    }
    topology->link_count += status == CW_OK;
    return status;
}

/* ---- the whole ---- */

/* A list in the file; `parse` parses one entry at a time. */
struct list {
    const char *key;
    size_t count_max;
    bool is_wanted;
    int (*parse)(const struct topology_reader *reader, const json_t *entry);
};

static int list_parse(const struct topology_reader *reader, const struct list *list, const json_t *value)
{
    int status = CW_OK;
    if (value == NULL && !list->is_wanted) {
        return CW_OK;
    }
    if (!json_is_array(value) || (list->is_wanted && json_array_size(value) == 0)) {
        return topology_reject(reader, "%s: a list is wanted%s", list->key, list->is_wanted ? ", of at least one" : "");
    }
    if (json_array_size(value) > list->count_max) {
        return topology_reject(reader, "%s: there are %zu, at most %zu are possible (leave some out)", list->key,
                               json_array_size(value), list->count_max);
    }
    for (size_t i = 0; i < json_array_size(value) && status == CW_OK; i++) {
        status = list->parse(reader, json_array_get(value, i));
    }
    return status;
}

static int file_parse(const struct topology_reader *reader, const json_t *file)
{
    static const char *const keys[] = {"clusters", "places", "links", NULL};
    static const struct list lists[] = {{"clusters", CW_TOPOLOGY_CLUSTERS_MAX, true, cluster_parse},
                                        {"places", CW_TOPOLOGY_PLACES_MAX, false, place_parse},
                                        {"links", CW_TOPOLOGY_LINKS_MAX, false, link_parse}};
    int status = keys_check(reader, "the file", file, keys);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && status == CW_OK; i++) {
        status = list_parse(reader, &lists[i], json_object_get(file, lists[i].key));
    }
    return status == CW_OK ? topology_routes_find(reader) : status;
}

int cw_topology_decode(const char *text, size_t length, struct cw_topology **topology, char *error, size_t error_bytes)
{
    json_error_t where;
    json_t *file = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (file == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "line %d: %s (a topology is JSON: \"clusters\" and "
                             "\"links\", see docs/wide-area.md)",
                             where.line, where.text);
    }
    struct topology_reader reader = {calloc(1, sizeof(*reader.topology)), error, error_bytes};
    if (reader.topology != NULL) {
        reader.topology->hosts = calloc(CW_TOPOLOGY_HOSTS_MAX, sizeof(*reader.topology->hosts));
    }
    int status =
        reader.topology == NULL || reader.topology->hosts == NULL ? CW_ERROR_MEMORY : file_parse(&reader, file);
    json_decref(file);
    if (status == CW_ERROR_MEMORY) {
        (void)cw_error_text(error, error_bytes, status, "no memory for the topology");
    }
    if (status != CW_OK) {
        cw_topology_destroy(reader.topology);
        return status;
    }
    *topology = reader.topology;
    return CW_OK;
}

int cw_topology_load(const char *path, struct cw_topology **topology, char *error, size_t error_bytes)
{
    char reason[CW_TOPOLOGY_ERROR_BYTES];
    size_t length;
    char *text = cw_settings_read(path, CW_TOPOLOGY_FILE_BYTES, &length);
    if (text == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "the topology %s cannot be read: %s", path,
                             errno == EFBIG ? "it is longer than a megabyte" : strerror(errno));
    }
    int status = cw_topology_decode(text, length, topology, reason, sizeof(reason));
    free(text);
    return status == CW_OK ? CW_OK : cw_error_text(error, error_bytes, status, "%s: %s", path, reason);
}
