#include "control/launch/lines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

enum {
    SINK_BYTES_FIRST = 4096,
    STDIO_BLOCK = 4096, /* a program that did not flush its output writes it in multiples of this size */
};

static int sink_append(struct launch_sink *sink, const char *bytes, size_t count)
{
    if (sink->begin > (sink->end - sink->begin)) { /* costs at most the time of the writes since then */
        memmove(sink->bytes, sink->bytes + sink->begin, sink->end - sink->begin);
        sink->end -= sink->begin;
        sink->begin = 0;
    }
    size_t wanted = sink->allocated > 0 ? sink->allocated : SINK_BYTES_FIRST;
    while (wanted - sink->end < count) {
        wanted *= 2;
    }
    if (wanted != sink->allocated) {
        char *grown = realloc(sink->bytes, wanted);
        if (grown == NULL) {
            return CW_ERROR_MEMORY;
        }
        sink->bytes = grown;
        sink->allocated = wanted;
    }
    if (count > 0) {
        memcpy(sink->bytes + sink->end, bytes, count);
    }
    sink->end += count;
    return CW_OK;
}

/* Ends a line that another stream has begun. */
static int sink_break(struct launch_sink *sink, const struct launch_stream *next)
{
    if (sink->open == NULL || sink->open == next) {
        return CW_OK;
    }
    sink->open = NULL;
    return sink_append(sink, "\n", 1);
}

/* Bytes of at most one line, with or without its end. */
static int piece_write(struct launch_stream *stream, const char *bytes, size_t count)
{
    struct launch_sink *sink = stream->sink;
    if (count == 0) {
        return CW_OK;
    }
    int status = sink_break(sink, stream);
    if (status == CW_OK && stream->label != NULL && sink->open != stream) {
        status = sink_append(sink, stream->label, strlen(stream->label));
    }
    if (status == CW_OK) {
        status = sink_append(sink, bytes, count);
    }
    sink->open = bytes[count - 1] == '\n' ? NULL : stream;
    return status;
}

/* Bytes of any number of lines; the first one may continue an earlier one. */
static int lines_write(struct launch_stream *stream, const char *bytes, size_t count)
{
    int status = CW_OK;
    if (stream->label == NULL) {
        return piece_write(stream, bytes, count); /* no need to find single lines */
    }
    while (count > 0 && status == CW_OK) {
        const char *end = memchr(bytes, '\n', count);
        size_t length = end != NULL ? (size_t)(end - bytes) + 1 : count;
        status = piece_write(stream, bytes, length);
        bytes += length;
        count -= length;
    }
    return status;
}

static int held_write(struct launch_stream *stream)
{
    size_t count = stream->held_bytes;
    stream->held_bytes = 0;
    return lines_write(stream, stream->held, count);
}

/* Keeps bytes without an end of line; when it is too much of it, it goes out. */
static int hold(struct launch_stream *stream, const char *bytes, size_t count)
{
    if (count == 0) {
        return CW_OK;
    }
    if (stream->held_bytes + count > CW_LAUNCH_LINE_MAX) {
        int status = held_write(stream);
        return status == CW_OK ? lines_write(stream, bytes, count) : status;
    }
    if (stream->held == NULL && (stream->held = malloc(CW_LAUNCH_LINE_MAX)) == NULL) {
        return CW_ERROR_MEMORY;
    }
    memcpy(stream->held + stream->held_bytes, bytes, count);
    stream->held_bytes += count;
    return CW_OK;
}

int launch_stream_append(struct launch_stream *stream, const char *bytes, size_t count)
{
    const char *end = memrchr(bytes, '\n', count);
    stream->taken_bytes += count;
    size_t whole = end != NULL ? (size_t)(end - bytes) + 1 : 0;
    int status = CW_OK;
    if (whole > 0) {
        status = held_write(stream);
    }
    if (whole > 0 && status == CW_OK) {
        status = lines_write(stream, bytes, whole);
    }
    return status == CW_OK ? hold(stream, bytes + whole, count - whole) : status;
}

int launch_stream_show(struct launch_stream *stream)
{
    bool is_free = stream->sink->open == NULL || stream->sink->open == stream;
    bool is_cut = stream->taken_bytes % STDIO_BLOCK == 0;
    return is_free && !is_cut ? held_write(stream) : CW_OK;
}

int launch_stream_end(struct launch_stream *stream)
{
    int status = held_write(stream);
    free(stream->held);
    stream->held = NULL;
    return status;
}

int launch_sink_line(struct launch_sink *sink, const char *text)
{
    int status = sink_break(sink, NULL);
    if (status == CW_OK) {
        status = sink_append(sink, text, strlen(text));
    }
    return status == CW_OK ? sink_append(sink, "\n", 1) : status;
}

size_t launch_sink_pending(const struct launch_sink *sink)
{
    return sink->end - sink->begin;
}

void launch_sink_written(struct launch_sink *sink, size_t count)
{
    assert(count <= launch_sink_pending(sink));
    sink->begin += count;
}

void launch_sink_dispose(struct launch_sink *sink)
{
    free(sink->bytes);
    *sink = (struct launch_sink){0};
}
