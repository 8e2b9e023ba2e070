/* machine: the machine that this process runs on. Containers of one kernel are on the same machine, virtual machines are
 * not.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CW_MACHINE_BOOT_BYTES = 40 /* with its final 0 */ };

#define CW_MACHINE_BOOT_PATH "/proc/sys/kernel/random/boot_id"

/* What the kernel has drawn for itself when it started. False, with errno: it cannot be read. */
bool cw_machine_boot(char text[CW_MACHINE_BOOT_BYTES]);

/* A number of this machine's memory, which another machine has with a chance of 2^-32 (struct cw_port_info, medium).
 * 0: not known. */
uint32_t cw_machine_memory(void);
