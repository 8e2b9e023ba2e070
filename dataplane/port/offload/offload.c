#include "dataplane/port/offload/offload.h"

#include <string.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

static const struct {
    const char *name;
    const char *meaning;
    const char *software;
} rows[CW_PORT_OFFLOADS] = {
    [CW_OFFLOAD_CHECKSUM_OUT] = {"udp-checksum-out", "the NIC writes UDP checksums", "CRC-32C of the payload"},
    [CW_OFFLOAD_CHECKSUM_IN] = {"udp-checksum-in", "the NIC verifies UDP checksums", "CRC-32C of the payload"},
    [CW_OFFLOAD_STEER] = {"steer", "packets of others are dropped by rules", "each packet is checked"},
    [CW_OFFLOAD_RSS] = {"rss", "flows are dealt among queues by a hash", "UDP ports chosen by the hash"},
    [CW_OFFLOAD_ARRIVAL] = {"arrival-time", "packets carry the time of their arrival", "the time of the burst"},
    [CW_OFFLOAD_DEPARTURE] = {"departure-time", "packets leave at a given time", "the shaper waits for it"},
    [CW_OFFLOAD_MULTICAST] = {"multicast", "groups are filtered by address", "the port lets more in"},
    [CW_OFFLOAD_SPLIT] = {"header-split", "headers and payloads arrive apart", "one buffer a packet"},
};

const char *cw_offload_name(enum cw_port_offload offload)
{
    return rows[offload].name;
}

const char *cw_offload_meaning(enum cw_port_offload offload)
{
    return rows[offload].meaning;
}

const char *cw_offload_software(enum cw_port_offload offload)
{
    return rows[offload].software;
}

/* The offload of that name; CW_PORT_OFFLOADS: there is none. */
static uint32_t find(const char *name, size_t length)
{
    uint32_t found = 0;
    while (found < CW_PORT_OFFLOADS &&
           (strlen(rows[found].name) != length || memcmp(rows[found].name, name, length) != 0)) {
        found++;
    }
    return found;
}

static int reject(const char *name, size_t length, char *error, size_t error_bytes)
{
    char names[CW_PORT_OFFLOADS * 24] = "";
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        strcat(names, ", ");
        strcat(names, rows[i].name);
    }
    return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                         "no such offload: '%.*s'; wanted is auto, off, all, or some of: %s", (int)length, name,
                         names + 2);
}

int cw_offload_read(const char *text, uint32_t *offloads, char *error, size_t error_bytes)
{
    static const struct {
        const char *word;
        uint32_t offloads;
    } words[] = {{"auto", CW_OFFLOADS_AUTO}, {"off", 0}, {"all", CW_OFFLOADS_ALL}};
    for (uint32_t i = 0; i < 3; i++) {
        if (strcmp(text, words[i].word) == 0) {
            *offloads = words[i].offloads;
            return CW_OK;
        }
    }
    uint32_t read = 0;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ",");
        uint32_t found = find(at, length);
        if (found == CW_PORT_OFFLOADS) {
            return reject(at, length, error, error_bytes);
        }
        read |= 1u << found;
        if (at[length] == 0) {
            break;
        }
        at += length + 1;
    }
    *offloads = read;
    return CW_OK;
}
