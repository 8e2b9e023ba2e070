/* The progress of a put, one task after the other. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedules/transport_memory_state.h"

void memory_fault(struct cw_memory_fabric *fabric, const char *format, ...)
{
    if (fabric->faulty) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fabric->fault, sizeof(fabric->fault), format, arguments);
    va_end(arguments);
    fabric->faulty = true;
}

static void message_task(struct cw_memory_fabric *fabric, enum memory_task_kind kind, uint32_t index, uint32_t piece)
{
    const struct memory_message *message = &fabric->messages[index];
    struct memory_task task = {memory_priority(fabric, kind, &fabric->puts[message->put], message->target), index,
                               (uint16_t)kind, (uint16_t)piece};
    memory_task_push(fabric, &task);
}

static void put_task(struct cw_memory_fabric *fabric, enum memory_task_kind kind, uint32_t index)
{
    struct memory_task task = {memory_priority(fabric, kind, &fabric->puts[index], fabric->puts[index].source), index,
                               (uint16_t)kind, 0};
    memory_task_push(fabric, &task);
}

/* ---- Beginning ---- */

void memory_put_begin(struct cw_memory_fabric *fabric, uint32_t index)
{
    struct memory_put *put = &fabric->puts[index];
    if (memory_chance(fabric, fabric->adversity.sent)) {
        put->references++;
        put_task(fabric, TASK_SENT, index);
    }
}

/* All that was to be read is read, or there is nothing to read. */
static void put_read(struct cw_memory_fabric *fabric, uint32_t index)
{
    assert(fabric->puts[index].reads_left > 0);
    if (--fabric->puts[index].reads_left == 0) {
        put_task(fabric, TASK_COMPLETE, index);
    }
}

static void message_arrive(struct cw_memory_fabric *fabric, uint32_t index)
{
    struct memory_message *message = &fabric->messages[index];
    message->state = MESSAGE_COMING;
    if (fabric->puts[message->put].bytes == 0) {
        put_read(fabric, message->put);
        message_task(fabric, TASK_ARRIVE, index, 0);
        return;
    }
    for (uint32_t piece = 0; piece < message->pieces; piece++) {
        message_task(fabric, TASK_READ, index, piece);
    }
}

void memory_message_begin(struct cw_memory_fabric *fabric, uint32_t index)
{
    struct memory_message *message = &fabric->messages[index];
    const struct memory_put *put = &fabric->puts[message->put];
    if (put->eager) {
        message_task(fabric, TASK_LEAVE, index, 0);
        return;
    }
    if (memory_chance(fabric, fabric->adversity.scribble)) {
        for (uint64_t i = 0; i < put->bytes; i++) {
            message->destination[i] = (uint8_t)~put->snapshot->bytes[i];
        }
    }
    message_arrive(fabric, index);
}

/* ---- Leave to come ---- */

static void held_add(struct cw_memory_fabric *fabric, uint32_t index)
{
    struct memory_message *message = &fabric->messages[index];
    struct memory_rank *target = &fabric->ranks[message->target];
    message->state = MESSAGE_HELD;
    message->next = MEMORY_NONE;
    message->previous = target->held_last;
    if (target->held_last != MEMORY_NONE) {
        fabric->messages[target->held_last].next = index;
    } else {
        target->held_first = index;
    }
    target->held_last = index;
}

static void held_remove(struct cw_memory_fabric *fabric, uint32_t index)
{
    struct memory_message *message = &fabric->messages[index];
    struct memory_rank *target = &fabric->ranks[message->target];
    *(message->previous != MEMORY_NONE ? &fabric->messages[message->previous].next : &target->held_first) =
        message->next;
    *(message->next != MEMORY_NONE ? &fabric->messages[message->next].previous : &target->held_last) =
        message->previous;
    message->state = MESSAGE_COMING;
}

static void leave_run(struct cw_memory_fabric *fabric, uint32_t index)
{
    struct memory_message *message = &fabric->messages[index];
    struct memory_rank *target = &fabric->ranks[message->target];
    const struct memory_put *put = &fabric->puts[message->put];
    struct memory_match *match = memory_match_find(fabric, message->target, put->source, put->tag);
    if (match == NULL) {
        memory_fault(fabric, "no memory for matches");
        return;
    }
    if (!match->expected && target->slots_used >= fabric->request.eager_buffers) {
        held_add(fabric, index);
        return;
    }
    if (!match->expected) {
        message->slot = true;
        target->slots_used++;
    }
    message_arrive(fabric, index);
}

void memory_message_expected(struct cw_memory_fabric *fabric, uint32_t index)
{
    if (fabric->messages[index].state == MESSAGE_HELD) {
        held_remove(fabric, index);
        message_task(fabric, TASK_LEAVE, index, 0);
    }
}

void memory_message_release(struct cw_memory_fabric *fabric, uint32_t index)
{
    if (index >= fabric->messages_used || fabric->messages[index].state != MESSAGE_DELIVERED) {
        memory_fault(fabric, "buffer %u released, which is not lent", index + 1);
        return;
    }
    struct memory_message *message = &fabric->messages[index];
    struct memory_rank *target = &fabric->ranks[message->target];
    if (message->buffer != NULL) {
        uint64_t bytes = fabric->puts[message->put].bytes;
        memset(message->buffer->bytes, 0xd5, bytes); /* a later reader must notice */
        memory_block_release(fabric, message->buffer, bytes);
    }
    memory_put_unreference(fabric, message->put);
    bool slot = message->slot;
    memory_message_free(fabric, index);
    if (!slot) {
        return;
    }
    target->slots_used--;
    if (target->held_first != MEMORY_NONE) {
        uint32_t next = memory_chance(fabric, 128) ? target->held_first : target->held_last;
        held_remove(fabric, next);
        message_task(fabric, TASK_LEAVE, next, 0);
    }
}

/* ---- Tasks ---- */

static void source_check(struct cw_memory_fabric *fabric, const struct memory_put *put, uint64_t first, uint64_t end)
{
    if (end > first && memcmp(put->data + first, put->snapshot->bytes + first, end - first) != 0) {
        memory_fault(fabric, "rank %u: the source of its put with tag %u changed before the put was complete",
                     put->source, put->tag);
    }
}

static void arrive_run(struct cw_memory_fabric *fabric, uint32_t index)
{
    struct memory_message *message = &fabric->messages[index];
    const struct memory_put *put = &fabric->puts[message->put];
    struct cw_transport_event event = {
        .kind = CW_TRANSPORT_ARRIVED,
        .peer = put->source,
        .tag = put->tag,
        .eager = put->eager,
        .bytes = put->bytes,
        .buffer = index + 1ull,
    };
    uint32_t target = message->target;
    message->state = MESSAGE_DELIVERED;
    if (put->eager && put->bytes > 0) {
        message->buffer = memory_block_acquire(fabric, put->bytes);
        if (message->buffer == NULL) {
            memory_fault(fabric, "no memory for a buffer");
            return;
        }
        memcpy(message->buffer->bytes, put->snapshot->bytes, put->bytes);
        event.data = message->buffer->bytes;
    }
    if (!put->eager) {
        if (memcmp(message->destination, put->snapshot->bytes, put->bytes) != 0) {
            memory_fault(fabric, "rank %u: bytes of the put of rank %u with tag %u changed before it had arrived",
                         target, put->source, put->tag);
        }
        memory_put_unreference(fabric, message->put);
        memory_message_free(fabric, index);
    }
    if (!memory_event(fabric, target, &event) && event.eager) {
        memory_message_release(fabric, index);
    }
}

static void read_run(struct cw_memory_fabric *fabric, uint32_t index, uint32_t piece)
{
    struct memory_message *message = &fabric->messages[index];
    uint32_t put = message->put;
    source_check(fabric, &fabric->puts[put], message->cuts[piece], message->cuts[piece + 1]);
    if (!fabric->puts[put].eager) {
        message_task(fabric, TASK_LAND, index, piece);
    } else if (--message->pieces_left == 0) {
        message_task(fabric, TASK_ARRIVE, index, 0);
    }
    put_read(fabric, put);
}

static void land_run(struct cw_memory_fabric *fabric, uint32_t index, uint32_t piece)
{
    struct memory_message *message = &fabric->messages[index];
    uint64_t first = message->cuts[piece];
    uint64_t bytes = message->cuts[piece + 1] - first;
    if (bytes > 0) {
        memcpy(message->destination + first, fabric->puts[message->put].snapshot->bytes + first, bytes);
    }
    if (--message->pieces_left == 0) {
        message_task(fabric, TASK_ARRIVE, index, 0);
    }
}

/* SENT and COMPLETE. */
static void put_event_run(struct cw_memory_fabric *fabric, uint32_t index, bool complete)
{
    struct memory_put *put = &fabric->puts[index];
    struct cw_transport_event event = {
        .kind = complete ? CW_TRANSPORT_COMPLETE : CW_TRANSPORT_SENT,
        .tag = put->tag,
        .context = put->context,
    };
    if (complete) {
        source_check(fabric, put, 0, put->bytes);
        put->complete = true;
    }
    bool is_news = complete || !put->complete;
    uint32_t source = put->source;
    memory_put_unreference(fabric, index);
    if (is_news) {
        (void)memory_event(fabric, source, &event);
    }
}

bool cw_memory_fabric_step(struct cw_memory_fabric *fabric)
{
    if (fabric->tasks_count == 0) {
        return false;
    }
    struct memory_task task = memory_task_pop(fabric);
    switch ((enum memory_task_kind)task.kind) {
    case TASK_LEAVE:
        leave_run(fabric, task.subject);
        break;
    case TASK_READ:
        read_run(fabric, task.subject, task.piece);
        break;
    case TASK_LAND:
        land_run(fabric, task.subject, task.piece);
        break;
    case TASK_ARRIVE:
        arrive_run(fabric, task.subject);
        break;
    case TASK_HOST:
        memory_host_run(fabric, task.subject, task.piece);
        break;
    default:
        put_event_run(fabric, task.subject, task.kind == TASK_COMPLETE);
    }
    return true;
}
