/* A port of a switch, as those of processes that are no ranks open it. */
#pragma once

#include <stdint.h>

#include "dataplane/port/port.h"

/* Opens port `index` of the switch at `path`. NULL: a line of `name` says why. */
struct cw_port *lab_port_open(const char *path, uint32_t index, const char *name);
