/* IGMP: reads membership reports, leaves and queries out of Ethernet frames (RFC 1112, 2236, 3376). Private to the
 * bridge.
 *
 * Invariant: nothing is read beyond `length`, nor beyond the length that the IPv4 header states. Order of calls:
 * cw_igmp_parse, then, if it found CW_IGMP_REPORT, cw_igmp_next until false. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum cw_igmp_kind {
    CW_IGMP_NONE,      /* no IGMP */
    CW_IGMP_MALFORMED, /* IGMP, but damaged, cut off or of an unknown type */
    CW_IGMP_QUERY,
    CW_IGMP_REPORT, /* joins and leaves, of any version */
};

struct cw_igmp {
    uint32_t source_ipv4;
    bool suppresses;       /* versions 1 and 2: a host that receives this report keeps its own back */
    const uint8_t *record; /* the rest is for cw_igmp_next */
    const uint8_t *end;
    uint32_t record_count;
    uint8_t type;
};

enum cw_igmp_kind cw_igmp_parse(const uint8_t *frame, uint32_t length, struct cw_igmp *igmp);

/* The next group that is joined or left; false: that was all. */
bool cw_igmp_next(struct cw_igmp *igmp, uint32_t *group_ipv4, bool *is_join);
