/* Doorbell: how a sender wakes a sleeping receiver when the NIC between them cannot (memif, af_packet: no receive
 * interrupt).
 *
 * A small file, mapped shared by all processes that know its path, holds one futex word per participant. A word shows
 * whether its owner sleeps. A sender of packets to the owner rings it, which costs a fence and a load unless the owner
 * sleeps.
 *
 * Invariants
 *  - A word is armed and disarmed by its owner only, one thread at a time; any thread may ring it.
 *  - No ring is lost: packets made visible before cw_doorbell_ring are either seen by the owner's check after
 *    cw_doorbell_arm, or the ring finds the word armed and ends the wait.
 *  - Two processes that sleep on the same index take each other's rings: the process that makes the file's path
 *    must distribute the indices.
 *
 * Order of calls
 *    owner:  open { arm, check for packets, wait (if there were none), disarm }* close
 *    sender: open { send packets, ring }* close */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/port/words.h"

enum {
    CW_DOORBELL_WORDS = 64, /* participants of one file */
    CW_DOORBELL_FILE_VERSION = 1,
};

struct cw_doorbell;

/* Attaches to the file, creating it (mode 0600) if it is not there; any number of processes may do so at the same time.
 * `own_index` < CW_DOORBELL_WORDS is the word this handle arms. The process that chose the path must remove the file at
 * the end. CW_OK; CW_ERROR_ARGUMENT (index, path); CW_ERROR_PERMISSION; CW_ERROR_UNSUPPORTED (not a doorbell file, or
 * another version); CW_ERROR_MEMORY; CW_ERROR_SYSTEM. `error` gets one line of text. */
int cw_doorbell_open(const char *path, uint32_t own_index, struct cw_doorbell **bell, char *error, size_t error_bytes);

/* Wakes the owner of the word `index` if it sleeps. Call it after the packets have been handed to the driver. An index
 * outside the file is ignored. Any thread. */
void cw_doorbell_ring(struct cw_doorbell *bell, uint32_t index);

/* Rings the word that this handle arms, for the owner's own other threads. Any thread. */
void cw_doorbell_ring_own(struct cw_doorbell *bell);

/* Publishes that the owner is about to sleep; check for packets again between this and cw_doorbell_wait. Owner. */
void cw_doorbell_arm(struct cw_doorbell *bell);

/* Sleeps until the word is rung, `timeout_ns` has passed or a signal came. Returns true if it was rung since
 * cw_doorbell_arm. Owner. */
bool cw_doorbell_wait(struct cw_doorbell *bell, uint64_t timeout_ns);
/* The same, and until `other` changes, or is woken. */
bool cw_doorbell_wait_either(struct cw_doorbell *bell, const struct cw_word *other, uint64_t timeout_ns);

/* Publishes that the owner is awake again. Owner. */
void cw_doorbell_disarm(struct cw_doorbell *bell);

/* Unmaps the file; NULL is allowed. Owner. */
void cw_doorbell_close(struct cw_doorbell *bell);
