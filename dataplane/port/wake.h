/* Wake: the sleep of a port that waits on descriptors of the kernel. It ends by a descriptor, by a wake-up of any
 * thread, by the port's alarm, or by time.
 *
 * No wake-up is lost: the owner announces its sleep (cw_wake_begin), checks again for packets, and only then waits; a
 * waker writes to a descriptor if the owner sleeps, and cw_wake_begin sees it if not yet.
 *
 * Order of calls: cw_wake_open { cw_wake_begin { cw_wake_wait }* cw_wake_end }* cw_wake_close. Thread: the port's
 * owner; cw_wake_up any. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/port/port.h"

struct cw_wake {
    int descriptor; /* an eventfd; -1: none, woken otherwise */
    _Atomic uint32_t sleeping;
    _Atomic uint32_t woken;
};

/* CW_OK, or the result of cw_status_of_errno for errno. */
int cw_wake_open(struct cw_wake *wake);
/* One that was never opened, with -1, is allowed. */
void cw_wake_close(struct cw_wake *wake);

/* False: it has been woken, and does not sleep. */
bool cw_wake_begin(struct cw_wake *wake);
/* Waits until `descriptor` (-1: none) is readable, it is woken, the alarm goes off, or `timeout_ns` has passed. Returns
 * what poll says of `descriptor`. */
short cw_wake_wait(struct cw_wake *wake, int descriptor, const struct cw_port_alarm *alarm, uint64_t timeout_ns);
/* Whether a wait must be followed by another one: no wake-up came, no alarm has expired. */
bool cw_wake_continues(const struct cw_wake *wake, const struct cw_port_alarm *alarm);
void cw_wake_end(struct cw_wake *wake);

/* True once for one or several wake-ups since the last time. */
bool cw_wake_consume(struct cw_wake *wake);
/* Ends the sleep in progress, or the next one. */
void cw_wake_up(struct cw_wake *wake);
