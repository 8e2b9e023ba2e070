#include "apps/bench/counters.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EVENTS = 3 };

struct counters {
    int descriptors[EVENTS]; /* the first leads the group */
};

/* As the manuals of the processors number them. */
static void misses_choose(struct perf_event_attr *event)
{
    event->type = PERF_TYPE_HARDWARE;
    event->config = PERF_COUNT_HW_CACHE_MISSES;
#if defined(__x86_64__)
    bool is_amd = __builtin_cpu_is("amd"), is_intel = __builtin_cpu_is("intel");
    if (is_amd || is_intel) {
        event->type = PERF_TYPE_RAW;
        event->config = is_amd ? 0x0964 /* L2CacheReqStat, misses */ : 0x3f24 /* L2_RQSTS.MISS */;
    }
#endif
}

struct counters *counters_open(void)
{
    struct counters *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    memset(made->descriptors, -1, sizeof(made->descriptors));
    for (int i = 0; i < EVENTS; i++) {
        struct perf_event_attr event = {.type = PERF_TYPE_HARDWARE,
                                        .size = sizeof(event),
                                        .config = i == 0 ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_HW_INSTRUCTIONS,
                                        .exclude_kernel = 1,
                                        .exclude_hv = 1,
                                        .pinned = i == 0, /* all three at once, or none */
                                        .read_format = PERF_FORMAT_GROUP};
        if (i == 2) {
            misses_choose(&event);
        }
        made->descriptors[i] =
            (int)syscall(SYS_perf_event_open, &event, 0, -1, made->descriptors[0], PERF_FLAG_FD_CLOEXEC);
        if (made->descriptors[i] < 0) {
            counters_close(made);
            return NULL;
        }
    }
    return made;
}

void counters_close(struct counters *counters)
{
    for (int i = 0; counters != NULL && i < EVENTS; i++) {
        if (counters->descriptors[i] >= 0) {
            close(counters->descriptors[i]);
        }
    }
    free(counters);
}

void counters_read(const struct counters *counters, struct counters_values *values)
{
    struct {
        uint64_t count, values[EVENTS];
    } group = {.count = 0};
    if (counters == NULL || read(counters->descriptors[0], &group, sizeof(group)) != sizeof(group)) {
        *values = (struct counters_values){.cycles = 0};
        return;
    }
    *values = (struct counters_values){group.values[0], group.values[1], group.values[2]};
}
