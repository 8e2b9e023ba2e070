/* check: results of combined operands. Equal trees are one node, with an operand on either side: an operation that is
 * not commutative leaves no choice of sides, and a commutative one gives the same either way. */
#include "collectives/check/state.h"

#include <string.h>

static int grow(struct check *check, struct check_nodes *nodes)
{
    uint32_t limit = nodes->limit * 2;
    if (nodes->limit > UINT32_MAX / 16) {
        return CW_ERROR_MEMORY;
    }
    struct check_node *list = check_allocate(&check->arena, limit, sizeof(*list));
    uint64_t *sets = check_allocate(&check->arena, (size_t)limit * nodes->words, sizeof(*sets));
    uint32_t *table = check_allocate(&check->arena, 2 * (size_t)limit, sizeof(*table));
    if (list == NULL || sets == NULL || table == NULL) {
        return CW_ERROR_MEMORY;
    }
    if (nodes->count > 0) {
        memcpy(list, nodes->nodes, nodes->count * sizeof(*list));
        memcpy(sets, nodes->sets, (size_t)nodes->count * nodes->words * sizeof(*sets));
    }
    nodes->nodes = list;
    nodes->sets = sets;
    nodes->table = table;
    nodes->limit = limit;
    nodes->table_mask = 2 * limit - 1;
    memset(table, 0xff, 2 * (size_t)limit * sizeof(*table));
    return CW_OK;
}

/* Where the node of these two is or may be entered. */
static uint32_t *find(const struct check_nodes *nodes, uint32_t low, uint32_t high)
{
    uint64_t hash = ((uint64_t)low << 32 | high) * 0x9e3779b97f4a7c15u;
    uint32_t slot = (uint32_t)(hash >> 32) & nodes->table_mask;
    for (;; slot = (slot + 1) & nodes->table_mask) {
        uint32_t node = nodes->table[slot];
        if (node == CHECK_NONE || (nodes->nodes[node].low == low && nodes->nodes[node].high == high)) {
            return &nodes->table[slot];
        }
    }
}

int check_nodes_init(struct check *check, struct check_nodes *nodes)
{
    uint32_t limit = 64;
    while (limit < 2 * check->ranks) {
        limit *= 2;
    }
    *nodes = (struct check_nodes){.limit = limit / 2, .words = check->problem->ordered ? 0 : (check->ranks + 63) / 64};
    if (grow(check, nodes) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    if (nodes->words > 0) {
        memset(nodes->sets, 0, (size_t)check->ranks * nodes->words * sizeof(uint64_t));
    }
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        nodes->nodes[rank] =
            (struct check_node){.low = CHECK_NONE, .high = CHECK_NONE, .first = rank, .last = rank + 1, .operands = 1};
        if (nodes->words > 0) {
            nodes->sets[(size_t)rank * nodes->words + rank / 64] = 1ull << rank % 64;
        }
    }
    nodes->count = check->ranks;
    return CW_OK;
}

static bool fits(const struct check_nodes *nodes, uint32_t left, uint32_t right)
{
    if (nodes->words == 0) {
        return nodes->nodes[left].last == nodes->nodes[right].first;
    }
    const uint64_t *a = &nodes->sets[(size_t)left * nodes->words];
    const uint64_t *b = &nodes->sets[(size_t)right * nodes->words];
    for (uint32_t i = 0; i < nodes->words; i++) {
        if ((a[i] & b[i]) != 0) {
            return false;
        }
    }
    return true;
}

int check_nodes_combine(struct check *check, struct check_nodes *nodes, uint32_t left, uint32_t right, uint32_t *node)
{
    if (!fits(nodes, left, right)) {
        return CHECK_FAULT;
    }
    uint32_t low = left < right ? left : right;
    uint32_t high = left < right ? right : left;
    uint32_t *place = find(nodes, low, high);
    if (*place != CHECK_NONE) {
        *node = *place;
        return CW_OK;
    }
    if (nodes->count == nodes->limit) {
        if (grow(check, nodes) != CW_OK) {
            return CW_ERROR_MEMORY;
        }
        for (uint32_t i = check->ranks; i < nodes->count; i++) {
            *find(nodes, nodes->nodes[i].low, nodes->nodes[i].high) = i;
        }
        place = find(nodes, low, high);
    }
    const struct check_node *a = &nodes->nodes[low];
    const struct check_node *b = &nodes->nodes[high];
    *node = nodes->count++;
    *place = *node;
    nodes->nodes[*node] = (struct check_node){.low = low,
                                              .high = high,
                                              .first = a->first < b->first ? a->first : b->first,
                                              .last = a->last > b->last ? a->last : b->last,
                                              .operands = a->operands + b->operands};
    for (uint32_t i = 0; i < nodes->words; i++) {
        nodes->sets[(size_t)*node * nodes->words + i] =
            nodes->sets[(size_t)low * nodes->words + i] | nodes->sets[(size_t)high * nodes->words + i];
    }
    return CW_OK;
}
