/* solicit: a raw socket of the kernel's that gets the answers to questions who on a link has an address
 * (dataplane/neighbour/request.h). Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/neighbour/request.h"

/* A raw socket, which does not block, for the answers of one kind on that interface; or -errno. */
int cw_solicit_open(uint32_t interface, bool is_v6);
