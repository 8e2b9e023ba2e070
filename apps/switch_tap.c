#include "apps/switch_tap.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/apps.h"
#include "dataplane/core/clock.h"

enum { BUFFER_BYTES = 1 << 20 };

struct switch_tap {
    const char *path;
    uint32_t snap_bytes;
    uint64_t epoch_ns; /* what is to be added to cw_clock_ns */
    pcap_t *pcap;
    pcap_dumper_t *dumper;
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
    *tap_out = tap;
    tap->path = path;
    tap->snap_bytes = snap_bytes;
    tap->epoch_ns = epoch_find();
    tap->dumper = NULL;
    tap->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, (int)snap_bytes, PCAP_TSTAMP_PRECISION_NANO);
    FILE *file = fopen(path, "wbe");
    if (file == NULL) {
        app_error("the packets cannot be written there", path, strerror(errno));
    } else {
        setvbuf(file, tap->buffer, _IOFBF, sizeof(tap->buffer));
        tap->dumper = tap->pcap == NULL ? NULL : pcap_dump_fopen(tap->pcap, file);
        if (tap->dumper == NULL) {
            app_error("the packets cannot be written there", path, "out of memory");
            fclose(file);
        }
    }
    if (tap->dumper == NULL) {
        *tap_out = NULL;
        (void)switch_tap_close(tap);
        return APP_EXIT_USAGE;
    }
    return APP_EXIT_SUCCESS;
}

void switch_tap_frame(struct switch_tap *tap, uint64_t time_ns, const uint8_t *data, uint32_t length)
{
    uint64_t epoch_ns = tap->epoch_ns + time_ns;
    struct pcap_pkthdr header = {
        /* of this precision the second part is nanoseconds */
        .ts = {.tv_sec = (time_t)(epoch_ns / 1000000000u), .tv_usec = (suseconds_t)(epoch_ns % 1000000000u)},
        .caplen = length < tap->snap_bytes ? length : tap->snap_bytes,
        .len = length,
    };
    pcap_dump((uint8_t *)tap->dumper, &header, data);
}

int switch_tap_close(struct switch_tap *tap)
{
    int code = APP_EXIT_SUCCESS;
    if (tap == NULL) {
        return code;
    }
    if (tap->dumper != NULL) {
        bool whole = pcap_dump_flush(tap->dumper) == 0 && ferror(pcap_dump_file(tap->dumper)) == 0;
        pcap_dump_close(tap->dumper);
        if (!whole) {
            app_error("not all packets could be written", tap->path, "is the disk full?");
            code = APP_EXIT_MACHINE;
        }
    }
    if (tap->pcap != NULL) {
        pcap_close(tap->pcap);
    }
    free(tap);
    return code;
}
