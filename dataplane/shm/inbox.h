/* inbox: records from the other processes of a host to this one.
 *
 * Purpose
 *   Each process has one inbox: a memfd with a header, a table of slots and a ring per slot. A sender opens the memfd
 *   through /proc/PID/fd/N for its first record, claims a slot, and from then on owns the producer's end of that slot's
 *   ring. No file is left behind, even if processes die; no privilege is needed; processes without messages between
 *   them share nothing.
 *
 * Invariants
 *   - A slot is claimed once and belongs to one sender for the inbox's life. Pages of unclaimed rings are never
 *     touched.
 *   - The owner sleeps only between cw_inbox_arm and cw_inbox_disarm. No wake-up is lost: a record published before
 *     cw_inbox_ring is either seen by the owner's check after cw_inbox_arm, or the ring finds the inbox armed and ends
 *     the sleep. This needs a barrier. If the kernel has membarrier(2), the owner pays for it when it goes to sleep,
 *     otherwise each sender does (`senders_fence`). An owner that sleeps often (CW_INBOX_OFTEN_NS) leaves it to the
 *     senders, until it sleeps rarely again (CW_INBOX_RARELY_NS).
 *
 * Order of calls
 *   owner:  create { poll: cw_inbox_next; cw_ring_*  | arm, look, sleep, disarm }* destroy
 *   sender: attach { cw_ring_*; cw_inbox_ring }* detach
 *
 * Thread: the owner's calls one thread at a time, and so each attachment's; cw_inbox_ring and cw_inbox_ring_own from
 * any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "dataplane/port/port.h"
#include "dataplane/shm/ring.h"

enum {
    CW_INBOX_VERSION = 4,
    CW_INBOX_SLOTS_MAX = 1024,   /* senders of one inbox, all of its host */
    CW_INBOX_RING_BYTES = 65536, /* a ring: a power of two, whole pages */
    /* The mean time from sleep to sleep: below OFTEN, senders pay for the barrier (10 to 100 ns a record, 20 us a
     * sleep); above RARELY, the owner pays again. */
    CW_INBOX_OFTEN_NS = 400000,
    CW_INBOX_RARELY_NS = 1000000,
};

struct cw_inbox;

/* The place of an inbox, for the other processes of its host. */
struct cw_inbox_place {
    int32_t pid;    /* for system calls */
    int32_t number; /* in /proc (process.h) */
    int32_t descriptor;
    uint64_t nonce; /* random: detects a recycled process number */
    uint64_t probe; /* address of the nonce in the owner's memory, for cw_copy_probe */
};

/* `senders_max` 1 .. CW_INBOX_SLOTS_MAX. CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_MEMORY; CW_ERROR_SYSTEM; a line in
 * `error`. */
int cw_inbox_create(uint32_t senders_max, uint64_t nonce, struct cw_inbox **inbox, char *error, size_t error_bytes);
/* NULL is allowed. Senders keep their mapping. */
void cw_inbox_destroy(struct cw_inbox *inbox);

struct cw_inbox_place cw_inbox_place(const struct cw_inbox *inbox);

/* Goes from one claimed slot to the next. Begin with {.next = 0}. */
struct cw_inbox_cursor {
    uint32_t next; /* the next slot */
    uint32_t slot;
    uint32_t sender;               /* the number of the process that claimed it */
    struct cw_ring_consumer *ring; /* the consumer's end of its ring; NULL: see cw_inbox_lost */
};
/* False: no more slots. A slot whose sender is not ready yet is skipped. */
bool cw_inbox_next(struct cw_inbox *inbox, struct cw_inbox_cursor *at);
/* Reports a claimed slot whose ring could not be mapped, and never will be: the records of its sender are lost. CW_OK:
 * it is mapped; CW_ERROR_MEMORY, CW_ERROR_SYSTEM: a line in `error`. */
int cw_inbox_lost(const struct cw_inbox *inbox, uint32_t slot, char *error, size_t error_bytes);

/* Publishes that the owner is about to sleep, at `now_ns` of any steady clock. Check all rings again before
 * cw_inbox_sleep. */
void cw_inbox_arm(struct cw_inbox *inbox, uint64_t now_ns);
/* For an owner that sleeps on descriptors: makes one for cw_inbox_alarm. Before its place is published. CW_OK,
 * CW_ERROR_SYSTEM. */
int cw_inbox_bell_open(struct cw_inbox *inbox, char *error, size_t error_bytes);
/* The alarm for another sleep of the owner between cw_inbox_arm and cw_inbox_disarm. */
struct cw_port_alarm cw_inbox_alarm(const struct cw_inbox *inbox);
/* Sleeps until it is rung, `timeout_ns` has passed or a signal arrives. */
void cw_inbox_sleep(struct cw_inbox *inbox, uint64_t timeout_ns);
void cw_inbox_disarm(struct cw_inbox *inbox);
/* Publishes the core of the owner, until the next call. */
void cw_inbox_place_on(struct cw_inbox *inbox, uint32_t core);
/* Ends the owner's own sleep, from another of its threads. */
void cw_inbox_ring_own(struct cw_inbox *inbox);

/* A sender's end of another process's inbox. */
struct cw_inbox_sender {
    struct cw_ring_producer ring;
    struct cw_inbox_shared *shared;
    void *mapping; /* of the ring */
    pid_t pid;     /* of the owner */
    uint32_t slot;
    int bell; /* the owner's pipe; -1: none */
};

/* Opens an inbox and claims a slot; `sender` is the number that the owner will see. CW_OK; CW_ERROR_NOT_FOUND: no such
 * process, or another one has its number now; CW_ERROR_PERMISSION; CW_ERROR_UNSUPPORTED: another version;
 * CW_ERROR_LIMIT: no slot is left; CW_ERROR_SYSTEM; a line in `error`. */
int cw_inbox_attach(const struct cw_inbox_place *place, uint32_t sender, struct cw_inbox_sender *end, char *error,
                    size_t error_bytes);
void cw_inbox_detach(struct cw_inbox_sender *end);
/* True: that inbox's owner was last seen on this core, and does not sleep. */
bool cw_inbox_owner_is_on(const struct cw_inbox_sender *end, uint32_t core);

/* After records have been published: wakes the owner if it sleeps. */
void cw_inbox_ring(struct cw_inbox_sender *end);

/* The head of the shared memory: for inbox.c and its test. */
struct cw_inbox_shared {
    /* written at creation only */
    _Alignas(CW_RING_LINE) uint64_t magic;
    uint64_t nonce;
    uint32_t version;
    uint32_t senders_max;
    uint64_t ring_bytes;
    uint64_t rings_offset; /* of the first ring in the file */
    int32_t bell;          /* the owner's descriptor of a pipe, to which a waker writes; -1: it sleeps only on `rung` */
    _Atomic uint32_t senders_fence;
    uint32_t virtual_rank; /* of the owner, which cw_virtual_wake also wakes; UINT32_MAX: it runs in real time */
    /* read by senders after each record, written when the owner goes to sleep */
    _Alignas(CW_RING_LINE) _Atomic uint32_t asleep;
    _Atomic uint32_t rung; /* number of wake-ups of the owner: the word of its sleep */
    _Atomic uint32_t core; /* core of the owner at its last check, plus 1; 0: not known */
    /* written by senders, once each */
    _Alignas(CW_RING_LINE) _Atomic uint32_t claimed;
};
