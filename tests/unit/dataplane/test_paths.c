/* Paths between processes of a host: messages, gets and puts arrive whole, in one copy and in two; unregistered memory
 * is rejected; dead processes are reported. */
#include <sys/wait.h>

#include "dataplane/path/path.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { LONG_BYTES = 300001 };

/* One rank of two, and the events of its handler. */
struct rank {
    struct cw_paths *paths;
    uint32_t number;
    uint32_t messages;
    uint32_t arrived;
    uint32_t completed;
    int last_status;
    bool is_down;
    struct cw_registration registration; /* last one told */
};

static void message_receive(void *context, uint32_t from, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct rank *rank = context;
    assert_int_equal(from, 1 - rank->number);
    assert_int_equal(lane_tag, rank->messages);
    if (bytes == sizeof(rank->registration)) {
        memcpy(&rank->registration, data, sizeof(rank->registration));
    }
    rank->messages++;
}

static void arrival_receive(void *context, uint32_t from, uint32_t lane_tag)
{
    struct rank *rank = context;
    assert_int_equal(from, 1 - rank->number);
    assert_int_equal(lane_tag, 77);
    rank->arrived++;
}

static void completion_receive(void *context, uint64_t operation, int status)
{
    struct rank *rank = context;
    assert_int_equal(operation, 5);
    rank->completed++;
    rank->last_status = status;
}

static void down_receive(void *context, uint32_t from, int status)
{
    struct rank *rank = context;
    assert_int_equal(from, 1 - rank->number);
    assert_int_equal(status, CW_ERROR_PEER_FAILED);
    rank->is_down = true;
}

static void rank_open(struct rank *rank, uint32_t number, bool copy_twice)
{
    char error[200] = "";
    *rank = (struct rank){.number = number};
    struct cw_paths_config config = {
        .rank = number,
        .rank_count = 2,
        .host = "host",
        .nonce = 99 + number,
        .copy_twice = copy_twice,
        .stopped_timeout_ns = 1000000,
        .handler = {.context = rank,
                    .others = {rank, message_receive},
                    .arrived = arrival_receive,
                    .complete = completion_receive,
                    .down = down_receive},
    };
    assert_true_msg(cw_paths_create(&config, &rank->paths, error, sizeof(error)) == CW_OK, "%s", error);
}

/* Two processes that know each other; the child runs `child` and exits. */
static void pair_run(bool copy_twice, void (*parent)(struct rank *rank, pid_t child_pid),
                     void (*child)(struct rank *rank))
{
    int to_child[2], to_parent[2];
    char error[200] = "";
    struct rank rank;
    struct cw_path_card cards[2];
    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(to_parent), 0);
    pid_t pid = fork();
    uint32_t number = pid == 0 ? 1 : 0;
    rank_open(&rank, number, copy_twice);
    cw_paths_card(rank.paths, &cards[number]);
    int out = pid == 0 ? to_parent[1] : to_child[1], in = pid == 0 ? to_child[0] : to_parent[0];
    assert_int_equal(write(out, &cards[number], sizeof(cards[0])), sizeof(cards[0]));
    assert_int_equal(read(in, &cards[1 - number], sizeof(cards[0])), sizeof(cards[0]));
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(cw_paths_add(rank.paths, i, &cards[i], error, sizeof(error)), CW_OK);
    }
    if (pid == 0) {
        child(&rank);
        cw_paths_destroy(rank.paths);
        _exit(0);
    }
    parent(&rank, pid);
    int status;
    waitpid(pid, &status, 0);
    cw_paths_destroy(rank.paths);
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(to_parent[i]);
    }
}

static void send(struct rank *rank, uint32_t tag, const void *data, uint32_t bytes)
{
    int status;
    while ((status = cw_paths_send(rank->paths, 1 - rank->number, tag, data, bytes, NULL, 0, CW_ELEMENT_BYTES)) ==
           CW_ERROR_AGAIN) {
        cw_paths_poll(rank->paths);
    }
    assert_int_equal(status, CW_OK);
}

static void await(struct rank *rank, const uint32_t *counter, uint32_t wanted)
{
    while (*counter < wanted) {
        if (cw_paths_poll(rank->paths) == 0) {
            /* only who waits for room is not woken, and looks for itself */
            cw_paths_wait(rank->paths, 3600000000000, NULL, NULL);
        }
    }
}

static uint8_t byte_of(uint32_t i)
{
    return (uint8_t)(i * 13 + i / 251);
}

static uint8_t *memory_make(bool filled)
{
    uint8_t *memory = calloc(1, LONG_BYTES);
    assert_non_null(memory);
    for (uint32_t i = 0; filled && i < LONG_BYTES; i++) {
        memory[i] = byte_of(i);
    }
    return memory;
}

static void memory_check(const uint8_t *memory)
{
    for (uint32_t i = 0; i < LONG_BYTES; i++) {
        assert_int_equal(memory[i], byte_of(i));
    }
}

/* Thousands of messages, more than the ring holds, in order; then a get of the other's registered memory, and a put
 * into it. */
static void child_talks(struct rank *rank)
{
    static uint8_t out[5000];
    uint8_t *source = memory_make(true), *target = memory_make(false);
    struct cw_registration registration;
    uint32_t tag = 0;
    for (; tag < 3000; tag++) {
        send(rank, tag, out, tag % 7 == 0 ? 5000 : 3);
    }
    assert_int_equal(cw_paths_register(rank->paths, 0, source, LONG_BYTES, CW_REGION_READ, &registration), CW_OK);
    send(rank, tag++, &registration, sizeof(registration));
    await(rank, &rank->messages, 1); /* it has got it */
    assert_int_equal(cw_paths_deregister(rank->paths, 0, &registration), CW_OK);
    assert_int_equal(cw_paths_register(rank->paths, 0, target, LONG_BYTES, CW_REGION_WRITE, &registration), CW_OK);
    send(rank, tag++, &registration, sizeof(registration));
    await(rank, &rank->arrived, 1);
    memory_check(target);
    send(rank, tag++, "", 0);
    await(rank, &rank->messages, 2);
}

static void operation_await(struct rank *rank, int status, uint32_t wanted)
{
    if (status == CW_PATHS_DONE) {
        rank->completed++;
        rank->last_status = CW_OK;
    } else {
        assert_int_equal(status, CW_OK);
    }
    await(rank, &rank->completed, wanted);
}

static void parent_talks(struct rank *rank, pid_t child)
{
    uint8_t *source = memory_make(true), *target = memory_make(false);
    await(rank, &rank->messages, 3001);
    operation_await(rank, cw_paths_get(rank->paths, 1, &rank->registration, 0, target, LONG_BYTES, CW_ELEMENT_BYTES, 5),
                    1);
    assert_int_equal(rank->last_status, CW_OK);
    memory_check(target);
    send(rank, 0, "", 0);
    await(rank, &rank->messages, 3002);
    operation_await(
        rank, cw_paths_put(rank->paths, 1, &rank->registration, 0, source, LONG_BYTES, CW_ELEMENT_BYTES, 77, 5), 2);
    await(rank, &rank->messages, 3003);
    send(rank, 1, "", 0);
    free(source);
    free(target);
}

static void in_one_copy(void **state)
{
    pair_run(false, parent_talks, child_talks);
}

static void in_two_copies(void **state)
{
    pair_run(true, parent_talks, child_talks);
}

/* Through the ring each side checks what the other may touch. */
static void child_registers_a_little(struct rank *rank)
{
    static uint8_t memory[100];
    struct cw_registration registration;
    assert_int_equal(cw_paths_register(rank->paths, 0, memory, 100, CW_REGION_READ, &registration), CW_OK);
    send(rank, 0, &registration, sizeof(registration));
    await(rank, &rank->messages, 1);
}

static void parent_wants_more(struct rank *rank, pid_t child)
{
    static uint8_t memory[200];
    await(rank, &rank->messages, 1);
    operation_await(rank, cw_paths_get(rank->paths, 1, &rank->registration, 60, memory, 40, CW_ELEMENT_BYTES, 5), 1);
    assert_int_equal(rank->last_status, CW_OK);
    operation_await(rank, cw_paths_get(rank->paths, 1, &rank->registration, 61, memory, 40, CW_ELEMENT_BYTES, 5), 2);
    assert_int_equal(rank->last_status, CW_ERROR_REMOTE_ACCESS);
    struct cw_registration forged = {.token = rank->registration.token + 1};
    operation_await(rank, cw_paths_get(rank->paths, 1, &forged, 0, memory, 1, CW_ELEMENT_BYTES, 5), 3);
    assert_int_equal(rank->last_status, CW_ERROR_REMOTE_ACCESS);
    send(rank, 0, "", 0);
}

static void only_what_is_registered_is_reached(void **state)
{
    pair_run(true, parent_wants_more, child_registers_a_little);
}

static void child_waits_for_ever(struct rank *rank)
{
    send(rank, 0, "here", 4);
    await(rank, &rank->arrived, 1);
}

static void parent_kills(struct rank *rank, pid_t child)
{
    await(rank, &rank->messages, 1);
    send(rank, 0, "", 0); /* only those whom it talks to are watched */
    assert_false(rank->is_down);
    assert_int_equal(kill(child, SIGKILL), 0);
    siginfo_t gone;
    assert_int_equal(waitid(P_PID, (id_t)child, &gone, WEXITED | WNOWAIT), 0);
    cw_paths_watch(rank->paths);
    while (!rank->is_down) {
        cw_paths_poll(rank->paths);
    }
    assert_int_equal(cw_paths_send(rank->paths, 1, 0, "", 0, NULL, 0, CW_ELEMENT_BYTES), CW_ERROR_PEER_FAILED);
}

/* Only who is asked for is looked at; the time is ours, since asking has none of its own. */
static void parent_stops(struct rank *rank, pid_t child)
{
    siginfo_t info;
    await(rank, &rank->messages, 1);
    cw_paths_probe(rank->paths, 1);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WSTOPPED), 0);
    assert_false(cw_paths_is_stopped(rank->paths, 1));
    while (!rank->is_down) {
        cw_paths_probe(rank->paths, 1);
        cw_paths_poll(rank->paths);
    }
    assert_true(cw_paths_is_stopped(rank->paths, 1));
    assert_int_equal(cw_paths_send(rank->paths, 1, 0, "", 0, NULL, 0, CW_ELEMENT_BYTES), CW_ERROR_PEER_FAILED);
    assert_int_equal(kill(child, SIGKILL), 0);
}

static void the_stopped_are_reported(void **state)
{
    pair_run(false, parent_stops, child_waits_for_ever);
}

static void the_dead_are_reported(void **state)
{
    pair_run(false, parent_kills, child_waits_for_ever);
}

static void other_hosts_need_a_port(void **state)
{
    struct rank rank;
    struct cw_path_card card;
    char error[200] = "";
    rank_open(&rank, 0, false);
    cw_paths_card(rank.paths, &card);
    assert_int_equal(cw_paths_add(rank.paths, 0, &card, error, sizeof(error)), CW_OK);
    assert_int_equal(cw_paths_add(rank.paths, 0, &card, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_paths_add(rank.paths, 2, &card, error, sizeof(error)), CW_ERROR_ARGUMENT);
    card.host[0] ^= 1;
    assert_int_equal(cw_paths_add(rank.paths, 1, &card, error, sizeof(error)), CW_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error, "another host"));
    cw_paths_destroy(rank.paths);
}

/* The messages of one listener: their number, and the last tag. */
struct heard {
    uint32_t count;
    uint32_t lane_tag;
};

static void listen(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct heard *heard = context;
    assert_int_equal(rank, 0);
    assert_int_equal(bytes, 3);
    assert_memory_equal(data, "abc", 3);
    heard->count++;
    heard->lane_tag = lane_tag;
}

static void a_message_goes_to_the_listener_of_its_tag(void **state)
{
    struct heard three = {0}, last = {0}, others = {0};
    char error[200] = "";
    struct cw_path_card card;
    struct cw_paths *paths;
    struct cw_paths_config config = {
        .rank_count = 1,
        .host = "host",
        .nonce = 1,
        .handler = {.others = {&others, listen},
                    .arrived = arrival_receive,
                    .complete = completion_receive,
                    .down = down_receive},
    };
    config.handler.listeners[3] = (struct cw_path_listener){&three, listen};
    config.handler.listeners[CW_PATH_LISTENERS - 1] = (struct cw_path_listener){&last, listen};
    for (int with_others = 1; with_others >= 0; with_others--) {
        config.handler.others.message = with_others ? listen : NULL;
        assert_int_equal(cw_paths_create(&config, &paths, error, sizeof(error)), CW_OK);
        cw_paths_card(paths, &card);
        assert_int_equal(cw_paths_add(paths, 0, &card, error, sizeof(error)), CW_OK);
        static const uint32_t tags[] = {3, 4, CW_PATH_LISTENERS - 1, CW_PATH_LISTENERS, CW_PATH_LISTENERS + 3};
        for (uint32_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
            assert_int_equal(cw_paths_send(paths, 0, cw_lane_tag(5, tags[i]), "a", 1, "bc", 2, CW_ELEMENT_BYTES),
                             CW_OK);
        }
        while (cw_paths_poll(paths) > 0) {
        }
        assert_int_equal(cw_paths_counters(paths).messages_received, 5); /* also messages without a listener */
        cw_paths_destroy(paths);
    }
    assert_int_equal(three.count, 2);
    assert_int_equal(three.lane_tag, cw_lane_tag(5, 3));
    assert_int_equal(last.count, 2);
    assert_int_equal(others.count, 3);
    assert_int_equal(others.lane_tag, cw_lane_tag(5, CW_PATH_LISTENERS + 3));
}

int main(void)
{
    return TESTS_RUN(in_one_copy, in_two_copies, only_what_is_registered_is_reached, the_dead_are_reported,
                     the_stopped_are_reported, other_hosts_need_a_port, a_message_goes_to_the_listener_of_its_tag);
}
