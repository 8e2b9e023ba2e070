/* Selects packets of all that an interface of the kernel receives. af_packet: a filter of the driver's socket, so that
 * the host's other packets are not copied to it. Packets that other processes of this host send by the interface pass
 * it, too: members of a group are distinguished by UDP ports, and reach each other this way. */
#include "dataplane/port/ethdev_private.h"

#include <assert.h>
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
    STATEMENTS_MAX = 32,
    TO_DROP = 255, /* marks */
    TO_GROUPS = 254,
};

/* A program as it is written. Jumps are forward, by places; those to places that are not known yet have a mark. */
struct filter {
    struct sock_filter code[STATEMENTS_MAX];
    size_t count;
};

static void add(struct filter *filter, struct sock_filter statement)
{
    assert(filter->count < STATEMENTS_MAX);
    filter->code[filter->count++] = statement;
}

static void load(struct filter *filter, uint16_t size, uint32_t at)
{
    add(filter, (struct sock_filter)BPF_STMT((uint16_t)(BPF_LD | BPF_ABS | size), at));
}

/* Compares the loaded value: if equal, continue; else jump to the mark. */
static void need(struct filter *filter, uint16_t test, uint32_t value, uint8_t mark)
{
    add(filter, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | BPF_K | test), value, 0, mark));
}

static void drop_if(struct filter *filter, uint16_t test, uint32_t value)
{
    add(filter, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | BPF_K | test), value, TO_DROP, 0));
}

static void return_bytes(struct filter *filter, uint32_t bytes)
{
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, bytes));
}

/* The place of a mark is here. */
static void mark_set(struct filter *filter, uint8_t mark)
{
    for (size_t i = 0; i < filter->count; i++) {
        struct sock_filter *at = &filter->code[i];
        uint8_t distance = (uint8_t)(filter->count - i - 1);
        if (BPF_CLASS(at->code) == BPF_JMP) {
            at->jt = at->jt == mark ? distance : at->jt;
            at->jf = at->jf == mark ? distance : at->jf;
        }
    }
}

/* Excludes packets of a VLAN, from which the kernel has removed the tag: it has an interface of its own. */
static void begin_write(struct filter *filter, uint32_t ether_type)
{
    load(filter, BPF_W, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT));
    need(filter, BPF_JEQ, 0, TO_DROP);
    load(filter, BPF_H, AT_ETHER_TYPE);
    need(filter, BPF_JEQ, ether_type, TO_DROP);
    load(filter, BPF_B, AT_VERSION_LENGTH);
}

/* Of the own address: one of the own ports; else of a group with this prefix after a shift: the groups' ports. */
static void end_write(struct filter *filter, const struct cw_port_selection *only, uint32_t at_port, uint32_t shift,
                      uint32_t group)
{
    load(filter, BPF_H, at_port);
    need(filter, BPF_JGE, only->udp_port, TO_DROP);
    drop_if(filter, BPF_JGT, (uint32_t)only->udp_port + only->udp_port_count - 1);
    return_bytes(filter, UINT32_MAX);
    mark_set(filter, TO_GROUPS);
    add(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, shift));
    need(filter, BPF_JEQ, group, TO_DROP);
    load(filter, BPF_H, at_port);
    need(filter, BPF_JEQ, only->group_port, TO_DROP);
    return_bytes(filter, UINT32_MAX);
    mark_set(filter, TO_DROP);
    return_bytes(filter, 0);
}

static void filter_v4_write(struct filter *filter, const struct cw_port_selection *only)
{
    begin_write(filter, 0x0800);
    need(filter, BPF_JEQ, 0x45, TO_DROP);
    load(filter, BPF_B, AT_PROTOCOL);
    need(filter, BPF_JEQ, IPPROTO_UDP, TO_DROP);
    load(filter, BPF_H, AT_FRAGMENT);
    drop_if(filter, BPF_JSET, 0x3fff);
    load(filter, BPF_W, AT_DESTINATION);
    need(filter, BPF_JEQ, cw_ip_to_v4(&only->ip), TO_GROUPS);
    end_write(filter, only, AT_PORT, 28, 0xe);
}

/* The own address is unicast, so an address with a different first word may be a group's. */
static void filter_v6_write(struct filter *filter, const struct cw_port_selection *only)
{
    begin_write(filter, 0x86dd);
    add(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0));
    need(filter, BPF_JEQ, 0x60, TO_DROP);
    load(filter, BPF_B, AT_V6_NEXT);
    need(filter, BPF_JEQ, IPPROTO_UDP, TO_DROP);
    for (uint32_t word = 0; word < 4; word++) {
        load(filter, BPF_W, AT_V6_DESTINATION + 4 * word);
        need(filter, BPF_JEQ, ethdev_ip_word(&only->ip, word), word == 0 ? TO_GROUPS : TO_DROP);
    }
    end_write(filter, only, AT_V6_PORT, 16, 0xff15);
}

static int filter_attach(const struct ethdev_port *port)
{
    struct filter filter = {.count = 0};
    if (cw_ip_is_v4(&port->selection.ip)) {
        filter_v4_write(&filter, &port->selection);
    } else {
        filter_v6_write(&filter, &port->selection);
    }
    const struct sock_fprog program = {.len = (unsigned short)filter.count, .filter = filter.code};
    return setsockopt(port->packet_descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0 ? errno
                                                                                                             : 0;
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
    port->multicast = ETHDEV_MULTICAST_BY_KERNEL;
    port->port.info.reports = true;
    int failed = !port->driver.packet_socket ? 0 : port->packet_descriptor < 0 ? EBADF : filter_attach(port);
    return failed == 0 ? CW_OK
                       : cw_error_text(error, error_bytes, cw_status_of_errno(failed),
                                       "port %s: the filter of its socket: %s", port->device, strerror(failed));
}
