#include "apps/switch/tap.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/cli/cli.h"
#include "dataplane/base/clock.h"

enum { BUFFER_BYTES = 1 << 20 };

/* The format of libpcap's files (draft-ietf-opsawg-pcap), with times of a nanosecond, in this machine's byte order. */
struct tap_file_header {
    uint32_t magic; /* 0xa1b23c4d */
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t reserved[2];
    uint32_t snap_bytes;
    uint32_t link_type; /* 1: Ethernet */
};

struct tap_packet_header {
    uint32_t seconds;
    uint32_t nanoseconds;
    uint32_t kept_bytes;
    uint32_t bytes;
};

static_assert(sizeof(struct tap_file_header) == 24 && sizeof(struct tap_packet_header) == 16, "as in the file");

struct switch_tap {
    const char *path;
    uint32_t snap_bytes;
    uint64_t epoch_ns; /* offset to cw_clock_ns */
    FILE *file;
    char buffer[BUFFER_BYTES];
};

static uint64_t epoch_find(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - cw_clock_ns();
}

int switch_tap_open(const char *path, uint32_t snap_bytes, struct switch_tap **tap_out)
{
    struct switch_tap *tap = malloc(sizeof(*tap));
    if (tap == NULL) {
        app_error("out of memory", path, NULL);
        return APP_EXIT_MACHINE;
    }
    tap->path = path;
    tap->snap_bytes = snap_bytes;
    tap->epoch_ns = epoch_find();
    tap->file = fopen(path, "wbe");
    if (tap->file == NULL) {
        app_error("the packets cannot be written there", path, strerror(errno));
        free(tap);
        *tap_out = NULL;
        return APP_EXIT_USAGE;
    }
    setvbuf(tap->file, tap->buffer, _IOFBF, sizeof(tap->buffer));
    struct tap_file_header header = {
        .magic = 0xa1b23c4d, .version_major = 2, .version_minor = 4, .snap_bytes = snap_bytes, .link_type = 1};
    (void)fwrite(&header, sizeof(header), 1, tap->file); /* switch_tap_close asks whether all was written */
    *tap_out = tap;
    return APP_EXIT_SUCCESS;
}

void switch_tap_frame(struct switch_tap *tap, uint64_t time_ns, const uint8_t *data, uint32_t length)
{
    uint64_t epoch_ns = tap->epoch_ns + time_ns;
    struct tap_packet_header header = {
        .seconds = (uint32_t)(epoch_ns / 1000000000u),
        .nanoseconds = (uint32_t)(epoch_ns % 1000000000u),
        .kept_bytes = length < tap->snap_bytes ? length : tap->snap_bytes,
        .bytes = length,
    };
    (void)fwrite(&header, sizeof(header), 1, tap->file);
    (void)fwrite(data, header.kept_bytes, 1, tap->file);
}

int switch_tap_close(struct switch_tap *tap)
{
    int code = APP_EXIT_SUCCESS;
    if (tap == NULL) {
        return code;
    }
    bool whole = fflush(tap->file) == 0 && ferror(tap->file) == 0;
    whole = fclose(tap->file) == 0 && whole;
    if (!whole) {
        app_error("not all packets could be written", tap->path, "is the disk full?");
        code = APP_EXIT_MACHINE;
    }
    free(tap);
    return code;
}
