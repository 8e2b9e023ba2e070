#include "collectives/algorithms/reduction.h"

/* ---- Down to a power of two ---- */

struct cw_fold cw_fold_make(const struct cw_team *team, uint32_t keep)
{
    struct cw_fold fold = {.team = *team, .keep = keep, .partner = team->size};
    fold.power = 1u << cw_log2_floor(team->size);
    fold.pairs = team->size - fold.power;
    fold.me = fold.power;
    if (team->me >= 2 * fold.pairs) {
        fold.me = team->me - fold.pairs;
        return fold;
    }
    fold.partner = team->me ^ 1;
    if (cw_fold_member(&fold, team->me / 2) == team->me) {
        fold.me = team->me / 2;
    }
    return fold;
}

uint32_t cw_fold_member(const struct cw_fold *fold, uint32_t i)
{
    if (i >= fold->pairs) {
        return i + fold->pairs;
    }
    return fold->keep == 2 * i ? 2 * i : 2 * i + 1;
}

uint32_t cw_fold_first(const struct cw_fold *fold, uint32_t i)
{
    return i < fold->pairs ? 2 * i : i + fold->pairs;
}

void cw_fold_in(struct cw_emit *emit, const struct cw_fold *fold, struct cw_place own, struct cw_place accumulator,
                struct cw_place landing, uint64_t bytes)
{
    if (fold->partner == fold->team.size) {
        return;
    }
    uint32_t partner = cw_team_rank(&fold->team, fold->partner);
    if (fold->me == fold->power) {
        cw_emit_send(emit, partner, own, landing, bytes);
    } else {
        cw_emit_receive(emit, partner, landing, bytes);
        cw_emit_reduce(emit, accumulator, landing, bytes, fold->partner < fold->team.me);
    }
}

void cw_fold_out(struct cw_emit *emit, const struct cw_fold *fold, struct cw_place from, struct cw_place to,
                 uint64_t bytes)
{
    if (fold->partner == fold->team.size) {
        return;
    }
    uint32_t partner = cw_team_rank(&fold->team, fold->partner);
    if (fold->me == fold->power) {
        cw_emit_receive(emit, partner, to, bytes);
    } else {
        cw_emit_send(emit, partner, from, to, bytes);
    }
}

/* ---- Binomial tree ---- */

void cw_reduce_binomial(struct cw_emit *emit, const struct cw_team *team, struct cw_place own,
                        struct cw_place accumulator, uint64_t bytes)
{
    uint32_t v = team->me;
    /* an operand of an inner node's own, then one landing place per level: the same offsets at all members */
    struct cw_place inner = cw_emit_scratch(emit, bytes);
    struct cw_place landing[32];
    uint32_t levels = cw_log2_ceiling(team->size);
    for (uint32_t i = 0; i < levels; i++) {
        landing[i] = cw_emit_scratch(emit, bytes);
    }
    struct cw_place here = v == 0 ? accumulator : inner;
    if (v == 0 || cw_tree_span(CW_TREE_BINOMIAL, team->size, v) > 1) {
        cw_emit_copy(emit, here, own, bytes);
    } else {
        here = own;
    }
    /* the nearest first: ranks stay in order */
    for (uint32_t level = 0; level < levels && (v >> level & 1) == 0; level++) {
        uint32_t child = v + (1u << level);
        if (child < team->size) {
            cw_emit_receive(emit, cw_team_rank(team, child), landing[level], bytes);
            cw_emit_reduce(emit, here, landing[level], bytes, false);
        }
    }
    if (v > 0) {
        uint32_t parent = cw_tree_parent(CW_TREE_BINOMIAL, 0, v);
        cw_emit_send(emit, cw_team_rank(team, parent), here, landing[cw_log2_floor(v - parent)], bytes);
    }
}

/* ---- Vector halving, and back ---- */

uint32_t cw_halving_window(uint32_t power, uint32_t i)
{
    uint32_t window = 0;
    for (uint32_t bit = 1; bit < power; bit *= 2) {
        window = window * 2 + ((i & bit) != 0);
    }
    return window;
}

/* Half `upper` of the window of `size` blocks that begins at block `first`. */
static uint64_t half_offset(const struct cw_blocks *blocks, uint32_t first, uint32_t size, bool upper)
{
    return cw_blocks_offset(blocks, first + (upper ? size / 2 : 0));
}

static uint64_t half_bytes(const struct cw_blocks *blocks, uint32_t first, uint32_t size, bool upper)
{
    return cw_blocks_offset(blocks, first + (upper ? size : size / 2)) - half_offset(blocks, first, size, upper);
}

void cw_reduce_halving(struct cw_emit *emit, const struct cw_fold *fold, const struct cw_blocks *blocks,
                       struct cw_place accumulator, struct cw_place landing, uint32_t *window)
{
    uint32_t first = 0;
    uint32_t size = fold->power;
    for (uint32_t distance = 1; distance < fold->power; distance *= 2) {
        uint32_t other = fold->me ^ distance;
        uint32_t peer = cw_team_rank(&fold->team, cw_fold_member(fold, other));
        bool upper = (fold->me & distance) != 0; /* the half that stays here */
        uint64_t out = half_offset(blocks, first, size, !upper);
        uint64_t in = half_offset(blocks, first, size, upper);
        cw_emit_send(emit, peer, cw_place_add(accumulator, out), cw_place_add(landing, out),
                     half_bytes(blocks, first, size, !upper));
        cw_emit_receive(emit, peer, cw_place_add(landing, in), half_bytes(blocks, first, size, upper));
        cw_emit_reduce(emit, cw_place_add(accumulator, in), cw_place_add(landing, in),
                       half_bytes(blocks, first, size, upper), other < fold->me);
        first += upper ? size / 2 : 0;
        size /= 2;
    }
    *window = first;
}

/* The way back: afterwards every participant has the whole result. */
static void allgather_doubling(struct cw_emit *emit, const struct cw_fold *fold, const struct cw_blocks *blocks,
                               struct cw_place accumulator, uint32_t window)
{
    uint32_t first = window;
    uint32_t size = 1;
    for (uint32_t distance = fold->power / 2; distance > 0; distance /= 2) {
        uint32_t peer = cw_team_rank(&fold->team, cw_fold_member(fold, fold->me ^ distance));
        bool upper = (fold->me & distance) != 0;
        first -= upper ? size : 0;
        size *= 2;
        struct cw_place out = cw_place_add(accumulator, half_offset(blocks, first, size, upper));
        struct cw_place in = cw_place_add(accumulator, half_offset(blocks, first, size, !upper));
        cw_emit_send(emit, peer, out, out, half_bytes(blocks, first, size, upper));
        cw_emit_receive(emit, peer, in, half_bytes(blocks, first, size, !upper));
    }
}

/* ---- Ring ---- */

void cw_reduce_ring(struct cw_emit *emit, const struct cw_team *team, const struct cw_blocks *blocks,
                    struct cw_place own, struct cw_place travel)
{
    uint32_t size = team->size;
    uint32_t v = team->me;
    if (size == 1) {
        cw_emit_copy(emit, travel, own, cw_blocks_bytes(blocks, 0));
        return;
    }
    for (uint32_t step = 0; step + 1 < size; step++) {
        uint32_t out = (v + 2 * size - 1 - step) % size;
        uint32_t in = (v + 2 * size - 2 - step) % size;
        uint64_t out_offset = cw_blocks_offset(blocks, out);
        uint64_t in_offset = cw_blocks_offset(blocks, in);
        /* a block starts its way as the operand of the member after its own */
        cw_emit_send(emit, cw_team_rank(team, (v + 1) % size), cw_place_add(step == 0 ? own : travel, out_offset),
                     cw_place_add(travel, out_offset), cw_blocks_bytes(blocks, out));
        cw_emit_receive(emit, cw_team_rank(team, (v + size - 1) % size), cw_place_add(travel, in_offset),
                        cw_blocks_bytes(blocks, in));
        cw_emit_reduce(emit, cw_place_add(travel, in_offset), cw_place_add(own, in_offset), cw_blocks_bytes(blocks, in),
                       true);
    }
}

/* ---- All-reduce ---- */

void cw_allreduce_doubling(struct cw_emit *emit, const struct cw_team *team, struct cw_place own,
                           struct cw_place accumulator, uint64_t bytes)
{
    struct cw_fold fold = cw_fold_make(team, team->size);
    if (fold.me < fold.power) {
        cw_emit_copy(emit, accumulator, own, bytes);
    }
    struct cw_place landing = cw_emit_scratch(emit, bytes);
    cw_fold_in(emit, &fold, own, accumulator, landing, bytes);
    for (uint32_t distance = 1; distance < fold.power; distance *= 2) {
        landing = cw_emit_scratch(emit, bytes);
        if (fold.me < fold.power) {
            uint32_t other = fold.me ^ distance;
            uint32_t peer = cw_team_rank(team, cw_fold_member(&fold, other));
            cw_emit_send(emit, peer, accumulator, landing, bytes);
            cw_emit_receive(emit, peer, landing, bytes);
            cw_emit_reduce(emit, accumulator, landing, bytes, other < fold.me);
        }
    }
    cw_fold_out(emit, &fold, accumulator, accumulator, bytes);
}

void cw_allreduce_rabenseifner(struct cw_emit *emit, const struct cw_team *team, struct cw_place own,
                               struct cw_place accumulator, uint64_t bytes)
{
    struct cw_fold fold = cw_fold_make(team, team->size);
    struct cw_blocks blocks = cw_blocks_even(emit, bytes, fold.power);
    struct cw_place landing = cw_emit_scratch(emit, bytes);
    if (fold.me < fold.power) {
        cw_emit_copy(emit, accumulator, own, bytes);
    }
    cw_fold_in(emit, &fold, own, accumulator, landing, bytes);
    if (fold.me < fold.power) {
        uint32_t window;
        cw_reduce_halving(emit, &fold, &blocks, accumulator, landing, &window);
        allgather_doubling(emit, &fold, &blocks, accumulator, window);
    }
    cw_fold_out(emit, &fold, accumulator, accumulator, bytes);
}

/* ---- Reduce by halving, then gather ---- */

/* Windows double on their way to participant `root`, which has them at `result`; a participant on the other side sends
 * and is done. */
static void gather_doubling(struct cw_emit *emit, const struct cw_fold *fold, const struct cw_blocks *blocks,
                            struct cw_place accumulator, uint32_t window, uint32_t root, struct cw_place result)
{
    uint32_t first = window;
    uint32_t size = 1;
    for (uint32_t distance = fold->power / 2; distance > 0; distance /= 2) {
        uint32_t other = fold->me ^ distance;
        uint32_t peer = cw_team_rank(&fold->team, cw_fold_member(fold, other));
        bool upper = (fold->me & distance) != 0;
        uint32_t both = first - (upper ? size : 0);
        if ((fold->me & distance) != (root & distance)) {
            uint64_t out = cw_blocks_offset(blocks, first);
            struct cw_place there = cw_place_add(other == root ? result : accumulator, out);
            cw_emit_send(emit, peer, cw_place_add(accumulator, out), there,
                         cw_blocks_offset(blocks, first + size) - out);
            return;
        }
        uint32_t in = upper ? both : first + size;
        uint64_t offset = cw_blocks_offset(blocks, in);
        struct cw_place here = cw_place_add(fold->me == root ? result : accumulator, offset);
        cw_emit_receive(emit, peer, here, cw_blocks_offset(blocks, in + size) - offset);
        first = both;
        size *= 2;
    }
}

void cw_reduce_rabenseifner(struct cw_emit *emit, const struct cw_team *team, uint32_t root, struct cw_place own,
                            struct cw_place result, uint64_t bytes)
{
    struct cw_fold fold = cw_fold_make(team, root);
    struct cw_blocks blocks = cw_blocks_even(emit, bytes, fold.power);
    struct cw_place inner = cw_emit_scratch(emit, bytes);
    struct cw_place landing = cw_emit_scratch(emit, bytes);
    struct cw_place accumulator = team->me == root ? result : inner;
    if (fold.me < fold.power) {
        cw_emit_copy(emit, accumulator, own, bytes);
    }
    cw_fold_in(emit, &fold, own, accumulator, landing, bytes);
    if (fold.me == fold.power) {
        return;
    }
    uint32_t window;
    cw_reduce_halving(emit, &fold, &blocks, accumulator, landing, &window);
    uint32_t participant = root < 2 * fold.pairs ? root / 2 : root - fold.pairs;
    gather_doubling(emit, &fold, &blocks, team->me == root ? inner : accumulator, window, participant, result);
}
