/* When a gateway turns, and when it sleeps. */
#include "apps/gateway/site.h"

#include <inttypes.h>
#include <sched.h>

#include "apps/cli/cli.h"
#include "dataplane/base/clock.h"
#include "dataplane/port/port.h"

/* As the switch: yields for so long before it sleeps. */
#define YIELD_NS 70000ull
/* A sleep ends some 60 us late at the worst: for earlier deadlines the thread polls. */
#define SLEEP_MIN_NS    100000ull
#define SLEEP_MARGIN_NS 60000ull
/* It sleeps on the outer port, and looks at the inner one so often, more and more seldom while nothing comes. */
#define NAP_MIN_NS 50000ull
#define NAP_MAX_NS 1000000ull
#define LOOK_NS    1000000000ull /* between two looks at the links and at what was refused */

enum {
    BUSY_MIN = 8, /* as in loop/loop.c: work of a turn whose duration says something */
    REFUSED_MIN = 3,
};

struct timers {
    uint64_t end_ns;
    uint64_t stats_ns;
    uint64_t look_ns;
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void idle(struct gateway_site *site, const struct timers *timers, uint64_t now_ns)
{
    if (site->config->dedicated) {
        return;
    }
    if (site->idle_since_ns == 0) {
        site->idle_since_ns = now_ns;
    }
    if (now_ns - site->idle_since_ns < YIELD_NS && cw_yield_policy_yield(&site->yield_policy, now_ns)) {
        return;
    }
    uint64_t deadline_ns = earlier(cw_gate_deadline(site->gate), earlier(timers->end_ns, timers->stats_ns));
    if (deadline_ns < now_ns + SLEEP_MIN_NS) {
        sched_yield();
        return;
    }
    cw_port_sleep(site->outer, earlier(deadline_ns - now_ns - SLEEP_MARGIN_NS, site->nap_ns));
    site->nap_ns = earlier(2 * site->nap_ns, NAP_MAX_NS);
}

static uint64_t rejected_count(const struct gateway_site *site)
{
    return cw_endpoint_counter(site->endpoint, CW_COUNTER_DROP_TAG) +
           cw_endpoint_counter(site->endpoint, CW_COUNTER_DROP_SEAL) +
           cw_endpoint_counter(site->endpoint, CW_COUNTER_DROP_HELLO);
}

/* A peer that is not there while packets come which do not fit the key: most likely it has another one. */
static void key_look(struct gateway_site *site)
{
    uint64_t now = rejected_count(site);
    if (site->up_count == 0 && !site->said_key && now - site->refused_before >= REFUSED_MIN) {
        app_error("packets come that do not fit the key", site->config->peer_text,
                  "give both gateways the same --key FILE, and the same --encrypt");
        site->said_key = true;
    }
    site->refused_before = now;
}

/* A memif client does not get its link back. False: it is gone. */
static bool link_look(const struct gateway_port_config *own, struct cw_port *port)
{
    if (!own->is_memif || cw_port_link_up(port)) {
        return true;
    }
    app_error("the other side of the port is gone", own->text, "start it again, then this");
    return false;
}

/* Periodic duties. False: it cannot continue. */
static bool duties_do(struct gateway_site *site, struct timers *timers, struct app_signals *signals, uint64_t now_ns)
{
    if (signals->report) {
        signals->report = 0;
        gateway_report(site, now_ns);
    }
    if (now_ns >= timers->stats_ns) {
        uint64_t interval_ns = site->config->stats_interval_ns;
        if (site->stats.csv != NULL) {
            gateway_stats_write(site, now_ns);
        } else {
            gateway_report(site, now_ns);
        }
        timers->stats_ns += ((now_ns - timers->stats_ns) / interval_ns + 1) * interval_ns;
    }
    if (now_ns < timers->look_ns) {
        return true;
    }
    timers->look_ns = now_ns + LOOK_NS;
    key_look(site);
    return link_look(&site->config->inner, site->inner) && link_look(&site->config->outer, site->outer);
}

int gateway_site_run(struct gateway_site *site, struct app_signals *signals)
{
    const struct gateway_config *config = site->config;
    uint64_t now_ns = cw_clock_ns();
    struct timers timers = {.end_ns = UINT64_MAX, .stats_ns = UINT64_MAX, .look_ns = now_ns + LOOK_NS};
    int code = APP_EXIT_SUCCESS;
    if (config->seconds > 0) {
        timers.end_ns = now_ns + config->seconds * 1000000000ull;
    }
    if (config->stats_interval_ns > 0) {
        timers.stats_ns = now_ns + config->stats_interval_ns;
    }
    site->nap_ns = NAP_MIN_NS;
    while (!signals->stop && now_ns < timers.end_ns) {
        cw_endpoint_fetch(site->endpoint); /* before the clock: see there */
        now_ns = cw_clock_ns();
        if (!duties_do(site, &timers, signals, now_ns)) {
            code = APP_EXIT_MACHINE;
            break;
        }
        uint32_t work = cw_gate_turn(site->gate, now_ns);
        if (work >= BUSY_MIN) {
            cw_endpoint_busy(site->endpoint, cw_clock_ns() - now_ns);
        }
        if (work > 0) {
            site->idle_since_ns = 0;
            site->nap_ns = NAP_MIN_NS;
        } else {
            idle(site, &timers, now_ns);
        }
    }
    gateway_stats_write(site, cw_clock_ns());
    gateway_report(site, cw_clock_ns());
    return code;
}
