/* address: the addresses of this host that others may use. getifaddrs(3) lists all addresses, also those for which the
 * kernel does not answer yet, or not any more: RTM_GETADDR reports their state (RFC 4862). Thread: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum cw_address_state {
    CW_ADDRESS_PREFERRED = 0,
    CW_ADDRESS_DEPRECATED, /* answers, but new connections should use another one */
    CW_ADDRESS_UNUSABLE,   /* not yet known to be unique (tentative), or another host has it */
};

struct cw_address {
    struct cw_ip ip;
    uint32_t interface; /* index */
    enum cw_address_state state;
};

/* Those of this host that are not preferred: at most `count_max`, returns how many. An address whose state the kernel
 * does not report counts as preferred. */
uint32_t cw_addresses_read(struct cw_address *addresses, uint32_t count_max);
/* Of the address of an interface. */
enum cw_address_state cw_address_state(const struct cw_address *addresses, uint32_t count, uint32_t interface,
                                       const struct cw_ip *ip);

/* The same of a piece of the kernel's answer, for tests: appends. CW_OK: more follows; CW_ERROR_NOT_FOUND: that was
 * all; CW_ERROR_SYSTEM: it is none. */
int cw_addresses_parse(const void *piece, size_t bytes, struct cw_address *addresses, uint32_t count_max,
                       uint32_t *count);
