/* Inside of the UDP port: udp.c opens, closes and sleeps; udp_receive.c and udp_send.c are the hot path. */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "dataplane/port/udp.h"
#include "dataplane/port/wake.h"

enum {
    UDP_NETWORK_BYTES = 14 + 20 + 8, /* Ethernet, IPv4 and UDP headers */
    UDP_NETWORK_V6_BYTES = 14 + 40 + 8,
    UDP_DATAGRAM_MAX = 65507,
    UDP_SEGMENTS_MAX = 64, /* in one piece; UDP_MAX_SEGMENTS of the kernel */
    UDP_MESSAGES = 16,     /* pieces in one call of the kernel */
    UDP_PARTS = 1 + CW_PORT_PIECES_MAX,
    UDP_CONTROL_BYTES = 64,
};

/* The port has the same place in both. */
union udp_name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* A piece that is being received: into frames, behind room for the headers, that the kernel fills one after the other:
 * if it is made of full packets, each lies where it belongs. */
struct udp_message {
    uint8_t **frames; /* [frame_count], some NULL: to be taken from the pool */
    struct iovec *parts;
    union udp_name from;
    _Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_BYTES];
};

/* A multicast group that was joined. */
struct udp_group {
    struct cw_ip ip;
    int socket; /* -1: the place is free */
    uint32_t joins;
    uint32_t drops_seen;
};

struct udp_port {
    struct cw_port port;
    union udp_name own;
    struct cw_ip ip;        /* own */
    socklen_t name_bytes;   /* of an address of this kind */
    uint32_t ip_bytes;      /* 4 or 16 */
    uint32_t network_bytes; /* of the headers that the kernel writes */
    int interface;          /* IPv6: its index */
    in_port_t group_port;   /* network byte order; 0: no groups */
    uint32_t stream_count;
    uint32_t buffer_bytes;
    int *sockets;             /* [stream_count] */
    int set;                  /* epoll set of all; -1: there is one socket */
    struct udp_group *groups; /* [group_count] */
    uint32_t group_count;
    uint32_t datagram_bytes; /* UDP payload of a full packet */
    bool cuts;               /* UDP_SEGMENT works */
    uint32_t batched;        /* packets sent in batches, and those sent alone since they had been lost, of late */
    uint32_t lost;
    uint32_t
        singles; /* packets to send one by one before the next batch, since too many packets of batches were lost */
    uint64_t dropped;
    uint32_t *drops_seen; /* [stream_count]: the kernel's count, which wraps */

    uint32_t frame_bytes;
    uint32_t free_count;
    uint8_t **free; /* stack of free frames */
    uint8_t *frames;

    uint32_t frame_count;   /* frames that a message of the largest size takes */
    uint32_t used_count;    /* messages, the first ones, that must be prepared before they receive again */
    uint32_t asked;         /* messages that the next call may bring */
    uint32_t message_count; /* that have come with the last call */
    uint32_t message_at;    /* of them, the next to be given out */
    uint32_t segment_at;    /* bytes of it that have been */
    uint32_t segment_bytes; /* of its packets, but the last one */
    uint32_t source;        /* the socket that received them: a stream, or behind these a group */
    uint8_t *whole;         /* of the message, in one piece, if its packets do not lie in frames; NULL: they do */
    uint8_t *scratch;       /* room for one */
    struct mmsghdr arrived[UDP_MESSAGES];
    struct udp_message messages[UDP_MESSAGES];

    struct cw_wake wake;
};

struct cw_port_memory {
    char nothing; /* pieces may lie anywhere */
};

static inline struct udp_port *udp_of(struct cw_port *port)
{
    return (struct udp_port *)port;
}

/* As it is in a packet: ip_bytes of it. */
static inline uint8_t *udp_ip_of(union udp_name *name)
{
    return name->any.sa_family == AF_INET ? (uint8_t *)&name->v4.sin_addr : name->v6.sin6_addr.s6_addr;
}

static inline const uint8_t *udp_ip_in(const struct udp_port *port, const struct cw_ip *ip)
{
    return ip->bytes + sizeof(ip->bytes) - port->ip_bytes;
}

static inline bool udp_is_group(const union udp_name *name)
{
    return name->any.sa_family == AF_INET ? IN_MULTICAST(ntohl(name->v4.sin_addr.s_addr))
                                          : IN6_IS_ADDR_MULTICAST(&name->v6.sin6_addr);
}

/* The UDP header of a frame. */
static inline uint8_t *udp_in(const struct udp_port *port, uint8_t *frame)
{
    return frame + port->network_bytes - 8;
}

/* A free frame; there must be one. */
static inline uint8_t *udp_frame_acquire(struct udp_port *port)
{
    return port->free[--port->free_count];
}

static inline void udp_frame_release(struct udp_port *port, uint8_t *frame)
{
    port->free[port->free_count++] = frame;
}

/* udp_receive.c */
uint32_t udp_receive(struct cw_port *port, struct cw_received *packets, uint32_t count_max);
void udp_release(struct cw_port *port, struct cw_received *packets, uint32_t count);
/* udp_send.c */
uint32_t udp_reserve(struct cw_port *port, struct cw_transmit *packets, uint32_t count);
uint32_t udp_transmit(struct cw_port *port, struct cw_transmit *packets, uint32_t count);
void udp_cancel(struct cw_port *port, struct cw_transmit *packets, uint32_t count);
