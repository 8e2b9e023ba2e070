/* compression: when a process compresses, in the form users write it.
 *
 *   "auto"   if that shortens delivery
 *   "off"    nothing
 *   "on"     data that becomes shorter
 *   a codec  data that becomes shorter by it (dataplane/codec/codec.h)
 *
 * Thread: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dataplane/dataplane.h"

/* Parses such a value, which `origin` names in an error, and measures codecs unless it is "off" (some 2 ms).
 * `crowding`: the number of processes that share a core, by which measured times are multiplied. CW_OK;
 * CW_ERROR_ARGUMENT, CW_ERROR_MEMORY with a line in `error`. */
int cw_compression_read(const char *origin, const char *text, uint32_t crowding, struct cw_compression *compression,
                        char *error, size_t error_bytes);
