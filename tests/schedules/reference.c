#include "tests/schedules/reference.h"

#include <stdlib.h>
#include <string.h>

void plan_combine(bool ordered, uint8_t *to, const uint8_t *left, const uint8_t *right, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes && !ordered; i++) {
        to[i] = (uint8_t)(left[i] + right[i]);
    }
    for (uint64_t i = 0; i < bytes && ordered; i++) {
        uint32_t left_factor = left[i] >> 4 | 1;
        uint32_t right_factor = right[i] >> 4 | 1;
        uint32_t factor = left_factor * right_factor & 15;
        uint32_t summand = (left_factor * (right[i] & 15u) + (left[i] & 15u)) & 15;
        to[i] = (uint8_t)(factor << 4 | summand);
    }
}

/* Bytes of block i; alltoall: of block `to` of rank i. */
static uint64_t block_bytes(const struct cw_problem *problem, uint32_t i, uint32_t to)
{
    uint64_t count = problem->count;
    if (problem->counts != NULL && problem->collective == CW_ALLTOALL) {
        count = problem->counts[(uint64_t)i * problem->ranks + to];
    } else if (problem->counts != NULL) {
        count = problem->counts[i];
    }
    return count * problem->element_bytes;
}

static uint64_t all_blocks_bytes(const struct cw_problem *problem)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < problem->ranks; i++) {
        bytes += block_bytes(problem, i, 0);
    }
    return bytes;
}

/* The blocks of all ranks one after the other. */
static bool concatenate(struct plan_reference *reference, const struct cw_problem *problem, uint8_t *const *send)
{
    uint64_t total = all_blocks_bytes(problem);
    reference->memory = malloc(total + 1);
    if (reference->memory == NULL) {
        return false;
    }
    uint8_t *end = reference->memory;
    for (uint32_t i = 0; i < problem->ranks; i++) {
        memcpy(end, send[i], block_bytes(problem, i, 0));
        end += block_bytes(problem, i, 0);
    }
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        bool receives = problem->collective == CW_ALLGATHER || rank == problem->root;
        reference->expected[rank] = reference->memory;
        reference->bytes[rank] = receives ? total : 0;
    }
    return true;
}

/* Each rank gets its slice of `vector`. */
static void slice(struct plan_reference *reference, const struct cw_problem *problem, const uint8_t *vector)
{
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        reference->expected[rank] = vector;
        reference->bytes[rank] = block_bytes(problem, rank, 0);
        vector += block_bytes(problem, rank, 0);
    }
}

/* Rank r gets block r of each rank. */
static bool transpose(struct plan_reference *reference, const struct cw_problem *problem, uint8_t *const *send)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < problem->ranks; i++) {
        for (uint32_t j = 0; j < problem->ranks; j++) {
            total += block_bytes(problem, i, j);
        }
    }
    uint64_t *sent = calloc(problem->ranks, sizeof(*sent)); /* bytes of each rank's send buffer that are dealt out */
    reference->memory = malloc(total + 1);
    if (sent == NULL || reference->memory == NULL) {
        free(sent);
        return false;
    }
    uint8_t *end = reference->memory;
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        reference->expected[rank] = end;
        for (uint32_t from = 0; from < problem->ranks; from++) {
            uint64_t bytes = block_bytes(problem, from, rank);
            memcpy(end, send[from] + sent[from], bytes);
            sent[from] += bytes;
            end += bytes;
            reference->bytes[rank] += bytes;
        }
    }
    free(sent);
    return true;
}

/* Rank r gets the operands of ranks 0 .. r (scan) or 0 .. r - 1 (exscan) combined. */
static bool prefixes(struct plan_reference *reference, const struct cw_problem *problem, uint8_t *const *send)
{
    uint64_t bytes = problem->count * problem->element_bytes;
    bool exclusive = problem->collective == CW_EXSCAN;
    reference->memory = malloc(bytes * problem->ranks + 1);
    if (reference->memory == NULL) {
        return false;
    }
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        uint8_t *prefix = reference->memory + bytes * rank;
        memcpy(prefix, send[rank], bytes);
        if (rank > 0) {
            plan_combine(problem->ordered, prefix, prefix - bytes, prefix, bytes);
        }
        reference->expected[rank] = exclusive && rank > 0 ? prefix - bytes : prefix;
        reference->bytes[rank] = exclusive && rank == 0 ? 0 : bytes;
    }
    return true;
}

/* The operands of all ranks combined in their order. */
static bool combine_all(struct plan_reference *reference, const struct cw_problem *problem, uint8_t *const *send)
{
    bool scatters = problem->collective == CW_REDUCE_SCATTER;
    uint64_t bytes = scatters ? all_blocks_bytes(problem) : problem->count * problem->element_bytes;
    reference->memory = malloc(bytes + 1);
    if (reference->memory == NULL) {
        return false;
    }
    memcpy(reference->memory, send[0], bytes);
    for (uint32_t rank = 1; rank < problem->ranks; rank++) {
        plan_combine(problem->ordered, reference->memory, reference->memory, send[rank], bytes);
    }
    if (scatters) {
        slice(reference, problem, reference->memory);
        return true;
    }
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        reference->expected[rank] = reference->memory;
        reference->bytes[rank] = problem->collective == CW_ALLREDUCE || rank == problem->root ? bytes : 0;
    }
    return true;
}

static bool fill(struct plan_reference *reference, const struct cw_problem *problem, uint8_t *const *send)
{
    switch (problem->collective) {
    case CW_BCAST:
        for (uint32_t rank = 0; rank < problem->ranks; rank++) {
            reference->expected[rank] = send[problem->root];
            reference->bytes[rank] = rank != problem->root ? problem->count * problem->element_bytes : 0;
        }
        return true;
    case CW_SCATTER:
        slice(reference, problem, send[problem->root]);
        return true;
    case CW_GATHER:
    case CW_ALLGATHER:
        return concatenate(reference, problem, send);
    case CW_ALLTOALL:
        return transpose(reference, problem, send);
    case CW_REDUCE:
    case CW_ALLREDUCE:
    case CW_REDUCE_SCATTER:
        return combine_all(reference, problem, send);
    case CW_SCAN:
    case CW_EXSCAN:
        return prefixes(reference, problem, send);
    default:
        return true; /* a barrier moves nothing */
    }
}

bool plan_reference_create(struct plan_reference *reference, const struct cw_problem *problem, uint8_t *const *send)
{
    *reference = (struct plan_reference){0};
    reference->expected = calloc(problem->ranks, sizeof(*reference->expected));
    reference->bytes = calloc(problem->ranks, sizeof(*reference->bytes));
    return reference->expected != NULL && reference->bytes != NULL && fill(reference, problem, send);
}

void plan_reference_dispose(struct plan_reference *reference)
{
    free(reference->expected);
    free(reference->bytes);
    free(reference->memory);
}
