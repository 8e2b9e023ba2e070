/* Replay read: a trace becomes steps and messages. Nothing that a file says is believed before it was checked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/replay.h"
#include "apps/cli/cli.h"
#include "apps/kernels/trace.h"

enum {
    PLACE_BYTES = 64, /* what a message's place is a multiple of */
    ALLREDUCE_BYTES_MAX = 1 << 26,
    FIRST_ROOM = 256,
    LIST_MAX = 1 << 30,
};

#define COMPUTE_NS_MAX 86400000000000ull /* a day */
#define TAG_OWN_FIRST  (-64)             /* of all-reduces and barriers, down by round */

struct reader {
    struct replay *replay;
    uint32_t rank;
    const char *path;
    uint64_t at;
    struct replay_list sends;
};

static const char todo[] = "record it again: CAUSEWAY_TRACE=FOLDER, with build/apps/kernels/trace.so as LD_PRELOAD";

static int damaged(const struct reader *reader, const char *what)
{
    char text[160];
    snprintf(text, sizeof(text), "the trace is damaged: %s at byte %llu", what, (unsigned long long)reader->at);
    app_error(text, reader->path, todo);
    return APP_EXIT_FAILURE;
}

static int no_memory(const struct reader *reader)
{
    return app_error_status(CW_ERROR_MEMORY, "no memory for the trace", reader->path);
}

/* Room for one more element; false: no memory. */
static bool grow(void **elements, uint32_t count, uint32_t *room, size_t element_bytes)
{
    if (count < *room) {
        return true;
    }
    uint32_t more = *room == 0 ? FIRST_ROOM : *room < LIST_MAX ? 2 * *room : 0;
    void *moved = more == 0 ? NULL : realloc(*elements, more * element_bytes);
    if (moved != NULL) {
        *elements = moved;
        *room = more;
    }
    return moved != NULL;
}

static bool list_add(struct replay_list *list, uint32_t number)
{
    void *numbers = list->numbers;
    bool has_room = grow(&numbers, list->count, &list->room, sizeof(*list->numbers));
    list->numbers = numbers;
    if (has_room) {
        list->numbers[list->count++] = number;
    }
    return has_room;
}

static bool step_add(struct reader *reader, struct replay_step step)
{
    struct replay_rank *rank = &reader->replay->rank[reader->rank];
    void *steps = rank->steps;
    bool has_room = grow(&steps, rank->count, &rank->room, sizeof(*rank->steps));
    rank->steps = steps;
    if (has_room) {
        rank->steps[rank->count++] = step;
    }
    return has_room;
}

/* False: no memory. */
static bool send_add(struct reader *reader, uint64_t compute_ns, struct replay_message message)
{
    struct replay *replay = reader->replay;
    struct replay_rank *to = &replay->rank[message.to];
    void *messages = replay->messages;
    bool has_room = grow(&messages, replay->count, &replay->room, sizeof(*replay->messages));
    replay->messages = messages;
    message.from = reader->rank;
    message.place = to->region_bytes;
    to->region_bytes += message.bytes / PLACE_BYTES * PLACE_BYTES + PLACE_BYTES;
    if (!has_room || !list_add(&replay->pairs[message.from * replay->ranks + message.to], replay->count) ||
        !step_add(reader,
                  (struct replay_step){.compute_ns = compute_ns, .kind = REPLAY_SEND, .message = replay->count})) {
        return false;
    }
    replay->messages[replay->count++] = message;
    return true;
}

/* ---- records ---- */

/* A dissemination: in round i each rank sends to the one 2^i behind it, and has heard of 2^(i+1) then. False: no
 * memory. */
static bool collective_add(struct reader *reader, const struct trace_record *record)
{
    struct replay *replay = reader->replay;
    uint32_t ranks = replay->ranks;
    int32_t tag = TAG_OWN_FIRST;
    bool has_room = step_add(reader, (struct replay_step){.compute_ns = record->compute_ns, .kind = REPLAY_COMPUTE});
    replay->zeros_bytes = record->count > replay->zeros_bytes ? record->count : replay->zeros_bytes;
    for (uint32_t distance = 1; distance < ranks && has_room; distance *= 2, tag--) {
        struct replay_message message = {.bytes = record->count, .tag = tag, .element = CW_ELEMENT_PLAIN};
        message.to = (reader->rank + distance) % ranks;
        struct replay_step wanted = {.kind = REPLAY_RECEIVE, .tag = tag, .bytes = record->count};
        wanted.from = (reader->rank + ranks - distance) % ranks;
        has_room = send_add(reader, 0, message) && step_add(reader, wanted);
    }
    return has_room;
}

static bool peer_is_there(const struct reader *reader, const struct trace_record *record)
{
    return record->peer >= 0 && (uint32_t)record->peer < reader->replay->ranks &&
           (uint32_t)record->peer != reader->rank && record->tag >= TRACE_TAG_REDUCE;
}

static int send_take(struct reader *reader, const struct trace_record *record)
{
    const struct replay_rank *rank = &reader->replay->rank[reader->rank];
    if (!peer_is_there(reader, record) || record->element >= TRACE_ELEMENTS) {
        return damaged(reader, "a message to nobody");
    }
    uint64_t left = rank->file_bytes - reader->at;
    if (record->count > left || trace_padding(record->count) > left - record->count) {
        return damaged(reader, "a message that is longer than the file");
    }
    struct replay_message message = {.data = rank->file + reader->at, .bytes = record->count, .tag = record->tag};
    message.to = (uint32_t)record->peer;
    message.element = record->element == TRACE_DOUBLE ? CW_ELEMENT_DOUBLE : CW_ELEMENT_BYTES;
    reader->at += record->count + trace_padding(record->count);
    bool has_room = list_add(&reader->sends, reader->replay->count) && send_add(reader, record->compute_ns, message);
    return has_room ? APP_EXIT_SUCCESS : no_memory(reader);
}

static int record_take(struct reader *reader, const struct trace_record *record)
{
    struct replay_step step = {.compute_ns = record->compute_ns, .kind = REPLAY_COMPUTE};
    switch (record->operation) {
    case TRACE_SEND:
        return send_take(reader, record);
    case TRACE_SENT:
        if (record->count >= reader->sends.count) {
            return damaged(reader, "a wait for a message that is not sent");
        }
        step.kind = REPLAY_SENT;
        step.message = reader->sends.numbers[record->count];
        break;
    case TRACE_RECEIVE:
        if (!peer_is_there(reader, record)) {
            return damaged(reader, "a message of nobody");
        }
        step.kind = REPLAY_RECEIVE;
        step.from = (uint32_t)record->peer;
        step.tag = record->tag;
        step.bytes = record->count;
        break;
    case TRACE_ALLREDUCE:
    case TRACE_BARRIER:
        if (record->count > ALLREDUCE_BYTES_MAX) {
            return damaged(reader, "an all-reduce of more than 64 MiB");
        }
        return collective_add(reader, record) ? APP_EXIT_SUCCESS : no_memory(reader);
    case TRACE_END:
        break;
    default:
        return damaged(reader, "an operation that there is not");
    }
    return step_add(reader, step) ? APP_EXIT_SUCCESS : no_memory(reader);
}

static int records_take(struct reader *reader)
{
    const struct replay_rank *rank = &reader->replay->rank[reader->rank];
    struct trace_record record = {.operation = 0};
    int code = APP_EXIT_SUCCESS;
    while (code == APP_EXIT_SUCCESS && record.operation != TRACE_END) {
        if (rank->file_bytes - reader->at < sizeof(record)) {
            app_error("the trace breaks off", reader->path,
                      "the program has failed, or has made a call that is not recorded, which its stderr names");
            return APP_EXIT_FAILURE;
        }
        memcpy(&record, rank->file + reader->at, sizeof(record));
        if (record.compute_ns > COMPUTE_NS_MAX) {
            return damaged(reader, "more than a day of computing");
        }
        reader->at += sizeof(record);
        code = record_take(reader, &record);
    }
    return code == APP_EXIT_SUCCESS && reader->at < rank->file_bytes ? damaged(reader, "something behind its end")
                                                                     : code;
}

int replay_read(struct replay *replay, uint32_t rank, const char *path)
{
    struct reader reader = {.replay = replay, .rank = rank, .path = path, .at = sizeof(struct trace_head)};
    int code = records_take(&reader);
    free(reader.sends.numbers);
    return code;
}
