#include "tests/schedules/trial.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/execute/execute.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/schedules/buffers.h"
#include "tests/schedules/transport_memory.h"

enum {
    NUDGES_MAX = 64, /* rounds of polls for nothing before it counts as a deadlock */
    NO_RANK = UINT32_MAX,
};

struct trial_rank {
    struct plan_trial *trial;
    struct cw_execution *execution;
    bool entered;
    bool done;
    bool deferred; /* has ready ops that it must not start yet */
};

/* How a seed treats the ranks. */
enum entering { ENTER_AT_ONCE, ENTER_NOW_AND_THEN, ENTER_LAST, ENTER_COUNT };

/* Which of the ready ops start. The one that has been ready for longest may starve: it starts when nothing else can
 * happen. */
enum picking { PICK_ANY, PICK_FIRST, PICK_LAST, PICK_STARVE_FIRST, PICK_COUNT };

struct plan_trial {
    const struct cw_plan *plan;
    struct trial_rank *ranks;
    struct plan_buffers buffers;
    struct plan_truth truth;
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
    uint32_t step_chance;  /* of 256: that the fabric advances rather than a rank */
    uint32_t slow_rank;    /* polled only if no other must be; or NO_RANK */
    bool unclean;          /* the last run failed: its executions cannot be used again */
    bool running;          /* with the seed and the buffers below; else it is being made */
    uint64_t seed;
    uint32_t eager_buffers;
    char *error;
    size_t error_bytes;
};

__attribute__((format(printf, 2, 3))) static int fail(struct plan_trial *trial, const char *format, ...)
{
    va_list arguments;
    char reason[3200];
    char run[80] = "";
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    if (trial->running) {
        snprintf(run, sizeof(run), ", seed %llu, %u eager buffers", (unsigned long long)trial->seed,
                 trial->eager_buffers);
    }
    snprintf(trial->error, trial->error_bytes, "%s %s%s: %s", cw_collective_name(trial->plan->problem->collective),
             trial->plan->algorithm, run, reason);
    return -1;
}

static uint32_t draw(struct plan_trial *trial, uint32_t bound)
{
    return (uint32_t)cw_random_below(&trial->random, bound);
}

static uint32_t defer(struct trial_rank *rank, uint32_t count)
{
    struct plan_trial *trial = rank->trial;
    if (!rank->deferred) {
        rank->deferred = true;
        trial->deferred[trial->deferred_count++] = (uint32_t)(rank - trial->ranks);
    }
    return count;
}

static uint32_t pick(void *context, uint32_t count)
{
    struct trial_rank *rank = context;
    struct plan_trial *trial = rank->trial;
    bool forced = trial->forcing;
    trial->forcing = false;
    if (trial->victim != NO_RANK && rank != &trial->ranks[trial->victim]) {
        return draw(trial, count);
    }
    if (!forced && trial->defer_chance > 0 && draw(trial, 256) < trial->defer_chance) {
        return defer(rank, count);
    }
    switch (trial->picking) {
    case PICK_FIRST:
        return 0;
    case PICK_LAST:
        return count - 1;
    case PICK_STARVE_FIRST: /* the last one replaces the removed one, so the first stays the first */
        if (count == 1) {
            return forced ? 0 : defer(rank, count);
        }
        return 1 + draw(trial, count - 1);
    default:
        return draw(trial, count);
    }
}

static void reduce(void *context, void *to, const void *left, const void *right, uint64_t count)
{
    const struct cw_problem *problem = ((const struct plan_trial *)context)->plan->problem;
    plan_combine(problem->ordered, to, left, right, count * problem->element_bytes);
}

/* ---- Executions ---- */

static void executions_destroy(struct plan_trial *trial)
{
    for (uint32_t rank = 0; rank < trial->plan->problem->ranks; rank++) {
        cw_execution_destroy(trial->ranks[rank].execution);
        trial->ranks[rank].execution = NULL;
    }
}

static int executions_create(struct plan_trial *trial)
{
    const struct cw_problem *problem = trial->plan->problem;
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        trial->ranks[rank].trial = trial;
        struct cw_execution_request request = {
            .schedule = &trial->plan->schedules[rank],
            .ranks = problem->ranks,
            .element_bytes = problem->element_bytes,
            .transport = cw_memory_fabric_transport(trial->fabric, rank),
            .reduce = reduce,
            .reduce_context = trial,
            .pick = pick,
            .pick_context = &trial->ranks[rank],
        };
        memcpy(request.buffers, trial->buffers.ranks[rank].at, sizeof(request.buffers));
        int status = cw_execution_create(&request, &trial->ranks[rank].execution);
        if (status != CW_OK) {
            return fail(trial, "rank %u: execution: %s", rank, cw_status_text(status));
        }
    }
    return 0;
}

static int executions_begin(struct plan_trial *trial)
{
    if (trial->unclean) {
        executions_destroy(trial);
        return executions_create(trial);
    }
    for (uint32_t rank = 0; rank < trial->plan->problem->ranks; rank++) {
        cw_execution_reset(trial->ranks[rank].execution);
    }
    return 0;
}

/* ---- Running ---- */

static int rank_poll(struct plan_trial *trial, uint32_t rank)
{
    struct trial_rank *of = &trial->ranks[rank];
    if (of->done) {
        return fail(trial, "rank %u is through, but something arrives that it has no wait for", rank);
    }
    cw_memory_fabric_polls(trial->fabric, rank);
    int status = cw_execution_poll(of->execution);
    const char *fault = cw_memory_fabric_fault(trial->fabric);
    if (fault != NULL) {
        return fail(trial, "%s", fault);
    }
    if (status == CW_ERROR_AGAIN) {
        return 0;
    }
    if (status != CW_OK) {
        char text[400];
        cw_execution_describe(of->execution, text, sizeof(text));
        return fail(trial, "%s (%s)", text, cw_status_text(status));
    }
    if (trial->plan->problem->collective == CW_BARRIER && trial->waiting_count > 0) {
        return fail(trial, "rank %u leaves the barrier before rank %u has entered", rank, trial->waiting[0]);
    }
    of->done = true;
    trial->done_count++;
    return 0;
}

static int rank_enter(struct plan_trial *trial)
{
    uint32_t chosen = draw(trial, trial->waiting_count);
    uint32_t rank = trial->waiting[chosen];
    trial->waiting[chosen] = trial->waiting[--trial->waiting_count];
    cw_memory_fabric_enter(trial->fabric, rank, trial->buffers.ranks[rank].at, trial->buffers.ranks[rank].bytes);
    trial->ranks[rank].entered = true;
    return rank_poll(trial, rank);
}

/* A rank that has something to be polled for. */
static uint32_t awake_choose(struct plan_trial *trial)
{
    uint32_t count = cw_memory_fabric_awake(trial->fabric);
    uint32_t chosen = draw(trial, count);
    uint32_t rank = cw_memory_fabric_awake_rank(trial->fabric, chosen);
    if (rank == trial->slow_rank && count > 1) {
        rank = cw_memory_fabric_awake_rank(trial->fabric, (chosen + 1) % count);
    }
    return rank;
}

static int deadlock(struct plan_trial *trial)
{
    char text[3000] = "";
    size_t used = 0;
    for (uint32_t rank = 0; rank < trial->plan->problem->ranks && used + 1 < sizeof(text); rank++) {
        if (!trial->ranks[rank].done) {
            char what[300];
            cw_execution_describe(trial->ranks[rank].execution, what, sizeof(what));
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used > 0 ? " | " : "", what);
        }
    }
    return fail(trial, "deadlock: %s", text);
}

/* Nothing is in progress and no rank has a reason for a poll: rejected puts may be left, and ops beyond the limit of
 * one poll. */
static int nudge(struct plan_trial *trial)
{
    uint32_t done_before = trial->done_count;
    for (uint32_t round = 0; round < NUDGES_MAX; round++) {
        for (uint32_t rank = 0; rank < trial->plan->problem->ranks; rank++) {
            if (!trial->ranks[rank].done && rank_poll(trial, rank) != 0) {
                return -1;
            }
        }
        if (trial->done_count > done_before || trial->deferred_count > 0 || cw_memory_fabric_awake(trial->fabric) > 0 ||
            cw_memory_fabric_step(trial->fabric)) {
            return 0;
        }
    }
    return deadlock(trial);
}

/* Lets a rank start one of the ops that it has put off. */
static int deferred_poll(struct plan_trial *trial)
{
    uint32_t chosen = draw(trial, trial->deferred_count);
    uint32_t rank = trial->deferred[chosen];
    trial->deferred[chosen] = trial->deferred[--trial->deferred_count];
    trial->ranks[rank].deferred = false;
    if (trial->ranks[rank].done) {
        return 0; /* it has been polled since then */
    }
    trial->forcing = true;
    int result = rank_poll(trial, rank);
    trial->forcing = false;
    return result;
}

/* Nothing usual can happen any more: one of the things that were to come last. */
static int last_resort(struct plan_trial *trial)
{
    for (uint32_t i = draw(trial, 3), end = i + 3; i < end; i++) {
        if (i % 3 == 0 && trial->waiting_count > 0) {
            return rank_enter(trial);
        }
        if (i % 3 == 1 && trial->deferred_count > 0) {
            return deferred_poll(trial);
        }
        if (i % 3 == 2 && cw_memory_fabric_step(trial->fabric)) {
            return 0;
        }
    }
    return nudge(trial);
}

/* One thing happens. */
static int turn(struct plan_trial *trial)
{
    bool starving = cw_memory_fabric_starving(trial->fabric);
    if (trial->waiting_count > 0 &&
        (trial->entering == ENTER_AT_ONCE || (trial->entering == ENTER_NOW_AND_THEN && draw(trial, 8) == 0))) {
        return rank_enter(trial);
    }
    if (!starving && draw(trial, 256) < trial->step_chance && cw_memory_fabric_step(trial->fabric)) {
        return 0;
    }
    if (trial->deferred_count > 0 && trial->picking != PICK_STARVE_FIRST && draw(trial, 4) == 0) {
        return deferred_poll(trial);
    }
    if (cw_memory_fabric_awake(trial->fabric) > 0) {
        return rank_poll(trial, awake_choose(trial));
    }
    if (!starving && cw_memory_fabric_step(trial->fabric)) {
        return 0;
    }
    return last_resort(trial);
}

static int begin(struct plan_trial *trial)
{
    static const uint32_t chances[] = {0, 128, 240, 256};
    static const uint32_t defer_chances[] = {0, 0, 32, 192};
    uint32_t ranks = trial->plan->problem->ranks;
    cw_random_seed(&trial->random, cw_random_derive(trial->seed, 1));
    cw_memory_fabric_reset(trial->fabric, cw_random_derive(trial->seed, 2), trial->eager_buffers);
    if (executions_begin(trial) != 0) {
        return -1;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        plan_buffers_fill(&trial->buffers, &trial->truth, rank, &trial->random);
    }
    trial->entering = (enum entering)draw(trial, ENTER_COUNT);
    trial->picking = (enum picking)draw(trial, PICK_COUNT);
    trial->victim = draw(trial, 2) == 0 ? draw(trial, ranks) : NO_RANK;
    trial->defer_chance = defer_chances[draw(trial, 4)];
    trial->step_chance = chances[draw(trial, 4)];
    trial->slow_rank = draw(trial, 2) == 0 ? draw(trial, ranks) : NO_RANK;
    trial->done_count = 0;
    trial->deferred_count = 0;
    trial->forcing = false;
    trial->waiting_count = ranks;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        trial->waiting[rank] = rank;
        trial->ranks[rank].entered = false;
        trial->ranks[rank].done = false;
        trial->ranks[rank].deferred = false;
    }
    /* some enter at once in any case: how many is drawn, too */
    for (uint32_t left = draw(trial, ranks + 1); left > 0 && trial->entering == ENTER_LAST; left--) {
        if (rank_enter(trial) != 0) {
            return -1;
        }
    }
    return 0;
}

static int evaluate(struct plan_trial *trial)
{
    while (cw_memory_fabric_step(trial->fabric)) {
    }
    const char *fault = cw_memory_fabric_fault(trial->fabric);
    if (fault != NULL) {
        return fail(trial, "%s", fault);
    }
    if (cw_memory_fabric_awake(trial->fabric) > 0) {
        return fail(trial, "rank %u is through, but something arrives that it has no wait for",
                    cw_memory_fabric_awake_rank(trial->fabric, 0));
    }
    char reason[200];
    for (uint32_t rank = 0; rank < trial->plan->problem->ranks; rank++) {
        if (plan_buffers_check(&trial->buffers, &trial->truth, rank, reason, sizeof(reason)) != 0) {
            return fail(trial, "%s", reason);
        }
    }
    return 0;
}

int plan_trial_run(struct plan_trial *trial, uint64_t seed, uint32_t eager_buffers, char *error, size_t error_bytes)
{
    trial->running = true;
    trial->seed = seed;
    trial->eager_buffers = eager_buffers;
    trial->error = error;
    trial->error_bytes = error_bytes;
    int result = begin(trial);
    while (result == 0 && trial->done_count < trial->plan->problem->ranks) {
        result = turn(trial);
    }
    if (result == 0) {
        result = evaluate(trial);
    }
    trial->unclean = result != 0;
    return result;
}

/* ---- Life ---- */

static int create(struct plan_trial *trial, uint64_t salt)
{
    const struct cw_problem *problem = trial->plan->problem;
    struct cw_memory_fabric_request request = {
        .ranks = problem->ranks, .problem = problem, .reduce = reduce, .reduce_context = trial};
    char reason[200];
    if (plan_truth_create(&trial->truth, trial->plan, salt, reason, sizeof(reason)) != 0 ||
        plan_buffers_create(&trial->buffers, trial->plan, reason, sizeof(reason)) != 0) {
        return fail(trial, "%s", reason);
    }
    trial->ranks = calloc(problem->ranks, sizeof(*trial->ranks));
    trial->waiting = calloc(problem->ranks, sizeof(*trial->waiting));
    trial->deferred = calloc(problem->ranks, sizeof(*trial->deferred));
    if (trial->ranks == NULL || trial->waiting == NULL || trial->deferred == NULL ||
        cw_memory_fabric_create(&request, &trial->fabric) != CW_OK) {
        return fail(trial, "no memory");
    }
    return executions_create(trial);
}

int plan_trial_create(const struct cw_plan *plan, uint64_t salt, struct plan_trial **trial, char *error,
                      size_t error_bytes)
{
    struct plan_trial *created = calloc(1, sizeof(*created));
    assert(created != NULL);
    created->plan = plan;
    created->error = error;
    created->error_bytes = error_bytes;
    if (create(created, salt) != 0) {
        plan_trial_destroy(created);
        return -1;
    }
    *trial = created;
    return 0;
}

void plan_trial_destroy(struct plan_trial *trial)
{
    if (trial == NULL) {
        return;
    }
    if (trial->ranks != NULL) {
        executions_destroy(trial);
    }
    cw_memory_fabric_destroy(trial->fabric);
    plan_buffers_dispose(&trial->buffers);
    plan_truth_dispose(&trial->truth);
    free(trial->ranks);
    free(trial->waiting);
    free(trial->deferred);
    free(trial);
}

int plan_trial_once(const struct cw_plan *plan, uint64_t seed, uint32_t eager_buffers, char *error, size_t error_bytes)
{
    struct plan_trial *trial = NULL;
    if (plan_trial_create(plan, seed, &trial, error, error_bytes) != 0) {
        return -1;
    }
    int result = plan_trial_run(trial, seed, eager_buffers, error, error_bytes);
    plan_trial_destroy(trial);
    return result;
}
