/* net: chooses the address of a host that the ranks of other hosts use, when no setting names one.
 *
 * Each rank offers the addresses of its host; all ranks choose from all offers by the same rule, so that all know where
 * all are without another word:
 *   1. An address that several hosts have (a bridge of containers, 172.17.0.1) leads nowhere, and is out.
 *   2. A subnet in which every host has an address. Order: the best kind of interface (a NIC before a virtual one
 *      before a tunnel), the fastest, the largest MTU, the one of the first rank's default route, IPv4 (shorter
 *      headers), the first in the first rank's list.
 *   3. None: each host's address on its default route, else its first one, of IPv4 if each host has one that leads
 *      somewhere; routers are between.
 * CAUSEWAY_TRANSPORT names the interface ("eth0"), address ("10.1.0.7") or subnet ("10.1.0.0/16", "fd77::/64") to
 * choose from, and may name the transport (transport.h) in front of it. Ranks may have different values.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum { CW_NET_ADDRESSES = 8, CW_NET_TEXT_BYTES = 160 };

/* The kind of an interface; a larger number is better. A VLAN, bond or bridge on a NIC counts as a NIC. */
enum cw_net_kind {
    CW_NET_TUNNEL = 0,  /* tun, tap, WireGuard, PPP, and others from point to point */
    CW_NET_VIRTUAL = 1, /* veth, VXLAN, and others that end in no NIC of this namespace */
    CW_NET_NIC = 2,
};

struct cw_net_address {
    struct cw_ip ip;
    uint32_t speed_mbps; /* of its interface; 0: not known. Virtual ones report any rate */
    uint16_t mtu_bytes;
    uint8_t bits;           /* of its subnet, as cw_ip_shares counts them */
    uint8_t is_default : 1; /* the default route leaves by its interface */
    uint8_t kind : 7;       /* enum cw_net_kind */
};

/* Sent by a rank to all others, unconverted: all hosts have the same byte order. */
struct cw_net_offer {
    uint8_t network[8]; /* the same for processes that share their interfaces */
    uint8_t transport;  /* that CAUSEWAY_TRANSPORT names (transport.h) */
    uint8_t reserved[3];
    uint8_t device[8]; /* the same for ranks that name the same device; zero: each has another one, or none */
    uint32_t count;
    struct cw_net_address addresses[CW_NET_ADDRESSES];
};

/* The addresses of this host, of interfaces that are up, except loopback, addresses for which the kernel does not
 * answer yet, and addresses that another host has. Deprecated addresses are listed if an interface has no other of the
 * kind. CW_OK; CW_ERROR_ARGUMENT, CW_ERROR_NOT_FOUND: CAUSEWAY_TRANSPORT is invalid, or leaves no address, with a line
 * in `error`; CW_ERROR_SYSTEM. A host without any offers none. */
int cw_net_offer_make(struct cw_net_offer *offer, char *error, size_t error_bytes);

/* An identifier of this machine and of the namespace of its interfaces. CW_OK; CW_ERROR_SYSTEM. */
int cw_net_identify(uint8_t network[8]);

/* The address in `offers[own]` that the others use. Its MTU is the minimum over all hosts in the subnet, so that all of
 * them can receive a multicast. False: there is none. `why`: the reason, for users. */
bool cw_net_choose(const struct cw_net_offer *offers, uint32_t count, uint32_t own, struct cw_net_address *chosen,
                   char why[CW_NET_TEXT_BYTES]);

/* The name of the interface that has the address, "?" if none has. */
void cw_net_interface(const struct cw_ip *ip, char *name, size_t bytes);

/* CAUSEWAY_PORTS: the UDP ports that may be used; 0, 0: any. CW_OK, or CW_ERROR_ARGUMENT with a line in `error`. */
int cw_net_ports(uint16_t *first, uint16_t *last, char *error, size_t error_bytes);
