#include "collectives/draw/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/draw/private.h"
#include "dataplane/status.h"

enum {
    TOP = 64,    /* for title and legend */
    RIGHT = 90,  /* for the finish times */
    BOTTOM = 44, /* for the scale */
    ROWS_HIGH = 900,
    MESSAGE_LINES_MAX = 4000, /* more would be a grey cloud */
    MARKS_MAX = 1500,         /* bars and lines, each with its text: some hundred kilobytes; more are drawn as bands */
};

/* ---- What both pictures share ---- */

const char *draw_colour(uint32_t phase)
{
    static const char *const colours[] = {"#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#e7ba52", "#17becf",
                                          "#8c564b", "#e377c2", "#637939", "#3182bd", "#d6616b", "#7b4173"};
    return colours[phase % (sizeof(colours) / sizeof(colours[0]))];
}

void draw_time(char *text, size_t text_bytes, double time_ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    uint32_t unit = 0;
    while (time_ns >= 1000 && unit < 3) {
        time_ns /= 1000;
        unit++;
    }
    snprintf(text, text_bytes, "%.3g %s", time_ns, units[unit]);
}

void draw_bytes(char *text, size_t text_bytes, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double amount = (double)bytes;
    uint32_t unit = 0;
    while (amount >= 1024 && unit < 4) {
        amount /= 1024;
        unit++;
    }
    snprintf(text, text_bytes, "%.4g %s", amount, units[unit]);
}

void draw_open(FILE *stream, double width, double height, const struct cw_plan *plan, const char *what)
{
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"sans-serif\" font-size=\"11\">\n",
            width, height, width, height);
    fprintf(stream, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", width, height);
    fprintf(stream, "<text x=\"10\" y=\"20\" font-size=\"15\" font-weight=\"bold\">%s %s, %u ranks: %s</text>\n",
            cw_collective_name(plan->problem->collective), plan->algorithm, plan->problem->ranks, what);
}

void draw_close(FILE *stream)
{
    fputs("</svg>\n", stream);
}

/* ---- The timeline ---- */

double draw_x(const struct timeline *timeline, double time_ns)
{
    return timeline->end_ns > 0 ? DRAW_LEFT + DRAW_WIDTH * time_ns / timeline->end_ns : DRAW_LEFT;
}

double draw_y(const struct timeline *timeline, uint32_t rank)
{
    return TOP + timeline->row * rank;
}

void draw_lane(const struct timeline *timeline, uint32_t rank, uint32_t lane, double *y, double *height)
{
    static const double from[] = {0.06, 0.40, 0.60};
    static const double high[] = {0.34, 0.20, 0.34};
    *y = draw_y(timeline, rank) + from[lane] * timeline->row;
    *height = high[lane] * timeline->row;
}

const struct cw_op *draw_op(const struct timeline *timeline, uint32_t rank, uint32_t op)
{
    return &timeline->plan->schedules[rank].ops[op];
}

static void bar(const struct timeline *timeline, uint32_t rank, uint32_t lane, double start_ns, double end_ns,
                const char *colour, const char *tip)
{
    double x = draw_x(timeline, start_ns);
    double width = draw_x(timeline, end_ns) - x;
    double y, height;
    draw_lane(timeline, rank, lane, &y, &height);
    fprintf(timeline->stream,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>%s</title></rect>\n", x, y,
            width > 0.4 ? width : 0.4, height, colour, tip);
}

static void rows_draw(const struct timeline *timeline)
{
    uint32_t ranks = timeline->plan->problem->ranks;
    uint32_t every = timeline->row >= 11 ? 1 : (uint32_t)ceil(11 / timeline->row);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        double y = draw_y(timeline, rank);
        bool last = rank == timeline->price->last_rank;
        fprintf(timeline->stream,
                "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"#ffffff\" stroke=\"%s\" "
                "stroke-width=\"%s\"/>\n",
                DRAW_LEFT, y, DRAW_WIDTH, timeline->row, last ? "#d62728" : "#dddddd", last ? "1.5" : "0.5");
        if (rank % every == 0 || last) {
            fprintf(timeline->stream,
                    "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\" dominant-baseline=\"middle\"%s>rank %u</text>\n",
                    DRAW_LEFT - 6, y + timeline->row / 2, last ? " fill=\"#d62728\" font-weight=\"bold\"" : "", rank);
        }
    }
}

/* What a rank does after its last op is nothing. */
static void finish_draw(const struct timeline *timeline, uint32_t rank, double done_ns)
{
    double x = draw_x(timeline, done_ns);
    char text[32];
    draw_time(text, sizeof(text), done_ns);
    fprintf(timeline->stream,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#e4e4e4\"><title>rank %u is done at %s"
            "</title></rect>\n",
            x, draw_y(timeline, rank) + 0.5, DRAW_LEFT + DRAW_WIDTH - x, timeline->row - 1, rank, text);
    if (rank == timeline->price->last_rank) {
        fprintf(
            timeline->stream,
            "<text x=\"%d\" y=\"%.2f\" dominant-baseline=\"middle\" fill=\"#d62728\" font-weight=\"bold\">%s</text>\n",
            DRAW_LEFT + DRAW_WIDTH + 6, draw_y(timeline, rank) + timeline->row / 2, text);
    }
}

static void finishes_draw(const struct timeline *timeline)
{
    uint32_t ranks = timeline->plan->problem->ranks;
    double *done = calloc(ranks, sizeof(*done));
    if (done == NULL) {
        return;
    }
    for (uint64_t i = 0; i < timeline->trace->event_count; i++) {
        const struct cw_trace_event *event = &timeline->trace->events[i];
        if (event->end_ns > done[event->rank]) {
            done[event->rank] = event->end_ns;
        }
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        finish_draw(timeline, rank, done[rank]);
    }
    free(done);
}

/* What locals_draw draws, at most. */
static uint64_t locals_count(const struct cw_plan *plan, const struct cw_trace *trace)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const struct cw_op *op = &plan->schedules[trace->events[i].rank].ops[trace->events[i].op];
        count += op->kind == CW_OP_COPY || op->kind == CW_OP_REDUCE;
    }
    return count;
}

static void locals_draw(const struct timeline *timeline)
{
    for (uint64_t i = 0; i < timeline->trace->event_count; i++) {
        const struct cw_trace_event *event = &timeline->trace->events[i];
        const struct cw_op *op = draw_op(timeline, event->rank, event->op);
        if ((op->kind != CW_OP_COPY && op->kind != CW_OP_REDUCE) || event->end_ns <= event->start_ns) {
            continue;
        }
        char tip[160];
        char bytes[32];
        draw_bytes(bytes, sizeof(bytes), cw_op_bytes(op, event->iteration) * op->blocks);
        snprintf(tip, sizeof(tip), "rank %u, op %u: %s of %s", event->rank, event->op, cw_op_kind_name(op->kind),
                 bytes);
        bar(timeline, event->rank, 1, event->start_ns, event->end_ns, op->kind == CW_OP_COPY ? DRAW_COPY : DRAW_COMBINE,
            tip);
    }
}

static void message_draw(const struct timeline *timeline, const struct cw_trace_message *message)
{
    const struct cw_op *op = draw_op(timeline, message->source, message->op);
    const char *colour = message->bytes > 0 ? draw_colour(op->phase) : "#bbbbbb";
    char tip[240];
    char bytes[32];
    char start[32];
    char arrived[32];
    draw_bytes(bytes, sizeof(bytes), message->bytes);
    draw_time(start, sizeof(start), message->start_ns);
    draw_time(arrived, sizeof(arrived), message->arrived_ns);
    snprintf(tip, sizeof(tip), "%u to %u: %s, phase %u, op %u, iteration %u; from %s to %s", message->source,
             message->target, message->bytes > 0 ? bytes : "signal", op->phase, message->op, message->iteration, start,
             arrived);
    double length = message->sent_ns - message->start_ns;
    if (message->bytes > 0) {
        bar(timeline, message->source, 0, message->start_ns, message->sent_ns, colour, tip);
        bar(timeline, message->target, 2, message->arrived_ns - length, message->arrived_ns, colour, tip);
    }
    fprintf(timeline->stream,
            "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" stroke-width=\"%s\" "
            "stroke-opacity=\"0.5\"><title>%s</title></line>\n",
            draw_x(timeline, message->start_ns), draw_y(timeline, message->source) + timeline->row / 2,
            draw_x(timeline, message->arrived_ns), draw_y(timeline, message->target) + timeline->row / 2, colour,
            message->bytes > 0 ? "0.8" : "0.4", tip);
}

/* 1, 2 or 5 times a power of ten: about ten steps to the end. */
static double scale_step(double end_ns)
{
    double step = pow(10, floor(log10(end_ns / 10)));
    return end_ns / step > 50 ? step * 10 : end_ns / step > 20 ? step * 5 : end_ns / step > 10 ? step * 2 : step;
}

static void scale_draw(const struct timeline *timeline)
{
    double bottom = draw_y(timeline, timeline->plan->problem->ranks);
    double step = timeline->end_ns > 0 && isfinite(timeline->end_ns) ? scale_step(timeline->end_ns) : INFINITY;
    for (double at = 0; at <= timeline->end_ns * 1.0001; at += step) {
        char text[32];
        draw_time(text, sizeof(text), at);
        fprintf(timeline->stream,
                "<line x1=\"%.2f\" y1=\"%d\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"#cccccc\" stroke-width=\"0.5\" "
                "stroke-dasharray=\"2 3\"/>\n<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">%s</text>\n",
                draw_x(timeline, at), TOP, draw_x(timeline, at), bottom + 4, draw_x(timeline, at), bottom + 18, text);
    }
}

static uint32_t phase_count(const struct cw_plan *plan)
{
    uint32_t phases = 0;
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        const struct cw_schedule *schedule = &plan->schedules[rank];
        for (uint32_t i = 0; i < schedule->op_count; i++) {
            phases = schedule->ops[i].phase >= phases ? schedule->ops[i].phase + 1u : phases;
        }
    }
    return phases;
}

static void legend_draw(const struct timeline *timeline, bool lines, bool bands)
{
    bool clusters = timeline->by_cluster;
    uint32_t count = clusters ? timeline->plan->problem->cluster_count : phase_count(timeline->plan);
    fprintf(timeline->stream,
            "<text x=\"10\" y=\"38\" fill=\"#555555\">upper half: sending; lower half: receiving; between: combining "
            "(black), copying (grey); white: idle; light grey: done; red: the last to finish%s%s%s</text>\n",
            lines ? "" : "; too many messages for lines", bands ? "; height: share of the time" : "",
            clusters ? "; colour: cluster at the other end" : "");
    for (uint32_t i = 0; i < count && i < DRAW_COLOURS && count > 1; i++) {
        fprintf(timeline->stream,
                "<rect x=\"%u\" y=\"46\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%u\" y=\"55\">%s "
                "%u%s</text>\n",
                10 + i * 90, draw_colour(i), 24 + i * 90, clusters ? "cluster" : "phase", i,
                count > DRAW_COLOURS && i + 1 == DRAW_COLOURS ? ", ..." : "");
    }
}

int cw_draw_timeline(const struct cw_plan *plan, const struct cw_trace *trace, const struct cw_price *price,
                     FILE *stream)
{
    bool lines = trace->message_count <= MESSAGE_LINES_MAX;
    bool bands = 3 * trace->message_count + locals_count(plan, trace) > MARKS_MAX;
    struct timeline timeline = {.plan = plan,
                                .trace = trace,
                                .price = price,
                                .stream = stream,
                                .by_cluster = bands && plan->problem->cluster_count > 1,
                                .end_ns = price->time_ns};
    double row = (double)ROWS_HIGH / plan->problem->ranks;
    timeline.row = row > 36 ? 36 : row < 4 ? 4 : row;
    char what[64];
    draw_time(what, sizeof(what), price->time_ns);
    draw_open(stream, DRAW_LEFT + DRAW_WIDTH + RIGHT, draw_y(&timeline, plan->problem->ranks) + BOTTOM, plan, what);
    legend_draw(&timeline, lines, bands);
    rows_draw(&timeline);
    finishes_draw(&timeline);
    scale_draw(&timeline);
    int status = CW_OK;
    if (bands) {
        status = draw_bands(&timeline, lines);
    } else {
        for (uint64_t i = 0; i < trace->message_count; i++) {
            message_draw(&timeline, &trace->messages[i]);
        }
        locals_draw(&timeline);
    }
    draw_close(stream);
    return status;
}
