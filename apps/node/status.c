#include "apps/node/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "apps/cli/cli.h"
#include "apps/cli/report.h"
#include "control/lease/lease.h"
#include "control/lease/lease_text.h"
#include "dataplane/status.h"

enum { ERROR_BYTES = 512 };

/* ---- for users, and a line each ---- */

static uint64_t count_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static void lease_report(struct app_report *report, const json_t *object)
{
    const char *job = json_string_value(json_object_get(object, "job"));
    const struct app_cell cells[] = {
        app_text("job", "job", 24, job == NULL ? "" : job),
        app_count("rank", "rank", count_of(object, "rank")),
        app_count("user", "user", count_of(object, "user")),
        app_count("process", "process", count_of(object, "process")),
        app_count("port", "UDP port", count_of(object, "port")),
        app_count("ports", "ports", count_of(object, "ports")),
        app_count("thread", "thread", count_of(object, "thread")),
        app_count("weight", "weight", count_of(object, "weight")),
        app_count("out_frames", "out", count_of(object, "out_frames")),
        app_scaled("out_bytes", "out MB", 1, 1e-6, count_of(object, "out_bytes")),
        app_count("in_frames", "in", count_of(object, "in_frames")),
        app_scaled("in_bytes", "in MB", 1, 1e-6, count_of(object, "in_bytes")),
        app_count("refused", "refused", count_of(object, "refused")),
        app_count("dropped", "dropped", count_of(object, "dropped")),
    };
    APP_REPORT(report, cells);
}

static void nic_report(const json_t *object)
{
    static const char *const texts[] = {"nic", "ip", "driver"};
    const char *values[3];
    for (size_t i = 0; i < 3; i++) {
        values[i] = json_string_value(json_object_get(object, texts[i]));
        values[i] = values[i] == NULL ? "" : values[i];
    }
    printf("%s at %s by %s, MTU %" PRIu64 ", %" PRIu64 " leases; %" PRIu64 " frames had no receiver\n", values[0],
           values[1], values[2], count_of(object, "mtu_bytes"), count_of(object, "leases"),
           count_of(object, "foreign_frames"));
}

/* ---- Prometheus ---- */

struct metric {
    const char *name;
    const char *kind;
    const char *help;
    const char *key; /* of the node's answer */
};

static const struct metric nic_metrics[] = {
    {"causeway_node_leases", "gauge", "Leases of UDP ports.", "leases"},
    {"causeway_node_foreign_packets_total", "counter", "Packets received for nobody.", "foreign_frames"},
};

static const struct metric lease_metrics[] = {
    {"causeway_node_send_bytes_total", "counter", "Bytes of frames sent for a rank.", "out_bytes"},
    {"causeway_node_send_packets_total", "counter", "Packets sent for a rank.", "out_frames"},
    {"causeway_node_receive_bytes_total", "counter", "Bytes of frames handed to a rank.", "in_bytes"},
    {"causeway_node_receive_packets_total", "counter", "Packets handed to a rank.", "in_frames"},
    {"causeway_node_refused_packets_total", "counter", "Packets of a rank that were not its own.", "refused"},
    {"causeway_node_dropped_packets_total", "counter", "Packets for a rank that had no room.", "dropped"},
};

static void metric_head(const struct metric *metric)
{
    printf("# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name, metric->kind);
}

/* Names of jobs are words (lease_text.h), and those of NICs have no quotes. */
static void expose(const json_t *nic, const json_t *leases)
{
    for (size_t i = 0; i < sizeof(nic_metrics) / sizeof(nic_metrics[0]); i++) {
        metric_head(&nic_metrics[i]);
        printf("%s{nic=\"%s\"} %" PRIu64 "\n", nic_metrics[i].name, json_string_value(json_object_get(nic, "nic")),
               count_of(nic, nic_metrics[i].key));
    }
    for (size_t i = 0; i < sizeof(lease_metrics) / sizeof(lease_metrics[0]); i++) {
        size_t index;
        const json_t *lease;
        metric_head(&lease_metrics[i]);
        json_array_foreach(leases, index, lease)
        {
            printf("%s{job=\"%s\",rank=\"%" PRIu64 "\",process=\"%" PRIu64 "\",user=\"%" PRIu64 "\"} %" PRIu64 "\n",
                   lease_metrics[i].name, json_string_value(json_object_get(lease, "job")), count_of(lease, "rank"),
                   count_of(lease, "process"), count_of(lease, "user"), count_of(lease, lease_metrics[i].key));
        }
    }
}

/* ---- all of it ---- */

/* False: the node has not answered completely; its other answer is in `line`. */
static bool query(int socket, char line[CW_LEASE_LINE_BYTES], json_t **nic, json_t *leases)
{
    const struct cw_lease_request request = {.kind = CW_LEASE_STATUS};
    int descriptor;
    cw_lease_request_write(&request, line);
    long got = cw_lease_send(socket, line, -1);
    while (got > 0 && (got = cw_lease_receive(socket, line, &descriptor)) > 0 && line[0] == '{') {
        json_t *object = json_loads(line, 0, NULL);
        if (json_object_get(object, "nic") != NULL) {
            json_decref(*nic);
            *nic = object;
        } else {
            (void)json_array_append_new(leases, object);
        }
    }
    return got > 0 && line[0] == '\n' && *nic != NULL;
}

static void status_print(const json_t *nic, const json_t *leases, const struct node_status_options *options)
{
    struct app_report report = {.json = options->json, .form = APP_REPORT_TABLE};
    size_t index;
    const json_t *lease;
    if (!options->json) {
        nic_report(nic);
    }
    json_array_foreach(leases, index, lease)
    {
        lease_report(&report, lease);
    }
    if (json_array_size(leases) == 0 && !options->json) {
        printf("nobody has a lease%s\n", geteuid() == 0 ? "" : ", or none of this user: root sees those of all");
    }
}

int node_status(const char *path, const struct node_status_options *options)
{
    char line[CW_LEASE_LINE_BYTES] = "", error[ERROR_BYTES];
    int socket;
    int status = cw_lease_connect(path, &socket, error, sizeof(error));
    if (status != CW_OK) {
        return app_error_status(status, error, NULL);
    }
    json_t *nic = NULL, *leases = json_array();
    bool is_whole = query(socket, line, &nic, leases);
    close(socket);
    if (is_whole && options->prometheus) {
        expose(nic, leases);
    } else if (is_whole) {
        status_print(nic, leases, options);
    }
    json_decref(nic);
    json_decref(leases);
    return is_whole ? APP_EXIT_SUCCESS
                    : app_error_status(CW_ERROR_CLOSED, "the node does not answer",
                                       strncmp(line, "refused", 7) == 0 ? line : NULL);
}
