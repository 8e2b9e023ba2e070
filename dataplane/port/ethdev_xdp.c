/* The XDP program of a port by af_xdp that shares its interface with a host (selection.bpf.c).
 *
 * DPDK's driver loads it from a file, here one in memory, and attaches it to the interface, where it would stay if this
 * process were killed. So it is attached anew by a link, which ends with its descriptor, whichever way the process
 * does (Linux 5.9; before, the program stays, and lets everything pass: `ip link set eth0 xdp off`). */
#include "dataplane/port/ethdev_private.h"
#include "dataplane/port/xdp_words.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(CW_HAVE_XDP)
#include "dataplane/port/xdp_program.h"
#else
enum { XDP_WORDS_AT = 0 };
static const uint8_t xdp_program[sizeof(struct cw_xdp_words)];
#endif

int ethdev_xdp_program(struct ethdev_port *port, char *arguments, size_t arguments_bytes, char *error,
                       size_t error_bytes)
{
    const struct cw_port_selection *only = &port->selection;
    const struct cw_xdp_words words = {.magic = CW_XDP_MAGIC,
                                       .ip = {ethdev_ip_word(&only->ip, 0), ethdev_ip_word(&only->ip, 1),
                                              ethdev_ip_word(&only->ip, 2), ethdev_ip_word(&only->ip, 3)},
                                       .udp_port = only->udp_port,
                                       .udp_port_count = only->udp_port_count,
                                       .group_port = only->group_port,
                                       .is_v6 = !cw_ip_is_v4(&only->ip)};
#if !defined(CW_HAVE_XDP)
    return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                         "port %s: built without a compiler for XDP programs (gcc-bpf): use af_packet or udp",
                         port->device);
#endif
    int file = memfd_create(CW_XDP_NAME, MFD_CLOEXEC);
    if (file < 0 || write(file, xdp_program, sizeof(xdp_program)) != (ssize_t)sizeof(xdp_program) ||
        pwrite(file, &words, sizeof(words), XDP_WORDS_AT) != (ssize_t)sizeof(words)) {
        int failed = errno;
        if (file >= 0) {
            close(file);
        }
        return cw_error_text(error, error_bytes, cw_status_of_errno(failed), "port %s: memfd: %s%s", port->device,
                             strerror(failed), cw_errno_remedy(failed));
    }
    port->program_descriptor = file;
    size_t used = strlen(arguments);
    int added =
        snprintf(arguments + used, arguments_bytes - used, "%sxdp_prog=/proc/self/fd/%d", used > 0 ? "," : "", file);
    return used + (size_t)added < arguments_bytes ? CW_OK
                                                  : cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                                                                  "port %s: its arguments are too long", port->device);
}

static long bpf(int command, union bpf_attr *attributes)
{
    return syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

/* The program as the driver has loaded it: its descriptor is the driver's; -1: not found. */
static int program_find(void)
{
    int found = -1, limit = (int)sysconf(_SC_OPEN_MAX);
    for (int file = 0; file < limit && found < 0; file++) {
        char path[32], target[32] = "";
        struct bpf_prog_info info = {.type = 0};
        union bpf_attr attributes = {.info = {.bpf_fd = (uint32_t)file, .info_len = sizeof(info)}};
        attributes.info.info = (uint64_t)(uintptr_t)&info;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
        if (readlink(path, target, sizeof(target) - 1) > 0 && strcmp(target, "anon_inode:bpf-prog") == 0 &&
            bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes) == 0 && strcmp(info.name, CW_XDP_NAME) == 0) {
            found = file;
        }
    }
    return found;
}

/* Sets the program of an interface by netlink, as the driver does; -1: none. 0, or -errno. */
static int program_set(uint32_t interface, int program)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg message;
        struct rtattr nest;
        struct rtattr attribute;
        int program;
    } request = {
        .header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_SETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .message = {.ifi_family = AF_UNSPEC, .ifi_index = (int)interface},
        .nest = {.rta_len = RTA_LENGTH(RTA_LENGTH(sizeof(int))), .rta_type = IFLA_XDP | NLA_F_NESTED},
        .attribute = {.rta_len = RTA_LENGTH(sizeof(int)), .rta_type = IFLA_XDP_FD},
        .program = program,
    };
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        uint8_t rest[512];
    } answer = {.error = {.error = -EIO}};
    int file = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    int failed = file < 0 || send(file, &request, sizeof(request), 0) < 0 || recv(file, &answer, sizeof(answer), 0) < 0
                     ? -errno
                 : answer.header.nlmsg_type == NLMSG_ERROR ? answer.error.error
                                                           : -EIO;
    if (file >= 0) {
        close(file);
    }
    return failed;
}

void ethdev_xdp_link(struct ethdev_port *port)
{
    struct rte_eth_dev_info info;
    int program = rte_eth_dev_info_get(port->id, &info) == 0 ? program_find() : -1;
    if (program < 0 || program_set(info.if_index, -1) != 0) {
        return; /* as the driver has attached it */
    }
    union bpf_attr attributes = {.link_create = {.prog_fd = (uint32_t)program}};
    attributes.link_create.target_ifindex = info.if_index;
    attributes.link_create.attach_type = BPF_XDP;
    port->link_descriptor = (int)bpf(BPF_LINK_CREATE, &attributes);
    if (port->link_descriptor < 0) {
        (void)program_set(info.if_index, program);
    }
}

void ethdev_xdp_close(struct ethdev_port *port)
{
    if (port->link_descriptor >= 0) {
        close(port->link_descriptor);
    }
    if (port->program_descriptor >= 0) {
        close(port->program_descriptor);
    }
}
