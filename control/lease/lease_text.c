#include "control/lease/lease_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/port/error_text.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"

/* A number up to `most` at the beginning of a text; NULL: there is none, else what is behind it. */
static const char *number_read(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    if (text[0] < '0' || text[0] > '9' || strlen(text) > CW_LEASE_LINE_BYTES) {
        return NULL;
    }
    *number = strtoull(text, &end, 10);
    return *number <= most && end - text <= 20 ? end : NULL;
}

/* `name`, and a number behind it; NULL: something else is there. */
static const char *field_read(const char *text, const char *name, uint64_t most, uint64_t *number)
{
    size_t length = strlen(name);
    return strncmp(text, name, length) == 0 ? number_read(text + length, most, number) : NULL;
}

static bool job_read(const char *text, char job[CW_LEASE_JOB_BYTES])
{
    size_t length = strlen(text);
    if (length >= CW_LEASE_JOB_BYTES) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\') {
            return false;
        }
    }
    memcpy(job, text, length + 1);
    return true;
}

static bool lease_read(const char *at, struct cw_lease_request *request)
{
    uint64_t ports = 0, first = 0, rank = 0, memory = 0;
    at = field_read(at, "ports=", CW_LEASE_PORTS_MAX, &ports);
    at = at == NULL ? NULL : field_read(at, " first=", UINT16_MAX, &first);
    at = at == NULL ? NULL : field_read(at, " rank=", UINT32_MAX, &rank);
    at = at == NULL ? NULL : field_read(at, " memory=", INT32_MAX, &memory);
    if (at == NULL || strncmp(at, " job=", 5) != 0 || ports == 0 || !job_read(at + 5, request->job)) {
        return false;
    }
    request->ports = (uint32_t)ports;
    request->first = (uint16_t)first;
    request->rank = (uint32_t)rank;
    request->memory = (uint32_t)memory;
    return true;
}

static bool hops_read(const char *at, struct cw_lease_request *request)
{
    while (request->hop_count < CW_LEASE_HOPS_MAX) {
        char text[CW_IP_TEXT_BYTES];
        size_t length = strcspn(at, ",");
        if (length >= sizeof(text)) {
            return false;
        }
        memcpy(text, at, length);
        text[length] = 0;
        if (!cw_ip_read(text, &request->hops[request->hop_count++])) {
            return false;
        }
        if (at[length] == 0) {
            return true;
        }
        at += length + 1;
    }
    return false;
}

int cw_lease_read(const char *line, struct cw_lease_request *request, char *error, size_t error_bytes)
{
    uint64_t version = 0;
    *request = (struct cw_lease_request){.kind = CW_LEASE_HELLO};
    const char *end = field_read(line, "hello ", UINT32_MAX, &version);
    if (end != NULL && *end == 0) {
        return version == CW_LEASE_VERSION ? CW_OK
                                           : cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                                                           "the node is of version %d and its client of version "
                                                           "%" PRIu64 ": use one version on a host",
                                                           CW_LEASE_VERSION, version);
    }
    if (strcmp(line, "status") == 0) {
        request->kind = CW_LEASE_STATUS;
        return CW_OK;
    }
    if (strncmp(line, "lease ", 6) == 0 && lease_read(line + 6, request)) {
        request->kind = CW_LEASE_LEASE;
        return CW_OK;
    }
    if (strncmp(line, "hops ", 5) == 0 && hops_read(line + 5, request)) {
        request->kind = CW_LEASE_HOPS;
        return CW_OK;
    }
    return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "an invalid request: '%.60s'", line);
}

void cw_lease_request_write(const struct cw_lease_request *request, char line[CW_LEASE_LINE_BYTES])
{
    switch (request->kind) {
    case CW_LEASE_HELLO:
        snprintf(line, CW_LEASE_LINE_BYTES, "hello %d", CW_LEASE_VERSION);
        return;
    case CW_LEASE_STATUS:
        snprintf(line, CW_LEASE_LINE_BYTES, "status");
        return;
    case CW_LEASE_LEASE:
        snprintf(line, CW_LEASE_LINE_BYTES,
                 "lease ports=%" PRIu32 " first=%u rank=%" PRIu32 " memory=%" PRIu32 " job=%s", request->ports,
                 request->first, request->rank, request->memory, request->job);
        return;
    case CW_LEASE_HOPS:
        snprintf(line, CW_LEASE_LINE_BYTES, "hops ");
        for (uint32_t i = 0; i < request->hop_count; i++) {
            char ip[CW_IP_TEXT_BYTES];
            size_t used = strlen(line);
            cw_ip_write(&request->hops[i], ip);
            snprintf(line + used, CW_LEASE_LINE_BYTES - used, "%s%s", i > 0 ? "," : "", ip);
        }
    }
}

/* ---- the node's answers ---- */

static void mac_write(const uint8_t mac[6], char text[18])
{
    snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

/* The text after the address; NULL: there is no address. */
static const char *mac_read(const char *text, uint8_t mac[6])
{
    unsigned int bytes[6];
    int length = 0;
    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &bytes[0], &bytes[1], &bytes[2], &bytes[3], &bytes[4], &bytes[5],
               &length) != 6 ||
        length != 17) {
        return NULL;
    }
    for (int i = 0; i < 6; i++) {
        mac[i] = (uint8_t)bytes[i];
    }
    return text + length;
}

void cw_lease_nic_write(const struct cw_lease_nic *nic, char line[CW_LEASE_LINE_BYTES])
{
    char ip[CW_IP_TEXT_BYTES], mac[18];
    cw_ip_write(&nic->ip, ip);
    mac_write(nic->mac, mac);
    snprintf(line, CW_LEASE_LINE_BYTES,
             "node ip=%s/%u mac=%s mtu=%" PRIu32 " rate=%" PRIu64 " reports=%d medium=%" PRIu32, ip, nic->bits, mac,
             nic->mtu_bytes, nic->rate_bps, nic->reports, nic->medium);
}

bool cw_lease_nic_read(const char *line, struct cw_lease_nic *nic)
{
    char ip[CW_IP_TEXT_BYTES];
    uint64_t bits = 0, mtu = 0, rate = 0, reports = 0, medium = 0;
    size_t length = strncmp(line, "node ip=", 8) == 0 ? strcspn(line + 8, "/") : sizeof(ip);
    if (length >= sizeof(ip)) {
        return false;
    }
    memcpy(ip, line + 8, length);
    ip[length] = 0;
    const char *at = cw_ip_read(ip, &nic->ip) ? field_read(line + 8 + length, "/", 128, &bits) : NULL;
    at = at != NULL && strncmp(at, " mac=", 5) == 0 ? mac_read(at + 5, nic->mac) : NULL;
    at = at == NULL ? NULL : field_read(at, " mtu=", CW_PORT_MTU_MAX, &mtu);
    at = at == NULL ? NULL : field_read(at, " rate=", UINT64_MAX, &rate);
    at = at == NULL ? NULL : field_read(at, " reports=", 1, &reports);
    at = at == NULL ? NULL : field_read(at, " medium=", UINT32_MAX, &medium);
    nic->bits = (uint8_t)bits;
    nic->mtu_bytes = (uint32_t)mtu;
    nic->rate_bps = rate;
    nic->reports = reports != 0;
    nic->medium = (uint32_t)medium;
    return at != NULL && *at == 0 && mtu >= CW_PORT_MTU_MIN;
}

void cw_lease_hop_write(const uint8_t *mac, char line[CW_LEASE_LINE_BYTES])
{
    char text[18] = "-";
    size_t used = strlen(line);
    if (mac != NULL) {
        mac_write(mac, text);
    }
    snprintf(line + used, CW_LEASE_LINE_BYTES - used, "%s%s", used > 5 ? "," : "", text);
}

bool cw_lease_hop_read(const char **at, uint8_t mac[6], bool *is_known)
{
    const char *end = **at == '-' ? *at + 1 : mac_read(*at, mac);
    *is_known = **at != '-';
    if (end == NULL || (*end != 0 && *end != ',')) {
        return false;
    }
    *at = end + (*end == ',');
    return true;
}
