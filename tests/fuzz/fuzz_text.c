/* Texts from users, files and other programs: refused with a reason, or sound. The first byte of an input names the
 * form of the text: host lists, topology files, measured parameters, CAUSEWAY_ALGORITHM, and the lines between ranks
 * and `causeway node`. */
#include "tests/fuzz/fuzz.h"

#include "collectives/choose/measured.h"
#include "collectives/choose/override.h"
#include "control/launch/allocation.h"
#include "control/lease/lease_text.h"
#include "control/topology/topology.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"

enum { BYTES_MAX = CW_LEASE_LINE_BYTES };

/* Damage puts parts of one into another: two have numbers and words at the edges for all. */
static const char *const samples[] = {
    "Lnode[01-03,7]:2,me@a.example.org:4,r[1-2]n[8-9],[fd77::1]:3,b",
    "F# hosts\na:4\nb slots=4 max_slots=8 # two\n[fd77::1] slots=2\nnode[1-2]\n",
    "Snode[01-03,7],x|2(x3),1,4",
    "T{\"clusters\": [{\"name\": \"a\", \"hosts\": [\"h[00-11]x\", \"f\"], \"rate\": \"1Gbps\", \"delay\": \"20us\", "
    "\"queue\": \"256KB\", \"loss\": \"1%\"},\n{\"name\": \"b\", \"hosts\": 3}, {\"name\": \"c\", \"hosts\": "
    "[\"g\"]}],\n"
    "\"places\": [\"p\", \"q\"],\n\"links\": [{\"between\": [\"a\", \"p\"], \"rate\": \"1Gbps\", \"delay\": \"10ms\", "
    "\"loss\": \"10%\"},\n{\"name\": \"sea\", \"between\": [\"c\", \"p\"], \"rate\": \"100Mbps\", \"delay\": \"1ms\", "
    "\"streams\": 4, \"encrypt\": false},\n{\"between\": [\"b\", \"a\"], \"rate\": \"10M\", \"delay\": \"5ms\"}, "
    "{\"between\": [\"b\", \"q\"], \"rate\": \"1k\", \"delay\": \"0\"}]}\n",
    "M{\"causeway-plogp\": 1,\n\"made_by\": \"x\",\n\"networks\": [\n{\"path\": \"shared\", \"ranks\": 2, "
    "\"latency_ns\": 250, \"points\": [[0, 290, 200, 290], [64, 309, 301, 309], [8192, 2000.5, 400, 900]], "
    "\"ports\": 1, \"copy_ns_per_byte\": 0.06, \"reduce_ns_per_byte\": 0.07, \"contention\": 1, "
    "\"concurrent\": [[1024, 2, 1e3, 1.5e3, 1.1e3]]}],\n\"tests\": [\n{\"path\": \"shared\", \"collective\": "
    "\"bcast\", "
    "\"ranks\": 2, \"bytes\": 8, \"ns\": {\"binary\": 190, \"d-ary\": 195}, \"segment_bytes\": {\"d-ary\": 8}, "
    "\"degree\": {\"d-ary\": 1}},\n{\"path\": \"wire\", \"collective\": \"barrier\", \"ranks\": 2, \"bytes\": 0, "
    "\"ns\": {\"tree\": 1.9e5}}]}\n",
    "Obcast=segmented-chain:segment=8192,reduce=ring",
    "L0,-1,1,64,65,65536,4294967296,9223372036854775807,h[0-4096]",
    "T1e308,1e-320,null,\"\",[],{},true,\"a\",\"10s\",\"100%\"",
    "Rhello 3",
    "Rstatus",
    "Rlease ports=34 first=29400 rank=7 memory=5 job=causeway-1234",
    "Rhops 10.0.0.2,fd77::1,10.0.0.3",
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]), HOPS_MOST = SAMPLES, HOPS_TOO_MANY, NIC, HOPS_KNOWN, SEEDS };

static uint64_t accepted[256]; /* inputs by their form */
static uint32_t hops_most;

static size_t seed(uint32_t index, uint8_t *bytes)
{
    char text[CW_LEASE_LINE_BYTES] = "hops ";
    const struct cw_lease_nic nic = {
        .ip = cw_ip_v4(0x0a000001), .bits = 120, .mac = {2, 0, 0, 0, 0, 1}, .mtu_bytes = 9000, .rate_bps = 10000000000};
    const char *sample = index < SAMPLES ? samples[index] : text;
    uint32_t hops = index == HOPS_MOST ? CW_LEASE_HOPS_MAX : index == HOPS_TOO_MANY ? CW_LEASE_HOPS_MAX + 1 : 0;
    for (uint32_t i = 0; i < hops; i++) {
        strcat(text, i > 0 ? ",::1" : "::1");
    }
    if (index == NIC) {
        cw_lease_nic_write(&nic, text);
    } else if (index == HOPS_KNOWN) {
        cw_lease_hop_write(nic.mac, text);
        cw_lease_hop_write(NULL, text);
    }
    bytes[0] = index < HOPS_MOST ? (uint8_t)*sample++ : index < NIC ? 'R' : index == NIC ? 'N' : 'H';
    memcpy(bytes + 1, sample, strlen(sample));
    return index < SEEDS ? 1 + strlen(sample) : 0;
}

/* ---- what is accepted ---- */

/* Each name is one for ssh, and slots add up. */
static void allocation_check(struct cw_launch_allocation *allocation)
{
    uint32_t slots = 0;
    assert_in_range(allocation->count, 1, CW_LAUNCH_HOSTS_MAX);
    for (uint32_t i = 0; i < allocation->count; i++) {
        const struct cw_launch_host *host = &allocation->hosts[i];
        assert_non_null(memchr(host->name, 0, sizeof(host->name)));
        assert_true(host->name[0] != 0 && host->name[0] != '-');
        assert_null(strpbrk(host->name, " \t\n,;&|$`'\"\\/()[]{}<>*?!#="));
        assert_true(host->slots > 0);
        slots += host->slots;
    }
    assert_int_equal(slots, allocation->slots);
    assert_in_range(slots, allocation->count, CW_LAUNCH_SLOTS_MAX);
    cw_launch_allocation_dispose(allocation);
}

static bool hosts_are_accepted(uint8_t form, char *text, size_t length)
{
    struct cw_launch_allocation allocation = {0};
    char error[256] = "", *tasks = form == 'S' ? strchr(text, '|') : NULL;
    if (tasks != NULL) {
        *tasks++ = 0;
    }
    int status = form == 'L' ? cw_launch_hosts_list(&allocation, "list", text, error, sizeof(error))
                 : form == 'F'
                     ? cw_launch_hosts_lines(&allocation, "file", text, length, error, sizeof(error))
                     : cw_launch_hosts_slurm(&allocation, text, tasks == NULL ? "" : tasks, error, sizeof(error));
    if (status != CW_OK) {
        assert_true((status == CW_ERROR_ARGUMENT || status == CW_ERROR_LIMIT) && error[0] != 0);
        assert_true(allocation.hosts == NULL && allocation.count == 0);
        return false;
    }
    allocation_check(&allocation);
    return true;
}

/* Each pair of clusters has a route of joined links. */
static bool topology_is_accepted(const char *text, size_t length)
{
    struct cw_topology *topology = NULL;
    char error[CW_TOPOLOGY_ERROR_BYTES] = "";
    int status = cw_topology_decode(text, length, &topology, error, sizeof(error));
    if (status != CW_OK) {
        assert_true(status == CW_ERROR_ARGUMENT && error[0] != '\0' && topology == NULL);
        return false;
    }
    uint32_t clusters = cw_topology_cluster_count(topology);
    assert_in_range(cw_topology_host_count(topology), clusters, CW_TOPOLOGY_HOSTS_MAX);
    for (uint32_t host = 0; host < cw_topology_host_count(topology); host++) {
        assert_true(cw_topology_host_cluster(topology, host) < clusters);
    }
    for (uint32_t pair = 0; pair < clusters * clusters; pair++) {
        uint32_t count, site = pair / clusters;
        const struct cw_topology_hop *hops = cw_topology_route(topology, site, pair % clusters, &count);
        for (uint32_t i = 0; i < count; i++) {
            const struct cw_topology_link *link = cw_topology_link(topology, hops[i].link);
            assert_int_equal(link->sites[hops[i].direction], site);
            assert_true(cw_link_config_valid(&link->link, NULL)); /* a rate of 0 must be probed */
            site = link->sites[1 - hops[i].direction];
        }
        assert_int_equal(site, pair % clusters);
    }
    cw_topology_destroy(topology);
    return true;
}

/* Parameters are written, and read again. */
static bool measured_is_accepted(const char *text, size_t length)
{
    struct cw_measured *measured = NULL, *again = NULL;
    char error[400] = "";
    if (cw_measured_decode(text, length, &measured, error, sizeof(error)) != CW_OK) {
        assert_true(error[0] != '\0' && measured == NULL);
        return false;
    }
    char *written = cw_measured_encode(measured);
    assert_non_null(written);
    assert_int_equal(cw_measured_decode(written, strlen(written), &again, error, sizeof(error)), CW_OK);
    free(written);
    cw_measured_destroy(again);
    cw_measured_destroy(measured);
    return true;
}

/* A request writes a line that reads as the same request. */
static bool request_is_accepted(const char *line)
{
    char error[256] = "", again[CW_LEASE_LINE_BYTES];
    struct cw_lease_request request, other;
    memset(&request, 0, sizeof(request));
    int status = cw_lease_read(line, &request, error, sizeof(error));
    if (status != CW_OK) {
        assert_true((status == CW_ERROR_ARGUMENT || status == CW_ERROR_UNSUPPORTED) && error[0] != 0);
        return false;
    }
    if (request.kind == CW_LEASE_LEASE) {
        assert_in_range(request.ports, 1, CW_LEASE_PORTS_MAX);
        assert_true(strpbrk(request.job, " \"\\\n") == NULL && memchr(request.job, 0, sizeof(request.job)) != NULL);
    }
    assert_in_range(request.hop_count, 0, CW_LEASE_HOPS_MAX);
    hops_most = request.hop_count > hops_most ? request.hop_count : hops_most;
    cw_lease_request_write(&request, again);
    assert_int_equal(cw_lease_read(again, &other, error, sizeof(error)), CW_OK);
    assert_memory_equal(&request, &other, sizeof(request));
    return true;
}

/* The same for the description of a NIC. */
static bool nic_is_accepted(const char *line)
{
    struct cw_lease_nic nic = {.bits = 0}, other = {.bits = 0};
    char again[CW_LEASE_LINE_BYTES];
    if (!cw_lease_nic_read(line, &nic)) {
        return false;
    }
    assert_in_range(nic.mtu_bytes, CW_PORT_MTU_MIN, CW_PORT_MTU_MAX);
    assert_in_range(nic.bits, 0, 128);
    cw_lease_nic_write(&nic, again);
    assert_true(cw_lease_nic_read(again, &other));
    assert_true(cw_ip_is_equal(&nic.ip, &other.ip) && nic.bits == other.bits && nic.mtu_bytes == other.mtu_bytes &&
                memcmp(nic.mac, other.mac, 6) == 0 && nic.rate_bps == other.rate_bps && nic.reports == other.reports);
    return true;
}

static bool hops_are_accepted(const char *line)
{
    const char *at = line + (strlen(line) < 5 ? strlen(line) : 5);
    uint8_t mac[6];
    bool is_known;
    int hops = 0;
    while (hops < 4 && cw_lease_hop_read(&at, mac, &is_known)) {
        hops++;
    }
    assert_true(at <= line + strlen(line));
    return hops == 2;
}

static bool is_accepted(uint8_t form, char *text, size_t length)
{
    struct cw_override override;
    char error[600] = "";
    switch (form) {
    case 'T':
        return topology_is_accepted(text, length);
    case 'M':
        return measured_is_accepted(text, length);
    case 'O':
        assert_true(cw_override_parse(text, &override, error, sizeof(error)) == CW_OK || error[0] != '\0');
        return error[0] == '\0';
    case 'R':
        return request_is_accepted(text);
    case 'N':
        return nic_is_accepted(text);
    case 'H':
        return hops_are_accepted(text);
    default:
        return hosts_are_accepted(form, text, length);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    bool has_length = memchr("FTM", data[0], 3) != NULL; /* others are read up to a 0 */
    char *text = malloc(size + !has_length);
    memcpy(text, data + 1, size - 1);
    if (!has_length) {
        text[size - 1] = 0;
    }
    accepted[data[0]] += is_accepted(data[0], text, size - 1);
    free(text);
    return 0;
}

/* Some texts of each form are accepted, and some are not. */
static void end(uint64_t inputs)
{
    for (const char *form = "LFSTMORNH"; *form != 0; form++) {
        assert_in_range(accepted[(uint8_t)*form], 1, inputs / 2);
    }
    assert_int_equal(hops_most, CW_LEASE_HOPS_MAX);
}

const struct fuzz_target fuzz_target = {.seed = seed, .bytes_max = BYTES_MAX, .packets = 1, .end = end};
