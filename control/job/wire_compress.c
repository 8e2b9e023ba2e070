/* What a process compresses of what it sends to other hosts. */
#include <stdlib.h>
#include <string.h>

#include "control/job/wire_private.h"
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

int wire_compress(struct cw_wire *wire, char *error, size_t error_bytes)
{
    struct cw_compression compression;
    int status = compression_read(&compression, error, error_bytes);
    if (status != CW_OK || compression.mode == CW_COMPRESSION_OFF) {
        return status;
    }
    status = cw_codec_measure(compression.speeds);
    status = status == CW_OK ? cw_endpoint_compress(wire->endpoint, &compression) : status;
    for (uint32_t i = 0; i < wire->further_count && status == CW_OK; i++) {
        status = cw_endpoint_compress(wire->further[i].endpoint, &compression);
    }
    return status == CW_OK ? CW_OK : cw_error_text(error, error_bytes, status, "no memory for compression");
}
