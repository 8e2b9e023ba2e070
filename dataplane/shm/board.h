/* board: memory in which the members of a group on one host work together in rounds, without messages.
 *
 * Purpose
 *   All members count rounds alike. In a round each may write into a slot of its own, and there is one more slot for a
 *   common result. Slots are short or long, as all know for a round: there are many short ones, so that a root that
 *   sends little can run ahead, and few long ones, so that they stay in the caches. A round is over for its reader when
 *   either the member that matters has published its slot, or all have arrived: the last one to arrive says so in one
 *   word that all others watch. So a barrier takes one atomic addition per member, and ranks that share a core wait for
 *   one event each instead of for a chain of messages. What one member sends to the others in a short slot costs each
 *   of them the transfer of one cache line: the flag stands before the data.
 *
 * Invariants
 *   - A slot is written in round r only when all have arrived at round r - n + 1, where n is how many such slots a
 *     member has (cw_board_may_write): by then nobody reads what it held before, for a member arrives at a round when
 *     it has read all that it wants of the rounds before, and all that others publish in this one.
 *   - Members arrive at a round once, or, as all of them know, not at all (cw_board_may_pass): within
 *     CW_BOARD_ARRIVE_EVERY rounds they arrive again, with a signature of all that they have done since they did last;
 *     different ones are noticed by the last to arrive. Rounds complete in order. Before long slots are written all
 *     must have arrived late enough for cw_board_may_write.
 *   - The memory is a memfd that member 0 makes and the others open through /proc/PID/fd; when all have, cw_board_seal
 *     closes it: no file, no descriptor stays.
 *
 * Order of calls
 *   member 0: cw_board_create; its place goes to the others, who cw_board_open; when all have it, cw_board_seal {
 *   cw_board_enter; wait for cw_board_may_write, write cw_board_slot; cw_board_publish; wait; read; cw_board_arrive,
 *   cw_board_complete }* cw_board_close
 *
 * Waiting is the caller's: it watches a word, and says that it sleeps (cw_board_doze) so that whoever changes that word
 * knows to wake it.
 *
 * Thread: one at a time per member.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_BOARD_VERSION = 3,
    CW_BOARD_MEMBERS_MAX = 1024,
    CW_BOARD_ROUNDS = 64, /* short slots of a member, and rounds that may be under way */
    CW_BOARD_ARRIVE_EVERY = 8,
    CW_BOARD_SHORT_BYTES = 1024,
    CW_BOARD_SHORT_STRIDE = 1088, /* with its flag, in whole lines */
    CW_BOARD_LONG_SLOTS =
        4, /* less than CW_BOARD_ROUNDS: the flags of their rounds stand where the short slots of the same rounds do */
    CW_BOARD_LONG_BYTES = 65536, /* touched only as far as it is used */
    CW_BOARD_GROUP = 16,      /* members that arrive at one counter; the last of each goes on to the counter of all */
    CW_BOARD_COUNT_BITS = 16, /* of a counter: how many have arrived; above them the sum of their signatures */
    CW_BOARD_LINE = 64,
    CW_BOARD_WHY_BYTES = 256,
};

/* Where a board is found. */
struct cw_board_place {
    int32_t pid; /* in /proc (process.h); 0: there is none */
    int32_t descriptor;
    uint64_t nonce;
};

/* What a member is doing, for those who wait for it. Read without a lock: good for messages, and for noticing that
 * calls differ. */
struct cw_board_call {
    uint64_t signature;
    uint64_t bytes;
    uint32_t kind;
    uint32_t root;
};

/* Before a member's short slot. */
struct cw_board_flag {
    _Atomic uint64_t published; /* the last round in which the slot may be read */
    _Atomic uint64_t signature; /* of the call in that round */
};

struct cw_board_line {
    _Alignas(CW_BOARD_LINE) _Atomic uint64_t entered; /* the first round of the call that it is in, or was in last */
    _Atomic uint64_t signature;
    _Atomic uint64_t bytes;
    _Atomic uint32_t kind;
    _Atomic uint32_t root;
    _Atomic uint32_t asleep;
};

struct cw_board_counter {
    _Alignas(CW_BOARD_LINE) _Atomic uint64_t value;
};

enum cw_board_break { CW_BOARD_WHOLE = 0, CW_BOARD_BREAKING = 1, CW_BOARD_BROKEN = 2 };

struct cw_board_shared {
    uint64_t magic;
    uint64_t nonce;
    uint32_t version;
    uint32_t member_count;
    _Alignas(CW_BOARD_LINE) _Atomic uint64_t complete; /* the last round at which all have arrived */
    _Alignas(CW_BOARD_LINE) _Atomic uint32_t sleepers; /* members that sleep */
    _Atomic uint32_t broken; /* enum cw_board_break: calls did not match, or a member failed: of no use any more */
    int32_t why_code;        /* the user's */
    _Alignas(CW_BOARD_LINE) char why[CW_BOARD_WHY_BYTES];
};

struct cw_board {
    struct cw_board_shared *shared;
    struct cw_board_line *lines;
    struct cw_board_counter *counters; /* per round: of all, then of each group */
    uint8_t *slots;                    /* short ones with their flags */
    uint8_t *long_slots;
    uint32_t member;
    uint32_t member_count;
    uint32_t group_count;
    int descriptor;
    size_t bytes;
};

/* `member_count` 2 .. CW_BOARD_MEMBERS_MAX. CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_SYSTEM with a line in `error`. */
int cw_board_create(uint32_t member_count, uint64_t nonce, struct cw_board *board, char *error, size_t error_bytes);
struct cw_board_place cw_board_place(const struct cw_board *board);
/* CW_OK; CW_ERROR_NOT_FOUND: no such board; CW_ERROR_UNSUPPORTED: another version, or another number of members;
 * CW_ERROR_SYSTEM; a line in `error`. */
int cw_board_open(const struct cw_board_place *place, uint32_t member, uint32_t member_count, struct cw_board *board,
                  char *error, size_t error_bytes);
/* All members have opened it: closes the descriptor. */
void cw_board_seal(struct cw_board *board);
/* A zeroed board is allowed. */
void cw_board_close(struct cw_board *board);

/* Says what this member is about to do, from `round` on. */
static inline void cw_board_enter(struct cw_board *board, uint64_t round, const struct cw_board_call *call)
{
    struct cw_board_line *line = &board->lines[board->member];
    /* what follows is of no call: a reader must not take the new signature for that of the call before */
    atomic_store_explicit(&line->entered, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* pairs with the fence in cw_board_call_of */
    atomic_store_explicit(&line->signature, call->signature, memory_order_relaxed);
    atomic_store_explicit(&line->bytes, call->bytes, memory_order_relaxed);
    atomic_store_explicit(&line->kind, call->kind, memory_order_relaxed);
    atomic_store_explicit(&line->root, call->root, memory_order_relaxed);
    /* pairs with the acquire in cw_board_call_of */
    atomic_store_explicit(&line->entered, round, memory_order_release);
}

/* What another member said last; returns its `entered`, 0 if it has said nothing yet or is just about to say something
 * else. */
static inline uint64_t cw_board_call_of(const struct cw_board *board, uint32_t member, struct cw_board_call *call)
{
    const struct cw_board_line *line = &board->lines[member];
    /* pairs with the release in cw_board_enter */
    uint64_t entered = atomic_load_explicit(&line->entered, memory_order_acquire);
    call->signature = atomic_load_explicit(&line->signature, memory_order_relaxed);
    call->bytes = atomic_load_explicit(&line->bytes, memory_order_relaxed);
    call->kind = atomic_load_explicit(&line->kind, memory_order_relaxed);
    call->root = atomic_load_explicit(&line->root, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence in cw_board_enter */
    return atomic_load_explicit(&line->entered, memory_order_relaxed) == entered ? entered : 0;
}

static inline struct cw_board_flag *cw_board_flag(const struct cw_board *board, uint32_t member, uint64_t round)
{
    return (struct cw_board_flag *)(void *)(board->slots +
                                            ((uint64_t)member * CW_BOARD_ROUNDS + round % CW_BOARD_ROUNDS) *
                                                CW_BOARD_SHORT_STRIDE);
}

/* The slot of a member in a round; member `member_count`: the common result. */
static inline uint8_t *cw_board_slot(const struct cw_board *board, uint32_t member, uint64_t round, bool is_short)
{
    return is_short ? (uint8_t *)(cw_board_flag(board, member, round) + 1)
                    : board->long_slots +
                          ((uint64_t)member * CW_BOARD_LONG_SLOTS + round % CW_BOARD_LONG_SLOTS) * CW_BOARD_LONG_BYTES;
}

/* The words to wait for, and the least that they must have become. Reading them with acquire pairs with the stores
 * below. */
static inline const _Atomic uint64_t *cw_board_completed(const struct cw_board *board)
{
    return &board->shared->complete;
}
static inline const _Atomic uint64_t *cw_board_published(const struct cw_board *board, uint32_t member, uint64_t round)
{
    return &cw_board_flag(board, member, round)->published;
}
/* Of the call in which a member published its slot of this round; valid as long as the slot is. */
static inline uint64_t cw_board_published_in(const struct cw_board *board, uint32_t member, uint64_t round)
{
    return atomic_load_explicit(&cw_board_flag(board, member, round)->signature, memory_order_relaxed);
}
/* Whether nobody need arrive at this round, if all do as this one says. */
static inline bool cw_board_may_pass(uint64_t round)
{
    return round % CW_BOARD_ARRIVE_EVERY != 0;
}
/* What cw_board_completed must have reached before the slot of `round` is written. */
static inline uint64_t cw_board_may_write(uint64_t round, bool is_short)
{
    uint64_t slots = is_short ? CW_BOARD_ROUNDS : CW_BOARD_LONG_SLOTS;
    return round < slots ? 0 : round - slots + 1;
}

/* The own slot of this round may be read. Look at cw_board_sleepers afterwards. */
static inline void cw_board_publish(struct cw_board *board, uint64_t round, uint64_t signature)
{
    struct cw_board_flag *flag = cw_board_flag(board, board->member, round);
    atomic_store_explicit(&flag->signature, signature, memory_order_relaxed);
    /* sequentially consistent: before the look at the sleepers, see cw_board_doze */
    atomic_store_explicit(&flag->published, round, memory_order_seq_cst);
}

/* Says in which call this member is about to arrive at a round, for those who wait for others: like cw_board_publish,
 * but nobody waits for this. */
static inline void cw_board_sign(struct cw_board *board, uint64_t round, uint64_t signature)
{
    struct cw_board_flag *flag = cw_board_flag(board, board->member, round);
    atomic_store_explicit(&flag->signature, signature, memory_order_relaxed);
    /* pairs with the acquire of who reads cw_board_published */
    atomic_store_explicit(&flag->published, round, memory_order_release);
}

enum cw_board_arrival {
    CW_BOARD_NOT_LAST = 0,
    CW_BOARD_LAST = 1,     /* all others have arrived: cw_board_complete must follow */
    CW_BOARD_DIFFERENT = 2 /* they have, but their signatures are not all alike: the board is of no use any more */
};

/* What the counter has become. Acquire and release: what members wrote before they arrived is seen by the last one, and
 * by who sees `complete`. */
static inline uint64_t cw_board_count(struct cw_board_counter *counter, uint64_t value)
{
    uint64_t kept = value;
    __asm__("" : "+r"(kept)); /* gcc 12.2 with -O2 would add what was read to itself: test_board fails without this */
    return atomic_fetch_add_explicit(&counter->value, value, memory_order_acq_rel) + kept;
}

static inline enum cw_board_arrival cw_board_arrive(struct cw_board *board, uint64_t round, uint64_t signature)
{
    uint64_t own = signature << CW_BOARD_COUNT_BITS | 1;
    uint64_t mask = (1u << CW_BOARD_COUNT_BITS) - 1;
    struct cw_board_counter *counters = board->counters + (round % CW_BOARD_ROUNDS) * (board->group_count + 1);
    struct cw_board_counter *counter = &counters[1 + board->member / CW_BOARD_GROUP];
    uint64_t total = cw_board_count(counter, own);
    if (board->group_count > 1) {
        uint32_t first = board->member / CW_BOARD_GROUP * CW_BOARD_GROUP;
        uint32_t rest = board->member_count - first;
        if ((total & mask) != (rest < CW_BOARD_GROUP ? rest : CW_BOARD_GROUP)) {
            return CW_BOARD_NOT_LAST;
        }
        atomic_store_explicit(&counter->value, 0, memory_order_relaxed);
        counter = &counters[0];
        total = cw_board_count(counter, total);
    }
    if ((total & mask) != board->member_count) {
        return CW_BOARD_NOT_LAST;
    }
    atomic_store_explicit(&counter->value, 0, memory_order_relaxed);
    return total == own * board->member_count ? CW_BOARD_LAST : CW_BOARD_DIFFERENT;
}

/* By the last to arrive. Look at cw_board_sleepers afterwards. */
static inline void cw_board_complete(struct cw_board *board, uint64_t round)
{
    /* sequentially consistent: before the look at the sleepers, see cw_board_doze */
    atomic_store_explicit(&board->shared->complete, round, memory_order_seq_cst);
}

/* Nobody can rely on the board any more; all waits must end. What the first one says, a code of the user's and a text,
 * is told to all. */
void cw_board_break(struct cw_board *board, int32_t code, const char *why);
/* The code and a copy of the text; 0 and "" if it is whole, or who broke it has not said why for long. */
int32_t cw_board_why(const struct cw_board *board, char *text, size_t text_bytes);
static inline bool cw_board_is_broken(const struct cw_board *board)
{
    return atomic_load_explicit(&board->shared->broken, memory_order_acquire) != 0;
}

/* Says whether this member sleeps. Between saying so and sleeping it must look at its word once more, behind a full
 * barrier. */
static inline void cw_board_doze(struct cw_board *board, bool asleep)
{
    atomic_store_explicit(&board->lines[board->member].asleep, asleep, memory_order_seq_cst);
    atomic_fetch_add_explicit(&board->shared->sleepers, asleep ? 1u : UINT32_MAX, memory_order_seq_cst);
}
/* Whether anybody sleeps, and whether this one does. */
static inline bool cw_board_sleepers(const struct cw_board *board)
{
    return atomic_load_explicit(&board->shared->sleepers, memory_order_seq_cst) != 0;
}
static inline bool cw_board_sleeps(const struct cw_board *board, uint32_t member)
{
    return atomic_load_explicit(&board->lines[member].asleep, memory_order_seq_cst) != 0;
}
