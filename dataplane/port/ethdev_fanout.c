/* The fanout group of af_packet's sockets. The driver (22.11) numbers it by process id XOR interface index, modulo
 * 65,536. A number that another process's group has makes the driver fail, if that is on another interface; on the
 * same one, by equal process ids in two namespaces, both would get a part of the packets each. Starting again gives
 * the same number where process ids are few. So the driver is called under another process id then: in a child that
 * shares memory and descriptors, and ends at once. */
#include "dataplane/port/ethdev_private.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_dev.h>

enum { TRIES_MAX = 16, STACK_BYTES = 512 << 10 };

struct plugging {
    const char *device;
    const char *arguments;
    uint32_t interface;
    int result;
};

/* Whether a group has the number that the driver would take in this process: the kernel refuses to join one whose
 * flags differ, and the driver sets some. */
static bool is_used(uint32_t interface)
{
    const struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)interface};
    int group = (int)(((uint32_t)getpid() ^ interface) & 0xffff);
    int probe = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    bool taken = probe >= 0 && bind(probe, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
                 setsockopt(probe, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)) != 0 && errno == EINVAL;
    if (probe >= 0) {
        close(probe);
    }
    return taken;
}

static int plug(void *context)
{
    struct plugging *plugging = context;
    plugging->result =
        is_used(plugging->interface) ? -EADDRINUSE : rte_eal_hotplug_add("vdev", plugging->device, plugging->arguments);
    return 0;
}

/* The caller waits until the child has ended, so nothing but the process id differs. No signal reports the child's end,
 * and no handler of the program runs in it. */
static void plug_as_other(struct plugging *plugging)
{
    sigset_t all, before;
    uint8_t *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return;
    }
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t child = clone(plug, stack + STACK_BYTES, CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_VFORK, plugging);
    while (child > 0 && waitpid(child, NULL, __WALL) < 0 && errno == EINTR) {
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    munmap(stack, STACK_BYTES);
}

int ethdev_fanout_plug(const char *device, const char *arguments)
{
    char interface[IF_NAMESIZE] = "";
    struct plugging plugging = {.device = device, .arguments = arguments};
    plugging.interface = ethdev_driver_interface(arguments, interface) ? if_nametoindex(interface) : 0;
    plug(&plugging);
    for (int tries = 1; tries < TRIES_MAX && plugging.result != 0 && plugging.result != -EEXIST; tries++) {
        plug_as_other(&plugging);
    }
    return plugging.result;
}
