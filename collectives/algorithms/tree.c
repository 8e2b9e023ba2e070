#include "collectives/algorithms/algorithms.h"

uint32_t cw_tree_parent(enum cw_tree tree, uint32_t degree, uint32_t v)
{
    switch (tree) {
    case CW_TREE_FLAT:
        return 0;
    case CW_TREE_CHAIN:
        return v - 1;
    case CW_TREE_DARY:
        return (v - 1) / degree;
    default:
        return v & (v - 1); /* binomial: without the lowest bit */
    }
}

uint32_t cw_tree_span(enum cw_tree tree, uint32_t size, uint32_t v)
{
    if (v > 0 && tree == CW_TREE_FLAT) {
        return 1;
    }
    if (tree != CW_TREE_BINOMIAL) {
        return size - v;
    }
    uint32_t span = v == 0 ? size : v & (~v + 1);
    return span < size - v ? span : size - v;
}

/* The largest subtree first: its way is the longest. */
static uint32_t binomial_child(uint32_t size, uint32_t v, uint32_t i)
{
    uint32_t span = cw_tree_span(CW_TREE_BINOMIAL, size, v);
    uint32_t levels = cw_log2_ceiling(span);
    return i < levels ? v + (1u << (levels - 1 - i)) : size;
}

uint32_t cw_tree_child(enum cw_tree tree, uint32_t degree, uint32_t size, uint32_t v, uint32_t i)
{
    uint64_t child;
    switch (tree) {
    case CW_TREE_FLAT:
        child = v == 0 ? 1ull + i : size;
        break;
    case CW_TREE_CHAIN:
        child = i == 0 ? v + 1ull : size;
        break;
    case CW_TREE_DARY:
        child = i < degree ? (uint64_t)v * degree + 1 + i : size;
        break;
    default:
        child = binomial_child(size, v, i);
        break;
    }
    return child < size ? (uint32_t)child : size;
}
