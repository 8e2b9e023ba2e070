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

SECTION("xdp") int causeway_xdp(struct xdp_md *context)
{
    const uint8_t *at = (const uint8_t *)(long)context->data;
    if (at + 42 > (const uint8_t *)(long)context->data_end) { /* Ethernet, IPv4 and UDP headers */
        return XDP_PASS;
    }
    if (read_be16(at + 12) != 0x0800 || at[14] != 0x45 || at[23] != 17 || (read_be16(at + 20) & 0x3fff) != 0) {
        return XDP_PASS;
    }
    uint32_t to = read_be16(at + 30) << 16 | read_be16(at + 32), port = read_be16(at + 36);
    int is_ours =
        to == words.ipv4 ? port - words.udp_port < words.udp_port_count : to >> 28 == 0xe && port == words.group_port;
    return is_ours ? (int)redirect_map(&xsks_map, context->rx_queue_index, XDP_PASS) : XDP_PASS;
}
