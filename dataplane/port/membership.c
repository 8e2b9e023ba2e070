#include "dataplane/port/membership.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

int cw_membership_open(const uint8_t mac[6], uint32_t own_ipv4)
{
    const struct ip_mreqn member = {.imr_multiaddr.s_addr = htonl(cw_membership_ipv4(mac)),
                                    .imr_address.s_addr = htonl(own_ipv4)};
    /* a socket each, since the kernel lets 20 memberships into one (igmp_max_memberships) */
    int made = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (made >= 0 && setsockopt(made, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof(member)) == 0) {
        return made;
    }
    int failed = -errno;
    if (made >= 0) {
        close(made);
    }
    return failed;
}
