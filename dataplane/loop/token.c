#include "dataplane/loop/token.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

void cw_token_init(struct cw_token *token)
{
    bool has_membarrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    atomic_init(&token->taken, 0);
    atomic_init(&token->use, has_membarrier ? CW_TOKEN_ALONE : CW_TOKEN_SHARED);
}

void cw_token_announce(struct cw_token *token)
{
    int use = atomic_load_explicit(&token->use, memory_order_relaxed);
    if (use != CW_TOKEN_SHARED) {
        if (use == CW_TOKEN_ALONE) {
            (void)atomic_compare_exchange_strong_explicit(&token->use, &use, CW_TOKEN_ANNOUNCED, memory_order_relaxed,
                                                          memory_order_relaxed);
        }
        /* orders the push before the caller's look at the token, and on the owner's core its store to the token before
         * its look at what was pushed; cannot fail once registered */
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    }
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the exchange in cw_token_release */
}
