/* segment: a shared-memory collective segment, in which the members of a group on one host work together in rounds,
 * without messages.
 *
 * Purpose
 *   All members count rounds alike. In a round each may write into a slot of its own, and there is one more slot for a
 *   common result. Slots are short or long, as all know for a round: there are many short ones, so that a root with
 *   short messages can run ahead, and few long ones, so that they stay in the caches. A round ends for a reader when
 *   either the member that it reads has published its slot, or all have arrived: the last one to arrive writes a
 *   counter that all others watch. So a barrier takes one atomic addition per member, and ranks that share a core wait
 *   for one event each instead of for a chain of messages. A short slot costs each reader the transfer of one cache
 *   line: the flag is in front of the data.
 *
 * Invariants
 *   - A slot is written in round r only when all have arrived at round r - n + 1, where n is the number of such slots
 *     of a member (cw_segment_may_write). By then no member reads its old contents: a member arrives at a round after
 *     all its reads of earlier rounds, and of all that others publish in this one.
 *   - Members arrive at a round once, or all of them omit it (cw_segment_may_pass). Within CW_SEGMENT_ARRIVE_EVERY
 *     rounds they arrive again, with a signature of all their calls since the last arrival. The last to arrive detects
 *     different signatures. Rounds complete in order. Before long slots are written all must have arrived late enough
 *     for cw_segment_may_write.
 *   - The memory is a memfd of member 0, which the others open through /proc/PID/fd. When all have opened it,
 *     cw_segment_seal closes it: no file and no descriptor remains.
 *
 * Order of calls
 *   member 0: cw_segment_create; its place goes to the others, who cw_segment_open; when all have it, cw_segment_seal {
 *   cw_segment_enter; wait for cw_segment_may_write, write cw_segment_slot; cw_segment_publish; wait; read;
 *   cw_segment_arrive, cw_segment_complete }* cw_segment_close
 *
 * The caller does the waiting: it watches a counter, and publishes that it sleeps (cw_segment_doze), so the member that
 * changes the counter wakes it.
 *
 * Thread: one at a time per member. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_SEGMENT_VERSION = 4,
    CW_SEGMENT_MEMBERS_MAX = 1024,
    CW_SEGMENT_ROUNDS = 64, /* short slots of a member, and rounds that may be in progress */
    CW_SEGMENT_ARRIVE_EVERY = 8,
    CW_SEGMENT_SHORT_BYTES = 1024,
    CW_SEGMENT_SHORT_STRIDE = 1088, /* with its flag, in whole lines */
    /* less than CW_SEGMENT_ROUNDS: the flags of their rounds are those of the short slots of the same rounds */
    CW_SEGMENT_LONG_SLOTS = 4,
    CW_SEGMENT_LONG_BYTES = 65536, /* pages are touched only when used */
    CW_SEGMENT_GROUP = 16,      /* members that arrive at one counter; the last of each arrives at the counter of all */
    CW_SEGMENT_COUNT_BITS = 16, /* of a counter: the number of arrivals; above them the sum of their signatures */
    CW_SEGMENT_LINE = 64,
    CW_SEGMENT_WHY_BYTES = 256,
};

/* The place of a segment. */
struct cw_segment_place {
    int32_t pid; /* in /proc (process.h); 0: there is none */
    int32_t descriptor;
    uint64_t nonce;
};

/* The current call of a member, for members that wait for it. It is read without a lock: for messages, and to detect
 * that calls differ. */
struct cw_segment_call {
    uint64_t signature;
    uint64_t bytes;
    uint32_t kind;
    uint32_t root;
};

/* Before a member's short slot. */
struct cw_segment_flag {
    _Atomic uint64_t published; /* the last round in which the slot may be read */
    _Atomic uint64_t signature; /* of the call in that round */
};

struct cw_segment_line {
    _Alignas(CW_SEGMENT_LINE) _Atomic uint64_t entered; /* the first round of its current or last call */
    _Atomic uint64_t signature;
    _Atomic uint64_t bytes;
    _Atomic uint32_t kind;
    _Atomic uint32_t root;
    _Atomic uint32_t asleep;
};

struct cw_segment_counter {
    _Alignas(CW_SEGMENT_LINE) _Atomic uint64_t value;
};

enum cw_segment_break { CW_SEGMENT_WHOLE = 0, CW_SEGMENT_BREAKING = 1, CW_SEGMENT_BROKEN = 2 };

struct cw_segment_shared {
    uint64_t magic;
    uint64_t nonce;
    uint32_t version;
    uint32_t member_count;
    _Alignas(CW_SEGMENT_LINE) _Atomic uint64_t complete; /* the last round at which all have arrived */
    _Alignas(CW_SEGMENT_LINE) _Atomic uint32_t sleepers; /* members that sleep */
    _Atomic uint32_t broken; /* enum cw_segment_break: calls did not match, or a member failed: unusable */
    int32_t why_code;        /* the user's */
    uint64_t why_call;       /* the user's: the call */
    _Alignas(CW_SEGMENT_LINE) char why[CW_SEGMENT_WHY_BYTES];
};

struct cw_segment {
    struct cw_segment_shared *shared;
    struct cw_segment_line *lines;
    struct cw_segment_counter *counters; /* per round: of all, then of each group */
    uint8_t *slots;                      /* short ones with their flags */
    uint8_t *long_slots;
    uint32_t member;
    uint32_t member_count;
    uint32_t group_count;
    int descriptor;
    size_t bytes;
};

/* `member_count` 2 .. CW_SEGMENT_MEMBERS_MAX. CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_SYSTEM with a line in `error`. */
int cw_segment_create(uint32_t member_count, uint64_t nonce, struct cw_segment *segment, char *error,
                      size_t error_bytes);
struct cw_segment_place cw_segment_place(const struct cw_segment *segment);
/* CW_OK; CW_ERROR_NOT_FOUND: no such segment; CW_ERROR_UNSUPPORTED: another version, or another number of members;
 * CW_ERROR_SYSTEM; a line in `error`. */
int cw_segment_open(const struct cw_segment_place *place, uint32_t member, uint32_t member_count,
                    struct cw_segment *segment, char *error, size_t error_bytes);
/* All members have opened it: closes the descriptor. */
void cw_segment_seal(struct cw_segment *segment);
/* A zeroed segment is allowed. */
void cw_segment_close(struct cw_segment *segment);

/* Publishes the next call of this member, from `round` on. */
static inline void cw_segment_enter(struct cw_segment *segment, uint64_t round, const struct cw_segment_call *call)
{
    struct cw_segment_line *line = &segment->lines[segment->member];
    /* no call meanwhile: a reader must not mistake the new signature for that of the previous call */
    atomic_store_explicit(&line->entered, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* pairs with the fence in cw_segment_call_of */
    atomic_store_explicit(&line->signature, call->signature, memory_order_relaxed);
    atomic_store_explicit(&line->bytes, call->bytes, memory_order_relaxed);
    atomic_store_explicit(&line->kind, call->kind, memory_order_relaxed);
    atomic_store_explicit(&line->root, call->root, memory_order_relaxed);
    /* pairs with the acquire in cw_segment_call_of */
    atomic_store_explicit(&line->entered, round, memory_order_release);
}

/* The last call that another member has published; returns its `entered`, 0 if it has published none yet or is changing
 * it. */
static inline uint64_t cw_segment_call_of(const struct cw_segment *segment, uint32_t member,
                                          struct cw_segment_call *call)
{
    const struct cw_segment_line *line = &segment->lines[member];
    /* pairs with the release in cw_segment_enter */
    uint64_t entered = atomic_load_explicit(&line->entered, memory_order_acquire);
    call->signature = atomic_load_explicit(&line->signature, memory_order_relaxed);
    call->bytes = atomic_load_explicit(&line->bytes, memory_order_relaxed);
    call->kind = atomic_load_explicit(&line->kind, memory_order_relaxed);
    call->root = atomic_load_explicit(&line->root, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence in cw_segment_enter */
    return atomic_load_explicit(&line->entered, memory_order_relaxed) == entered ? entered : 0;
}

static inline struct cw_segment_flag *cw_segment_flag(const struct cw_segment *segment, uint32_t member, uint64_t round)
{
    return (struct cw_segment_flag *)(void *)(segment->slots +
                                              ((uint64_t)member * CW_SEGMENT_ROUNDS + round % CW_SEGMENT_ROUNDS) *
                                                  CW_SEGMENT_SHORT_STRIDE);
}

/* The slot of a member in a round; member `member_count`: the common result. */
static inline uint8_t *cw_segment_slot(const struct cw_segment *segment, uint32_t member, uint64_t round, bool is_short)
{
    return is_short ? (uint8_t *)(cw_segment_flag(segment, member, round) + 1)
                    : segment->long_slots + ((uint64_t)member * CW_SEGMENT_LONG_SLOTS + round % CW_SEGMENT_LONG_SLOTS) *
                                                CW_SEGMENT_LONG_BYTES;
}

/* The counters to wait for, and their least values. Reading them with acquire pairs with the stores
 * below. */
static inline const _Atomic uint64_t *cw_segment_completed(const struct cw_segment *segment)
{
    return &segment->shared->complete;
}
static inline const _Atomic uint64_t *cw_segment_published(const struct cw_segment *segment, uint32_t member,
                                                           uint64_t round)
{
    return &cw_segment_flag(segment, member, round)->published;
}
/* The signature of the call in which a member published its slot of this round; valid while the slot is. */
static inline uint64_t cw_segment_published_in(const struct cw_segment *segment, uint32_t member, uint64_t round)
{
    return atomic_load_explicit(&cw_segment_flag(segment, member, round)->signature, memory_order_relaxed);
}
/* True: all members may omit the arrival at this round. */
static inline bool cw_segment_may_pass(uint64_t round)
{
    return round % CW_SEGMENT_ARRIVE_EVERY != 0;
}
/* The least value of cw_segment_completed before the slot of `round` may be written. */
static inline uint64_t cw_segment_may_write(uint64_t round, bool is_short)
{
    uint64_t slots = is_short ? CW_SEGMENT_ROUNDS : CW_SEGMENT_LONG_SLOTS;
    return round < slots ? 0 : round - slots + 1;
}

/* Publishes the own slot of this round. Check cw_segment_sleepers afterwards. */
static inline void cw_segment_publish(struct cw_segment *segment, uint64_t round, uint64_t signature)
{
    struct cw_segment_flag *flag = cw_segment_flag(segment, segment->member, round);
    atomic_store_explicit(&flag->signature, signature, memory_order_relaxed);
    /* sequentially consistent: before the look at the sleepers, see cw_segment_doze */
    atomic_store_explicit(&flag->published, round, memory_order_seq_cst);
}

/* Publishes the call in which this member is about to arrive at a round, for members that wait for others: like
 * cw_segment_publish, but no member waits for it. */
static inline void cw_segment_sign(struct cw_segment *segment, uint64_t round, uint64_t signature)
{
    struct cw_segment_flag *flag = cw_segment_flag(segment, segment->member, round);
    atomic_store_explicit(&flag->signature, signature, memory_order_relaxed);
    /* pairs with the acquire of readers of cw_segment_published */
    atomic_store_explicit(&flag->published, round, memory_order_release);
}

enum cw_segment_arrival {
    CW_SEGMENT_NOT_LAST = 0,
    CW_SEGMENT_LAST = 1,     /* all others have arrived: cw_segment_complete must follow */
    CW_SEGMENT_DIFFERENT = 2 /* they have, but their signatures differ: the segment is unusable */
};

/* The new value of the counter. Acquire and release: the last member sees all writes of members before their arrival,
 * and so do readers of `complete`. */
static inline uint64_t cw_segment_count(struct cw_segment_counter *counter, uint64_t value)
{
    uint64_t kept = value;
    __asm__(""
            : "+r"(kept)); /* gcc 12.2 with -O2 would add the value read to itself: test_segment fails without this */
    return atomic_fetch_add_explicit(&counter->value, value, memory_order_acq_rel) + kept;
}

static inline enum cw_segment_arrival cw_segment_arrive(struct cw_segment *segment, uint64_t round, uint64_t signature)
{
    uint64_t own = signature << CW_SEGMENT_COUNT_BITS | 1;
    uint64_t mask = (1u << CW_SEGMENT_COUNT_BITS) - 1;
    struct cw_segment_counter *counters = segment->counters + (round % CW_SEGMENT_ROUNDS) * (segment->group_count + 1);
    struct cw_segment_counter *counter = &counters[1 + segment->member / CW_SEGMENT_GROUP];
    uint64_t total = cw_segment_count(counter, own);
    if (segment->group_count > 1) {
        uint32_t first = segment->member / CW_SEGMENT_GROUP * CW_SEGMENT_GROUP;
        uint32_t rest = segment->member_count - first;
        if ((total & mask) != (rest < CW_SEGMENT_GROUP ? rest : CW_SEGMENT_GROUP)) {
            return CW_SEGMENT_NOT_LAST;
        }
        atomic_store_explicit(&counter->value, 0, memory_order_relaxed);
        counter = &counters[0];
        total = cw_segment_count(counter, total);
    }
    if ((total & mask) != segment->member_count) {
        return CW_SEGMENT_NOT_LAST;
    }
    atomic_store_explicit(&counter->value, 0, memory_order_relaxed);
    return total == own * segment->member_count ? CW_SEGMENT_LAST : CW_SEGMENT_DIFFERENT;
}

/* By the last to arrive. Check cw_segment_sleepers afterwards. */
static inline void cw_segment_complete(struct cw_segment *segment, uint64_t round)
{
    /* sequentially consistent: before the look at the sleepers, see cw_segment_doze */
    atomic_store_explicit(&segment->shared->complete, round, memory_order_seq_cst);
}

/* Makes the segment unusable; all waits must end. All members get the call, the user's code and the text of the first
 * member that breaks it. */
void cw_segment_break(struct cw_segment *segment, uint64_t call, int32_t code, const char *why);
/* The code, the call and a copy of the text; 0, UINT64_MAX and "" if it is whole, or if its breaker gives no reason for
 * long. */
int32_t cw_segment_why(const struct cw_segment *segment, uint64_t *call, char *text, size_t text_bytes);
static inline bool cw_segment_is_broken(const struct cw_segment *segment)
{
    return atomic_load_explicit(&segment->shared->broken, memory_order_acquire) != 0;
}

/* Publishes whether this member sleeps. Between this and the sleep it must check its counter again, after a full
 * barrier. */
static inline void cw_segment_doze(struct cw_segment *segment, bool asleep)
{
    atomic_store_explicit(&segment->lines[segment->member].asleep, asleep, memory_order_seq_cst);
    atomic_fetch_add_explicit(&segment->shared->sleepers, asleep ? 1u : UINT32_MAX, memory_order_seq_cst);
}
/* True: any member sleeps; this member sleeps. */
static inline bool cw_segment_sleepers(const struct cw_segment *segment)
{
    return atomic_load_explicit(&segment->shared->sleepers, memory_order_seq_cst) != 0;
}
static inline bool cw_segment_sleeps(const struct cw_segment *segment, uint32_t member)
{
    return atomic_load_explicit(&segment->lines[member].asleep, memory_order_seq_cst) != 0;
}
