/* Names of hosts in the texts of host.h. getaddrinfo(3) resolves them: it reads files, and may ask a server for some
 * seconds. So the thread that makes the call resolves, and never as owner of an endpoint.
 *
 * Thread: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum {
    CW_NAME_BYTES = 254, /* of a name, with its zero byte (RFC 1035: 253 characters) */
    CW_NAME_ADDRESSES_MAX = 16,
};

/* A host in a text: an address or a name. */
struct cw_name {
    struct cw_ip ip;          /* none: there is a name */
    char text[CW_NAME_BYTES]; /* the name; "": there is an address */
};

enum cw_name_family { CW_NAME_ANY, CW_NAME_IPV4, CW_NAME_IPV6 };

/* Reads the host at the beginning of a text: "10.0.0.1", "[fd77::1]", "node7". Returns the rest of the text; NULL: it
 * begins with none of these. */
const char *cw_name_read(const char *text, struct cw_name *name);

/* The addresses of a host, in the order in which the system prefers them; that of a host that is an address, of either
 * family. CW_OK, and *count is at least 1; CW_ERROR_NOT_FOUND with one line in `error`: the name, the reason, and the
 * remedy. */
int cw_name_resolve(const struct cw_name *name, enum cw_name_family family, struct cw_ip ips[CW_NAME_ADDRESSES_MAX],
                    uint32_t *count, char *error, size_t error_bytes);
