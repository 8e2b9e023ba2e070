/* The XDP program of a port by af_xdp that shares its interface with a host (selection.bpf.c).
 *
 * DPDK's driver loads it from a file, here one in memory, and attaches it to the interface, where it would stay if this
 * process were killed. So it is attached anew by a link, which ends with its descriptor, whichever way the process
 * does (Linux 5.9; before, the program stays, and lets everything pass: `ip link set eth0 xdp off`). Until then a guard
 * detaches it: a process that shares the descriptors of this one and outlives it by a moment. */
#include "dataplane/port/ethdev_private.h"
#include "dataplane/port/xdp_words.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

/* The program as the driver has loaded it: its descriptor is the driver's; -1: not found. Without an allocation, whose
 * lock another thread may have held when the guard was cloned. */
static int program_find(void)
{
    int found = -1, folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(struct dirent64) char entries[1024]; /* of those that may be open there can be millions */
    for (ssize_t bytes; found < 0 && (bytes = getdents64(folder, entries, sizeof(entries))) > 0;) {
        const struct dirent64 *entry;
        for (ssize_t at = 0; at < bytes && found < 0; at += entry->d_reclen) {
            entry = (const struct dirent64 *)(entries + at);
            char target[32] = "";
            int file = atoi(entry->d_name); /* 0 of "." and "..", which are no links */
            struct bpf_prog_info info = {.type = 0};
            union bpf_attr attributes = {.info = {.bpf_fd = (uint32_t)file, .info_len = sizeof(info)}};
            attributes.info.info = (uint64_t)(uintptr_t)&info;
            if (readlinkat(folder, entry->d_name, target, sizeof(target) - 1) > 0 &&
                strcmp(target, "anon_inode:bpf-prog") == 0 && bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes) == 0 &&
                strcmp(info.name, CW_XDP_NAME) == 0) {
                found = file;
            }
        }
    }
    if (folder >= 0) {
        close(folder);
    }
    return found;
}

struct link_attribute {
    struct rtattr header;
    int value;
};

/* Sets the program of an interface by netlink, as the driver does, in place of `former` and of no other; -1: none. 0,
 * or -errno. */
static int program_set(uint32_t interface, int program, int former)
{
    const struct rtattr header = {.rta_len = RTA_LENGTH(sizeof(int))};
    struct {
        struct nlmsghdr header;
        struct ifinfomsg message;
        struct rtattr nest;
        struct link_attribute program, former, flags;
    } request = {
        .header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_SETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .message = {.ifi_family = AF_UNSPEC, .ifi_index = (int)interface},
        .nest = {.rta_len = RTA_LENGTH(3 * sizeof(struct link_attribute)), .rta_type = IFLA_XDP | NLA_F_NESTED},
        .program = {header, program},
        .former = {header, former},
        .flags = {header, XDP_FLAGS_REPLACE},
    };
    request.program.header.rta_type = IFLA_XDP_FD;
    request.former.header.rta_type = IFLA_XDP_EXPECTED_FD;
    request.flags.header.rta_type = IFLA_XDP_FLAGS;
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

/* Waits until its process has ended, or ends it. */
static _Noreturn void guard_run(int process, uint32_t interface)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid(); /* who ends a group of processes does not end it, too */
    struct pollfd wait = {.fd = process, .events = POLLIN};
    while (poll(&wait, 1, -1) < 0) {
    }
    int program = program_find();
    if (program >= 0) {
        program_set(interface, -1, program);
    }
    _exit(0);
}

void ethdev_xdp_guard(struct ethdev_port *port, uint32_t interface)
{
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
    port->guard = process < 0 ? -1 : (pid_t)syscall(SYS_clone, CLONE_FILES, NULL, NULL, NULL, NULL);
    if (port->guard == 0) {
        guard_run(process, interface);
    }
    port->guard_descriptor = process;
}

/* It is a child that no wait of the program sees, as it says nothing when it ends. */
static void guard_end(struct ethdev_port *port)
{
    if (port->guard > 0) {
        kill(port->guard, SIGKILL);
        waitpid(port->guard, NULL, __WALL);
    }
    if (port->guard_descriptor >= 0) {
        close(port->guard_descriptor);
    }
    port->guard = -1;
    port->guard_descriptor = -1;
}

int ethdev_xdp_link(struct ethdev_port *port, char *error, size_t error_bytes)
{
    struct rte_eth_dev_info info;
    int program = rte_eth_dev_info_get(port->id, &info) == 0 ? program_find() : -1;
    if (program < 0 || program_set(info.if_index, -1, program) != 0) {
        guard_end(port);
        return CW_OK; /* as the driver has attached it */
    }
    union bpf_attr attributes = {.link_create = {.prog_fd = (uint32_t)program}};
    attributes.link_create.target_ifindex = info.if_index;
    attributes.link_create.attach_type = BPF_XDP;
    port->link_descriptor = (int)bpf(BPF_LINK_CREATE, &attributes);
    int failed = port->link_descriptor >= 0 ? 0 : program_set(info.if_index, program, -1);
    guard_end(port);
    return failed == 0 ? CW_OK
                       : cw_error_text(error, error_bytes, cw_status_of_errno(-failed),
                                       "port %s: its XDP program cannot be attached again: %s (has somebody else one "
                                       "there? see `bpftool net`, or use af_packet)",
                                       port->device, strerror(-failed));
}

void ethdev_xdp_close(struct ethdev_port *port)
{
    guard_end(port);
    if (port->link_descriptor >= 0) {
        close(port->link_descriptor);
    }
    if (port->program_descriptor >= 0) {
        close(port->program_descriptor);
    }
}
