/* recording: the collective calls of a run, as its ranks made them. `causeway run --record` writes it and `causeway
 * plan compile` reads it.
 *
 * Purpose
 *   Each rank has a recorder for its calls. A call is its form (communicator, collective, sizes, execution), kept once
 *   for any number of calls, and a few bytes: ordinal, run, time. In the end one rank writes a file with the parts of
 *   all recorders.
 *
 * Invariants
 *   - A communicator is known by its context, which all its members know alike and which is the same in each run that
 *     makes its communicators in the same order; and by its members.
 *   - Each rank records its own knowledge: of an all-to-all-v its own row and column. The reader joins them.
 *   - A recorder's memory is bounded: when it is full, later calls are counted only.
 *   - For any bytes of a file, decoding gives a recording whose indices are all in range, or an error.
 *
 * Content of the file (pack.h): program, ranks, longest eager message, longest eager multicast; then per rank the
 * length of its part, and the part:
 *   communicators: context, size, flags (CW_RECORDING_WIRE, ...), members' ranks in MPI_COMM_WORLD
 *   forms:         communicator, collective, flags, root, bytes of an element, elements; if the flags say so a list of
 *                  counts, or this rank's send counts and expected counts; algorithm
 *   calls:         form, ordinal (difference to the call before), run, nanoseconds
 *   calls that found no room
 *
 * Order of calls: cw_recorder_create, { cw_recorder_comm, cw_recorder_call }*, cw_recorder_part, cw_recorder_destroy;
 * cw_recording_encode; cw_recording_decode, cw_recording_destroy. No I/O. Thread: one at a time. */
#pragma once

#include "collectives/file/pack.h"
#include "collectives/schedule/problem.h"

enum {
    CW_RECORDING_VERSION = 1,
    CW_RECORDER_BYTES_MAX = 4 << 20, /* of a rank: some 600,000 calls */
    CW_RECORDING_NAME_MAX = 64,      /* bytes of a program's or an algorithm's name, with the final zero */
};

enum cw_recording_comm_flags {
    CW_RECORDING_WIRE = 1,       /* its ranks are on several hosts */
    CW_RECORDING_MULTICASTS = 2, /* and can multicast */
    CW_RECORDING_RDMA = 4,       /* and queue pairs carry what they say to each other */
};

struct cw_recording_comm {
    uint64_t context;
    uint32_t size;
    uint32_t flags;
    uint32_t *members; /* ranks in MPI_COMM_WORLD */
};

enum cw_recording_form_flags {
    CW_RECORDING_ORDERED = 1,
    CW_RECORDING_COUNTS = 2,      /* a count per rank, known to all */
    CW_RECORDING_ROWS = 4,        /* bytes that only this rank knows: `sends`, `expects` */
    CW_RECORDING_NONBLOCKING = 8, /* or persistent */
    CW_RECORDING_PERSISTENT = 16,
    CW_RECORDING_EXCHANGED = 32, /* counts were exchanged first */
    CW_RECORDING_PLANNED = 64,   /* served by a plan */
};

#define CW_RECORDING_BY_PAIRS "pairs" /* as an algorithm */

struct cw_recording_form {
    uint32_t comm; /* index */
    enum cw_collective collective;
    uint32_t flags;
    uint32_t root;
    uint32_t element_bytes;
    uint64_t count;
    uint64_t *counts; /* `size` of them; NULL: all alike, or rows */
    uint32_t sends_count, expects_count;
    uint64_t *sends; /* bytes to each rank, or to the root */
    uint64_t *expects;
    char algorithm[CW_RECORDING_NAME_MAX];
};

struct cw_recording_call {
    uint32_t form;
    uint32_t ordinal; /* of the communicator's calls: the same at all ranks */
    uint32_t run;     /* how often it was started before (persistent ones) */
    uint64_t took_ns;
};

struct cw_recording_rank {
    uint32_t comm_count;
    uint32_t form_count;
    uint32_t call_count;
    uint64_t dropped;
    struct cw_recording_comm *comms;
    struct cw_recording_form *forms;
    struct cw_recording_call *calls;
};

struct cw_recording {
    char program[CW_RECORDING_NAME_MAX];
    uint32_t ranks;
    uint64_t eager_max_bytes;
    uint64_t multicast_eager_max_bytes;
    struct cw_recording_rank *of; /* per rank */
};

/* ---- at a rank ---- */

struct cw_recorder;

/* NULL: no memory. */
struct cw_recorder *cw_recorder_create(size_t bytes_max);
void cw_recorder_destroy(struct cw_recorder *recorder);
/* A communicator's index; those of one context are one. UINT32_MAX: no room. */
uint32_t cw_recorder_comm(struct cw_recorder *recorder, const struct cw_recording_comm *comm);
/* Notes a call; lists of the form are copied. False: no room, it is counted as dropped. */
bool cw_recorder_call(struct cw_recorder *recorder, const struct cw_recording_form *form, uint32_t comm_size,
                      uint32_t ordinal, uint32_t run, uint64_t took_ns);
uint64_t cw_recorder_calls(const struct cw_recorder *recorder);
uint64_t cw_recorder_dropped(const struct cw_recorder *recorder);
/* The recorder's part of the file. */
void cw_recorder_part(const struct cw_recorder *recorder, struct cw_packer *part);

/* ---- files ---- */

/* `head` has the numbers; parts[rank], of lengths[rank] bytes. *bytes is the caller's to free. CW_OK, CW_ERROR_MEMORY,
 * CW_ERROR_LIMIT. */
int cw_recording_encode(const struct cw_recording *head, const uint8_t *const *parts, const uint64_t *lengths,
                        void **bytes, size_t *length);
/* CW_OK: the caller releases it with cw_recording_destroy. CW_ERROR_ARGUMENT with the problem in `error`;
 * CW_ERROR_UNSUPPORTED; CW_ERROR_MEMORY. */
int cw_recording_decode(const void *bytes, size_t length, struct cw_recording **recording, char *error,
                        size_t error_bytes);
/* NULL is allowed. */
void cw_recording_destroy(struct cw_recording *recording);
