#include "apps/run/veth.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/cli/process.h"
#include "control/job/wire.h"
#include "dataplane/base/process.h"

enum {
    EXIT_NO_PROGRAM = 127,
    IP_WAIT_MS =
        30000, /* a millisecond for each interface, and the kernel's lock, which others hold for long at times */
};

/* ---- namespaces ---- */

/* Of the namespace that this process is in. False: it is not there. */
static bool setting_write(const char *name, const char *value)
{
    char path[96];
    snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool done = file >= 0 && write(file, value, strlen(value)) == (ssize_t)strlen(value);
    if (file >= 0) {
        close(file);
    }
    return done;
}

/* Where these cannot be set the defaults do for most. */
static void settings_write(void)
{
    /* without IPv6 the kernel sends nothing of its own */
    setting_write("ipv6/conf/default/disable_ipv6", "1");
    setting_write("ipv6/conf/all/disable_ipv6", "1");
    /* several interfaces of a host are in the same subnet: each answers for its own address, and takes what comes for
     * it by any way */
    setting_write("ipv4/conf/all/arp_ignore", "1");
    setting_write("ipv4/conf/all/arp_announce", "2");
    setting_write("ipv4/conf/all/rp_filter", "0");
    setting_write("ipv4/conf/default/rp_filter", "0");
    /* no firewall between the hosts, where br_netfilter is loaded: it took a tenth of the time of a packet */
    setting_write("bridge/bridge-nf-call-iptables", "0");
    setting_write("bridge/bridge-nf-call-ip6tables", "0");
    setting_write("bridge/bridge-nf-call-arptables", "0");
}

/* -1: refused, see errno. */
static int namespace_make(int ours)
{
    if (unshare(CLONE_NEWNET) != 0) {
        return -1;
    }
    settings_write();
    int made = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int error = errno;
    if (setns(ours, CLONE_NEWNET) != 0) {
        app_error("cannot come back from a network namespace", strerror(errno), NULL);
        exit(APP_EXIT_MACHINE); /* nothing that follows would be where it belongs */
    }
    errno = error;
    return made;
}

static int namespaces_make(struct run_veth *veth, uint32_t hosts)
{
    int ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    veth->bridge = ours >= 0 ? namespace_make(ours) : -1;
    for (uint32_t i = 0; veth->bridge >= 0 && i < hosts; i++) {
        int made = namespace_make(ours);
        if (made < 0) {
            break;
        }
        veth->networks[veth->host_count++] = made;
    }
    int error = errno;
    if (ours >= 0) {
        close(ours);
    }
    if (veth->host_count == hosts) {
        return 0;
    }
    bool permission = error == EPERM || error == EACCES;
    app_error(permission ? "--emulate with veth needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN)"
                         : "cannot make network namespaces",
              strerror(error), "without: --emulate HOSTS,memif");
    return APP_EXIT_MACHINE;
}

/* ---- interfaces ---- */

static _Noreturn void ip_exec(int network, int script, int said)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setns(network, CLONE_NEWNET) != 0 || dup2(script, STDIN_FILENO) < 0 || dup2(said, STDOUT_FILENO) < 0 ||
        dup2(said, STDERR_FILENO) < 0) {
        _exit(APP_EXIT_INTERNAL);
    }
    execlp("ip", "ip", "-batch", "-", (char *)NULL);
    _exit(EXIT_NO_PROGRAM);
}

/* Waits until `ip` has ended, for so long, and kills it else; false: with `text` the reason, or with `number` the
 * signal that came. */
static bool ip_await(pid_t process, const sigset_t *handled, int *status, char *text, size_t text_bytes, int *number)
{
    struct pollfd wait[2] = {{.fd = pidfd_open(process, 0), .events = POLLIN},
                             {.fd = signalfd(-1, handled, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN}};
    struct signalfd_siginfo info;
    int count = poll(wait, 2, IP_WAIT_MS);
    if (wait[1].revents != 0 && read(wait[1].fd, &info, sizeof(info)) == sizeof(info)) {
        *number = (int)info.ssi_signo;
    } else if (count == 0) {
        snprintf(text, text_bytes, "ip (process %d, state %c) did not end within %d s", process,
                 cw_process_state(process), IP_WAIT_MS / 1000);
    }
    bool done = wait[0].revents != 0;
    if (!done) {
        kill(process, SIGKILL);
    }
    while (waitpid(process, status, 0) < 0 && errno == EINTR) {
    }
    for (int i = 0; i < 2; i++) {
        if (wait[i].fd >= 0) {
            close(wait[i].fd);
        }
    }
    return done;
}

/* Has `ip` carry out lines of its own language in a namespace. */
static int ip_run(int network, const char *lines, const sigset_t *handled)
{
    char text[128] = "";
    int status = -1;
    int number = 0;
    int script = memfd_create("lines for ip", MFD_CLOEXEC);
    int said = memfd_create("ip's words", MFD_CLOEXEC);
    size_t length = strlen(lines);
    if (script >= 0 && said >= 0 && write(script, lines, length) == (ssize_t)length &&
        lseek(script, 0, SEEK_SET) == 0) {
        fflush(NULL);
        pid_t process = fork();
        if (process == 0) {
            ip_exec(network, script, said);
        }
        if (process > 0 && ip_await(process, handled, &status, text, sizeof(text), &number)) {
            (void)!pread(said, text, sizeof(text) - 1, 0);
        }
        text[strcspn(text, "\n")] = 0;
    }
    if (script >= 0) {
        close(script);
    }
    if (said >= 0) {
        close(said);
    }
    if (status == 0) {
        return 0;
    }
    if (number != 0) {
        return app_signal_report(number);
    }
    bool missing = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_PROGRAM;
    app_error("cannot make the veth interfaces of the emulated hosts", missing ? "there is no program ip" : text,
              missing ? "apt-get install iproute2, or --emulate HOSTS,memif" : "without them: --emulate HOSTS,memif");
    return APP_EXIT_MACHINE;
}

static void bridge_describe(FILE *lines, const struct run_veth *veth, const uint32_t *host_of, uint32_t ranks,
                            uint32_t mtu_bytes, enum cw_wire_multicast multicast)
{
    bool snoops = multicast == CW_WIRE_SNOOP;
    /* until the time for answers to its first query has passed the kernel floods: 100 ms, if set before */
    fprintf(lines,
            "link add bridge mtu %u type bridge stp_state 0 mcast_snooping %d mcast_query_response_interval 10\n"
            "link set bridge type bridge mcast_querier %d\n",
            mtu_bytes, snoops, snoops);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        /* for both ends, since the kernel does not take that of the other one alone; not the same, or it is in no hurry
         * to say that the link is up */
        uint32_t index = 2 * (rank + 1);
        fprintf(lines,
                "link add port%u index %u mtu %u master bridge type veth peer name " CW_WIRE_INTERFACE
                " mtu %u index %u address 02:00:0a:00:00:%02x netns /proc/%d/fd/%d\n"
                "link set port%u type bridge_slave mcast_flood %s\n"
                "link set port%u up\n",
                rank, index + 1, mtu_bytes, rank, mtu_bytes, index, rank + 1, cw_process_number(),
                veth->networks[host_of[rank]], rank, multicast == CW_WIRE_DROP ? "off" : "on", rank);
    }
    fprintf(lines, "link set bridge up\n");
}

static void host_describe(FILE *lines, uint32_t host, const uint32_t *host_of, uint32_t ranks)
{
    fprintf(lines, "link set lo up\n");
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (host_of[rank] == host) {
            fprintf(lines, "addr add 10.0.0.%u/24 dev " CW_WIRE_INTERFACE "\nlink set " CW_WIRE_INTERFACE " up\n",
                    rank + 1, rank, rank);
        }
    }
}

/* `host`: -1 for the bridge. */
static int interfaces_make(const struct run_veth *veth, int host, const uint32_t *host_of, uint32_t ranks,
                           uint32_t mtu_bytes, enum cw_wire_multicast multicast, const sigset_t *handled)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *lines = open_memstream(&text, &bytes);
    if (lines == NULL) {
        app_error("out of memory", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    if (host < 0) {
        bridge_describe(lines, veth, host_of, ranks, mtu_bytes, multicast);
    } else {
        host_describe(lines, (uint32_t)host, host_of, ranks);
    }
    fclose(lines);
    int code = ip_run(host < 0 ? veth->bridge : veth->networks[host], text, handled);
    free(text);
    return code;
}

int run_veth_start(struct run_veth *veth, uint32_t hosts, const uint32_t *host_of, uint32_t ranks, uint32_t mtu_bytes,
                   enum cw_wire_multicast multicast, const sigset_t *handled)
{
    *veth = (struct run_veth){.bridge = -1};
    int code = namespaces_make(veth, hosts);
    for (int host = -1; code == 0 && host < (int)hosts; host++) {
        code = interfaces_make(veth, host, host_of, ranks, mtu_bytes, multicast, handled);
    }
    return code;
}

void run_veth_stop(struct run_veth *veth)
{
    for (uint32_t i = 0; i < veth->host_count; i++) {
        close(veth->networks[i]);
    }
    if (veth->bridge >= 0) {
        close(veth->bridge);
    }
    *veth = (struct run_veth){.bridge = -1};
}
