/* launch_lines: converts the ranks' output, in pieces of any size, to one stream of whole lines. No I/O.
 *
 * A stream is one output of one rank; a sink is where streams go. A line goes to its sink when its end has come, when
 * CW_LAUNCH_LINE_MAX bytes of it are there, or when its beginning is shown as a prompt. Should another stream write to
 * the sink before the end comes, the line is broken. Nothing else is changed.
 *
 * Thread: one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CW_LAUNCH_LINE_MAX = 65536 };

struct launch_stream;

/* All zero: an empty one. */
struct launch_sink {
    const struct launch_stream *open; /* the stream with an unfinished line; NULL: none */
    size_t begin;                     /* to be written: bytes[begin .. end) */
    size_t end;
    size_t allocated;
    char *bytes;
};

/* A new one is zero except the first two fields. */
struct launch_stream {
    struct launch_sink *sink;
    const char *label;    /* before each line; NULL: none */
    uint64_t taken_bytes; /* since its start */
    size_t held_bytes;
    char *held; /* the beginning of a line */
};

/* CW_OK; CW_ERROR_MEMORY: some of it is lost. */
int launch_stream_append(struct launch_stream *stream, const char *bytes, size_t count);
/* The beginning of a line that is held goes out. It stays held while another stream's line has not ended, and where a
 * full buffer of stdio has cut the line, not the program. CW_OK; CW_ERROR_MEMORY: some of it is lost. */
int launch_stream_show(struct launch_stream *stream);
/* The input has ended: buffered text is written as it is. CW_OK; CW_ERROR_MEMORY. Releases what the stream holds. */
int launch_stream_end(struct launch_stream *stream);

/* A line of nobody's. CW_OK; CW_ERROR_MEMORY. */
int launch_sink_line(struct launch_sink *sink, const char *text);
size_t launch_sink_pending(const struct launch_sink *sink);
void launch_sink_written(struct launch_sink *sink, size_t count);
void launch_sink_dispose(struct launch_sink *sink);
