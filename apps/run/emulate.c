#include "apps/run/emulate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/switch/config.h"
#include "control/job/key.h"
#include "control/job/wire.h"
#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "control/settings/units.h"
#include "control/topology/topology.h"
#include "dataplane/dpdk/dpdk.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"

#define TOPOLOGY_WORD "topology="

/* ---- what is asked for ---- */

/* The switch's actions on frames towards each port: its options, by the same names. */
enum shape { SHAPE_RATE, SHAPE_DELAY, SHAPE_QUEUE, SHAPE_LOSS, SHAPES };

enum { SHAPE_BYTES = 24 };

static const char *const shape_options[SHAPES] = {"--rate", "--delay", "--queue", "--loss"};

struct wish {
    uint32_t hosts;
    enum cw_wire_multicast multicast;
    char shapes[SHAPES][SHAPE_BYTES];      /* empty: as the switch has it */
    char topology[CW_SETTINGS_PATH_BYTES]; /* empty: one network */
    char stats[CW_SETTINGS_PATH_BYTES];    /* empty: none */
    char stats_interval[SHAPE_BYTES];      /* empty: a millisecond */
};

static const char *const multicast_names[] = {
    [CW_WIRE_SNOOP] = "snoop", [CW_WIRE_FLOOD] = "flood", [CW_WIRE_DROP] = "drop"};

/* ---- its words ---- */

/* "multicast=snoop" and the like. */
static bool multicast_word_parse(const char *word, struct wish *wish)
{
    for (int i = CW_WIRE_SNOOP; i <= CW_WIRE_DROP; i++) {
        if (strncmp(word, "multicast=", 10) == 0 && strcmp(word + 10, multicast_names[i]) == 0) {
            wish->multicast = (enum cw_wire_multicast)i;
            return true;
        }
    }
    return false;
}

/* "rate=1Gbps" and the like, behind "HOSTS,memif". */
static bool shape_word_parse(const char *word, struct wish *wish)
{
    uint64_t number;
    double share;
    for (int i = 0; i < SHAPES; i++) {
        const char *name = shape_options[i] + 2;
        size_t length = strlen(name);
        const char *value = word + length + 1;
        if (strncmp(word, name, length) != 0 || word[length] != '=' || strlen(value) >= SHAPE_BYTES) {
            continue;
        }
        strcpy(wish->shapes[i], value);
        return i == SHAPE_RATE    ? cw_units_rate(value, &number)
               : i == SHAPE_DELAY ? cw_units_duration(value, &number)
               : i == SHAPE_QUEUE ? cw_units_bytes(value, &number)
                                  : cw_units_percent(value, &share);
    }
    return false;
}

/* "stats=FILE", "stats-interval=10ms". */
static bool stats_word_parse(const char *word, struct wish *wish)
{
    static const char file[] = "stats=", interval[] = "stats-interval=";
    uint64_t interval_ns;
    if (strncmp(word, interval, strlen(interval)) == 0) {
        const char *value = word + strlen(interval);
        int length = snprintf(wish->stats_interval, sizeof(wish->stats_interval), "%s", value);
        return length < (int)sizeof(wish->stats_interval) && cw_units_duration(value, &interval_ns) && interval_ns > 0;
    }
    if (strncmp(word, file, strlen(file)) != 0) {
        return false;
    }
    int length = snprintf(wish->stats, sizeof(wish->stats), "%s", word + strlen(file));
    return length > 0 && length < (int)sizeof(wish->stats);
}

/* "topology=FILE" in the place of a number of hosts; how many there are is seen when the rest has been read. False: the
 * name is too long. */
static bool topology_word_parse(const char *word, struct wish *wish)
{
    char folder[CW_SETTINGS_PATH_BYTES] = "";
    const char *path = word + strlen(TOPOLOGY_WORD);
    bool is_whole = path[0] == '/' || getcwd(folder, sizeof(folder)) != NULL; /* ranks may run elsewhere */
    int length = snprintf(wish->topology, sizeof(wish->topology), "%s%s%s", folder, folder[0] != '\0' ? "/" : "", path);
    return is_whole && path[0] != '\0' && length < (int)sizeof(wish->topology);
}

static bool hosts_word_parse(const char *word, uint32_t ranks, struct wish *wish)
{
    uint64_t hosts;
    if (strncmp(word, TOPOLOGY_WORD, strlen(TOPOLOGY_WORD)) == 0) {
        return topology_word_parse(word, wish);
    }
    if (word[0] < '0' || word[0] > '9' || !app_parse_count(word, &hosts) || hosts < 1 || hosts > ranks) {
        return false;
    }
    wish->hosts = (uint32_t)hosts;
    return true;
}

static bool wish_parse(const char *text, uint32_t ranks, struct wish *wish)
{
    char copy[CW_SETTINGS_PATH_BYTES + 200];
    char *rest = NULL;
    size_t length = strlen(text);
    *wish = (struct wish){.hosts = 0};
    if (length == 0 || length >= sizeof(copy) || text[length - 1] == ',' || strstr(text, ",,") != NULL) {
        return false;
    }
    strcpy(copy, text);
    const char *count = strtok_r(copy, ",", &rest);
    const char *kind = strtok_r(NULL, ",", &rest);
    if (kind == NULL || !hosts_word_parse(count, ranks, wish)) {
        return false;
    }
    bool is_wan = wish->topology[0] != '\0';
    bool good = strcmp(kind, "memif") == 0;
    for (const char *word; good && (word = strtok_r(NULL, ",", &rest)) != NULL;) {
        good = multicast_word_parse(word, wish) || stats_word_parse(word, wish) ||
               (!is_wan && shape_word_parse(word, wish));
    }
    return good && (wish->stats_interval[0] == '\0' || wish->stats[0] != '\0');
}

/* Looks at the file before anything is started; the switch reads it again. */
static int topology_check(uint32_t ranks, struct wish *wish)
{
    struct cw_topology *topology;
    char text[CW_TOPOLOGY_ERROR_BYTES];
    int status = cw_topology_load(wish->topology, &topology, text, sizeof(text));
    if (status != CW_OK) {
        app_error(text, NULL, NULL);
        return status == CW_ERROR_MEMORY ? APP_EXIT_MACHINE : APP_EXIT_USAGE;
    }
    wish->hosts = cw_topology_host_count(topology);
    const char *unknown = cw_topology_rate_unknown(topology);
    if (unknown != NULL) {
        snprintf(text, sizeof(text), "the rate of the link '%s' is unknown", unknown);
        app_error(text, wish->topology, "an emulated link has one: write it in the place of \"found\"");
    }
    cw_topology_destroy(topology);
    if (unknown != NULL) {
        return APP_EXIT_USAGE;
    }
    if (wish->hosts > SWITCH_PORTS_MAX || ranks > SWITCH_PORTS_MAX) {
        snprintf(text, sizeof(text), "the topology has %u hosts, the job %u ranks", wish->hosts, ranks);
        app_error(text, wish->topology, "a switch has 32 ports, one for each rank");
        return APP_EXIT_USAGE;
    }
    if (ranks < wish->hosts || ranks < 2) {
        snprintf(text, sizeof(text), "the topology has %u hosts, the job %u ranks", wish->hosts, ranks);
        app_error(text, wish->topology, "-n: at least two, and one for each host; ranks are on hosts in equal blocks");
        return APP_EXIT_USAGE;
    }
    return 0;
}

/* Whether the file can be written: the switch would say so, and then the launcher that there is no switch. */
static int stats_check(const struct wish *wish)
{
    int file = open(wish->stats, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
        app_error("the statistics cannot be written there", wish->stats, strerror(errno));
        return APP_EXIT_USAGE;
    }
    close(file);
    return 0;
}

static int wish_check(const char *text, uint32_t ranks, struct wish *wish)
{
    if (strncmp(text, "topology=", strlen("topology=")) == 0 && !wish_parse(text, ranks, wish)) {
        bool says_network = strstr(text, ",memif") != NULL;
        app_error("bad value", text,
                  says_network ? "--emulate topology=FILE,memif takes stats=FILE, stats-interval=1ms and "
                                 "multicast=snoop|flood|drop; rate, delay, queue and loss are in "
                                 "the file"
                               : "`,memif` is missing: --emulate topology=FILE,memif");
        return APP_EXIT_USAGE;
    }
    if (!wish_parse(text, ranks, wish)) {
        char advice[600];
        snprintf(
            advice, sizeof(advice),
            "--emulate wants a number of hosts, here 1 to %u since there are so many ranks, and the network between "
            "them: 4,memif[,rate=1Gbps][,delay=50us][,queue=256K][,loss=0.1%%] or topology=FILE,memif; behind both "
            "also [,stats=FILE[,stats-interval=1ms]] and [,multicast=snoop|flood|drop]",
            ranks);
        app_error("bad value", text, advice);
        return APP_EXIT_USAGE;
    }
    if (ranks > CW_EMULATED_RANKS_MAX) {
        app_error("too many ranks on emulated hosts", "-n", "63 are possible");
        return APP_EXIT_USAGE;
    }
    int code = wish->topology[0] != '\0' ? topology_check(ranks, wish) : 0;
    return code == 0 && wish->stats[0] != '\0' ? stats_check(wish) : code;
}

/* ---- start ---- */

static int environment_set(const char *emulate)
{
    char error[200];
    uint8_t key[CW_JOB_KEY_BYTES];
    bool done =
        cw_job_key_make(key, error, sizeof(error)) == CW_OK && cw_job_key_keep(key, error, sizeof(error)) == CW_OK;
    explicit_bzero(key, sizeof(key));
    if (!done) {
        app_error(error, NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    (void)cw_setting_set(CW_SETTING_EMULATE, emulate);
    return 0;
}

static int memif_start(struct run_emulation *emulation, const struct wish *wish, uint32_t ranks,
                       const sigset_t *handled)
{
    char emulate[RUN_FOLDER_BYTES + 32];
    char ports[16];
    const char *arguments[6 + 2 * SHAPES + 4 + 1] = {"--ports", ports, "--multicast", multicast_names[wish->multicast]};
    size_t count = 4;
    snprintf(ports, sizeof(ports), "%u", ranks < 2 ? 2 : ranks); /* at least two: one may be unused */
    for (int i = 0; i < SHAPES; i++) {
        if (wish->shapes[i][0] != '\0') {
            arguments[count++] = shape_options[i];
            arguments[count++] = wish->shapes[i];
        }
    }
    if (wish->topology[0] != '\0') {
        arguments[count++] = "--topology";
        arguments[count++] = wish->topology;
    }
    if (wish->stats[0] != '\0') {
        arguments[count++] = "--stats";
        arguments[count++] = wish->stats;
        arguments[count++] = "--stats-interval";
        arguments[count++] = wish->stats_interval[0] != '\0' ? wish->stats_interval : "1ms";
    }
    int code = run_switch_start(&emulation->net, arguments, handled);
    if (code != 0) {
        return code;
    }
    snprintf(emulate, sizeof(emulate), "%u,memif,%s/s", wish->hosts, emulation->net.folder);
    if (wish->topology[0] != '\0') {
        (void)cw_setting_set(CW_SETTING_TOPOLOGY, wish->topology);
    }
    return environment_set(emulate);
}

int run_emulate_start(struct run_emulation *emulation, const char *text, uint32_t ranks, const sigset_t *handled)
{
    struct wish wish;
    *emulation = (struct run_emulation){.net.handle = -1};
    int code = wish_check(text, ranks, &wish);
    if (code != 0) {
        return code;
    }
    char error[CW_PORT_TEXT_BYTES];
    if (cw_dpdk_load(error, sizeof(error)) == NULL) { /* reported once, here, and not by the switch and every rank */
        app_error(error, NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    return memif_start(emulation, &wish, ranks, handled);
}

int run_emulate_stop(struct run_emulation *emulation)
{
    return run_switch_stop(&emulation->net); /* it has reported why: statistics that could not be written */
}
