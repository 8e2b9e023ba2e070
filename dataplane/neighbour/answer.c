#include "dataplane/neighbour/answer.h"

#include <string.h>

#include "dataplane/neighbour/frames.h"

enum {
    /* IPv4 */
    V4_HEADER = 20,
    V4_AT_LENGTH = 16,
    V4_AT_FRAGMENT = 20,
    V4_AT_TTL = 22,
    V4_AT_PROTOCOL = 23,
    V4_AT_CHECKSUM = 24,
    V4_AT_SOURCE = 26,
    V4_AT_DESTINATION = 30,
    V4_AT_MESSAGE = ETHERNET + V4_HEADER,
    ICMP = 1,
    ECHO_REQUEST = 8,
    ECHO_REPLY = 0,
    TTL = 64,
    /* IPv6 */
    ECHO_V6_REQUEST = 128,
    ECHO_V6_REPLY = 129,
    /* both */
    ICMP_HEAD = 8,
};

static uint16_t sum_of(const uint8_t *at, size_t bytes)
{
    struct cw_wire_sum sum = {0};
    cw_wire_sum_add(&sum, at, bytes);
    return cw_wire_sum_end(&sum);
}

static void sum_write(uint8_t *at, uint16_t sum)
{
    memcpy(at, &sum, sizeof(sum));
}

/* ---- ARP ---- */

enum cw_neighbour_verdict cw_answer_arp(const struct cw_neighbour_config *config, const uint8_t *frame, uint32_t bytes,
                                        uint8_t *answer, uint32_t *answer_bytes)
{
    if (bytes < CW_ARP_BYTES || memcmp(frame + ETHERNET, frames_arp_head, sizeof(frames_arp_head)) != 0 ||
        (frame[ARP_AT_SENDER_MAC] & GROUP_BIT) != 0) {
        return CW_NEIGHBOUR_DAMAGED;
    }
    if (!cw_ip_is_v4(&config->ip) || frames_be16(frame + ARP_AT_OPERATION) != ARP_REQUEST ||
        memcmp(frame + ARP_AT_TARGET, config->ip.bytes + 12, 4) != 0 ||
        memcmp(frame + ARP_AT_SENDER, config->ip.bytes + 12, 4) == 0) {
        return CW_NEIGHBOUR_FOREIGN;
    }
    memcpy(answer, frame, CW_ARP_BYTES);
    memcpy(answer, frame + ARP_AT_SENDER_MAC, 6);
    memcpy(answer + 6, config->mac, 6);
    answer[ARP_AT_OPERATION + 1] = ARP_REPLY;
    memcpy(answer + ARP_AT_SENDER_MAC, config->mac, 6);
    memcpy(answer + ARP_AT_SENDER, frame + ARP_AT_TARGET, 4);
    memcpy(answer + ARP_AT_TARGET_MAC, frame + ARP_AT_SENDER_MAC, 10);
    *answer_bytes = CW_ARP_BYTES;
    return CW_NEIGHBOUR_ANSWERED;
}

/* ---- IPv4 ---- */

/* No single host: none, a group, or broadcast. */
static bool v4_is_nobody(const uint8_t *ip)
{
    return ip[0] == 0 || ip[0] == 127 || ip[0] >= 224;
}

enum cw_neighbour_verdict cw_answer_v4(const struct cw_neighbour_config *config, const uint8_t *frame, uint32_t bytes,
                                       uint8_t *answer, uint32_t *answer_bytes)
{
    if (bytes < V4_AT_MESSAGE) {
        return CW_NEIGHBOUR_DAMAGED;
    }
    if (!cw_ip_is_v4(&config->ip) || memcmp(frame, config->mac, 6) != 0 || frame[ETHERNET] != 0x45 ||
        frame[V4_AT_PROTOCOL] != ICMP || memcmp(frame + V4_AT_DESTINATION, config->ip.bytes + 12, 4) != 0 ||
        (frames_be16(frame + V4_AT_FRAGMENT) & 0x3fff) != 0) {
        return CW_NEIGHBOUR_FOREIGN;
    }
    uint32_t total = frames_be16(frame + V4_AT_LENGTH), message = total - V4_HEADER;
    if (total < V4_HEADER + ICMP_HEAD || total > bytes - ETHERNET || sum_of(frame + ETHERNET, V4_HEADER) != 0 ||
        v4_is_nobody(frame + V4_AT_SOURCE) || (frame[AT_SENDER_MAC] & GROUP_BIT) != 0 ||
        sum_of(frame + V4_AT_MESSAGE, message) != 0) {
        return CW_NEIGHBOUR_DAMAGED;
    }
    if (frame[V4_AT_MESSAGE] != ECHO_REQUEST || frame[V4_AT_MESSAGE + 1] != 0 ||
        memcmp(frame + V4_AT_SOURCE, frame + V4_AT_DESTINATION, 4) == 0) {
        return CW_NEIGHBOUR_FOREIGN;
    }
    memcpy(answer, frame, ETHERNET + total);
    memcpy(answer, frame + 6, 6);
    memcpy(answer + 6, config->mac, 6);
    answer[V4_AT_TTL] = TTL;
    memcpy(answer + V4_AT_SOURCE, frame + V4_AT_DESTINATION, 4);
    memcpy(answer + V4_AT_DESTINATION, frame + V4_AT_SOURCE, 4);
    sum_write(answer + V4_AT_CHECKSUM, 0);
    sum_write(answer + V4_AT_CHECKSUM, sum_of(answer + ETHERNET, V4_HEADER));
    answer[V4_AT_MESSAGE] = ECHO_REPLY;
    sum_write(answer + V4_AT_MESSAGE + 2, 0);
    sum_write(answer + V4_AT_MESSAGE + 2, sum_of(answer + V4_AT_MESSAGE, message));
    *answer_bytes = ETHERNET + total;
    return CW_NEIGHBOUR_ANSWERED;
}

/* ---- IPv6 ---- */

static enum cw_neighbour_verdict solicitation_answer(const struct cw_neighbour_config *config, const uint8_t *frame,
                                                     uint32_t message, bool is_unicast, uint8_t *answer,
                                                     uint32_t *answer_bytes)
{
    static const uint8_t nobody[16] = {0};
    static const uint8_t all_nodes[16] = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    bool is_broken;
    if (message < ND_AT_OPTIONS - V6_AT_MESSAGE || frame[V6_AT_HOPS] != ND_HOPS || frame[V6_AT_MESSAGE + 1] != 0) {
        return CW_NEIGHBOUR_DAMAGED;
    }
    const uint8_t *mac = frames_nd_option(frame, message, ND_SOURCE_MAC, &is_broken);
    bool is_probe = memcmp(frame + V6_AT_SOURCE, nobody, 16) == 0; /* a check for duplicates (RFC 4862) */
    const uint8_t *asker = mac != NULL ? mac : frame + 6;
    if (is_broken || (is_probe && (mac != NULL || is_unicast)) || (asker[0] & GROUP_BIT) != 0 ||
        frame[V6_AT_SOURCE] == 0xff) {
        return CW_NEIGHBOUR_DAMAGED;
    }
    if (memcmp(frame + ND_AT_TARGET, config->ip.bytes, 16) != 0 ||
        memcmp(frame + V6_AT_SOURCE, config->ip.bytes, 16) == 0) {
        return CW_NEIGHBOUR_FOREIGN;
    }
    struct cw_ip to;
    memcpy(to.bytes, is_probe ? all_nodes : frame + V6_AT_SOURCE, 16);
    frames_nd_write(answer, ND_ADVERTISEMENT, &config->ip, config->mac, &to, &config->ip);
    if (is_probe) {
        cw_wire_group_mac(&to, answer);
    } else {
        memcpy(answer, asker, 6);
    }
    answer[ND_AT_FLAGS] = ND_OVERRIDE | (is_probe ? 0 : ND_SOLICITED);
    frames_v6_sum_write(answer, CW_ND_BYTES - V6_AT_MESSAGE);
    *answer_bytes = CW_ND_BYTES;
    return CW_NEIGHBOUR_ANSWERED;
}

static enum cw_neighbour_verdict echo_answer(const struct cw_neighbour_config *config, const uint8_t *frame,
                                             uint32_t message, uint8_t *answer, uint32_t *answer_bytes)
{
    static const uint8_t nobody[16] = {0};
    const uint8_t *source = frame + V6_AT_SOURCE;
    if (source[0] == 0xff || memcmp(source, nobody, 16) == 0 || frame[V6_AT_MESSAGE + 1] != 0 ||
        (frame[AT_SENDER_MAC] & GROUP_BIT) != 0) {
        return CW_NEIGHBOUR_DAMAGED;
    }
    if (memcmp(frame, config->mac, 6) != 0 || memcmp(source, config->ip.bytes, 16) == 0) {
        return CW_NEIGHBOUR_FOREIGN;
    }
    memcpy(answer, frame, V6_AT_MESSAGE + message);
    memcpy(answer, frame + 6, 6);
    memcpy(answer + 6, config->mac, 6);
    answer[V6_AT_HOPS] = TTL;
    memcpy(answer + V6_AT_SOURCE, frame + V6_AT_DESTINATION, 16);
    memcpy(answer + V6_AT_DESTINATION, source, 16);
    answer[V6_AT_MESSAGE] = ECHO_V6_REPLY;
    frames_v6_sum_write(answer, message);
    *answer_bytes = V6_AT_MESSAGE + message;
    return CW_NEIGHBOUR_ANSWERED;
}

enum cw_neighbour_verdict cw_answer_v6(const struct cw_neighbour_config *config, const uint8_t *frame, uint32_t bytes,
                                       uint8_t *answer, uint32_t *answer_bytes)
{
    struct cw_ip group = cw_solicit_group(&config->ip);
    if (bytes < V6_AT_MESSAGE) {
        return CW_NEIGHBOUR_DAMAGED;
    }
    bool is_own = memcmp(frame + V6_AT_DESTINATION, config->ip.bytes, 16) == 0;
    bool is_asked = memcmp(frame + V6_AT_DESTINATION, group.bytes, 16) == 0;
    if (cw_ip_is_v4(&config->ip) || frame[ETHERNET] >> 4 != 6 || frame[V6_AT_NEXT] != ICMPV6 ||
        (!is_own && !is_asked)) {
        return CW_NEIGHBOUR_FOREIGN;
    }
    uint32_t message = frames_be16(frame + V6_AT_LENGTH);
    if (message < ICMP_HEAD || message > bytes - V6_AT_MESSAGE || frames_v6_sum(frame, message) != 0) {
        return CW_NEIGHBOUR_DAMAGED;
    }
    if (frame[V6_AT_MESSAGE] == ND_SOLICITATION) {
        return solicitation_answer(config, frame, message, is_own, answer, answer_bytes);
    }
    return frame[V6_AT_MESSAGE] == ECHO_V6_REQUEST && is_own ? echo_answer(config, frame, message, answer, answer_bytes)
                                                             : CW_NEIGHBOUR_FOREIGN;
}
