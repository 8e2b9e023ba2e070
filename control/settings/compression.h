/* compression: what a process compresses, as people write it.
 *
 *   "auto"   what is sooner at its target for it
 *   "off"    nothing
 *   "on"     whatever becomes shorter
 *   a codec  whatever becomes shorter by it (dataplane/codec/codec.h)
 *
 * Thread: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dataplane/dataplane.h"

/* Reads such a word, which `origin` names in an error, and measures codecs unless it says off (some 2 ms): `crowding`
 * processes share a core, so that each takes so many times as long. CW_OK; CW_ERROR_ARGUMENT, CW_ERROR_MEMORY with a line
 * in `error`. */
int cw_compression_read(const char *origin, const char *text, uint32_t crowding, struct cw_compression *compression,
                        char *error, size_t error_bytes);
