/* When the switch turns, and when it sleeps. */
#include "apps/switch/command.h"
#include "apps/switch/fabric.h"
#include "apps/switch/stats.h"
#include "apps/switch/wan.h"

#include <sched.h>
#include <time.h>

#include "dataplane/base/clock.h"
#include "dataplane/port/doorbell.h"

/* Looks for frames for so long, letting others run in between, before it sleeps: a wake-up takes several times as long
 * as forwarding. It never just spins: on cores shared by all that takes the core from the process that would send
 * next. */
#define YIELD_NS 70000ull
/* A sleep ends some 60 us late at the worst: for earlier deadlines the thread polls. */
#define SLEEP_MIN_NS    100000ull
#define SLEEP_MARGIN_NS 60000ull
/* Signals that come just before the sleep and connections that change in it are noticed so late. */
#define SLEEP_MAX_NS  20000000ull
#define FULL_RETRY_NS 200000ull
/* Between two polls of the control socket. */
#define COMMAND_LOOK_NS 1000000ull
/* For ports that cannot ring: shorter ones would take more than a hundredth of a core. */
#define NAP_MIN_NS 50000ull
#define NAP_MAX_NS 5000000ull

struct timers {
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t report_ns;
    uint64_t sample_ns;
    uint64_t command_ns; /* of the next look; not waited for: sleeps are short enough */
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The next deadline if no frame arrives. */
static uint64_t find_deadline(const struct switch_fabric *fabric, const struct timers *timers, uint64_t now_ns)
{
    uint64_t deadline_ns = earlier(timers->end_ns, earlier(timers->report_ns, timers->sample_ns));
    if (fabric->heap.count > 0) {
        deadline_ns = earlier(deadline_ns, fabric->heap.entries[0].time_ns);
    }
    for (uint32_t i = 0; i < fabric->config->port_count; i++) {
        if (fabric->ports[i].pending_count > 0) {
            deadline_ns = earlier(deadline_ns, now_ns + FULL_RETRY_NS);
        }
    }
    return deadline_ns;
}

static void pause_thread(uint64_t duration_ns)
{
    struct timespec time = {.tv_sec = (time_t)(duration_ns / 1000000000), .tv_nsec = (long)(duration_ns % 1000000000)};
    nanosleep(&time, NULL);
}

/* Blocks until a client rings, or for `timeout_ns`. */
static void fabric_sleep(struct switch_fabric *fabric, uint64_t timeout_ns)
{
    timeout_ns = earlier(timeout_ns, SLEEP_MAX_NS);
    if (fabric->naps) {
        timeout_ns = earlier(timeout_ns, fabric->nap_ns);
        fabric->nap_ns = earlier(2 * fabric->nap_ns, NAP_MAX_NS);
    }
    if (fabric->bell == NULL) {
        pause_thread(timeout_ns);
        return;
    }
    cw_doorbell_arm(fabric->bell);
    bool busy = switch_fabric_turn(fabric, cw_clock_ns()) > 0;
    bool rung = !busy && cw_doorbell_wait(fabric->bell, timeout_ns);
    cw_doorbell_disarm(fabric->bell);
    if (busy || rung) {
        fabric->idle_since_ns = 0;
    }
}

/* Nothing was to be done: lets others run, then sleeps. */
static void fabric_idle(struct switch_fabric *fabric, const struct timers *timers, uint64_t now_ns)
{
    if (fabric->config->dedicated) {
        return;
    }
    if (fabric->idle_since_ns == 0) {
        fabric->idle_since_ns = now_ns;
    }
    uint64_t idle_ns = now_ns - fabric->idle_since_ns;
    if (idle_ns < YIELD_NS && cw_yield_policy_yield(&fabric->yield_policy, now_ns)) {
        return;
    }
    uint64_t deadline_ns = find_deadline(fabric, timers, now_ns);
    if (deadline_ns < now_ns + SLEEP_MIN_NS) {
        sched_yield();
        return;
    }
    fabric_sleep(fabric, deadline_ns - now_ns - SLEEP_MARGIN_NS);
}

/* The first time of a regular one that is yet to come. */
static uint64_t time_after(uint64_t due_ns, uint64_t interval_ns, uint64_t now_ns)
{
    return due_ns + ((now_ns - due_ns) / interval_ns + 1) * interval_ns;
}

static void sample(struct switch_fabric *fabric, const struct timers *timers, uint64_t now_ns)
{
    if (fabric->stats != NULL) {
        switch_stats_sample(fabric->stats, fabric->lines, now_ns - timers->start_ns, now_ns);
    }
}

/* A sample of the frames that have arrived by its time, even if the switch is late: due frames go first. False: more
 * are due than a turn delivers. */
static bool sample_due(struct switch_fabric *fabric, const struct timers *timers, uint64_t now_ns)
{
    fabric->now_ns = now_ns;
    (void)switch_wan_release(fabric);
    if (switch_fabric_is_behind(fabric, now_ns)) {
        return false;
    }
    sample(fabric, timers, now_ns);
    return true;
}

/* Periodic duties other than forwarding. */
static void duties_do(struct switch_fabric *fabric, struct timers *timers, struct app_signals *signals, uint64_t now_ns)
{
    uint64_t interval_ns = fabric->config->stats_interval_ns;
    if (now_ns >= timers->sample_ns && sample_due(fabric, timers, now_ns)) {
        timers->sample_ns = time_after(timers->sample_ns, interval_ns, now_ns);
    }
    if (signals->report || now_ns >= timers->report_ns) {
        signals->report = 0;
        if (now_ns >= timers->report_ns) {
            timers->report_ns = time_after(timers->report_ns, interval_ns, now_ns);
        }
        switch_fabric_report(fabric, now_ns - timers->start_ns);
    }
    if (now_ns >= timers->command_ns) {
        timers->command_ns = now_ns + COMMAND_LOOK_NS;
        switch_command_poll(fabric->command, fabric);
    }
}

void switch_fabric_run(struct switch_fabric *fabric, struct app_signals *signals)
{
    const struct switch_config *config = fabric->config;
    struct timers timers = {.start_ns = cw_clock_ns(),
                            .end_ns = UINT64_MAX,
                            .report_ns = UINT64_MAX,
                            .sample_ns = UINT64_MAX,
                            .command_ns = fabric->command != NULL ? 0 : UINT64_MAX};
    if (config->seconds > 0) {
        timers.end_ns = timers.start_ns + config->seconds * 1000000000ull;
    }
    if (config->stats_interval_ns > 0) {
        uint64_t *due_ns = fabric->stats != NULL ? &timers.sample_ns : &timers.report_ns;
        *due_ns = timers.start_ns + config->stats_interval_ns;
    }
    fabric->nap_ns = NAP_MIN_NS;
    while (!signals->stop) {
        uint64_t now_ns = cw_clock_ns();
        if (now_ns >= timers.end_ns) {
            break;
        }
        duties_do(fabric, &timers, signals, now_ns);
        if (switch_fabric_turn(fabric, now_ns) > 0) {
            fabric->idle_since_ns = 0;
            fabric->nap_ns = NAP_MIN_NS;
        } else {
            fabric_idle(fabric, &timers, now_ns);
        }
    }
    uint64_t now_ns = cw_clock_ns();
    sample(fabric, &timers, now_ns);
    switch_fabric_report(fabric, now_ns - timers.start_ns);
}
