/* Preemptive open shop (Gonzalez and Sahni 1976): phases that split messages and together last as long as the busiest
 * rank must send or receive.
 *
 * Let B be the time left, at least every rank's bytes left; a rank's slack is B minus these bytes. A phase of length d
 * keeps that true if every rank with less slack than d sends (receives) enough in it: at least d less its slack. So
 * such ranks must be matched, by messages that are long enough. For small d, a matching that covers them always exists
 * (Koenig). The search finds the longest d with a matching, since long phases are few. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/phases/phases_private.h"
#include "dataplane/status.h"

enum { SEARCH_PRECISION = 64 }; /* d is found within a 64th */

#define NOBODY UINT32_MAX

/* Senders are nodes 0 .. ranks-1, receivers ranks .. 2 * ranks - 1. */
struct shop {
    const struct cw_count_matrix *count_matrix;
    uint32_t element_bytes;
    uint32_t nodes;
    uint64_t left;    /* B; like all amounts here in elements */
    uint64_t *sum;    /* by node: left */
    uint64_t *weight; /* by message: left */
    uint64_t *sent;   /* by message: done */
    uint32_t *first;  /* by node: its messages in `incident` */
    uint32_t *incident;
    uint32_t *match;   /* by node: the message, or none */
    uint32_t *best;    /* the matching of the longest phase found so far */
    uint32_t *came_by; /* search: the message by which a node was reached */
    uint32_t *seen;    /* search number in which a node was seen */
    uint32_t *queue;
    uint32_t search;
    struct cw_phase_message *parts;
    uint32_t part_count;
    uint32_t part_capacity;
};

static uint32_t other_end(const struct shop *shop, uint32_t message, uint32_t node)
{
    const struct cw_count_matrix_message *one = &shop->count_matrix->messages[message];
    return node < shop->count_matrix->ranks ? one->to + shop->count_matrix->ranks : one->from;
}

static uint64_t slack(const struct shop *shop, uint32_t node)
{
    return shop->left - shop->sum[node];
}

static bool must_match(const struct shop *shop, uint32_t node, uint64_t length)
{
    return slack(shop, node) < length;
}

/* How long a phase this message allows at both its ends. */
static uint64_t allows(const struct shop *shop, uint32_t message)
{
    const struct cw_count_matrix_message *one = &shop->count_matrix->messages[message];
    uint64_t out = slack(shop, one->from);
    uint64_t in = slack(shop, one->to + shop->count_matrix->ranks);
    return shop->weight[message] + (out < in ? out : in);
}

/* Turns the path that ends with `node` round: from there back to the root of the search every second message is
 * exchanged for the one before. */
static void path_turn(struct shop *shop, uint32_t node, uint32_t root)
{
    /* `node` is on the other side than the root, and was reached by a message that is not in the matching */
    while (true) {
        uint32_t message = shop->came_by[node];
        uint32_t near = other_end(shop, message, node);
        uint32_t before = shop->match[near];
        shop->match[node] = message;
        shop->match[near] = message;
        if (near == root) {
            return;
        }
        node = other_end(shop, before, near);
    }
}

/* Gives `root` a partner: by a path to a node of the other side without one, or to a node of the own side that can do
 * without its own. */
static bool partner_find(struct shop *shop, uint32_t root, uint64_t length)
{
    uint32_t head = 0;
    uint32_t tail = 0;
    shop->search++;
    shop->seen[root] = shop->search;
    shop->queue[tail++] = root;
    while (head < tail) {
        uint32_t near = shop->queue[head++];
        for (uint32_t i = shop->first[near]; i < shop->first[near + 1]; i++) {
            uint32_t message = shop->incident[i];
            uint32_t far = other_end(shop, message, near);
            if (shop->weight[message] == 0 || shop->seen[far] == shop->search || allows(shop, message) < length) {
                continue;
            }
            shop->seen[far] = shop->search;
            shop->came_by[far] = message;
            if (shop->match[far] == NOBODY) {
                path_turn(shop, far, root);
                return true;
            }
            uint32_t next = other_end(shop, shop->match[far], far);
            if (!must_match(shop, next, length)) {
                shop->match[next] = NOBODY;
                path_turn(shop, far, root);
                return true;
            }
            if (shop->seen[next] != shop->search) {
                shop->seen[next] = shop->search;
                shop->queue[tail++] = next;
            }
        }
    }
    return false;
}

/* Whether a matching covers every node that must be matched; it is then in `match`. Senders first: matching the
 * receivers afterwards leaves no sender without a partner. */
static bool phase_match(struct shop *shop, uint64_t length)
{
    for (uint32_t node = 0; node < shop->count_matrix->ranks; node++) {
        uint32_t message = shop->match[node];
        if (message != NOBODY && (shop->weight[message] == 0 || allows(shop, message) < length)) {
            shop->match[other_end(shop, message, node)] = NOBODY;
            shop->match[node] = NOBODY;
        }
    }
    for (uint32_t node = 0; node < shop->nodes; node++) {
        if (must_match(shop, node, length) && shop->match[node] == NOBODY && !partner_find(shop, node, length)) {
            return false;
        }
    }
    return true;
}

/* Ranks without a partner on both sides may send too. */
static void phase_fill(struct shop *shop)
{
    for (uint32_t node = 0; node < shop->count_matrix->ranks; node++) {
        for (uint32_t i = shop->first[node]; i < shop->first[node + 1] && shop->match[node] == NOBODY; i++) {
            uint32_t message = shop->incident[i];
            uint32_t far = other_end(shop, message, node);
            if (shop->weight[message] > 0 && shop->match[far] == NOBODY) {
                shop->match[node] = shop->match[far] = message;
            }
        }
    }
}

/* The longest phase that the matching allows. */
static uint64_t phase_length(const struct shop *shop)
{
    uint64_t length = shop->left;
    for (uint32_t node = 0; node < shop->nodes; node++) {
        uint64_t most = shop->match[node] != NOBODY ? allows(shop, shop->match[node]) : slack(shop, node);
        length = most < length ? most : length;
    }
    return length;
}

/* Leaves the matching of the (almost) longest possible phase in `match`. */
static void phase_search(struct shop *shop)
{
    size_t bytes = shop->nodes * sizeof(*shop->match);
    uint64_t feasible = 1;
    uint64_t infeasible = shop->left + 1;
    bool found = phase_match(shop, feasible);
    assert(found);
    (void)found;
    memcpy(shop->best, shop->match, bytes);
    uint64_t reached = phase_length(shop);
    feasible = reached > feasible ? reached : feasible;
    while (infeasible - feasible > 1 + feasible / SEARCH_PRECISION) {
        uint64_t middle = feasible + (infeasible - feasible) / 2;
        if (phase_match(shop, middle)) {
            feasible = middle;
            memcpy(shop->best, shop->match, bytes);
        } else {
            infeasible = middle;
        }
    }
    memcpy(shop->match, shop->best, bytes);
}

static bool part_add(struct shop *shop, const struct cw_phase_message *part)
{
    if (shop->part_count == shop->part_capacity) {
        uint32_t capacity = shop->part_capacity == 0 ? 1024 : shop->part_capacity * 2;
        struct cw_phase_message *parts = realloc(shop->parts, capacity * sizeof(*parts));
        if (parts == NULL) {
            return false;
        }
        shop->parts = parts;
        shop->part_capacity = capacity;
    }
    shop->parts[shop->part_count++] = *part;
    return true;
}

static bool phase_run(struct shop *shop, uint32_t phase)
{
    phase_search(shop);
    phase_fill(shop);
    uint64_t length = phase_length(shop);
    assert(length > 0);
    for (uint32_t node = 0; node < shop->count_matrix->ranks; node++) {
        uint32_t message = shop->match[node];
        if (message == NOBODY) {
            continue;
        }
        uint64_t amount = shop->weight[message] < length ? shop->weight[message] : length;
        const struct cw_phase_message part = {
            .message = message,
            .phase = phase,
            .from = node,
            .to = shop->count_matrix->messages[message].to,
            .offset = shop->sent[message] * shop->element_bytes,
            .bytes = amount * shop->element_bytes,
        };
        if (!part_add(shop, &part)) {
            return false;
        }
        shop->weight[message] -= amount;
        shop->sent[message] += amount;
        shop->sum[node] -= amount;
        shop->sum[other_end(shop, message, node)] -= amount;
    }
    shop->left -= length;
    return true;
}

static void incidence_make(struct shop *shop)
{
    const struct cw_count_matrix *count_matrix = shop->count_matrix;
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        shop->first[count_matrix->messages[i].from + 1]++;
        shop->first[count_matrix->ranks + count_matrix->messages[i].to + 1]++;
        uint64_t amount = count_matrix->messages[i].bytes / shop->element_bytes;
        shop->weight[i] = amount;
        shop->sum[count_matrix->messages[i].from] += amount;
        shop->sum[count_matrix->ranks + count_matrix->messages[i].to] += amount;
    }
    for (uint32_t node = 0; node < shop->nodes; node++) {
        shop->first[node + 1] += shop->first[node];
        shop->left = shop->sum[node] > shop->left ? shop->sum[node] : shop->left;
    }
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        shop->incident[shop->first[count_matrix->messages[i].from]++] = i;
        shop->incident[shop->first[count_matrix->ranks + count_matrix->messages[i].to]++] = i;
    }
    memmove(&shop->first[1], &shop->first[0], shop->nodes * sizeof(*shop->first));
    shop->first[0] = 0;
}

static bool shop_open(struct shop *shop, const struct cw_count_matrix *count_matrix, uint32_t element_bytes)
{
    uint32_t messages = count_matrix->message_count + 1;
    *shop =
        (struct shop){.count_matrix = count_matrix, .element_bytes = element_bytes, .nodes = 2 * count_matrix->ranks};
    shop->sum = calloc(shop->nodes, sizeof(*shop->sum));
    shop->weight = calloc(messages, sizeof(*shop->weight));
    shop->sent = calloc(messages, sizeof(*shop->sent));
    shop->first = calloc(shop->nodes + 2ull, sizeof(*shop->first));
    shop->incident = calloc(2ull * messages, sizeof(*shop->incident));
    shop->match = malloc(shop->nodes * sizeof(*shop->match));
    shop->best = malloc(shop->nodes * sizeof(*shop->best));
    shop->came_by = calloc(shop->nodes, sizeof(*shop->came_by));
    shop->seen = calloc(shop->nodes, sizeof(*shop->seen));
    shop->queue = calloc(shop->nodes, sizeof(*shop->queue));
    if (shop->sum == NULL || shop->weight == NULL || shop->sent == NULL || shop->first == NULL ||
        shop->incident == NULL || shop->match == NULL || shop->best == NULL || shop->came_by == NULL ||
        shop->seen == NULL || shop->queue == NULL) {
        return false;
    }
    memset(shop->match, 0xff, shop->nodes * sizeof(*shop->match));
    incidence_make(shop);
    return true;
}

static void shop_close(struct shop *shop)
{
    free(shop->sum);
    free(shop->weight);
    free(shop->sent);
    free(shop->first);
    free(shop->incident);
    free(shop->match);
    free(shop->best);
    free(shop->came_by);
    free(shop->seen);
    free(shop->queue);
    free(shop->parts);
}

int cw_schedule_splitting(const struct cw_count_matrix *count_matrix, uint32_t element_bytes, struct cw_phases *phases)
{
    struct shop shop;
    bool going = shop_open(&shop, count_matrix, element_bytes);
    uint32_t phase = 0;
    while (going && shop.left > 0) {
        going = phase_run(&shop, phase++);
    }
    if (going && shop.parts == NULL) {
        shop.parts = malloc(sizeof(*shop.parts)); /* no messages at all */
        going = shop.parts != NULL;
    }
    if (going) {
        *phases = (struct cw_phases){.phase_count = phase, .message_count = shop.part_count, .messages = shop.parts};
        shop.parts = NULL;
    }
    shop_close(&shop);
    return going ? CW_OK : CW_ERROR_MEMORY;
}
