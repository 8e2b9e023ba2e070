#include "apps/cli/pcap.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUFFER_BYTES = 1 << 20, FRAME_BYTES_MAX = 1 << 16, LINK_ETHERNET = 1 };
#define MAGIC_NS      0xa1b23c4du
#define NS_PER_SECOND 1000000000u

struct app_pcap {
    FILE *file;
    char buffer[BUFFER_BYTES];
};

struct app_pcap *app_pcap_open(const char *path)
{
    const struct {
        uint32_t magic;
        uint16_t version[2];
        uint32_t zone, accuracy, frame_bytes_max, link;
    } head = {.magic = MAGIC_NS, .version = {2, 4}, .frame_bytes_max = FRAME_BYTES_MAX, .link = LINK_ETHERNET};
    struct app_pcap *pcap = malloc(sizeof(*pcap));
    if (pcap == NULL || (pcap->file = fopen(path, "wbe")) == NULL) {
        free(pcap);
        return NULL;
    }
    setvbuf(pcap->file, pcap->buffer, _IOFBF, sizeof(pcap->buffer));
    (void)fwrite(&head, sizeof(head), 1, pcap->file);
    return pcap;
}

void app_pcap_write(struct app_pcap *pcap, uint64_t time_ns, const uint8_t *frame, uint32_t length)
{
    const uint32_t head[4] = {(uint32_t)(time_ns / NS_PER_SECOND), (uint32_t)(time_ns % NS_PER_SECOND), length, length};
    (void)fwrite(head, sizeof(head), 1, pcap->file);
    (void)fwrite(frame, length, 1, pcap->file);
}

bool app_pcap_close(struct app_pcap *pcap)
{
    if (pcap == NULL) {
        return true;
    }
    bool is_whole = fflush(pcap->file) == 0 && ferror(pcap->file) == 0;
    is_whole = fclose(pcap->file) == 0 && is_whole;
    free(pcap);
    return is_whole;
}
