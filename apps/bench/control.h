/* Bench control: the channel beside the network over which the two processes of a benchmark start, stop and exchange
 * results.
 *
 * Both ends are a connected stream (socketpair, Unix or TCP socket), used by one thread each. Messages are structures
 * of a size that both sides know; nothing waits longer than it is told to.
 */
#ifndef BENCH_CONTROL_H
#define BENCH_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sends `bytes` bytes. CW_OK, CW_ERROR_TIMEOUT, CW_ERROR_CLOSED (the other side is gone), CW_ERROR_SYSTEM. */
int bench_control_send(int descriptor, const void *message, size_t bytes, uint64_t timeout_ns);

/* Receives exactly `bytes` bytes; the codes of bench_control_send. */
int bench_control_receive(int descriptor, void *message, size_t bytes, uint64_t timeout_ns);

/* Returns once both sides have called it with the same `phase`; CW_ERROR_ARGUMENT if the other is in another phase,
 * else the codes of bench_control_send. */
int bench_control_barrier(int descriptor, uint32_t phase, uint64_t timeout_ns);

/* Runs both sides of a benchmark, the other one in a process of its own, each with one end of a control channel. One of
 * enum app_exit; an error has been reported. */
int bench_control_sides(int (*side)(void *context, bool initiator, int control), void *context);

#endif
