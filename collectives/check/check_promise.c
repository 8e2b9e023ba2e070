/* check: promises of the plan in addition to the right result. */
#include "collectives/check/state.h"

#include <stdlib.h>
#include <string.h>

struct promises {
    struct check *check;
    const struct cw_promise *promise;
    uint32_t *counts;       /* by phase; zero between uses */
    uint32_t *target_first; /* ranks + 1 */
    uint64_t *by_target;    /* phase << 32 | message, of all that have data */
};

static bool has_data(const struct cw_op *op)
{
    return op->last_bytes > 0 || (op->iterations > 1 && op->bytes > 0);
}

static int validate_same(struct check *check)
{
    const struct cw_promise *first = &check->plan->schedules[0].promise;
    for (uint32_t rank = 1; rank < check->ranks; rank++) {
        const struct cw_promise *other = &check->plan->schedules[rank].promise;
        const char *what = first->fan_in != other->fan_in               ? "fan_in"
                           : first->fan_out != other->fan_out           ? "fan_out"
                           : first->phases_apart != other->phases_apart ? "phases_apart"
                           : first->wan_senders != other->wan_senders   ? "wan_senders"
                           : first->wan_bytes != other->wan_bytes       ? "wan_bytes"
                                                                        : NULL;
        if (what != NULL) {
            return check_fail_rank(check, CW_CHECK_PROMISE_DIFFERS, rank, UINT64_MAX,
                                   "%s is another one than at rank 0", what);
        }
    }
    return CW_OK;
}

static int validate_fan_out(struct promises *promises)
{
    struct check *check = promises->check;
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        uint32_t first = check->rank_first_op[rank];
        uint32_t last = check->rank_first_op[rank + 1];
        for (uint32_t i = first; i < last; i++) {
            const struct cw_op *op = check_op(check, i);
            if (check_is_put(op) && has_data(op) && ++promises->counts[op->phase] > promises->promise->fan_out) {
                return check_fail(check, CW_CHECK_FAN_OUT, check->op_first_instance[i], UINT64_MAX,
                                  "message %u out of this rank in phase %u; %u are promised",
                                  promises->counts[op->phase], op->phase, promises->promise->fan_out);
            }
        }
        for (uint32_t i = first; i < last; i++) {
            promises->counts[check_op(check, i)->phase] = 0;
        }
    }
    return CW_OK;
}

static const struct cw_op *put_of(const struct check *check, uint32_t message)
{
    return check_op(check, check->instance_op[check->messages[message].put]);
}

static bool message_has_data(const struct check *check, uint32_t message)
{
    uint32_t put = check->messages[message].put;
    return cw_op_bytes(check_op(check, check->instance_op[put]), check_iteration(check, put)) > 0;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b ? 1 : 0;
}

/* Lists the messages with data into each rank by phase. */
static int sort_by_target(struct promises *promises)
{
    struct check *check = promises->check;
    promises->target_first = check_allocate_zero(&check->arena, check->ranks + 2ull, sizeof(uint32_t));
    promises->by_target = check_allocate(&check->arena, check->message_count, sizeof(uint64_t));
    if (promises->target_first == NULL || promises->by_target == NULL) {
        return CW_ERROR_MEMORY;
    }
    uint32_t *first = promises->target_first;
    for (uint32_t i = 0; i < check->message_count; i++) {
        first[check->messages[i].target + 2] += message_has_data(check, i) ? 1 : 0;
    }
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        first[rank + 2] += first[rank + 1];
    }
    for (uint32_t i = 0; i < check->message_count; i++) {
        if (message_has_data(check, i)) {
            uint32_t place = first[check->messages[i].target + 1]++;
            promises->by_target[place] = (uint64_t)put_of(check, i)->phase << 32 | i;
        }
    }
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        if (first[rank + 1] - first[rank] > 1) {
            qsort(promises->by_target + first[rank], first[rank + 1] - first[rank], sizeof(uint64_t), compare);
        }
    }
    return CW_OK;
}

static int validate_fan_in(struct promises *promises)
{
    struct check *check = promises->check;
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        uint32_t count = 0;
        for (uint32_t i = promises->target_first[rank]; i < promises->target_first[rank + 1]; i++) {
            uint32_t message = (uint32_t)promises->by_target[i];
            uint64_t phase = promises->by_target[i] >> 32;
            if (i == promises->target_first[rank] || phase != promises->by_target[i - 1] >> 32) {
                count = 0;
            }
            /* All iterations of a put are one message. */
            uint32_t put = check->messages[message].put;
            if (put != check->op_first_instance[check->instance_op[put]]) {
                continue;
            }
            if (++count > promises->promise->fan_in) {
                return check_fail(check, CW_CHECK_FAN_IN, put, UINT64_MAX,
                                  "message %u into rank %u in phase %u; %u are promised", count, rank, (unsigned)phase,
                                  promises->promise->fan_in);
            }
        }
    }
    return CW_OK;
}

/* Messages [first, last) of the list belong to one phase, [before, until) to the phase that must have ended. */
static int validate_phase(struct promises *promises, uint32_t before, uint32_t until, uint32_t first, uint32_t last)
{
    struct check *check = promises->check;
    for (uint32_t i = first; i < last; i++) {
        const struct check_message *later = &check->messages[(uint32_t)promises->by_target[i]];
        check_reach_from(check, check_start(later->put));
        for (uint32_t k = until; k-- > before;) {
            const struct check_message *earlier = &check->messages[(uint32_t)promises->by_target[k]];
            if (!check_reach(check, check_end(earlier->wait))) {
                return check_fail(check, CW_CHECK_PHASES, later->put, UINT64_MAX,
                                  "it may start before rank %u has got that of %s", later->target,
                                  check_name(check, earlier->put).text);
            }
        }
    }
    return CW_OK;
}

/* With `apart` phases between, it is enough to check the last `apart` phases that must have ended: earlier ones had
 * ended when these began. */
static int validate_phases(struct promises *promises)
{
    uint32_t apart = promises->promise->phases_apart;
    for (uint32_t rank = 0; rank < promises->check->ranks; rank++) {
        uint32_t end = promises->target_first[rank + 1];
        uint32_t starts[2 * CW_PHASES_APART_MAX]; /* of the last phases, the latest first */
        for (uint32_t i = 0; i < 2 * CW_PHASES_APART_MAX; i++) {
            starts[i] = promises->target_first[rank];
        }
        for (uint32_t first = starts[0]; first < end;) {
            uint32_t last = first + 1;
            while (last < end && promises->by_target[last] >> 32 == promises->by_target[first] >> 32) {
                last++;
            }
            memmove(starts + 1, starts, sizeof(starts) - sizeof(starts[0]));
            starts[0] = first;
            int status = validate_phase(promises, starts[2 * apart - 1], starts[apart - 1], first, last);
            if (status != CW_OK) {
                return status;
            }
            first = last;
        }
    }
    return CW_OK;
}

/* Adds what an op carries from its cluster to others; a multicast once to each. */
static int add_wan_bytes(struct promises *promises, uint32_t number, uint64_t *bytes, uint32_t *stamp)
{
    struct check *check = promises->check;
    const struct cw_op *op = check_op(check, number);
    uint32_t own = cw_problem_cluster(check->problem, check->op_rank[number]);
    uint32_t instance = check->op_first_instance[number];
    uint64_t total = op->bytes * (op->iterations - 1ull) + op->last_bytes;
    uint32_t fan = check_fan(check, check->op_rank[number], op);
    for (uint32_t i = 0; i < fan; i++) {
        uint32_t target = check->messages[check->instance_message[instance] + i].target;
        uint32_t cluster = cw_problem_cluster(check->problem, target);
        if (cluster == own || stamp[cluster] == number + 1) {
            continue;
        }
        stamp[cluster] = number + 1;
        if (total > promises->promise->wan_bytes - bytes[cluster]) {
            return check_fail(check, CW_CHECK_WAN_BYTES, instance, UINT64_MAX,
                              "its %llu bytes go from cluster %u to cluster %u after %llu others; %llu are promised",
                              (unsigned long long)total, own, cluster, (unsigned long long)bytes[cluster],
                              (unsigned long long)promises->promise->wan_bytes);
        }
        bytes[cluster] += total;
    }
    return CW_OK;
}

static int validate_wan_bytes(struct promises *promises)
{
    struct check *check = promises->check;
    const struct cw_problem *problem = check->problem;
    uint64_t *bytes = check_allocate(&check->arena, problem->cluster_count, sizeof(*bytes));
    uint32_t *stamp = check_allocate_zero(&check->arena, problem->cluster_count, sizeof(*stamp));
    if (bytes == NULL || stamp == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t cluster = 0; cluster < problem->cluster_count; cluster++) {
        memset(bytes, 0, problem->cluster_count * sizeof(*bytes));
        for (uint32_t k = problem->clusters.first[cluster]; k < problem->clusters.first[cluster + 1]; k++) {
            uint32_t rank = problem->clusters.members[k];
            for (uint32_t i = check->rank_first_op[rank]; i < check->rank_first_op[rank + 1]; i++) {
                int status = check_is_put(check_op(check, i)) ? add_wan_bytes(promises, i, bytes, stamp) : CW_OK;
                if (status != CW_OK) {
                    return status;
                }
            }
        }
    }
    return CW_OK;
}

static int validate_fans(struct promises *promises)
{
    struct check *check = promises->check;
    const struct cw_promise *promise = promises->promise;
    uint32_t phases = 1;
    for (uint32_t i = 0; i < check->op_count; i++) {
        uint32_t phase = check_op(check, i)->phase;
        phases = phase >= phases ? phase + 1 : phases;
    }
    promises->counts = check_allocate_zero(&check->arena, phases, sizeof(uint32_t));
    if (promises->counts == NULL) {
        return CW_ERROR_MEMORY;
    }
    int status = promise->fan_out > 0 ? validate_fan_out(promises) : CW_OK;
    if (status == CW_OK && (promise->fan_in > 0 || promise->phases_apart != 0)) {
        status = sort_by_target(promises);
        status = status == CW_OK && promise->fan_in > 0 ? validate_fan_in(promises) : status;
        status = status == CW_OK && promise->phases_apart != 0 ? validate_phases(promises) : status;
    }
    return status;
}

int check_promises(struct check *check)
{
    struct promises promises = {.check = check, .promise = &check->plan->schedules[0].promise};
    int status = validate_same(check);
    status = status == CW_OK ? validate_fans(&promises) : status;
    if (check->problem->cluster_count > 1) {
        status = status == CW_OK && promises.promise->wan_bytes != UINT64_MAX ? validate_wan_bytes(&promises) : status;
        for (uint32_t i = 0; i < check->problem->cluster_count && status == CW_OK && promises.promise->wan_senders > 0;
             i++) {
            status = check_senders(check, i);
        }
    }
    return status;
}
