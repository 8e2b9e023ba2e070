/* What a process compresses of what it sends to other hosts. */
#include <stdlib.h>
#include <string.h>

#include "control/job/wire.h"
#include "dataplane/codec/codec.h"
#include "dataplane/codec/speed.h"
#include "dataplane/port/error_text.h"

static int compression_read(struct cw_compression *compression, char *error, size_t error_bytes)
{
    const char *text = getenv("CAUSEWAY_COMPRESSION");
    *compression = (struct cw_compression){.mode = CW_COMPRESSION_AUTO};
    if (text == NULL || text[0] == 0 || strcmp(text, "auto") == 0) {
        return CW_OK;
    }
    if (strcmp(text, "off") == 0 || strcmp(text, "on") == 0) {
        compression->mode = text[1] == 'n' ? CW_COMPRESSION_ON : CW_COMPRESSION_OFF;
        return CW_OK;
    }
    compression->mode = CW_COMPRESSION_ON;
    compression->codec = cw_codec_named(text);
    if (compression->codec == CW_CODECS || compression->codec == CW_CODEC_NONE) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "CAUSEWAY_COMPRESSION=%s: wanted is auto, off, on, or a codec: lorenzo, dfcm, lz4, shuffle, "
            "zstd, run",
            text);
    }
    return CW_OK;
}

static int endpoint_compress(struct cw_endpoint *endpoint, void *context)
{
    return cw_endpoint_compress(endpoint, context);
}

int cw_wire_compress(struct cw_wire *wire, uint32_t crowding, char *error, size_t error_bytes)
{
    struct cw_compression compression;
    int status = compression_read(&compression, error, error_bytes);
    if (status != CW_OK || compression.mode == CW_COMPRESSION_OFF) {
        return status;
    }
    status = cw_codec_measure(compression.speeds);
    for (enum cw_codec codec = CW_CODEC_NONE; codec < CW_CODECS; codec++) {
        struct cw_codec_speed *speed = &compression.speeds[codec];
        speed->fill_ns *= (float)crowding; /* another rank waits for the core meanwhile */
        speed->expand_ns *= (float)crowding;
        speed->fixed_ns *= (float)crowding;
    }
    struct cw_set set = cw_wire_set(wire);
    for (uint32_t i = 0; i < set.count && status == CW_OK; i++) {
        status = cw_loop_call(set.loops[i], endpoint_compress, &compression);
    }
    return status == CW_OK ? CW_OK : cw_error_text(error, error_bytes, status, "no memory for compression");
}
