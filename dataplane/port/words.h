/* Words: sleeping on one or two words of memory at once (futex_waitv(2), Linux 5.16). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cw_word {
    const void *at;  /* an atomic 32-bit integer; NULL: none */
    uint32_t value;  /* sleeps only while it is this */
    bool is_private; /* woken by FUTEX_WAKE_PRIVATE: no other process has it */
};

/* The longest sleep on the first of two words where the kernel cannot wait for both. */
#define CW_WORDS_PATIENCE_NS 500000ull

/* Returns when one of them has another value or is woken, a signal came, or `timeout_ns` has passed; may return
 * early. Any thread. */
void cw_words_wait(const struct cw_word *one, const struct cw_word *other, uint64_t timeout_ns);

/* Whether a word has another value by now; acquires the writes before it. */
static inline bool cw_word_has_changed(const struct cw_word *word)
{
    return atomic_load_explicit((const _Atomic uint32_t *)word->at, memory_order_acquire) != word->value;
}
