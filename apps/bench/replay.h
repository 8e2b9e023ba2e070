/* Replay: what the files of `causeway bench replay` share: the traces of a program's ranks (apps/kernels/trace.h) as
 * steps and messages, and their run on simulated hosts.
 *
 * Invariants
 *  - Each message has a place of its own in its receiver's region, and one receive at most.
 *  - Steps that wait do so for a message that is sent, in whatever time: a replay comes to its end.
 *
 * Order of calls: replay_load, replay_run*, replay_dispose */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/dataplane.h"

struct replay_message {
    const uint8_t *data; /* in the sender's trace; NULL: zeros, for an all-reduce or barrier */
    uint64_t bytes;
    uint64_t place; /* in the receiver's region */
    uint32_t from;
    uint32_t to;
    int32_t tag;
    bool is_taken; /* by a receive */
    enum cw_element element;
};

enum replay_kind {
    REPLAY_SEND,    /* posts a message */
    REPLAY_SENT,    /* waits until its memory may be reused */
    REPLAY_RECEIVE, /* waits until it is there */
    REPLAY_COMPUTE, /* nothing beside */
};

struct replay_step {
    uint64_t compute_ns; /* before it */
    enum replay_kind kind;
    uint32_t message; /* REPLAY_RECEIVE: once it was found by what follows */
    uint32_t from;
    int32_t tag;
    uint64_t bytes;
};

/* Grows as needed: of messages, by number. */
struct replay_list {
    uint32_t *numbers;
    uint32_t count;
    uint32_t room;
};

struct replay_rank {
    uint8_t *file;
    uint64_t file_bytes;
    struct replay_step *steps;
    uint32_t count;
    uint32_t room;
    uint64_t region_bytes; /* that its messages take */
};

struct replay {
    const char *folder;
    uint32_t ranks;
    struct replay_rank *rank;
    struct replay_message *messages;
    uint32_t count;
    uint32_t room;
    struct replay_list *pairs; /* [from * ranks + to]: in the order of sending */
    uint64_t zeros_bytes;      /* of the longest all-reduce */
    uint64_t bytes_most;       /* that one rank sends, or receives */
};

/* Reads FOLDER/0.trace and those of the other ranks. One of enum app_exit: what is missing or damaged has been
 * reported. The replay is to be disposed of in any case. */
int replay_load(struct replay *replay, const char *folder);
void replay_dispose(struct replay *replay);

/* Its part that makes steps and messages of one file (replay_read.c); the path is for errors. */
int replay_read(struct replay *replay, uint32_t rank, const char *path);

struct replay_case {
    uint64_t rate_bps;
    uint64_t delay_ns; /* one way, end to end */
    uint64_t seed;
    struct cw_compression compression;
};

struct replay_result {
    uint64_t time_ns;     /* until the last rank has ended */
    uint64_t raw_bytes;   /* in chunks */
    uint64_t chunk_bytes; /* ... as they travelled */
    double model_ns;      /* of the program, by the numbers of inequality (3) */
};

enum { REPLAY_EAGER_BYTES = 8192 }; /* a send of so many returns at once, as in mpi/lifetime/init.c */

/* Virtual time. One of enum app_exit: errors have been reported, messages that came with other bytes among them. */
int replay_run(const struct replay *replay, const struct replay_case *of, struct replay_result *result);

/* The time of the program if a byte from one rank to another takes byte_ns[from * ranks + to]; below 0: no memory. */
double replay_model_ns(const struct replay *replay, const struct replay_case *of, const double *byte_ns);

/* What the link takes for a byte of data as it is, headers included. */
double replay_byte_ns(const struct replay_case *of);
