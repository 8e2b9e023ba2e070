/* A message's way: links between clusters, a port and the processor of its target. */
#include <assert.h>
#include <stdlib.h>

#include "collectives/price/interpret_state.h"
#include "dataplane/status.h"

/* ---- Memory ---- */

uint32_t interpreter_message_acquire(struct interpreter *interpreter)
{
    uint32_t message = interpreter->message_free;
    if (message != INTERPRET_NONE) {
        interpreter->message_free = interpreter->messages[message].next;
        return message;
    }
    uint64_t capacity = interpreter->message_capacity;
    struct message *grown =
        interpreter_grow(interpreter, interpreter->messages, interpreter->message_count, &capacity, sizeof(*grown));
    if (grown == NULL) {
        return INTERPRET_NONE;
    }
    interpreter->messages = grown;
    interpreter->message_capacity = (uint32_t)capacity;
    return interpreter->message_count++;
}

void interpreter_message_release(struct interpreter *interpreter, uint32_t message)
{
    interpreter->messages[message].next = interpreter->message_free;
    interpreter->message_free = message;
}

static void reference_drop(struct interpreter *interpreter, uint32_t message)
{
    assert(interpreter->messages[message].references > 0);
    if (--interpreter->messages[message].references == 0) {
        interpreter_message_release(interpreter, message);
    }
}

static void message_trace(struct interpreter *interpreter, const struct message *message)
{
    struct cw_trace *trace = interpreter->trace;
    if (trace == NULL) {
        return;
    }
    struct cw_trace_message *grown = interpreter_grow(interpreter, trace->messages, trace->message_count,
                                                      &interpreter->trace_message_capacity, sizeof(*grown));
    if (grown == NULL) {
        return;
    }
    trace->messages = grown;
    uint32_t source = interpreter->ops[message->op].rank;
    trace->messages[trace->message_count++] = (struct cw_trace_message){
        .source = source,
        .target = message->target,
        .op = message->op - interpreter->ranks[source].op_first,
        .iteration = message->iteration,
        .bytes = message->bytes,
        .start_ns = message->start,
        .sent_ns = message->sent,
        .arrived_ns = interpreter->now,
    };
}

/* ---- The way ---- */

/* Legs between the clusters of two ranks: 0, 1, or 2 through a third cluster, which is put in *via. */
static uint32_t legs_between(const struct interpreter *interpreter, uint32_t source, uint32_t target, uint32_t *via)
{
    uint32_t from = interpreter->ranks[source].cluster;
    uint32_t to = interpreter->ranks[target].cluster;
    *via = to;
    if (from == to) {
        return 0;
    }
    uint32_t third = cw_problem_via(interpreter->plan->problem, from, to);
    if (third == CW_DIRECT) {
        return 1;
    }
    *via = third;
    return 2;
}

/* From one end to the other: the latency of a path is that of each of its legs. */
static double latency_of(const struct interpreter *interpreter, const struct message *message)
{
    uint32_t via;
    uint32_t legs = legs_between(interpreter, interpreter->ops[message->op].rank, message->target, &via);
    return interpreter->network->paths[message->path].latency_ns * (legs > 1 ? legs : 1);
}

void interpreter_travel(struct interpreter *interpreter, uint32_t index)
{
    struct message *message = &interpreter->messages[index];
    message->legs = 0;
    message->head = message->start;
    message->references++;
    interpreter_event_add(interpreter, message->start + interpreter->network->paths[message->path].latency_ns,
                          EVENT_TRAVELLED, index, 0);
}

/* Messages on a link together share its rate: a message is through when all that entered the link no later is, and not
 * before it could be through alone. Returns the delay. */
static double link_delay(struct interpreter *interpreter, const struct message *message, uint32_t from, uint32_t to)
{
    interpreter->price.wan_bytes += message->bytes;
    if (interpreter->link_free == NULL || message->bytes == 0) {
        return 0;
    }
    double *link = &interpreter->link_free[(uint64_t)from * interpreter->plan->problem->cluster_count + to];
    double begin = *link > message->head ? *link : message->head;
    *link = begin + (double)message->bytes / interpreter->network->wan_bytes_per_ns;
    double alone = message->head + message->gap;
    return *link > alone ? *link - alone : 0;
}

/* The first byte is at the target: a port takes the message, then the processor for the last part of it. */
static void receive(struct interpreter *interpreter, uint32_t index)
{
    struct message *message = &interpreter->messages[index];
    uint32_t ports = interpreter->network->ports;
    double *port = &interpreter->receive_free[(uint64_t)message->target * ports];
    for (uint32_t i = 1; i < ports; i++) {
        double *other = &interpreter->receive_free[(uint64_t)message->target * ports + i];
        port = *other < *port ? other : port;
    }
    double begin = *port > message->head ? *port : message->head;
    double processor = cw_plogp_receive(&interpreter->network->paths[message->path], message->bytes);
    message->arrival = *port = begin + message->gap;
    if (processor > 0) {
        interpreter_event_add(interpreter, message->arrival - processor, EVENT_RECEIVED, index, 0);
    } else {
        interpreter_event_add(interpreter, message->arrival, EVENT_ARRIVED, index, 0);
    }
}

/* The last part of an arrival; a processor that is busy makes it late. */
static void processor_receive(struct interpreter *interpreter, uint32_t index)
{
    struct message *message = &interpreter->messages[index];
    double duration = cw_plogp_receive(&interpreter->network->paths[message->path], message->bytes);
    double begin = interpreter_processor(interpreter, message->target, duration);
    if (begin > interpreter->now) {
        message->arrival = begin + duration;
    }
    interpreter_event_add(interpreter, message->arrival, EVENT_ARRIVED, index, 0);
}

/* Receivers of a multicast in one cluster come as one message, and part only here. */
static void arrive(struct interpreter *interpreter, uint32_t index)
{
    double head = interpreter->messages[index].head;
    for (uint32_t next; index != INTERPRET_NONE; index = next) {
        next = interpreter->messages[index].next;
        interpreter->messages[index].head = head;
        receive(interpreter, index);
    }
}

/* At the end of a leg. All legs are as long, so that messages come here in the order in which they entered the link. */
static void travelled(struct interpreter *interpreter, uint32_t index)
{
    struct message *message = &interpreter->messages[index];
    uint32_t source = interpreter->ops[message->op].rank;
    uint32_t via;
    uint32_t legs = legs_between(interpreter, source, message->target, &via);
    double latency = interpreter->network->paths[message->path].latency_ns;
    double delay = 0;
    if (message->legs < legs) {
        uint32_t from = message->legs == 0 ? interpreter->ranks[source].cluster : via;
        uint32_t to = message->legs + 1u == legs ? interpreter->ranks[message->target].cluster : via;
        delay = link_delay(interpreter, message, from, to);
        message->legs++;
    }
    message->head += latency + delay;
    if (message->legs < legs) {
        interpreter_event_add(interpreter, message->head + latency, EVENT_TRAVELLED, index, 0);
    } else if (delay > 0) { /* ports are taken in the order of coming */
        interpreter_event_add(interpreter, message->head, EVENT_COME, index, 0);
    } else {
        arrive(interpreter, index);
    }
}

/* ---- Events ---- */

static bool is_eager(const struct interpreter *interpreter, const struct message *message)
{
    return (interpreter->op_list[message->op]->flags & CW_OP_EAGER) != 0;
}

static void sent(struct interpreter *interpreter, uint32_t index)
{
    struct message *message = &interpreter->messages[index];
    uint32_t op = message->op;
    uint32_t rank = interpreter->ops[op].rank;
    if (is_eager(interpreter, message)) {
        interpreter_complete(interpreter, op, message->iteration);
    } else {
        interpreter_sent(interpreter, op, message->iteration);
    }
    reference_drop(interpreter, index);
    interpreter_port_released(interpreter, rank);
}

/* The acknowledgement of a direct put, or of the last message of a direct multicast, completes it. */
static void acknowledge(struct interpreter *interpreter, uint32_t index)
{
    uint32_t whose = interpreter->messages[index].parent;
    double time = interpreter->now + latency_of(interpreter, &interpreter->messages[index]);
    if (whose == INTERPRET_NONE) {
        interpreter->messages[index].references++;
        interpreter_event_add(interpreter, time, EVENT_ACKNOWLEDGED, index, 0);
        return;
    }
    struct message *sender = &interpreter->messages[whose];
    sender->arrival = time > sender->arrival ? time : sender->arrival;
    if (sender->pending == 0) {
        sender->references++;
        interpreter_event_add(interpreter, sender->arrival, EVENT_ACKNOWLEDGED, whose, 0);
    }
}

static void arrived(struct interpreter *interpreter, uint32_t index)
{
    struct message *message = &interpreter->messages[index];
    uint32_t source = interpreter->ops[message->op].rank;
    uint32_t tag = cw_op_tag(interpreter->op_list[message->op], message->iteration);
    uint32_t iteration = 0;
    uint32_t wait = interpreter_wait_find(interpreter, message->target, source, tag, &iteration);
    message_trace(interpreter, message);
    if (wait == INTERPRET_NONE) {
        interpreter->status = interpreter->status == CW_OK ? CW_ERROR_ARGUMENT : interpreter->status;
        return;
    }
    uint32_t parent = message->parent;
    if (parent != INTERPRET_NONE) {
        interpreter->messages[parent].pending--;
    }
    if (!is_eager(interpreter, message) || interpreter_uses_credit(interpreter, message->op)) {
        acknowledge(interpreter, index);
    }
    if (parent != INTERPRET_NONE && interpreter->messages[parent].pending == 0) {
        reference_drop(interpreter, parent);
    }
    reference_drop(interpreter, index);
    interpreter_wait_arrived(interpreter, wait, iteration);
}

void interpreter_message_event(struct interpreter *interpreter, enum event_kind kind, uint32_t index)
{
    struct message *message = &interpreter->messages[index];
    switch (kind) {
    case EVENT_SENT:
        sent(interpreter, index);
        break;
    case EVENT_TRAVELLED:
        travelled(interpreter, index);
        break;
    case EVENT_COME:
        arrive(interpreter, index);
        break;
    case EVENT_RECEIVED:
        processor_receive(interpreter, index);
        break;
    case EVENT_ARRIVED:
        arrived(interpreter, index);
        break;
    default:
        if (is_eager(interpreter, message)) {
            interpreter_credit_returned(interpreter, interpreter->ops[message->op].rank);
            reference_drop(interpreter, index);
            return;
        }
        interpreter_complete(interpreter, message->op, message->iteration);
        reference_drop(interpreter, index);
    }
}
