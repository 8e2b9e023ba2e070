#include "dataplane/fabric/igmp.h"

#include <stddef.h>

enum {
    ETHERNET_BYTES = 14,
    ETHERTYPE_IPV4 = 0x0800,
    IPV4_BYTES_MIN = 20,
    IPV4_PROTOCOL_IGMP = 2,
    IGMP_BYTES_MIN = 8,
    RECORD_BYTES_MIN = 8,

    TYPE_QUERY = 0x11,
    TYPE_REPORT_V1 = 0x12,
    TYPE_REPORT_V2 = 0x16,
    TYPE_LEAVE_V2 = 0x17,
    TYPE_REPORT_V3 = 0x22,

    RECORD_IS_INCLUDE = 1,
    RECORD_IS_EXCLUDE = 2,
    RECORD_TO_INCLUDE = 3,
    RECORD_TO_EXCLUDE = 4,
    RECORD_ALLOW_NEW = 5,
};

static uint32_t read16(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 8 | bytes[1];
}

static uint32_t read32(const uint8_t *bytes)
{
    return read16(bytes) << 16 | read16(bytes + 2);
}

/* The Internet checksum of a correct message is 0. */
static bool checksum_correct(const uint8_t *bytes, uint32_t length)
{
    uint32_t sum = 0;

    for (; length > 1; bytes += 2, length -= 2) {
        sum += read16(bytes);
    }
    if (length == 1) {
        sum += (uint32_t)bytes[0] << 8;
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

static bool is_multicast(uint32_t ipv4)
{
    return ipv4 >> 28 == 0xe;
}

/* Bytes of a version 3 record, 0: it does not fit into what is left. */
static uint32_t record_bytes(const uint8_t *record, const uint8_t *end)
{
    uint32_t left = (uint32_t)(end - record);
    uint32_t bytes;

    if (left < RECORD_BYTES_MIN) {
        return 0;
    }
    bytes = RECORD_BYTES_MIN + 4 * (record[1] + read16(record + 2));
    return bytes <= left ? bytes : 0;
}

static bool records_fit(const struct cw_igmp *igmp)
{
    const uint8_t *record = igmp->record;

    for (uint32_t i = 0; i < igmp->record_count; i++) {
        uint32_t bytes = record_bytes(record, igmp->end);

        if (bytes == 0 || !is_multicast(read32(record + 4))) {
            return false;
        }
        record += bytes;
    }
    return true;
}

enum cw_igmp_kind cw_igmp_parse(const uint8_t *frame, uint32_t length, struct cw_igmp *igmp)
{
    const uint8_t *ip = frame + ETHERNET_BYTES;
    const uint8_t *message;
    uint32_t header_bytes, total_bytes;

    if (length < ETHERNET_BYTES + IPV4_BYTES_MIN || read16(frame + 12) != ETHERTYPE_IPV4 || ip[0] >> 4 != 4 ||
        ip[9] != IPV4_PROTOCOL_IGMP) {
        return CW_IGMP_NONE;
    }
    header_bytes = (ip[0] & 15u) * 4;
    total_bytes = read16(ip + 2);
    if (header_bytes < IPV4_BYTES_MIN || total_bytes > length - ETHERNET_BYTES ||
        total_bytes < header_bytes + IGMP_BYTES_MIN || (read16(ip + 6) & 0x3fff) != 0 || /* a fragment */
        !checksum_correct(ip + header_bytes, total_bytes - header_bytes)) {
        return CW_IGMP_MALFORMED;
    }
    message = ip + header_bytes;
    igmp->type = message[0];
    igmp->source_ipv4 = read32(ip + 12);
    igmp->suppresses = igmp->type != TYPE_REPORT_V3;
    igmp->end = ip + total_bytes;
    igmp->record = message;
    igmp->record_count = 1;
    switch (igmp->type) {
    case TYPE_QUERY:
        return CW_IGMP_QUERY;
    case TYPE_REPORT_V1:
    case TYPE_REPORT_V2:
    case TYPE_LEAVE_V2:
        return is_multicast(read32(message + 4)) ? CW_IGMP_REPORT : CW_IGMP_MALFORMED;
    case TYPE_REPORT_V3:
        igmp->record = message + IGMP_BYTES_MIN;
        igmp->record_count = read16(message + 6);
        return records_fit(igmp) ? CW_IGMP_REPORT : CW_IGMP_MALFORMED;
    default:
        return CW_IGMP_MALFORMED;
    }
}

/* The effect of a version 3 record on the group as a whole; sources are not distinguished. False: none. */
static bool record_read(const uint8_t *record, bool *is_join)
{
    bool has_sources = read16(record + 2) > 0;

    switch (record[0]) {
    case RECORD_IS_EXCLUDE:
    case RECORD_TO_EXCLUDE:
        *is_join = true;
        return true;
    case RECORD_IS_INCLUDE:
    case RECORD_TO_INCLUDE:
        *is_join = has_sources;
        return true;
    case RECORD_ALLOW_NEW:
        *is_join = true;
        return has_sources;
    default: /* BLOCK_OLD: some source less; unknown types are passed over (RFC 3376, 4.2.12) */
        return false;
    }
}

bool cw_igmp_next(struct cw_igmp *igmp, uint32_t *group_ipv4, bool *is_join)
{
    while (igmp->record_count > 0) {
        const uint8_t *record = igmp->record;

        igmp->record_count--;
        *group_ipv4 = read32(record + 4);
        if (igmp->type != TYPE_REPORT_V3) {
            *is_join = igmp->type != TYPE_LEAVE_V2;
            return true;
        }
        igmp->record += record_bytes(record, igmp->end);
        if (record_read(record, is_join)) {
            return true;
        }
    }
    return false;
}
