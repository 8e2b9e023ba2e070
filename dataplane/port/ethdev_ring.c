/* The transmit ring of af_packet, where the own device refuses a frame.
 *
 * The driver (22.11) writes frames into slots that it shares with the kernel, and has the kernel send them in order. If
 * the device or its queueing discipline refuses a frame (ENOBUFS), the kernel leaves it in its slot and begins with it
 * the next time: a frame that is refused each time blocks all that follow. So a frame that has waited for REFUSED_NS
 * is dropped, as by any queue that is full: its length is made wrong, and the kernel passes over it, since the driver
 * has set PACKET_LOSS. A socket without room for more (EAGAIN) is something else; its frames wait. */
#include "dataplane/port/ethdev_private.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "dataplane/base/clock.h"

#define REFUSED_NS  2000000ull
#define LENGTH_NONE UINT32_MAX

/* Where the memory that the socket shares with the kernel lies: the driver does not say. NULL: not found. */
static uint8_t *shared_find(int descriptor, size_t *bytes)
{
    struct stat socket;
    FILE *maps = fstat(descriptor, &socket) == 0 ? fopen("/proc/self/maps", "re") : NULL;
    char line[512];
    uint8_t *found = NULL;
    while (maps != NULL && found == NULL && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long first, end, node;
        if (strstr(line, "socket:[") != NULL && sscanf(line, "%lx-%lx %*s %*s %*s %lu", &first, &end, &node) == 3 &&
            node == socket.st_ino) {
            found = (uint8_t *)first; /* NOLINT(performance-no-int-to-ptr): as the kernel writes it */
            *bytes = end - first;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

void ethdev_ring_open(struct ethdev_port *port)
{
    struct ethdev_ring *ring = &port->ring;
    size_t bytes = 0;
    bool is_known = port->packet_descriptor >= 0 && ring->slot_bytes > 0;
    uint8_t *shared = is_known ? shared_find(port->packet_descriptor, &bytes) : NULL;
    if (shared != NULL) { /* the ring of receive comes first; both are alike */
        ring->slots = shared + bytes / 2;
        ring->slot_count = (uint32_t)(bytes / 2 / ring->slot_bytes);
    }
}

static struct tpacket2_hdr *slot_at(const struct ethdev_ring *ring, uint32_t index)
{
    return (struct tpacket2_hdr *)(void *)(ring->slots + (size_t)(index % ring->slot_count) * ring->slot_bytes);
}

static bool slot_waits(const struct ethdev_ring *ring, uint32_t index)
{
    return (__atomic_load_n(&slot_at(ring, index)->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_SEND_REQUEST) != 0;
}

/* The first frame that waits has waited too long: drops it if the kernel says again that the device refuses it. */
static void slot_check(struct ethdev_port *port, uint32_t head)
{
    bool is_refused = send(port->packet_descriptor, NULL, 0, MSG_DONTWAIT) < 0 && errno == ENOBUFS;
    if (is_refused && slot_waits(&port->ring, head)) {
        slot_at(&port->ring, head)->tp_len = LENGTH_NONE;
        port->port.info.refused++;
        (void)!send(port->packet_descriptor, NULL, 0, MSG_DONTWAIT); /* those behind it */
    }
}

void ethdev_ring_turn(struct ethdev_port *port, uint32_t sent)
{
    struct ethdev_ring *ring = &port->ring;
    ring->next = (ring->next + sent) % ring->slot_count;
    uint32_t head = ring->next, scanned = 0;
    if (!slot_waits(ring, ring->next + ring->slot_count - 1)) { /* the kernel has taken all */
        ring->waits_since_ns = 0;
        return;
    }
    for (; scanned < ring->slot_count && !slot_waits(ring, head); scanned++) {
        head = (head + 1) % ring->slot_count;
    }
    uint64_t now_ns = cw_clock_ns();
    if (ring->waits_since_ns == 0 || ring->head != head) {
        ring->head = head;
        ring->waits_since_ns = now_ns;
    } else if (now_ns - ring->waits_since_ns > REFUSED_NS) {
        slot_check(port, head);
        ring->waits_since_ns = now_ns;
    }
}
