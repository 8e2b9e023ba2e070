/* Which messages to other hosts a process compresses. */
#include <stdlib.h>

#include "control/job/wire.h"
#include "control/settings/compression.h"
#include "control/settings/setting.h"
#include "dataplane/base/virtual.h"
#include "dataplane/port/error_text.h"

static int endpoint_compress(struct cw_endpoint *endpoint, void *context)
{
    return cw_endpoint_compress(endpoint, context);
}

int cw_wire_compress(struct cw_wire *wire, uint32_t crowding, char *error, size_t error_bytes)
{
    const char *text = cw_setting(CW_SETTING_COMPRESSION);
    struct cw_compression compression;
    /* auto compares measured times of codecs. They would differ from run to run where computation takes no time. */
    const char *otherwise = cw_virtual_is_on() && cw_virtual_page->cpu_scale == 0 ? "off" : "auto";
    int status = cw_compression_read(cw_setting_name(CW_SETTING_COMPRESSION), text == NULL ? otherwise : text, crowding,
                                     &compression, error, error_bytes);
    if (status != CW_OK || compression.mode == CW_COMPRESSION_OFF) {
        return status;
    }
    struct cw_loop_set set = cw_wire_set(wire);
    for (uint32_t i = 0; i < set.count && status == CW_OK; i++) {
        status = cw_loop_call(set.loops[i], endpoint_compress, &compression);
    }
    return status == CW_OK ? CW_OK : cw_error_text(error, error_bytes, status, "no memory for compression");
}
