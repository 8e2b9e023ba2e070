/* Two programs, on two hosts or one: they exchange their cards over TCP, then put into each other's memory. C, C++:
 * cc exchange.c $(pkg-config --cflags --libs causeway) -o exchange
 *
 * usage: exchange listen PORT              prints its TCP port (0: any)
 *        exchange connect HOST PORT        HOST: a name or an address of the first one's host */
#include <causeway/host.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 1000000, NAME_BYTES = 64 };

static void check(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "exchange: %s\n", what);
        exit(1);
    }
}

/* A TCP socket that is bound (host: NULL) or connected; -1: none. */
static int tcp_open(const char *host, const char *port, int family)
{
    struct addrinfo hints, *found = NULL;
    int made = -1, on = 1;
    memset(&hints, 0, sizeof(hints));
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = host == NULL ? AI_PASSIVE : 0;
    int failed = getaddrinfo(host, port, &hints, &found);
    check(failed == 0, gai_strerror(failed));
    for (struct addrinfo *at = found; at != NULL && made < 0; at = at->ai_next) {
        made = socket(at->ai_family, SOCK_STREAM, 0);
        setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if ((host == NULL ? bind : connect)(made, at->ai_addr, at->ai_addrlen) != 0) {
            close(made);
            made = -1;
        }
    }
    freeaddrinfo(found);
    return made;
}

/* The own end of a socket: its address as a port of Causeway, "udp:10.0.0.1" or "udp:[fd77::1]", and its TCP port. */
static void own_name(int tcp, char udp[NAME_BYTES + 8], char port[NAME_BYTES])
{
    struct sockaddr_storage own;
    socklen_t bytes = sizeof(own);
    char text[NAME_BYTES] = "", *address = text;
    check(getsockname(tcp, (struct sockaddr *)&own, &bytes) == 0 &&
              getnameinfo((struct sockaddr *)&own, bytes, text, NAME_BYTES, port, NAME_BYTES,
                          NI_NUMERICHOST | NI_NUMERICSERV) == 0,
          "the socket has no name");
    address += strncmp(text, "::ffff:", 7) == 0 ? 7 : 0; /* IPv4 by a socket for both */
    snprintf(udp, NAME_BYTES + 8, strchr(address, ':') != NULL ? "udp:[%s]" : "udp:%s", address);
}

static int tcp_accept(const char *wanted)
{
    char udp[NAME_BYTES + 8], port[NAME_BYTES];
    int listening = tcp_open(NULL, wanted, AF_INET6); /* takes IPv4, too */
    listening = listening >= 0 ? listening : tcp_open(NULL, wanted, AF_INET);
    check(listening >= 0 && listen(listening, 1) == 0, "the TCP port is taken");
    own_name(listening, udp, port);
    printf("listening at port %s\n", port);
    fflush(stdout);
    return accept(listening, NULL, NULL);
}

static unsigned char pattern(unsigned i, bool is_listener) /* the data that each side sends */
{
    return (unsigned char)(i * 31 + i / 256 + is_listener);
}

int main(int argc, char **argv)
{
    static unsigned char source[BYTES], memory[BYTES];
    static struct cw_put put; /* all zero: on lane 0, from one piece of memory, to the region's beginning */
    bool is_listener = argc == 3 && strcmp(argv[1], "listen") == 0;
    check(is_listener || (argc == 4 && strcmp(argv[1], "connect") == 0), "usage: listen PORT, or connect HOST PORT");
    int tcp = is_listener ? tcp_accept(argv[2]) : tcp_open(argv[2], argv[3], AF_UNSPEC);
    FILE *theirs = tcp >= 0 ? fdopen(tcp, "r") : NULL;
    check(theirs != NULL, "no TCP connection; start `exchange listen PORT` first");
    char udp[NAME_BYTES + 8], port[NAME_BYTES], card[CW_CARD_BYTES] = "", word[8], error[CW_ERROR_TEXT_BYTES] = "";
    unsigned long long region;
    struct cw_host_config config;
    struct cw_host *host;
    own_name(tcp, udp, port);
    cw_host_config_init(&config);
    config.port = udp;              /* any UDP port: the card has it */
    config.endpoint.job_key[0] = 7; /* in real use: 16 random bytes that only the two have */
    check(cw_host_open(&config, &host, error, sizeof(error)) == CW_OK, error);
    check(cw_host_register(host, memory, BYTES, CW_REGION_WRITE, &put.region) == CW_OK, "no region");
    cw_host_card(host, card);
    dprintf(tcp, "%s %llx\n", card, (unsigned long long)put.region);
    check(fscanf(theirs, "%79s %llx", card, &region) == 2, "the other side has gone"); /* CW_CARD_BYTES - 1 */
    check(cw_host_peer(host, card, &put.peer, error, sizeof(error)) == CW_OK, error);

    for (unsigned i = 0; i < BYTES; i++) {
        source[i] = pattern(i, is_listener);
    }
    put.region = region;
    put.source.contiguous.data = source;
    put.source.contiguous.bytes = BYTES;
    put.flags = CW_SIGNAL;
    check(cw_loop_put(cw_host_loop(host), &put) == CW_OK, "the put is refused");
    for (unsigned ended = 0; ended < 2;) { /* ours there, theirs here */
        struct cw_event event;
        check(cw_loop_wait(cw_host_loop(host), &event, 1, 10000000000) == 1, "nothing comes");
        check(event.status == CW_OK, cw_status_text(event.status));
        ended += event.kind == CW_EVENT_PUT || event.kind == CW_EVENT_COMPLETE;
    }
    for (unsigned i = 0; i < BYTES; i++) {
        check(memory[i] == pattern(i, !is_listener), "a byte is wrong");
    }
    printf("%d bytes of %s are right\n", BYTES, card);
    dprintf(tcp, "done\n"); /* no process leaves while the other waits for an acknowledgement */
    check(fscanf(theirs, "%7s", word) == 1, "the other side has gone");
    cw_host_close(host);
}
