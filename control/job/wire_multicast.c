/* The multicast side of the wire: its addresses, its budget. */
#include "control/job/wire_private.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "control/groups/groups.h"
#include "control/settings/setting.h"
#include "dataplane/port/error_text.h"

enum {
    QUEUE = 64,
    GROUPS = 512,
};

/* Addresses for use within an organization (RFC 2365), other ones for each job; in 239.0.0.0/9, since their MAC
 * addresses keep 23 bits. */
static uint32_t base_of(const uint8_t job_key[16])
{
    uint8_t hash[crypto_generichash_BYTES_MIN];
    (void)crypto_generichash(hash, sizeof(hash), job_key, 16, (const uint8_t *)"groups", 6);
    uint32_t bits = (hash[0] & 0x7fu) << 16 | (uint32_t)hash[1] << 8 | hash[2];
    return 0xef000000u | (bits & ~(CW_GROUPS_ADDRESSES - 1u));
}

static int budget_read(uint32_t *budget, char *error, size_t error_bytes)
{
    const char *text = cw_setting(CW_SETTING_MULTICAST_FILTERS);
    char *end = NULL;
    unsigned long value = text == NULL || text[0] == 0 ? CW_GROUPS_FILTERS : strtoul(text, &end, 10);
    if ((end != NULL && *end != 0) || value < CW_GROUPS_FILTERS_LEAST || value > CW_GROUPS_ADDRESSES) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "CAUSEWAY_MULTICAST_FILTERS is '%.40s': %d to %d addresses can be let in at a time", text,
                             CW_GROUPS_FILTERS_LEAST, CW_GROUPS_ADDRESSES);
    }
    *budget = (uint32_t)value;
    return CW_OK;
}

int wire_multicast_open(const struct cw_wire_request *request, bool asks_itself, struct cw_wire *wire, char *error,
                        size_t error_bytes)
{
    const char *word = cw_setting(CW_SETTING_MULTICAST);
    struct cw_mcast_config config;
    const char *encrypt = cw_setting(CW_SETTING_ENCRYPT);
    bool seals_all = encrypt != NULL && strcmp(encrypt, "all") == 0; /* which multicast cannot be: it is signed only */
    if (seals_all || (word != NULL && strcmp(word, "off") == 0)) {
        return CW_OK;
    }
    if (word != NULL && word[0] != 0 && strcmp(word, "on") != 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "CAUSEWAY_MULTICAST is '%.40s': it knows 'on' and 'off'", word);
    }
    int status = budget_read(&wire->filter_budget, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    wire->multicast_base = base_of(request->key);
    cw_mcast_config_init(&config);
    config.handler = *request->multicast;
    config.group_count_max = GROUPS;
    config.queue_max = QUEUE;
    /* a kernel that reports all groups of its sockets to switches leaves nothing to probe */
    config.flood_ipv4 = asks_itself ? cw_groups_flood_address(wire->multicast_base) : 0;
    config.keeps_flood_address = request->rank + 1 == request->size;
    status = cw_mcast_create(&config, wire->endpoint, &wire->mcast, error, error_bytes);
    if (status == CW_ERROR_UNSUPPORTED) {
        wire->mcast = NULL; /* the port cannot join: there are no groups, and the card says so */
        return CW_OK;
    }
    if (status != CW_OK) {
        wire->mcast = NULL;
        return cw_error_text(error, error_bytes, status, "multicast: %s; CAUSEWAY_MULTICAST=off does without",
                             cw_status_text(status));
    }
    return CW_OK;
}
