#include "control/net/netlink.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/status.h"

enum { PIECE_BYTES = 32768 }; /* the size of a piece from the kernel */

const struct rtattr *cw_netlink_attribute(const uint8_t **at, const uint8_t *end)
{
    const struct rtattr *attribute = (const struct rtattr *)*at;
    size_t left = *at < end ? (size_t)(end - *at) : 0;
    if (left < sizeof(*attribute) || attribute->rta_len < sizeof(*attribute) || attribute->rta_len > left) {
        return NULL;
    }
    size_t length = RTA_ALIGN((size_t)attribute->rta_len);
    *at += length < left ? length : left;
    return attribute;
}

int cw_netlink_piece(const void *piece, size_t bytes, uint16_t type, cw_netlink_handler handle, void *context)
{
    const uint8_t *at = piece;
    size_t left = bytes;
    int status = CW_OK;
    while (status == CW_OK && left >= sizeof(struct nlmsghdr)) {
        const struct nlmsghdr *message = (const struct nlmsghdr *)at;
        if (message->nlmsg_len < sizeof(*message) || message->nlmsg_len > left) {
            return CW_ERROR_SYSTEM;
        }
        if (message->nlmsg_type == NLMSG_DONE) {
            return CW_ERROR_NOT_FOUND;
        }
        if (message->nlmsg_type != type) {
            return CW_ERROR_SYSTEM;
        }
        status = handle(context, message);
        size_t length = NLMSG_ALIGN((size_t)message->nlmsg_len);
        length = length < left ? length : left;
        left -= length;
        at += length;
    }
    return status != CW_OK || left == 0 ? status : CW_ERROR_SYSTEM;
}

void cw_netlink_dump(const void *request, size_t request_bytes, uint16_t type, cw_netlink_handler handle, void *context)
{
    uint8_t *piece = malloc(PIECE_BYTES);
    int file = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    bool goes_on = piece != NULL && file >= 0 && send(file, request, request_bytes, 0) == (ssize_t)request_bytes;
    while (goes_on) {
        ssize_t got = recv(file, piece, PIECE_BYTES, 0);
        goes_on = got > 0 && cw_netlink_piece(piece, (size_t)got, type, handle, context) == CW_OK;
    }
    if (file >= 0) {
        close(file);
    }
    free(piece);
}
