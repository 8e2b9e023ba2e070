/* Verbs virtual: the RDMA device of a rank that runs on a simulated network (`causeway run --simulate rdma=on`).
 *
 * The device itself is in the simulator (fabric/verbs_sim.h). This end, in the rank's process, writes each call into
 * memory that both share, and gives the simulator the turn, which carries the call out and writes the answer; no
 * virtual time passes. Completions come in rings, whenever the rank is resumed. The simulator copies from and to the
 * rank's memory (process_vm_readv(2)) while no rank runs.
 *
 * Invariants
 *  - A ring's `written` is the simulator's, `taken` the rank's; both are handed over with the turn (base/virtual.h).
 *  - The simulator checks the indexes and counts of a call: a program that writes here by mistake gets an error.
 *
 * Thread: the one that has joined the simulation. */
#pragma once

#include "dataplane/verbs/device.h"

enum {
    CW_VERBS_VIRTUAL_INLINE_MAX = 220,
    CW_VERBS_VIRTUAL_RING = 256, /* completions of a queue; more stay in the simulator */
};

enum cw_verbs_call {
    CW_VERBS_CALL_NONE = 0,
    CW_VERBS_CALL_OPEN,
    CW_VERBS_CALL_REGISTER,
    CW_VERBS_CALL_UNREGISTER,
    CW_VERBS_CALL_CREATE,
    CW_VERBS_CALL_CONNECT,
    CW_VERBS_CALL_BREAK,
    CW_VERBS_CALL_DESTROY,
    CW_VERBS_CALL_POST,
    CW_VERBS_CALL_RECEIVE,          /* buffers for the shared receive queue */
    CW_VERBS_CALL_DATAGRAM_RECEIVE, /* ... for datagrams to groups */
    CW_VERBS_CALL_JOIN,
    CW_VERBS_CALL_IS_JOINED,
    CW_VERBS_CALL_LEAVE,
    CW_VERBS_CALL_DATAGRAM,
    CW_VERBS_CALL_CLOSE,
};

/* Memory of the rank's process. */
struct cw_verbs_virtual_piece {
    uint64_t address;
    uint32_t bytes;
    uint32_t key;
};

struct cw_verbs_virtual_work {
    uint32_t opcode, id, piece_count, remote_key, immediate;
    bool signaled, is_inline;
    uint64_t remote;
    struct cw_verbs_virtual_piece pieces[CW_VERBS_PIECES_MAX];
    uint8_t data[CW_VERBS_VIRTUAL_INLINE_MAX]; /* of inline work */
};

struct cw_verbs_virtual_buffer {
    uint32_t id;
    struct cw_verbs_virtual_piece piece;
};

struct cw_verbs_virtual {
    /* A call: its arguments, and the simulator's answer. */
    uint32_t call;   /* enum cw_verbs_call */
    int32_t status;  /* answer: CW_OK or an error */
    uint32_t number; /* of a pair, or of a group; answer of CREATE and JOIN */
    uint32_t count;  /* of `work` or `buffers`; answer: how many were taken, or whether it is so */
    uint64_t bytes;  /* REGISTER: of the memory; OPEN: the value at `address` */
    uint64_t address;
    uint32_t rights;
    uint32_t key;               /* UNREGISTER; answer of REGISTER */
    uint64_t first;             /* answer of REGISTER: remote_base */
    uint8_t group[16];          /* JOIN */
    struct cw_verbs_address at; /* CONNECT: of the peer; answer of CREATE */
    struct cw_verbs_info info;  /* answer of OPEN */
    union {
        struct cw_verbs_virtual_work work[CW_VERBS_BURST];
        struct cw_verbs_virtual_buffer buffers[CW_VERBS_BURST];
    } list;
    /* Completions. */
    struct {
        uint32_t written, taken; /* they wrap */
        struct cw_verbs_completion list[CW_VERBS_VIRTUAL_RING];
    } rings[CW_VERBS_QUEUES];
    bool has_failed;
};

/* Opens the device of this rank; once in a process. CW_OK; CW_ERROR_PERMISSION: the simulator may not copy from and to
 * this process; CW_ERROR_NOT_FOUND: the rank has no device; CW_ERROR_MEMORY; each with a line in `error`. */
int cw_verbs_virtual_open(struct cw_verbs_device **device, char *error, size_t error_bytes);
/* Whether this rank has such a device. */
bool cw_verbs_virtual_is_there(void);
