#include "apps/switch/config.h"

#include <stdio.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "control/settings/units.h"
#include "dataplane/limits.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"

#define STATS_INTERVAL_NS 100000000ull

enum { TEXTS_MAX = 64, VALUE_BYTES = 64 };

/* Options that can only be understood once the number of ports is known. */
struct texts {
    const char *option;
    uint32_t count;
    uint32_t count_max;
    const char *list[TEXTS_MAX];
};

static int text_keep(void *context, const char *text)
{
    struct texts *texts = context;
    if (texts->count == texts->count_max) {
        char where[64];
        snprintf(where, sizeof(where), "--%s", texts->option);
        app_error("given too often", where, "start several switches, or leave some out");
        return APP_EXIT_USAGE;
    }
    texts->list[texts->count++] = text;
    return APP_EXIT_SUCCESS;
}

static int reject(const char *option, const char *text, const char *todo)
{
    char where[256];
    snprintf(where, sizeof(where), "--%s %s", option, text);
    app_error("bad value", where, todo);
    return APP_EXIT_USAGE;
}

/* ---- ports ---- */

static int port_add(struct switch_config *config, const char *device, size_t device_length, const char *arguments,
                    const struct cw_link_config *link)
{
    if (config->port_count == SWITCH_PORTS_MAX) {
        char todo[96];
        snprintf(todo, sizeof(todo), "a switch has at most %d: join several by memif", SWITCH_PORTS_MAX);
        app_error("too many ports", "--ports and --ethdev", todo);
        return APP_EXIT_USAGE;
    }
    struct switch_port_config *port = &config->ports[config->port_count];
    if (device_length == 0 || device_length >= sizeof(port->device) || strlen(arguments) >= sizeof(port->arguments)) {
        return reject("ethdev", device, "DEVICE or DEVICE,KEY=VALUE,... is wanted, as net_af_packet0,iface=eth0");
    }
    memcpy(port->device, device, device_length);
    port->device[device_length] = 0;
    snprintf(port->arguments, sizeof(port->arguments), "%s", arguments);
    port->link = *link;
    snprintf(port->name, sizeof(port->name), "port%u", config->port_count);
    config->port_count++;
    return APP_EXIT_SUCCESS;
}

static int memif_ports_add(struct switch_config *config, const struct cw_link_config *link)
{
    if (config->path == NULL) {
        return APP_EXIT_SUCCESS;
    }
    if (strlen(config->path) >= SWITCH_PATH_BYTES || strpbrk(config->path, ",") != NULL || config->path[0] == 0) {
        return reject("memif", config->path, "the path of a socket has 1 to 107 bytes and no comma");
    }
    snprintf(config->bell_path, sizeof(config->bell_path), "%s.bell", config->path);
    for (uint32_t i = 0; i < config->memif_count; i++) {
        char device[SWITCH_DEVICE_BYTES];
        char arguments[SWITCH_ARGUMENTS_BYTES];
        snprintf(device, sizeof(device), "net_memif%u", i);
        /* one listener serves all ids */
        snprintf(arguments, sizeof(arguments), "role=server,id=%u,socket=%s,socket-abstract=no", i, config->path);
        int code = port_add(config, device, strlen(device), arguments, link);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
        config->ports[config->port_count - 1].memif = true;
    }
    return APP_EXIT_SUCCESS;
}

static int ethdev_add(struct switch_config *config, const char *text, const struct cw_link_config *link)
{
    size_t length = strcspn(text, ",");
    return port_add(config, text, length, text[length] == ',' ? text + length + 1 : "", link);
}

/* ---- overrides of one port ---- */

static const char *link_value_set(struct cw_link_config *link, const char *key, const char *value)
{
    if (strcmp(key, "rate") == 0) {
        return cw_units_rate(value, &link->rate_bps) ? NULL : "a rate like 1Gbps is wanted";
    }
    if (strcmp(key, "delay") == 0) {
        return cw_units_duration(value, &link->delay_ns) ? NULL : "a delay like 50us is wanted";
    }
    if (strcmp(key, "queue") == 0) {
        return cw_units_bytes(value, &link->queue_limit_bytes) ? NULL : "a queue like 256KB is wanted";
    }
    if (strcmp(key, "loss") == 0) {
        return cw_units_percent(value, &link->loss) ? NULL : "a loss like 1% is wanted";
    }
    return "known keys are rate, delay, queue and loss";
}

const char *switch_link_setting_parse(struct cw_link_config *link, char *pair)
{
    char *equals = strchr(pair, '=');
    if (equals == NULL) {
        return "KEY=VALUE is wanted, as rate=1Gbps";
    }
    *equals = 0;
    const char *todo = link_value_set(link, pair, equals + 1);
    *equals = '=';
    return todo;
}

static int port_override(struct switch_config *config, const char *text)
{
    char copy[256];
    size_t colon = strcspn(text, ":");
    uint64_t index;
    if (strlen(text) >= sizeof(copy) || text[colon] != ':') {
        return reject("port", text, "INDEX:KEY=VALUE,... is wanted, as 0:rate=1Gbps,loss=1%");
    }
    memcpy(copy, text, strlen(text) + 1);
    copy[colon] = 0;
    if (!app_parse_count(copy, &index) || index >= config->port_count) {
        char todo[96];
        snprintf(todo, sizeof(todo), "the switch has %u ports, 0 to %u", config->port_count, config->port_count - 1);
        return reject("port", text, todo);
    }
    char *rest = NULL;
    for (char *pair = strtok_r(copy + colon + 1, ",", &rest); pair != NULL; pair = strtok_r(NULL, ",", &rest)) {
        const char *todo = switch_link_setting_parse(&config->ports[index].link, pair);
        if (todo != NULL) {
            return reject("port", text, todo);
        }
    }
    return APP_EXIT_SUCCESS;
}

/* ---- the topology ---- */

static int topology_reject(const char *what, const char *todo)
{
    app_error(what, "--topology", todo);
    return APP_EXIT_USAGE;
}

/* The file's values apply to hosts and links; no other option may set them. Of the ports, `devices` are no memif. */
static int topology_load(struct switch_config *config, const char *path, const struct cw_link_config *link,
                         uint32_t devices, bool others)
{
    char error[CW_TOPOLOGY_ERROR_BYTES];
    char text[128];
    if (config->path == NULL && devices == 0) {
        return topology_reject("there is no way to the hosts",
                               "--memif PATH names their socket, --ethdev DEVICE,... other ports");
    }
    if (others || link->rate_bps != 0 || link->delay_ns != 0 || link->queue_limit_bytes != 0 || link->loss > 0) {
        return topology_reject("the links are given twice",
                               "the file has them: leave out --rate, --delay, --queue, --loss and --port");
    }
    int status = cw_topology_load(path, &config->topology, error, sizeof(error));
    if (status != CW_OK) {
        app_error(error, NULL, NULL);
        return status == CW_ERROR_MEMORY ? APP_EXIT_MACHINE : APP_EXIT_USAGE;
    }
    const char *unknown = cw_topology_rate_unknown(config->topology);
    if (unknown != NULL) {
        snprintf(text, sizeof(text), "the rate of the link '%s' is unknown", unknown);
        return topology_reject(text, "an emulated link has one: write it in the place of \"found\"");
    }
    uint32_t hosts = cw_topology_host_count(config->topology);
    if (hosts > SWITCH_PORTS_MAX) {
        snprintf(text, sizeof(text), "it has %u hosts, a switch has at most %d ports", hosts, SWITCH_PORTS_MAX);
        return topology_reject(text, "leave hosts out");
    }
    if (config->memif_count == 0 && config->path != NULL) {
        config->memif_count = hosts > devices ? hosts - devices : 0;
    }
    uint32_t ports = devices + (config->path == NULL ? 0 : (uint32_t)config->memif_count);
    if (ports < hosts || ports < 2) {
        snprintf(text, sizeof(text), "it has %u host%s, there are %u ports", hosts, hosts == 1 ? "" : "s", ports);
        return topology_reject(text, "--ports N and --ethdev: at least two, and one for each host");
    }
    return APP_EXIT_SUCCESS;
}

void switch_config_dispose(struct switch_config *config)
{
    cw_topology_destroy(config->topology);
    config->topology = NULL;
}

static int extras_check(const struct switch_config *config)
{
    if (config->owner != 0 && config->path == NULL) {
        app_error("one is nothing without the other", "--owner PROCESS, --memif PATH", "`causeway run` gives both");
        return APP_EXIT_USAGE;
    }
    if ((config->pcap_path == NULL) != (config->pcap_at == NULL)) {
        app_error("one is nothing without the other", "--pcap FILE, --pcap-at NAME",
                  "NAME is a link or host of the topology, or port0, port1, ...");
        return APP_EXIT_USAGE;
    }
    return APP_EXIT_SUCCESS;
}

/* Combines the options. */
static int config_complete(struct switch_config *config, const struct cw_link_config *link, const struct texts *ethdevs,
                           const struct texts *overrides)
{
    int code = memif_ports_add(config, link);
    for (uint32_t i = 0; i < ethdevs->count && code == APP_EXIT_SUCCESS; i++) {
        code = ethdev_add(config, ethdevs->list[i], link);
    }
    if (code == APP_EXIT_SUCCESS && config->port_count < 2) {
        app_error("a switch needs two ports", "--memif PATH --ports N, --ethdev DEVICE,...", "give more of them");
        code = APP_EXIT_USAGE;
    }
    for (uint32_t i = 0; i < overrides->count && code == APP_EXIT_SUCCESS; i++) {
        code = port_override(config, overrides->list[i]);
    }
    for (uint32_t i = 0; i < config->port_count && code == APP_EXIT_SUCCESS; i++) {
        const char *reason;
        if (!cw_link_config_valid(&config->ports[i].link, &reason)) {
            char where[64];
            snprintf(where, sizeof(where), "port %u: %s", i, reason);
            app_error("the link cannot be so", where, "see --rate, --delay, --queue, --loss and --port");
            code = APP_EXIT_USAGE;
        }
    }
    return code;
}

/* Of IGMP and of multicast. */
static int multicast_parse(struct switch_config *config, const char *text)
{
    bool floods = strcmp(text, "flood") == 0;
    bool drops = strcmp(text, "drop") == 0;
    if (!floods && !drops && strcmp(text, "snoop") != 0) {
        return reject("multicast", text, "snoop, flood or drop is wanted");
    }
    config->snoops = !floods && !drops;
    config->drops_unregistered = drops;
    return APP_EXIT_SUCCESS;
}

static const char usage[] =
    "switch --memif PATH --ports N [OPTION...]\n"
    "\n"
    "An Ethernet switch between memif ports (and other devices) on the real clock: learns addresses, replicates\n"
    "multicast (IGMP snooping), and shapes what leaves towards each port. A process opens port I by the name\n"
    "memif:PATH,port=I (docs/c-interface.md). Another DPDK program connects with\n"
    "role=client,id=I,socket=PATH,socket-abstract=no, sleeps on word 1+I of PATH.bell and rings word 0.\n"
    "Prints `ready: N ports, socket PATH` when it forwards; counters at the end and on SIGUSR1.";

bool switch_config_parse(struct switch_config *config, int argc, char **argv, int *exit_code)
{
    struct cw_link_config link = {.overhead_bytes = CW_ETHERNET_OVERHEAD_BYTES};
    struct texts ethdevs = {.option = "ethdev", .count_max = SWITCH_PORTS_MAX};
    struct texts overrides = {.option = "port", .count_max = TEXTS_MAX};
    const char *multicast = "snoop";
    const char *topology = NULL;
    *config = (struct switch_config){.mtu_bytes = 1500, .seed = 1, .core = APP_CORE_ANY};
    const struct app_option options[] = {
        OPTION_TEXT("memif", "PATH", "socket of the memif ports", &config->path),
        OPTION_COUNT("ports", "memif ports, ids 0 to N-1; default 2", &config->memif_count, 1, SWITCH_PORTS_MAX),
        OPTION_TEXT("topology", "FILE",
                    "clusters of hosts and links between them; hosts are on the ports in equal blocks", &topology),
        OPTION_TEXT(
            "command", "COMMAND",
            "sends the switch at --memif PATH a command: \"link sea down\", up, or loss=1%,rate=..,delay=..,queue=..",
            &config->command),
        OPTION_EACH("ethdev", "DEVICE,ARGS", "one more port: any DPDK device; repeatable", &ethdevs, text_keep),
        OPTION_BYTES("mtu", "of all ports; default 1500", &config->mtu_bytes, CW_PORT_MTU_MIN, CW_PORT_MTU_MAX),
        {"rate", "RATE", "towards each port; default unlimited", APP_OPTION_RATE, &link.rate_bps, 0, CW_RATE_MAX_BPS,
         NULL},
        OPTION_TIME("delay", "towards each port; default 0", &link.delay_ns, 0, CW_LINK_DELAY_MAX_NS),
        OPTION_BYTES("queue", "in front of each port; default no limit", &link.queue_limit_bytes, 0, 0),
        {"loss", "SHARE", "of the frames towards each port; default 0", APP_OPTION_PERCENT, &link.loss, 0, 0, NULL},
        OPTION_EACH("port", "I:rate=..,loss=..", "rate, delay, queue, loss of one port; repeatable", &overrides,
                    text_keep),
        OPTION_TEXT("multicast", "snoop|flood|drop", "snoop (to members), flood, or drop; default snoop", &multicast),
        OPTION_COUNT("seconds", "ends by itself; default: at SIGINT or SIGTERM", &config->seconds, 0, 1000000000),
        {"owner", "PROCESS", "ends with its parent of this number, and makes the folder of the socket for itself",
         APP_OPTION_COUNT, &config->owner, 1, INT32_MAX, NULL},
        OPTION_COUNT("core", "runs there; default: wherever the system puts it", &config->core, 0, 1023),
        OPTION_FLAG("dedicated", "never sleeps: the core is its own", &config->dedicated),
        OPTION_TEXT("stats", "FILE", "statistics of all links in each interval, as CSV", &config->stats_path),
        OPTION_TIME("stats-interval", "of --stats, default 100ms; else prints the counters so often, default never",
                    &config->stats_interval_ns, 0, 0),
        OPTION_TEXT("pcap", "FILE", "frames that arrive at the ends of a link, for tcpdump and Wireshark",
                    &config->pcap_path),
        OPTION_TEXT("pcap-at", "NAME", "... of this link or host; port0 and so on without a topology",
                    &config->pcap_at),
        OPTION_FLAG("json", "counters as one JSON object a line", &config->json),
        OPTION_COUNT("seed", "of the losses; default 1", &config->seed, 0, 0),
        {0},
    };
    if (app_options_parse(usage, options, 0, argc, argv, exit_code) < 0) {
        return false;
    }
    if (config->command != NULL) {
        *exit_code = config->path != NULL ? APP_EXIT_SUCCESS
                                          : reject("command", config->command, "--memif PATH names the switch");
        return config->path != NULL;
    }
    if (config->stats_path != NULL && config->stats_interval_ns == 0) {
        config->stats_interval_ns = STATS_INTERVAL_NS;
    }
    *exit_code = multicast_parse(config, multicast);
    if (*exit_code == APP_EXIT_SUCCESS) {
        *exit_code = extras_check(config);
    }
    if (*exit_code == APP_EXIT_SUCCESS && topology != NULL) {
        *exit_code = topology_load(config, topology, &link, ethdevs.count, overrides.count > 0);
    }
    config->memif_count = config->memif_count == 0 ? 2 : config->memif_count;
    if (*exit_code == APP_EXIT_SUCCESS) {
        *exit_code = config_complete(config, &link, &ethdevs, &overrides);
    }
    return *exit_code == APP_EXIT_SUCCESS;
}
