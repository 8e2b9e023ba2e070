/* `causeway switch --topology` with real processes: two hosts at a, two at b, one at c, joined at a place that has
 * none.
 *
 * Nothing is timed by the clock: all times are stamps of the packets in the tap, which are those of the model. */
#include <sys/wait.h>

#include "tests/lab/lab_net.h"
#include "tests/skip.h"
#include "tests/test.h"

enum {
    HOSTS = 5, /* a0 a1 b0 b1 c0 */
    TEXT_BYTES = 512,
    LINE_NS = (FRAME_BYTES + 24) * 8 * 1000 / 20, /* a frame on the link "coast" */
    COUNTERS = 9,
};

static const char topology[] =
    "{\"clusters\": [{\"name\": \"a\", \"hosts\": 2}, {\"name\": \"b\", \"hosts\": 2}, {\"name\": \"c\", \"hosts\": "
    "1}],\n"
    " \"places\": [\"p\"],\n"
    " \"links\": [{\"name\": \"coast\", \"between\": [\"a\", \"p\"], \"rate\": \"20Mbps\", \"delay\": \"1ms\"},\n"
    "  {\"name\": \"inland\", \"between\": [\"p\", \"b\"], \"rate\": \"1Gbps\", \"delay\": \"1ms\", \"queue\": "
    "\"1MB\"},\n"
    "  {\"name\": \"sea\", \"between\": [\"c\", \"p\"], \"rate\": \"1Gbps\", \"delay\": \"2ms\", \"loss\": \"0\"}]}\n";

struct wan {
    struct lab lab;
    char folder[64];
    char file[96];
    char stats[96];
    char packets[96];
    json_t *report;
};

static void wan_start(struct wan *wan, const char *tap)
{
    *wan = (struct wan){.folder = "/tmp/causeway-lab-wide-XXXXXX", .report = json_array()};
    assert_non_null(mkdtemp(wan->folder));
    snprintf(wan->file, sizeof(wan->file), "%s/x.json", wan->folder);
    snprintf(wan->stats, sizeof(wan->stats), "%s/stats.csv", wan->folder);
    snprintf(wan->packets, sizeof(wan->packets), "%s/x.pcap", wan->folder);
    FILE *file = fopen(wan->file, "w");
    assert_non_null(file);
    assert_true(fputs(topology, file) >= 0);
    assert_int_equal(fclose(file), 0);
    const char *more[] = {"--topology", wan->file,   "--stats", wan->stats, "--stats-interval", "1ms", "--pcap",
                          wan->packets, "--pcap-at", tap,       NULL};
    lab_start(&wan->lab, NULL, more, HOSTS);
}

static void wan_stop(struct wan *wan)
{
    lab_clients_end(&wan->lab);
    lab_switch_end(&wan->lab, NULL, wan->report);
}

static void wan_end(struct wan *wan)
{
    json_decref(wan->report);
    unlink(wan->file);
    unlink(wan->stats);
    unlink(wan->packets);
    assert_int_equal(rmdir(wan->folder), 0);
}

/* The switch's final report on one direction of a link. */
static const json_t *link_of(const struct wan *wan, const char *name, const char *direction)
{
    size_t index;
    const json_t *line;
    json_array_foreach(wan->report, index, line)
    {
        if (strcmp(json_string_value(json_object_get(line, "kind")), "link") == 0 &&
            strcmp(json_string_value(json_object_get(line, "name")), name) == 0 &&
            strcmp(json_string_value(json_object_get(line, "direction")), direction) == 0) {
            return line;
        }
    }
    fail_msg("no link %s %s", name, direction);
    return NULL;
}

/* Runs a command of the shell; its exit code. Its output goes to `text`. */
static int shell(char *text, size_t text_bytes, const char *format, ...)
{
    char command[TEXT_BYTES * 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    size_t got = fread(text, 1, text_bytes - 1, output);
    text[got] = '\0';
    int status = pclose(output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int command_send(const struct wan *wan, const char *command, char *text, size_t text_bytes)
{
    return shell(text, text_bytes, "'%s' switch --memif %s --command '%s' 2>&1", getenv("CW_CAUSEWAY"), wan->lab.path,
                 command);
}

static void command_send_checked(const struct wan *wan, const char *command)
{
    char text[TEXT_BYTES];
    assert_true_msg(command_send(wan, command, text, sizeof(text)) == 0, "%s: %s", command, text);
}

static void expect_marked(struct wan *wan, uint8_t marker, const uint64_t counts[HOSTS])
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        uint64_t have = lab_marked(&wan->lab, i, marker);
        assert_true_msg(have == counts[i], "host %u has %llu frames with marker %u, not %llu", i,
                        (unsigned long long)have, marker, (unsigned long long)counts[i]);
    }
}

/* Everything offered to a link is accounted for. */
static void expect_whole(const struct wan *wan)
{
    size_t index;
    const json_t *line;
    json_array_foreach(wan->report, index, line)
    {
        if (strcmp(json_string_value(json_object_get(line, "kind")), "link") == 0) {
            assert_int_equal(lab_count(line, "offered_frames"),
                             lab_count(line, "delivered_frames") + lab_count(line, "held_frames") +
                                 lab_count(line, "dropped_loss_frames") + lab_count(line, "dropped_queue_frames") +
                                 lab_count(line, "dropped_link_down_frames") + lab_count(line, "dropped_pool_frames") +
                                 lab_count(line, "dropped_oversize_frames"));
        }
    }
}

/* The sums over time of the statistics of one direction of a link are its counters. */
static void expect_sums(const struct wan *wan, const char *name, const char *direction)
{
    static const char *const keys[COUNTERS] = {
        "offered_frames",           "offered_bytes",       "delivered_frames",
        "delivered_bytes",          "dropped_loss_frames", "dropped_queue_frames",
        "dropped_link_down_frames", "dropped_pool_frames", "dropped_oversize_frames"};
    const json_t *link = link_of(wan, name, direction);
    uint64_t sums[COUNTERS] = {0}, last_ns = 0, rows = 0;
    char line[LAB_LINE_BYTES], prefix[TEXT_BYTES];
    FILE *file = fopen(wan->stats, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    assert_ptr_equal(strstr(line, "time_ns,name,direction,offered_frames"), line);
    size_t length = (size_t)snprintf(prefix, sizeof(prefix), ",%s,%s", name, direction);
    while (fgets(line, sizeof(line), file) != NULL) {
        char *rest;
        uint64_t time_ns = strtoull(line, &rest, 10);
        if (strncmp(rest, prefix, length) != 0 || rest[length] != ',') {
            continue;
        }
        assert_true(time_ns > last_ns);
        last_ns = time_ns;
        rest += length;
        for (int i = 0; i < COUNTERS; i++) {
            assert_int_equal(*rest, ',');
            sums[i] += strtoull(rest + 1, &rest, 10);
        }
        rows++;
    }
    fclose(file);
    assert_true(rows > 1);
    for (int i = 0; i < COUNTERS; i++) {
        assert_true_msg(sums[i] == lab_count(link, keys[i]), "%s %s: %s add up to %llu, not %llu", name, direction,
                        keys[i], (unsigned long long)sums[i], (unsigned long long)lab_count(link, keys[i]));
    }
}

/* Counts packets in the tap by tshark. */
static uint64_t packets_count(const struct wan *wan, const char *filter)
{
    char text[TEXT_BYTES];
    assert_int_equal(shell(text, sizeof(text), "tshark -r %s -Y '%s' 2>/dev/null | wc -l", wan->packets, filter), 0);
    return strtoull(text, NULL, 10);
}

/* Frames of a host that have come over one direction of a link. */
static uint64_t stream_sum(const struct wan *wan, const char *name, const char *direction, const char *host)
{
    char line[LAB_LINE_BYTES], prefix[TEXT_BYTES];
    uint64_t frames = 0;
    size_t length = (size_t)snprintf(prefix, sizeof(prefix), ",%s,%s/%s,", name, direction, host);
    FILE *file = fopen(wan->stats, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        const char *cells = strchr(line, ',');
        unsigned long long offered_frames, offered_bytes, delivered_frames;
        if (strncmp(cells, prefix, length) == 0) {
            int found = sscanf(cells + length, "%llu,%llu,%llu", &offered_frames, &offered_bytes, &delivered_frames);
            assert_int_equal(found, 3);
            frames += delivered_frames;
        }
    }
    fclose(file);
    return frames;
}

/* Traffic of hosts on a link equals the link's, and that of its tap. */
static void expect_streams(const struct wan *wan)
{
    static const char *const hosts[] = {"a0", "a1", "b0", "b1", "c0"};
    uint64_t there = 0, back = 0;
    for (uint32_t i = 0; i < HOSTS; i++) {
        char filter[TEXT_BYTES];
        uint64_t to = stream_sum(wan, "coast", "a>p", hosts[i]), from = stream_sum(wan, "coast", "p>a", hosts[i]);
        snprintf(filter, sizeof(filter), "eth.src == 02:00:00:00:00:%02x", i + 1);
        assert_int_equal(to + from, packets_count(wan, filter));
        assert_int_equal(i < 2 ? from : to, 0);
        there += to;
        back += from;
    }
    assert_true(there > 0 && back > 0);
    assert_int_equal(there, lab_count(link_of(wan, "coast", "a>p"), "delivered_frames"));
    assert_int_equal(back, lab_count(link_of(wan, "coast", "p>a"), "delivered_frames"));
}

static void test_routes_and_clusters(void **state)
{
    struct wan wan;
    uint8_t to[6];
    wan_start(&wan, "coast");
    lab_send(&wan.lab, 0, broadcast, 1, 10, HOSTS);
    expect_marked(&wan, 1, (const uint64_t[]){0, 10, 10, 10, 10}); /* everybody, once */
    lab_mac(0, to);
    lab_send(&wan.lab, 2, to, 2, 10,
             HOSTS); /* its way back is known at b, at a, and where it does not pass: the broadcast came by */
    expect_marked(&wan, 2, (const uint64_t[]){10, 0, 0, 0, 0});
    lab_mac(2, to);
    lab_send(&wan.lab, 0, to, 3, 20, HOSTS);
    expect_marked(&wan, 3, (const uint64_t[]){0, 0, 20, 0, 0});
    lab_send(&wan.lab, 1, to, 4, 10, HOSTS);
    lab_mac(77, to);
    lab_send(&wan.lab, 4, to, 5, 10, HOSTS); /* the address is unknown: it goes to all */
    expect_marked(&wan, 5, (const uint64_t[]){10, 10, 10, 10, 0});
    wan_stop(&wan);
    expect_whole(&wan);
    expect_sums(&wan, "coast", "a>p");
    expect_sums(&wan, "coast", "p>a");
    expect_sums(&wan, "inland", "p>b");
    expect_sums(&wan, "sea", "c>p");
    expect_sums(&wan, "a0", "up");
    expect_sums(&wan, "b1", "down");
    expect_streams(&wan);
    assert_int_equal(packets_count(&wan, "frame[50:1] == 02"), 10);
    assert_int_equal(packets_count(&wan, "frame[50:1] == 03"), 20);
    assert_int_equal(packets_count(&wan, "frame[50:1] == 01"), 20); /* for b and for c */
    assert_int_equal(packets_count(&wan, "frame.len == 100"),
                     lab_count(link_of(&wan, "coast", "a>p"), "delivered_frames") +
                         lab_count(link_of(&wan, "coast", "p>a"), "delivered_frames"));
    wan_end(&wan);
}

/* The stamps of frames over "coast" from a, in ns of their day; returns their number. */
static uint32_t stamps_read(const struct wan *wan, uint64_t *stamps, uint32_t count_max)
{
    char command[TEXT_BYTES], line[TEXT_BYTES];
    uint32_t count = 0;
    snprintf(command, sizeof(command),
             "tshark -r %s -Y 'eth.src == 02:00:00:00:00:01 || eth.src == 02:00:00:00:00:02' "
             "-T fields -e frame.time_epoch 2>/dev/null",
             wan->packets);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    while (fgets(line, sizeof(line), output) != NULL && count < count_max) {
        char *rest;
        uint64_t seconds = strtoull(line, &rest, 10);
        stamps[count++] = seconds % 86400 * 1000000000u + strtoull(rest + 1, NULL, 10);
    }
    assert_int_equal(pclose(output), 0);
    return count;
}

static void test_pairs_share_a_link(void **state)
{
    enum { FRAMES = 200, STAMPS = 4000 };
    static uint64_t stamps[STAMPS];
    struct wan wan;
    struct command command;
    uint8_t to[6];
    wan_start(&wan, "coast");
    lab_send(&wan.lab, 2, broadcast, 1, 1, HOSTS);
    lab_send(&wan.lab, 4, broadcast, 1, 1, HOSTS);
    lab_mac(2, to);
    lab_command_fill(&command, 0, to, 2, FRAMES);
    (void)lab_query(&wan.lab.clients[0], &command); /* a0 to b0, and at the same time */
    lab_mac(4, to);
    lab_command_fill(&command, 1, to, 3, FRAMES);
    (void)lab_query(&wan.lab.clients[1], &command); /* a1 to c */
    lab_fence(&wan.lab, 0, HOSTS);
    lab_fence(&wan.lab, 1, HOSTS);
    expect_marked(&wan, 2, (const uint64_t[]){0, 0, FRAMES, 0, 0});
    expect_marked(&wan, 3, (const uint64_t[]){0, 0, 0, 0, FRAMES});
    wan_stop(&wan);
    expect_whole(&wan);
    /* of any senders, they follow one another at the rate of the one link */
    uint32_t count = stamps_read(&wan, stamps, STAMPS), close = 0;
    assert_in_range(count, 2 * FRAMES, STAMPS - 1);
    for (uint32_t i = 1; i < count; i++) {
        assert_true(stamps[i] >= stamps[i - 1] + LINE_NS);
        close += stamps[i] <= stamps[i - 1] + LINE_NS + 1;
    }
    assert_true(close >= FRAMES); /* and the link was full */
    wan_end(&wan);
}

static void test_links_go_down_and_up(void **state)
{
    struct wan wan;
    char text[TEXT_BYTES];
    wan_start(&wan, "sea");
    command_send_checked(&wan, "link coast down");
    lab_send(&wan.lab, 0, broadcast, 1, 10, 2); /* to its own cluster only */
    expect_marked(&wan, 1, (const uint64_t[]){0, 10, 0, 0, 0});
    command_send_checked(&wan, "link coast up");
    lab_send(&wan.lab, 0, broadcast, 2, 10, HOSTS);
    expect_marked(&wan, 2, (const uint64_t[]){0, 10, 10, 10, 10});
    command_send_checked(&wan, "link coast loss=100%");
    lab_send(&wan.lab, 0, broadcast, 3, 10, 2);
    command_send_checked(&wan, "link coast loss=0,rate=1Gbps,delay=100us,queue=1MB");
    lab_send(&wan.lab, 0, broadcast, 4, 10, HOSTS);
    expect_marked(&wan, 3, (const uint64_t[]){0, 10, 0, 0, 0});
    expect_marked(&wan, 4, (const uint64_t[]){0, 10, 10, 10, 10});
    static const char *const bad[] = {
        "link nowhere down", "link coast sideways", "link coast rate=fast", "links",
        "link coast",        "link coast up now",   "link coast loss=200%", "link coast rate=11Tbps"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_true_msg(command_send(&wan, bad[i], text, sizeof(text)) == 2 &&
                            strchr(text, '\n') == text + strlen(text) - 1,
                        "%s: %s", bad[i], text);
    }
    wan_stop(&wan);
    expect_whole(&wan);
    const json_t *coast = link_of(&wan, "coast", "a>p");
    assert_in_range(lab_count(coast, "dropped_link_down_frames"), 20, UINT32_MAX);
    assert_in_range(lab_count(coast, "dropped_loss_frames"), 20, UINT32_MAX);
    expect_sums(&wan, "coast", "a>p");
    wan_end(&wan);
}

int main(void)
{
    if (getenv("CW_CAUSEWAY") == NULL) {
        fprintf(stderr, "CW_CAUSEWAY must name the program\n");
        return 1;
    }
    if (system("tshark --version >/dev/null 2>&1") != 0) {
        test_skip("tshark is not installed");
    }
    return TESTS_RUN(test_routes_and_clusters, test_pairs_share_a_link, test_links_go_down_and_up);
}
