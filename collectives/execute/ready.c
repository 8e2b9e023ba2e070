/* Chooses the op to start next: signals first, which would wait behind the data of puts; then the first ready one of
 * the array, but within a body one after the other, so that the iterations of several puts (to the children of a node,
 * say) advance together. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/execute/state.h"

static uint32_t words_of(uint32_t bits)
{
    return (bits + 63) / 64;
}

bool execution_ready_create(struct cw_execution *execution)
{
    uint32_t bits = execution->schedule->op_count;
    if (execution->request.pick != NULL) {
        execution->ready_list = malloc((bits + 1ul) * sizeof(*execution->ready_list));
        return execution->ready_list != NULL;
    }
    do {
        assert(execution->ready_levels < EXECUTION_READY_LEVELS);
        bits = words_of(bits);
        uint32_t level = execution->ready_levels++;
        for (uint32_t i = 0; i < EXECUTION_READY_SETS; i++) {
            execution->ready[i].words[level] = calloc(bits + 1ul, sizeof(uint64_t));
            if (execution->ready[i].words[level] == NULL) {
                return false;
            }
        }
    } while (bits > 1);
    return true;
}

void execution_ready_destroy(struct cw_execution *execution)
{
    free(execution->ready_list);
    for (uint32_t i = 0; i < EXECUTION_READY_SETS; i++) {
        for (uint32_t level = 0; level < execution->ready_levels; level++) {
            free(execution->ready[i].words[level]);
        }
    }
}

void execution_ready_clear(struct cw_execution *execution)
{
    uint32_t bits = execution->schedule->op_count;
    for (uint32_t level = 0; level < execution->ready_levels; level++) {
        bits = words_of(bits);
        for (uint32_t i = 0; i < EXECUTION_READY_SETS; i++) {
            memset(execution->ready[i].words[level], 0, bits * sizeof(uint64_t));
        }
    }
    for (uint32_t i = 0; i < EXECUTION_READY_SETS; i++) {
        execution->ready[i].count = 0;
    }
    execution->ready_count = 0;
}

static struct ready_set *set_of(struct cw_execution *execution, uint32_t index)
{
    const struct cw_op *op = &execution->schedule->ops[index];
    bool is_signal = op->kind == CW_OP_PUT && op->bytes == 0 && op->last_bytes == 0;
    return &execution->ready[is_signal ? 0 : 1];
}

void execution_ready_add(struct cw_execution *execution, uint32_t index)
{
    if (execution->ready_list != NULL) {
        execution->ready_list[execution->ready_count++] = index;
        return;
    }
    struct ready_set *set = set_of(execution, index);
    set->count++;
    execution->ready_count++;
    for (uint32_t level = 0; level < execution->ready_levels; level++) {
        uint64_t *word = &set->words[level][index / 64];
        uint64_t before = *word;
        *word |= 1ull << (index % 64);
        if (before != 0) {
            return; /* the levels above know of this word */
        }
        index /= 64;
    }
}

static void bit_clear(struct cw_execution *execution, struct ready_set *set, uint32_t index)
{
    set->count--;
    execution->ready_count--;
    for (uint32_t level = 0; level < execution->ready_levels; level++) {
        uint64_t *word = &set->words[level][index / 64];
        *word &= ~(1ull << (index % 64));
        if (*word != 0) {
            return;
        }
        index /= 64;
    }
}

/* The first bit that is set in the words of `level` and below it, under bit `index` of that level. */
static uint32_t descend(const struct ready_set *set, uint32_t level, uint32_t index)
{
    while (level > 0) {
        level--;
        index = index * 64 + (uint32_t)__builtin_ctzll(set->words[level][index]);
    }
    return index;
}

/* The first ready op from `from` on, or EXECUTION_NO_OP. */
static uint32_t ready_next(const struct cw_execution *execution, const struct ready_set *set, uint32_t from)
{
    uint32_t limit = execution->schedule->op_count;
    for (uint32_t level = 0; level < execution->ready_levels && from < limit; level++) {
        uint64_t word = set->words[level][from / 64] & (UINT64_MAX << (from % 64));
        if (word != 0) {
            return descend(set, level, from / 64 * 64 + (uint32_t)__builtin_ctzll(word));
        }
        from = from / 64 + 1;
        limit = words_of(limit);
    }
    return EXECUTION_NO_OP;
}

uint32_t execution_ready_pop(struct cw_execution *execution)
{
    assert(execution->ready_count > 0);
    if (execution->ready_list != NULL) {
        uint32_t chosen = execution->request.pick(execution->request.pick_context, execution->ready_count);
        if (chosen >= execution->ready_count) {
            return EXECUTION_NO_OP;
        }
        uint32_t index = execution->ready_list[chosen];
        execution->ready_list[chosen] = execution->ready_list[--execution->ready_count];
        return index;
    }
    struct ready_set *set = &execution->ready[execution->ready[0].count > 0 ? 0 : 1];
    uint32_t index = ready_next(execution, set, 0);
    assert(index != EXECUTION_NO_OP);
    uint32_t repeat = execution->progress.layouts[index].repeat;
    if (repeat != EXECUTION_NO_OP) {
        uint32_t body_end = repeat + execution->schedule->ops[repeat].body_count + 1;
        struct cw_progress_state *state = &execution->progress.states[repeat];
        uint32_t later = state->cursor > index ? ready_next(execution, set, state->cursor) : index;
        index = later < body_end ? later : index;
        state->cursor = index + 1;
    }
    bit_clear(execution, set, index);
    return index;
}
