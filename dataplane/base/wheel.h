/* Wheel: the timing wheel that releases everything with a time: paced flows and time-outs (Carousel, SIGCOMM 2017).
 *
 * Invariants
 *   - an entry comes out once its time has come, never before, and in the turn that asks for that time or a later one.
 *   - insert, remove and expiry take constant time, however many entries there are; only cw_wheel_next looks through
 *     one slot.
 *   - the wheel has two levels; an entry beyond its reach waits in the last slot and is sorted again there. Owner: the
 * thread that turns the loop. Times are nanoseconds and never go back. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    CW_WHEEL_SLOT_SHIFT = 8,   /* a slot of the fine level: 256 ns */
    CW_WHEEL_LEVEL_SHIFT = 10, /* 1,024 slots a level: 262 us and 268 ms */
    CW_WHEEL_SLOTS = 1 << CW_WHEEL_LEVEL_SHIFT,
    CW_WHEEL_LEVELS = 2,
};
static_assert(CW_WHEEL_SLOTS / 64 < 32, "the words of a level's slots are bits of one");

struct cw_wheel_entry {
    struct cw_wheel_entry *next;
    struct cw_wheel_entry **link; /* the pointer to this entry; NULL: not in the wheel */
    uint64_t time_ns;
};

struct cw_wheel {
    uint64_t now_ns;      /* everything up to here has come out */
    uint64_t earliest_ns; /* nothing comes out before, so that an idle turn costs one comparison */
    uint32_t count;
    uint64_t occupied[CW_WHEEL_LEVELS][CW_WHEEL_SLOTS / 64];
    uint32_t words[CW_WHEEL_LEVELS]; /* which words of `occupied` are not 0 */
    struct cw_wheel_entry *slots[CW_WHEEL_LEVELS][CW_WHEEL_SLOTS];
};

void cw_wheel_init(struct cw_wheel *wheel, uint64_t now_ns);

static inline bool cw_wheel_waiting(const struct cw_wheel_entry *entry)
{
    return entry->link != 0;
}

/* Puts an entry that is not in the wheel into it; a time in the past comes out at the next expiry. */
void cw_wheel_insert(struct cw_wheel *wheel, struct cw_wheel_entry *entry, uint64_t time_ns);

/* Takes an entry out; nothing happens if it is not in. */
void cw_wheel_remove(struct cw_wheel *wheel, struct cw_wheel_entry *entry);

/* The next entry whose time is at or before `now_ns`, taken out; NULL: none is left. Call until NULL. */
struct cw_wheel_entry *cw_wheel_expire(struct cw_wheel *wheel, uint64_t now_ns);

/* False: cw_wheel_expire would find nothing. */
static inline bool cw_wheel_due(const struct cw_wheel *wheel, uint64_t now_ns)
{
    return now_ns >= wheel->earliest_ns;
}

/* A time at which to ask again: never later than the earliest entry's, exactly that once it is near, and after an
 * expiry in the future; UINT64_MAX: the wheel is empty. */
uint64_t cw_wheel_next(const struct cw_wheel *wheel);
