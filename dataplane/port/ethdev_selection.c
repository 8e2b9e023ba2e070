/* What is taken of all that an interface of the kernel gets. af_packet: a filter of the driver's socket, so that the
 * host's other packets are not copied to it. Packets that others of this host send by the interface pass it, too:
 * members of a group are told apart by UDP ports, and reach each other so. af_xdp: ethdev_xdp.c. */
#include "dataplane/port/ethdev_private.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum {
    AT_ETHER_TYPE = 12,
    AT_VERSION_LENGTH = 14,
    AT_FRAGMENT = 20,
    AT_PROTOCOL = 23,
    AT_DESTINATION = 30,
    AT_PORT = 36,
    AT_V6_NEXT = 20,
    AT_V6_DESTINATION = 38,
    AT_V6_PORT = 56,
};

static int program_attach(const struct ethdev_port *port, struct sock_filter *code, size_t count)
{
    const struct sock_fprog program = {.len = (unsigned short)count, .filter = code};
    return setsockopt(port->packet_descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0 ? errno
                                                                                                             : 0;
}

static int filter_v4_attach(const struct ethdev_port *port)
{
    const struct cw_port_selection *only = &port->selection;
    uint32_t last = (uint32_t)only->udp_port + only->udp_port_count - 1;
    struct sock_filter code[] = {
        /* of a VLAN, whose number the kernel has taken off: it has an interface of its own */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 19),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, AT_ETHER_TYPE),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0800, 0, 17),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_VERSION_LENGTH),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x45, 0, 15),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_PROTOCOL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 13),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, AT_FRAGMENT),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 11, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_DESTINATION),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, cw_ip_to_v4(&only->ip), 0, 4),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, AT_PORT),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, only->udp_port, 0, 7),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 6, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 28),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xe, 0, 3), /* multicast */
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, AT_PORT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, only->group_port, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    return program_attach(port, code, sizeof(code) / sizeof(code[0]));
}

/* The own address is unicast, so that whose first word is another may be a group's. */
static int filter_v6_attach(const struct ethdev_port *port)
{
    const struct cw_port_selection *only = &port->selection;
    uint32_t last = (uint32_t)only->udp_port + only->udp_port_count - 1;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 24),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, AT_ETHER_TYPE),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x86dd, 0, 22),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_VERSION_LENGTH),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x60, 0, 19),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_V6_NEXT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 17),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_V6_DESTINATION),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ethdev_ip_word(&only->ip, 0), 0, 10),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_V6_DESTINATION + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ethdev_ip_word(&only->ip, 1), 0, 13),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_V6_DESTINATION + 8),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ethdev_ip_word(&only->ip, 2), 0, 11),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_V6_DESTINATION + 12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ethdev_ip_word(&only->ip, 3), 0, 9),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, AT_V6_PORT),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, only->udp_port, 0, 7),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 6, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xff15, 0, 3), /* groups of jobs */
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, AT_V6_PORT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, only->group_port, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    return program_attach(port, code, sizeof(code) / sizeof(code[0]));
}

static int filter_attach(const struct ethdev_port *port)
{
    return cw_ip_is_v4(&port->selection.ip) ? filter_v4_attach(port) : filter_v6_attach(port);
}

int ethdev_selection_apply(struct ethdev_port *port, char *error, size_t error_bytes)
{
    if (cw_ip_is_none(&port->selection.ip)) {
        return CW_OK;
    }
    if (!port->driver.kernel_interface) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "port %s: only devices on an interface of the kernel share it with a host", port->device);
    }
    if (port->driver.xdp) {
        ethdev_xdp_link(port);
    }
    port->multicast = ETHDEV_MULTICAST_BY_KERNEL;
    port->port.info.reports = true;
    int failed = !port->driver.packet_socket ? 0 : port->packet_descriptor < 0 ? EBADF : filter_attach(port);
    return failed == 0 ? CW_OK
                       : cw_error_text(error, error_bytes, cw_status_of_errno(failed),
                                       "port %s: the filter of its socket: %s", port->device, strerror(failed));
}
