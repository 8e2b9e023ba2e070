/* Run binding: which processors each rank may run on, `causeway run --bind-to`. */
#pragma once

#include <sched.h>
#include <stdint.h>

/* `word`: "core", "hwthread" or "none". Of the processors of this process, each rank gets a core, or a hardware thread,
 * of its own; *cores is to be freed, NULL with "none". 0, or an exit code after a line on stderr: another word, or
 * more ranks than there are. */
int run_binding_make(const char *word, uint32_t ranks, cpu_set_t **cores);
