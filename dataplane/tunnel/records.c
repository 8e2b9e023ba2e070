#include "dataplane/tunnel/records.h"

uint32_t cw_tunnel_records_check(const uint8_t *batch, uint64_t bytes, uint32_t frame_bytes_max)
{
    uint32_t frames = 0;
    uint64_t at = 0;
    while (at < bytes) {
        if (bytes - at < CW_TUNNEL_RECORD_BYTES) {
            return 0;
        }
        uint32_t length = cw_tunnel_record_length(batch + at);
        at += CW_TUNNEL_RECORD_BYTES;
        if (length < CW_TUNNEL_FRAME_MIN_BYTES || length > frame_bytes_max || length > bytes - at) {
            return 0;
        }
        at += length;
        frames++;
    }
    return frames;
}
