/* The memory of collectives/schedule/progress.h: the dependents of each op. */
#include "collectives/schedule/progress.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

static void repeats_lay_out(struct cw_progress *progress)
{
    const struct cw_schedule *schedule = progress->schedule;
    uint32_t repeat = CW_PROGRESS_NONE;
    uint32_t body_end = 0;
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        repeat = i < body_end ? repeat : CW_PROGRESS_NONE;
        progress->layouts[i].repeat = repeat;
        if (schedule->ops[i].kind == CW_OP_REPEAT) {
            repeat = i;
            body_end = i + 1 + schedule->ops[i].body_count;
        }
    }
}

/* Counts what op `index` waits for before its iteration 0, and the edges of those it waits for. */
static void unmet_lay_out(struct cw_progress *progress, uint32_t index)
{
    const struct cw_op *op = &progress->schedule->ops[index];
    struct cw_progress_layout *layout = &progress->layouts[index];
    layout->unmet = layout->repeat != CW_PROGRESS_NONE ? 1 : 0; /* a body waits for its repeat to start */
    for (uint32_t i = 0; i < op->dependency_count; i++) {
        const struct cw_dependency *dependency = &progress->schedule->dependencies[op->dependency_first + i];
        layout->unmet += dependency->back == 0 ? 1 : 0;
        progress->layouts[dependency->op + 1].edge_first++;
    }
}

/* Fills in the edges. On entry layouts[i + 1].edge_first is where the list of op i ends; on return, where it begins. */
static void edges_fill(struct cw_progress *progress)
{
    const struct cw_schedule *schedule = progress->schedule;
    struct cw_progress_layout *layouts = progress->layouts;
    for (uint32_t i = schedule->op_count; i-- > 0;) { /* backwards: each list is filled from its end */
        const struct cw_op *op = &schedule->ops[i];
        for (uint32_t j = op->dependency_count; j-- > 0;) {
            const struct cw_dependency *dependency = &schedule->dependencies[op->dependency_first + j];
            bool body = layouts[i].repeat != CW_PROGRESS_NONE && layouts[i].repeat == layouts[dependency->op].repeat;
            uint32_t flags = ((dependency->flags & CW_DEPENDENCY_SENT) != 0 ? CW_PROGRESS_EDGE_SENT : 0u) |
                             (body ? CW_PROGRESS_EDGE_BODY : 0u);
            uint32_t edge = --layouts[dependency->op + 1].edge_first;
            progress->edges[edge] = (struct cw_progress_edge){i, dependency->back, (uint16_t)flags};
        }
    }
}

int cw_progress_create(struct cw_progress *progress, const struct cw_schedule *schedule)
{
    uint32_t count = schedule->op_count;
    *progress = (struct cw_progress){.schedule = schedule};
    progress->layouts = calloc(count + 1ul, sizeof(*progress->layouts));
    progress->states = malloc((count + 1ul) * sizeof(*progress->states));
    if (progress->layouts == NULL || progress->states == NULL) {
        return CW_ERROR_MEMORY;
    }
    repeats_lay_out(progress);
    for (uint32_t i = 0; i < count; i++) {
        unmet_lay_out(progress, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        progress->layouts[i + 1].edge_first += progress->layouts[i].edge_first;
    }
    uint32_t total = progress->layouts[count].edge_first;
    progress->edges = malloc((total + 1ul) * sizeof(*progress->edges));
    if (progress->edges == NULL) {
        return CW_ERROR_MEMORY;
    }
    edges_fill(progress);
    for (uint32_t i = 0; i < count; i++) {
        progress->layouts[i].edge_first = progress->layouts[i + 1].edge_first;
    }
    progress->layouts[count].edge_first = total;
    cw_progress_reset(progress);
    return CW_OK;
}

void cw_progress_dispose(struct cw_progress *progress)
{
    free(progress->layouts);
    free(progress->states);
    free(progress->edges);
}

void cw_progress_reset(struct cw_progress *progress)
{
    const struct cw_schedule *schedule = progress->schedule;
    memset(progress->states, 0, schedule->op_count * sizeof(*progress->states));
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        progress->states[i].unmet = progress->layouts[i].unmet;
        progress->states[i].body_left = schedule->ops[i].body_count;
    }
}
