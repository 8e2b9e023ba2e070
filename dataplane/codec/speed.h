/* Speed: the costs of codecs on this processor, measured once a process. */
#pragma once

#include "dataplane/codec/codec.h"

/* Fills speeds[CW_CODECS] with the CPU times of this thread for a field of doubles (LZ4, zstd: of text), in chunks of a
 * packet each. Takes some 2 ms. The best of several rounds counts, since other processes make caches cold. CW_OK,
 * CW_ERROR_MEMORY. Any thread. */
int cw_codec_measure(struct cw_codec_speed *speeds);
