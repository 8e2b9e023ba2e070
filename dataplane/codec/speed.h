/* Speed: what codecs cost this processor, measured once a process. */
#pragma once

#include "dataplane/codec/codec.h"

/* Fills speeds[CW_CODECS] from a field of doubles (LZ4, zstd: of text), in chunks of a packet each: some 2 ms. What
 * else runs makes codecs look slow, and never fast: the best of several rounds counts. CW_OK, CW_ERROR_MEMORY. Any
 * thread. */
int cw_codec_measure(struct cw_codec_speed *speeds);
