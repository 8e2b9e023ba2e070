#include "dataplane/neighbour/neighbour.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/limits.h"
#include "dataplane/neighbour/answer.h"
#include "dataplane/status.h"
#include "dataplane/wire/wire.h"

enum { ETHERNET = 14, TYPE_ARP = 0x0806, TYPE_V4 = 0x0800, TYPE_V6 = 0x86dd };

/* A next hop in use. */
struct hop {
    struct cw_ip ip;
    uint8_t mac[6];
    bool is_known;
    uint32_t unanswered; /* questions in a row */
    uint64_t ask_ns;     /* the next one */
};

struct cw_neighbour_cache {
    struct cw_neighbour_config config;
    struct hop hops[CW_NEIGHBOUR_HOPS_MAX];
    uint32_t hop_count;
    uint64_t changes;
    uint64_t answers_ns; /* answers are paid for until then: CW_NEIGHBOUR_ANSWER_NS each */
    uint8_t answer[];    /* frame_bytes_max */
};

struct cw_neighbour_cache *cw_neighbour_create(const struct cw_neighbour_config *config)
{
    uint32_t bytes = config->frame_bytes_max > CW_SOLICIT_BYTES_MAX ? config->frame_bytes_max : CW_SOLICIT_BYTES_MAX;
    struct cw_neighbour_cache *cache = calloc(1, sizeof(*cache) + bytes);
    if (cache != NULL) {
        cache->config = *config;
        cache->config.frame_bytes_max = bytes;
    }
    return cache;
}

void cw_neighbour_destroy(struct cw_neighbour_cache *cache)
{
    free(cache);
}

bool cw_neighbour_group(const struct cw_ip *ip, uint8_t mac[6])
{
    struct cw_ip group = cw_solicit_group(ip);
    cw_wire_group_mac(&group, mac);
    return !cw_ip_is_v4(ip);
}

/* ---- next hops ---- */

static struct hop *hop_find(struct cw_neighbour_cache *cache, const struct cw_ip *ip)
{
    for (uint32_t i = 0; i < cache->hop_count; i++) {
        if (cw_ip_is_equal(&cache->hops[i].ip, ip)) {
            return &cache->hops[i];
        }
    }
    return NULL;
}

struct cw_ip cw_neighbour_next(const struct cw_neighbour_cache *cache, const struct cw_ip *ip)
{
    const struct cw_neighbour_config *config = &cache->config;
    bool is_link_local = ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80;
    return is_link_local || cw_ip_shares(ip, &config->ip, config->bits) ? *ip : config->gateway;
}

int cw_neighbour_want(struct cw_neighbour_cache *cache, const struct cw_ip *ip, uint64_t now_ns)
{
    struct cw_ip next = cw_neighbour_next(cache, ip);
    if (cw_ip_is_none(&next) || cw_ip_is_v4(ip) != cw_ip_is_v4(&cache->config.ip)) {
        return CW_ERROR_NOT_FOUND;
    }
    if (hop_find(cache, &next) != NULL) {
        return CW_OK;
    }
    if (cache->hop_count == CW_NEIGHBOUR_HOPS_MAX) {
        return CW_ERROR_LIMIT;
    }
    cache->hops[cache->hop_count++] = (struct hop){.ip = next, .ask_ns = now_ns};
    return CW_OK;
}

void cw_neighbour_remove(struct cw_neighbour_cache *cache, const struct cw_ip *next)
{
    struct hop *hop = hop_find(cache, next);
    if (hop != NULL) {
        *hop = cache->hops[--cache->hop_count];
    }
}

bool cw_neighbour_find(const struct cw_neighbour_cache *cache, const struct cw_ip *ip, uint8_t mac[6])
{
    struct cw_ip next = cw_neighbour_next(cache, ip);
    for (uint32_t i = 0; i < cache->hop_count; i++) {
        const struct hop *hop = &cache->hops[i];
        if (cw_ip_is_equal(&hop->ip, &next) && hop->is_known) {
            memcpy(mac, hop->mac, sizeof(hop->mac));
            return true;
        }
    }
    return false;
}

uint64_t cw_neighbour_changes(const struct cw_neighbour_cache *cache)
{
    return cache->changes;
}

/* A frame reports an address's MAC address; `overrides`: even if it had another one. False: the address is not in
 * use. */
static bool hop_learn(struct cw_neighbour_cache *cache, const struct cw_ip *ip, const uint8_t mac[6], bool overrides,
                      uint64_t now_ns)
{
    struct hop *hop = hop_find(cache, ip);
    if (hop == NULL || (hop->is_known && !overrides && memcmp(hop->mac, mac, sizeof(hop->mac)) != 0)) {
        return hop != NULL;
    }
    cache->changes += !hop->is_known || memcmp(hop->mac, mac, sizeof(hop->mac)) != 0;
    memcpy(hop->mac, mac, sizeof(hop->mac));
    hop->is_known = true;
    hop->unanswered = 0;
    hop->ask_ns = now_ns + CW_NEIGHBOUR_FRESH_NS;
    return true;
}

uint32_t cw_neighbour_question(struct cw_neighbour_cache *cache, uint64_t now_ns, uint8_t frame[CW_SOLICIT_BYTES_MAX])
{
    for (uint32_t i = 0; i < cache->hop_count; i++) {
        struct hop *hop = &cache->hops[i];
        if (hop->ask_ns > now_ns) {
            continue;
        }
        uint64_t interval_ns = CW_NEIGHBOUR_ASK_NS
                               << (hop->unanswered < CW_NEIGHBOUR_DOUBLINGS ? hop->unanswered : CW_NEIGHBOUR_DOUBLINGS);
        hop->unanswered++;
        hop->ask_ns = now_ns + interval_ns;
        return (uint32_t)cw_solicit_write(frame, &cache->config.ip, cache->config.mac, &hop->ip);
    }
    return 0;
}

uint64_t cw_neighbour_deadline(const struct cw_neighbour_cache *cache)
{
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t i = 0; i < cache->hop_count; i++) {
        next_ns = cache->hops[i].ask_ns < next_ns ? cache->hops[i].ask_ns : next_ns;
    }
    return next_ns;
}

/* ---- what comes ---- */

/* Whether one more answer may be sent; each uses up CW_NEIGHBOUR_ANSWER_NS, of a limited debt. */
static bool answer_pay(struct cw_neighbour_cache *cache, uint64_t now_ns)
{
    uint64_t begin_ns = cache->answers_ns > now_ns ? cache->answers_ns : now_ns;
    if (begin_ns - now_ns > (CW_NEIGHBOUR_ANSWERS - 1) * CW_NEIGHBOUR_ANSWER_NS) {
        return false;
    }
    cache->answers_ns = begin_ns + CW_NEIGHBOUR_ANSWER_NS;
    return true;
}

/* A request to any host also contains the sender's address (RFC 826, "merge"): it saves a request of our own, and a
 * gateway reports a changed MAC address this way. IPv6 hosts advertise it instead. False: the sender is not in use. */
static bool asker_learn(struct cw_neighbour_cache *cache, const uint8_t *frame, uint64_t now_ns)
{
    struct cw_ip ip = cw_ip_v4(0);
    memcpy(ip.bytes + 12, frame + 28, 4);
    return frame[20] == 0 && frame[21] == 1 && hop_learn(cache, &ip, frame + 22, true, now_ns);
}

enum cw_neighbour_verdict cw_neighbour_receive(struct cw_neighbour_cache *cache, const uint8_t *frame, uint32_t bytes,
                                               uint64_t now_ns, const uint8_t **answer, uint32_t *answer_bytes)
{
    const struct cw_neighbour_config *config = &cache->config;
    struct cw_ip ip;
    uint8_t mac[6];
    if (bytes < ETHERNET || bytes > config->frame_bytes_max) {
        return CW_NEIGHBOUR_FOREIGN;
    }
    if (cw_solicit_parse(frame, bytes, &ip, mac)) {
        hop_learn(cache, &ip, mac, cw_solicit_overrides(frame), now_ns);
        return CW_NEIGHBOUR_TAKEN;
    }
    uint32_t type = (uint32_t)frame[12] << 8 | frame[13];
    enum cw_neighbour_verdict verdict =
        type == TYPE_ARP  ? cw_answer_arp(config, frame, bytes, cache->answer, answer_bytes)
        : type == TYPE_V4 ? cw_answer_v4(config, frame, bytes, cache->answer, answer_bytes)
        : type == TYPE_V6 ? cw_answer_v6(config, frame, bytes, cache->answer, answer_bytes)
                          : CW_NEIGHBOUR_FOREIGN;
    bool is_learned = type == TYPE_ARP && verdict != CW_NEIGHBOUR_DAMAGED && asker_learn(cache, frame, now_ns);
    if (verdict != CW_NEIGHBOUR_ANSWERED) {
        return is_learned ? CW_NEIGHBOUR_TAKEN : verdict;
    }
    *answer = cache->answer;
    return answer_pay(cache, now_ns) ? CW_NEIGHBOUR_ANSWERED : CW_NEIGHBOUR_LIMITED;
}
