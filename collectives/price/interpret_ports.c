/* The sender's side of messages: the line for a port, and the progress of the first one. */
#include "collectives/price/interpret_state.h"
#include "dataplane/status.h"

/* ---- With a port ---- */

static uint32_t child_make(struct interpreter *interpreter, uint32_t parent, uint32_t target, uint8_t path)
{
    uint32_t child = interpreter_message_acquire(interpreter);
    if (child == INTERPRET_NONE) {
        return child;
    }
    struct message *made = &interpreter->messages[child];
    *made = interpreter->messages[parent];
    made->target = target;
    made->parent = parent;
    made->path = path;
    made->gap = cw_plogp_gap(&interpreter->network->paths[path], made->bytes);
    made->references = 0;
    return child;
}

/* One message per cluster on the links, with those to its other members behind it. */
static void multicast_forward(struct interpreter *interpreter, uint32_t parent, const uint32_t *members, uint32_t count)
{
    uint32_t own = interpreter->ranks[interpreter->ops[interpreter->messages[parent].op].rank].cluster;
    interpreter->messages[parent].pending = count;
    interpreter->messages[parent].references++; /* until it has arrived everywhere */
    for (uint32_t i = 0; i < count && interpreter->status == CW_OK; i++) {
        uint32_t cluster = interpreter->ranks[members[i]].cluster;
        uint32_t child = child_make(interpreter, parent, members[i], cluster == own ? CW_PATH_LAN : CW_PATH_WAN);
        uint32_t *first = &interpreter->cluster_first[cluster];
        if (child == INTERPRET_NONE) {
            return;
        }
        if (*first == INTERPRET_NONE) {
            interpreter->messages[child].next = INTERPRET_NONE;
            *first = child;
            interpreter_travel(interpreter, child);
        } else {
            interpreter->messages[child].next = interpreter->messages[*first].next;
            interpreter->messages[child].references = 1;
            interpreter->messages[*first].next = child;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        interpreter->cluster_first[interpreter->ranks[members[i]].cluster] = INTERPRET_NONE;
    }
}

/* Which kinds of path a multicast takes: a bit each. */
static uint32_t kinds_of(const struct interpreter *interpreter, uint32_t rank, const uint32_t *members, uint32_t count)
{
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool here = interpreter->ranks[members[i]].cluster == interpreter->ranks[rank].cluster;
        kinds |= 1u << (here ? CW_PATH_LAN : CW_PATH_WAN);
    }
    return kinds;
}

/* It has a port, and begins when the processor has the time. */
static void send(struct interpreter *interpreter, uint32_t index)
{
    struct message *message = &interpreter->messages[index];
    const struct cw_op *op = interpreter->op_list[message->op];
    uint32_t rank = interpreter->ops[message->op].rank;
    const struct cw_schedule *schedule = interpreter->ranks[rank].schedule;
    bool multicast = op->kind == CW_OP_MULTICAST;
    const uint32_t *members = multicast ? &schedule->members[schedule->groups[op->peer].first] : &op->peer;
    uint32_t count = multicast ? schedule->groups[op->peer].count : 1;
    uint32_t kinds = kinds_of(interpreter, rank, members, count);
    double gap = 0;
    double processor = 0;
    for (uint32_t kind = 0; kind < CW_PATH_COUNT; kind++) {
        const struct cw_plogp *path = &interpreter->network->paths[kind];
        if ((kinds >> kind & 1) != 0) {
            gap = gap > cw_plogp_gap(path, message->bytes) ? gap : cw_plogp_gap(path, message->bytes);
            double send_ns = cw_plogp_send(path, message->bytes);
            processor = processor > send_ns ? processor : send_ns;
            message->path = (uint8_t)kind;
        }
    }
    interpreter->ranks[rank].sending++;
    message->start = interpreter_processor(interpreter, rank, processor);
    message->sent = message->start + gap;
    message->gap = gap;
    struct cw_trace_event *trace = interpreter_trace(interpreter, message->op, message->iteration);
    if (trace != NULL) {
        trace->start_ns = message->start;
    }
    message->references = 1;
    interpreter_event_add(interpreter, message->sent, EVENT_SENT, index, 0);
    if (multicast) {
        multicast_forward(interpreter, index, members, count);
    } else {
        message->target = op->peer;
        message->next = INTERPRET_NONE;
        interpreter_travel(interpreter, index);
    }
}

/* ---- The line for a port: a pairing heap, with the next message first ---- */

static bool goes_before(const struct message *one, const struct message *other)
{
    return one->iteration < other->iteration || (one->iteration == other->iteration && one->op < other->op);
}

static uint32_t line_join(struct interpreter *interpreter, uint32_t one, uint32_t other)
{
    struct message *messages = interpreter->messages;
    if (one == INTERPRET_NONE || other == INTERPRET_NONE) {
        return one == INTERPRET_NONE ? other : one;
    }
    uint32_t first = goes_before(&messages[other], &messages[one]) ? other : one;
    uint32_t second = first == one ? other : one;
    messages[second].next = messages[first].child;
    messages[first].child = second;
    return first;
}

/* The line without its first: those behind it are joined in pairs, and the pairs from the last to the first. */
static uint32_t line_rest(struct interpreter *interpreter, uint32_t first)
{
    struct message *messages = interpreter->messages;
    uint32_t pairs = INTERPRET_NONE;
    for (uint32_t one = messages[first].child; one != INTERPRET_NONE;) {
        uint32_t other = messages[one].next;
        uint32_t after = other != INTERPRET_NONE ? messages[other].next : INTERPRET_NONE;
        uint32_t pair = line_join(interpreter, one, other);
        messages[pair].next = pairs;
        pairs = pair;
        one = after;
    }
    uint32_t line = INTERPRET_NONE;
    while (pairs != INTERPRET_NONE) {
        uint32_t next = messages[pairs].next;
        line = line_join(interpreter, line, pairs);
        pairs = next;
    }
    return line;
}

static void to_serve_add(struct interpreter *interpreter, uint32_t rank)
{
    if (interpreter->ranks[rank].served) {
        interpreter->ranks[rank].served = false;
        interpreter->to_serve[interpreter->to_serve_count++] = rank;
    }
}

void interpreter_line_serve(struct interpreter *interpreter, uint32_t rank)
{
    struct rank_state *state = &interpreter->ranks[rank];
    while (state->line != INTERPRET_NONE && state->sending < interpreter->network->ports) {
        uint32_t message = state->line;
        state->line = line_rest(interpreter, message);
        send(interpreter, message);
    }
}

void interpreter_ports_serve(struct interpreter *interpreter)
{
    for (uint32_t i = 0; i < interpreter->to_serve_count; i++) {
        interpreter->ranks[interpreter->to_serve[i]].served = true;
        interpreter_line_serve(interpreter, interpreter->to_serve[i]);
    }
    interpreter->to_serve_count = 0;
}

bool interpreter_uses_credit(const struct interpreter *interpreter, uint32_t op)
{
    const struct cw_op *put = interpreter->op_list[op];
    return interpreter->network->wan_messages > 0 && put->kind == CW_OP_PUT && (put->flags & CW_OP_EAGER) != 0 &&
           interpreter->ranks[put->peer].cluster != interpreter->ranks[interpreter->ops[op].rank].cluster;
}

static void line_up(struct interpreter *interpreter, uint32_t rank, uint32_t message)
{
    interpreter->ranks[rank].line = line_join(interpreter, interpreter->ranks[rank].line, message);
    to_serve_add(interpreter, rank);
}

static void hold(struct interpreter *interpreter, uint32_t rank, uint32_t message)
{
    struct rank_state *state = &interpreter->ranks[rank];
    if (state->held_first == INTERPRET_NONE) {
        state->held_first = message;
    } else {
        interpreter->messages[state->held_last].next = message;
    }
    state->held_last = message;
}

void interpreter_credit_returned(struct interpreter *interpreter, uint32_t rank)
{
    struct rank_state *state = &interpreter->ranks[rank];
    uint32_t message = state->held_first;
    if (message == INTERPRET_NONE) {
        state->far--;
        return;
    }
    state->held_first = interpreter->messages[message].next;
    interpreter->messages[message].next = INTERPRET_NONE;
    line_up(interpreter, rank, message);
}

void interpreter_put(struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    uint32_t rank = interpreter->ops[op].rank;
    uint32_t index = interpreter_message_acquire(interpreter);
    if (index == INTERPRET_NONE) {
        return;
    }
    struct message *message = &interpreter->messages[index];
    *message = (struct message){
        .op = op,
        .iteration = iteration,
        .next = INTERPRET_NONE,
        .child = INTERPRET_NONE,
        .parent = INTERPRET_NONE,
        .bytes = cw_op_bytes(interpreter->op_list[op], iteration),
    };
    interpreter->price.messages += message->bytes > 0 ? 1 : 0;
    if (!interpreter_uses_credit(interpreter, op)) {
        line_up(interpreter, rank, index);
    } else if (interpreter->ranks[rank].far < interpreter->network->wan_messages) {
        interpreter->ranks[rank].far++;
        line_up(interpreter, rank, index);
    } else {
        hold(interpreter, rank, index);
    }
}

void interpreter_port_released(struct interpreter *interpreter, uint32_t rank)
{
    interpreter->ranks[rank].sending--;
    to_serve_add(interpreter, rank);
}
