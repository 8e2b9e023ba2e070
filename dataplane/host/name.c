#include "dataplane/host/name.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* A name has a letter: getaddrinfo takes "1" for the address 0.0.0.1. */
static bool is_name(const char *text)
{
    return strspn(text, LETTERS "0123456789-._") == strlen(text) && strpbrk(text, LETTERS) != NULL;
}

const char *cw_name_read(const char *text, struct cw_name *name)
{
    struct cw_name read = {.text = ""};
    bool is_v6 = text[0] == '[';
    const char *begin = text + is_v6, *end = begin + strcspn(begin, is_v6 ? "]" : ":/");
    if ((size_t)(end - begin) >= sizeof(read.text) || (is_v6 && *end != ']')) {
        return NULL;
    }
    memcpy(read.text, begin, (size_t)(end - begin));
    if (cw_ip_read(read.text, &read.ip) && cw_ip_is_v4(&read.ip) != is_v6) {
        read.text[0] = '\0';
    } else if (is_v6 || !is_name(read.text)) {
        return NULL;
    } else {
        read.ip = (struct cw_ip){.bytes = {0}};
    }
    *name = read;
    return end + is_v6;
}

/* False: an address that has a meaning only with its interface (fe80::). */
static bool address_read(const struct sockaddr *from, struct cw_ip *ip)
{
    if (from->sa_family == AF_INET) {
        *ip = cw_ip_v4(ntohl(((const struct sockaddr_in *)(const void *)from)->sin_addr.s_addr));
        return true;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from;
    memcpy(ip->bytes, v6->sin6_addr.s6_addr, sizeof(ip->bytes));
    return from->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

int cw_name_resolve(const struct cw_name *name, enum cw_name_family family, struct cw_ip ips[CW_NAME_ADDRESSES_MAX],
                    uint32_t *count, char *error, size_t error_bytes)
{
    static const int families[] = {AF_UNSPEC, AF_INET, AF_INET6};
    static const char *const kinds[] = {"an IP", "an IPv4", "an IPv6"};
    const struct addrinfo wanted = {.ai_family = families[family], .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    uint32_t filled = 0;
    if (name->text[0] == '\0') {
        ips[0] = name->ip;
        *count = 1;
        return CW_OK;
    }
    int failed = getaddrinfo(name->text, NULL, &wanted, &found);
    const char *reason = failed == 0            ? "it has addresses of one link only"
                         : failed == EAI_SYSTEM ? strerror(errno)
                                                : gai_strerror(failed);
    for (const struct addrinfo *at = found; failed == 0 && at != NULL && filled < CW_NAME_ADDRESSES_MAX;
         at = at->ai_next) {
        filled += address_read(at->ai_addr, &ips[filled]);
    }
    if (failed == 0) {
        freeaddrinfo(found);
    }
    if (filled > 0) {
        *count = filled;
        return CW_OK;
    }
    return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                         "host name %s: it does not resolve to %s address: %s. Fix: correct the name, add it to "
                         "/etc/hosts or DNS (getent ahosts %s), or give an IP address",
                         name->text, kinds[family], reason, name->text);
}
