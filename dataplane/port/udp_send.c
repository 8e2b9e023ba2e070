/* Outgoing packets by the sockets: packets to the same peer in one piece, and many pieces in one call. */
#include "dataplane/port/udp_private.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

enum {
    BATCHED_MANY = 64, /* packets, after which it is judged whether batches arrive */
    SINGLES = 4096,    /* packets, after which batches are tried again */
};

struct outgoing {
    uint32_t count; /* packets */
    uint32_t bytes;
    uint32_t segment; /* bytes of each, the last one apart */
    bool alone;
    union udp_name to;
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))];
};

struct burst {
    uint32_t count; /* messages */
    uint32_t stream;
    uint32_t part_count;
    struct mmsghdr headers[UDP_MESSAGES];
    struct outgoing messages[UDP_MESSAGES];
    struct iovec parts[CW_PORT_BURST_MAX * UDP_PARTS];
};

uint32_t udp_reserve(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct udp_port *port = udp_of(base);
    count = count < port->free_count ? count : port->free_count;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *frame = udp_frame_acquire(port);
        packets[i].data = packets[i].handle = frame;
        packets[i].length = 0;
        packets[i].piece_count = 0;
        packets[i].departure_ns = 0;
        packets[i].alone = false;
        packets[i].checksum = false;
    }
    return count;
}

void udp_cancel(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct udp_port *port = udp_of(base);
    for (uint32_t i = 0; i < count; i++) {
        udp_frame_release(port, packets[i].handle);
    }
}

/* Whether the kernel is to send it: not what it says itself, such as reports of memberships. */
static bool is_datagram(const struct udp_port *port, const struct cw_transmit *packet)
{
    uint8_t protocol = packet->data[port->ip_bytes == 4 ? 23 : 20];
    return packet->length > port->network_bytes && protocol == IPPROTO_UDP;
}

static uint32_t stream_of(const struct udp_port *port, const struct cw_transmit *packet)
{
    const uint8_t *udp = udp_in(port, packet->data);
    uint32_t source = (uint32_t)udp[0] << 8 | udp[1];
    uint32_t stream = source - ntohs(port->own.v4.sin_port);
    return stream < port->stream_count ? stream : 0;
}

static uint32_t datagram_bytes(const struct udp_port *port, const struct cw_transmit *packet)
{
    uint32_t bytes = packet->length - port->network_bytes;
    for (uint32_t i = 0; i < packet->piece_count; i++) {
        bytes += packet->pieces[i].length;
    }
    return bytes;
}

static void parts_add(const struct udp_port *port, struct burst *burst, const struct cw_transmit *packet)
{
    burst->parts[burst->part_count++] =
        (struct iovec){.iov_base = packet->data + port->network_bytes, .iov_len = packet->length - port->network_bytes};
    for (uint32_t i = 0; i < packet->piece_count; i++) {
        burst->parts[burst->part_count++] =
            (struct iovec){.iov_base = (void *)(uintptr_t)packet->pieces[i].data, .iov_len = packet->pieces[i].length};
    }
}

/* Adds a packet to the message that was begun last. False: it does not fit there. */
static bool message_extend(const struct udp_port *port, struct burst *burst, const struct cw_transmit *packet)
{
    struct outgoing *last = burst->count > 0 ? &burst->messages[burst->count - 1] : NULL;
    uint32_t bytes = datagram_bytes(port, packet);
    const uint8_t *udp = udp_in(port, packet->data);
    if (last == NULL || !port->cuts || port->singles > 0 || packet->alone || last->alone ||
        last->count == UDP_SEGMENTS_MAX || bytes > last->segment || last->bytes + bytes > UDP_DATAGRAM_MAX ||
        last->bytes % last->segment != 0 || memcmp(udp_ip_of(&last->to), udp - port->ip_bytes, port->ip_bytes) != 0 ||
        (memcmp(&last->to.v4.sin_port, udp + 2, 2) != 0 && !udp_is_group(&last->to))) {
        return false;
    }
    last->count++;
    last->bytes += bytes;
    burst->headers[burst->count - 1].msg_hdr.msg_iovlen += 1 + packet->piece_count;
    parts_add(port, burst, packet);
    return true;
}

static void message_begin(const struct udp_port *port, struct burst *burst, const struct cw_transmit *packet)
{
    struct outgoing *begun = &burst->messages[burst->count];
    uint32_t bytes = datagram_bytes(port, packet);
    begun->count = 1;
    begun->alone = packet->alone;
    begun->bytes = begun->segment = bytes;
    const uint8_t *udp = udp_in(port, packet->data);
    begun->to = (union udp_name){.any = {.sa_family = port->own.any.sa_family}};
    memcpy(udp_ip_of(&begun->to), udp - port->ip_bytes, port->ip_bytes);
    memcpy(&begun->to.v4.sin_port, udp + 2, 2);
    begun->to.v4.sin_port = udp_is_group(&begun->to) ? port->group_port : begun->to.v4.sin_port;
    burst->headers[burst->count++].msg_hdr = (struct msghdr){
        .msg_name = &begun->to,
        .msg_namelen = port->name_bytes,
        .msg_iov = &burst->parts[burst->part_count],
        .msg_iovlen = 1 + packet->piece_count,
    };
    parts_add(port, burst, packet);
}

/* Where the kernel is to cut what has become of a message. */
static void message_finish(struct outgoing *message, struct msghdr *header)
{
    if (message->count == 1) {
        return;
    }
    uint16_t segment = (uint16_t)message->segment;
    header->msg_control = message->control;
    header->msg_controllen = sizeof(message->control);
    struct cmsghdr *control = CMSG_FIRSTHDR(header);
    *control = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(segment)), .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT};
    memcpy(CMSG_DATA(control), &segment, sizeof(segment));
}

/* Makes messages of the first packets, all for the same socket; returns of how many. */
static uint32_t burst_make(const struct udp_port *port, struct burst *burst, const struct cw_transmit *packets,
                           uint32_t count)
{
    uint32_t taken = 0;
    burst->count = burst->part_count = 0;
    burst->stream = stream_of(port, &packets[0]);
    for (; taken < count && is_datagram(port, &packets[taken]) && stream_of(port, &packets[taken]) == burst->stream;
         taken++) {
        if (!message_extend(port, burst, &packets[taken])) {
            if (burst->count == UDP_MESSAGES) {
                break;
            }
            message_begin(port, burst, &packets[taken]);
        }
    }
    for (uint32_t i = 0; i < burst->count; i++) {
        message_finish(&burst->messages[i], &burst->headers[i].msg_hdr);
    }
    return taken;
}

/* A virtual switch may compare the length of a whole batch with its MTU and drop the batch. So packets are sent one by
 * one for a while after more than half of the packets of batches had to be sent again. */
static void batches_evaluate(struct udp_port *port, const struct outgoing *gone)
{
    port->singles -= port->singles > 0 ? 1 : 0;
    port->batched += gone->count > 1 ? gone->count : 0;
    port->lost += gone->alone;
    if (port->batched < BATCHED_MANY) {
        return;
    }
    port->singles = port->lost > port->batched / 2 ? SINGLES : 0;
    port->batched = port->lost = 0;
}

/* Sends a burst; returns how many of its packets are gone, on their way or lost. 0: the kernel has no room now. */
static uint32_t burst_send(struct udp_port *port, struct burst *burst)
{
    int socket = port->sockets[burst->stream], flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    int sent = burst->count > 1 ? sendmmsg(socket, burst->headers, burst->count, flags)
                                : (sendmsg(socket, &burst->headers[0].msg_hdr, flags) >= 0 ? 1 : -1);
    uint32_t gone = 0;
    for (int i = 0; i < sent; i++) {
        gone += burst->messages[i].count;
        batches_evaluate(port, &burst->messages[i]);
    }
    if (sent > 0 || errno == EAGAIN || errno == ENOBUFS || errno == EINTR) {
        return gone;
    }
    if (burst->messages[0].count > 1 && (errno == EIO || errno == EINVAL)) {
        port->cuts = false; /* the interface cannot */
        return 0;
    }
    port->port.info.refused += burst->messages[0].count;
    return burst->messages[0].count; /* no way to this peer: as lost as on any network */
}

uint32_t udp_transmit(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct udp_port *port = udp_of(base);
    uint32_t gone = 0;
    while (gone < count) {
        struct burst burst;
        bool cuts = port->cuts;
        uint32_t taken = burst_make(port, &burst, packets + gone, count - gone);
        uint32_t left = taken == 0 ? 1 : burst_send(port, &burst); /* 1: the kernel's own reports */
        gone += left;
        if (left == 0 && cuts == port->cuts) {
            break;
        }
    }
    udp_cancel(base, packets, gone);
    return gone;
}
