/* check: how many ranks of a cluster can have messages to other clusters in flight at the same time.
 *
 * A message comes before another one if it has been sent before the other one's put starts. Messages of which none
 * comes before another can all be in flight together. Messages of one rank that may be in flight together form one
 * group; a group comes before another one if all of it comes before all of the other; groups of one rank follow each
 * other by making. The largest number of groups of which none comes before another (Dilworth: the smallest number of
 * chains that cover them) is never less than the number of ranks sought, and equal to it if each rank sends one message
 * after another. */
#include "collectives/check/state.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 };

struct senders {
    struct check *check;
    uint32_t cluster;
    uint32_t count;
    uint32_t *puts;  /* instances, by rank and position of their starts */
    uint32_t *label; /* by instance: its index in puts, or CHECK_NONE */
    size_t words;
    uint64_t *before; /* [later * words]: set of messages */
    uint32_t group_count;
    uint32_t *group_first; /* in puts; group_count + 1 */
    size_t group_words;
    uint64_t *group_after; /* [earlier * group_words]: set of groups */
    uint32_t *earlier;     /* by group: the one before it in its chain, or CHECK_NONE */
    uint32_t *later;
    uint32_t *found_by; /* by group, as the later one of a pair */
    uint64_t *open;     /* set of groups not yet found */
    uint32_t *queue;
};

static bool crosses(const struct check *check, uint32_t instance)
{
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    if (!check_is_put(op) || cw_op_bytes(op, check_iteration(check, instance)) == 0) {
        return false;
    }
    uint32_t rank = check_rank(check, instance);
    uint32_t own = cw_problem_cluster(check->problem, rank);
    uint32_t fan = check_fan(check, rank, op);
    for (uint32_t i = 0; i < fan; i++) {
        uint32_t target = check->messages[check->instance_message[instance] + i].target;
        if (cw_problem_cluster(check->problem, target) != own) {
            return true;
        }
    }
    return false;
}

/* Counts the messages that leave the cluster and, with `puts`, lists them; returns how many ranks send them. */
static uint32_t collect(struct senders *senders, uint32_t *puts)
{
    struct check *check = senders->check;
    const struct cw_problem *problem = check->problem;
    uint32_t ranks = 0;
    senders->count = 0;
    for (uint32_t k = problem->clusters.first[senders->cluster]; k < problem->clusters.first[senders->cluster + 1];
         k++) {
        uint32_t rank = problem->clusters.members[k];
        uint32_t before = senders->count;
        for (uint32_t op = check->rank_first_op[rank]; op < check->rank_first_op[rank + 1]; op++) {
            uint32_t first = check->op_first_instance[op];
            uint32_t iterations = check_is_put(check_op(check, op)) ? check_iterations(check, op) : 0;
            for (uint32_t i = first; i < first + iterations; i++) {
                if (crosses(check, i)) {
                    if (puts != NULL) {
                        puts[senders->count] = i;
                    }
                    senders->count++;
                }
            }
        }
        ranks += senders->count > before ? 1 : 0;
    }
    return ranks;
}

static int compare_positions(const void *left, const void *right, void *context)
{
    const struct check *check = context;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    uint32_t a_rank = check_rank(check, a);
    uint32_t b_rank = check_rank(check, b);
    if (a_rank != b_rank) {
        return a_rank < b_rank ? -1 : 1;
    }
    uint32_t a_position = check->position[check_start(a)];
    uint32_t b_position = check->position[check_start(b)];
    return a_position < b_position ? -1 : a_position > b_position ? 1 : 0;
}

/* The message, if it is one of the block, that is known to be sent when the edge from `earlier` to `event` has been
 * gone. */
static uint64_t sent_by_edge(const struct senders *senders, uint32_t block, uint32_t earlier, uint32_t event)
{
    const struct check *check = senders->check;
    if (check_is_end(earlier)) {
        return 0;
    }
    uint32_t label = senders->label[earlier / 2];
    if (label == CHECK_NONE || label / BLOCK != block) {
        return 0;
    }
    /* To another start: a dependency on its being sent. To an end: its own, or it has arrived; a multicast at one
     * member only. */
    bool elsewhere = check_is_end(event) && event / 2 != earlier / 2;
    bool multicast = check_op(check, check->instance_op[earlier / 2])->kind == CW_OP_MULTICAST;
    return elsewhere && multicast ? 0 : 1ull << label % BLOCK;
}

/* Which messages of the block have been sent before each event. */
static void spread(const struct senders *senders, uint64_t *sent, uint32_t block)
{
    const struct check *check = senders->check;
    for (uint32_t i = 0; i < check->event_count; i++) {
        uint32_t event = check->order[i];
        uint64_t set = 0;
        if (check_is_end(event)) {
            set = sent[event - 1] | sent_by_edge(senders, block, event - 1, event);
        }
        for (uint32_t k = check->edge_first[event]; k < check->edge_first[event + 1]; k++) {
            uint32_t edge = check->edges.items[k];
            if ((edge & CHECK_WEAK) != 0) {
                break;
            }
            set |= sent[edge] | sent_by_edge(senders, block, edge, event);
        }
        sent[event] = set;
        uint32_t label = check_is_end(event) ? CHECK_NONE : senders->label[event / 2];
        if (label != CHECK_NONE) {
            senders->before[label * senders->words + block] = set;
        }
    }
}

static int relate_messages(struct senders *senders)
{
    struct check *check = senders->check;
    senders->words = (senders->count + BLOCK - 1) / BLOCK;
    senders->label = check_allocate(&check->arena, check->instance_count, sizeof(uint32_t));
    senders->before = check_allocate(&check->arena, senders->count * senders->words, sizeof(uint64_t));
    uint64_t *sent = check_allocate(&check->arena, check->event_count, sizeof(*sent));
    if (senders->label == NULL || senders->before == NULL || sent == NULL) {
        return CW_ERROR_MEMORY;
    }
    memset(senders->label, 0xff, check->instance_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < senders->count; i++) {
        senders->label[senders->puts[i]] = i;
    }
    for (uint32_t block = 0; block < senders->words; block++) {
        spread(senders, sent, block);
    }
    return CW_OK;
}

static bool is_before(const struct senders *senders, uint32_t earlier, uint32_t later)
{
    return (senders->before[later * senders->words + earlier / BLOCK] >> earlier % BLOCK & 1) != 0;
}

/* Whether all of [first, middle) come before all of [other, last). */
static bool all_before(const struct senders *senders, uint32_t first, uint32_t middle, uint32_t other, uint32_t last)
{
    for (uint32_t later = other; later < last; later++) {
        for (uint32_t earlier = middle; earlier-- > first;) {
            if (!is_before(senders, earlier, later)) {
                return false;
            }
        }
    }
    return true;
}

static int make_groups(struct senders *senders)
{
    struct check *check = senders->check;
    senders->group_first = check_allocate(&check->arena, senders->count + 1ull, sizeof(uint32_t));
    if (senders->group_first == NULL) {
        return CW_ERROR_MEMORY;
    }
    senders->group_count = 0;
    for (uint32_t begin = 0, end = 0; begin < senders->count; begin = end) {
        uint32_t rank = check_rank(check, senders->puts[begin]);
        while (end < senders->count && check_rank(check, senders->puts[end]) == rank) {
            end++;
        }
        senders->group_first[senders->group_count++] = begin;
        for (uint32_t cut = begin + 1; cut < end; cut++) {
            /* The groups before the last one come before all that follows it. */
            if (all_before(senders, senders->group_first[senders->group_count - 1], cut, cut, end)) {
                senders->group_first[senders->group_count++] = cut;
            }
        }
    }
    senders->group_first[senders->group_count] = senders->count;
    senders->group_words = (senders->group_count + BLOCK - 1) / BLOCK;
    return CW_OK;
}

static int relate_groups(struct senders *senders)
{
    struct check *check = senders->check;
    uint32_t groups = senders->group_count;
    senders->group_after = check_allocate_zero(&check->arena, groups * senders->group_words, sizeof(uint64_t));
    senders->earlier = check_allocate(&check->arena, groups, sizeof(uint32_t));
    senders->later = check_allocate(&check->arena, groups, sizeof(uint32_t));
    senders->found_by = check_allocate(&check->arena, groups, sizeof(uint32_t));
    senders->open = check_allocate(&check->arena, senders->group_words, sizeof(uint64_t));
    senders->queue = check_allocate(&check->arena, groups, sizeof(uint32_t));
    if (senders->group_after == NULL || senders->earlier == NULL || senders->later == NULL ||
        senders->found_by == NULL || senders->open == NULL || senders->queue == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t a = 0; a < groups; a++) {
        senders->earlier[a] = CHECK_NONE;
        senders->later[a] = CHECK_NONE;
        for (uint32_t b = 0; b < groups; b++) {
            if (a != b && all_before(senders, senders->group_first[a], senders->group_first[a + 1],
                                     senders->group_first[b], senders->group_first[b + 1])) {
                senders->group_after[a * senders->group_words + b / BLOCK] |= 1ull << b % BLOCK;
            }
        }
    }
    return CW_OK;
}

static void open_all(struct senders *senders)
{
    memset(senders->open, 0xff, senders->group_words * sizeof(uint64_t));
}

/* Looks from the groups in the queue for one that follows and has no chain yet; CHECK_NONE: there is none. */
static uint32_t search(struct senders *senders, uint32_t queued)
{
    for (uint32_t taken = 0; taken < queued; taken++) {
        uint32_t group = senders->queue[taken];
        const uint64_t *after = &senders->group_after[group * senders->group_words];
        for (uint32_t word = 0; word < senders->group_words; word++) {
            uint64_t set = after[word] & senders->open[word];
            senders->open[word] &= ~set;
            for (; set != 0; set &= set - 1) {
                uint32_t next = word * BLOCK + (uint32_t)__builtin_ctzll(set);
                senders->found_by[next] = group;
                if (senders->earlier[next] == CHECK_NONE) {
                    return next;
                }
                senders->queue[queued++] = senders->earlier[next];
            }
        }
    }
    return CHECK_NONE;
}

/* Covers the groups with as few chains as possible; returns how many. */
static uint32_t cover(struct senders *senders)
{
    uint32_t chains = senders->group_count;
    for (uint32_t group = 0; group < senders->group_count; group++) {
        open_all(senders);
        senders->queue[0] = group;
        uint32_t next = search(senders, 1);
        chains -= next != CHECK_NONE ? 1 : 0;
        while (next != CHECK_NONE) {
            uint32_t by = senders->found_by[next];
            uint32_t follower = senders->later[by];
            senders->earlier[next] = by;
            senders->later[by] = next;
            next = follower;
        }
    }
    return chains;
}

/* Two of the groups without an order between them (Koenig: those that a search from the ends of chains finds as earlier
 * ones only). */
static void find_pair(struct senders *senders, uint32_t pair[2])
{
    uint32_t queued = 0;
    for (uint32_t group = 0; group < senders->group_count; group++) {
        if (senders->later[group] == CHECK_NONE) {
            senders->queue[queued++] = group;
        }
    }
    open_all(senders);
    uint32_t next = search(senders, queued);
    assert(next == CHECK_NONE);
    (void)next;
    uint32_t found = 0;
    for (uint32_t group = 0; group < senders->group_count && found < 2; group++) {
        bool as_later = (senders->open[group / BLOCK] >> group % BLOCK & 1) == 0;
        bool as_earlier = senders->later[group] == CHECK_NONE ||
                          (senders->open[senders->later[group] / BLOCK] >> senders->later[group] % BLOCK & 1) == 0;
        if (as_earlier && !as_later) {
            pair[found++] = group;
        }
    }
    assert(found == 2);
}

/* Reports two messages, one of each group, that may be in flight together; the groups' first ones if only others
 * overlap. */
static void find_messages(const struct senders *senders, const uint32_t pair[2], uint32_t *one, uint32_t *other)
{
    for (uint32_t a = senders->group_first[pair[0]]; a < senders->group_first[pair[0] + 1]; a++) {
        for (uint32_t b = senders->group_first[pair[1]]; b < senders->group_first[pair[1] + 1]; b++) {
            if (!is_before(senders, a, b) && !is_before(senders, b, a)) {
                *one = senders->puts[a];
                *other = senders->puts[b];
                return;
            }
        }
    }
    *one = senders->puts[senders->group_first[pair[0]]];
    *other = senders->puts[senders->group_first[pair[1]]];
}

static int validate(struct senders *senders)
{
    struct check *check = senders->check;
    uint32_t promised = check->plan->schedules[0].promise.wan_senders;
    int status = relate_messages(senders);
    status = status == CW_OK ? make_groups(senders) : status;
    status = status == CW_OK ? relate_groups(senders) : status;
    if (status != CW_OK) {
        return status;
    }
    uint32_t together = cover(senders);
    if (together <= promised) {
        return CW_OK;
    }
    uint32_t pair[2] = {0, 0};
    uint32_t one = CHECK_NONE;
    uint32_t other = CHECK_NONE;
    find_pair(senders, pair);
    find_messages(senders, pair, &one, &other);
    return check_fail(check, CW_CHECK_WAN_SENDERS, one, UINT64_MAX,
                      "%u ranks of cluster %u may send to other clusters at the same time, so %s; %u are promised",
                      together, senders->cluster, check_name(check, other).text, promised);
}

int check_senders(struct check *check, uint32_t cluster)
{
    struct senders senders = {.check = check, .cluster = cluster};
    if (collect(&senders, NULL) <= check->plan->schedules[0].promise.wan_senders) {
        return CW_OK;
    }
    struct check_mark mark = check_arena_mark(&check->arena);
    senders.puts = check_allocate(&check->arena, senders.count, sizeof(uint32_t));
    int status = CW_ERROR_MEMORY;
    if (senders.puts != NULL) {
        collect(&senders, senders.puts);
        qsort_r(senders.puts, senders.count, sizeof(uint32_t), compare_positions, check);
        status = validate(&senders);
    }
    check_arena_rewind(&check->arena, mark);
    return status;
}
