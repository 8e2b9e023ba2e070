#include "apps/gateway/config.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "control/settings/compression.h"
#include "control/settings/units.h"
#include "dataplane/fabric/link.h"
#include "dataplane/port/doorbell.h"
#include "dataplane/port/port.h"
#include "dataplane/tunnel/tunnel.h"

#define STATS_INTERVAL_NS 100000000ull
#define QUEUE_BYTES_MAX   (1ull << 30)

enum {
    UDP_PORT_DEFAULT = CW_UDP_PORT_GATEWAY,
    PATH_BYTES_MAX = 107, /* of a Unix socket's address */
};

static int reject(const char *option, const char *text, const char *todo)
{
    char where[GATEWAY_TEXT_BYTES + 32];
    snprintf(where, sizeof(where), "%s %s", option, text);
    app_error("bad value", where, todo);
    return APP_EXIT_USAGE;
}

/* ---- ports ---- */

static const char *const port_todo =
    "memif:PATH,port=N, memif:PATH,role=server, af_packet:IFACE or DEVICE,KEY=VALUE,... is wanted";

/* `rest` is PATH,port=N, PATH,role=server or PATH,role=client (dataplane/host/host.h). A client N sleeps on word 1 + N
 * of PATH.bell and rings word 0, as at a switch; the client of a server that is a gateway is number 0. */
static const char *memif_parse(struct gateway_port_config *port, const char *rest, uint32_t number)
{
    size_t length = strcspn(rest, ",");
    const char *how = rest + length;
    uint64_t id = 0;
    bool is_server = strcmp(how, ",role=server") == 0;
    bool is_client = strcmp(how, ",role=client") == 0 ||
                     (strncmp(how, ",port=", 6) == 0 && app_parse_count(how + 6, &id) && id < CW_DOORBELL_WORDS - 1);
    if (length == 0 || length > PATH_BYTES_MAX || (!is_server && !is_client)) {
        return "wanted is memif:PATH,port=N (the number of a switch's port), or memif:PATH,role=server and "
               "memif:PATH,role=client between two gateways; PATH has 107 bytes at most";
    }
    snprintf(port->device, sizeof(port->device), "net_memif%u", number);
    snprintf(port->arguments, sizeof(port->arguments), "role=%s,id=%u,socket=%.*s,socket-abstract=no",
             is_server ? "server" : "client", (unsigned)id, (int)length, rest);
    snprintf(port->bell_path, sizeof(port->bell_path), "%.*s.bell", (int)length, rest);
    port->bell_own = is_server ? 0 : 1 + (uint32_t)id;
    port->bell_peer = is_server ? 1 : 0;
    port->awaits = port->is_memif = !is_server;
    return NULL;
}

static const char *interface_parse(struct gateway_port_config *port, const char *driver, const char *interface,
                                   uint32_t number)
{
    if (interface[0] == 0 || strlen(interface) >= IF_NAMESIZE || strpbrk(interface, ",/") != NULL) {
        return "the name of an interface is wanted, as af_packet:eth0";
    }
    snprintf(port->device, sizeof(port->device), "net_%s%u", driver, number);
    snprintf(port->arguments, sizeof(port->arguments), "iface=%s", interface);
    return NULL;
}

/* Understands "memif:PATH,port=N" (a port of the `causeway switch` at PATH), "memif:PATH,role=server",
 * "memif:PATH,role=client", "af_packet:IFACE" and "DEVICE,KEY=VALUE,..."; `number` tells the devices of a process
 * apart. NULL, or the accepted form. `port->text` is set. */
static const char *port_text_parse(struct gateway_port_config *port, uint32_t number)
{
    const char *text = port->text;
    size_t device_length = strcspn(text, ",");
    if (strncmp(text, "memif:", 6) == 0) {
        return memif_parse(port, text + 6, number);
    }
    if (strncmp(text, "af_packet:", 10) == 0) {
        return interface_parse(port, "af_packet", text + 10, number);
    }
    const char *arguments = text[device_length] == ',' ? text + device_length + 1 : "";
    if (device_length == 0 || device_length >= sizeof(port->device) || strlen(arguments) >= sizeof(port->arguments)) {
        return port_todo;
    }
    memcpy(port->device, text, device_length);
    port->device[device_length] = 0;
    memcpy(port->arguments, arguments, strlen(arguments) + 1);
    return NULL;
}

static int port_parse(struct gateway_port_config *port, uint32_t number)
{
    if (port->text == NULL) {
        app_error("a port is missing", port->option, port_todo);
        return APP_EXIT_USAGE;
    }
    const char *todo = port_text_parse(port, number);
    return todo == NULL ? APP_EXIT_SUCCESS : reject(port->option, port->text, todo);
}

/* ---- addresses ---- */

/* "10.9.0.1" or "10.9.0.1,02:00:00:00:00:01". Without a MAC it is made of the end of the IP address, so that two
 * gateways need no configuration of it. */
static int address_parse(const char *option, const char *text, struct cw_address *address)
{
    char copy[64];
    const char *todo = "an IP address is wanted, and behind a comma its MAC, or that of the router on the way";
    if (text == NULL) {
        app_error("an address is missing", option, todo);
        return APP_EXIT_USAGE;
    }
    size_t length = strcspn(text, ",");
    if (length >= sizeof(copy)) {
        return reject(option, text, todo);
    }
    memcpy(copy, text, length);
    copy[length] = 0;
    if (!cw_ip_read(copy, &address->ip) || cw_ip_is_none(&address->ip)) {
        return reject(option, text, todo);
    }
    uint8_t mac[6] = {0x02, 0};
    memcpy(mac + 2, address->ip.bytes + 12, 4);
    if (text[length] == ',' && (!app_parse_mac(text + length + 1, mac) || (mac[0] & 1) != 0)) {
        return reject(option, text, todo);
    }
    memcpy(address->mac, mac, sizeof(mac));
    return APP_EXIT_SUCCESS;
}

/* ---- words ---- */

static int word_parse(const char *option, const char *text, const char *yes, const char *no, bool *value)
{
    char todo[64];
    snprintf(todo, sizeof(todo), "%s or %s is wanted", yes, no);
    if (strcmp(text, yes) != 0 && strcmp(text, no) != 0) {
        return reject(option, text, todo);
    }
    *value = strcmp(text, yes) == 0;
    return APP_EXIT_SUCCESS;
}

static int rate_parse(struct gateway_config *config, const char *text)
{
    if (text == NULL) {
        app_error("the rate is missing", "--rate", "that of the long link, as 250Mbps; or `found`, if it is unknown");
        return APP_EXIT_USAGE;
    }
    config->rate_bps = 0;
    if (strcmp(text, "found") == 0) {
        return APP_EXIT_SUCCESS;
    }
    bool is_rate =
        cw_units_rate(text, &config->rate_bps) && config->rate_bps >= 10000 && config->rate_bps <= CW_RATE_MAX_BPS;
    return is_rate ? APP_EXIT_SUCCESS : reject("--rate", text, "a rate like 250Mbps is wanted, or `found`");
}

static int key_load(struct gateway_config *config, const char *path)
{
    if (path == NULL) {
        app_error("the key is missing", "--key FILE",
                  "`causeway gateway --make-key FILE` makes one, for both gateways");
        return APP_EXIT_USAGE;
    }
    return gateway_key_load(path, config->key);
}

/* ---- the command line ---- */

struct texts {
    const char *address;
    const char *peer;
    const char *key;
    const char *make_key;
    const char *rate;
    const char *encrypt;
    const char *multicast;
    uint64_t udp_port;
};

static int texts_parse(struct gateway_config *config, const struct texts *texts)
{
    int code = port_parse(&config->inner, 0);
    if (code == APP_EXIT_SUCCESS) {
        code = port_parse(&config->outer, 1);
    }
    if (code == APP_EXIT_SUCCESS) {
        code = address_parse("--address", texts->address, &config->address);
    }
    if (code == APP_EXIT_SUCCESS) {
        code = address_parse("--peer", texts->peer, &config->peer);
    }
    if (code == APP_EXIT_SUCCESS && cw_ip_is_equal(&config->address.ip, &config->peer.ip)) {
        code = reject("--peer", texts->peer, "it is this gateway's own: give that of the other one");
    }
    if (code == APP_EXIT_SUCCESS) {
        code = rate_parse(config, texts->rate);
    }
    if (code == APP_EXIT_SUCCESS) {
        code = word_parse("--encrypt", texts->encrypt, "yes", "no", &config->encrypts);
    }
    if (code == APP_EXIT_SUCCESS) {
        code = word_parse("--multicast", texts->multicast, "drop", "flood", &config->drops_multicast);
    }
    char error[CW_PORT_TEXT_BYTES];
    if (code == APP_EXIT_SUCCESS &&
        cw_compression_read("--compress", config->compress, 1, &config->compression, error, sizeof(error)) != CW_OK) {
        code = APP_EXIT_USAGE;
        app_error(error, NULL, NULL);
    }
    config->address.udp_port = config->peer.udp_port = (uint16_t)texts->udp_port;
    return code == APP_EXIT_SUCCESS ? key_load(config, texts->key) : code;
}

static const char usage[] =
    "gateway --inner PORT --outer PORT --address A --peer B --key FILE --rate RATE [OPTION...]\n"
    "       causeway gateway --make-key FILE\n"
    "\n"
    "Joins the networks of two sites: Ethernet frames that come in by the inner port are carried to the gateway at B, "
    "over\n"
    "several streams, sealed, at the rate of the long link, and leave by its inner port; losses on the way are "
    "repaired.\n"
    "PORT: memif:PATH,port=N (of the `causeway switch` at PATH), memif:PATH,role=server (for another gateway's "
    "memif:PATH,role=client),\n"
    "af_packet:IFACE, or any DPDK device: DEVICE,KEY=VALUE,...\n"
    "Prints `ready: ...`, and `up: ...` and `down: ...` as the other gateway comes and goes; counters at the end and "
    "on SIGUSR1.";

bool gateway_config_parse(struct gateway_config *config, int argc, char **argv, int *exit_code)
{
    struct texts texts = {.encrypt = "yes", .multicast = "flood", .udp_port = UDP_PORT_DEFAULT};
    *config = (struct gateway_config){.inner = {.option = "--inner", .mtu_bytes = 1500},
                                      .outer = {.option = "--outer", .mtu_bytes = 1500},
                                      .stream_count = CW_TUNNEL_STREAMS_DEFAULT,
                                      .compress = "off",
                                      .core = APP_CORE_ANY};
    const struct app_option options[] = {
        OPTION_TEXT("inner", "PORT", "towards the hosts of this site", &config->inner.text),
        OPTION_TEXT("outer", "PORT", "towards the other gateway", &config->outer.text),
        OPTION_TEXT("address", "A[,MAC]", "of this gateway, outside; the MAC made of it by default", &texts.address),
        OPTION_TEXT("peer", "B[,MAC]", "of the other one; the MAC may be that of a router on the way", &texts.peer),
        OPTION_TEXT("key", "FILE", "that both gateways have, readable by its owner alone", &texts.key),
        OPTION_TEXT("make-key", "FILE", "writes a new key, and ends", &texts.make_key),
        OPTION_TEXT("rate", "RATE", "of the long link, headers included: no more leaves; or `found`", &texts.rate),
        OPTION_COUNT("streams", "sessions side by side, the same at both; default 4", &config->stream_count, 1,
                     CW_TUNNEL_STREAMS_MAX),
        OPTION_TEXT("encrypt", "yes|no", "AES-GCM, the same at both; default yes", &texts.encrypt),
        OPTION_TEXT("compress", "off|auto|on|CODEC",
                    "frames, before they are sealed; lengths reveal information about data then; default off",
                    &config->compress),
        OPTION_BYTES("queue", "of each stream; default 100 ms of the rate", &config->queue_bytes, 0, QUEUE_BYTES_MAX),
        OPTION_TEXT("multicast", "flood|drop", "flood (to the other site), or drop (all but broadcast); default flood",
                    &texts.multicast),
        OPTION_BYTES("mtu", "of the inner port; default 1500", &config->inner.mtu_bytes, CW_PORT_MTU_MIN,
                     CW_PORT_MTU_ETHERNET_MAX),
        OPTION_BYTES("outer-mtu", "of the outer one, which may be less; default 1500", &config->outer.mtu_bytes,
                     CW_PORT_MTU_MIN, CW_PORT_MTU_MAX),
        OPTION_COUNT("udp-port", "of the first stream, at both; the others follow; default 29364", &texts.udp_port, 1,
                     UINT16_MAX - CW_TUNNEL_STREAMS_MAX),
        OPTION_COUNT("seconds", "ends by itself; default: at SIGINT or SIGTERM", &config->seconds, 0, 1000000000),
        OPTION_COUNT("core", "runs there; default: wherever the system puts it", &config->core, 0, 1023),
        OPTION_FLAG("dedicated", "never sleeps: the core is its own", &config->dedicated),
        OPTION_TEXT("stats", "FILE", "the state of each stream in each interval, as CSV", &config->stats_path),
        OPTION_TIME("stats-interval", "of --stats, default 100ms; else prints the counters so often, default never",
                    &config->stats_interval_ns, 1000000, 0),
        OPTION_FLAG("json", "counters as one JSON object a line", &config->json),
        {0},
    };
    if (app_options_parse(usage, options, 0, argc, argv, exit_code) < 0) {
        return false;
    }
    if (texts.make_key != NULL) {
        *exit_code = gateway_key_make(texts.make_key);
        return false;
    }
    if (config->stats_path != NULL && config->stats_interval_ns == 0) {
        config->stats_interval_ns = STATS_INTERVAL_NS;
    }
    *exit_code = texts_parse(config, &texts);
    cw_ip_write(&config->peer.ip, config->peer_text);
    return *exit_code == APP_EXIT_SUCCESS;
}
