#include "apps/plan/puts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "apps/plan/puts_state.h"
#include "dataplane/limits.h"

#define AGAIN_FIRST_NS 1000ull /* what was refused is tried again after this, then twice as late each time */
#define AGAIN_MAX_NS   1000000ull
#define STEP_NS        1000000ull

void plan_puts_options_init(struct plan_puts_options *options)
{
    *options = (struct plan_puts_options){
        .seed = 1,
        .runs = 1,
        .rate_bps = 10000000000ull,
        .delay_ns = 20000,
        .wan_rate_bps = 1000000000ull,
        .wan_delay_ns = 5000000,
        .slots_kept_max = 32,
        .crash_rank = PLAN_PUTS_NOBODY,
        .limit_ns = 10000000000ull,
    };
    cw_endpoint_config_init(&options->endpoint);
    options->endpoint.region_count_max = 8;
    options->endpoint.pool_slot_count = CW_DEFAULT_SLOTS; /* as many as MPI's endpoints have */
    options->endpoint.pool_slot_bytes = 4096;
    options->endpoint.reassembly_count_max = 4096;
}

uint64_t plan_puts_message_bytes(const struct cw_plan *plan)
{
    uint64_t longest = 0;
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        const struct cw_schedule *schedule = &plan->schedules[rank];
        for (uint32_t i = 0; i < schedule->op_count; i++) {
            bool eager = (schedule->ops[i].flags & CW_OP_EAGER) != 0;
            longest = eager && schedule->ops[i].bytes > longest ? schedule->ops[i].bytes : longest;
        }
    }
    return longest;
}

int plan_puts_fail(struct plan_puts *world, const char *format, ...)
{
    if (!world->failed) {
        va_list arguments;
        world->failed = true;
        int used = snprintf(world->error, world->error_bytes,
                            "%s %s, seed %llu: ", cw_collective_name(world->plan->problem->collective),
                            world->plan->algorithm, (unsigned long long)world->options->seed);
        if (used > 0 && (size_t)used < world->error_bytes) {
            va_start(arguments, format);
            vsnprintf(world->error + used, world->error_bytes - (size_t)used, format, arguments);
            va_end(arguments);
        }
    }
    return -1;
}

/* ---- A rank's turn ---- */

/* Gives the transport what the endpoint reports. */
static void events_deliver(struct plan_puts_rank *rank)
{
    struct cw_event events[PLAN_PUTS_EVENTS];
    uint32_t count;
    while ((count = cw_endpoint_events(rank->endpoint, events, PLAN_PUTS_EVENTS)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            const struct cw_event *event = &events[i];
            if (cw_puts_transport_deliver(rank->transport, event) == CW_ERROR_NOT_FOUND &&
                event->kind != CW_EVENT_PEER_UP && event->kind != CW_EVENT_PEER_DOWN) {
                plan_puts_fail(rank->world, "rank %u: an event for lane %u", rank->rank, cw_lane(event->lane_tag));
            }
        }
    }
}

static void run_begin(struct plan_puts_rank *rank, uint64_t now_ns)
{
    struct plan_puts *world = rank->world;
    if (rank->run > 0) {
        cw_execution_reset(rank->execution);
        cw_puts_transport_begin(rank->transport);
    }
    plan_buffers_fill(&world->buffers, &world->truths[rank->run % world->truth_count], rank->rank, &world->random);
    rank->state = PLAN_PUTS_RUNNING;
    rank->probe_ns = now_ns + world->options->endpoint.failure_timeout_ns / 10;
}

/* The rank is through with a run. */
static void run_end(struct plan_puts_rank *rank, uint64_t now_ns)
{
    struct plan_puts *world = rank->world;
    const struct plan_puts_options *options = world->options;
    char reason[200];
    if (plan_buffers_judge(&world->buffers, &world->truths[rank->run % world->truth_count], rank->rank, reason,
                           sizeof(reason)) != 0) {
        plan_puts_fail(world, "run %u: %s", rank->run, reason);
    }
    if (rank->run == 0) {
        world->report->first_ns = now_ns - world->run_begin_ns;
    }
    world->report->last_ns = now_ns - world->run_begin_ns;
    if (options->times_ns != NULL) {
        options->times_ns[rank->run] = now_ns - world->run_begin_ns;
    }
    world->report->total_ns = now_ns;
    rank->run++;
    world->through++;
    rank->state = rank->run == options->runs ? PLAN_PUTS_DONE : PLAN_PUTS_AWAY;
    rank->begin_ns = options->together ? UINT64_MAX : now_ns;
    if (options->together && world->through == world->plan->problem->ranks && rank->run < options->runs) {
        world->through = 0;
        world->run_begin_ns = now_ns + options->delay_ns + options->wan_delay_ns; /* nothing is under way by then */
        if (rank->run == 1) {
            plan_puts_count_first(world);
        }
        for (uint32_t i = 0; i < world->plan->problem->ranks; i++) {
            world->ranks[i].begin_ns = world->run_begin_ns;
            sim_host_wake(&world->hosts.list[i]);
        }
    }
}

static void rank_poll(struct plan_puts_rank *rank, uint64_t now_ns)
{
    char text[400];
    int status = cw_execution_poll(rank->execution);
    if (status == CW_OK) {
        run_end(rank, now_ns);
    } else if (status != CW_ERROR_AGAIN) {
        const char *failure = cw_puts_transport_failure(rank->transport);
        cw_execution_describe(rank->execution, text, sizeof(text));
        plan_puts_fail(rank->world, "%s (%s)", text, failure != NULL ? failure : cw_status_text(status));
        rank->state = PLAN_PUTS_FAILED;
        (void)cw_puts_transport_abort(rank->transport);
    }
}

/* When something was refused and nothing else will wake the rank up. */
static void again_set(struct plan_puts_rank *rank, uint64_t now_ns)
{
    uint64_t refusals = cw_puts_transport_refusals(rank->transport);
    bool refused = refusals != rank->refusals;
    rank->refusals = refusals;
    if (!refused) {
        rank->again_ns = UINT64_MAX;
        rank->again_delay_ns = AGAIN_FIRST_NS;
        return;
    }
    rank->again_ns = now_ns + rank->again_delay_ns;
    rank->again_delay_ns = rank->again_delay_ns < AGAIN_MAX_NS ? rank->again_delay_ns * 2 : AGAIN_MAX_NS;
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t rank_turn(struct sim_host *host, uint64_t now_ns)
{
    struct plan_puts *world = host->hosts->config.owner;
    struct plan_puts_rank *rank = &world->ranks[host->node];
    (void)cw_endpoint_turn(rank->endpoint, now_ns);
    events_deliver(rank);
    uint32_t open = cw_puts_transport_open(rank->transport);
    for (bool more = true; more;) {
        more = false;
        if (rank->state == PLAN_PUTS_AWAY && now_ns >= rank->begin_ns) {
            run_begin(rank, now_ns);
        }
        if (rank->state == PLAN_PUTS_RUNNING) {
            rank_poll(rank, now_ns);
            more = rank->state == PLAN_PUTS_AWAY && now_ns >= rank->begin_ns;
        } else if (rank->state == PLAN_PUTS_FAILED) {
            (void)cw_puts_transport_abort(rank->transport);
        }
    }
    again_set(rank, now_ns);
    uint64_t deadline_ns = earliest(cw_endpoint_deadline(rank->endpoint), rank->again_ns);
    if (cw_puts_transport_open(rank->transport) > open) {
        deadline_ns = now_ns; /* what was posted leaves with the next turn */
    }
    if (rank->state == PLAN_PUTS_RUNNING) {
        if (now_ns >= rank->probe_ns) {
            cw_puts_transport_probe(rank->transport);
            rank->probe_ns = now_ns + rank->world->options->endpoint.failure_timeout_ns / 10;
        }
        deadline_ns = earliest(deadline_ns, rank->probe_ns);
    }
    return rank->state == PLAN_PUTS_AWAY ? earliest(deadline_ns, rank->begin_ns) : deadline_ns;
}

/* ---- The run as a whole ---- */

static void crash(void *context)
{
    plan_puts_crash(context);
}

/* Ranks that are not through. */
static uint32_t unfinished(const struct plan_puts *world)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->plan->problem->ranks; i++) {
        enum plan_puts_state state = world->ranks[i].state;
        count += state == PLAN_PUTS_AWAY || state == PLAN_PUTS_RUNNING ? 1 : 0;
    }
    return count;
}

static void limit_reached(struct plan_puts *world)
{
    char text[3000] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < world->plan->problem->ranks && used + 1 < sizeof(text); i++) {
        if (world->ranks[i].state == PLAN_PUTS_RUNNING) {
            char what[300];
            cw_execution_describe(world->ranks[i].execution, what, sizeof(what));
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s, run %u", used > 0 ? " | " : "", what,
                                     world->ranks[i].run);
        }
    }
    plan_puts_fail(world, "not through after %.3f s of virtual time: %s", (double)world->options->limit_ns / 1e9, text);
}

static void run(struct plan_puts *world)
{
    const struct plan_puts_options *options = world->options;
    for (uint32_t i = 0; i < world->plan->problem->ranks; i++) {
        world->ranks[i].begin_ns =
            options->enter_delay_max_ns > 0 ? cw_random_below(&world->random, options->enter_delay_max_ns) : 0;
        world->ranks[i].again_ns = UINT64_MAX;
    }
    if (options->crash_rank != PLAN_PUTS_NOBODY && cw_simulator_at(world->hosts.simulator, options->crash_ns, crash,
                                                                   &world->ranks[options->crash_rank]) != CW_OK) {
        plan_puts_fail(world, "the crash cannot be arranged");
        return;
    }
    while (unfinished(world) > 0 && sim_hosts_now(&world->hosts) < options->limit_ns) {
        sim_hosts_run(&world->hosts, STEP_NS);
    }
    if (unfinished(world) > 0) {
        limit_reached(world);
    }
}

int plan_puts_run(const struct cw_plan *plan, const struct plan_puts_options *options, struct plan_puts_report *report,
                  char *error, size_t error_bytes)
{
    struct plan_puts world = {
        .plan = plan, .options = options, .report = report, .error = error, .error_bytes = error_bytes};
    *report = (struct plan_puts_report){0};
    if (plan_puts_world_create(&world, rank_turn) == 0) {
        run(&world);
        plan_puts_summarise(&world);
    }
    plan_puts_world_dispose(&world);
    return world.failed ? -1 : 0;
}

bool plan_wan_take(const char *text, enum plan_puts_wan *wan)
{
    static const char *const names[] = {
        [PLAN_PUTS_WAN_KNOWN] = "known",
        [PLAN_PUTS_WAN_FOUND] = "found",
        [PLAN_PUTS_WAN_LAN] = "lan",
        [PLAN_PUTS_WAN_FREE] = "free",
    };
    for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *wan = (enum plan_puts_wan)i;
            return true;
        }
    }
    app_error("no such way to send to other clusters", text, "--wan known, found, lan or free");
    return false;
}
