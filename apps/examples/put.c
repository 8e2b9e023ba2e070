/* A notified put: a child writes into its parent's memory. C, C++: cc put.c $(pkg-config --cflags --libs causeway) */
#include <causeway/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void check(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "put: %s\n", what);
        exit(1);
    }
}

static void swap(int socket, void *data, size_t bytes) /* ours for theirs */
{
    check(write(socket, data, bytes) > 0 && read(socket, data, bytes) > 0, "the other side has gone");
}

int main(void)
{
    static char text[] = "bytes that arrive without a request", memory[sizeof(text)];
    char folder[] = "/tmp/put-XXXXXX", port[64], card[CW_CARD_BYTES], error[CW_ERROR_TEXT_BYTES] = "";
    int control[2]; /* by which they get to know each other */
    check(mkdtemp(folder) != NULL && socketpair(AF_UNIX, SOCK_STREAM, 0, control) == 0, "no folder or no socket");
    bool is_parent = fork() != 0;
    close(control[!is_parent]);
    snprintf(port, sizeof(port), "memif:%s/port,role=%s", folder, is_parent ? "server" : "client");
    struct cw_host_config config;
    struct cw_host *host;
    static struct cw_put put; /* all zero: on lane 0, from one piece of memory, to the region's beginning */
    cw_host_config_init(&config);
    config.port = port;
    config.endpoint.job_key[0] = 7; /* in real use: 16 random bytes that only the two have */
    check(cw_host_open(&config, &host, error, sizeof(error)) == CW_OK, error);
    check(cw_host_register(host, memory, sizeof(memory), CW_REGION_WRITE, &put.region) == CW_OK, "no region");
    cw_host_card(host, card);
    swap(control[is_parent], card, sizeof(card));
    swap(control[is_parent], &put.region, sizeof(put.region));
    check(cw_host_peer(host, card, &put.peer, error, sizeof(error)) == CW_OK, error);

    struct cw_event event;
    if (!is_parent) {
        put.source.contiguous.data = text;
        put.source.contiguous.bytes = sizeof(text);
        put.flags = CW_SIGNAL;
        check(cw_loop_put(cw_host_loop(host), &put) == CW_OK, "the put is refused");
    }
    do { /* sessions come up before */
        check(cw_loop_wait(cw_host_loop(host), &event, 1, 10000000000) == 1, "nothing comes");
    } while (event.kind != (is_parent ? CW_EVENT_PUT : CW_EVENT_COMPLETE));
    if (is_parent) {
        printf("%llu bytes: %s\n", (unsigned long long)event.bytes, memory);
    }
    swap(control[is_parent], port, 1); /* no process leaves while the other waits for an acknowledgement */
    cw_host_close(host);
    rmdir(folder); /* succeeds in the last process */
}
