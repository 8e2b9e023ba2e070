/* Packets from the sockets: received in pieces that the kernel has combined, delivered packet by packet. */
#include "dataplane/port/udp_private.h"

#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>

/* ---- from the kernel ---- */

/* Has frames and room ready for one more message. False: there are none. */
static bool message_prepare(struct udp_port *port, uint32_t index)
{
    struct udp_message *message = &port->messages[index];
    for (uint32_t i = 0; i < port->frame_count; i++) {
        if (message->frames[i] == NULL) {
            if (port->free_count == 0) {
                return false;
            }
            message->frames[i] = udp_frame_acquire(port);
            message->parts[i] =
                (struct iovec){.iov_base = message->frames[i] + port->network_bytes, .iov_len = port->datagram_bytes};
        }
    }
    port->arrived[index].msg_hdr = (struct msghdr){
        .msg_name = &message->from,
        .msg_namelen = sizeof(message->from),
        .msg_iov = message->parts,
        .msg_iovlen = port->frame_count,
        .msg_control = message->control,
        .msg_controllen = sizeof(message->control),
    };
    return true;
}

/* Of several sockets, one that has something; UINT32_MAX: none. */
static uint32_t source_ready(const struct udp_port *port)
{
    struct epoll_event event;
    if (port->set < 0) {
        return 0;
    }
    return epoll_wait(port->set, &event, 1, 0) == 1 ? event.data.u32 : UINT32_MAX;
}

/* -1: a group that has been left. */
static int source_socket(const struct udp_port *port)
{
    return port->source < port->stream_count ? port->sockets[port->source]
                                             : port->groups[port->source - port->stream_count].socket;
}

static bool messages_fetch(struct udp_port *port)
{
    uint32_t ready = 0;
    port->source = source_ready(port);
    if (port->source == UINT32_MAX) {
        return false;
    }
    while (ready < port->used_count && message_prepare(port, ready)) {
        ready++;
    }
    if (ready == port->used_count) {
        port->used_count = 0;
        ready = UDP_MESSAGES;
    }
    ready = ready < port->asked ? ready : port->asked;
    int count = ready == 0 ? 0 : recvmmsg(source_socket(port), port->arrived, ready, MSG_DONTWAIT, NULL);
    /* behind a single message the kernel looks for another one, in vain, for as long as for the first */
    port->asked = count > 1 || count == (int)ready ? UDP_MESSAGES : 1;
    port->message_count = count > 0 ? (uint32_t)count : 0;
    port->used_count = port->message_count > port->used_count ? port->message_count : port->used_count;
    port->message_at = port->segment_at = 0;
    return count > 0;
}

/* ---- to the endpoint ---- */

/* The kernel's report about a message: the length of its packets, the last one separate; the number dropped before. */
static void message_look(struct udp_port *port, struct msghdr *header, uint32_t bytes)
{
    port->segment_bytes = bytes;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at != NULL; at = CMSG_NXTHDR(header, at)) {
        if (at->cmsg_level == SOL_UDP && at->cmsg_type == UDP_GRO) {
            int told;
            memcpy(&told, CMSG_DATA(at), sizeof(told));
            port->segment_bytes = told > 0 ? (uint32_t)told : bytes;
        } else if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SO_RXQ_OVFL) {
            uint32_t drops;
            memcpy(&drops, CMSG_DATA(at), sizeof(drops));
            uint32_t *seen = port->source < port->stream_count
                                 ? &port->drops_seen[port->source]
                                 : &port->groups[port->source - port->stream_count].drops_seen;
            port->dropped += (uint32_t)(drops - *seen);
            *seen = drops;
        }
    }
}

/* All of a message in one piece: its packets are not full ones. */
static uint8_t *whole_make(struct udp_port *port, const struct udp_message *message, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += port->datagram_bytes) {
        uint32_t part = bytes - at < port->datagram_bytes ? bytes - at : port->datagram_bytes;
        memcpy(port->scratch + at, message->parts[at / port->datagram_bytes].iov_base, part);
    }
    return port->scratch;
}

static void write_be16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* The headers that the kernel has removed, as far as they are read: no MAC addresses, no checksums. A packet to a
 * group's port is treated as one to ours. */
static void network_write(const struct udp_port *port, uint8_t *frame, union udp_name *from, uint32_t bytes)
{
    static const uint8_t fixed_v4[UDP_NETWORK_BYTES] = {
        [12] = 0x08, [14] = 0x45, [20] = 0x40, [22] = 64, [23] = IPPROTO_UDP};
    static const uint8_t fixed_v6[UDP_NETWORK_V6_BYTES] = {
        [12] = 0x86, [13] = 0xdd, [14] = 0x60, [20] = IPPROTO_UDP, [21] = 64};
    bool is_stream = port->source < port->stream_count;
    const struct cw_ip *to = is_stream ? &port->ip : &port->groups[port->source - port->stream_count].ip;
    if (port->ip_bytes == 4) {
        memcpy(frame, fixed_v4, sizeof(fixed_v4));
        write_be16(frame + 16, 28 + bytes);
        memcpy(frame + 26, udp_ip_of(from), 4);
        memcpy(frame + 30, udp_ip_in(port, to), 4);
    } else {
        memcpy(frame, fixed_v6, sizeof(fixed_v6));
        write_be16(frame + 18, 8 + bytes);
        memcpy(frame + 22, udp_ip_of(from), 16);
        memcpy(frame + 38, udp_ip_in(port, to), 16);
    }
    uint8_t *udp = udp_in(port, frame);
    memcpy(udp, &from->v4.sin_port, 2);
    write_be16(udp + 2, (uint32_t)ntohs(port->own.v4.sin_port) + (is_stream ? port->source : 0));
    write_be16(udp + 4, 8 + bytes);
}

/* The frame of the next packet of a message; NULL: there is none free. */
static uint8_t *segment_pop(struct udp_port *port, struct udp_message *message, uint32_t bytes)
{
    uint8_t *frame;
    if (port->whole == NULL) {
        uint32_t index = port->segment_at / port->datagram_bytes;
        frame = message->frames[index];
        message->frames[index] = NULL;
    } else if (port->free_count > 0) {
        frame = udp_frame_acquire(port);
        memcpy(frame + port->network_bytes, port->whole + port->segment_at, bytes);
    } else {
        return NULL;
    }
    network_write(port, frame, &message->from, bytes);
    return frame;
}

/* One that this port has sent to a group comes back to it, as to all members on the host. */
static bool is_own(const struct udp_port *port, union udp_name *from)
{
    uint32_t stream = (uint32_t)ntohs(from->v4.sin_port) - ntohs(port->own.v4.sin_port);
    return port->source >= port->stream_count && stream < port->stream_count &&
           memcmp(udp_ip_of(from), udp_ip_in(port, &port->ip), port->ip_bytes) == 0;
}

/* Gives out packets of the message that is next; returns how many. It stays the next one if the
 * caller has no room for all of them, or no frame is free. */
static uint32_t message_return(struct udp_port *port, struct cw_received *packets, uint32_t count_max)
{
    struct udp_message *message = &port->messages[port->message_at];
    struct mmsghdr *arrived = &port->arrived[port->message_at];
    uint32_t bytes = arrived->msg_len, given = 0;
    if (port->segment_at == 0) {
        message_look(port, &arrived->msg_hdr, bytes);
        bool is_apart = port->segment_bytes < bytes && port->segment_bytes != port->datagram_bytes;
        port->whole = is_apart ? whole_make(port, message, bytes) : NULL;
    }
    /* a packet longer than our limit comes from no peer */
    bool fits = port->segment_bytes <= port->datagram_bytes && (arrived->msg_hdr.msg_flags & MSG_TRUNC) == 0 &&
                !is_own(port, &message->from);
    while (fits && given < count_max && port->segment_at < bytes) {
        uint32_t left = bytes - port->segment_at;
        uint32_t part = left < port->segment_bytes ? left : port->segment_bytes;
        uint8_t *frame = segment_pop(port, message, part);
        if (frame == NULL) {
            return given;
        }
        packets[given++] = (struct cw_received){.data = frame, .length = port->network_bytes + part, .handle = frame};
        port->segment_at += part;
    }
    if (!fits || port->segment_at >= bytes) {
        port->message_at++;
        port->segment_at = 0;
    }
    return given;
}

uint32_t udp_receive(struct cw_port *base, struct cw_received *packets, uint32_t count_max)
{
    struct udp_port *port = udp_of(base);
    uint32_t filled = 0;
    if (port->message_at == port->message_count && !messages_fetch(port)) {
        return 0;
    }
    while (filled < count_max && port->message_at < port->message_count) {
        uint32_t at = port->message_at;
        filled += message_return(port, packets + filled, count_max - filled);
        if (port->message_at == at) {
            break; /* no frame is free, or the caller has no room */
        }
    }
    return filled;
}

void udp_release(struct cw_port *base, struct cw_received *packets, uint32_t count)
{
    struct udp_port *port = udp_of(base);
    for (uint32_t i = 0; i < count; i++) {
        udp_frame_release(port, packets[i].handle);
    }
}
