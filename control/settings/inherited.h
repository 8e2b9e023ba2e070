/* inherited: memory that the launcher hands to ranks, as a memfd whose descriptor a variable names.
 *
 * Thread: any that may read the environment. */
#pragma once

#include <stddef.h>

#include "control/settings/setting.h"

/* The descriptor that the variable names; -1: it names none, or one that is no memfd of `bytes` and so belongs to other
 * code. Stays open. */
int cw_inherited_find(enum cw_setting variable, size_t bytes);
