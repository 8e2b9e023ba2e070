/* check: which ranks are known to have entered which ranks' calls. A direct put needs its target to have entered; the
 * barrier is nothing else.
 *
 * For each event the set of ranks of which some event comes before it. 64 ranks at a time, so that memory does not grow
 * with ranks times events. */
#include "collectives/check/state.h"

enum { BLOCK = 64 };

static int validate_put(struct check *check, uint32_t instance, uint32_t block, uint64_t known)
{
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    if (!check_is_put(op) || (op->flags & CW_OP_EAGER) != 0) {
        return CW_OK;
    }
    uint32_t fan = check_fan(check, check_rank(check, instance), op);
    for (uint32_t i = 0; i < fan; i++) {
        uint32_t target = check->messages[check->instance_message[instance] + i].target;
        if (target / BLOCK == block && (known >> target % BLOCK & 1) == 0) {
            return check_fail(
                check, CW_CHECK_NOT_READY, instance, UINT64_MAX,
                "a direct put, but rank %u may not have entered the collective: nothing it does comes before", target);
        }
    }
    return CW_OK;
}

static int spread(struct check *check, uint64_t *known, uint32_t block)
{
    for (uint32_t i = 0; i < check->event_count; i++) {
        uint32_t event = check->order[i];
        uint64_t set = check_is_end(event) ? known[event - 1] : 0;
        for (uint32_t k = check->edge_first[event]; k < check->edge_first[event + 1]; k++) {
            uint32_t edge = check->edges.items[k];
            if ((edge & CHECK_WEAK) != 0) {
                break;
            }
            set |= known[edge];
        }
        uint32_t instance = event / 2;
        if (instance < check->barrier_first) {
            uint32_t rank = check_rank(check, instance);
            set |= rank / BLOCK == block ? 1ull << rank % BLOCK : 0;
            if (!check_is_end(event) && check_is_own(check, instance)) {
                int status = validate_put(check, instance, block, set);
                if (status != CW_OK) {
                    return status;
                }
            }
        }
        known[event] = set;
    }
    return CW_OK;
}

/* The barrier: the entries that a rank knows of when all its ops are complete. */
static int validate_ends(struct check *check, const uint64_t *known, uint32_t block)
{
    uint32_t first = block * BLOCK;
    uint32_t count = check->ranks - first < BLOCK ? check->ranks - first : BLOCK;
    uint64_t all = count == BLOCK ? UINT64_MAX : (1ull << count) - 1;
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        uint64_t set = rank / BLOCK == block ? 1ull << rank % BLOCK : 0;
        uint32_t begin = check->op_first_instance[check->rank_first_op[rank]];
        uint32_t end = check->op_first_instance[check->rank_first_op[rank + 1]];
        for (uint32_t instance = begin; instance < end; instance++) {
            set |= known[check_end(instance)];
        }
        if (set != all) {
            uint32_t missing = first + (uint32_t)__builtin_ctzll(all & ~set);
            return check_fail_rank(check, CW_CHECK_NOT_SYNCHRONIZED, rank, UINT64_MAX,
                                   "it may leave the barrier before rank %u has entered", missing);
        }
    }
    return CW_OK;
}

int check_ready(struct check *check)
{
    bool barrier = check->problem->collective == CW_BARRIER;
    if (!barrier && !check->has_direct) {
        return CW_OK;
    }
    struct check_mark mark = check_arena_mark(&check->arena);
    uint64_t *known = check_allocate(&check->arena, check->event_count, sizeof(*known));
    if (known == NULL) {
        return CW_ERROR_MEMORY;
    }
    int status = CW_OK;
    for (uint32_t block = 0; block * BLOCK < check->ranks && status == CW_OK; block++) {
        status = spread(check, known, block);
        if (barrier && status == CW_OK) {
            status = validate_ends(check, known, block);
        }
    }
    check_arena_rewind(&check->arena, mark);
    return status;
}
