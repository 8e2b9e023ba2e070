#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/simulate/simulate.h"
#include "dataplane/port/error_text.h"

/* The format of libpcap, "pcap-savefile(5)", of the machine's byte order. */
#define MAGIC_NS 0xa1b23c4du
enum { LINK_ETHERNET = 1, SNAP_BYTES = 1 << 16 };

struct simulate_capture {
    FILE *file;
};

static void packet_write(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                         const uint8_t *frame, uint32_t length)
{
    struct simulate_capture *capture = context;
    const uint32_t head[4] = {(uint32_t)(time_ns / 1000000000), (uint32_t)(time_ns % 1000000000), length, length};
    (void)node;
    if (kind == CW_SIMULATOR_ARRIVAL) {
        (void)fwrite(head, sizeof(head), 1, capture->file); /* errors are found at the end */
        (void)fwrite(frame, length, 1, capture->file);
    }
}

int simulate_capture_open(const char *path, struct cw_simulator *simulator, struct simulate_capture **capture,
                          char *error, size_t error_bytes)
{
    const struct {
        uint32_t magic;
        uint16_t version[2];
        uint32_t zone, accuracy, snap_bytes, link;
    } head = {.magic = MAGIC_NS, .version = {2, 4}, .snap_bytes = SNAP_BYTES, .link = LINK_ETHERNET};
    struct simulate_capture *made = malloc(sizeof(*made));
    if (made == NULL || (made->file = fopen(path, "we")) == NULL) {
        free(made);
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "pcap=%s: %s", path, strerror(errno));
    }
    (void)fwrite(&head, sizeof(head), 1, made->file);
    cw_simulator_tap_set(simulator, packet_write, made);
    *capture = made;
    return CW_OK;
}

bool simulate_capture_close(struct simulate_capture *capture)
{
    if (capture == NULL) {
        return true;
    }
    bool has_failed = ferror(capture->file) != 0;
    has_failed = fclose(capture->file) != 0 || has_failed;
    free(capture);
    return !has_failed;
}
