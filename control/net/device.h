/* device: a NIC of a rank's own, as CAUSEWAY_TRANSPORT names it, and whether this process can have it.
 *
 *    DEVICE[,driver arguments][,ip=ADDRESS/PREFIX][,gateway=ADDRESS][,mtu=BYTES]
 *
 * DEVICE is one of
 *    0000:03:00.0               a PCI address, of a NIC or a virtual function, as lspci -D lists them
 *    52:54:00:12:34:56          a MAC address: of an interface whose driver the kernel and DPDK share (mlx5, mana)
 *    net_tap0, net_memif0, ...  a virtual device of DPDK: its driver's name and a number
 * and may stand behind "device:". In the text, {rank} is the rank's number in the job, and {local} its number among the
 * ranks of its host. With {local}, each rank gets a virtual function of its own: 0000:03:02.{local}.
 *
 * Without ip= the address is the IPv6 link-local one that the MAC address makes (RFC 4291, appendix A): hosts on one
 * network need no configuration.
 *
 * Order of calls: cw_device_read, cw_device_check; then dataplane/port/ethdev.h opens it. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/net/net.h"
#include "dataplane/ip.h"

enum { CW_DEVICE_NAME_BYTES = 64, CW_DEVICE_ARGUMENTS_BYTES = 400, CW_DEVICE_TEXT_BYTES = 512 };

#define CW_DEVICE_WORDS \
    "a PCI address (0000:03:00.0), a MAC address (52:54:00:12:34:56) or a device of DPDK (net_tap0,iface=x)"

struct cw_device {
    char name[CW_DEVICE_NAME_BYTES]; /* PCI address in full, or the virtual device; "": it is found by `mac` */
    char arguments[CW_DEVICE_ARGUMENTS_BYTES]; /* the driver's; "": none */
    uint8_t mac[6];                            /* of a device that is named by it */
    bool is_pci;
    bool is_by_mac;
    bool is_local;        /* the text contains {local}, and the number was not known */
    struct cw_ip ip;      /* none: the link-local one */
    uint8_t bits;         /* of its subnet, as cw_ip_shares counts them */
    struct cw_ip gateway; /* none */
    uint16_t mtu_bytes;   /* 0: the default */
};

/* Whether the text names a device, and no interface, address or subnet; the text after the name is not checked. */
bool cw_device_is_named(const char *text);

/* Reads the text for a rank; local: its number on its host, -1: not known yet. CW_OK, or CW_ERROR_ARGUMENT with a line
 * in `error`. */
int cw_device_read(const char *text, uint32_t rank, int32_t local, struct cw_device *device, char *error,
                   size_t error_bytes);

/* The address that a MAC address makes: fe80::, and the MAC address with ff:fe in its middle and its universal bit
 * inverted. */
struct cw_ip cw_device_link_local(const uint8_t mac[6]);

/* The address that it is asked for: `ip` as it is, an MTU in any case. */
struct cw_net_address cw_device_address(const struct cw_device *device);

/* How a device gets its memory, which follows from the kernel's driver that has it. */
struct cw_device_access {
    bool physical;   /* it reads physical addresses (uio, vfio without an IOMMU): huge pages are needed, and root */
    char driver[32]; /* of the kernel: "vfio-pci"; "": none, of a virtual device */
    char pci[16];    /* the PCI address; "": a virtual device */
};

/* Whether this process can use the device, according to the kernel's files below `root` ("": this machine's): it
 * exists, its driver allows use by processes, its IOMMU group may be opened and no other process uses it, and huge
 * pages are free where needed. CW_OK, with `access`; CW_ERROR_NOT_FOUND, CW_ERROR_UNSUPPORTED, CW_ERROR_PERMISSION,
 * CW_ERROR_BUSY with a line in `error`: the problem, its place and the fix. */
int cw_device_check(const struct cw_device *device, const char *root, struct cw_device_access *access, char *error,
                    size_t error_bytes);

/* Bytes of free huge pages, by the same files. */
uint64_t cw_device_huge_bytes(const char *root);
