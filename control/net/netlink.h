/* netlink: the kernel's answers about routes, neighbours and addresses (rtnetlink(7)), as bytes. Thread: any. */
#pragma once

#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

/* The attribute at *at, which moves behind it; NULL: the list has ended, or is invalid. */
const struct rtattr *cw_netlink_attribute(const uint8_t **at, const uint8_t *end);

/* Takes one message. CW_OK: there may be more; anything else ends it. */
typedef int (*cw_netlink_handler)(void *context, const struct nlmsghdr *message);

/* Takes the messages of one piece of a dump, of this type. CW_OK: more pieces follow; CW_ERROR_NOT_FOUND: the dump is
 * complete; CW_ERROR_SYSTEM: invalid piece; or the result of `handle`. */
int cw_netlink_piece(const void *piece, size_t bytes, uint16_t type, cw_netlink_handler handle, void *context);

/* Requests a dump, and handles its messages until it ends; messages that the kernel does not send are missing. */
void cw_netlink_dump(const void *request, size_t request_bytes, uint16_t type, cw_netlink_handler handle,
                     void *context);
