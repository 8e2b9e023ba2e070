/* The matrix view of an all-to-all. */
#include <stdlib.h>

#include "collectives/draw/draw.h"
#include "collectives/draw/private.h"
#include "dataplane/status.h"

enum {
    MARGIN = 60,
    HEAD = 60,
    MATRIX_WIDE = 800,
    LIST_WIDE = 330,    /* for the phases beside */
    CELL_TEXT_MIN = 16, /* smaller cells have no number in them */
    LIST_LINE = 16,
    LIST_MAX = 100, /* phases in the list; more would be taller than any screen */
};

struct phase_sum {
    uint64_t longest;
    uint64_t bytes;
    uint32_t messages;
};

struct matrix {
    const struct cw_plan *plan;
    FILE *stream;
    double cell;
    struct phase_sum *phases; /* CW_PHASES_MAX + 1 */
    uint32_t phase_count;
};

static bool carries_data(const struct cw_op *op)
{
    return op->kind == CW_OP_PUT && op->bytes > 0;
}

/* Where a message is split, the parts stand one beside the other in its cell. */
static void row_draw(struct matrix *matrix, const struct cw_schedule *schedule, uint32_t *parts, uint32_t *drawn)
{
    uint32_t ranks = matrix->plan->problem->ranks;
    for (uint32_t to = 0; to < ranks; to++) {
        parts[to] = drawn[to] = 0;
    }
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        parts[carries_data(&schedule->ops[i]) ? schedule->ops[i].peer : 0] += carries_data(&schedule->ops[i]);
    }
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        const struct cw_op *op = &schedule->ops[i];
        if (!carries_data(op)) {
            continue;
        }
        uint64_t bytes = op->bytes * (op->iterations - 1) + op->last_bytes;
        struct phase_sum *sum = &matrix->phases[op->phase];
        sum->longest = bytes > sum->longest ? bytes : sum->longest;
        sum->bytes += bytes;
        sum->messages++;
        matrix->phase_count = op->phase >= matrix->phase_count ? op->phase + 1u : matrix->phase_count;
        double wide = matrix->cell / parts[op->peer];
        double x = MARGIN + matrix->cell * op->peer + wide * drawn[op->peer]++;
        double y = HEAD + matrix->cell * schedule->rank;
        char text[32];
        draw_bytes(text, sizeof(text), bytes);
        fprintf(matrix->stream,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>%u to %u: %s in phase %u"
                "</title></rect>\n",
                x, y, wide, matrix->cell, draw_colour(op->phase), schedule->rank, op->peer, text, op->phase);
        if (wide >= CELL_TEXT_MIN) {
            fprintf(
                matrix->stream,
                "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\" dominant-baseline=\"middle\" fill=\"#ffffff\">%u"
                "</text>\n",
                x + wide / 2, y + matrix->cell / 2, op->phase);
        }
    }
}

static void frame_draw(const struct matrix *matrix)
{
    uint32_t ranks = matrix->plan->problem->ranks;
    double side = matrix->cell * ranks;
    uint32_t every = matrix->cell >= 14 ? 1 : (uint32_t)(14 / matrix->cell) + 1;
    fprintf(matrix->stream,
            "<rect x=\"%d\" y=\"%d\" width=\"%.2f\" height=\"%.2f\" fill=\"none\" stroke=\"#444444\"/>\n"
            "<text x=\"%d\" y=\"38\" fill=\"#555555\">rows: senders; columns: receivers; number and colour: the "
            "phase</text>\n",
            MARGIN, HEAD, side, side, 10);
    for (uint32_t rank = 0; rank < ranks; rank += every) {
        double middle = matrix->cell * (rank + 0.5);
        fprintf(matrix->stream,
                "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\" dominant-baseline=\"middle\">%u</text>\n"
                "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\">%u</text>\n",
                MARGIN - 5, HEAD + middle, rank, MARGIN + middle, HEAD - 5, rank);
    }
}

/* A bar per phase as long as its longest message: together they are the time that all take. */
static void list_draw(const struct matrix *matrix, double x)
{
    uint64_t longest = 1;
    for (uint32_t phase = 0; phase < matrix->phase_count; phase++) {
        longest = matrix->phases[phase].longest > longest ? matrix->phases[phase].longest : longest;
    }
    for (uint32_t phase = 0; phase < matrix->phase_count && phase < LIST_MAX; phase++) {
        const struct phase_sum *sum = &matrix->phases[phase];
        double y = HEAD + (double)LIST_LINE * phase;
        char text[32];
        draw_bytes(text, sizeof(text), sum->longest);
        fprintf(matrix->stream,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>\n"
                "<text x=\"%.2f\" y=\"%.2f\">phase %u: %u messages, longest %s</text>\n",
                x, y, 100.0 * (double)sum->longest / (double)longest, LIST_LINE - 3, draw_colour(phase), x + 106,
                y + 10, phase, sum->messages, text);
    }
    if (matrix->phase_count > LIST_MAX) {
        fprintf(matrix->stream, "<text x=\"%.2f\" y=\"%d\">... and %u more phases</text>\n", x,
                HEAD + LIST_LINE * LIST_MAX + 10, matrix->phase_count - LIST_MAX);
    }
}

int cw_draw_matrix(const struct cw_plan *plan, FILE *stream)
{
    uint32_t ranks = plan->problem->ranks;
    if (plan->problem->collective != CW_ALLTOALL) {
        return CW_ERROR_UNSUPPORTED;
    }
    if (ranks > CW_DRAW_MATRIX_RANKS_MAX) {
        return CW_ERROR_LIMIT;
    }
    struct matrix matrix = {
        .plan = plan,
        .stream = stream,
        .cell = (double)MATRIX_WIDE / ranks > 40 ? 40 : (double)MATRIX_WIDE / ranks,
        .phases = calloc(CW_PHASES_MAX + 1, sizeof(*matrix.phases)),
    };
    uint32_t *counts = calloc(2ull * ranks, sizeof(*counts));
    if (matrix.phases == NULL || counts == NULL) {
        free(matrix.phases);
        free(counts);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const struct cw_schedule *schedule = &plan->schedules[rank];
        for (uint32_t i = 0; i < schedule->op_count; i++) {
            uint32_t phase = schedule->ops[i].phase;
            matrix.phase_count =
                carries_data(&schedule->ops[i]) && phase >= matrix.phase_count ? phase + 1 : matrix.phase_count;
        }
    }
    double side = matrix.cell * ranks;
    double list = HEAD + (double)LIST_LINE * (matrix.phase_count < LIST_MAX ? matrix.phase_count : LIST_MAX + 1);
    draw_open(stream, MARGIN + side + 30 + LIST_WIDE, (side + HEAD > list ? side + HEAD : list) + 20, plan, "phases");
    for (uint32_t rank = 0; rank < ranks; rank++) {
        row_draw(&matrix, &plan->schedules[rank], counts, counts + ranks);
    }
    frame_draw(&matrix);
    list_draw(&matrix, MARGIN + side + 30);
    draw_close(stream);
    free(matrix.phases);
    free(counts);
    return CW_OK;
}
