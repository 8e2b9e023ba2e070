#include "plan_run.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/execute.h"
#include "collectives/transport_memory.h"
#include "dataplane/fabric/random.h"
#include "dataplane/status.h"
#include "plan_buffers.h"

enum {
    NUDGES_MAX = 64, /* rounds of polls for nothing before it counts as a deadlock */
    NO_RANK = UINT32_MAX,
};

struct runner_rank {
    struct plan_runner *runner;
    struct cw_execution *execution;
    bool entered;
    bool done;
    bool deferred; /* has ready ops that it was told not to start yet */
};

/* How a seed treats the ranks. */
enum entering { ENTER_AT_ONCE, ENTER_NOW_AND_THEN, ENTER_LAST, ENTER_COUNT };

/* Which of the ready ops start. The one that has been ready for longest may starve: it starts when nothing else can happen. */
enum picking { PICK_ANY, PICK_FIRST, PICK_LAST, PICK_STARVE_FIRST, PICK_COUNT };

struct plan_runner {
    const struct cw_plan *plan;
    struct runner_rank *ranks;
    struct plan_buffers buffers;
    struct cw_memory_fabric *fabric;
    struct cw_random random;
    uint32_t *waiting; /* ranks that have not entered */
    uint32_t waiting_count;
    uint32_t done_count;
    uint32_t *deferred; /* ranks that are */
    uint32_t deferred_count;
    enum entering entering;
    enum picking picking;
    uint32_t victim;       /* the rank to which that applies; NO_RANK: all */
    uint32_t defer_chance; /* of 256: that no op starts for now */
    bool forcing;          /* the next op must start */
    uint32_t step_chance;  /* of 256: that the fabric goes on rather than a rank */
    uint32_t slow_rank;    /* polled only if no other has to be; or NO_RANK */
    bool unclean;          /* the last run failed: its executions cannot be used again */
    uint64_t seed;
    uint32_t eager_buffers;
    char *error;
    size_t error_bytes;
};

__attribute__((format(printf, 2, 3))) static int fail(struct plan_runner *runner, const char *format, ...)
{
    va_list arguments;
    char reason[600];
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    snprintf(runner->error, runner->error_bytes, "%s %s, seed %llu, %u eager buffers: %s",
             cw_collective_name(runner->plan->problem->collective), runner->plan->algorithm,
             (unsigned long long)runner->seed, runner->eager_buffers, reason);
    return -1;
}

static uint32_t draw(struct plan_runner *runner, uint32_t bound)
{
    return (uint32_t)cw_random_below(&runner->random, bound);
}

static uint32_t defer(struct runner_rank *rank, uint32_t count)
{
    struct plan_runner *runner = rank->runner;
    if (!rank->deferred) {
        rank->deferred = true;
        runner->deferred[runner->deferred_count++] = (uint32_t)(rank - runner->ranks);
    }
    return count;
}

static uint32_t pick(void *context, uint32_t count)
{
    struct runner_rank *rank = context;
    struct plan_runner *runner = rank->runner;
    bool forced = runner->forcing;
    runner->forcing = false;
    if (runner->victim != NO_RANK && rank != &runner->ranks[runner->victim]) {
        return draw(runner, count);
    }
    if (!forced && runner->defer_chance > 0 && draw(runner, 256) < runner->defer_chance) {
        return defer(rank, count);
    }
    switch (runner->picking) {
    case PICK_FIRST:
        return 0;
    case PICK_LAST:
        return count - 1;
    case PICK_STARVE_FIRST: /* what is taken leaves its place to the last one, so the first stays the first */
        if (count == 1) {
            return forced ? 0 : defer(rank, count);
        }
        return 1 + draw(runner, count - 1);
    default:
        return draw(runner, count);
    }
}

static void reduce(void *context, void *to, const void *left, const void *right, uint64_t count)
{
    const struct cw_problem *problem = ((const struct plan_runner *)context)->plan->problem;
    plan_combine(problem->ordered, to, left, right, count * problem->element_bytes);
}

/* ---- Executions ---- */

static void executions_destroy(struct plan_runner *runner)
{
    for (uint32_t rank = 0; rank < runner->plan->problem->ranks; rank++) {
        cw_execution_destroy(runner->ranks[rank].execution);
        runner->ranks[rank].execution = NULL;
    }
}

static int executions_create(struct plan_runner *runner)
{
    const struct cw_problem *problem = runner->plan->problem;
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        runner->ranks[rank].runner = runner;
        struct cw_execution_request request = {
            .schedule = &runner->plan->schedules[rank],
            .ranks = problem->ranks,
            .element_bytes = problem->element_bytes,
            .transport = cw_memory_fabric_transport(runner->fabric, rank),
            .reduce = reduce,
            .reduce_context = runner,
            .pick = pick,
            .pick_context = &runner->ranks[rank],
        };
        memcpy(request.buffers, runner->buffers.ranks[rank].at, sizeof(request.buffers));
        int status = cw_execution_create(&request, &runner->ranks[rank].execution);
        if (status != CW_OK) {
            return fail(runner, "rank %u: execution: %s", rank, cw_status_text(status));
        }
    }
    return 0;
}

static int executions_begin(struct plan_runner *runner)
{
    if (runner->unclean) {
        executions_destroy(runner);
        return executions_create(runner);
    }
    for (uint32_t rank = 0; rank < runner->plan->problem->ranks; rank++) {
        cw_execution_reset(runner->ranks[rank].execution);
    }
    return 0;
}

/* ---- Running ---- */

static int rank_poll(struct plan_runner *runner, uint32_t rank)
{
    struct runner_rank *of = &runner->ranks[rank];
    if (of->done) {
        return fail(runner, "rank %u is through, but something arrives that it has no wait for", rank);
    }
    int status = cw_execution_poll(of->execution);
    const char *fault = cw_memory_fabric_fault(runner->fabric);
    if (fault != NULL) {
        return fail(runner, "%s", fault);
    }
    if (status == CW_ERROR_AGAIN) {
        return 0;
    }
    if (status != CW_OK) {
        char text[400];
        cw_execution_describe(of->execution, text, sizeof(text));
        return fail(runner, "%s (%s)", text, cw_status_text(status));
    }
    if (runner->plan->problem->collective == CW_BARRIER && runner->waiting_count > 0) {
        return fail(runner, "rank %u leaves the barrier before rank %u has entered", rank, runner->waiting[0]);
    }
    of->done = true;
    runner->done_count++;
    return 0;
}

static int rank_enter(struct plan_runner *runner)
{
    uint32_t chosen = draw(runner, runner->waiting_count);
    uint32_t rank = runner->waiting[chosen];
    runner->waiting[chosen] = runner->waiting[--runner->waiting_count];
    cw_memory_fabric_enter(runner->fabric, rank, runner->buffers.ranks[rank].at, runner->buffers.ranks[rank].bytes);
    runner->ranks[rank].entered = true;
    return rank_poll(runner, rank);
}

/* A rank that has something to be polled for. */
static uint32_t awake_choose(struct plan_runner *runner)
{
    uint32_t count = cw_memory_fabric_awake(runner->fabric);
    uint32_t chosen = draw(runner, count);
    uint32_t rank = cw_memory_fabric_awake_rank(runner->fabric, chosen);
    if (rank == runner->slow_rank && count > 1) {
        rank = cw_memory_fabric_awake_rank(runner->fabric, (chosen + 1) % count);
    }
    return rank;
}

static int deadlock(struct plan_runner *runner)
{
    char text[500] = "";
    size_t used = 0;
    for (uint32_t rank = 0; rank < runner->plan->problem->ranks && used + 1 < sizeof(text); rank++) {
        if (!runner->ranks[rank].done) {
            char what[300];
            cw_execution_describe(runner->ranks[rank].execution, what, sizeof(what));
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used > 0 ? " | " : "", what);
        }
    }
    return fail(runner, "deadlock: %s", text);
}

/* Nothing is under way and nobody has anything to be polled for: refused puts may be left, and ops beyond the limit of one poll. */
static int nudge(struct plan_runner *runner)
{
    uint32_t done_before = runner->done_count;
    for (uint32_t round = 0; round < NUDGES_MAX; round++) {
        for (uint32_t rank = 0; rank < runner->plan->problem->ranks; rank++) {
            if (!runner->ranks[rank].done && rank_poll(runner, rank) != 0) {
                return -1;
            }
        }
        if (runner->done_count > done_before || runner->deferred_count > 0 ||
            cw_memory_fabric_awake(runner->fabric) > 0 || cw_memory_fabric_step(runner->fabric)) {
            return 0;
        }
    }
    return deadlock(runner);
}

/* Lets a rank start one of the ops that it has put off. */
static int deferred_poll(struct plan_runner *runner)
{
    uint32_t chosen = draw(runner, runner->deferred_count);
    uint32_t rank = runner->deferred[chosen];
    runner->deferred[chosen] = runner->deferred[--runner->deferred_count];
    runner->ranks[rank].deferred = false;
    if (runner->ranks[rank].done) {
        return 0; /* it has been polled since then */
    }
    runner->forcing = true;
    int result = rank_poll(runner, rank);
    runner->forcing = false;
    return result;
}

/* Nothing usual can happen any more: one of the things that were to come last. */
static int last_resort(struct plan_runner *runner)
{
    for (uint32_t i = draw(runner, 3), end = i + 3; i < end; i++) {
        if (i % 3 == 0 && runner->waiting_count > 0) {
            return rank_enter(runner);
        }
        if (i % 3 == 1 && runner->deferred_count > 0) {
            return deferred_poll(runner);
        }
        if (i % 3 == 2 && cw_memory_fabric_step(runner->fabric)) {
            return 0;
        }
    }
    return nudge(runner);
}

/* One thing happens. */
static int turn(struct plan_runner *runner)
{
    bool starving = cw_memory_fabric_starving(runner->fabric);
    if (runner->waiting_count > 0 &&
        (runner->entering == ENTER_AT_ONCE || (runner->entering == ENTER_NOW_AND_THEN && draw(runner, 8) == 0))) {
        return rank_enter(runner);
    }
    if (!starving && draw(runner, 256) < runner->step_chance && cw_memory_fabric_step(runner->fabric)) {
        return 0;
    }
    if (runner->deferred_count > 0 && runner->picking != PICK_STARVE_FIRST && draw(runner, 4) == 0) {
        return deferred_poll(runner);
    }
    if (cw_memory_fabric_awake(runner->fabric) > 0) {
        return rank_poll(runner, awake_choose(runner));
    }
    if (!starving && cw_memory_fabric_step(runner->fabric)) {
        return 0;
    }
    return last_resort(runner);
}

static int begin(struct plan_runner *runner)
{
    static const uint32_t chances[] = {0, 128, 240, 256};
    static const uint32_t defer_chances[] = {0, 0, 32, 192};
    uint32_t ranks = runner->plan->problem->ranks;
    cw_random_seed(&runner->random, cw_random_derive(runner->seed, 1));
    cw_memory_fabric_reset(runner->fabric, cw_random_derive(runner->seed, 2), runner->eager_buffers);
    if (executions_begin(runner) != 0) {
        return -1;
    }
    plan_buffers_spoil(&runner->buffers, &runner->random);
    runner->entering = (enum entering)draw(runner, ENTER_COUNT);
    runner->picking = (enum picking)draw(runner, PICK_COUNT);
    runner->victim = draw(runner, 2) == 0 ? draw(runner, ranks) : NO_RANK;
    runner->defer_chance = defer_chances[draw(runner, 4)];
    runner->step_chance = chances[draw(runner, 4)];
    runner->slow_rank = draw(runner, 2) == 0 ? draw(runner, ranks) : NO_RANK;
    runner->done_count = 0;
    runner->deferred_count = 0;
    runner->forcing = false;
    runner->waiting_count = ranks;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        runner->waiting[rank] = rank;
        runner->ranks[rank].entered = false;
        runner->ranks[rank].done = false;
        runner->ranks[rank].deferred = false;
    }
    /* some enter at once in any case: how many is drawn, too */
    for (uint32_t left = draw(runner, ranks + 1); left > 0 && runner->entering == ENTER_LAST; left--) {
        if (rank_enter(runner) != 0) {
            return -1;
        }
    }
    return 0;
}

static int judge(struct plan_runner *runner)
{
    while (cw_memory_fabric_step(runner->fabric)) {
    }
    const char *fault = cw_memory_fabric_fault(runner->fabric);
    if (fault != NULL) {
        return fail(runner, "%s", fault);
    }
    if (cw_memory_fabric_awake(runner->fabric) > 0) {
        return fail(runner, "rank %u is through, but something arrives that it has no wait for",
                    cw_memory_fabric_awake_rank(runner->fabric, 0));
    }
    char reason[200];
    return plan_buffers_judge(&runner->buffers, reason, sizeof(reason)) == 0 ? 0 : fail(runner, "%s", reason);
}

int plan_runner_run(struct plan_runner *runner, uint64_t seed, uint32_t eager_buffers, char *error, size_t error_bytes)
{
    runner->seed = seed;
    runner->eager_buffers = eager_buffers;
    runner->error = error;
    runner->error_bytes = error_bytes;
    int result = begin(runner);
    while (result == 0 && runner->done_count < runner->plan->problem->ranks) {
        result = turn(runner);
    }
    if (result == 0) {
        result = judge(runner);
    }
    runner->unclean = result != 0;
    return result;
}

/* ---- Life ---- */

static int create(struct plan_runner *runner, uint64_t salt)
{
    const struct cw_problem *problem = runner->plan->problem;
    struct cw_memory_fabric_request request = {.ranks = problem->ranks};
    char reason[200];
    if (plan_buffers_create(&runner->buffers, runner->plan, salt, reason, sizeof(reason)) != 0) {
        return fail(runner, "%s", reason);
    }
    runner->ranks = calloc(problem->ranks, sizeof(*runner->ranks));
    runner->waiting = calloc(problem->ranks, sizeof(*runner->waiting));
    runner->deferred = calloc(problem->ranks, sizeof(*runner->deferred));
    if (runner->ranks == NULL || runner->waiting == NULL || runner->deferred == NULL ||
        cw_memory_fabric_create(&request, &runner->fabric) != CW_OK) {
        return fail(runner, "no memory");
    }
    return executions_create(runner);
}

int plan_runner_create(const struct cw_plan *plan, uint64_t salt, struct plan_runner **runner, char *error,
                       size_t error_bytes)
{
    struct plan_runner *created = calloc(1, sizeof(*created));
    assert(created != NULL);
    created->plan = plan;
    created->error = error;
    created->error_bytes = error_bytes;
    if (create(created, salt) != 0) {
        plan_runner_destroy(created);
        return -1;
    }
    *runner = created;
    return 0;
}

void plan_runner_destroy(struct plan_runner *runner)
{
    if (runner == NULL) {
        return;
    }
    if (runner->ranks != NULL) {
        executions_destroy(runner);
    }
    cw_memory_fabric_destroy(runner->fabric);
    plan_buffers_dispose(&runner->buffers);
    free(runner->ranks);
    free(runner->waiting);
    free(runner->deferred);
    free(runner);
}

int plan_run(const struct cw_plan *plan, uint64_t seed, uint32_t eager_buffers, char *error, size_t error_bytes)
{
    struct plan_runner *runner = NULL;
    if (plan_runner_create(plan, seed, &runner, error, error_bytes) != 0) {
        return -1;
    }
    int result = plan_runner_run(runner, seed, eager_buffers, error, error_bytes);
    plan_runner_destroy(runner);
    return result;
}
