/* copy: bytes from or to another process's memory in a single copy, where the kernel lets us (process_vm_readv(2)).
 *
 * It takes the same user and a kernel that does not forbid it: Yama (ptrace_scope), a container's system call filter,
 * or another process number space may. So it is tried before it is used (cw_copy_probe). Without it, bytes move through
 * rings.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where Yama lets only its ancestors copy from and to this process, lets the other ranks: descendants of the process
 * whose number is `told`, or of the parent if that is NULL. Ranks that have no such ancestor in common move bytes
 * through rings. Once, at start-up. */
void cw_copy_allow(const char *told);

/* The process whose descendants get access; 0: none. `scope` is Yama's (ptrace_scope; below 0: there is no Yama),
 * `told` as above, `parent` the process's. */
pid_t cw_copy_tracer(int scope, const char *told, pid_t parent);

/* Whether `value` can be read at `address` of process `pid`. */
bool cw_copy_probe(pid_t pid, uint64_t address, uint64_t value);
/* Whether it can be written there, where it is already. */
bool cw_copy_probe_write(pid_t pid, uint64_t address, uint64_t value);

/* Moves `bytes`. CW_OK; CW_ERROR_NOT_FOUND: the process is gone; CW_ERROR_REMOTE_ACCESS: there is no such memory at the
 * other side; CW_ERROR_PERMISSION; CW_ERROR_SYSTEM. */
int cw_copy_from(pid_t pid, void *to, uint64_t address, uint64_t bytes);
int cw_copy_to(pid_t pid, uint64_t address, const void *from, uint64_t bytes);
