#include "control/net/solicit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    /* of a frame with IPv6 */
    AT_NEXT = 20,
    AT_MESSAGE = 54,
    ICMPV6 = 58,
    ND_ADVERTISEMENT = 136,
};

/* Lets advertisements through, of all the IPv6 that comes by the interface. Without it they may drown. */
static int advertisements_only(int file)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_NEXT),    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMPV6, 0, 3),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_MESSAGE), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ND_ADVERTISEMENT, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),          BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

int cw_solicit_open(uint32_t interface, bool is_v6)
{
    const struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(is_v6 ? ETH_P_IPV6 : ETH_P_ARP), .sll_ifindex = (int)interface};
    int file = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file < 0 || (is_v6 && advertisements_only(file) != 0) ||
        bind(file, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int failed = -errno;
        if (file >= 0) {
            close(file);
        }
        return failed;
    }
    return file;
}
