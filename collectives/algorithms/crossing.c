#include "collectives/algorithms/crossing.h"

struct cw_holders cw_holders_make(const struct cw_emit *emit, const struct cw_team *team, uint32_t stride,
                                  uint64_t bytes)
{
    return (struct cw_holders){
        .team = *team,
        .blocks = cw_blocks_even(emit, bytes, team->size),
        .stride = stride,
        .count = (team->size + stride - 1) / stride,
    };
}

uint64_t cw_holders_offset(const struct cw_holders *holders, uint32_t k)
{
    return cw_blocks_offset(&holders->blocks, k < holders->count ? k * holders->stride : holders->team.size);
}

uint32_t cw_holders_me(const struct cw_holders *holders)
{
    uint32_t me = holders->team.me;
    return me < holders->team.size && me % holders->stride == 0 ? me / holders->stride : holders->count;
}

static uint32_t holder_rank(const struct cw_holders *holders, uint32_t k)
{
    return cw_team_rank(&holders->team, k * holders->stride);
}

/* The parts of the other division that overlap part k of this one: *first of them, and their number. */
static uint32_t overlapping(const struct cw_holders *holders, uint32_t k, const struct cw_holders *others,
                            uint32_t *first)
{
    uint64_t begin = cw_holders_offset(holders, k);
    uint64_t end = cw_holders_offset(holders, k + 1);
    if (begin == end) {
        *first = 0;
        return 0;
    }
    *first = cw_blocks_at(&others->blocks, begin) / others->stride;
    return cw_blocks_at(&others->blocks, end - 1) / others->stride - *first + 1;
}

struct piece {
    uint64_t offset;
    uint64_t bytes;
};

static struct piece piece_of(const struct cw_holders *from, uint32_t k, const struct cw_holders *to, uint32_t i)
{
    uint64_t begin = cw_holders_offset(from, k);
    uint64_t end = cw_holders_offset(from, k + 1);
    uint64_t other_begin = cw_holders_offset(to, i);
    uint64_t other_end = cw_holders_offset(to, i + 1);
    begin = begin > other_begin ? begin : other_begin;
    end = end < other_end ? end : other_end;
    return (struct piece){begin, end - begin};
}

/* The holder that sends what holder k has. */
static uint32_t sender_of(const struct cw_crossing *crossing, uint32_t k)
{
    bool forwards = !crossing->chained && crossing->senders > 0 && crossing->senders < crossing->from.count;
    return forwards ? k % crossing->senders : k;
}

static bool is_chained(const struct cw_crossing *crossing)
{
    return crossing->chained && crossing->senders > 0;
}

void cw_crossing_begin(struct cw_emit *emit, struct cw_crossing *crossing)
{
    uint32_t me = cw_holders_me(&crossing->from);
    crossing->sent = CW_NO_OP;
    if (is_chained(crossing) && me < crossing->from.count && me >= crossing->senders) {
        crossing->sent = cw_emit_await(emit, holder_rank(&crossing->from, me - crossing->senders));
    }
}

void cw_crossing_end(struct cw_emit *emit, struct cw_crossing *crossing)
{
    uint32_t me = cw_holders_me(&crossing->from);
    if (is_chained(crossing) && me < crossing->from.count && crossing->from.count - me > crossing->senders) {
        cw_emit_after(emit, crossing->sent);
        cw_emit_signal(emit, holder_rank(&crossing->from, me + crossing->senders));
    }
}

/* In a chain one message follows the other, so that the last one represents all. */
static void crossing_put(struct cw_emit *emit, struct cw_crossing *crossing, uint32_t rank, struct cw_place from,
                         struct cw_place to, uint64_t bytes)
{
    if (!is_chained(crossing)) {
        cw_emit_send(emit, rank, from, to, bytes);
        return;
    }
    cw_emit_after(emit, crossing->sent);
    uint32_t put = cw_emit_send(emit, rank, from, to, bytes);
    cw_emit_after_sent(emit, put);
    crossing->sent = cw_emit_gate(emit);
}

void cw_crossing_send(struct cw_emit *emit, struct cw_crossing *crossing, const struct cw_holders *to,
                      struct cw_place target, bool packed)
{
    const struct cw_holders *from = &crossing->from;
    uint32_t me = cw_holders_me(from);
    uint32_t handed =
        /* parts are handed over one after the other: all at once, none would be left to continue before the last */
        CW_NO_OP;
    for (uint32_t k = 0; k < from->count && me < from->count; k++) {
        uint32_t sender = sender_of(crossing, k);
        if (me != k && me != sender) {
            continue;
        }
        uint32_t first;
        uint32_t count = overlapping(from, k, to, &first);
        for (uint32_t i = first; i < first + count; i++) {
            struct piece piece = piece_of(from, k, to, i);
            struct cw_place relay = cw_place_add(crossing->relay, piece.offset);
            struct cw_place here = me == k ? cw_place_add(crossing->source, piece.offset) : relay;
            if (me != k && !crossing->is_handed) {
                cw_emit_after(emit, handed);
                handed = cw_emit_receive(emit, holder_rank(from, k), relay, piece.bytes);
            }
            if (me != sender && crossing->is_handed) {
                continue;
            }
            if (me != sender) {
                cw_emit_send(emit, holder_rank(from, sender), here, relay, piece.bytes);
                continue;
            }
            uint64_t offset = piece.offset - (packed ? cw_holders_offset(to, i) : 0);
            crossing_put(emit, crossing, holder_rank(to, i), here, cw_place_add(target, offset), piece.bytes);
        }
    }
    crossing->is_handed = true;
}

void cw_crossing_receive(struct cw_emit *emit, const struct cw_crossing *crossing, const struct cw_holders *to,
                         struct cw_place target, bool packed)
{
    const struct cw_holders *from = &crossing->from;
    uint32_t me = cw_holders_me(to);
    if (me == to->count) {
        return;
    }
    uint32_t first;
    uint32_t count = overlapping(to, me, from, &first);
    for (uint32_t k = first; k < first + count; k++) {
        struct piece piece = piece_of(from, k, to, me);
        uint64_t offset = piece.offset - (packed ? cw_holders_offset(to, me) : 0);
        cw_emit_receive(emit, holder_rank(from, sender_of(crossing, k)), cw_place_add(target, offset), piece.bytes);
    }
}

uint32_t cw_cluster_parent(const struct cw_problem *problem, uint32_t root, uint32_t cluster)
{
    uint32_t via = cw_problem_via(problem, root, cluster);
    return via == CW_DIRECT ? root : via;
}

uint32_t cw_cluster_hub(const struct cw_problem *problem)
{
    for (uint32_t a = 0; a < problem->cluster_count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            if (cw_problem_via(problem, a, b) != CW_DIRECT) {
                return cw_problem_via(problem, a, b);
            }
        }
    }
    return 0;
}
