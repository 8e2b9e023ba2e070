/* injector SOCKET ID RATE KIND PCAP...: a port of the switch at SOCKET, where an attacker without the job's key sends
 * the set-up packets of the captures, RATE a second, until its input ends. KIND: replayed; altered: some bits, or a
 * field under its checksum; forged: a tag or MAC of its own. */
#include <pcap/pcap.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/base/clock.h"
#include "dataplane/base/random.h"
#include "dataplane/wire/sealed.h"
#include "tests/lab/lab_port.h"

enum { FRAMES_MAX = 4096, FRAME_BYTES = 256 };

struct frame {
    uint32_t length;
    uint8_t bytes[FRAME_BYTES];
};

static struct frame frames[FRAMES_MAX];
static uint32_t frame_count;

static bool is_set_up(const uint8_t *frame, uint32_t length)
{
    const struct cw_wire_header *header = (const struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
    return length >= CW_WIRE_OVERHEAD_BYTES + sizeof(struct cw_wire_hello) && length <= FRAME_BYTES && frame[12] == 8 &&
           frame[13] == 0 && frame[23] == 17 && header->version == CW_WIRE_VERSION && header->type >= CW_WIRE_HELLO &&
           header->type <= CW_WIRE_HELLO_REPLY;
}

static void capture_read(const char *path)
{
    char error[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *record;
    const uint8_t *bytes;
    pcap_t *pcap = pcap_open_offline(path, error);
    if (pcap == NULL) {
        fprintf(stderr, "injector: %s\n", error);
        exit(1);
    }
    while (pcap_next_ex(pcap, &record, &bytes) == 1) {
        if (record->caplen == record->len && is_set_up(bytes, record->len) && frame_count < FRAMES_MAX) {
            frames[frame_count].length = record->len;
            memcpy(frames[frame_count].bytes, bytes, record->len);
            frames[frame_count++].bytes[6] ^= 0x40; /* the switch keeps the former sender's port */
        }
    }
    pcap_close(pcap);
}

static void alter(struct cw_random *random, struct frame *frame)
{
    struct cw_wire_header *header = (struct cw_wire_header *)(frame->bytes + CW_WIRE_NETWORK_BYTES);
    uint8_t *hello = frame->bytes + CW_WIRE_OVERHEAD_BYTES;
    if (cw_random_chance(random, 0.5)) {
        uint64_t bit = cw_random_below(random, 8 * (uint64_t)(frame->length - CW_WIRE_NETWORK_BYTES));
        frame->bytes[CW_WIRE_NETWORK_BYTES + bit / 8] ^= (uint8_t)(1u << bit % 8);
        return;
    }
    uint64_t value = cw_random_next(random);
    memcpy(hello + 8 * cw_random_below(random, 4), &value, sizeof(value));
    if ((header->flags & CW_WIRE_ENCRYPTED) == 0) {
        header->checksum = cw_wire_checksum(0, hello, sizeof(struct cw_wire_hello));
    }
}

static void forge(struct cw_random *random, struct frame *frame)
{
    struct cw_wire_header *header = (struct cw_wire_header *)(frame->bytes + CW_WIRE_NETWORK_BYTES);
    if ((header->flags & CW_WIRE_ENCRYPTED) != 0) {
        cw_random_fill(random, frame->bytes + frame->length - CW_WIRE_MAC_BYTES, CW_WIRE_MAC_BYTES);
    } else {
        header->tag = cw_random_next(random);
    }
}

static bool input_ended(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

int main(int count, char **values)
{
    if (count < 6) {
        fprintf(stderr, "usage: injector SOCKET ID RATE KIND PCAP...\n");
        return 2;
    }
    struct cw_random random;
    struct cw_received received[CW_PORT_BURST_MAX];
    uint64_t rate = strtoull(values[3], NULL, 10), sent = 0, start_ns = cw_clock_ns();
    cw_random_seed(&random, start_ns);
    for (int i = 5; i < count; i++) {
        capture_read(values[i]);
    }
    struct cw_port *port = lab_port_open(values[1], (uint32_t)strtoul(values[2], NULL, 10), "injector");
    if (port == NULL) {
        return 1;
    }
    if (frame_count == 0) {
        fprintf(stderr, "injector: there is no set-up packet in the captures\n");
        return 1;
    }
    while (!input_ended()) {
        struct cw_transmit packet;
        if (sent == 0 && cw_port_link_up(port)) {
            start_ns = cw_clock_ns();
        }
        uint64_t due = cw_port_link_up(port) ? (cw_clock_ns() - start_ns) * rate / 1000000000 + 1 : 0;
        while (sent < due && cw_port_reserve(port, &packet, 1) == 1) {
            struct frame frame = frames[cw_random_below(&random, frame_count)];
            if (values[4][0] == 'a') {
                alter(&random, &frame);
            } else if (values[4][0] == 'f') {
                forge(&random, &frame);
            }
            memcpy(packet.data, frame.bytes, frame.length);
            packet.length = frame.length;
            while (cw_port_transmit(port, &packet, 1) == 0) {
                usleep(100);
            }
            if (++sent == 1) {
                printf("flooding with %u packets\n", frame_count);
                fflush(stdout);
            }
        }
        cw_port_release(port, received, cw_port_receive(port, received, CW_PORT_BURST_MAX));
        usleep(500);
    }
    printf("%llu sent in %.1f s\n", (unsigned long long)sent, (double)(cw_clock_ns() - start_ns) / 1e9);
    cw_port_close(port);
    return 0;
}
