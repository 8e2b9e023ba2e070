/* Token: the right to turn an endpoint, and the check for commands of threads that could not get it.
 *
 * Invariant: after cw_token_announce, which follows the push of a command, either a cw_token_acquire by the same thread
 * succeeds, or the owner sees the push in its check after cw_token_release. That needs a full barrier in both threads.
 * A loop of one thread would pay it with every call, so the token begins without one. The first thread to announce a
 * command makes the kernel run the barrier on all cores (membarrier(2)), until the owner has noticed that it is no
 * longer alone. From then on the owner pays its own barrier. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

enum cw_token_use {
    CW_TOKEN_ALONE,     /* no announcement so far: giving is a plain store */
    CW_TOKEN_ANNOUNCED, /* announced, but the owner may not know yet */
    CW_TOKEN_SHARED,    /* the owner knows: giving is a full barrier, announcing needs no kernel */
};

struct cw_token {
    atomic_int taken;
    atomic_int use; /* enum cw_token_use; only ever goes up */
};

/* A free token. */
void cw_token_init(struct cw_token *token);

/* False: another thread has it. */
static inline bool cw_token_acquire(struct cw_token *token)
{
    int expected = 0;
    /* pairs with the release in cw_token_release: the endpoint as the last owner left it */
    return atomic_load_explicit(&token->taken, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&token->taken, &expected, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Owner only. Its later loads see every push whose announcement did not find the token free. */
static inline void cw_token_release(struct cw_token *token)
{
    if (atomic_load_explicit(&token->use, memory_order_relaxed) == CW_TOKEN_ALONE) {
        /* pairs with the acquire in cw_token_acquire; the announcer's membarrier turns the signal fence into a real
         * one */
        atomic_store_explicit(&token->taken, 0, memory_order_release);
        atomic_signal_fence(memory_order_seq_cst);
        return;
    }
    atomic_store_explicit(&token->use, CW_TOKEN_SHARED, memory_order_relaxed);
#if defined(__x86_64__)
    /* here an exchange is a full barrier, and cheaper than a store and a fence; pairs with the fence in
     * cw_token_announce */
    (void)atomic_exchange_explicit(&token->taken, 0, memory_order_seq_cst);
#else
    /* pairs with the acquire in cw_token_acquire, the fence with that in cw_token_announce */
    atomic_store_explicit(&token->taken, 0, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Owner only, on finding an announced command: an owner that keeps the token spares announcers the kernel's
 * barrier, too. */
static inline void cw_token_notice(struct cw_token *token)
{
    if (atomic_load_explicit(&token->use, memory_order_relaxed) == CW_TOKEN_ANNOUNCED) {
        atomic_store_explicit(&token->use, CW_TOKEN_SHARED, memory_order_relaxed);
    }
}

/* True if a thread has the token; a snapshot. */
static inline bool cw_token_is_held(const struct cw_token *token)
{
    return atomic_load_explicit(&token->taken, memory_order_relaxed) != 0;
}

/* Any thread, after it has pushed a command and before it tries to take the token. */
void cw_token_announce(struct cw_token *token);
