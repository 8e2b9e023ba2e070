/* Lists of hosts: names, ranges of names, or a number. */
#include "control/topology/private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

enum { DIGITS_MAX = 9 };

static int host_add(const struct topology_reader *reader, uint32_t cluster, const char *name)
{
    struct cw_topology *topology = reader->topology;
    const char *own = topology->clusters[cluster].name;
    if (!topology_name_valid(name)) {
        return topology_reject(reader,
                               "clusters[%u].hosts: '%.80s' cannot be the name of a host (1 to %d letters, digits, "
                               "'-', '_' or '.')",
                               cluster, name, CW_TOPOLOGY_NAME_BYTES - 1);
    }
    for (uint32_t i = 0; i < topology->host_count; i++) {
        if (strcmp(topology->hosts[i].name, name) == 0) {
            const char *other = topology->clusters[topology->hosts[i].cluster].name;
            return topology_reject(
                reader,
                "clusters[%u].hosts: host '%s' of cluster '%s' is in cluster '%s' already (a host is in "
                "one cluster, once)",
                cluster, name, own, other);
        }
    }
    if (topology->host_count == CW_TOPOLOGY_HOSTS_MAX) {
        return topology_reject(reader, "clusters[%u].hosts: there are more than %d hosts (leave some out)", cluster,
                               CW_TOPOLOGY_HOSTS_MAX);
    }
    struct topology_host *host = &topology->hosts[topology->host_count++];
    snprintf(host->name, sizeof(host->name), "%s", name);
    host->cluster = cluster;
    topology->clusters[cluster].host_count++;
    return CW_OK;
}

/* "das[08-11]x", taken apart. */
struct range {
    int prefix_length;
    int width; /* of numbers that begin with zeros */
    uint32_t low, high;
    const char *suffix;
};

/* Reads up to DIGITS_MAX digits. */
static bool digits_read(const char **text, uint32_t *number, int *width)
{
    char digits[DIGITS_MAX + 1];
    size_t length = strspn(*text, "0123456789");
    if (length == 0 || length > DIGITS_MAX) {
        return false;
    }
    memcpy(digits, *text, length);
    digits[length] = '\0';
    *number = (uint32_t)strtoul(digits, NULL, 10);
    *width = (int)length;
    *text += length;
    return true;
}

/* False: it is none that makes sense. */
static bool range_read(const char *text, const char *bracket, struct range *range)
{
    const char *rest = bracket + 1;
    int high_width;
    *range = (struct range){.prefix_length = (int)(bracket - text)};
    if (!digits_read(&rest, &range->low, &range->width) || *rest++ != '-' ||
        !digits_read(&rest, &range->high, &high_width) || *rest++ != ']' || range->high < range->low ||
        strpbrk(rest, "[]") != NULL) {
        return false;
    }
    range->width = bracket[1] == '0' ? range->width : 0;
    range->suffix = rest;
    return true;
}

static int text_parse(const struct topology_reader *reader, uint32_t cluster, const char *text)
{
    char name[2 * CW_TOPOLOGY_NAME_BYTES];
    struct range range;
    const char *bracket = strchr(text, '[');
    if (bracket == NULL) {
        return host_add(reader, cluster, text);
    }
    if (!range_read(text, bracket, &range)) {
        return topology_reject(reader, "clusters[%u].hosts: '%.80s' is no range of hosts (write it as \"east[0-15]\")",
                               cluster, text);
    }
    for (uint64_t i = range.low; i <= range.high; i++) {
        snprintf(name, sizeof(name), "%.*s%0*u%s", range.prefix_length, text, range.width, (uint32_t)i, range.suffix);
        int status = host_add(reader, cluster, name);
        if (status != CW_OK) {
            return status;
        }
    }
    return CW_OK;
}

static int count_apply(const struct topology_reader *reader, uint32_t cluster, json_int_t count)
{
    int status = CW_OK;
    if (count < 0 || count > CW_TOPOLOGY_HOSTS_MAX) {
        return topology_reject(reader, "clusters[%u].hosts: %" JSON_INTEGER_FORMAT " hosts are not possible (1 to %d)",
                               cluster, count, CW_TOPOLOGY_HOSTS_MAX);
    }
    for (uint32_t i = 0; i < (uint32_t)count && status == CW_OK; i++) {
        char name[2 * CW_TOPOLOGY_NAME_BYTES];
        snprintf(name, sizeof(name), "%s%u", reader->topology->clusters[cluster].name, i);
        status = host_add(reader, cluster, name);
    }
    return status;
}

int topology_hosts_parse(const struct topology_reader *reader, uint32_t cluster, const json_t *hosts)
{
    struct cw_topology_cluster *own = &reader->topology->clusters[cluster];
    int status = CW_OK;
    size_t index;
    const json_t *host;
    own->host_first = reader->topology->host_count;
    if (json_is_integer(hosts)) {
        status = count_apply(reader, cluster, json_integer_value(hosts));
    } else if (!json_is_array(hosts)) {
        return topology_reject(reader,
                               "clusters[%u].hosts: a list of names, or a number of hosts, is wanted (as "
                               "[\"east[0-15]\"], or 16)",
                               cluster);
    }
    json_array_foreach(hosts, index, host)
    {
        if (status == CW_OK) {
            status = json_is_string(host)
                         ? text_parse(reader, cluster, json_string_value(host))
                         : topology_reject(reader,
                                           "clusters[%u].hosts[%zu]: the name of a host is wanted (as \"east[0-15]\")",
                                           cluster, index);
        }
    }
    if (status == CW_OK && own->host_count == 0) {
        return topology_reject(reader,
                               "clusters[%u]: cluster '%s' has no hosts (name some, or make it one of \"places\")",
                               cluster, own->name);
    }
    return status;
}
