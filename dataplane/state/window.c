#include "dataplane/state/window.h"

static inline uint32_t block_of(uint64_t number)
{
    return (uint32_t)(number / CW_WINDOW_BLOCK_NUMBERS) % CW_WINDOW_BLOCKS;
}

static inline uint32_t word_of(uint64_t number)
{
    return (uint32_t)(number % CW_WINDOW_BLOCK_NUMBERS) / 64;
}

/* The 64 bits that hold `number`; a block that is not there is all zero. */
static inline uint64_t bits_at(const struct cw_window *window, uint64_t number)
{
    const uint64_t *block = window->blocks[block_of(number)];
    return block == NULL ? 0 : block[word_of(number)];
}

void cw_window_init(struct cw_window *window, uint64_t first)
{
    memset(window, 0, sizeof(*window));
    window->base = window->end = first;
}

void cw_window_dispose(struct cw_window *window, struct cw_pool *pool)
{
    for (uint32_t i = 0; i < CW_WINDOW_BLOCKS; i++) {
        if (window->blocks[i] != NULL) {
            cw_pool_release(pool, window->blocks[i]);
            window->blocks[i] = NULL;
        }
    }
}

bool cw_window_seen(const struct cw_window *window, uint64_t number)
{
    if (number < window->base) {
        return true;
    }
    return number < window->end && (bits_at(window, number) >> (number % 64) & 1) != 0;
}

/* Moves base over all numbers that have been seen, and gives back the blocks it leaves behind. */
static void advance(struct cw_window *window, struct cw_pool *pool)
{
    uint64_t base = cw_window_next(window, window->base, false);
    for (uint64_t block = window->base / CW_WINDOW_BLOCK_NUMBERS; block < base / CW_WINDOW_BLOCK_NUMBERS; block++) {
        uint32_t i = (uint32_t)block % CW_WINDOW_BLOCKS;
        if (window->blocks[i] != NULL) {
            cw_pool_release(pool, window->blocks[i]);
            window->blocks[i] = NULL;
        }
    }
    window->base = base;
    if (base == window->end) {
        cw_window_dispose(window, pool);
    }
}

bool cw_window_mark(struct cw_window *window, struct cw_pool *pool, uint64_t number)
{
    assert(number >= window->base && number < window->base + cw_window_span());
    if (window->base == window->end && number == window->base) {
        window->base = window->end = number + 1;
        return true;
    }
    if (number == window->base) {
        /* the oldest hole closes: its bit need not be stored, so this works without memory too */
        window->base++;
        if (number % CW_WINDOW_BLOCK_NUMBERS == CW_WINDOW_BLOCK_NUMBERS - 1 &&
            window->blocks[block_of(number)] != NULL) {
            cw_pool_release(pool, window->blocks[block_of(number)]);
            window->blocks[block_of(number)] = NULL;
        }
        advance(window, pool);
        return true;
    }
    uint64_t **block = &window->blocks[block_of(number)];
    if (*block == NULL) {
        *block = cw_pool_acquire(pool);
        if (*block == NULL) {
            return false;
        }
        memset(*block, 0, CW_WINDOW_BLOCK_BYTES);
    }
    (*block)[word_of(number)] |= 1ull << (number % 64);
    if (number >= window->end) {
        window->end = number + 1;
    }
    return true;
}

uint64_t cw_window_next(const struct cw_window *window, uint64_t from, bool seen)
{
    uint64_t number = from;
    while (number < window->end) {
        uint64_t bits = bits_at(window, number);
        bits = (seen ? bits : ~bits) >> (number % 64);
        if (bits != 0) {
            number += (uint64_t)__builtin_ctzll(bits);
            return number < window->end ? number : window->end;
        }
        number = (number | 63) + 1;
    }
    return window->end;
}

/* Goes down from `number` while the bits below are `seen`; stops at base. */
static uint64_t descend(const struct cw_window *window, uint64_t number, bool seen)
{
    while (number > window->base) {
        uint64_t below = number - 1;
        uint64_t bits = bits_at(window, below);
        bits = (seen ? ~bits : bits) << (63 - below % 64);
        if (bits != 0) {
            number = below + 1 - (uint64_t)__builtin_clzll(bits);
            return number > window->base ? number : window->base;
        }
        number = below & ~63ull;
    }
    return window->base;
}

uint64_t cw_window_previous_run(const struct cw_window *window, uint64_t from)
{
    return descend(window, descend(window, from, true), false);
}

uint32_t cw_window_block_count(const struct cw_window *window)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CW_WINDOW_BLOCKS; i++) {
        count += window->blocks[i] != NULL;
    }
    return count;
}
