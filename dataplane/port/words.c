#include "dataplane/port/words.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/base/virtual.h"

#if defined(SYS_futex_waitv) && defined(FUTEX_32)
static struct futex_waitv waiter_of(const struct cw_word *word)
{
    return (struct futex_waitv){
        .val = word->value,
        .uaddr = (uint64_t)(uintptr_t)word->at,
        .flags = FUTEX_32 | (word->is_private ? FUTEX_PRIVATE_FLAG : 0),
    };
}

/* False: the kernel cannot. */
static bool wait_both(const struct cw_word *one, const struct cw_word *other, uint64_t timeout_ns)
{
    struct futex_waitv waiters[2] = {waiter_of(one), waiter_of(other)};
    struct timespec until; /* absolute, unlike that of FUTEX_WAIT */
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns % 1000000000;
    until.tv_sec += (time_t)(timeout_ns / 1000000000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    return syscall(SYS_futex_waitv, waiters, 2, 0, &until, CLOCK_MONOTONIC) >= 0 || errno != ENOSYS;
}
#else
static bool wait_both(const struct cw_word *one, const struct cw_word *other, uint64_t timeout_ns)
{
    (void)one;
    (void)other;
    (void)timeout_ns;
    return false;
}
#endif

void cw_words_wait(const struct cw_word *one, const struct cw_word *other, uint64_t timeout_ns)
{
    if (cw_virtual_is_on()) {
        if (!cw_word_has_changed(one) && (other->at == NULL || !cw_word_has_changed(other))) {
            cw_virtual_wait(timeout_ns);
        }
        return;
    }
    if (other->at != NULL) {
        if (cw_word_has_changed(other) || wait_both(one, other, timeout_ns)) {
            return;
        }
        timeout_ns = timeout_ns < CW_WORDS_PATIENCE_NS ? timeout_ns : CW_WORDS_PATIENCE_NS;
    }
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000)};
    int operation = one->is_private ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT;
    syscall(SYS_futex, one->at, operation, one->value, &timeout, NULL, 0);
}
