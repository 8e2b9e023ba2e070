/* All-to-all across clusters: the blocks for another cluster are gathered at a head, cross in one message, and are
 * distributed at the other end, as in MagPIe (Kielmann, Hofman, Bal, Plaat and Bhoedjang 1999), but each other cluster
 * has heads of its own.
 *
 * Two clusters exchange by `ways`: way j carries the rows of the j-th part of the sending cluster's members, a row
 * being what one member has for all members of the other cluster. The same two heads serve a way in both directions. So
 * a rank deals with its cluster and one or few ranks outside, where pairs would have it deal with all. */
#include "collectives/algorithms/algorithms.h"
#include "collectives/algorithms/registry.h"

enum {
    PHASE_GATHER,
    PHASE_CROSSING,
    PHASE_DEAL,
};

struct exchange {
    struct cw_emit *emit;
    const struct cw_problem *problem;
    uint32_t clusters;
    uint32_t own;           /* cluster */
    uint32_t me;            /* index in it */
    uint64_t block;         /* bytes for each rank */
    struct cw_place send;   /* blocks in the order of cluster_members */
    struct cw_place result; /* likewise */
    struct cw_place areas;  /* scratch of heads, at the same offset everywhere */
};

/* ---- Heads and their clusters ---- */

static uint32_t size_of(const struct exchange *exchange, uint32_t cluster)
{
    return cw_problem_cluster_size(exchange->problem, cluster);
}

static uint32_t heads_of(const struct exchange *exchange, uint32_t cluster)
{
    uint32_t size = size_of(exchange, cluster);
    uint32_t senders = exchange->emit->parameters.senders;
    return senders > 0 && senders < size ? senders : size;
}

/* Between two clusters, the same for both. */
static uint32_t ways_of(const struct exchange *exchange, uint32_t one, uint32_t other)
{
    uint32_t heads = heads_of(exchange, one), others = heads_of(exchange, other);
    uint32_t ways = (heads < others ? heads : others) / (exchange->clusters - 1);
    return ways > 0 ? ways : 1;
}

static uint32_t rank_of(const struct exchange *exchange, uint32_t cluster, uint32_t index)
{
    return exchange->problem->clusters.members[exchange->problem->clusters.first[cluster] + index];
}

/* The cluster `distance` after another one. */
static uint32_t cluster_after(const struct exchange *exchange, uint32_t cluster, uint32_t distance)
{
    return (cluster + distance) % exchange->clusters;
}

/* Index of the head in cluster `at` for a way to the cluster `distance` after it. */
static uint32_t head_of(const struct exchange *exchange, uint32_t at, uint32_t distance, uint32_t way)
{
    uint32_t ways = ways_of(exchange, at, cluster_after(exchange, at, distance));
    return (uint32_t)(((uint64_t)(distance - 1) * ways + way) % heads_of(exchange, at));
}

/* The way of which member `index` of cluster `at` is the head; as many as there are: of none. */
static uint32_t way_headed(const struct exchange *exchange, uint32_t at, uint32_t distance, uint32_t index)
{
    uint32_t ways = ways_of(exchange, at, cluster_after(exchange, at, distance));
    uint32_t heads = heads_of(exchange, at);
    uint32_t way = (index + heads - head_of(exchange, at, distance, 0)) % heads;
    return index < heads && way < ways ? way : ways;
}

/* ---- Rows ---- */

/* Of a way from a cluster: its members [first, first + count). */
struct rows {
    uint32_t first;
    uint32_t count;
};

static struct rows rows_of(const struct exchange *exchange, uint32_t from, uint32_t to, uint32_t way)
{
    uint64_t size = size_of(exchange, from);
    uint32_t ways = ways_of(exchange, from, to);
    struct rows rows = {.first = (uint32_t)(size * way / ways)};
    rows.count = (uint32_t)(size * (way + 1) / ways) - rows.first;
    return rows;
}

/* The way that carries a member's row. */
static uint32_t way_of_member(const struct exchange *exchange, uint32_t from, uint32_t to, uint32_t index)
{
    return (uint32_t)(((index + 1ull) * ways_of(exchange, from, to) - 1) / size_of(exchange, from));
}

/* ---- Memory ---- */

/* Scratch that a head needs for a transfer between clusters, from the beginning of its scratch. */
struct area {
    uint64_t out;    /* rows of its own cluster */
    uint64_t in;     /* rows of the other one */
    uint64_t turned; /* the same by target */
    uint64_t end;
};

/* Of member `index` of cluster `at`, for its way to the cluster `distance` after; beyond the last one: only the end
 * counts. */
static struct area area_of(const struct exchange *exchange, uint32_t at, uint32_t index, uint32_t distance)
{
    struct area area = {0};
    for (uint32_t d = 1; d <= distance && d < exchange->clusters; d++) {
        uint32_t other = cluster_after(exchange, at, d);
        uint32_t way = way_headed(exchange, at, d, index);
        if (way < ways_of(exchange, at, other)) {
            uint64_t own_row = size_of(exchange, other) * exchange->block;
            uint64_t other_row = size_of(exchange, at) * exchange->block;
            area.out = area.end;
            area.in = area.out + rows_of(exchange, at, other, way).count * own_row;
            area.turned = area.in + rows_of(exchange, other, at, way).count * other_row;
            area.end = area.turned + rows_of(exchange, other, at, way).count * other_row;
        }
    }
    return area;
}

static struct cw_place area_place(const struct exchange *exchange, uint64_t offset)
{
    return cw_place_add(exchange->areas, offset);
}

/* Where the blocks of a cluster begin, in either buffer. */
static uint64_t cluster_offset(const struct exchange *exchange, uint32_t cluster)
{
    return exchange->problem->clusters.first[cluster] * exchange->block;
}

static bool is_sorted(const struct cw_problem *problem)
{
    uint32_t position = 0;
    while (position < problem->ranks && problem->clusters.members[position] == position) {
        position++;
    }
    return position == problem->ranks;
}

/* Copies between a buffer in the order of ranks and one in that of clusters, as many blocks at once as follow each
 * other in both. */
static void sort_blocks(const struct exchange *exchange, struct cw_place by_cluster, struct cw_place by_rank,
                        bool to_ranks)
{
    const uint32_t *members = exchange->problem->clusters.members;
    for (uint32_t first = 0, end; first < exchange->problem->ranks; first = end) {
        end = first + 1;
        while (end < exchange->problem->ranks && members[end] == members[end - 1] + 1) {
            end++;
        }
        struct cw_place one = cw_place_add(by_cluster, first * exchange->block);
        struct cw_place other = cw_place_add(by_rank, members[first] * exchange->block);
        cw_emit_copy(exchange->emit, to_ranks ? other : one, to_ranks ? one : other, (end - first) * exchange->block);
    }
}

/* ---- Stages ---- */

/* Each member's d-th row goes to another head, so that not all begin with the same one. */
static uint32_t distance_at(const struct exchange *exchange, uint32_t member, uint32_t turn)
{
    return 1 + (member + turn) % (exchange->clusters - 1);
}

static void rows_send(const struct exchange *exchange)
{
    struct cw_emit *emit = exchange->emit;
    for (uint32_t turn = 0; turn + 1 < exchange->clusters; turn++) {
        uint32_t distance = distance_at(exchange, exchange->me, turn);
        uint32_t to = cluster_after(exchange, exchange->own, distance);
        uint32_t way = way_of_member(exchange, exchange->own, to, exchange->me);
        uint32_t head = head_of(exchange, exchange->own, distance, way);
        uint64_t bytes = size_of(exchange, to) * exchange->block;
        uint64_t row = exchange->me - rows_of(exchange, exchange->own, to, way).first;
        struct cw_place from = cw_place_add(exchange->send, cluster_offset(exchange, to));
        struct cw_place at = area_place(exchange, area_of(exchange, exchange->own, head, distance).out + row * bytes);
        if (head == exchange->me) {
            cw_emit_copy(emit, at, from, bytes);
        } else {
            cw_emit_send(emit, rank_of(exchange, exchange->own, head), from, at, bytes);
        }
    }
}

/* In the order in which each member sends them. */
static void rows_receive(const struct exchange *exchange)
{
    for (uint32_t i = 1; i < size_of(exchange, exchange->own); i++) {
        uint32_t member = (exchange->me + i) % size_of(exchange, exchange->own);
        for (uint32_t turn = 0; turn + 1 < exchange->clusters; turn++) {
            uint32_t distance = distance_at(exchange, member, turn);
            uint32_t to = cluster_after(exchange, exchange->own, distance);
            uint32_t way = way_of_member(exchange, exchange->own, to, member);
            if (head_of(exchange, exchange->own, distance, way) == exchange->me) {
                uint64_t bytes = size_of(exchange, to) * exchange->block;
                uint64_t row = member - rows_of(exchange, exchange->own, to, way).first;
                uint64_t out = area_of(exchange, exchange->own, exchange->me, distance).out;
                cw_emit_receive(exchange->emit, rank_of(exchange, exchange->own, member),
                                area_place(exchange, out + row * bytes), bytes);
            }
        }
    }
}

static void exchange_inside(const struct exchange *exchange)
{
    uint32_t size = size_of(exchange, exchange->own);
    uint64_t first = cluster_offset(exchange, exchange->own);
    struct cw_place from = cw_place_add(exchange->send, first), to = cw_place_add(exchange->result, first);
    uint64_t mine = exchange->me * exchange->block;
    cw_emit_copy(exchange->emit, cw_place_add(to, mine), cw_place_add(from, mine), exchange->block);
    for (uint32_t i = 1; i < size; i++) {
        uint32_t target = (exchange->me + i) % size, source = (exchange->me + size - i) % size;
        cw_emit_send(exchange->emit, rank_of(exchange, exchange->own, target),
                     cw_place_add(from, target * exchange->block), cw_place_add(to, mine), exchange->block);
        cw_emit_receive(exchange->emit, rank_of(exchange, exchange->own, source),
                        cw_place_add(to, source * exchange->block), exchange->block);
    }
}

static void cross(const struct exchange *exchange)
{
    for (uint32_t distance = 1; distance < exchange->clusters; distance++) {
        uint32_t other = cluster_after(exchange, exchange->own, distance);
        uint32_t way = way_headed(exchange, exchange->own, distance, exchange->me);
        if (way == ways_of(exchange, exchange->own, other)) {
            continue;
        }
        uint32_t back = exchange->clusters - distance;
        uint32_t head = head_of(exchange, other, back, way);
        struct area here = area_of(exchange, exchange->own, exchange->me, distance);
        struct area there = area_of(exchange, other, head, back);
        cw_emit_send(exchange->emit, rank_of(exchange, other, head), area_place(exchange, here.out),
                     area_place(exchange, there.in), here.in - here.out);
        cw_emit_receive(exchange->emit, rank_of(exchange, other, head), area_place(exchange, here.in),
                        here.turned - here.in);
    }
}

/* Each member's column of the rows that have come. */
static void columns_send(const struct exchange *exchange)
{
    struct cw_emit *emit = exchange->emit;
    uint32_t size = size_of(exchange, exchange->own);
    for (uint32_t distance = 1; distance < exchange->clusters; distance++) {
        uint32_t other = cluster_after(exchange, exchange->own, distance);
        uint32_t way = way_headed(exchange, exchange->own, distance, exchange->me);
        if (way == ways_of(exchange, exchange->own, other)) {
            continue;
        }
        struct rows rows = rows_of(exchange, other, exchange->own, way);
        struct area area = area_of(exchange, exchange->own, exchange->me, distance);
        uint64_t bytes = rows.count * exchange->block;
        uint64_t offset = cluster_offset(exchange, other) + rows.first * exchange->block;
        for (uint32_t i = 0; i < size; i++) {
            uint32_t target = (exchange->me + i) % size;
            struct cw_place column = area_place(exchange, area.in + target * exchange->block);
            struct cw_place turned = area_place(exchange, area.turned + target * bytes);
            struct cw_place end = cw_place_add(exchange->result, offset);
            cw_emit_copy_blocks(emit, i == 0 ? end : turned, exchange->block, column, size * exchange->block,
                                rows.count, exchange->block, exchange->block);
            if (i > 0) {
                cw_emit_send(emit, rank_of(exchange, exchange->own, target), turned, end, bytes);
            }
        }
    }
}

static void columns_receive(const struct exchange *exchange)
{
    for (uint32_t distance = 1; distance < exchange->clusters; distance++) {
        uint32_t other = cluster_after(exchange, exchange->own, distance);
        for (uint32_t way = 0; way < ways_of(exchange, exchange->own, other); way++) {
            uint32_t head = head_of(exchange, exchange->own, distance, way);
            struct rows rows = rows_of(exchange, other, exchange->own, way);
            uint64_t offset = cluster_offset(exchange, other) + rows.first * exchange->block;
            if (head != exchange->me) {
                cw_emit_receive(exchange->emit, rank_of(exchange, exchange->own, head),
                                cw_place_add(exchange->result, offset), rows.count * exchange->block);
            }
        }
    }
}

/* ---- All of it ---- */

static void build_heads(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    const struct cw_problem *problem = emit->problem;
    struct cw_team team = cw_team_cluster(emit, cw_problem_cluster(problem, emit->rank));
    struct exchange exchange = {
        .emit = emit,
        .problem = problem,
        .clusters = problem->cluster_count,
        .own = cw_problem_cluster(problem, emit->rank),
        .me = team.me,
        .block = cw_problem_pair_bytes(problem, 0, 0),
        .send = cw_place(CW_BUFFER_SEND, 0),
        .result = cw_place(CW_BUFFER_RECEIVE, 0),
    };
    bool sorted = is_sorted(problem);
    emit->schedule.promise.wan_senders = emit->parameters.senders;
    if (!sorted) {
        exchange.send = cw_emit_scratch(emit, problem->ranks * exchange.block);
        exchange.result = cw_emit_scratch(emit, problem->ranks * exchange.block);
        sort_blocks(&exchange, exchange.send, cw_place(CW_BUFFER_SEND, 0), false);
    }
    exchange.areas = cw_emit_scratch(emit, area_of(&exchange, exchange.own, exchange.me, exchange.clusters).end);
    cw_emit_phase(emit, PHASE_GATHER);
    rows_send(&exchange);
    rows_receive(&exchange);
    cw_emit_phase(emit, PHASE_CROSSING);
    cross(&exchange);
    exchange_inside(&exchange);
    cw_emit_phase(emit, PHASE_DEAL);
    columns_send(&exchange);
    columns_receive(&exchange);
    if (!sorted) {
        sort_blocks(&exchange, exchange.result, cw_place(CW_BUFFER_RECEIVE, 0), true);
    }
}

const struct cw_recipe cw_recipes_clusters_alltoall[] = {
    {{CW_ALLTOALL, "clusters-heads", CW_TAKES_SENDERS, CW_NEEDS_EQUAL | CW_NEEDS_CLUSTERS,
      "blocks for another cluster are gathered at one of n heads, cross in one message, and are distributed",
      "Kielmann, Hofman, Bal, Plaat and Bhoedjang 1999"},
     build_heads,
     0,
     NULL},
};
const uint32_t cw_recipes_clusters_alltoall_count =
    sizeof(cw_recipes_clusters_alltoall) / sizeof(cw_recipes_clusters_alltoall[0]);
