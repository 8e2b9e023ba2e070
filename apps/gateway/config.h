/* Gateway config: the options of `causeway gateway`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apps/cli/process.h"
#include "dataplane/dataplane.h"

enum {
    GATEWAY_TEXT_BYTES = 320,
    GATEWAY_KEY_BYTES = 16,
};

/* A port, as the option that names it says. */
struct gateway_port_config {
    const char *option; /* "--inner" */
    const char *text;   /* as given */
    bool awaits;        /* its link must come up: the other side exists already */
    bool is_memif;      /* its link may be lost */
    char device[64];
    char arguments[GATEWAY_TEXT_BYTES];
    char bell_path[128]; /* "": none */
    uint32_t bell_own;
    uint32_t bell_peer;
    uint64_t mtu_bytes;
};

struct gateway_config {
    struct gateway_port_config inner;
    struct gateway_port_config outer;
    struct cw_address address;
    struct cw_address peer;
    char peer_text[CW_IP_TEXT_BYTES];
    uint8_t key[GATEWAY_KEY_BYTES];
    uint64_t rate_bps; /* 0: found out */
    uint64_t stream_count;
    uint64_t queue_bytes; /* of a stream; 0: by the rate */
    bool encrypts;
    const char *compress; /* as given */
    struct cw_compression compression;
    bool drops_multicast;
    uint64_t seconds; /* 0: until a signal comes */
    uint64_t stats_interval_ns;
    const char *stats_path; /* NULL: none */
    uint64_t core;
    bool dedicated;
    bool json;
};

/* Reads the command line, and the key; makes a key file if an option requests that. False: the command has ended, with
 * *exit_code. */
bool gateway_config_parse(struct gateway_config *config, int argc, char **argv, int *exit_code);

/* Makes a file with a new key, which only its owner can read. APP_EXIT_SUCCESS, or an exit code after reporting the
 * error. */
int gateway_key_make(const char *path);

/* Reads the key from a file that only its owner can read. Result as above. */
int gateway_key_load(const char *path, uint8_t key[GATEWAY_KEY_BYTES]);
