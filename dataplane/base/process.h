/* process: queries about other processes of this machine, and scheduling of this one.
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

/* Whether it has been stopped by a signal, until SIGCONT. A process held by a debugger has not. */
bool cw_process_is_stopped(int process);

/* Run time of a process's first thread since its start (/proc/PROCESS/schedstat). Zeros: not known. */
struct cw_process_turns {
    uint64_t ran_ns;
    uint64_t waited_ns; /* ready to run, without a core; counted when the wait ends */
};
struct cw_process_turns cw_process_turns(int process);

/* The number behind `name` at the beginning of a line of a file of /proc; `otherwise`, if there is none. */
int cw_process_file_number(const char *path, const char *name, int otherwise);
/* Whether a debugger or another tracer has it (TracerPid in /proc/PROCESS/status). */
bool cw_process_is_traced(int process);

/* Numbers of cores: in this process's affinity, and of the machine. */
struct cw_process_cores {
    uint16_t own;
    uint16_t all;
};
struct cw_process_cores cw_process_cores(void);

/* Processes per core, for `processes` on a machine with such cores. Processes bound to a few cores are assumed to be
 * bound to different ones, if there are enough. */
static inline uint32_t cw_process_crowding(uint32_t processes, struct cw_process_cores cores)
{
    uint32_t own = cores.own == 0 ? 1 : cores.own, all = cores.all == 0 ? 1 : cores.all;
    uint32_t at_hand = own == 1 ? all : own;
    return (uint64_t)processes * own <= all ? 1 : (processes + at_hand - 1) / at_hand;
}

enum { CW_PROCESS_SLICE_NS = 100000 /* the least that the kernel gives */ };

/* Requests short time slices for the calling thread and the threads that it starts later. The share of the core stays
 * the same, but a woken thread preempts threads with longer slices instead of waiting up to 3 ms. A yield costs 0.1 ms
 * of the slice instead of 3. If ranks that wait for each other share cores, with each other or with computing threads,
 * they run 3 to 10 times as fast. Needs Linux 6.12 and SCHED_OTHER; otherwise nothing changes. */
void cw_process_slice_shorten(void);
/* The calling thread's; 0: not known. */
uint64_t cw_process_slice_ns(void);

struct stat;
/* True if a process listens on the socket `path`, whose file is `file`, or if the kernel's list of sockets cannot be
 * read. A connection would tell the same, but ends a memif server. Thread: any. */
bool cw_process_socket_lives(const char *path, const struct stat *file);
