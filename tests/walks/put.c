#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
/* One put between two processes to be walked, behind some that warm up; otherwise as apps/examples/put.c. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/host/host.h"

enum { WARM_UPS = 40 };

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

static void put_once(struct cw_host *host, const struct cw_put *put, bool is_target)
{
    struct cw_event event;
    check(is_target || cw_loop_put(cw_host_loop(host), put) == CW_OK, "the put is refused");
    do {
        check(cw_loop_wait(cw_host_loop(host), &event, 1, 10000000000) == 1, "nothing comes");
    } while (event.kind != (is_target ? CW_EVENT_PUT : CW_EVENT_COMPLETE));
}

int main(void)
{
    static char from[64], memory[sizeof(from)];
    char folder[] = "/tmp/put-XXXXXX", port[64], card[CW_CARD_BYTES], error[200] = "";
    int control[2];
    void (*record)(int on);
    *(void **)&record = dlsym(RTLD_DEFAULT, "walk_record");
    check(record != NULL, "started by walks.py");
    check(mkdtemp(folder) != NULL && socketpair(AF_UNIX, SOCK_STREAM, 0, control) == 0, "no folder or no socket");
    bool is_target = fork() != 0;
    close(control[!is_target]);
    snprintf(port, sizeof(port), "memif:%s/port,role=%s", folder, is_target ? "server" : "client");
    struct cw_host_config config;
    struct cw_host *host;
    struct cw_put put = {.source = {.contiguous = {.data = from, .bytes = sizeof(from)}}, .flags = CW_SIGNAL};
    cw_host_config_init(&config);
    config.port = port;
    config.endpoint.job_key[0] = 7;
    check(cw_host_open(&config, &host, error, sizeof(error)) == CW_OK, error);
    check(cw_host_register(host, memory, sizeof(memory), CW_REGION_WRITE, &put.region) == CW_OK, "no region");
    cw_host_card(host, card);
    swap(control[is_target], card, sizeof(card));
    swap(control[is_target], &put.region, sizeof(put.region));
    check(cw_host_peer(host, card, &put.peer, error, sizeof(error)) == CW_OK, error);
    for (int i = 0; i < WARM_UPS; i++) {
        put_once(host, &put, is_target);
    }
    swap(control[is_target], port, 1);
    record(1);
    put_once(host, &put, is_target);
    record(0);
    swap(control[is_target], port, 1);
    cw_host_close(host);
    rmdir(folder);
}
