#include "dataplane/port/membership.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static int enter(int made, const struct cw_ip *group, uint32_t interface)
{
    struct ip_mreqn v4 = {.imr_ifindex = (int)interface};
    struct ipv6_mreq v6 = {.ipv6mr_interface = interface};
    memcpy(&v4.imr_multiaddr, group->bytes + 12, sizeof(v4.imr_multiaddr));
    memcpy(&v6.ipv6mr_multiaddr, group->bytes, sizeof(v6.ipv6mr_multiaddr));
    return cw_ip_is_v4(group) ? setsockopt(made, IPPROTO_IP, IP_ADD_MEMBERSHIP, &v4, sizeof(v4))
                              : setsockopt(made, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &v6, sizeof(v6));
}

int cw_membership_open(const uint8_t mac[6], uint32_t interface, bool is_v6)
{
    const struct cw_ip group = cw_membership_group(mac, is_v6);
    /* a socket each, since the kernel lets 20 memberships into one (igmp_max_memberships) */
    int made = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (made >= 0 && enter(made, &group, interface) == 0) {
        return made;
    }
    int failed = -errno;
    if (made >= 0) {
        close(made);
    }
    return failed;
}
