/* binding: which processors each rank of a host may run on.
 *
 * Thread: any. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the processors of this process, `count` ranks get, by `word`: "core", a core each; "hwthread", a hardware thread
 * each; "numa", all of a NUMA domain. `by_numa`: they go around the domains in turn instead of filling one after
 * another. *cores is to be freed, NULL with "none". False: a line in `error`: not one for each, no memory. */
bool launch_binding_make(const char *word, bool by_numa, uint32_t count, cpu_set_t **cores, char *error,
                         size_t error_bytes);

/* Whether --bind-to knows the word. */
bool launch_binding_knows(const char *word);
