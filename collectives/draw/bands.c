/* The timeline of a large plan: time in columns, in which the height of a colour is the share of the time that it is at
 * work. Neighbours of the same height are one, and all of a lane's colour is one path: some hundred kilobytes for any
 * plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/draw/private.h"
#include "dataplane/status.h"

enum {
    LANES = 3,
    CELLS_MAX = 16000, /* of all lanes */
    COLUMNS_MIN = 60,
    COLUMNS_MAX = 280, /* of 4 points */
    LEVELS = 12,       /* of heights */
};

/* Something at a rank that would be a bar. */
struct mark {
    uint32_t rank;
    uint32_t lane;
    uint32_t colour; /* lane 1: 0 copies, 1 combines */
    uint64_t bytes;
    double start_ns;
    double end_ns;
};

struct marks {
    struct mark *list;
    uint64_t count;
};

/* What each colour does in each column, in columns of time, and up to which level it is drawn. */
struct lane {
    double busy[COLUMNS_MAX][DRAW_COLOURS];
    uint8_t top[COLUMNS_MAX][DRAW_COLOURS + 1]; /* [0]: the bottom */
    uint64_t bytes[DRAW_COLOURS];
    uint64_t parts[DRAW_COLOURS];
};

static void mark_add(struct marks *marks, const struct mark *mark)
{
    if (mark->bytes > 0 && mark->end_ns > mark->start_ns) {
        marks->list[marks->count++] = *mark;
    }
}

/* Of what is exchanged with `other`. */
static uint32_t colour_number(const struct timeline *timeline, const struct cw_trace_message *message, uint32_t other)
{
    return (timeline->by_cluster ? cw_problem_cluster(timeline->plan->problem, other)
                                 : draw_op(timeline, message->source, message->op)->phase) %
           DRAW_COLOURS;
}

static void message_marks(const struct timeline *timeline, const struct cw_trace_message *message, struct marks *marks)
{
    struct mark mark = {
        .rank = message->source,
        .colour = colour_number(timeline, message, message->target),
        .bytes = message->bytes,
        .start_ns = message->start_ns,
        .end_ns = message->sent_ns,
    };
    mark_add(marks, &mark);
    mark.rank = message->target;
    mark.lane = 2;
    mark.colour = colour_number(timeline, message, message->source);
    mark.start_ns = message->arrived_ns - (message->sent_ns - message->start_ns);
    mark.end_ns = message->arrived_ns;
    mark_add(marks, &mark);
}

static void event_mark(const struct timeline *timeline, const struct cw_trace_event *event, struct marks *marks)
{
    const struct cw_op *op = draw_op(timeline, event->rank, event->op);
    struct mark mark = {
        .rank = event->rank,
        .lane = 1,
        .colour = op->kind == CW_OP_REDUCE,
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
    return one->lane < other->lane ? -1 : one->lane > other->lane;
}

static void mark_spread(const struct mark *mark, double column_ns, uint32_t columns, struct lane *lane)
{
    lane->bytes[mark->colour] += mark->bytes;
    lane->parts[mark->colour]++;
    double at = fmax(mark->start_ns / column_ns, 0);
    double end = fmin(mark->end_ns / column_ns, columns);
    for (uint32_t column = (uint32_t)at; column < columns && column < end; column++) {
        lane->busy[column][mark->colour] += fmin(end, column + 1.0) - fmax(at, column);
    }
}

/* One colour on top of the other; what is there at all is seen, and together they are no higher than the lane. */
static void levels_find(struct lane *lane, uint32_t columns)
{
    for (uint32_t column = 0; column < columns; column++) {
        double sum = 0, whole = 0;
        uint8_t *top = lane->top[column];
        top[0] = 0;
        for (uint32_t colour = 0; colour < DRAW_COLOURS; colour++) {
            whole += lane->busy[column][colour];
        }
        for (uint32_t colour = 0; colour < DRAW_COLOURS; colour++) {
            sum += lane->busy[column][colour];
            uint8_t level = (uint8_t)lround(LEVELS * sum / fmax(whole, 1));
            uint8_t least = (uint8_t)(top[colour] + (lane->busy[column][colour] > 0));
            top[colour + 1] = level > least ? level : least < LEVELS ? least : LEVELS;
        }
    }
}

static void path_draw(const struct timeline *timeline, const struct mark *of, const struct lane *lane, uint32_t colour,
                      uint32_t columns)
{
    static const char *const does[][2] = {{"sends", "sends"}, {"copies", "combines"}, {"receives", "receives"}};
    static const char *const locals[] = {DRAW_COPY, DRAW_COMBINE};
    double y, height, wide = (double)DRAW_WIDTH / columns;
    char amount[32];
    draw_lane(timeline, of->rank, of->lane, &y, &height);
    fprintf(timeline->stream, "<path fill=\"%s\" d=\"", of->lane == 1 ? locals[colour] : draw_colour(colour));
    for (uint32_t column = 0, end; column < columns; column = end) {
        uint8_t low = lane->top[column][colour], high = lane->top[column][colour + 1];
        for (end = column + 1; end < columns && lane->top[end][colour] == low && lane->top[end][colour + 1] == high;) {
            end++;
        }
        if (high > low) {
            fprintf(timeline->stream, "M%.5g %.5gh%.5gv%.3gh-%.5gz", DRAW_LEFT + wide * column,
                    y + height * (LEVELS - high) / LEVELS, wide * (end - column), height * (high - low) / LEVELS,
                    wide * (end - column));
        }
    }
    draw_bytes(amount, sizeof(amount), lane->bytes[colour]);
    fprintf(timeline->stream, "\"><title>rank %u %s %s in %llu parts", of->rank, does[of->lane][colour == 1], amount,
            (unsigned long long)lane->parts[colour]);
    if (of->lane != 1 && timeline->by_cluster) {
        fprintf(timeline->stream, ", %s cluster %u", of->lane == 0 ? "to" : "from", colour);
    }
    fputs("</title></path>\n", timeline->stream);
}

/* Draws the lane of the marks from `first` on; returns how many it has. */
static uint64_t lane_draw(const struct timeline *timeline, const struct marks *marks, uint64_t first, uint32_t columns,
                          struct lane *lane)
{
    const struct mark *begin = &marks->list[first];
    uint64_t count = 0;
    memset(lane, 0, sizeof(*lane));
    while (first + count < marks->count && mark_compare(begin, begin + count) == 0) {
        mark_spread(begin + count, timeline->end_ns / columns, columns, lane);
        count++;
    }
    levels_find(lane, columns);
    for (uint32_t colour = 0; colour < DRAW_COLOURS; colour++) {
        if (lane->parts[colour] > 0) {
            path_draw(timeline, begin, lane, colour, columns);
        }
    }
    return count;
}

/* All messages of a colour as one path; those without data are grey. */
static void lines_draw(const struct timeline *timeline)
{
    for (uint32_t colour = 0; colour <= DRAW_COLOURS; colour++) {
        bool any = false;
        for (uint64_t i = 0; i < timeline->trace->message_count; i++) {
            const struct cw_trace_message *message = &timeline->trace->messages[i];
            uint32_t own = message->bytes > 0 ? colour_number(timeline, message, message->source) : DRAW_COLOURS;
            if (own != colour) {
                continue;
            }
            if (!any) {
                fprintf(timeline->stream,
                        "<path fill=\"none\" stroke=\"%s\" stroke-width=\"0.5\" stroke-opacity=\"0.5\" d=\"",
                        colour < DRAW_COLOURS ? draw_colour(colour) : "#bbbbbb");
                any = true;
            }
            fprintf(timeline->stream, "M%.5g %.4gL%.5g %.4g", draw_x(timeline, message->start_ns),
                    draw_y(timeline, message->source) + timeline->row / 2, draw_x(timeline, message->arrived_ns),
                    draw_y(timeline, message->target) + timeline->row / 2);
        }
        fputs(any ? "\"/>\n" : "", timeline->stream);
    }
}

int draw_bands(const struct timeline *timeline, bool lines)
{
    const struct cw_trace *trace = timeline->trace;
    struct marks marks = {.list = calloc(2 * trace->message_count + trace->event_count, sizeof(*marks.list))};
    struct lane *lane = malloc(sizeof(*lane));
    if (marks.list == NULL || lane == NULL) {
        free(marks.list);
        free(lane);
        return CW_ERROR_MEMORY;
    }
    for (uint64_t i = 0; i < trace->message_count; i++) {
        message_marks(timeline, &trace->messages[i], &marks);
    }
    for (uint64_t i = 0; i < trace->event_count; i++) {
        event_mark(timeline, &trace->events[i], &marks);
    }
    qsort(marks.list, marks.count, sizeof(*marks.list), mark_compare);
    uint32_t columns = CELLS_MAX / (LANES * timeline->plan->problem->ranks);
    columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
    for (uint64_t i = 0; i < marks.count;) {
        i += lane_draw(timeline, &marks, i, columns, lane);
    }
    if (lines) {
        lines_draw(timeline);
    }
    free(marks.list);
    free(lane);
    return CW_OK;
}
