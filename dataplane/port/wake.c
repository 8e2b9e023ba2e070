#include "dataplane/port/wake.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/status.h"

int cw_wake_open(struct cw_wake *wake)
{
    wake->descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return wake->descriptor >= 0 ? CW_OK : cw_status_of_errno(errno);
}

void cw_wake_close(struct cw_wake *wake)
{
    if (wake->descriptor >= 0) {
        close(wake->descriptor);
        wake->descriptor = -1;
    }
}

bool cw_wake_begin(struct cw_wake *wake)
{
    /* Sequentially consistent, pairs with cw_wake_up: either it sees `sleeping` and writes to the descriptor, or
     * `woken` is seen. */
    atomic_store_explicit(&wake->sleeping, 1, memory_order_seq_cst);
    return atomic_load_explicit(&wake->woken, memory_order_seq_cst) == 0;
}

short cw_wake_wait(struct cw_wake *wake, int descriptor, const struct cw_port_alarm *alarm, uint64_t timeout_ns)
{
    struct pollfd set[4] = {{.fd = descriptor, .events = POLLIN},
                            {.fd = wake->descriptor, .events = POLLIN},
                            {.fd = alarm == NULL ? -1 : alarm->descriptor, .events = POLLIN},
                            {.fd = alarm == NULL || alarm->companion <= 0 ? -1 : alarm->companion, .events = POLLIN}};
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000)};
    if (ppoll(set, 4, &timeout, NULL) <= 0) {
        return 0;
    }
    /* Unreadable again: the flag `woken`, and the alarm's word, which changes before anything is written, count. */
    uint64_t rings[8];
    if (set[1].revents != 0) {
        ssize_t taken = read(wake->descriptor, rings, sizeof(*rings));
        (void)taken;
    }
    while ((set[2].revents & POLLIN) != 0 && read(alarm->descriptor, rings, sizeof(rings)) == sizeof(rings)) {
    }
    return set[0].revents;
}

bool cw_wake_continues(const struct cw_wake *wake, const struct cw_port_alarm *alarm)
{
    /* Relaxed: whether it was woken is decided by cw_wake_consume. */
    return atomic_load_explicit(&wake->woken, memory_order_relaxed) == 0 &&
           (alarm == NULL || alarm->word.at == NULL || !cw_word_has_changed(&alarm->word));
}

void cw_wake_end(struct cw_wake *wake)
{
    atomic_store_explicit(&wake->sleeping, 0, memory_order_relaxed);
    cw_wake_consume(wake);
}

bool cw_wake_consume(struct cw_wake *wake)
{
    /* Acquire pairs with the release half of the exchange in cw_wake_up. */
    return atomic_exchange_explicit(&wake->woken, 0, memory_order_acq_rel) != 0;
}

void cw_wake_up(struct cw_wake *wake)
{
    /* Sequentially consistent, pairs with cw_wake_begin. Its release half also hands over what the waker has written
     * before. */
    bool already = atomic_exchange_explicit(&wake->woken, 1, memory_order_seq_cst) != 0;
    if (!already && wake->descriptor >= 0 && atomic_load_explicit(&wake->sleeping, memory_order_seq_cst) != 0) {
        uint64_t one = 1;
        ssize_t written = write(wake->descriptor, &one, sizeof(one));
        (void)written; /* fails only if it is readable anyway */
    }
}
