/* `causeway switch` with real processes: clients on memif ports send marked frames and count what reaches them.
 *
 * Nothing is timed. A frame is known to have arrived, or to be lost, once a later frame on the same way has: the fence,
 * which is repeated until it is seen. */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/lab/lab_net.h"
#include "tests/test.h"

enum { PORTS = 3 };

/* The number of frames with `marker` that each client has. */
static void expect(struct lab *lab, uint8_t marker, uint64_t at0, uint64_t at1, uint64_t at2)
{
    assert_int_equal(lab_marked(lab, 0, marker), at0);
    assert_int_equal(lab_marked(lab, 1, marker), at1);
    assert_int_equal(lab_marked(lab, 2, marker), at2);
}

static void expect_sums(json_t *const lines[PORTS], uint32_t count)
{
    static const char *const ends[] = {"out_frames",
                                       "held_frames",
                                       "dropped_loss_frames",
                                       "dropped_queue_frames",
                                       "dropped_port_full_frames",
                                       "dropped_port_down_frames",
                                       "dropped_pool_frames",
                                       "dropped_oversize_frames"};
    for (uint32_t i = 0; i < count; i++) {
        uint64_t sum = 0;
        assert_non_null(lines[i]);
        for (size_t j = 0; j < sizeof(ends) / sizeof(ends[0]); j++) {
            sum += lab_count(lines[i], ends[j]);
        }
        assert_int_equal(sum, lab_count(lines[i], "offered_frames"));
    }
}

/* ---- tests ---- */

static void test_learning_and_flooding(void **state)
{
    struct lab lab;
    uint8_t to[6];
    json_t *lines[LAB_PORTS_MAX] = {NULL};
    lab_start(&lab, "3", NULL, 3);
    lab_mac(1, to);
    lab_send(&lab, 0, to, 1, 10, 3);
    expect(&lab, 1, 0, 10, 10); /* the place is unknown */
    lab_mac(0, to);
    lab_send(&lab, 1, to, 2, 10, 3);
    expect(&lab, 2, 10, 0, 0); /* port 0 has been heard */
    lab_mac(1, to);
    lab_send(&lab, 0, to, 3, 10, 3);
    expect(&lab, 3, 0, 10, 0);
    lab_send(&lab, 2, broadcast, 4, 10, 3);
    expect(&lab, 4, 10, 10, 0);
    uint64_t totals[PORTS];
    const struct command ask = {.send = false};
    for (uint32_t i = 0; i < PORTS; i++) {
        totals[i] = lab_query(&lab.clients[i], &ask).total;
    }
    lab_clients_end(&lab);
    lab_switch_end(&lab, lines, NULL);
    expect_sums(lines, PORTS);
    for (uint32_t i = 0; i < PORTS; i++) {
        assert_int_equal(lab_count(lines[i], "in_frames"), lab.clients[i].sent);
        assert_int_equal(lab_count(lines[i], "in_bytes"), lab.clients[i].sent * FRAME_BYTES);
        assert_true(lab_count(lines[i], "out_frames") >= totals[i]); /* a fence may have been under way */
        json_decref(lines[i]);
    }
}

/* An IGMPv2 report: the sender joins 239.1.2.3. */
static void join_group(struct lab *lab, uint32_t port)
{
    static const uint8_t report[] = {
        0x01, 0x00, 0x5e, 0x01, 0x02, 0x03, 0x02, 0, 0, 0, 0, 0, 0x08, 0x00, /* Ethernet */
        0x45, 0xc0, 0,    28,   0,    0,    0,    0, 1, 2, 0, 0, 10,   0,
        0,    1,    239,  1,    2,    3,             /* IPv4, its sum filled in below */
        0x16, 0,    0,    0,    239,  1,    2,    3, /* IGMP, likewise */
    };
    struct command command = {.send = true, .count = 1, .length = 60};
    memcpy(command.frame, report, sizeof(report));
    lab_mac(port, command.frame + 6);
    for (uint32_t part = 0; part < 2; part++) {
        uint32_t start = part == 0 ? 14 : 34;
        uint32_t length = part == 0 ? 20 : 8;
        uint32_t sum = 0;
        for (uint32_t i = 0; i < length; i += 2) {
            sum += (uint32_t)command.frame[start + i] << 8 | command.frame[start + i + 1];
        }
        sum = (sum & 0xffff) + (sum >> 16);
        sum = ~((sum & 0xffff) + (sum >> 16));
        uint32_t at = part == 0 ? 24 : 36;
        command.frame[at] = (uint8_t)(sum >> 8);
        command.frame[at + 1] = (uint8_t)sum;
    }
    lab_query(&lab->clients[port], &command);
    lab_fence(lab, port, PORTS);
}

static void test_multicast(void **state)
{
    static const uint8_t joined_group[6] = {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03};
    const char *more[] = {NULL};
    struct lab lab;
    json_t *lines[LAB_PORTS_MAX] = {NULL};
    lab_start(&lab, "3", more, 3);
    lab_send(&lab, 0, joined_group, 2, 10, 3);
    expect(&lab, 2, 0, 10, 10); /* a group without members goes everywhere */
    join_group(&lab, 2);
    lab_send(&lab, 0, joined_group, 3, 10, 3);
    expect(&lab, 3, 0, 0, 10);
    lab_clients_end(&lab);
    lab_switch_end(&lab, lines, NULL);
    expect_sums(lines, PORTS);
    for (uint32_t i = 0; i < PORTS; i++) {
        json_decref(lines[i]);
    }
}

/* Frames that a line dropped for other reasons than its loss: a switch or client that does not run for a while lets
 * queues and rings fill. */
static uint64_t dropped_otherwise(const json_t *line)
{
    return lab_count(line, "offered_frames") - lab_count(line, "out_frames") - lab_count(line, "held_frames") -
           lab_count(line, "dropped_loss_frames");
}

static void test_loss_and_shaping(void **state)
{
    enum { FRAMES = 5000 };
    const char *more[] = {"--rate", "1Gbps",      "--delay", "100us", "--queue", "256KB",
                          "--port", "1:loss=10%", "--seed",  "7",     NULL};
    struct lab lab;
    json_t *lines[LAB_PORTS_MAX] = {NULL};
    lab_start(&lab, "2", more, 2);
    lab_send(&lab, 0, broadcast, 1, FRAMES, 2);
    uint64_t there = lab_marked(&lab, 1, 1);
    lab_send(&lab, 1, broadcast, 2, FRAMES, 2);
    uint64_t back = lab_marked(&lab, 0, 2);
    lab_clients_end(&lab);
    lab_switch_end(&lab, lines, NULL);
    expect_sums(lines, 2);
    /* binomial: a tenth of the frames on the line, give or take five standard deviations */
    double lost = (double)lab_count(lines[1], "dropped_loss_frames");
    double drawn = (double)(lab_count(lines[1], "offered_frames") - lab_count(lines[1], "dropped_queue_frames"));
    assert_true(fabs(lost - 0.1 * drawn) <= 5 * sqrt(0.09 * drawn));
    assert_in_range(there, FRAMES - (uint64_t)lost - dropped_otherwise(lines[1]), FRAMES - 1);
    assert_in_range(back, FRAMES - dropped_otherwise(lines[0]), FRAMES);
    assert_int_equal(lab_count(lines[0], "dropped_loss_frames"), 0);
    assert_true(lab_count(lines[1], "queue_max_bytes") > 0);
    json_decref(lines[0]);
    json_decref(lines[1]);
}

static void test_left_over_socket_is_replaced(void **state)
{
    struct lab lab;
    lab_start(&lab, "2", NULL, 0);
    assert_int_equal(kill(lab.process, SIGKILL), 0);
    assert_int_equal(waitpid(lab.process, NULL, 0), lab.process);
    fclose(lab.output);
    assert_int_equal(access(lab.path, F_OK), 0);
    lab_switch_start(&lab, "2", NULL);
    lab_switch_end(&lab, NULL, NULL);
}

/* Runs the program by the shell; returns its exit code, and how many lines it printed on stderr. */
static int run_for_errors(const char *arguments, uint32_t *lines)
{
    char command[512];
    char line[LAB_LINE_BYTES];
    snprintf(command, sizeof(command), "'%s' switch %s 2>&1 >/dev/null", getenv("CW_CAUSEWAY"), arguments);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    for (*lines = 0; fgets(line, sizeof(line), output) != NULL; (*lines)++) {
    }
    int status = pclose(output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_a_live_switch_is_left_alone(void **state)
{
    struct lab lab;
    char arguments[128];
    uint32_t lines;
    uint8_t to[6];
    lab_start(&lab, "2", NULL, 2);
    snprintf(arguments, sizeof(arguments), "--memif %s --ports 2", lab.path);
    assert_int_equal(run_for_errors(arguments, &lines), 3);
    assert_int_equal(lines, 1);
    lab_mac(1, to);
    lab_send(&lab, 0, to, 1, 10, 2);
    assert_int_equal(lab_marked(&lab, 1, 1), 10);
    lab_clients_end(&lab);
    lab_switch_end(&lab, NULL, NULL);
}

static void test_bad_options(void **state)
{
    static const struct {
        const char *arguments;
        int code;
    } table[] = {
        {"", 2},
        {"--nonsense", 2},
        {"--memif s --ports 65", 2},
        {"--memif s --ports 1", 2},
        {"--memif s --mtu 100", 2},
        {"--memif s --loss 200%", 2},
        {"--memif s --rate fast", 2},
        {"--memif s --port 2:rate=1Gbps", 2},
        {"--memif s --port 0:colour=red", 2},
        {"--memif s --port 0:delay=fast", 2},
        {"--memif s --port rate=1Gbps", 2},
        {"--memif s --core 1023", 2},
        {"--memif s --ethdev net_nonsense0", 3},
        {"--memif no/such/folder", 3},
    };
    char folder[] = "/tmp/causeway-lab-switch-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        uint32_t lines;
        int code = run_for_errors(table[i].arguments, &lines);
        assert_true_msg(code == table[i].code && lines == 1, "switch %s: exit code %d, %u lines", table[i].arguments,
                        code, lines);
    }
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing was left in it */
}

int main(void)
{
    if (getenv("CW_CAUSEWAY") == NULL) {
        fprintf(stderr, "CW_CAUSEWAY must name the program\n");
        return 1;
    }
    return TESTS_RUN(test_learning_and_flooding, test_multicast, test_loss_and_shaping,
                     test_left_over_socket_is_replaced, test_a_live_switch_is_left_alone, test_bad_options);
}
