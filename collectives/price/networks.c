/* Networks that come with the program. Their numbers are rounded and represent a kind of network; measured tables
 * replace them where available. */
#include <string.h>

#include "collectives/price/network.h"
#include "dataplane/limits.h"
#include "dataplane/status.h"

/* Gigabit Ethernet and a message-passing library over TCP, after the cluster of Barchet-Estefanel and Mounie 2004: some
 * 12 us a message, then 8.5 ns a byte; at sizes of a few frames the interrupt of each frame shows. */
#define GIGABIT_POINTS                                      \
    .count = 10, .points = {{0, 12e3, 4e3, 5e3},            \
                            {64, 12.5e3, 4.1e3, 5.2e3},     \
                            {256, 14.3e3, 4.5e3, 5.8e3},    \
                            {1024, 21e3, 6e3, 8.1e3},       \
                            {1460, 25e3, 7e3, 9.4e3},       \
                            {4096, 48e3, 12.2e3, 17.3e3},   \
                            {16384, 153e3, 36.8e3, 54.2e3}, \
                            {65536, 572e3, 135e3, 202e3},   \
                            {262144, 2.24e6, 528e3, 791e3}, \
                            {1048576, 8.93e6, 2.1e6, 3.15e6}}

/* 10 Gb/s Ethernet and TCP with offloads: 3 us a message, 0.85 ns a byte. */
#define TEN_GIGABIT_POINTS                                                                                     \
    .count = 6, .points = {{0, 3e3, 1.2e3, 1.4e3},    {1024, 4.2e3, 1.5e3, 1.9e3}, {8192, 11e3, 3.1e3, 4.4e3}, \
                           {65536, 60e3, 15e3, 22e3}, {262144, 229e3, 56e3, 83e3}, {1048576, 905e3, 220e3, 325e3}}

/* InfiniBand 4x over PCI-X, puts by remote direct memory access: the processor prepares a descriptor and sees a
 * notification, for any size. Two puts at the same time take much less than twice one up to 16 KiB (Tipparaju and
 * Nieplocha 2005, section 4.1): 2 ports. For longer messages two ports at full speed are more than that hardware
 * had. */
#define INFINIBAND_POINTS                                                                                 \
    .count = 6,                                                                                           \
    .points = {{0, 1.5e3, 0.8e3, 0.6e3},      {256, 1.9e3, 0.8e3, 0.6e3},    {2048, 4.1e3, 0.8e3, 0.6e3}, \
               {16384, 20.8e3, 0.8e3, 0.6e3}, {131072, 155e3, 0.8e3, 0.6e3}, {1048576, 1.235e6, 0.8e3, 0.6e3}}

/* 1 Gb/s and nothing else, as the cost model of Matsuda et al. 2006, Table 1, has it. */
#define PURE_GIGABIT_POINTS .count = 2, .points = {{0, 0, 0, 0}, {1ull << 30, (double)(1ull << 30) * 8, 0, 0}}

static const struct {
    const char *name;
    const char *summary;
    struct cw_network network;
} networks[] = {
    {"gigabit",
     "1 Gb/s Ethernet and TCP: 50 us, 12 us a message",
     {.paths = {{.latency_ns = 50e3, GIGABIT_POINTS}, {.latency_ns = 50e3, GIGABIT_POINTS}},
      .ports = 1,
      .copy_ns_per_byte = 0.5,
      .reduce_ns_per_byte = 1.0,
      .contention = 0.4}},
    {"10g",
     "10 Gb/s Ethernet and TCP: 15 us, 3 us a message",
     {.paths = {{.latency_ns = 15e3, TEN_GIGABIT_POINTS}, {.latency_ns = 15e3, TEN_GIGABIT_POINTS}},
      .ports = 1,
      .copy_ns_per_byte = 0.1,
      .reduce_ns_per_byte = 0.25,
      .contention = 0.4}},
    {"wan",
     "clusters of 1 Gb/s Ethernet, 10 ms apart, 10 Gb/s between them",
     {.paths = {{.latency_ns = 50e3, GIGABIT_POINTS}, {.latency_ns = 10e6, GIGABIT_POINTS}},
      .ports = 1,
      .wan_bytes_per_ns = 1.25,
      .wan_messages = CW_CREDIT_FAR_MAX,
      .copy_ns_per_byte = 0.5,
      .reduce_ns_per_byte = 1.0,
      .contention = 0.4}},
    {"infiniband-2005",
     "InfiniBand 4x over PCI-X: 4 us, two messages at a time",
     {.paths = {{.latency_ns = 4e3, INFINIBAND_POINTS}, {.latency_ns = 4e3, INFINIBAND_POINTS}},
      .ports = 2,
      .copy_ns_per_byte = 0.4,
      .reduce_ns_per_byte = 0.8,
      .contention = 0.4}},
    {"ideal-004",
     "clusters of 1 Gb/s without latency or overhead, 10 ms apart, 10 Gb/s between them",
     {.paths = {{.latency_ns = 0, PURE_GIGABIT_POINTS}, {.latency_ns = 10e6, PURE_GIGABIT_POINTS}},
      .ports = 1,
      .wan_bytes_per_ns = 1.25,
      .contention = 0.4}},
};

enum { NETWORKS = sizeof(networks) / sizeof(networks[0]) };

static uint32_t index_of(const char *name)
{
    uint32_t i = 0;
    while (i < NETWORKS && strcmp(networks[i].name, name) != 0) {
        i++;
    }
    return i;
}

const char *cw_network_name(uint32_t index)
{
    return index < NETWORKS ? networks[index].name : NULL;
}

const char *cw_network_summary(const char *name)
{
    uint32_t index = index_of(name);
    return index < NETWORKS ? networks[index].summary : NULL;
}

int cw_network_find(const char *name, struct cw_network *network)
{
    uint32_t index = index_of(name);
    if (index == NETWORKS) {
        return CW_ERROR_NOT_FOUND;
    }
    *network = networks[index].network;
    return CW_OK;
}
