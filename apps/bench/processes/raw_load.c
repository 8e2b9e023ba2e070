/* The bare loops of bench/processes/raw.h, by the library that has them. */
#include <dlfcn.h>
#include <stdio.h>

#include "apps/bench/processes/raw.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/status.h"

#if defined(CW_BUILD_FOLDER) /* with sanitizers the run path does not count (dpdk.c) */
#define LIBRARY CW_BUILD_FOLDER "/apps/libcauseway_bench.so"
#else
#define LIBRARY "libcauseway_bench.so"
#endif

/* One thread of the command measures. */
static const struct bench_raw_table *load(void)
{
    static const struct bench_raw_table *table;
    if (table == NULL) {
        void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        table = library == NULL ? NULL : dlsym(library, "bench_raw_table");
    }
    return table;
}

static struct bench_raw_settings with_device(const struct cw_port *port, const struct bench_raw_settings *settings)
{
    struct bench_raw_settings with = *settings;
    with.id = cw_port_ethdev_id(port);
    with.pool = cw_port_ethdev_pool(port);
    return with;
}

int bench_raw_rate(struct bench_member *member, const struct bench_raw_settings *settings, struct bench_raw_rate *rate)
{
    struct bench_raw_settings with = with_device(member->port, settings);
    return load() == NULL ? CW_ERROR_UNSUPPORTED : load()->rate(member, &with, rate);
}

int bench_raw_latency(struct bench_member *member, const struct bench_raw_settings *settings,
                      struct bench_raw_latency *latency)
{
    struct bench_raw_settings with = with_device(member->port, settings);
    return load() == NULL ? CW_ERROR_UNSUPPORTED : load()->latency(member, &with, latency);
}
