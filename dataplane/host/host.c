#include "dataplane/host/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "dataplane/base/clock.h"
#include "dataplane/host/name.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/port/udp.h"

enum { LOOK_AGAIN_US = 1000, PATH_BYTES = 108 /* of a socket's name */ };

struct cw_host {
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    struct cw_loop *loop;
    uint64_t link_timeout_ns;
    char bell[PATH_BYTES + 8]; /* the doorbells' file, which the server of a memif removes; "": not here */
    struct cw_address own;     /* with a socket: it is the host's; zero: as configured */
};

void cw_host_config_init(struct cw_host_config *config)
{
    *config = (struct cw_host_config){.mtu_bytes = 1500, .link_timeout_ns = 10000000000ull};
    cw_endpoint_config_init(&config->endpoint);
    cw_loop_config_init(&config->loop);
    config->endpoint.address.udp_port = CW_UDP_PORT;
}

static int random_fill(void *bytes, size_t count, char *error, size_t error_bytes)
{
    if (getrandom(bytes, count, 0) == (ssize_t)count) {
        return CW_OK;
    }
    snprintf(error, error_bytes, "getrandom: %s", strerror(errno));
    return CW_ERROR_SYSTEM;
}

/* ---- the port ---- */

/* A port's text, taken apart. */
struct port_words {
    char device[CW_PORT_ETHDEV_ARGUMENTS_BYTES];
    char arguments[CW_PORT_ETHDEV_ARGUMENTS_BYTES];
    char bell[PATH_BYTES + 8];
    bool is_client;      /* of a memif: its server may come later */
    uint32_t bell_place; /* of a client, among the doorbells */
};

/* "SOCKET,role=server", "SOCKET,role=client", or "SOCKET,port=N": a client of a switch with many ports. */
static int memif_words(const char *text, struct port_words *words, char *error, size_t error_bytes)
{
    uint8_t mac[5];
    unsigned port = 0;
    int end = 0;
    size_t length = strcspn(text, ",");
    const char *how = text + length;
    bool is_port = sscanf(how, ",port=%5u%n", &port, &end) == 1 && how[end] == '\0';
    words->is_client = is_port || strcmp(how, ",role=client") == 0;
    if (length == 0 || length >= PATH_BYTES || (!words->is_client && strcmp(how, ",role=server") != 0)) {
        snprintf(error, error_bytes,
                 "port memif:%s: expected memif:SOCKET,role=server, role=client, or port=N of a switch, with a path of "
                 "at most %d bytes",
                 text, PATH_BYTES - 1);
        return CW_ERROR_ARGUMENT;
    }
    /* DPDK's generator was seeded when the process started: after a fork it draws the same address in both. */
    int status = random_fill(mac, sizeof(mac), error, error_bytes);
    words->bell_place = 1 + port;
    snprintf(words->device, sizeof(words->device), "net_memif0");
    snprintf(words->arguments, sizeof(words->arguments),
             "role=%s,id=%u,socket=%.*s,socket-abstract=no,mac=02:%02x:%02x:%02x:%02x:%02x",
             words->is_client ? "client" : "server", port, (int)length, text, mac[0], mac[1], mac[2], mac[3], mac[4]);
    snprintf(words->bell, sizeof(words->bell), "%.*s.bell", (int)length, text);
    return status;
}

static int device_words(const char *text, struct port_words *words, char *error, size_t error_bytes)
{
    size_t length = strcspn(text, ",");
    if (length == 0 || strlen(text) >= sizeof(words->device)) {
        snprintf(error, error_bytes, "port '%s': expected DEVICE[,ARGUMENTS], of at most %zu bytes", text,
                 sizeof(words->device) - 1);
        return CW_ERROR_ARGUMENT;
    }
    snprintf(words->device, sizeof(words->device), "%.*s", (int)length, text);
    snprintf(words->arguments, sizeof(words->arguments), "%s", text[length] == ',' ? text + length + 1 : "");
    return CW_OK;
}

/* HOST[:PORT] */
static int udp_open(struct cw_host *host, const struct cw_host_config *config, const char *text, char *error,
                    size_t error_bytes)
{
    struct cw_name name;
    struct cw_ip ips[CW_NAME_ADDRESSES_MAX];
    uint32_t count = 0;
    unsigned udp_port = 0;
    int length = 0;
    const char *end = cw_name_read(text, &name);
    bool has_port = end != NULL && sscanf(end, ":%5u%n", &udp_port, &length) == 1;
    if (end == NULL || end[has_port ? length : 0] != 0 || udp_port > UINT16_MAX) {
        bool is_port = end != NULL && *end == ':';
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "port udp:%s: %s", text,
                             is_port ? "the UDP port behind the address is not a number from 0 to 65535"
                                     : "expected udp:ADDRESS or udp:ADDRESS:PORT, with an address of this host, "
                                       "10.0.0.1 or [fd77::1], or its name");
    }
    struct cw_port_udp_config udp = {.udp_port = (uint16_t)udp_port,
                                     .stream_count = config->endpoint.stream_count,
                                     .group_port = CW_UDP_PORT,
                                     .mtu_bytes = config->mtu_bytes};
    int status = cw_name_resolve(&name, CW_NAME_ANY, ips, &count, error, error_bytes);
    for (uint32_t i = 0; i < count; i++) {
        udp.ip = ips[i];
        status = cw_port_udp_open(&udp, &host->port, error, error_bytes);
        if (status != CW_ERROR_NOT_FOUND && status != CW_ERROR_SYSTEM) { /* else the next address may be this host's */
            break;
        }
    }
    if (status == CW_ERROR_NOT_FOUND && count > 0 && name.text[0] != '\0') {
        (void)cw_error_text(error, error_bytes, status,
                            "port udp:%s: %s resolves to no address of this host. Fix: give one that ip address shows",
                            text, name.text);
    }
    if (status != CW_OK) {
        host->port = NULL;
        return status;
    }
    host->own = (struct cw_address){.ip = udp.ip, .udp_port = cw_port_udp_number(host->port)};
    return CW_OK;
}

static int port_open(struct cw_host *host, const struct cw_host_config *config, char *error, size_t error_bytes)
{
    struct port_words words = {.is_client = false};
    struct cw_port_ethdev_config ethdev;
    const char *text = config->port != NULL ? config->port : "";
    if (strncmp(text, "udp:", 4) == 0) {
        return udp_open(host, config, text + 4, error, error_bytes);
    }
    bool is_memif = strncmp(text, "memif:", 6) == 0;
    int status =
        is_memif ? memif_words(text + 6, &words, error, error_bytes) : device_words(text, &words, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    cw_port_ethdev_config_init(&ethdev);
    ethdev.device = words.device;
    ethdev.device_arguments = words.arguments[0] != 0 ? words.arguments : NULL;
    ethdev.mtu_bytes = config->mtu_bytes;
    ethdev.doorbell_path = words.bell[0] != 0 ? words.bell : NULL;
    ethdev.doorbell_own = words.is_client ? words.bell_place : 0;
    ethdev.doorbell_peer = words.is_client ? 0 : 1;
    uint64_t until_ns = cw_clock_ns() + config->link_timeout_ns;
    do {
        status = cw_port_ethdev_open(&ethdev, &host->port, error, error_bytes);
        /* a client comes too early if the server has not made its socket yet */
    } while (status == CW_ERROR_NOT_FOUND && words.is_client && cw_clock_ns() < until_ns && usleep(LOOK_AGAIN_US) == 0);
    if (status != CW_OK) {
        host->port = NULL;
    }
    if (!words.is_client) {
        memcpy(host->bell, words.bell, sizeof(host->bell));
    }
    return status;
}

/* ---- life ---- */

static int endpoint_open(struct cw_host *host, const struct cw_host_config *config, char *error, size_t error_bytes)
{
    struct cw_endpoint_config endpoint = config->endpoint;
    endpoint.waiting = cw_loop_waiting(&config->loop, &host->port->info);
    int status = random_fill(&endpoint.seed, sizeof(endpoint.seed), error, error_bytes);
    if (!cw_ip_is_none(&host->own.ip)) {
        endpoint.address = host->own;
    } else if (status == CW_OK && cw_ip_is_none(&endpoint.address.ip)) {
        uint32_t drawn;
        status = random_fill(&drawn, sizeof(drawn), error, error_bytes);
        endpoint.address.ip = cw_ip_v4(10u << 24 | (drawn % ((1u << 24) - 2) + 1));
    }
    if (status != CW_OK) {
        return status;
    }
    status = cw_endpoint_create(&endpoint, host->port, cw_clock_ns(), &host->endpoint, error, error_bytes);
    if (status == CW_OK) {
        status = cw_loop_create(&config->loop, host->endpoint, host->port, &host->loop, error, error_bytes);
    }
    return status;
}

int cw_host_open(const struct cw_host_config *config, struct cw_host **host, char *error, size_t error_bytes)
{
    struct cw_host *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        snprintf(error, error_bytes, "no memory for a host");
        return CW_ERROR_MEMORY;
    }
    made->link_timeout_ns = config->link_timeout_ns;
    int status = port_open(made, config, error, error_bytes);
    if (status == CW_OK) {
        status = endpoint_open(made, config, error, error_bytes);
    }
    if (status != CW_OK) {
        cw_host_close(made);
        return status;
    }
    *host = made;
    return CW_OK;
}

void cw_host_close(struct cw_host *host)
{
    if (host == NULL) {
        return;
    }
    if (host->loop != NULL) {
        cw_loop_destroy(host->loop);
    }
    cw_endpoint_destroy(host->endpoint);
    if (host->port != NULL) {
        cw_port_close(host->port);
    }
    if (host->bell[0] != 0) {
        (void)unlink(host->bell);
    }
    free(host);
}

struct cw_loop *cw_host_loop(struct cw_host *host)
{
    return host->loop;
}

/* ---- regions ---- */

struct registration {
    void *memory;
    uint64_t bytes;
    uint32_t rights;
    uint64_t *token;
};

static int run_register(struct cw_endpoint *endpoint, void *context)
{
    const struct registration *of = context;
    return cw_region_register(endpoint, of->memory, of->bytes, of->rights, of->token);
}

int cw_host_register(struct cw_host *host, void *memory, uint64_t bytes, uint32_t rights, uint64_t *token)
{
    struct registration of = {.memory = memory, .bytes = bytes, .rights = rights, .token = token};
    return cw_loop_call(host->loop, run_register, &of);
}

/* ---- cards ---- */

void cw_card_write(const struct cw_address *address, char card[CW_CARD_BYTES])
{
    char ip[CW_IP_TEXT_BYTES];
    bool is_v4 = cw_ip_is_v4(&address->ip);
    const uint8_t *mac = address->mac;
    cw_ip_write(&address->ip, ip);
    snprintf(card, CW_CARD_BYTES, "%s%s%s:%u/%02x:%02x:%02x:%02x:%02x:%02x", is_v4 ? "" : "[", ip, is_v4 ? "" : "]",
             address->udp_port, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

int cw_card_read(const char *card, struct cw_address *address)
{
    unsigned udp_port, mac[6];
    int end = 0;
    struct cw_address read = {.udp_port = 0};
    struct cw_name name;
    const char *at = cw_name_read(card, &name);
    int count = at == NULL ? 0
                           : sscanf(at, ":%5u/%2x:%2x:%2x:%2x:%2x:%2x%n", &udp_port, &mac[0], &mac[1], &mac[2], &mac[3],
                                    &mac[4], &mac[5], &end);
    if (count != 7 || at[end] != 0 || udp_port > UINT16_MAX) {
        return CW_ERROR_ARGUMENT;
    }
    read.ip = name.ip;
    read.udp_port = (uint16_t)udp_port;
    for (int i = 0; i < 6; i++) {
        read.mac[i] = (uint8_t)mac[i];
    }
    /* one way to write each address: no signs, spaces or leading zeros that scanf lets pass */
    char again[CW_CARD_BYTES];
    cw_card_write(&read, again);
    if (strcmp(card, again) != 0) {
        return CW_ERROR_ARGUMENT;
    }
    *address = read;
    return CW_OK;
}

static int run_address(struct cw_endpoint *endpoint, void *context)
{
    *(struct cw_address *)context = cw_endpoint_address(endpoint);
    return CW_OK;
}

void cw_host_card(struct cw_host *host, char card[CW_CARD_BYTES])
{
    struct cw_address own;
    (void)cw_loop_call(host->loop, run_address, &own);
    cw_card_write(&own, card);
}

/* A card; one with a name instead of the address; or HOST:PORT, if the kernel finds the MAC address. */
static int peer_read(struct cw_host *host, const char *text, struct cw_address *address, char *error,
                     size_t error_bytes)
{
    struct cw_address own;
    struct cw_name name;
    struct cw_ip ips[CW_NAME_ADDRESSES_MAX];
    uint32_t count;
    char ip[CW_IP_TEXT_BYTES], card[2 * CW_CARD_BYTES];
    bool has_socket = !cw_ip_is_none(&host->own.ip);
    const char *rest = cw_name_read(text, &name);
    if (rest != NULL && strlen(rest) < CW_CARD_BYTES) {
        (void)cw_loop_call(host->loop, run_address, &own);
        enum cw_name_family family = cw_ip_is_v4(&own.ip) ? CW_NAME_IPV4 : CW_NAME_IPV6;
        int status = cw_name_resolve(&name, family, ips, &count, error, error_bytes);
        if (status != CW_OK) {
            return status;
        }
        bool is_v6 = !cw_ip_is_v4(&ips[0]), needs_mac = has_socket && strchr(rest, '/') == NULL;
        cw_ip_write(&ips[0], ip);
        snprintf(card, sizeof(card), "%s%s%s%s%s", is_v6 ? "[" : "", ip, is_v6 ? "]" : "", rest,
                 needs_mac ? "/00:00:00:00:00:00" : "");
        if (cw_card_read(card, address) == CW_OK) {
            return CW_OK;
        }
    }
    return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "peer '%s': wanted is its card, HOST:PORT/MAC%s", text,
                         has_socket ? ", or HOST:PORT" : "");
}

struct addition {
    struct cw_address address;
    uint32_t *peer;
};

static int run_peer_add(struct cw_endpoint *endpoint, void *context)
{
    const struct addition *of = context;
    return cw_peer_add(endpoint, &of->address, of->peer);
}

static int run_link_up(struct cw_endpoint *endpoint, void *context)
{
    (void)endpoint;
    return cw_port_link_up(context) ? CW_OK : CW_ERROR_TIMEOUT;
}

int cw_host_peer(struct cw_host *host, const char *card, uint32_t *peer, char *error, size_t error_bytes)
{
    struct addition of = {.peer = peer};
    int status = peer_read(host, card, &of.address, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    uint64_t until_ns = cw_clock_ns() + host->link_timeout_ns;
    while (cw_loop_call(host->loop, run_link_up, host->port) != CW_OK) {
        if (cw_clock_ns() > until_ns) {
            return cw_error_text(error, error_bytes, CW_ERROR_TIMEOUT, "peer %s: the link is down after %g s", card,
                                 (double)host->link_timeout_ns / 1e9);
        }
        usleep(LOOK_AGAIN_US);
    }
    status = cw_loop_call(host->loop, run_peer_add, &of);
    return status == CW_OK ? status
                           : cw_error_text(error, error_bytes, status, "peer %s: %s", card, cw_status_text(status));
}
