/* `causeway node`: the host's dataplane: it owns a NIC and serves the ranks of all jobs and users of the host. */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/node/ports.h"
#include "apps/node/serve.h"
#include "apps/node/status.h"
#include "control/lease/lease.h"
#include "control/net/net.h"
#include "control/settings/setting.h"
#include "control/settings/units.h"
#include "dataplane/status.h"

enum { PORT_FIRST = 29400, PORT_LAST = 30423, ERROR_BYTES = 512, USER_LEASES = 512 };

struct options {
    const char *nic;
    const char *path;
    const char *ports;
    uint64_t rate_bps;
    struct app_list cores; /* none: one, wherever the system puts it */
    bool dedicated;
    struct node_status_options status;
    uint64_t user_leases;
    struct node_serve_config serve;
};

/* ---- options ---- */

static bool user_read(const char *text, size_t length, uid_t *user)
{
    char name[64];
    uint64_t number;
    if (length == 0 || length >= sizeof(name)) {
        return false;
    }
    memcpy(name, text, length);
    name[length] = 0;
    const struct passwd *entry = getpwnam(name);
    if (entry != NULL) {
        *user = entry->pw_uid;
        return true;
    }
    bool is_number = app_parse_count(name, &number) && number < UINT32_MAX;
    *user = is_number ? (uid_t)number : 0;
    return is_number;
}

/* USER:weight=N,rate=RATE */
static int share_parse(void *context, const char *text)
{
    struct node_serve_config *serve = context;
    struct node_user user = {.weight = 1};
    size_t length = strcspn(text, ":");
    const char *at = text + length;
    bool makes_sense = true;
    if (length > 0 && !user_read(text, length, &user.user)) {
        app_error("--share: this host has no such user", text, "a name of `getent passwd`, or a number");
        return APP_EXIT_USAGE;
    }
    while (makes_sense && *at != 0) {
        char value[32];
        size_t bytes = strcspn(at + 1, ",");
        const char *equals = memchr(at + 1, '=', bytes);
        uint64_t number = 0;
        size_t before = equals == NULL ? 0 : (size_t)(equals - at);
        makes_sense = equals != NULL && bytes - before < sizeof(value);
        if (makes_sense) {
            memcpy(value, equals + 1, bytes - before);
            value[bytes - before] = 0;
            bool is_weight = before == 7 && memcmp(at + 1, "weight", 6) == 0;
            bool is_rate = before == 5 && memcmp(at + 1, "rate", 4) == 0;
            makes_sense = is_weight ? app_parse_count(value, &number) && number >= 1 && number <= NODE_WEIGHT_MAX
                                    : is_rate && cw_units_rate(value, &number) && number > 0;
            user.weight = is_weight ? (uint32_t)number : user.weight;
            user.rate_bps = is_rate ? number : user.rate_bps;
        }
        at += 1 + bytes;
    }
    if (!makes_sense) {
        app_error("--share", text, "wanted is USER:weight=N,rate=RATE, like alice:weight=3,rate=10Gbps");
        return APP_EXIT_USAGE;
    }
    if (serve->user_count == NODE_USERS_MAX) {
        app_error("--share is for 64 users at most", text, NULL);
        return APP_EXIT_USAGE;
    }
    serve->users[serve->user_count++] = user;
    return APP_EXIT_SUCCESS;
}

static int ports_read(struct options *options)
{
    struct node_serve_config *serve = &options->serve;
    char error[ERROR_BYTES];
    uint16_t first = 0, last = 0;
    if (options->ports != NULL) {
        (void)cw_setting_set(CW_SETTING_PORTS, options->ports);
    }
    int status = cw_net_ports(&first, &last, error, sizeof(error));
    if (status != CW_OK) {
        return app_error_status(status, error, NULL);
    }
    serve->port_first = first != 0 ? first : (uint16_t)PORT_FIRST;
    serve->port_last = first != 0 ? last : (uint16_t)PORT_LAST;
    return APP_EXIT_SUCCESS;
}

/* ---- the node ---- */

/* Creates the folder of the socket, if it is missing; opening the socket reports other errors. */
static int folder_make(const char *path)
{
    char folder[NODE_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    if (strlen(path) >= NODE_PATH_BYTES) {
        app_error("the path of the socket is too long", path, "at most 107 characters");
        return APP_EXIT_USAGE;
    }
    if (slash != NULL && slash != path) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        (void)mkdir(folder, 0755);
    }
    return APP_EXIT_SUCCESS;
}

/* A lease takes a few descriptors: as many as the system lets it have. */
static void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* A thread for each core, each with a queue pair. */
static int dataplanes_open(struct options *options, const struct node_nic *nic, struct node_handoff *handoff)
{
    struct node_serve_config *serve = &options->serve;
    char error[ERROR_BYTES];
    uint32_t count = nic->port_count, span = (uint32_t)serve->port_last - serve->port_first + 1;
    struct node_dataplane_config config = {.handoff = handoff,
                                           .count = count,
                                           .port_first = serve->port_first,
                                           .ports_each = node_ports_each(span, count),
                                           .ip = nic->address.ip,
                                           .rate_bps = options->rate_bps / count,
                                           .spins = options->dedicated};
    memcpy(config.mac, nic->mac, sizeof(config.mac));
    if (count > 1 && config.ports_each < CW_LEASE_PORTS_MAX) {
        app_error("too few UDP ports for this number of cores", NULL,
                  "64 for each: give --ports more, or --core fewer");
        return APP_EXIT_USAGE;
    }
    for (uint32_t i = 0; i < count; i++) {
        config.nic = nic->ports[i];
        config.number = i;
        config.ports_own = i + 1 < count ? config.ports_each : span - i * config.ports_each;
        config.neighbours = i == 0 ? nic->neighbours : NULL;
        config.answers = nic->neighbours != NULL;
        config.core = options->cores.count == 0 ? -1 : (int)options->cores.values[i];
        int status = node_dataplane_open(&config, &serve->dataplanes[i], error, sizeof(error));
        if (status != CW_OK) {
            return app_error_status(status, error, NULL);
        }
        serve->core_count++;
    }
    return APP_EXIT_SUCCESS;
}

static int node_run(struct options *options)
{
    struct node_nic nic;
    struct node_serve_config *serve = &options->serve;
    struct node_handoff *handoff = NULL;
    uint32_t cores = options->cores.count == 0 ? 1 : (uint32_t)options->cores.count;
    sigset_t before;
    struct app_signals *signals = app_signals_hold(&before);
    descriptors_raise();
    int code = ports_read(options);
    code = code == APP_EXIT_SUCCESS ? folder_make(options->path) : code;
    code =
        code == APP_EXIT_SUCCESS ? node_nic_open(options->nic, serve->port_first, serve->port_last, cores, &nic) : code;
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    if (nic.port_count > 1) {
        handoff = node_handoff_make(nic.port_count, nic.ports, nic.port->info.mtu_bytes + 14u);
        code = handoff == NULL ? app_error_status(CW_ERROR_MEMORY, "no memory for frames between cores", NULL) : code;
    }
    code = code == APP_EXIT_SUCCESS ? dataplanes_open(options, &nic, handoff) : code;
    if (code == APP_EXIT_SUCCESS) {
        serve->path = options->path;
        serve->nic = &nic;
        serve->user_leases_max = (uint32_t)options->user_leases;
        code = node_serve(serve, signals, &before);
    }
    for (uint32_t i = serve->core_count; i-- > 0;) {
        node_dataplane_close(serve->dataplanes[i]);
    }
    node_handoff_free(handoff);
    node_nic_close(&nic);
    return code;
}

int node_main(int argc, char **argv)
{
    struct options options = {
        .path = CW_LEASE_SOCKET, .cores = {.count_max = NODE_CORES_MAX, .rising = true}, .user_leases = USER_LEASES};
    const struct app_option rows[] = {
        OPTION_TEXT("transport", "NIC",
                    "an interface (eth0, af_packet:eth0), a subnet, or a device (0000:03:00.0,ip=10.9.0.1/24)",
                    &options.nic),
        OPTION_TEXT("socket", "PATH", "where ranks find it; default " CW_LEASE_SOCKET, &options.path),
        OPTION_TEXT("ports", "FIRST-LAST", "UDP ports that it leases; default 29400-30423", &options.ports),
        OPTION_RATE("rate", "of all that leaves by the NIC; default: what it takes", &options.rate_bps, 1000000),
        OPTION_EACH("share", "USER:weight=N,rate=RATE",
                    "of the NIC, when users want more than it takes; others have the weight 1; repeatable",
                    &options.serve, share_parse),
        OPTION_FLAG("only-named", "serves only root and the users of --share", &options.serve.only_named),
        OPTION_COUNT("user-leases", "that one user may have at a time; default 512", &options.user_leases, 1,
                     NODE_LEASES_MAX),
        OPTION_SIZES("core", "its dataplane runs there: a thread and a queue pair for each; default: one, anywhere",
                     &options.cores, 0, 4095),
        OPTION_FLAG("dedicated", "never sleeps: the core is its own", &options.dedicated),
        OPTION_JSON(" a lease (status)", &options.status.json),
        OPTION_FLAG("prometheus", "one page of metrics in Prometheus's text format (status)",
                    &options.status.prometheus),
        {0},
    };
    int code;
    int operand = app_options_parse(
        "node --transport NIC [OPTION...]\n       causeway node status [--socket PATH] [--json|--prometheus]\n\n"
        "Owns a NIC, and serves the ranks of all jobs and users of this host, which name it by --transport node: each "
        "leases "
        "UDP "
        "ports of the host's address and exchanges frames by memory. Jobs go on when it is ended and started again.",
        rows, 1, argc, argv, &code);
    if (operand < 0) {
        return code;
    }
    bool is_status = operand < argc;
    if (is_status && strcmp(argv[operand], "status") != 0) {
        app_error("unknown word", argv[operand], "it knows `status`");
        return APP_EXIT_USAGE;
    }
    if (is_status) {
        return node_status(options.path, &options.status);
    }
    if (options.nic == NULL) {
        app_error("which NIC?", "--transport", "an interface (`ip address` lists them) or a device");
        return APP_EXIT_USAGE;
    }
    return node_run(&options);
}
