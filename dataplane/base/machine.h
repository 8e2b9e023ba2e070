/* machine: the machine that this process runs on. Containers of one kernel are on the same machine, virtual machines
 * are not.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CW_MACHINE_BOOT_BYTES = 40 /* with its final 0 */ };

#define CW_MACHINE_BOOT_PATH "/proc/sys/kernel/random/boot_id"

/* The identifier that the kernel drew when it started. False, with errno: it cannot be read. */
bool cw_machine_boot(char text[CW_MACHINE_BOOT_BYTES]);

/* A number of this machine's memory (struct cw_port_info, medium). Another machine has it with a chance of 2^-32,
 * except a virtual machine that was made from a snapshot of this one while it ran. 0: not known. */
uint32_t cw_machine_memory(void);
