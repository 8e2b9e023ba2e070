/* The XDP program of a port by af_xdp: what is the port's own goes to its socket, everything else, and everything once
 * the socket is gone, to the kernel as if nobody were here. Compiled for the kernel's virtual machine (bpf-gcc, or clang
 * -target bpf), embedded in the library, and loaded by DPDK's driver, which wants a map of the name xsks_map. */
#include "dataplane/port/xdp_words.h"

#define SECTION(name) __attribute__((section(name), used))

/* The kernel's interface (<linux/bpf.h>), which the compiler for its machine has no headers of. */
enum { XDP_PASS = 2, BPF_MAP_TYPE_XSKMAP = 17, BPF_FUNC_redirect_map = 51, QUEUES_MAX = 64 };
struct xdp_md {
    uint32_t data;
    uint32_t data_end;
    uint32_t data_meta;
    uint32_t ingress_ifindex;
    uint32_t rx_queue_index;
    uint32_t egress_ifindex;
};
static long (*const redirect_map)(const void *map, uint64_t key, uint64_t flags) = (void *)BPF_FUNC_redirect_map;

/* Numbers are lengths of arrays that pointers point to: as the loader, libbpf, reads maps (btf). */
struct {
    int (*type)[BPF_MAP_TYPE_XSKMAP];
    int (*max_entries)[QUEUES_MAX];
    uint32_t *key;
    uint32_t *value;
} xsks_map SECTION(".maps");

const volatile struct cw_xdp_words words = {.magic = CW_XDP_MAGIC};

const unsigned char terms[] SECTION("license") = "BSD";

static inline uint32_t read_be16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static inline uint32_t read_be32(const uint8_t *at)
{
    return read_be16(at) << 16 | read_be16(at + 2);
}

static inline int is_own_port(uint32_t port)
{
    return port - words.udp_port < words.udp_port_count;
}

/* Neither fragments nor options. */
static inline int is_ours_v4(const uint8_t *at)
{
    if (read_be16(at + 12) != 0x0800 || at[14] != 0x45 || at[23] != 17 || (read_be16(at + 20) & 0x3fff) != 0) {
        return 0;
    }
    uint32_t to = read_be32(at + 30), port = read_be16(at + 36);
    return to == words.ip[3] ? is_own_port(port) : to >> 28 == 0xe && port == words.group_port;
}

/* No extension headers; groups are those of jobs, ff15::/16. */
static inline int is_ours_v6(const uint8_t *at)
{
    if (read_be16(at + 12) != 0x86dd || at[14] >> 4 != 6 || at[20] != 17) {
        return 0;
    }
    uint32_t port = read_be16(at + 56);
    if (read_be16(at + 38) == 0xff15) {
        return port == words.group_port;
    }
    return read_be32(at + 38) == words.ip[0] && read_be32(at + 42) == words.ip[1] &&
           read_be32(at + 46) == words.ip[2] && read_be32(at + 50) == words.ip[3] && is_own_port(port);
}

SECTION("xdp") int causeway_xdp(struct xdp_md *context)
{
    const uint8_t *at = (const uint8_t *)(long)context->data, *end = (const uint8_t *)(long)context->data_end;
    if (at + 42 > end) { /* Ethernet, IPv4 and UDP headers */
        return XDP_PASS;
    }
    int is_ours;
    if (!words.is_v6) {
        is_ours = is_ours_v4(at);
    } else if (at + 62 > end) { /* ... IPv6 */
        return XDP_PASS;
    } else {
        is_ours = is_ours_v6(at);
    }
    return is_ours ? (int)redirect_map(&xsks_map, context->rx_queue_index, XDP_PASS) : XDP_PASS;
}
