#include "apps/simulate/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "control/settings/settings.h"
#include "control/settings/units.h"
#include "control/topology/topology.h"
#include "dataplane/base/random.h"
#include "dataplane/limits.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/offload/offload.h"
#include "dataplane/status.h"

/* A host's link, if the text says nothing of it: 100 Gb/s, 2 us from host to host. */
#define RATE_BPS      100000000000ull
#define DELAY_NS      2000
#define BUFFER        (1 << 20)
#define POLL_NS       100
#define STATISTICS_NS 1000000
#define MEMORY_NS     300
#define MEMORY_BPS    80000000000ull

/* Of the random numbers of a host's NIC, and of its slow offloads. */
#define NIC_STREAM  (1 << 22)
#define NIC_SLOW_NS 5000

#define POSSIBLE                                                                                                    \
    "possible are hosts=N or topology=FILE; rate=100Gbps, delay=2us, mtu=1500, buffer=1MB (of a switch port), "     \
    "shared=512KB (of a switch), "                                                                                  \
    "loss=0.1%%, corrupt=0.1%%, duplicate=0.1%%, reorder=0.1%%, multicast=snoop|flood|drop; seed=N; cpu=FACTOR or " \
    "cpu=TIME (of each MPI call), poll=100ns, memory=300ns, copy=80Gbps; down=HOST|LINK@TIME[+TIME], "              \
    "stop=HOST@TIME[+TIME], "                                                                                       \
    "kill=HOST@TIME, slow=HOST@FACTOR, forget=TIME (switches: groups), faults=random; rdma=on, rdma-break=0.1%%, "  \
    "rdma-cut=HOST@TIME[+TIME], rdma-fail=HOST@TIME; "                                                              \
    "nic=honest|slow|lying|lying-later|mute|random[:OFFLOAD][@HOST]; pcap=FILE, "                                   \
    "stats=FILE, stats-interval=1ms (of links)"

/* The syntax of an option with several parts. */
static const struct {
    const char *name;
    const char *form;
} forms[] = {
    {"down", "HOST@TIME[+TIME] or LINK@TIME[+TIME]: a host's number from 0 or a link of the topology, times as 10ms"},
    {"stop", "HOST@TIME[+TIME]: a host's number from 0, times as 10ms"},
    {"kill", "HOST@TIME: a host's number from 0, a time as 10ms"},
    {"slow", "HOST@FACTOR: a host's number from 0, once, and 0.001 to 1000"},
    {"forget", "a time as 10ms"},
    {"rdma", "on"},
    {"rdma-cut", "HOST@TIME[+TIME]: a host's number from 0, times as 10ms"},
    {"rdma-fail", "HOST@TIME: a host's number from 0, a time as 10ms; it is permanent"},
    {"nic",
     "STATE[:OFFLOAD][@HOST]: honest, slow, lying, lying-later, mute or random; udp-checksum-out, udp-checksum-in, "
     "steer, arrival-time or departure-time; a host's number from 0"},
    {"multicast", "snoop, flood or drop"},
    {"faults", "random"},
};

static bool count_parse(const char *text, uint64_t least, uint64_t most, uint64_t *count)
{
    return app_parse_count(text, count) && *count >= least && *count <= most;
}

/* "3@10ms+5ms", or "3@10ms": forever. A link that is down may have a name: "sea@10ms". */
static bool fault_parse(struct simulate_config *config, enum simulate_fault_kind kind, char *text)
{
    char *at = strchr(text, '@'), *plus = at != NULL ? strchr(at, '+') : NULL;
    uint64_t host, begin_ns, duration_ns = 0;
    bool is_for_good = kind == SIMULATE_KILL || kind == SIMULATE_RDMA_FAIL;
    if (at == NULL || (plus != NULL && is_for_good) || config->fault_count == SIMULATE_FAULTS_MAX) {
        return false;
    }
    *at++ = '\0';
    if (plus != NULL) {
        *plus++ = '\0';
    }
    bool is_host = app_parse_count(text, &host) && host <= UINT32_MAX;
    bool is_link = !is_host && kind == SIMULATE_LINK_DOWN && strlen(text) < CW_TOPOLOGY_NAME_BYTES && text[0] != '\0';
    if (!(is_host || is_link) || !cw_units_duration(at, &begin_ns) ||
        (plus != NULL && !cw_units_duration(plus, &duration_ns))) {
        return false;
    }
    struct simulate_fault *fault = &config->faults[config->fault_count++];
    *fault = (struct simulate_fault){.kind = kind,
                                     .host = is_host ? (uint32_t)host : 0,
                                     .begin_ns = begin_ns,
                                     .end_ns = plus != NULL ? begin_ns + duration_ns : UINT64_MAX};
    snprintf(fault->link, sizeof(fault->link), "%s", is_link ? text : "");
    return true;
}

/* "3@1.5" */
static bool slow_parse(struct simulate_config *config, char *text)
{
    char *at = strchr(text, '@'), *end;
    uint64_t host;
    if (at == NULL || config->slow_count == SIMULATE_FAULTS_MAX) {
        return false;
    }
    *at++ = '\0';
    double factor = strtod(at, &end);
    if (!app_parse_count(text, &host) || host > UINT32_MAX || end == at || *end != '\0' ||
        !(factor >= 0.001 && factor <= 1000)) {
        return false;
    }
    for (uint32_t i = 0; i < config->slow_count; i++) {
        if (config->slow[i].host == host) {
            return false; /* once for each host */
        }
    }
    config->slow[config->slow_count++] = (struct simulate_slow){.host = (uint32_t)host, .factor = factor};
    return true;
}

/* Offloads that a simulated NIC can have. */
static const enum cw_port_offload OFFLOADS[] = {CW_OFFLOAD_CHECKSUM_OUT, CW_OFFLOAD_CHECKSUM_IN, CW_OFFLOAD_STEER,
                                                CW_OFFLOAD_ARRIVAL, CW_OFFLOAD_DEPARTURE};
enum { OFFLOAD_COUNT = sizeof(OFFLOADS) / sizeof(OFFLOADS[0]) };

static bool offload_find(const char *name, uint32_t *offload)
{
    for (uint32_t i = 0; i < OFFLOAD_COUNT; i++) {
        if (strcmp(name, cw_offload_name(OFFLOADS[i])) == 0) {
            *offload = OFFLOADS[i];
            return true;
        }
    }
    return false;
}

/* "honest", "lying:arrival-time", "random@3", "mute:udp-checksum-in@0" */
static bool nic_parse(struct simulate_config *config, char *text)
{
    static const struct {
        const char *name;
        uint32_t state;
    } states[] = {
        {"honest", CW_SIMULATOR_OFFLOAD_HONEST}, {"slow", CW_SIMULATOR_OFFLOAD_SLOW},
        {"lying", CW_SIMULATOR_OFFLOAD_LYING},   {"lying-later", CW_SIMULATOR_OFFLOAD_LYING_LATER},
        {"mute", CW_SIMULATOR_OFFLOAD_MUTE},     {"random", SIMULATE_OFFLOAD_RANDOM},
    };
    struct simulate_offload offload = {.host = UINT32_MAX, .offload = CW_PORT_OFFLOADS};
    char *at = strchr(text, '@'), *colon;
    uint64_t host;
    if (at != NULL) {
        *at++ = '\0';
        if (!count_parse(at, 0, UINT32_MAX - 1, &host)) {
            return false;
        }
        offload.host = (uint32_t)host;
    }
    colon = strchr(text, ':');
    if (colon != NULL) {
        *colon++ = '\0';
        if (!offload_find(colon, &offload.offload)) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        if (strcmp(text, states[i].name) == 0 && config->offload_count < SIMULATE_OFFLOADS_MAX) {
            offload.state = states[i].state;
            config->offloads[config->offload_count++] = offload;
            return true;
        }
    }
    return false;
}

void simulate_config_nic(const struct simulate_config *config, uint32_t host, struct cw_simulator_nic *nic)
{
    struct cw_random random;
    cw_random_seed(&random, cw_random_derive(config->seed, NIC_STREAM + host));
    *nic = (struct cw_simulator_nic){.slow_ns = NIC_SLOW_NS};
    for (uint32_t i = 0; i < config->offload_count; i++) {
        const struct simulate_offload *option = &config->offloads[i];
        for (uint32_t k = 0; k < OFFLOAD_COUNT && (option->host == UINT32_MAX || option->host == host); k++) {
            if (option->offload == CW_PORT_OFFLOADS || option->offload == OFFLOADS[k]) {
                bool is_drawn = option->state == SIMULATE_OFFLOAD_RANDOM;
                nic->offloads[OFFLOADS[k]] =
                    (uint8_t)(is_drawn ? cw_random_below(&random, CW_SIMULATOR_OFFLOAD_MUTE + 1) : option->state);
            }
        }
    }
    /* A NIC that verifies UDP checksums verifies Ethernet's check sequence, too, as every NIC does. Frames that links
     * corrupt are dropped there, so as many packets get a changed bit behind that check, in a switch. */
    if (nic->offloads[CW_OFFLOAD_CHECKSUM_IN] != CW_SIMULATOR_OFFLOAD_ABSENT) {
        nic->checks_frames = true;
        nic->upsets = config->link.corrupt;
    }
}

uint32_t simulate_config_offloads(const struct simulate_config *config, uint32_t host)
{
    struct cw_simulator_nic nic;
    uint32_t offloads = 0;
    simulate_config_nic(config, host, &nic);
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        offloads |= nic.offloads[i] != CW_SIMULATOR_OFFLOAD_ABSENT ? 1u << i : 0;
    }
    return offloads;
}

static bool forget_parse(struct simulate_config *config, const char *text)
{
    struct simulate_fault fault = {.kind = SIMULATE_FORGET};
    if (config->fault_count == SIMULATE_FAULTS_MAX || !cw_units_duration(text, &fault.begin_ns)) {
        return false;
    }
    config->faults[config->fault_count++] = fault;
    return true;
}

static bool multicast_parse(const char *text, enum cw_simulator_multicast *multicast)
{
    static const char *const names[] = {
        [CW_SIMULATOR_SNOOPS] = "snoop", [CW_SIMULATOR_FLOODS] = "flood", [CW_SIMULATOR_DROPS] = "drop"};
    for (int i = CW_SIMULATOR_SNOOPS; i <= CW_SIMULATOR_DROPS; i++) {
        if (strcmp(text, names[i]) == 0) {
            *multicast = (enum cw_simulator_multicast)i;
            return true;
        }
    }
    return false;
}

/* cpu=0, cpu=0.5: a factor; cpu=1us: the time of each call. */
static bool cpu_parse(const char *text, struct simulate_config *config)
{
    char *end;
    double factor = strtod(text, &end);
    if (end != text && *end == '\0') {
        config->cpu = factor;
        return factor >= 0 && factor <= 1000;
    }
    config->cpu = 0;
    return cw_units_duration(text, &config->call_ns);
}

static bool topology_parse(const char *text, struct simulate_config *config)
{
    char folder[SIMULATE_PATH_BYTES] = "";
    bool is_whole = text[0] == '/' || getcwd(folder, sizeof(folder)) != NULL; /* ranks may run elsewhere */
    int length =
        snprintf(config->topology, sizeof(config->topology), "%s%s%s", folder, folder[0] != '\0' ? "/" : "", text);
    return is_whole && text[0] != '\0' && length < (int)sizeof(config->topology);
}

static bool path_parse(const char *text, char path[SIMULATE_PATH_BYTES])
{
    int length = snprintf(path, SIMULATE_PATH_BYTES, "%s", text);
    return length > 0 && length < SIMULATE_PATH_BYTES;
}

static bool word_parse(const char *name, char *value, struct simulate_config *config)
{
    const struct {
        const char *name;
        double *share;
    } shares[] = {
        {"loss", &config->link.loss},       {"corrupt", &config->link.corrupt},  {"duplicate", &config->link.duplicate},
        {"reorder", &config->link.reorder}, {"rdma-break", &config->rdma_break},
    };
    const struct {
        const char *name;
        uint64_t *number;
        bool (*parse)(const char *text, uint64_t *number);
    } numbers[] = {
        {"rate", &config->link.rate_bps, cw_units_rate},
        {"delay", &config->link.delay_ns, cw_units_duration},
        {"buffer", &config->buffer_bytes, cw_units_bytes},
        {"shared", &config->shared_bytes, cw_units_bytes},
        {"stats-interval", &config->statistics_interval_ns, cw_units_duration},
        {"seed", &config->seed, app_parse_count},
        {"poll", &config->poll_ns, cw_units_duration},
        {"memory", &config->memory_latency_ns, cw_units_duration},
        {"copy", &config->memory_rate_bps, cw_units_rate},
    };
    uint64_t count;
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        if (strcmp(name, shares[i].name) == 0) {
            return cw_units_percent(value, shares[i].share);
        }
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            return numbers[i].parse(value, numbers[i].number);
        }
    }
    if (strcmp(name, "mtu") == 0 && count_parse(value, CW_PORT_MTU_MIN, CW_PORT_MTU_ETHERNET_MAX, &count)) {
        config->mtu_bytes = (uint32_t)count;
        return true;
    }
    if (strcmp(name, "hosts") == 0 && count_parse(value, 1, config->ranks, &count)) {
        config->hosts = (uint32_t)count;
        return true;
    }
    return strcmp(name, "multicast") == 0   ? multicast_parse(value, &config->multicast)
           : strcmp(name, "cpu") == 0       ? cpu_parse(value, config)
           : strcmp(name, "topology") == 0  ? topology_parse(value, config)
           : strcmp(name, "pcap") == 0      ? path_parse(value, config->capture)
           : strcmp(name, "stats") == 0     ? path_parse(value, config->statistics)
           : strcmp(name, "slow") == 0      ? slow_parse(config, value)
           : strcmp(name, "forget") == 0    ? forget_parse(config, value)
           : strcmp(name, "faults") == 0    ? (config->is_random = strcmp(value, "random") == 0)
           : strcmp(name, "down") == 0      ? fault_parse(config, SIMULATE_LINK_DOWN, value)
           : strcmp(name, "nic") == 0       ? nic_parse(config, value)
           : strcmp(name, "rdma") == 0      ? (config->has_rdma = strcmp(value, "on") == 0)
           : strcmp(name, "rdma-cut") == 0  ? fault_parse(config, SIMULATE_RDMA_CUT, value)
           : strcmp(name, "rdma-fail") == 0 ? fault_parse(config, SIMULATE_RDMA_FAIL, value)
           : strcmp(name, "stop") == 0      ? fault_parse(config, SIMULATE_STOP, value)
           : strcmp(name, "kill") == 0      ? fault_parse(config, SIMULATE_KILL, value)
                                            : false;
}

static void value_reject(const char *name, const char *shown, char *error, size_t error_bytes)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (strcmp(name, forms[i].name) == 0) {
            snprintf(error, error_bytes, "'%s': wanted is %s=%s", shown, name, forms[i].form);
            return;
        }
    }
    snprintf(error, error_bytes, "'%s': " POSSIBLE, shown);
}

bool simulate_config_parse(const char *text, uint32_t ranks, struct simulate_config *config, char *error,
                           size_t error_bytes)
{
    static const char *const of_network[] = {"hosts", "rate", "delay", "buffer"};
    char copy[SIMULATE_PATH_BYTES + 1024];
    const char *origin;
    char *rest = NULL;
    *config = (struct simulate_config){
        .ranks = ranks,
        .hosts = ranks,
        .mtu_bytes = 1500,
        .link = {.rate_bps = RATE_BPS,
                 .delay_ns = DELAY_NS,
                 .overhead_bytes = CW_ETHERNET_OVERHEAD_BYTES,
                 .reorder_delay_max_ns = 20000},
        .buffer_bytes = BUFFER,
        .statistics_interval_ns = STATISTICS_NS,
        .seed = 1,
        .cpu = 1,
        .poll_ns = POLL_NS,
        .memory_latency_ns = MEMORY_NS,
        .memory_rate_bps = MEMORY_BPS,
    };
    (void)cw_settings_watchdog(&config->patience_ns, &origin); /* the ranks report a value that is wrong */
    if (ranks > CW_VIRTUAL_RANKS_MAX || strlen(text) >= sizeof(copy)) {
        snprintf(error, error_bytes, "%u ranks; %d are possible", ranks, CW_VIRTUAL_RANKS_MAX);
        return false;
    }
    strcpy(copy, text);
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        char shown[64], *value = strchr(word, '=');
        snprintf(shown, sizeof(shown), "%s", word);
        if (value != NULL) {
            *value++ = '\0';
        }
        if (value == NULL || !word_parse(word, value, config)) {
            value_reject(word, shown, error, error_bytes);
            return false;
        }
        for (size_t i = 0; i < sizeof(of_network) / sizeof(of_network[0]); i++) {
            if (strcmp(word, of_network[i]) == 0) {
                snprintf(config->network_word, sizeof(config->network_word), "%s", shown);
            }
        }
    }
    return true;
}
