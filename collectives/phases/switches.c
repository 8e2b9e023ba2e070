/* Phases where clusters, here switches, are joined by links that carry only a few messages at a time (Karwande, Yuan
 * and Lowenthal 2003, end of section 4.2 and Figure 5).
 *
 * A list schedule: the message that needs most of the remaining time goes first. A rank's port carries one message a
 * phase, a link `limit`; a message is as urgent as the most loaded of the things it passes. */
#include <stdlib.h>
#include <string.h>

#include "collectives/phases/phases_private.h"
#include "dataplane/status.h"

struct urgency {
    double key;
    uint64_t bytes;
    uint32_t message;
};

struct switches {
    const struct cw_count_matrix *count_matrix;
    const struct cw_problem *problem;
    uint32_t limit;
    uint64_t *port_bytes; /* left, by rank as a sender, then as a receiver */
    uint64_t *link_bytes; /* left, by ordered pair of clusters */
    uint32_t *port_phase; /* the last phase, counted from 1, in which it is busy */
    uint32_t *link_phase;
    uint32_t *link_count; /* messages in that phase */
    struct urgency *left;
    uint32_t left_count;
    uint32_t *phase_of;
};

/* The links from the cluster of one rank to that of another: none, one, or two by way of a third cluster. */
static uint32_t links_of(const struct switches *switches, const struct cw_count_matrix_message *message,
                         uint32_t links[2])
{
    const struct cw_problem *problem = switches->problem;
    uint32_t from = cw_problem_cluster(problem, message->from);
    uint32_t to = cw_problem_cluster(problem, message->to);
    if (from == to) {
        return 0;
    }
    uint32_t via = cw_problem_via(problem, from, to);
    links[0] = from * problem->cluster_count + (via == CW_DIRECT ? to : via);
    links[1] = via == CW_DIRECT ? 0 : via * problem->cluster_count + to;
    return via == CW_DIRECT ? 1 : 2;
}

static double urgency_of(const struct switches *switches, const struct cw_count_matrix_message *message)
{
    uint32_t links[2];
    uint32_t count = links_of(switches, message, links);
    double key = (double)switches->port_bytes[message->from];
    double in = (double)switches->port_bytes[switches->count_matrix->ranks + message->to];
    key = in > key ? in : key;
    for (uint32_t i = 0; i < count; i++) {
        double link = (double)switches->link_bytes[links[i]] / switches->limit;
        key = link > key ? link : key;
    }
    return key;
}

static int urgency_compare(const void *a, const void *b)
{
    const struct urgency *one = a;
    const struct urgency *other = b;
    if (one->key != other->key) {
        return one->key > other->key ? -1 : 1;
    }
    if (one->bytes != other->bytes) {
        return one->bytes > other->bytes ? -1 : 1;
    }
    return one->message < other->message ? -1 : 1;
}

static void load_change(struct switches *switches, const struct cw_count_matrix_message *message, bool add)
{
    uint32_t links[2];
    uint32_t count = links_of(switches, message, links);
    uint64_t change = add ? message->bytes : 0 - message->bytes;
    switches->port_bytes[message->from] += change;
    switches->port_bytes[switches->count_matrix->ranks + message->to] += change;
    for (uint32_t i = 0; i < count; i++) {
        switches->link_bytes[links[i]] += change;
    }
}

/* Takes the message into the phase, counted from 1, if it meets nothing. */
static bool phase_add(struct switches *switches, const struct cw_count_matrix_message *message, uint32_t phase)
{
    uint32_t links[2];
    uint32_t count = links_of(switches, message, links);
    uint32_t *out = &switches->port_phase[message->from];
    uint32_t *in = &switches->port_phase[switches->count_matrix->ranks + message->to];
    if (*out == phase || *in == phase) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (switches->link_phase[links[i]] == phase && switches->link_count[links[i]] == switches->limit) {
            return false;
        }
    }
    *out = *in = phase;
    for (uint32_t i = 0; i < count; i++) {
        switches->link_count[links[i]] =
            switches->link_phase[links[i]] == phase ? switches->link_count[links[i]] + 1 : 1;
        switches->link_phase[links[i]] = phase;
    }
    return true;
}

static void phase_run(struct switches *switches, uint32_t phase)
{
    for (uint32_t i = 0; i < switches->left_count; i++) {
        struct urgency *urgency = &switches->left[i];
        urgency->key = urgency_of(switches, &switches->count_matrix->messages[urgency->message]);
    }
    qsort(switches->left, switches->left_count, sizeof(*switches->left), urgency_compare);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < switches->left_count; i++) {
        uint32_t index = switches->left[i].message;
        const struct cw_count_matrix_message *message = &switches->count_matrix->messages[index];
        if (phase_add(switches, message, phase + 1)) {
            switches->phase_of[index] = phase;
            load_change(switches, message, false);
        } else {
            switches->left[kept++] = switches->left[i];
        }
    }
    switches->left_count = kept;
}

static bool switches_open(struct switches *switches)
{
    const struct cw_count_matrix *count_matrix = switches->count_matrix;
    uint64_t links = (uint64_t)switches->problem->cluster_count * switches->problem->cluster_count;
    switches->port_bytes = calloc(2ull * count_matrix->ranks, sizeof(*switches->port_bytes));
    switches->link_bytes = calloc(links, sizeof(*switches->link_bytes));
    switches->port_phase = calloc(2ull * count_matrix->ranks, sizeof(*switches->port_phase));
    switches->link_phase = calloc(links, sizeof(*switches->link_phase));
    switches->link_count = calloc(links, sizeof(*switches->link_count));
    switches->left = malloc((count_matrix->message_count + 1ull) * sizeof(*switches->left));
    switches->phase_of = malloc((count_matrix->message_count + 1ull) * sizeof(*switches->phase_of));
    if (switches->port_bytes == NULL || switches->link_bytes == NULL || switches->port_phase == NULL ||
        switches->link_phase == NULL || switches->link_count == NULL || switches->left == NULL ||
        switches->phase_of == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count_matrix->message_count; i++) {
        load_change(switches, &count_matrix->messages[i], true);
        switches->left[switches->left_count++] = (struct urgency){0, count_matrix->messages[i].bytes, i};
    }
    return true;
}

int cw_schedule_switches(const struct cw_count_matrix *count_matrix, const struct cw_problem *problem, uint32_t limit,
                         struct cw_phases *phases)
{
    struct switches switches = {
        .count_matrix = count_matrix, .problem = problem, .limit = limit > 0 ? limit : UINT32_MAX};
    int status = CW_ERROR_MEMORY;
    if (switches_open(&switches)) {
        uint32_t phase = 0;
        while (switches.left_count > 0) {
            phase_run(&switches, phase++);
        }
        status = phases_collect(count_matrix, switches.phase_of, phase, phases);
    }
    free(switches.port_bytes);
    free(switches.link_bytes);
    free(switches.port_phase);
    free(switches.link_phase);
    free(switches.link_count);
    free(switches.left);
    free(switches.phase_of);
    return status;
}
