#include "control/settings/compression.h"

#include <string.h>

#include "dataplane/codec/codec.h"
#include "dataplane/codec/speed.h"
#include "dataplane/port/error_text.h"

static int word_read(const char *origin, const char *text, struct cw_compression *compression, char *error,
                     size_t error_bytes)
{
    static const char *const modes[] = {
        [CW_COMPRESSION_OFF] = "off", [CW_COMPRESSION_AUTO] = "auto", [CW_COMPRESSION_ON] = "on"};
    for (enum cw_compression_mode mode = CW_COMPRESSION_OFF; mode <= CW_COMPRESSION_ON; mode++) {
        if (strcmp(text, modes[mode]) == 0) {
            *compression = (struct cw_compression){.mode = mode};
            return CW_OK;
        }
    }
    enum cw_codec codec = cw_codec_named(text);
    if (codec == CW_CODECS || codec == CW_CODEC_NONE) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "%s=%s: wanted is auto, off, on, or a codec: lorenzo, dfcm, lz4, shuffle, zstd, run",
                             origin, text);
    }
    *compression = (struct cw_compression){.mode = CW_COMPRESSION_ON, .codec = codec};
    return CW_OK;
}

int cw_compression_read(const char *origin, const char *text, uint32_t crowding, struct cw_compression *compression,
                        char *error, size_t error_bytes)
{
    int status = word_read(origin, text, compression, error, error_bytes);
    if (status != CW_OK || compression->mode == CW_COMPRESSION_OFF) {
        return status;
    }
    status = cw_codec_measure(compression->speeds);
    if (status != CW_OK) {
        return cw_error_text(error, error_bytes, status, "no memory to measure codecs");
    }
    for (enum cw_codec codec = CW_CODEC_NONE; codec < CW_CODECS; codec++) {
        struct cw_codec_speed *speed = &compression->speeds[codec];
        speed->fill_ns *= (float)crowding; /* another process waits for the core meanwhile */
        speed->expand_ns *= (float)crowding;
        speed->fixed_ns *= (float)crowding;
    }
    return CW_OK;
}
