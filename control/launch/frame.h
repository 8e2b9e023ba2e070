/* frame: orders from the launcher to agents and local ranks, and reports in the other direction. No I/O.
 *
 * The same struct is handed from function to function within a process, and goes as bytes between hosts: four words of
 * 32 bits (type, rank, value, count; little endian), then the payload.
 *
 * Invariants
 *   - Whatever comes in, nothing is read outside of the bytes that are there; a payload has at most LAUNCH_FRAME_MAX.
 *   - Texts and lists in payloads are taken apart by launch_reader, which stays failed once something did not fit.
 *
 * Thread: one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/launch/bytes.h"

enum { LAUNCH_FRAME_HEADER = 16, LAUNCH_FRAME_MAX = 64 << 20, LAUNCH_FENCE_PIECE = 1 << 20 };

enum launch_frame_type {
    /* both ways */
    LAUNCH_PING = 1, /* says that the sender is there; value, down only: 1: it is about to be stopped by its user, and
                        its silence until the next frame means nothing */
    LAUNCH_FENCE,    /* up: all below wait in a fence; payload: their puts since the last fence, as text pairs.
                         down: all of the job do; the same of all others. value: whether more of the payload follows,
                         for which the fence waits: LAUNCH_FENCE_PIECE frames carry the latest entries */

    /* down, to the process with the rank, or to all */
    LAUNCH_START,  /* payload: struct launch_work (work.h) */
    LAUNCH_SIGNAL, /* value: for all processes of all ranks. Up: the agent's own has come */
    LAUNCH_INPUT,  /* rank; payload: of its stdin, none: its end. LAUNCH_TAKEN answers */
    LAUNCH_HOLD,   /* value: whether to stop reading the ranks' output */
    LAUNCH_QUERY,  /* requests the ranks' waits; a LAUNCH_ANSWER for each follows */
    LAUNCH_LOOK,   /* which of them are stopped; a LAUNCH_STOPPED for each that is, then LAUNCH_LOOKED */
    LAUNCH_END,    /* the job has ended: LAUNCH_DONE answers, when all processes are gone */

    /* up */
    LAUNCH_STARTED, /* rank; value: process */
    LAUNCH_OUTPUT,  /* rank; value: 0 stdout, 1 stderr; payload, none: its end */
    LAUNCH_CLIENT,  /* rank; value: enum cw_pmi1_client_state, LAUNCH_CLIENT_WAITS */
    LAUNCH_ENDED,   /* rank; value: exit code 0 .. 255, 256 + signal, LAUNCH_ENDED_CORE more with a core file */
    LAUNCH_HANGUP,  /* rank: closed its connection without a goodbye, and lives */
    LAUNCH_ABORT,   /* rank; value: the exit code that it wants for the job, 0 .. 255 */
    LAUNCH_STOPPED, /* rank; value: its process that is stopped by a signal */
    LAUNCH_LOOKED,
    LAUNCH_ANSWER, /* rank; value: 1, payload: struct cw_watch_answer; or value: 0, payload: struct launch_silence */
    LAUNCH_TAKEN,  /* rank; value: 0: it has all of its last LAUNCH_INPUT; 1: it reads no more */
    LAUNCH_FAIL,   /* rank: of the host; value: exit code 0 .. 255; payload: text. The job is to end */
    LAUNCH_SAY,    /* rank: of the host; payload: text for the user */
    LAUNCH_HERE,   /* rank: of the host, whose agent has started; payload: its machine */
    LAUNCH_DONE,   /* no process is left on these hosts */
    LAUNCH_FRAME_TYPES,
};

enum { LAUNCH_ENDED_SIGNAL = 0x100, LAUNCH_ENDED_CORE = 0x10000, LAUNCH_CLIENT_WAITS = 0x100 };

struct launch_frame {
    uint32_t type;
    uint32_t rank;
    int32_t value;
    uint32_t count;
    const char *bytes;
};

/* Who takes frames. */
struct launch_receiver {
    void *context;
    void (*receive)(void *context, const struct launch_frame *frame);
};

/* Appends header and payload. CW_OK; CW_ERROR_MEMORY. */
int launch_frame_write(struct launch_bytes *out, const struct launch_frame *frame);
/* Takes the next whole frame off the front of `in`; its payload stays valid until `in` is changed: launch_bytes_drop
 * with *used is due. 1: there is one; 0: not yet; CW_ERROR_LIMIT, CW_ERROR_ARGUMENT: it is invalid. */
int launch_frame_read(const struct launch_bytes *in, struct launch_frame *frame, size_t *used);

/* Whether a frame can be an order, or a report: of that direction, with a value in the range that frame types name. The
 * receiver of the frame checks the rank and the payload. */
bool launch_frame_is_order(const struct launch_frame *frame);
bool launch_frame_is_report(const struct launch_frame *frame);

/* ---- payloads ---- */

int launch_put_number(struct launch_bytes *out, uint64_t number);
/* With its final 0; NULL is the same as none given, which "" is not. */
int launch_put_text(struct launch_bytes *out, const char *text);

struct launch_reader {
    const char *at;
    const char *end;
    bool failed;
};

struct launch_reader launch_reader_of(const struct launch_frame *frame);
/* 0 once failed. `most`: a larger one fails. */
uint64_t launch_get_number(struct launch_reader *reader, uint64_t most);
/* Points into the payload; NULL: none was given, or failed. */
const char *launch_get_text(struct launch_reader *reader);
