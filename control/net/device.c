#include "control/net/device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/port/error_text.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"

static const char prefix[] = "device:";

enum { MTU_DEFAULT = 1500 };

/* ---- names ---- */

/* "0000:03:00.0" or "03:00.0", of `length` characters; writes it in full. */
static bool pci_read(const char *text, size_t length, char name[CW_DEVICE_NAME_BYTES])
{
    unsigned domain = 0, bus, slot, function;
    int end = -1;
    char copy[16];
    if (length >= sizeof(copy)) {
        return false;
    }
    snprintf(copy, sizeof(copy), "%.*s", (int)length, text);
    if (strspn(copy, "0123456789abcdefABCDEF:.") != length) { /* scanf takes signs and spaces */
        return false;
    }
    bool is_read = sscanf(copy, "%4x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) == 4 && end == (int)length;
    if (!is_read) {
        domain = 0;
        end = -1;
        is_read = sscanf(copy, "%2x:%2x.%1x%n", &bus, &slot, &function, &end) == 3 && end == (int)length;
    }
    if (is_read && name != NULL) {
        snprintf(name, CW_DEVICE_NAME_BYTES, "%04x:%02x:%02x.%x", domain, bus, slot, function);
    }
    return is_read && slot < 32 && function < 8;
}

static bool mac_read(const char *text, size_t length, uint8_t mac[6])
{
    if (length != 17) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (i % 3 == 2 ? text[i] != ':' : !isxdigit((unsigned char)text[i])) {
            return false;
        }
    }
    for (size_t i = 0; mac != NULL && i < 6; i++) {
        mac[i] = (uint8_t)strtoul(text + 3 * i, NULL, 16);
    }
    return true;
}

/* A driver's name in DPDK and a number. */
static bool is_virtual(const char *text, size_t length)
{
    static const char *const families[] = {"net_", "eth_", "virtio_user"};
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        size_t family = strlen(families[i]);
        if (length > family && strncmp(text, families[i], family) == 0) {
            return true;
        }
    }
    return false;
}

/* The text with numbers for {rank} and {local}. A local number that is not known becomes 0. False: too long. */
static bool numbers_fill(const char *text, uint32_t rank, int32_t local, char filled[CW_DEVICE_TEXT_BYTES],
                         bool *is_local)
{
    size_t used = 0;
    *is_local = false;
    while (*text != '\0') {
        bool is_rank = strncmp(text, "{rank}", 6) == 0, asks_local = strncmp(text, "{local}", 7) == 0;
        int added = is_rank      ? snprintf(filled + used, CW_DEVICE_TEXT_BYTES - used, "%u", rank)
                    : asks_local ? snprintf(filled + used, CW_DEVICE_TEXT_BYTES - used, "%d", local < 0 ? 0 : local)
                                 : snprintf(filled + used, CW_DEVICE_TEXT_BYTES - used, "%c", *text);
        *is_local = *is_local || (asks_local && local < 0);
        text += is_rank ? 6 : asks_local ? 7 : 1;
        used += (size_t)added;
        if (used >= CW_DEVICE_TEXT_BYTES) {
            return false;
        }
    }
    filled[used] = '\0';
    return true;
}

bool cw_device_is_named(const char *text)
{
    char filled[CW_DEVICE_TEXT_BYTES];
    bool is_local;
    if (strncmp(text, prefix, strlen(prefix)) == 0) {
        return true;
    }
    if (!numbers_fill(text, 0, 0, filled, &is_local)) {
        return false;
    }
    size_t length = strcspn(filled, ",");
    return pci_read(filled, length, NULL) || mac_read(filled, length, NULL) || is_virtual(filled, length);
}

struct cw_net_address cw_device_address(const struct cw_device *device)
{
    return (struct cw_net_address){.ip = device->ip,
                                   .mtu_bytes = device->mtu_bytes != 0 ? device->mtu_bytes : (uint16_t)MTU_DEFAULT,
                                   .bits = device->bits};
}

struct cw_ip cw_device_link_local(const uint8_t mac[6])
{
    return (struct cw_ip){
        {0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}};
}

/* ---- options ---- */

static bool ip_parse(struct cw_device *device, const char *value)
{
    char address[CW_IP_TEXT_BYTES];
    const char *slash = strchr(value, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - value);
    if (slash == NULL || length >= sizeof(address)) {
        return false;
    }
    snprintf(address, sizeof(address), "%.*s", (int)length, value);
    char *end;
    unsigned long bits = isdigit((unsigned char)slash[1]) ? strtoul(slash + 1, &end, 10) : 129;
    if (bits > 128 || *end != '\0' || !cw_ip_read(address, &device->ip) || cw_ip_is_none(&device->ip)) {
        return false;
    }
    bits += cw_ip_is_v4(&device->ip) ? CW_IP_V4_BITS : 0;
    device->bits = (uint8_t)bits;
    return bits <= 128;
}

static bool mtu_parse(struct cw_device *device, const char *value)
{
    char *end;
    unsigned long bytes = strtoul(value, &end, 10);
    device->mtu_bytes = (uint16_t)bytes;
    return isdigit((unsigned char)value[0]) && *end == '\0' && bytes >= CW_PORT_MTU_MIN &&
           bytes <= CW_PORT_MTU_ETHERNET_MAX;
}

/* One word behind the name: ours, or the driver's. */
static int word_parse(struct cw_device *device, const char *word, char *error, size_t error_bytes)
{
    if (strncmp(word, "ip=", 3) == 0 && !ip_parse(device, word + 3)) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "--transport (CAUSEWAY_TRANSPORT): %.80s: an address and the bits of its subnet are wanted, like "
            "ip=10.9.0.5/24 or ip=fd77::5/64",
            word);
    }
    if (strncmp(word, "gateway=", 8) == 0 &&
        (!cw_ip_read(word + 8, &device->gateway) || cw_ip_is_none(&device->gateway))) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "--transport (CAUSEWAY_TRANSPORT): %.80s: the address of a router is wanted, like gateway=10.9.0.1", word);
    }
    if (strncmp(word, "mtu=", 4) == 0 && !mtu_parse(device, word + 4)) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "--transport (CAUSEWAY_TRANSPORT): %.80s: %d to %d bytes are possible", word,
                             CW_PORT_MTU_MIN, CW_PORT_MTU_ETHERNET_MAX);
    }
    if (strncmp(word, "ip=", 3) == 0 || strncmp(word, "gateway=", 8) == 0 || strncmp(word, "mtu=", 4) == 0) {
        return CW_OK;
    }
    size_t used = strlen(device->arguments);
    int added = snprintf(device->arguments + used, sizeof(device->arguments) - used, "%s%s", used > 0 ? "," : "", word);
    return used + (size_t)added < sizeof(device->arguments)
               ? CW_OK
               : cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                               "--transport (CAUSEWAY_TRANSPORT): the driver's arguments are longer than %d bytes",
                               CW_DEVICE_ARGUMENTS_BYTES - 1);
}

/* The gateway's address must be in the own subnet: neighbours are requested only there. */
static int gateway_check(const struct cw_device *device, char *error, size_t error_bytes)
{
    if (cw_ip_is_none(&device->gateway) ||
        (!cw_ip_is_none(&device->ip) && cw_ip_is_v4(&device->gateway) == cw_ip_is_v4(&device->ip) &&
         (cw_ip_shares(&device->gateway, &device->ip, device->bits) ||
          (device->gateway.bytes[0] == 0xfe && device->gateway.bytes[1] == 0x80)))) {
        return CW_OK;
    }
    return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                         "--transport (CAUSEWAY_TRANSPORT): a gateway needs ip=ADDRESS/PREFIX, of the same kind and in "
                         "one subnet with it");
}

int cw_device_read(const char *text, uint32_t rank, int32_t local, struct cw_device *device, char *error,
                   size_t error_bytes)
{
    char filled[CW_DEVICE_TEXT_BYTES], *place = NULL;
    struct cw_device read = {.mtu_bytes = 0};
    text += strncmp(text, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
    if (!numbers_fill(text, rank, local, filled, &read.is_local)) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "--transport (CAUSEWAY_TRANSPORT) is longer than %d bytes", CW_DEVICE_TEXT_BYTES - 1);
    }
    const char *name = strtok_r(filled, ",", &place);
    size_t length = name == NULL ? 0 : strlen(name);
    read.is_pci = name != NULL && pci_read(name, length, read.name);
    read.is_by_mac = name != NULL && mac_read(name, length, read.mac);
    if (name == NULL || length >= sizeof(read.name)) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "--transport (CAUSEWAY_TRANSPORT) is '%.60s': wanted is " CW_DEVICE_WORDS, text);
    }
    if (!read.is_pci && !read.is_by_mac) {
        snprintf(read.name, sizeof(read.name), "%s", name);
    }
    int status = CW_OK;
    for (const char *word = strtok_r(NULL, ",", &place); word != NULL && status == CW_OK;
         word = strtok_r(NULL, ",", &place)) {
        status = word_parse(&read, word, error, error_bytes);
    }
    status = status == CW_OK ? gateway_check(&read, error, error_bytes) : status;
    if (status == CW_OK) {
        *device = read;
    }
    return status;
}
