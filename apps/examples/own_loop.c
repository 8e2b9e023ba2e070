/* An epoll loop of the application: it drives Causeway, a timer and a socket, without a thread and without spinning.
 * Two processes put a number into each other's memory with each tick of their timers. C, C++:
 * cc own_loop.c $(pkg-config --cflags --libs causeway)
 *
 * usage: own_loop [PORT PORT]      two ports as struct cw_host_config has them (sockets at localhost) */
#include <causeway/host.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICKS = 20, TICK_NS = 2000000, EVENTS = 16 };

static void check(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "own_loop: %s\n", what);
        exit(1);
    }
}

static void swap(int socket, void *data, size_t bytes) /* ours for theirs */
{
    check(write(socket, data, bytes) > 0 && read(socket, data, bytes) > 0, "the other process has gone");
}

static void watch(int set, int descriptor)
{
    struct epoll_event event = {EPOLLIN, {0}};
    event.data.fd = descriptor;
    check(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl fails");
}

/* epoll_wait counts in milliseconds; epoll_pwait2 (Linux 5.11) takes nanoseconds. */
static int milliseconds(uint64_t timeout_ns)
{
    return timeout_ns / 1000000 < INT_MAX ? (int)((timeout_ns + 999999) / 1000000) : -1; /* none */
}

/* Takes all events; returns how many puts have ended, ours at the other process and theirs here. */
static unsigned events_receive(struct cw_loop *loop)
{
    struct cw_event events[EVENTS];
    unsigned ended = 0;
    for (uint32_t count; (count = cw_loop_poll(loop, events, EVENTS)) > 0;) {
        for (uint32_t i = 0; i < count; i++) {
            /* the other process closes when both are done: we may learn that before we read it from the socket */
            check(events[i].status == CW_OK || events[i].kind == CW_EVENT_PEER_DOWN, cw_status_text(events[i].status));
            ended += events[i].kind == CW_EVENT_PUT || events[i].kind == CW_EVENT_COMPLETE;
        }
    }
    return ended;
}

static void serve(struct cw_loop *loop, struct cw_put *put, int timer, int control)
{
    int set = epoll_create1(EPOLL_CLOEXEC), descriptor = -1;
    char error[CW_ERROR_TEXT_BYTES] = "", done = 0;
    check(cw_loop_descriptor(loop, &descriptor, error, sizeof(error)) == CW_OK, error);
    watch(set, descriptor);
    watch(set, timer);
    watch(set, control);
    uint64_t tick = 0, ticks;
    bool others_done = false;
    for (unsigned ended = 0; ended < 2 * TICKS || !others_done;) {
        unsigned now = events_receive(loop);
        ended += now;
        if (now > 0 && ended == 2 * TICKS) {
            check(write(control, &done, 1) == 1, "the other process has gone");
            continue; /* that process may be done, too, and close: there may be nothing to wait for */
        }
        struct epoll_event ready;
        if (epoll_wait(set, &ready, 1, milliseconds(cw_loop_arm(loop))) < 1 || ready.data.fd == descriptor) {
            continue; /* Causeway's turn */
        }
        if (ready.data.fd == control) {
            check(read(control, &done, 1) == 1, "the other process has gone");
            others_done = true;
        } else if (read(timer, &ticks, sizeof(ticks)) > 0 && tick < TICKS) {
            put->offset = tick++ * sizeof(tick);
            put->source.contiguous.data = &tick; /* so few bytes are copied by the call */
            put->source.contiguous.bytes = sizeof(tick);
            check(cw_loop_put(loop, put) == CW_OK, "the put is refused");
        }
    }
}

int main(int argc, char **argv)
{
    static uint64_t memory[TICKS];
    static struct cw_put put; /* all zero: on lane 0, from one piece of memory */
    char card[CW_CARD_BYTES] = "", error[CW_ERROR_TEXT_BYTES] = "";
    int control[2], status = 0; /* by which the two get to know each other */
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, control) == 0, "no socket");
    bool is_parent = fork() != 0;
    close(control[!is_parent]);
    struct cw_host_config config;
    struct cw_host *host;
    cw_host_config_init(&config);
    config.port = argc == 3 ? argv[is_parent ? 1 : 2] : "udp:localhost";
    config.endpoint.job_key[0] = 7;          /* in real use: 16 random bytes that only the two have */
    config.loop.fallback = CW_FALLBACK_NONE; /* no thread: the epoll loop is all */
    check(cw_host_open(&config, &host, error, sizeof(error)) == CW_OK, error);
    check(cw_host_register(host, memory, sizeof(memory), CW_REGION_WRITE, &put.region) == CW_OK, "no region");
    cw_host_card(host, card);
    swap(control[is_parent], card, sizeof(card));
    swap(control[is_parent], &put.region, sizeof(put.region));
    check(cw_host_peer(host, card, &put.peer, error, sizeof(error)) == CW_OK, error);
    put.flags = CW_SIGNAL;
    struct itimerspec every = {{0, TICK_NS}, {0, TICK_NS}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    check(timer >= 0 && timerfd_settime(timer, 0, &every, NULL) == 0, "no timer");
    serve(cw_host_loop(host), &put, timer, control[is_parent]);
    for (uint64_t i = 0; i < TICKS; i++) {
        check(memory[i] == i + 1, "a number is wrong");
    }
    printf("%s: %d ticks, %d puts\n", is_parent ? "parent" : "child", TICKS, TICKS);
    cw_host_close(host);
    check(!is_parent || (wait(&status) > 0 && status == 0), "the child has failed");
    return 0;
}
