#include "dataplane/base/wheel.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* A tick of a level: 256 ns, then 1,024 times as long. */
static inline uint32_t level_shift(uint32_t level)
{
    return CW_WHEEL_SLOT_SHIFT + level * CW_WHEEL_LEVEL_SHIFT;
}

void cw_wheel_init(struct cw_wheel *wheel, uint64_t now_ns)
{
    memset(wheel, 0, sizeof(*wheel));
    wheel->now_ns = now_ns;
    wheel->earliest_ns = UINT64_MAX;
}

static void slot_mark(struct cw_wheel *wheel, uint32_t level, uint32_t slot)
{
    wheel->occupied[level][slot / 64] |= 1ull << (slot % 64);
    wheel->words[level] |= 1u << slot / 64;
}

static void slot_clear(struct cw_wheel *wheel, uint32_t level, uint32_t slot)
{
    wheel->occupied[level][slot / 64] &= ~(1ull << (slot % 64));
    if (wheel->occupied[level][slot / 64] == 0) {
        wheel->words[level] &= ~(1u << slot / 64);
    }
}

static void place(struct cw_wheel *wheel, struct cw_wheel_entry *entry)
{
    uint64_t time_ns = entry->time_ns > wheel->now_ns ? entry->time_ns : wheel->now_ns;
    uint32_t level = 0;
    uint64_t tick = time_ns >> level_shift(0);
    if (tick - (wheel->now_ns >> level_shift(0)) >= CW_WHEEL_SLOTS) {
        level = 1;
        uint64_t now_tick = wheel->now_ns >> level_shift(1);
        tick = time_ns >> level_shift(1);
        if (tick - now_tick >= CW_WHEEL_SLOTS) {
            tick = now_tick + CW_WHEEL_SLOTS - 1;
        }
    }
    uint32_t slot = (uint32_t)tick % CW_WHEEL_SLOTS;
    struct cw_wheel_entry **head = &wheel->slots[level][slot];
    entry->next = *head;
    entry->link = head;
    if (entry->next != NULL) {
        entry->next->link = &entry->next;
    }
    *head = entry;
    slot_mark(wheel, level, slot);
}

void cw_wheel_insert(struct cw_wheel *wheel, struct cw_wheel_entry *entry, uint64_t time_ns)
{
    assert(!cw_wheel_waiting(entry));
    entry->time_ns = time_ns;
    place(wheel, entry);
    wheel->count++;
    wheel->earliest_ns = time_ns < wheel->earliest_ns ? time_ns : wheel->earliest_ns;
}

static void unlink_entry(struct cw_wheel *wheel, struct cw_wheel_entry *entry)
{
    *entry->link = entry->next;
    if (entry->next != NULL) {
        entry->next->link = entry->link;
    } else {
        struct cw_wheel_entry **first = &wheel->slots[0][0];
        ptrdiff_t index = entry->link - first;
        if (index >= 0 && index < CW_WHEEL_LEVELS * CW_WHEEL_SLOTS && *entry->link == NULL) {
            slot_clear(wheel, (uint32_t)(index / CW_WHEEL_SLOTS), (uint32_t)(index % CW_WHEEL_SLOTS));
        }
    }
    entry->link = NULL;
    entry->next = NULL;
}

void cw_wheel_remove(struct cw_wheel *wheel, struct cw_wheel_entry *entry)
{
    if (cw_wheel_waiting(entry)) {
        unlink_entry(wheel, entry);
        wheel->count--;
    }
}

/* How many slots from `first` on (a slot of `level`, at most one round) are empty before the next occupied one. */
static uint32_t distance_to_occupied(const struct cw_wheel *wheel, uint32_t level, uint32_t first)
{
    const uint64_t *occupied = wheel->occupied[level];
    uint32_t word = first / 64;
    uint64_t bits = occupied[word] >> (first % 64);
    if (bits != 0) {
        return (uint32_t)__builtin_ctzll(bits);
    }
    /* the words behind it, then those before it, then the slots of its own word before `first` */
    uint32_t words = wheel->words[level];
    uint32_t later = words & ~((2u << word) - 1);
    uint32_t found = later != 0 ? later : words;
    if (found == 0) {
        return CW_WHEEL_SLOTS;
    }
    word = (uint32_t)__builtin_ctz(found);
    uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(occupied[word]);
    return (slot - first) % CW_WHEEL_SLOTS;
}

/* Brings the entries of the coarse slot that `now_ns` has just reached down to the fine level. */
static void cascade(struct cw_wheel *wheel)
{
    uint32_t slot = (uint32_t)(wheel->now_ns >> level_shift(1)) % CW_WHEEL_SLOTS;
    struct cw_wheel_entry *entry = wheel->slots[1][slot];
    wheel->slots[1][slot] = NULL;
    slot_clear(wheel, 1, slot);
    while (entry != NULL) {
        struct cw_wheel_entry *next = entry->next;
        place(wheel, entry);
        entry = next;
    }
}

/* An entry of the slot at `now_ns` that is due by then. */
static struct cw_wheel_entry *due_pop(struct cw_wheel *wheel, uint64_t now_ns)
{
    uint32_t slot = (uint32_t)(wheel->now_ns >> level_shift(0)) % CW_WHEEL_SLOTS;
    for (struct cw_wheel_entry *entry = wheel->slots[0][slot]; entry != NULL; entry = entry->next) {
        if (entry->time_ns <= now_ns) {
            unlink_entry(wheel, entry);
            wheel->count--;
            return entry;
        }
    }
    return NULL;
}

/* As cw_wheel_expire, for a wheel that is not empty. */
static struct cw_wheel_entry *expire(struct cw_wheel *wheel, uint64_t now_ns)
{
    for (;;) {
        struct cw_wheel_entry *entry = due_pop(wheel, now_ns);
        if (entry != NULL) {
            return entry;
        }
        uint64_t tick = wheel->now_ns >> level_shift(0);
        if (now_ns >> level_shift(0) <= tick) {
            wheel->now_ns = now_ns > wheel->now_ns ? now_ns : wheel->now_ns;
            return NULL;
        }
        /* on to the next occupied fine slot, the next coarse slot, or now_ns: the first of these */
        uint64_t round_end = (tick | (CW_WHEEL_SLOTS - 1)) + 1;
        uint64_t target = tick + 1 + distance_to_occupied(wheel, 0, (uint32_t)(tick + 1) % CW_WHEEL_SLOTS);
        target = target < round_end ? target : round_end;
        uint64_t last = now_ns >> level_shift(0);
        target = target < last ? target : last;
        wheel->now_ns = target << level_shift(0);
        if (target == round_end) {
            cascade(wheel);
        }
    }
}

uint64_t cw_wheel_next(const struct cw_wheel *wheel)
{
    if (wheel->count == 0) {
        return UINT64_MAX;
    }
    uint64_t tick = wheel->now_ns >> level_shift(0);
    uint64_t earliest = UINT64_MAX;
    uint32_t fine = distance_to_occupied(wheel, 0, (uint32_t)tick % CW_WHEEL_SLOTS);
    if (fine < CW_WHEEL_SLOTS) {
        for (const struct cw_wheel_entry *entry = wheel->slots[0][(tick + fine) % CW_WHEEL_SLOTS]; entry != NULL;
             entry = entry->next) {
            earliest = entry->time_ns < earliest ? entry->time_ns : earliest;
        }
    }
    uint64_t coarse_tick = wheel->now_ns >> level_shift(1);
    uint32_t coarse = distance_to_occupied(wheel, 1, (uint32_t)(coarse_tick + 1) % CW_WHEEL_SLOTS);
    if (coarse < CW_WHEEL_SLOTS) {
        uint64_t cascade_ns = (coarse_tick + 1 + coarse) << level_shift(1);
        earliest = cascade_ns < earliest ? cascade_ns : earliest;
    }
    /* a coarse slot may begin before now while its entries are still to come */
    return earliest > wheel->earliest_ns ? earliest : wheel->earliest_ns;
}

struct cw_wheel_entry *cw_wheel_expire(struct cw_wheel *wheel, uint64_t now_ns)
{
    if (!cw_wheel_due(wheel, now_ns)) {
        return NULL;
    }
    struct cw_wheel_entry *entry = NULL;
    if (wheel->count > 0) {
        entry = expire(wheel, now_ns);
    } else if (now_ns > wheel->now_ns) {
        wheel->now_ns = now_ns;
    }
    if (entry == NULL) {
        wheel->earliest_ns = cw_wheel_next(wheel);
    }
    return entry;
}
