#include "control/net/reservation.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum { BUFFER_BYTES = 1 /* the kernel makes the least of it that it allows */ };

union name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Its length. */
static socklen_t name_write(union name *name, const struct cw_ip *ip, uint16_t udp_port)
{
    *name = (union name){.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(udp_port)}};
    memcpy(&name->v6.sin6_addr, ip->bytes, sizeof(ip->bytes));
    if (cw_ip_is_v4(ip)) {
        name->v4 = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(udp_port), .sin_addr.s_addr = htonl(cw_ip_to_v4(ip))};
    }
    return cw_ip_is_v4(ip) ? sizeof(name->v4) : sizeof(name->v6);
}

/* A socket that drops all, and has the port. The filter first: packets that arrive in between would stay in the
 * queue. */
static int socket_open(const struct cw_ip *ip, uint16_t *udp_port)
{
    struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    const struct sock_fprog program = {.len = 1, .filter = nothing};
    union name name;
    int least = BUFFER_BYTES;
    socklen_t bytes = name_write(&name, ip, *udp_port);
    int made = socket(name.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (made >= 0 && setsockopt(made, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0 &&
        bind(made, &name.any, bytes) == 0 && getsockname(made, &name.any, &bytes) == 0) {
        *udp_port = ntohs(name.v4.sin_port); /* IPv6 has it at the same place */
        (void)setsockopt(made, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
        (void)setsockopt(made, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
        return made;
    }
    int failed = -errno;
    if (made >= 0) {
        close(made);
    }
    return failed;
}

int cw_reservation_open(const struct cw_ip *ip, uint16_t udp_port, uint32_t count, struct cw_reservation *reservation,
                        char *error, size_t error_bytes)
{
    assert(count <= CW_RESERVATION_MAX && (udp_port != 0 || count == 1));
    struct cw_reservation made = {.udp_port = udp_port};
    uint16_t its = udp_port;
    int got = 0;
    while (made.count < count && got >= 0) {
        its = (uint16_t)(udp_port + made.count);
        got = socket_open(ip, &its);
        if (got >= 0) {
            made.sockets[made.count++] = got;
        }
    }
    if (got >= 0) {
        made.udp_port = (uint16_t)(its - (count - 1));
        *reservation = made;
        return CW_OK;
    }
    char name[CW_IP_TEXT_BYTES];
    uint32_t number = udp_port + made.count;
    cw_ip_write(ip, name);
    cw_reservation_close(&made);
    switch (-got) {
    case EADDRNOTAVAIL:
        return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                             "this host has no address %s; `ip address` lists its addresses", name);
    case EADDRINUSE:
        return cw_error_text(error, error_bytes, CW_ERROR_BUSY,
                             "UDP port %u of %s is in use; `ss -ulpn` shows by which process", number, name);
    default:
        return cw_error_text(error, error_bytes, cw_status_of_errno(-got), "UDP socket at %s:%u: %s%s", name, number,
                             strerror(-got), cw_errno_remedy(-got));
    }
}

void cw_reservation_close(struct cw_reservation *reservation)
{
    for (uint32_t i = 0; i < reservation->count; i++) {
        close(reservation->sockets[i]);
    }
    *reservation = (struct cw_reservation){.count = 0};
}
