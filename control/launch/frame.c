#include "control/launch/frame.h"

#include <signal.h>
#include <string.h>

#include "dataplane/status.h"

enum { NO_TEXT = 0, A_TEXT = 1, CODE_MAX = 255 };

static void word_write(char *at, uint32_t word)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (char)(word >> 8 * i & 0xff);
    }
}

static uint32_t word_read(const char *at)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) {
        word |= (uint32_t)(uint8_t)at[i] << 8 * i;
    }
    return word;
}

int launch_frame_write(struct launch_bytes *out, const struct launch_frame *frame)
{
    char *room = launch_bytes_room(out, LAUNCH_FRAME_HEADER + frame->count);
    if (room == NULL) {
        return CW_ERROR_MEMORY;
    }
    word_write(room, frame->type);
    word_write(room + 4, frame->rank);
    word_write(room + 8, (uint32_t)frame->value);
    word_write(room + 12, frame->count);
    if (frame->count > 0) {
        memcpy(room + LAUNCH_FRAME_HEADER, frame->bytes, frame->count);
    }
    launch_bytes_added(out, LAUNCH_FRAME_HEADER + frame->count);
    return CW_OK;
}

int launch_frame_read(const struct launch_bytes *in, struct launch_frame *frame, size_t *used)
{
    const char *at = launch_bytes_front(in);
    if (launch_bytes_count(in) < LAUNCH_FRAME_HEADER) {
        return 0;
    }
    *frame = (struct launch_frame){
        .type = word_read(at),
        .rank = word_read(at + 4),
        .value = (int32_t)word_read(at + 8),
        .count = word_read(at + 12),
        .bytes = at + LAUNCH_FRAME_HEADER,
    };
    if (frame->type == 0 || frame->type >= LAUNCH_FRAME_TYPES) {
        return CW_ERROR_ARGUMENT;
    }
    if (frame->count > LAUNCH_FRAME_MAX) {
        return CW_ERROR_LIMIT;
    }
    *used = LAUNCH_FRAME_HEADER + (size_t)frame->count;
    return launch_bytes_count(in) >= *used;
}

/* ---- what may come in ---- */

static bool is_code(int32_t value)
{
    return value >= 0 && value <= CODE_MAX;
}

static bool is_flag(int32_t value)
{
    return value == 0 || value == 1;
}

static bool is_signal(int32_t value)
{
    return value > 0 && value < NSIG;
}

/* The range of waitid(2). */
static bool is_end(int32_t value)
{
    return is_code(value) || (value > 0 && (is_signal(value - LAUNCH_ENDED_SIGNAL) ||
                                            is_signal(value - LAUNCH_ENDED_SIGNAL - LAUNCH_ENDED_CORE)));
}

bool launch_frame_is_order(const struct launch_frame *frame)
{
    return frame->type >= LAUNCH_PING && frame->type <= LAUNCH_END &&
           (frame->type != LAUNCH_SIGNAL || is_signal(frame->value)) &&
           ((frame->type != LAUNCH_FENCE && frame->type != LAUNCH_PING) || is_flag(frame->value));
}

bool launch_frame_is_report(const struct launch_frame *frame)
{
    switch ((enum launch_frame_type)frame->type) {
    case LAUNCH_SIGNAL:
        return is_signal(frame->value);
    case LAUNCH_ENDED:
        return is_end(frame->value);
    case LAUNCH_ABORT:
    case LAUNCH_FAIL:
        return is_code(frame->value);
    case LAUNCH_STARTED:
    case LAUNCH_STOPPED:
        return frame->value > 0;
    case LAUNCH_FENCE:
        return is_flag(frame->value);
    case LAUNCH_PING:
        return true;
    default:
        return frame->type >= LAUNCH_STARTED && frame->type < LAUNCH_FRAME_TYPES;
    }
}

/* ---- payloads ---- */

int launch_put_number(struct launch_bytes *out, uint64_t number)
{
    char words[8];
    word_write(words, (uint32_t)number);
    word_write(words + 4, (uint32_t)(number >> 32));
    return launch_bytes_add(out, words, sizeof(words));
}

int launch_put_text(struct launch_bytes *out, const char *text)
{
    char kind = text == NULL ? NO_TEXT : A_TEXT;
    int status = launch_bytes_add(out, &kind, 1);
    return status != CW_OK || text == NULL ? status : launch_bytes_add(out, text, strlen(text) + 1);
}

struct launch_reader launch_reader_of(const struct launch_frame *frame)
{
    static const char nothing[1];
    const char *at = frame->bytes != NULL ? frame->bytes : nothing;
    return (struct launch_reader){.at = at, .end = at + frame->count};
}

uint64_t launch_get_number(struct launch_reader *reader, uint64_t most)
{
    if (reader->failed || reader->end - reader->at < 8) {
        reader->failed = true;
        return 0;
    }
    uint64_t number = word_read(reader->at) | (uint64_t)word_read(reader->at + 4) << 32;
    reader->at += 8;
    reader->failed = number > most;
    return reader->failed ? 0 : number;
}

const char *launch_get_text(struct launch_reader *reader)
{
    if (reader->failed || reader->at == reader->end) {
        reader->failed = true;
        return NULL;
    }
    char kind = *reader->at++;
    if (kind == NO_TEXT) {
        return NULL;
    }
    const char *text = reader->at;
    const char *end = memchr(text, 0, (size_t)(reader->end - text));
    if (kind != A_TEXT || end == NULL) {
        reader->failed = true;
        return NULL;
    }
    reader->at = end + 1;
    return text;
}
