/* Inclusive and exclusive prefix reductions. Operands stay in rank order. */
#include "collectives/algorithms/registry.h"

static const struct cw_place send = {CW_BUFFER_SEND, 0, 0};
static const struct cw_place receive = {CW_BUFFER_RECEIVE, 0, 0};

static uint64_t vector_bytes(const struct cw_emit *emit)
{
    return emit->problem->count * emit->problem->element_bytes;
}

static bool is_exclusive(const struct cw_emit *emit)
{
    return emit->problem->collective == CW_EXSCAN;
}

static void build_chain(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint64_t bytes = vector_bytes(emit);
    uint32_t rank = emit->rank;
    bool exclusive = is_exclusive(emit);
    bool last = rank + 1 == emit->problem->ranks;
    struct cw_place work = cw_emit_scratch(emit, bytes);
    struct cw_place landing = exclusive ? receive : work;
    struct cw_place inclusive = exclusive ? work : receive;
    if (!exclusive || (rank > 0 && !last)) {
        cw_emit_copy(emit, inclusive, send, bytes);
    }
    if (rank > 0) {
        cw_emit_receive(emit, rank - 1, landing, bytes);
        if (!exclusive || !last) {
            cw_emit_reduce(emit, inclusive, landing, bytes, true);
        }
    }
    if (!last) {
        cw_emit_send(emit, rank + 1, exclusive && rank == 0 ? send : inclusive, landing, bytes);
    }
}

/* The same segment by segment: all ranks combine at the same time. */
static void build_segmented_chain(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    uint64_t bytes = vector_bytes(emit);
    uint64_t segment_bytes = cw_emit_segment_bytes(emit, bytes);
    uint32_t rank = emit->rank;
    bool exclusive = is_exclusive(emit);
    bool last = rank + 1 == emit->problem->ranks;
    if (segment_bytes >= bytes || emit->problem->ranks == 1) {
        build_chain(emit, recipe);
        return;
    }
    struct cw_place work = cw_emit_scratch(emit, bytes);
    struct cw_place landing = exclusive ? receive : work;
    struct cw_place inclusive = exclusive ? work : receive;
    bool combines = rank > 0 && (!exclusive || !last);
    uint32_t opened = CW_NO_OP;
    if (!exclusive || combines) {
        cw_emit_copy(emit, inclusive, send, bytes);
    }
    if (rank > 0) {
        cw_emit_receive_open(emit, rank - 1, landing, bytes, segment_bytes);
    }
    if (!last) {
        opened = cw_emit_send_open(emit, rank + 1, bytes, segment_bytes);
    }
    cw_emit_repeat(emit, bytes, segment_bytes);
    if (rank > 0) {
        cw_emit_segment_receive(emit, rank - 1, landing);
    }
    if (combines) {
        cw_emit_segment_reduce(emit, inclusive, landing, true);
    }
    if (!last) {
        cw_emit_segment_send(emit, opened, rank + 1, exclusive && rank == 0 ? send : inclusive, landing);
    }
    cw_emit_repeat_end(emit);
}

/* Each rank sends its operand to all ranks after it, which combine what they get: one step, for short vectors and few
 * ranks. */
static void build_direct(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint64_t bytes = vector_bytes(emit);
    uint32_t rank = emit->rank;
    bool exclusive = is_exclusive(emit);
    struct cw_place slots = cw_emit_scratch(emit, bytes * emit->problem->ranks);
    for (uint32_t to = rank + 1; to < emit->problem->ranks; to++) {
        cw_emit_send(emit, to, send, rank == 0 ? receive : cw_place_add(slots, rank * bytes), bytes);
    }
    for (uint32_t from = 0; from < rank; from++) {
        cw_emit_receive(emit, from, from == 0 ? receive : cw_place_add(slots, from * bytes), bytes);
    }
    for (uint32_t from = 1; from < rank; from++) {
        cw_emit_reduce(emit, receive, cw_place_add(slots, from * bytes), bytes, false);
    }
    if (!exclusive && rank == 0) {
        cw_emit_copy(emit, receive, send, bytes);
    } else if (!exclusive) {
        cw_emit_reduce(emit, receive, send, bytes, false);
    }
}

/* In step k each rank sends the result of the 2^k ranks up to itself to the rank 2^k after. */
static void build_recursive_doubling(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint64_t bytes = vector_bytes(emit);
    uint32_t rank = emit->rank;
    uint32_t ranks = emit->problem->ranks;
    bool exclusive = is_exclusive(emit);
    struct cw_place work = cw_emit_scratch(emit, bytes);
    struct cw_place partial = exclusive ? work : receive;
    cw_emit_copy(emit, partial, send, bytes);
    for (uint32_t distance = 1; distance < ranks; distance *= 2) {
        struct cw_place landing = cw_emit_scratch(emit, bytes);
        bool sends = rank + distance < ranks;
        if (sends) {
            cw_emit_send(emit, rank + distance, partial, landing, bytes);
        }
        if (rank < distance) {
            continue;
        }
        cw_emit_receive(emit, rank - distance, landing, bytes);
        if (exclusive && distance == 1) {
            cw_emit_copy(emit, receive, landing, bytes);
        } else if (exclusive) {
            cw_emit_reduce(emit, receive, landing, bytes, true);
        }
        if (!exclusive || rank + 2 * distance < ranks) {
            cw_emit_reduce(emit, partial, landing, bytes, true);
        }
    }
}

#define SCAN(collective, name, takes, summary, source, build)         \
    {                                                                 \
        {collective, name, takes, 0, summary, source}, build, 0, NULL \
    }
#define CHAIN    "each rank passes the result so far to the next"
#define PIPELINE "the same in segments"
#define DIRECT   "each rank sends its operand to all after it, which combine what they get"
#define DOUBLE   "log2(P) steps; each rank sends its partial result 1, 2, 4, ... on"

const struct cw_recipe cw_recipes_scan[] = {
    SCAN(CW_SCAN, "chain", 0, CHAIN, "MPI 5.0, section 6.11", build_chain),
    SCAN(CW_SCAN, "segmented-chain", CW_TAKES_SEGMENT, PIPELINE, "the pipeline of segmented-chain broadcast",
         build_segmented_chain),
    SCAN(CW_SCAN, "direct", 0, DIRECT, "MPI 5.0, section 6.11", build_direct),
    SCAN(CW_SCAN, "recursive-doubling", 0, DOUBLE, "Hillis and Steele 1986", build_recursive_doubling),
    SCAN(CW_EXSCAN, "chain", 0, CHAIN, "MPI 5.0, section 6.11", build_chain),
    SCAN(CW_EXSCAN, "segmented-chain", CW_TAKES_SEGMENT, PIPELINE, "the pipeline of segmented-chain broadcast",
         build_segmented_chain),
    SCAN(CW_EXSCAN, "direct", 0, DIRECT, "MPI 5.0, section 6.11", build_direct),
    SCAN(CW_EXSCAN, "recursive-doubling", 0, DOUBLE, "Hillis and Steele 1986", build_recursive_doubling),
};
const uint32_t cw_recipes_scan_count = sizeof(cw_recipes_scan) / sizeof(cw_recipes_scan[0]);
