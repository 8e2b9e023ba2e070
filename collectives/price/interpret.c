/* The interpreter: takes one event after the other until nothing is left to happen. */
#include <stdlib.h>
#include <string.h>

#include "collectives/price/interpret_state.h"
#include "dataplane/status.h"

void cw_trace_dispose(struct cw_trace *trace)
{
    free(trace->events);
    free(trace->messages);
    memset(trace, 0, sizeof(*trace));
}

static void event_apply(struct interpreter *interpreter, const struct event *event)
{
    enum event_kind kind = (enum event_kind)(event->order & 7);
    interpreter->now = event->time;
    if (kind == EVENT_LOCAL) {
        interpreter_complete(interpreter, event->subject, event->iteration);
    } else if (kind == EVENT_BARRIER) {
        interpreter_barrier_over(interpreter, event->subject);
    } else {
        interpreter_message_event(interpreter, kind, event->subject);
    }
}

/* Ops start, and ports are given out, when all that happens at one time has happened. */
static int run(struct interpreter *interpreter)
{
    struct event event;
    interpreter_begin(interpreter);
    interpreter_start_ready(interpreter);
    interpreter_ports_serve(interpreter);
    while (interpreter->status == CW_OK && interpreter_event_pop(interpreter, &event)) {
        event_apply(interpreter, &event);
        if (interpreter->event_count == 0 || interpreter->events[0].time > interpreter->now) {
            interpreter_start_ready(interpreter);
            interpreter_ports_serve(interpreter);
        }
    }
    if (interpreter->status == CW_OK && interpreter->steps_left > 0) {
        return CW_ERROR_ARGUMENT;
    }
    return interpreter->status;
}

int cw_price_interpret(const struct cw_plan *plan, const struct cw_network *network, struct cw_price *price,
                       struct cw_trace *trace)
{
    struct interpreter interpreter;
    struct cw_trace made = {0};
    char reason[128];
    int status = cw_network_validate(network, reason, sizeof(reason));
    if (status != CW_OK) {
        return status;
    }
    status = interpreter_create(&interpreter, plan, network, trace != NULL ? &made : NULL);
    if (status == CW_OK) {
        status = run(&interpreter);
    }
    if (status == CW_OK) {
        *price = interpreter.price;
    }
    if (status == CW_OK && trace != NULL) {
        *trace = made;
    } else {
        cw_trace_dispose(&made);
    }
    interpreter_dispose(&interpreter);
    return status;
}
