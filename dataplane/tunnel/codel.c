#include "dataplane/tunnel/codel.h"

#include <math.h>

enum {
    MEMORY_INTERVALS = 16 /* dropping that begins again this soon continues at about the same rate: RFC 8289,
                              * 5.4 */
};

void cw_codel_init(struct cw_codel *codel, uint64_t target_ns, uint64_t interval_ns)
{
    *codel = (struct cw_codel){.target_ns = target_ns, .interval_ns = interval_ns};
}

/* Drops are so far apart that flows of TCP which respond to them slow down linearly. */
static uint64_t drop_after(const struct cw_codel *codel, uint64_t time_ns)
{
    return time_ns + (uint64_t)((double)codel->interval_ns / sqrt((double)codel->count));
}

static bool is_standing(struct cw_codel *codel, uint64_t now_ns, uint64_t waited_ns, bool is_short)
{
    if (waited_ns < codel->target_ns || is_short) {
        codel->above_ns = 0;
        return false;
    }
    if (codel->above_ns == 0) {
        codel->above_ns = now_ns + codel->interval_ns;
        return false;
    }
    return now_ns >= codel->above_ns;
}

static void dropping_begin(struct cw_codel *codel, uint64_t now_ns)
{
    uint32_t last = codel->count - codel->count_last;
    bool recent = now_ns < codel->next_ns + MEMORY_INTERVALS * codel->interval_ns;
    codel->dropping = true;
    codel->count = last > 1 && recent ? last : 1;
    codel->count_last = codel->count;
    codel->next_ns = drop_after(codel, now_ns);
}

bool cw_codel_drops(struct cw_codel *codel, uint64_t now_ns, uint64_t waited_ns, bool is_short)
{
    if (!is_standing(codel, now_ns, waited_ns, is_short)) {
        codel->dropping = false;
        return false;
    }
    if (!codel->dropping) {
        dropping_begin(codel, now_ns);
        return true;
    }
    if (now_ns < codel->next_ns) {
        return false;
    }
    codel->count++;
    codel->next_ns = drop_after(codel, codel->next_ns);
    return true;
}
