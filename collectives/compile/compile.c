#include "collectives/compile/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/compile/private.h"
#include "dataplane/status.h"

/* Addresses that no group has alone: the flood address's, and the fallback of all groups (control/groups/filters.h). */
enum { FILTERS_COMMON = 2 };

const char *cw_compile_verdict_text(enum cw_compile_verdict verdict)
{
    static const char *const texts[CW_COMPILE_VERDICTS] = {
        [CW_COMPILE_SERVED] = "planned",
        [CW_COMPILE_RARE] = "does not recur",
        [CW_COMPILE_SLOWER] = "as it is: a plan would not be faster",
        [CW_COMPILE_UNKNOWN] = "as it is: no estimate of a plan",
        [CW_COMPILE_PRIVATE] = "as it is: ranks know only their own counts",
        [CW_COMPILE_MISMATCH] = "as it is: the ranks' calls do not fit together",
        [CW_COMPILE_TRIVIAL] = "as it is: nothing is sent",
        [CW_COMPILE_FAILED] = "as it is: no plan can be made",
        [CW_COMPILE_FULL] = "as it is: the bundle is full",
    };
    return texts[verdict];
}

static int recordings_check(const struct cw_compile_request *request, char *error, size_t error_bytes)
{
    const struct cw_recording *first = request->recordings[0];
    for (uint32_t i = 1; i < request->recording_count; i++) {
        const struct cw_recording *other = request->recordings[i];
        if (other->ranks != first->ranks) {
            snprintf(error, error_bytes,
                     "the first trace has %u ranks, trace %u has %u; plans are for one number of ranks", first->ranks,
                     i + 1, other->ranks);
            return CW_ERROR_ARGUMENT;
        }
        if (strcmp(other->program, first->program) != 0) {
            snprintf(error, error_bytes, "the first trace is of the program %s, trace %u of %s", first->program, i + 1,
                     other->program);
            return CW_ERROR_ARGUMENT;
        }
    }
    return CW_OK;
}

/* Whether calls of the joint come often enough: of the very problem, or of an all-to-all-v at all. */
static bool recurs(const struct joints *joints, const struct joint *joint, uint64_t calls_least)
{
    uint64_t calls = joint->row.calls;
    for (uint32_t i = 0; joint->row.has_rows && i < joints->count; i++) {
        const struct joint *other = &joints->all[i];
        bool is_like = other != joint && other->row.has_rows && other->row.comm == joint->row.comm &&
                       other->row.collective == joint->row.collective;
        calls += is_like ? other->row.calls : 0;
    }
    return calls >= calls_least;
}

static bool is_trivial(const struct joint *joint)
{
    return joint->problem->ranks < 2 || (joint->row.bytes == 0 && joint->row.collective != CW_BARRIER);
}

/* Number of all-to-all-v of a communicator that may have plans: each needs a bit in its agreements. */
static uint32_t agreed_count(const struct joints *joints, uint32_t comm)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < joints->count; i++) {
        const struct cw_compile_row *row = &joints->all[i].row;
        count += row->comm == comm && row->has_rows && row->collective == CW_ALLTOALL;
    }
    return count;
}

static int bundle_add(struct cw_bundle *bundle, const struct joint *joint, struct cw_plan *plan)
{
    struct cw_bundle_plan *plans = realloc(bundle->plans, (bundle->plan_count + 1ull) * sizeof(*plans));
    if (plans == NULL) {
        cw_plan_destroy(plan);
        return CW_ERROR_MEMORY;
    }
    bundle->plans = plans;
    plans[bundle->plan_count++] = (struct cw_bundle_plan){
        .comm = joint->row.comm,
        .calls = joint->row.calls,
        .now_ns = (uint64_t)joint->row.now_ns,
        .then_ns = (uint64_t)joint->row.then_ns,
        .plan = plan,
    };
    return CW_OK;
}

static int joint_compile(struct joints *joints, struct joint *joint, const struct cw_compile_request *request)
{
    struct cw_compile_row *row = &joint->row;
    struct cw_plan *plan = NULL;
    row->now_ns = (double)joint->total_ns / ((double)row->calls * joints->bundle->comms[row->comm].size);
    if (row->verdict != CW_COMPILE_SERVED) {
        return CW_OK;
    }
    if (is_trivial(joint)) {
        row->verdict = CW_COMPILE_TRIVIAL;
    } else if (!recurs(joints, joint, request->calls_least)) {
        row->verdict = CW_COMPILE_RARE;
    } else if (joints->bundle->plan_count == CW_BUNDLE_PLANS_MAX) {
        row->verdict = CW_COMPILE_FULL;
    } else {
        int status = joint_serve(joint, request, request->recordings[0], agreed_count(joints, row->comm), &plan);
        return status != CW_OK || plan == NULL ? status : bundle_add(joints->bundle, joint, plan);
    }
    return CW_OK;
}

/* ---- groups ---- */

static bool multicasts(const struct joint *joint)
{
    const char *name =
        joint->row.verdict == CW_COMPILE_SERVED && joint->row.then != NULL ? joint->row.then : joint->algorithm;
    const struct cw_algorithm *algorithm = cw_algorithm_find(joint->row.collective, name);
    return (joint->comm_flags & CW_RECORDING_MULTICASTS) != 0 && algorithm != NULL &&
           (algorithm->needs & CW_NEEDS_MULTICAST) != 0;
}

static int group_compare(const void *a, const void *b)
{
    const struct cw_compile_group *left = a, *right = b;
    if (left->uses != right->uses) {
        return left->uses > right->uses ? -1 : 1;
    }
    return left->comm < right->comm ? -1 : 1;
}

/* Those used most are opened at once, as long as each of their ranks has an address left for them. */
static int groups_plan(const struct joints *joints, struct cw_compiled *compiled, uint32_t filter_budget)
{
    struct cw_bundle *bundle = joints->bundle;
    uint32_t *used = calloc(bundle->ranks, sizeof(*used));
    compiled->groups = calloc(bundle->comm_count + 1ull, sizeof(*compiled->groups));
    if (used == NULL || compiled->groups == NULL) {
        free(used);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t comm = 0; comm < bundle->comm_count; comm++) {
        uint64_t uses = 0;
        for (uint32_t i = 0; i < joints->count; i++) {
            const struct joint *joint = &joints->all[i];
            uses += joint->row.comm == comm && multicasts(joint) ? joint->row.calls : 0;
        }
        if (uses > 0) {
            compiled->groups[compiled->group_count++] = (struct cw_compile_group){.comm = comm, .uses = uses};
        }
    }
    qsort(compiled->groups, compiled->group_count, sizeof(*compiled->groups), group_compare);
    for (uint32_t i = 0; i < compiled->group_count; i++) {
        struct cw_compile_group *group = &compiled->groups[i];
        struct cw_bundle_comm *comm = &bundle->comms[group->comm];
        group->at_once = true;
        for (uint32_t rank = 0; rank < comm->size; rank++) {
            group->at_once = group->at_once && used[comm->members[rank]] + FILTERS_COMMON < filter_budget;
        }
        for (uint32_t rank = 0; group->at_once && rank < comm->size; rank++) {
            used[comm->members[rank]]++;
        }
        comm->opens_group = group->at_once;
    }
    free(used);
    return CW_OK;
}

/* ---- all ---- */

static int row_compare(const void *a, const void *b)
{
    const struct cw_compile_row *left = a, *right = b;
    double difference = left->now_ns * (double)left->calls - right->now_ns * (double)right->calls;
    return difference > 0 ? -1 : difference < 0;
}

static int rows_copy(const struct joints *joints, struct cw_compiled *compiled)
{
    compiled->rows = calloc(joints->count + 1ull, sizeof(*compiled->rows));
    if (compiled->rows == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < joints->count; i++) {
        compiled->rows[i] = joints->all[i].row;
    }
    compiled->row_count = joints->count;
    compiled->calls = joints->calls;
    compiled->unjoined = joints->unjoined;
    qsort(compiled->rows, compiled->row_count, sizeof(*compiled->rows), row_compare);
    return CW_OK;
}

int cw_compile(const struct cw_compile_request *request, struct cw_compiled *compiled, char *error, size_t error_bytes)
{
    int status = recordings_check(request, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_compiled made = {.bundle = calloc(1, sizeof(*made.bundle))};
    struct joints joints = {.bundle = made.bundle};
    if (made.bundle == NULL) {
        return CW_ERROR_MEMORY;
    }
    made.bundle->ranks = request->recordings[0]->ranks;
    memcpy(made.bundle->program, request->recordings[0]->program, sizeof(made.bundle->program));
    for (uint32_t i = 0; status == CW_OK && i < request->recording_count; i++) {
        status = joints_add(&joints, request->recordings[i], i, error, error_bytes);
    }
    joints_merge(&joints);
    for (uint32_t i = 0; status == CW_OK && i < joints.count; i++) {
        status = joint_compile(&joints, &joints.all[i], request);
    }
    status = status == CW_OK ? groups_plan(&joints, &made, request->filter_budget) : status;
    status = status == CW_OK ? rows_copy(&joints, &made) : status;
    joints_dispose(&joints);
    if (status != CW_OK) {
        cw_compile_dispose(&made);
        return status;
    }
    *compiled = made;
    return CW_OK;
}

void cw_compile_dispose(struct cw_compiled *compiled)
{
    cw_bundle_destroy(compiled->bundle);
    free(compiled->rows);
    free(compiled->groups);
}
