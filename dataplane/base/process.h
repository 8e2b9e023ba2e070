/* process: what the kernel says of another process of this machine, and is told of this one.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The number by which this process is found in /proc; 0: there is no /proc. It is another than getpid() where /proc was
 * mounted for another namespace, as after `unshare -pf` without --mount-proc. */
int32_t cw_process_number(void);

/* The state letter of /proc: 'R', 'S', 'D', 'T' stopped by a signal, 't' by a debugger, 'Z' ended; 0: there is none, or
 * no way to know, since numbers in /proc are others'. */
char cw_process_state(int process);

/* Whether it has been stopped by a signal, and takes no part in anything until somebody continues it. One that a
 * debugger holds has not. */
bool cw_process_is_stopped(int process);

/* What a process's first thread has had of the cores since its start (/proc/PROCESS/schedstat). Zeros: not known. */
struct cw_process_turns {
    uint64_t ran_ns;
    uint64_t waited_ns; /* for a core, ready to run */
};
struct cw_process_turns cw_process_turns(int process);

/* The number behind `name` at the beginning of a line of a file of /proc; `otherwise`, if there is none. */
int cw_process_file_number(const char *path, const char *name, int otherwise);
/* Whether a debugger or another tracer has it (TracerPid in /proc/PROCESS/status). */
bool cw_process_is_traced(int process);

/* Cores that this process may run on, and those that its machine has. */
struct cw_process_cores {
    uint16_t own;
    uint16_t all;
};
struct cw_process_cores cw_process_cores(void);

/* How many of `processes` of a machine, with cores like these, share one. Those that are bound to a few of its cores
 * are taken to be bound to different ones, if there are so many. */
static inline uint32_t cw_process_crowding(uint32_t processes, struct cw_process_cores cores)
{
    uint32_t own = cores.own == 0 ? 1 : cores.own, all = cores.all == 0 ? 1 : cores.all;
    uint32_t at_hand = own == 1 ? all : own;
    return (uint64_t)processes * own <= all ? 1 : (processes + at_hand - 1) / at_hand;
}

enum { CW_PROCESS_SLICE_NS = 100000 /* the least that the kernel gives */ };

/* Asks for short turns on the core for the calling thread, and those that it starts from now on. The share of the core
 * stays the same; but who is woken runs before those with longer turns, instead of when their 3 ms are over, and who
 * yields gives up 0.1 ms and not 3. Ranks that wait for each other on cores that they share, with each other or with
 * somebody who computes, so get on 3 to 10 times as fast. Linux 6.12; on others, and under another policy than
 * SCHED_OTHER, nothing changes. */
void cw_process_slice_shorten(void);
/* The calling thread's; 0: not known. */
uint64_t cw_process_slice_ns(void);
