#include "collectives/draw/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/draw/private.h"
#include "dataplane/status.h"

enum {
    LEFT = 70,   /* for the ranks' names */
    TOP = 64,    /* for title and legend */
    PLOT = 1120, /* width of the time axis */
    RIGHT = 90,  /* for the finish times */
    BOTTOM = 44, /* for the scale */
    ROWS_HIGH = 900,
    MESSAGE_LINES_MAX = 4000, /* more would be a grey cloud */
    MARKS_MAX =
        20000, /* bars, with some for each rank; more are drawn as bands, which stay below: a browser shows them at once */
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

struct timeline {
    const struct cw_plan *plan;
    const struct cw_trace *trace;
    const struct cw_price *price;
    FILE *stream;
    double row; /* height of a rank's row */
    double end_ns;
};

static double x_of(const struct timeline *timeline, double time_ns)
{
    return timeline->end_ns > 0 ? LEFT + PLOT * time_ns / timeline->end_ns : LEFT;
}

static double y_of(const struct timeline *timeline, uint32_t rank)
{
    return TOP + timeline->row * rank;
}

static const struct cw_op *op_of(const struct timeline *timeline, uint32_t rank, uint32_t op)
{
    return &timeline->plan->schedules[rank].ops[op];
}

/* A bar in one of the three lanes of a row: 0 sends, 1 local, 2 receives. */
static void bar(const struct timeline *timeline, uint32_t rank, uint32_t lane, double start_ns, double end_ns,
                const char *colour, const char *tip)
{
    static const double from[] = {0.06, 0.40, 0.60};
    static const double high[] = {0.34, 0.20, 0.34};
    double x = x_of(timeline, start_ns);
    double width = x_of(timeline, end_ns) - x;
    fprintf(timeline->stream,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>%s</title></rect>\n", x,
            y_of(timeline, rank) + from[lane] * timeline->row, width > 0.4 ? width : 0.4, high[lane] * timeline->row,
            colour, tip);
}

static void rows_draw(const struct timeline *timeline)
{
    uint32_t ranks = timeline->plan->problem->ranks;
    uint32_t every = timeline->row >= 11 ? 1 : (uint32_t)ceil(11 / timeline->row);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        double y = y_of(timeline, rank);
        bool last = rank == timeline->price->last_rank;
        fprintf(timeline->stream,
                "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"#ffffff\" stroke=\"%s\" "
                "stroke-width=\"%s\"/>\n",
                LEFT, y, PLOT, timeline->row, last ? "#d62728" : "#dddddd", last ? "1.5" : "0.5");
        if (rank % every == 0 || last) {
            fprintf(timeline->stream,
                    "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\" dominant-baseline=\"middle\"%s>rank %u</text>\n",
                    LEFT - 6, y + timeline->row / 2, last ? " fill=\"#d62728\" font-weight=\"bold\"" : "", rank);
        }
    }
}

/* What a rank does after its last op is nothing. */
static void finish_draw(const struct timeline *timeline, uint32_t rank, double done_ns)
{
    double x = x_of(timeline, done_ns);
    char text[32];
    draw_time(text, sizeof(text), done_ns);
    fprintf(timeline->stream,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#e4e4e4\"><title>rank %u is done at %s"
            "</title></rect>\n",
            x, y_of(timeline, rank) + 0.5, LEFT + PLOT - x, timeline->row - 1, rank, text);
    if (rank == timeline->price->last_rank) {
        fprintf(
            timeline->stream,
            "<text x=\"%d\" y=\"%.2f\" dominant-baseline=\"middle\" fill=\"#d62728\" font-weight=\"bold\">%s</text>\n",
            LEFT + PLOT + 6, y_of(timeline, rank) + timeline->row / 2, text);
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

static void locals_draw(const struct timeline *timeline)
{
    for (uint64_t i = 0; i < timeline->trace->event_count; i++) {
        const struct cw_trace_event *event = &timeline->trace->events[i];
        const struct cw_op *op = op_of(timeline, event->rank, event->op);
        if ((op->kind != CW_OP_COPY && op->kind != CW_OP_REDUCE) || event->end_ns <= event->start_ns) {
            continue;
        }
        char tip[160];
        char bytes[32];
        draw_bytes(bytes, sizeof(bytes), cw_op_bytes(op, event->iteration) * op->blocks);
        snprintf(tip, sizeof(tip), "rank %u, op %u: %s of %s", event->rank, event->op, cw_op_kind_name(op->kind),
                 bytes);
        bar(timeline, event->rank, 1, event->start_ns, event->end_ns, op->kind == CW_OP_COPY ? "#7f7f7f" : "#111111",
            tip);
    }
}

static void message_draw(const struct timeline *timeline, const struct cw_trace_message *message, bool bars, bool line)
{
    const struct cw_op *op = op_of(timeline, message->source, message->op);
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
    if (bars && message->bytes > 0) {
        bar(timeline, message->source, 0, message->start_ns, message->sent_ns, colour, tip);
        bar(timeline, message->target, 2, message->arrived_ns - length, message->arrived_ns, colour, tip);
    }
    if (line) {
        fprintf(timeline->stream,
                "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" stroke-width=\"%s\" "
                "stroke-opacity=\"0.5\"><title>%s</title></line>\n",
                x_of(timeline, message->start_ns), y_of(timeline, message->source) + timeline->row / 2,
                x_of(timeline, message->arrived_ns), y_of(timeline, message->target) + timeline->row / 2, colour,
                message->bytes > 0 ? "0.8" : "0.4", tip);
    }
}

/* ---- Bands: what is too much to be drawn one by one ---- */

/* Something at a rank that would be a bar. */
struct mark {
    uint32_t rank;
    uint32_t lane; /* as in bar() */
    uint32_t phase;
    bool copy;
    uint64_t bytes;
    double start_ns;
    double end_ns;
};

struct marks {
    struct mark *list;
    uint64_t count;
};

static void mark_add(struct marks *marks, const struct mark *mark)
{
    if (mark->bytes > 0 && mark->end_ns > mark->start_ns) {
        marks->list[marks->count++] = *mark;
    }
}

static void message_marks(const struct timeline *timeline, const struct cw_trace_message *message, struct marks *marks)
{
    double length = message->sent_ns - message->start_ns;
    struct mark mark = {
        .rank = message->source,
        .phase = op_of(timeline, message->source, message->op)->phase,
        .bytes = message->bytes,
        .start_ns = message->start_ns,
        .end_ns = message->sent_ns,
    };
    mark_add(marks, &mark);
    mark.rank = message->target;
    mark.lane = 2;
    mark.start_ns = message->arrived_ns - length;
    mark.end_ns = message->arrived_ns;
    mark_add(marks, &mark);
}

static void event_mark(const struct timeline *timeline, const struct cw_trace_event *event, struct marks *marks)
{
    const struct cw_op *op = op_of(timeline, event->rank, event->op);
    struct mark mark = {
        .rank = event->rank,
        .lane = 1,
        .copy = op->kind == CW_OP_COPY,
        .bytes = cw_op_bytes(op, event->iteration) * op->blocks,
        .start_ns = event->start_ns,
        .end_ns = event->end_ns,
    };
    if (op->kind == CW_OP_COPY || op->kind == CW_OP_REDUCE) {
        mark_add(marks, &mark);
    }
}

static int mark_compare(const void *a, const void *b)
{
    const struct mark *one = a;
    const struct mark *other = b;
    if (one->rank != other->rank) {
        return one->rank < other->rank ? -1 : 1;
    }
    if (one->lane != other->lane) {
        return one->lane < other->lane ? -1 : 1;
    }
    return one->start_ns < other->start_ns ? -1 : one->start_ns > other->start_ns;
}

/* Draws the marks from `first` on that begin within `width_ns` of each other in one lane as one bar; returns how
 * many. */
static uint64_t band_draw(const struct timeline *timeline, const struct marks *marks, uint64_t first, double width_ns)
{
    static const char *const done[] = {"sends", "combines and copies", "receives"};
    const struct mark *begin = &marks->list[first];
    uint64_t count = 0;
    uint64_t bytes = 0;
    double end_ns = begin->end_ns;
    while (first + count < marks->count) {
        const struct mark *mark = begin + count;
        if (mark->rank != begin->rank || mark->lane != begin->lane || mark->start_ns - begin->start_ns > width_ns) {
            break;
        }
        end_ns = mark->end_ns > end_ns ? mark->end_ns : end_ns;
        bytes += mark->bytes;
        count++;
    }
    char tip[240];
    char amount[32];
    char from[32];
    char to[32];
    draw_bytes(amount, sizeof(amount), bytes);
    draw_time(from, sizeof(from), begin->start_ns);
    draw_time(to, sizeof(to), end_ns);
    snprintf(tip, sizeof(tip), "rank %u %s %s in %llu parts; from %s to %s", begin->rank, done[begin->lane], amount,
             (unsigned long long)count, from, to);
    bar(timeline, begin->rank, begin->lane, begin->start_ns, end_ns,
        begin->lane != 1 ? draw_colour(begin->phase)
        : begin->copy    ? "#7f7f7f"
                         : "#111111",
        tip);
    return count;
}

/* A band is as wide as it must be for all lanes full of them to be MARKS_MAX. */
static int bands_draw(const struct timeline *timeline)
{
    const struct cw_trace *trace = timeline->trace;
    struct marks marks = {.list = calloc(2 * trace->message_count + trace->event_count, sizeof(*marks.list))};
    if (marks.list == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint64_t i = 0; i < trace->message_count; i++) {
        message_marks(timeline, &trace->messages[i], &marks);
    }
    for (uint64_t i = 0; i < trace->event_count; i++) {
        event_mark(timeline, &trace->events[i], &marks);
    }
    qsort(marks.list, marks.count, sizeof(*marks.list), mark_compare);
    double width_ns = timeline->end_ns * 3 * timeline->plan->problem->ranks / MARKS_MAX;
    for (uint64_t i = 0; i < marks.count;) {
        i += band_draw(timeline, &marks, i, width_ns);
    }
    free(marks.list);
    return CW_OK;
}

/* 1, 2 or 5 times a power of ten: about ten steps to the end. */
static double scale_step(double end_ns)
{
    double step = pow(10, floor(log10(end_ns / 10)));
    return end_ns / step > 50 ? step * 10 : end_ns / step > 20 ? step * 5 : end_ns / step > 10 ? step * 2 : step;
}

static void scale_draw(const struct timeline *timeline)
{
    double bottom = y_of(timeline, timeline->plan->problem->ranks);
    double step = timeline->end_ns > 0 && isfinite(timeline->end_ns) ? scale_step(timeline->end_ns) : INFINITY;
    for (double at = 0; at <= timeline->end_ns * 1.0001; at += step) {
        char text[32];
        draw_time(text, sizeof(text), at);
        fprintf(timeline->stream,
                "<line x1=\"%.2f\" y1=\"%d\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"#cccccc\" stroke-width=\"0.5\" "
                "stroke-dasharray=\"2 3\"/>\n<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">%s</text>\n",
                x_of(timeline, at), TOP, x_of(timeline, at), bottom + 4, x_of(timeline, at), bottom + 18, text);
    }
}

static void legend_draw(const struct timeline *timeline, bool lines, bool bands)
{
    uint32_t phases = 0;
    for (uint32_t rank = 0; rank < timeline->plan->problem->ranks; rank++) {
        const struct cw_schedule *schedule = &timeline->plan->schedules[rank];
        for (uint32_t i = 0; i < schedule->op_count; i++) {
            phases = schedule->ops[i].phase >= phases ? schedule->ops[i].phase + 1u : phases;
        }
    }
    fprintf(timeline->stream,
            "<text x=\"10\" y=\"38\" fill=\"#555555\">upper half: sending; lower half: receiving; between: combining "
            "(black), "
            "copying (grey); white: idle; light grey: done; red: the last to finish%s%s</text>\n",
            lines ? "" : "; too many messages for lines", bands ? "; what is close together is one band" : "");
    for (uint32_t phase = 0; phase < phases && phase < 12 && phases > 1; phase++) {
        fprintf(timeline->stream,
                "<rect x=\"%u\" y=\"46\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%u\" y=\"55\">phase "
                "%u%s</text>\n",
                10 + phase * 90, draw_colour(phase), 24 + phase * 90, phase, phases > 12 && phase == 11 ? ", ..." : "");
    }
}

int cw_draw_timeline(const struct cw_plan *plan, const struct cw_trace *trace, const struct cw_price *price,
                     FILE *stream)
{
    struct timeline timeline = {
        .plan = plan, .trace = trace, .price = price, .stream = stream, .end_ns = price->time_ns};
    double row = (double)ROWS_HIGH / plan->problem->ranks;
    timeline.row = row > 36 ? 36 : row < 4 ? 4 : row;
    bool lines = trace->message_count <= MESSAGE_LINES_MAX;
    bool bands = 2 * trace->message_count + trace->event_count > MARKS_MAX;
    char what[64];
    draw_time(what, sizeof(what), price->time_ns);
    draw_open(stream, LEFT + PLOT + RIGHT, y_of(&timeline, plan->problem->ranks) + BOTTOM, plan, what);
    legend_draw(&timeline, lines, bands);
    rows_draw(&timeline);
    finishes_draw(&timeline);
    scale_draw(&timeline);
    for (uint64_t i = 0; i < trace->message_count && (lines || !bands); i++) {
        message_draw(&timeline, &trace->messages[i], !bands, lines);
    }
    if (!bands) {
        locals_draw(&timeline);
    }
    int status = bands ? bands_draw(&timeline) : CW_OK;
    draw_close(stream);
    return status;
}
