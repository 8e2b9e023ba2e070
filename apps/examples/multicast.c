/* Reliable multicast: one process sends to two others, each packet sent once. C, C++: cc multicast.c $(pkg-config
 * --cflags --libs causeway)
 *
 * usage: multicast [PORT PORT PORT]      three ports as struct cw_host_config has them (sockets at 127.0.0.1) */
#include <causeway/host.h>
#include <causeway/loop_group.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEMBERS = 3, MESSAGES = 1000, BYTES = 1000 };

static void check(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "multicast: %s\n", what);
        exit(1);
    }
}

/* All get what each one gives, by way of member 0: any other way to exchange a few bytes would do. */
static void gather(int self, int sockets[MEMBERS][2], const void *own, void *all, size_t bytes)
{
    char *place = (char *)all;
    memcpy(place + (size_t)self * bytes, own, bytes);
    for (int member = 1; member < MEMBERS && self == 0; member++) {
        check(read(sockets[member][0], place + (size_t)member * bytes, bytes) == (ssize_t)bytes, "a member has gone");
    }
    for (int member = 1; member < MEMBERS && self == 0; member++) {
        check(write(sockets[member][0], all, MEMBERS * bytes) > 0, "a member has gone");
    }
    if (self != 0) {
        check(write(sockets[self][1], own, bytes) > 0, "member 0 has gone");
        check(recv(sockets[self][1], all, MEMBERS * bytes, MSG_WAITALL) > 0, "member 0 has gone");
    }
}

static void message_write(unsigned number, unsigned char message[BYTES])
{
    for (unsigned i = 0; i < BYTES; i++) {
        message[i] = (unsigned char)(number * 31 + i);
    }
}

/* The group's context counts messages: complete ones at member 0, received ones at all others. */
static void message_receive(void *context, uint32_t member, uint32_t lane_tag, const void *data, uint64_t bytes)
{
    unsigned char expected[BYTES];
    (void)member, (void)lane_tag;
    message_write((*(unsigned *)context)++, expected);
    check(bytes == BYTES && memcmp(data, expected, BYTES) == 0, "a message is not the next one");
}

static void message_complete(void *context, uint64_t put_context, int status)
{
    (void)put_context;
    check(status == CW_OK, "a message has not come to all");
    ++*(unsigned *)context;
}

/* Until this number of messages is counted. */
static void wait_for(struct cw_loop *loop, const unsigned *count, unsigned most)
{
    struct cw_event event;
    while (*count < most) { /* the functions above are called meanwhile */
        check(cw_loop_wait(loop, &event, 1, 10000000000) == 1, "nothing comes");
    }
}

static void send_all(struct cw_loop *loop, struct cw_mcast_group *group, const unsigned *complete)
{
    static unsigned char messages[MESSAGES][BYTES];
    for (unsigned number = 0; number < MESSAGES; number++) {
        struct cw_mcast_put put;
        memset(&put, 0, sizeof(put));
        message_write(number, messages[number]);
        put.data = messages[number];
        put.bytes = BYTES;
        put.flags = CW_MCAST_SIGNAL;
        while (cw_loop_group_send(loop, group, &put) == CW_ERROR_AGAIN) { /* the queue is full */
            wait_for(loop, complete, *complete + 1);
        }
    }
    wait_for(loop, complete, MESSAGES);
    printf("member 0: all have %u messages\n", *complete);
}

int main(int argc, char **argv)
{
    int self = 0, sockets[MEMBERS][2];
    char card[CW_CARD_BYTES] = "", cards[MEMBERS][CW_CARD_BYTES], done = 0, all_done[MEMBERS];
    char error[CW_ERROR_TEXT_BYTES] = "";
    uint32_t peers[MEMBERS] = {0};
    for (int member = 1; member < MEMBERS; member++) {
        check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[member]) == 0, "no socket");
    }
    for (int member = 1; member < MEMBERS && self == 0; member++) {
        self = fork() == 0 ? member : 0;
    }
    struct cw_host_config config;
    struct cw_host *host;
    cw_host_config_init(&config);
    config.port = argc == 1 + MEMBERS ? argv[1 + self] : "udp:127.0.0.1";
    config.endpoint.job_key[0] = 7; /* in real use: 16 random bytes that only the members have */
    check(cw_host_open(&config, &host, error, sizeof(error)) == CW_OK, error);
    struct cw_loop *loop = cw_host_loop(host);
    cw_host_card(host, card);
    gather(self, sockets, card, cards, sizeof(card));
    for (int member = 0; member < MEMBERS; member++) {
        check(member == self || cw_host_peer(host, cards[member], &peers[member], error, sizeof(error)) == CW_OK,
              error);
    }
    struct cw_mcast_config multicast;
    struct cw_mcast *mcast;
    cw_mcast_config_init(&multicast);
    multicast.handler.message = message_receive;
    multicast.handler.complete = message_complete;
    check(cw_loop_mcast_create(loop, &multicast, &mcast, error, sizeof(error)) == CW_OK, error);
    struct cw_mcast_group_config about;
    struct cw_mcast_group *group;
    unsigned count = 0;
    memset(&about, 0, sizeof(about));
    about.id = 12345; /* in real use: 8 random bytes that no group had before */
    about.member_count = MEMBERS;
    about.self = (uint32_t)self;
    about.peers = peers;
    about.ipv4 = 0xef010203; /* 239.1.2.3 */
    about.epoch = 1;
    about.context = &count;
    check(cw_loop_group_open(loop, mcast, &about, &group, error, sizeof(error)) == CW_OK, error);
    if (self == 0) {
        send_all(loop, group, &count);
    } else {
        wait_for(loop, &count, MESSAGES);
        printf("member %d: %u messages, each once and in order\n", self, count);
    }
    gather(self, sockets, &done, all_done, 1); /* no process leaves while another needs it */
    cw_loop_mcast_destroy(loop, mcast);
    cw_host_close(host);
    int status = 0;
    while (self == 0 && wait(&status) > 0) {
        check(status == 0, "a member has failed");
    }
    return 0;
}
