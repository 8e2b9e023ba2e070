#include "dataplane/ip.h"

#include <arpa/inet.h>

void cw_ip_write(const struct cw_ip *ip, char text[CW_IP_TEXT_BYTES])
{
    bool is_v4 = cw_ip_is_v4(ip);
    (void)inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? ip->bytes + 12 : ip->bytes, text, CW_IP_TEXT_BYTES);
}

bool cw_ip_read(const char *text, struct cw_ip *ip)
{
    struct cw_ip read = cw_ip_v4(0);
    if (inet_pton(AF_INET, text, read.bytes + 12) != 1 && inet_pton(AF_INET6, text, read.bytes) != 1) {
        return false;
    }
    *ip = read;
    return true;
}
