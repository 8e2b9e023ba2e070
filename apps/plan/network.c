/* Networks on the command line of `causeway plan`: by name, or as a JSON file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/plan/plan.h"
#include "dataplane/status.h"

static const char shape[] = "`causeway plan networks gigabit --json` prints one to start from";

/* Refuses a key that is none of `known`, which NULL ends. `place` names the object: "lan", or "" for the whole. False:
 * reported. */
static bool keys_known(json_t *object, const char *place, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        char names[200] = "known here:";
        bool found = false;
        for (size_t i = 0; known[i] != NULL; i++) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof(names) - used, " %s", known[i]);
            found = found || strcmp(known[i], key) == 0;
        }
        if (!found) {
            char where[120];
            snprintf(where, sizeof(where), "%s%s%.80s", place, place[0] != '\0' ? "." : "", key);
            app_error("the network file has an unknown key", where, names);
            return false;
        }
    }
    return true;
}

/* A number under `key`, or the present value if the key is missing. False: reported. */
static bool number_parse(const json_t *object, const char *key, double *value)
{
    const json_t *found = json_object_get(object, key);
    if (found == NULL) {
        return true;
    }
    if (!json_is_number(found)) {
        app_error("the network's parameter is no number", key, shape);
        return false;
    }
    *value = json_number_value(found);
    return true;
}

static bool point_parse(const json_t *row, struct cw_plogp_point *point)
{
    if (!json_is_array(row) || json_array_size(row) != 4) {
        return false;
    }
    for (size_t i = 0; i < 4; i++) {
        if (!json_is_number(json_array_get(row, i))) {
            return false;
        }
    }
    double bytes = json_number_value(json_array_get(row, 0));
    if (!(bytes >= 0 && bytes < 1e18)) {
        return false;
    }
    *point = (struct cw_plogp_point){
        .bytes = (uint64_t)bytes,
        .gap_ns = json_number_value(json_array_get(row, 1)),
        .send_ns = json_number_value(json_array_get(row, 2)),
        .receive_ns = json_number_value(json_array_get(row, 3)),
    };
    return true;
}

/* {"latency_ns": L, "points": [[bytes, g, os, or], ...]} */
static bool path_parse(const json_t *object, const char *key, struct cw_plogp *path)
{
    static const char *const known[] = {"latency_ns", "points", NULL};
    json_t *found = json_object_get(object, key);
    const json_t *points = json_object_get(found, "points");
    size_t count = json_array_size(points);
    if (!json_is_object(found) || !json_is_array(points) || count == 0 || count > CW_PLOGP_POINTS_MAX) {
        app_error("the network's path has no list of 1 to 64 points", key, shape);
        return false;
    }
    if (!keys_known(found, key, known)) {
        return false;
    }
    path->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        if (!point_parse(json_array_get(points, i), &path->points[i])) {
            char where[64];
            snprintf(where, sizeof(where), "%s, point %zu", key, i);
            app_error("a point of the network's path is not [bytes, gap, send, receive]", where, shape);
            return false;
        }
    }
    return number_parse(found, "latency_ns", &path->latency_ns);
}

static bool network_parse(json_t *object, struct cw_network *network)
{
    static const char *const known[] = {"name",
                                        "lan",
                                        "wan",
                                        "ports",
                                        "wan_bytes_per_ns",
                                        "wan_messages",
                                        "copy_ns_per_byte",
                                        "reduce_ns_per_byte",
                                        "contention",
                                        NULL};
    double ports = 1;
    double messages = 0;
    *network = (struct cw_network){.contention = 0.4};
    if (!keys_known(object, "", known) || !path_parse(object, "lan", &network->paths[CW_PATH_LAN])) {
        return false;
    }
    network->paths[CW_PATH_WAN] = network->paths[CW_PATH_LAN];
    if (json_object_get(object, "wan") != NULL && !path_parse(object, "wan", &network->paths[CW_PATH_WAN])) {
        return false;
    }
    bool taken = number_parse(object, "ports", &ports) &&
                 number_parse(object, "wan_bytes_per_ns", &network->wan_bytes_per_ns) &&
                 number_parse(object, "wan_messages", &messages) &&
                 number_parse(object, "copy_ns_per_byte", &network->copy_ns_per_byte) &&
                 number_parse(object, "reduce_ns_per_byte", &network->reduce_ns_per_byte) &&
                 number_parse(object, "contention", &network->contention);
    if (taken && !(messages >= 0 && messages <= UINT32_MAX)) {
        app_error("the network's number of messages in flight is out of range", "wan_messages", "0 for no limit");
        return false;
    }
    network->wan_messages = (uint32_t)messages;
    network->ports = ports >= 0 && ports < 1e9 ? (uint32_t)ports : 0;
    return taken;
}

static bool network_read(const char *path, struct cw_network *network)
{
    json_error_t where;
    char error[200];
    char *text = plan_read_text(path);
    if (text == NULL) {
        return false;
    }
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    free(text);
    if (object == NULL) {
        snprintf(error, sizeof(error), "line %d: %s", where.line, where.text);
        app_error("the network file is no JSON", path, error);
        return false;
    }
    bool taken = network_parse(object, network);
    json_decref(object);
    if (taken && cw_network_validate(network, error, sizeof(error)) != CW_OK) {
        app_error(error, path, shape);
        return false;
    }
    return taken;
}

bool plan_network_parse(const char *text, struct cw_network *network)
{
    char names[400] = "@FILE, or one of";
    if (text[0] == '@') {
        return network_read(text + 1, network);
    }
    if (cw_network_find(text, network) == CW_OK) {
        return true;
    }
    for (uint32_t i = 0; cw_network_name(i) != NULL; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, " %s", cw_network_name(i));
    }
    app_error("no such network", text, names);
    return false;
}

/* ---- networks ---- */

static const char networks_usage[] =
    "plan networks [--json]\n\n"
    "Names the networks that come with the program; with --json their parameters, a line each, as "
    "--network @FILE takes them.";

static json_t *path_json(const struct cw_plogp *path)
{
    json_t *object = app_json_new();
    json_t *points = json_array();
    app_json_number(object, "latency_ns", path->latency_ns);
    for (uint32_t i = 0; i < path->count; i++) {
        const struct cw_plogp_point *point = &path->points[i];
        json_array_append_new(
            points, json_pack("[I,f,f,f]", (json_int_t)point->bytes, point->gap_ns, point->send_ns, point->receive_ns));
    }
    app_json_child(object, "points", points);
    return object;
}

static void network_print(const char *name, bool json)
{
    struct cw_network network;
    cw_network_find(name, &network);
    if (!json) {
        printf("  %-16s %s\n", name, cw_network_summary(name));
        return;
    }
    json_t *line = app_json_new();
    app_json_text(line, "name", name);
    app_json_child(line, "lan", path_json(&network.paths[CW_PATH_LAN]));
    app_json_child(line, "wan", path_json(&network.paths[CW_PATH_WAN]));
    app_json_count(line, "ports", network.ports);
    app_json_number(line, "wan_bytes_per_ns", network.wan_bytes_per_ns);
    app_json_count(line, "wan_messages", network.wan_messages);
    app_json_number(line, "copy_ns_per_byte", network.copy_ns_per_byte);
    app_json_number(line, "reduce_ns_per_byte", network.reduce_ns_per_byte);
    app_json_number(line, "contention", network.contention);
    app_json_emit(line);
}

int plan_networks_main(int argc, char **argv)
{
    bool json = false;
    int code;
    const struct app_option rows[] = {
        {"json", NULL, "the parameters: a JSON object a network", APP_OPTION_FLAG, &json, 0, 0, NULL},
        {0},
    };
    int first = app_options_parse(networks_usage, rows, 1, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    bool found = false;
    for (uint32_t i = 0; cw_network_name(i) != NULL; i++) {
        if (first == argc || strcmp(argv[first], cw_network_name(i)) == 0) {
            network_print(cw_network_name(i), json);
            found = true;
        }
    }
    if (!found) {
        app_error("no such network", argv[first], "`causeway plan networks` names them");
        return APP_EXIT_USAGE;
    }
    return APP_EXIT_SUCCESS;
}
