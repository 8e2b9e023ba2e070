#include "tests/schedules/mutate.h"

#include <string.h>

struct site {
    struct cw_plan *plan;
    struct cw_schedule *schedule;
    uint32_t index;
    struct cw_op *op;
};

static bool is_local(const struct cw_op *op)
{
    return op->kind == CW_OP_COPY || op->kind == CW_OP_REDUCE;
}

static bool has_data(const struct cw_op *op)
{
    return op->bytes > 0 &&
           (is_local(op) || op->kind == CW_OP_PUT || op->kind == CW_OP_WAIT || op->kind == CW_OP_MULTICAST);
}

static bool is_direct_put(const struct cw_op *op)
{
    return op->kind == CW_OP_PUT && (op->flags & CW_OP_EAGER) == 0;
}

/* The wait that matches a put. */
static struct cw_op *wait_of(const struct site *site)
{
    struct cw_schedule *target = &site->plan->schedules[site->op->peer];
    for (uint32_t i = 0; i < target->op_count; i++) {
        struct cw_op *op = &target->ops[i];
        if (op->kind == CW_OP_WAIT && op->peer == site->schedule->rank && op->tag == site->op->tag) {
            return op;
        }
    }
    return NULL;
}

/* The next put of this rank after this one, with data, to the same peer if wanted. */
static struct cw_op *put_after(const struct site *site, bool same_peer)
{
    for (uint32_t i = site->index + 1; i < site->schedule->op_count; i++) {
        struct cw_op *op = &site->schedule->ops[i];
        bool peer_fits = (op->peer == site->op->peer) == same_peer;
        if (op->kind == CW_OP_PUT && peer_fits && op->bytes > 0 && op->iterations == site->op->iterations) {
            return op;
        }
    }
    return NULL;
}

static enum cw_buffer other_buffer(enum cw_buffer buffer)
{
    return buffer == CW_BUFFER_RECEIVE ? CW_BUFFER_SCRATCH : CW_BUFFER_RECEIVE;
}

/* An op that only represents order keeps its place among the others. */
static void op_drop(struct cw_op *op)
{
    struct cw_op kept = *op;
    memset(op, 0, sizeof(*op));
    op->kind = CW_OP_JOIN;
    op->phase = kept.phase;
    op->dependency_first = kept.dependency_first;
    op->dependency_count = kept.dependency_count;
    op->iterations = kept.iterations;
    op->blocks = 1;
}

static bool shorten(struct cw_op *op, uint32_t element_bytes)
{
    if (op->last_bytes <= element_bytes || op->blocks > 1) {
        return false;
    }
    op->last_bytes -= element_bytes;
    if (op->iterations == 1) {
        op->bytes = op->last_bytes;
    }
    return true;
}

static bool put_shift(const struct site *site)
{
    struct cw_op *wait = is_direct_put(site->op) ? wait_of(site) : NULL;
    if (wait != NULL) {
        wait->to.offset += site->plan->problem->element_bytes;
        site->op->to.offset += site->plan->problem->element_bytes;
    }
    return wait != NULL;
}

static bool puts_overlap(const struct site *site)
{
    struct cw_op *wait = is_direct_put(site->op) ? wait_of(site) : NULL;
    struct cw_schedule *target = &site->plan->schedules[site->op->peer];
    for (uint32_t i = 0; wait != NULL && i < target->op_count; i++) {
        struct cw_op *other = &target->ops[i];
        if (other->kind == CW_OP_WAIT && other != wait && other->bytes > 0) {
            wait->to = site->op->to = other->to;
            return true;
        }
    }
    return false;
}

static bool put_shorten(const struct site *site)
{
    struct cw_op *wait = site->op->kind == CW_OP_PUT && has_data(site->op) ? wait_of(site) : NULL;
    uint32_t element_bytes = site->plan->problem->element_bytes;
    return wait != NULL && shorten(site->op, element_bytes) && shorten(wait, element_bytes);
}

/* With `same`, the later put keeps its tag. */
static bool tags_swap(const struct site *site, bool same)
{
    struct cw_op *other = site->op->kind == CW_OP_PUT && site->op->bytes > 0 ? put_after(site, true) : NULL;
    if (other != NULL) {
        uint32_t tag = other->tag;
        other->tag = same ? tag : site->op->tag;
        site->op->tag = tag;
    }
    return other != NULL;
}

static bool peers_swap(const struct site *site)
{
    struct cw_op *other = site->op->kind == CW_OP_PUT && site->op->bytes > 0 ? put_after(site, false) : NULL;
    if (other != NULL) {
        uint32_t peer = other->peer;
        other->peer = site->op->peer;
        site->op->peer = peer;
    }
    return other != NULL;
}

static bool make_direct(const struct site *site)
{
    bool eager = site->op->kind == CW_OP_PUT && (site->op->flags & CW_OP_EAGER) != 0 && site->op->bytes > 0;
    struct cw_op *wait = eager ? wait_of(site) : NULL;
    if (wait != NULL) {
        site->op->flags = wait->flags = 0;
        site->op->to = wait->to;
    }
    return wait != NULL;
}

/* Takes every dependency on this op out of its schedule. */
static bool order_remove(const struct site *site)
{
    bool found = false;
    for (uint32_t i = 0; i < site->schedule->op_count; i++) {
        struct cw_op *op = &site->schedule->ops[i];
        if (op->dependency_count == 0) {
            continue;
        }
        struct cw_dependency *list = &site->schedule->dependencies[op->dependency_first];
        for (uint32_t j = 0; j < op->dependency_count; j++) {
            if (list[j].op == site->index) {
                list[j] = list[--op->dependency_count];
                found = true;
                break;
            }
        }
    }
    return found;
}

static bool iterations_lower(const struct site *site)
{
    if (site->op->kind != CW_OP_REPEAT || site->op->iterations < 2) {
        return false;
    }
    for (uint32_t i = 0; i <= site->op->body_count; i++) {
        site->op[i].iterations--;
    }
    return true;
}

static bool dependency_mutate(const struct site *site, enum mutation kind)
{
    struct cw_op *op = site->op;
    if (op->dependency_count == 0) {
        return false;
    }
    struct cw_dependency *list = &site->schedule->dependencies[op->dependency_first];
    if (kind == MUTATE_DROP_ORDER) {
        op->dependency_count = 0;
        return true;
    }
    if (kind == MUTATE_DROP_DEPENDENCY) {
        list[0] = list[--op->dependency_count];
        return true;
    }
    for (uint32_t i = 0; i < op->dependency_count; i++) {
        uint8_t on = site->schedule->ops[list[i].op].kind;
        if (on == CW_OP_PUT || on == CW_OP_MULTICAST) {
            list[i].flags ^= CW_DEPENDENCY_SENT;
            return true;
        }
    }
    return false;
}

static bool place_mutate(const struct site *site, enum mutation kind)
{
    struct cw_op *op = site->op;
    bool from = kind == MUTATE_SWAP_FROM_BUFFER || kind == MUTATE_SHIFT_FROM;
    struct cw_place *place = from ? &op->from : &op->to;
    if (!has_data(op) || place->buffer == CW_BUFFER_NONE) {
        return false;
    }
    if (kind == MUTATE_SHIFT_FROM || kind == MUTATE_SHIFT_TO) {
        place->offset += site->plan->problem->element_bytes;
    } else {
        place->buffer = other_buffer(place->buffer);
    }
    return true;
}

static bool site_mutate(const struct site *site, enum mutation kind)
{
    struct cw_op *op = site->op;
    switch (kind) {
    case MUTATE_DROP_OP:
        if (op->kind == CW_OP_REPEAT || op->kind == CW_OP_JOIN || op->kind == CW_OP_BARRIER) {
            return false;
        }
        op_drop(op);
        return true;
    case MUTATE_DROP_ORDER:
    case MUTATE_DROP_DEPENDENCY:
    case MUTATE_SENT_DEPENDENCY:
        return dependency_mutate(site, kind);
    case MUTATE_SWAP_FROM_BUFFER:
    case MUTATE_SWAP_TO_BUFFER:
    case MUTATE_SHIFT_FROM:
    case MUTATE_SHIFT_TO:
        return place_mutate(site, kind);
    case MUTATE_SHIFT_PUT:
        return put_shift(site);
    case MUTATE_OVERLAP_PUTS:
        return puts_overlap(site);
    case MUTATE_SHORTEN:
        return has_data(op) && shorten(op, site->plan->problem->element_bytes);
    case MUTATE_SHORTEN_PUT:
        return put_shorten(site);
    case MUTATE_SWAP_TAGS:
    case MUTATE_SAME_TAGS:
        return tags_swap(site, kind == MUTATE_SAME_TAGS);
    case MUTATE_SWAP_PEERS:
        return peers_swap(site);
    case MUTATE_SWAP_SIDE:
        op->flags ^= op->kind == CW_OP_REDUCE ? CW_OP_LEFT : 0;
        return op->kind == CW_OP_REDUCE;
    case MUTATE_MAKE_DIRECT:
        return make_direct(site);
    case MUTATE_MERGE_PHASES:
        return (op->kind == CW_OP_JOIN || op->kind == CW_OP_BARRIER) && order_remove(site);
    case MUTATE_FEWER_ITERATIONS:
        return iterations_lower(site);
    default:
        return false;
    }
}

bool plan_mutate(struct cw_plan *plan, enum mutation kind, uint32_t site_number, bool *changed)
{
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        struct cw_schedule *schedule = &plan->schedules[rank];
        if (site_number >= schedule->op_count) {
            site_number -= schedule->op_count;
            continue;
        }
        struct site site = {plan, schedule, site_number, &schedule->ops[site_number]};
        *changed = site_mutate(&site, kind);
        return true;
    }
    return false;
}
