/* Opening an ethdev port: EAL and its arguments, consequences of the MTU, and errors that name their cause. */
#include "tests/unit/dataplane/ethdev_testing.h"

/* ---- EAL ---- */

static void case_affinity(int descriptor, const void *argument)
{
    cpu_set_t before, after;
    CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
    struct cw_port *port = port_of("net_null0", NULL, 1500);
    CHECK(sched_getaffinity(0, sizeof(after), &after) == 0);
    CHECK(CPU_EQUAL(&before, &after));
    cw_port_close(port);
}

static void open_fails(const struct cw_port_ethdev_config *config, int status, const char *words)
{
    char error[CW_PORT_TEXT_BYTES] = "";
    struct cw_port *port = NULL;
    int result = cw_port_ethdev_open(config, &port, error, sizeof(error));
    if (result != status || port != NULL || strstr(error, words) == NULL || strchr(error, '\n') != NULL) {
        fprintf(stderr, "%s: %d (expected %d), \"%s\" lacks \"%s\"\n", config->device, result, status, error, words);
        _exit(1);
    }
}

/* A wrong EAL argument is named, nothing is printed, and the next try with right ones works. */
static void case_eal_arguments(int descriptor, const void *argument)
{
    static const char *const wrong[] = {"--frobnicate"};
    static const char *const right[] = {"--vdev=net_ring7"};
    FILE *printed = tmpfile();
    int saved[2] = {dup(1), dup(2)};
    CHECK(printed != NULL && dup2(fileno(printed), 1) == 1 && dup2(fileno(printed), 2) == 2);
    char error[CW_PORT_TEXT_BYTES] = "";
    struct cw_port *port = NULL;
    struct cw_port_ethdev_config config = config_of("net_ring7", NULL, 1500);
    config.eal.arguments = wrong;
    config.eal.argument_count = 1;
    int status = cw_port_ethdev_open(&config, &port, error, sizeof(error));
    fflush(stdout);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    CHECK(status == CW_ERROR_ARGUMENT && strstr(error, "--frobnicate") != NULL);
    CHECK(lseek(fileno(printed), 0, SEEK_END) == 0);
    config.eal.core = 4000;
    open_fails(&config, CW_ERROR_ARGUMENT, "4000");
    config.eal.core = CW_EAL_CORE_CALLER;
    config.eal.arguments = right;
    port = port_open(&config); /* a device that EAL's own arguments have made */
    struct cw_port_ethdev_config other = config_of("net_null1", NULL, 1500);
    struct cw_port *second = port_open(&other);
    other.device = "net_null2";
    other.eal.arguments = wrong;
    other.eal.argument_count = 1;
    open_fails(&other, CW_ERROR_BUSY, "already runs");
    other.eal.argument_count = 0;
    other.eal.memory_mb = 1 << 20;
    open_fails(&other, CW_ERROR_BUSY, "memory");
    other.eal.memory_mb = 0;
    other.eal.pci_only = "0000:00:1f.0";
    open_fails(&other, CW_ERROR_BUSY, "PCI");
    cw_port_close(second);
    cw_port_close(port);
}

static void case_huge_pages(int descriptor, const void *argument)
{
    FILE *file = fopen("/proc/sys/vm/nr_hugepages", "re");
    int count = 0;
    if (file == NULL || fscanf(file, "%d", &count) != 1 || count > 0) {
        case_skip("it has huge pages, so that their absence cannot be tested");
    }
    fclose(file);
    struct cw_port_ethdev_config config = config_of("net_null0", NULL, 1500);
    config.eal.huge_pages = true;
    open_fails(&config, CW_ERROR_NOT_FOUND, "nr_hugepages");
}

static void case_errors(int descriptor, const void *argument)
{
    static const struct {
        const char *device;
        const char *arguments;
        uint32_t mtu_bytes;
        uint32_t pool_packets;
        int status;
        const char *words;
    } rows[] = {
        {NULL, NULL, 1500, 0, CW_ERROR_ARGUMENT, "no device"},
        {"", NULL, 1500, 0, CW_ERROR_ARGUMENT, "no device"},
        {"net_null0", NULL, 100, 0, CW_ERROR_ARGUMENT, "MTU 100"},
        {"net_null0", NULL, 9601, 0, CW_ERROR_ARGUMENT, "MTU 9601"},
        {"eth0", NULL, 1500, 0, CW_ERROR_NOT_FOUND, "no such device"},
        {"net_frobnicate0", NULL, 1500, 0, CW_ERROR_NOT_FOUND, "net_frobnicate0"},
        {"net_null0", "frobnicate=1", 1500, 0, CW_ERROR_NOT_FOUND, "arguments"},
        {"net_memif0", "role=frobnicate", 1500, 0, CW_ERROR_NOT_FOUND, "frobnicate"},
        {"net_memif0", "role=client,socket=/nowhere/causeway,socket-abstract=no", 1500, 0, CW_ERROR_NOT_FOUND,
         "socket"},
        {"net_memif0", "role=client,socket=causeway-nobody", 1500, 0, CW_ERROR_NOT_FOUND, "start the server"},
        {"net_memif0", "role=server,bsize=2048", 9000, 0, CW_ERROR_ARGUMENT, "bsize"},
        {"net_af_packet0", NULL, 1500, 0, CW_ERROR_ARGUMENT, "iface=NAME"},
        {"net_af_packet0", "iface=nowhere9", 1500, 0, CW_ERROR_NOT_FOUND, "'nowhere9'"},
        {"net_null0", NULL, 1500, 4000000, CW_ERROR_MEMORY, "4000000 buffers"},
        {"net_tap0", "iface=a_name_that_is_too_long_for_linux", 1500, 0, CW_ERROR_NOT_FOUND, "net_tap0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_port_ethdev_config config = config_of(rows[i].device, rows[i].arguments, rows[i].mtu_bytes);
        config.pool_packets = rows[i].pool_packets;
        open_fails(&config, rows[i].status, rows[i].words);
    }
    struct cw_port_ethdev_config config = config_of("net_null0", NULL, 1500);
    struct cw_port *port = port_open(&config); /* the failure left nothing behind */
    open_fails(&config, CW_ERROR_BUSY, "in use");
    cw_port_close(port);
    cw_port_close(port_open(&config));
    config.doorbell_path = "/nowhere/bell";
    open_fails(&config, CW_ERROR_SYSTEM, "/nowhere/bell");
    config.doorbell_path = "/tmp/causeway-test-bell";
    config.doorbell_peer = 64;
    open_fails(&config, CW_ERROR_ARGUMENT, "peer index 64");
    unlink(config.doorbell_path);
}

/* Arguments that follow from the MTU are added where the user gave none. */
static void test_arguments(void **state)
{
    static const struct {
        const char *device;
        const char *given;
        uint32_t mtu_bytes;
        uint32_t descriptor_count;
        const char *expected;
    } rows[] = {
        {"net_memif0", "role=server", 1500, 0, "role=server,bsize=2048,rsize=10"},
        {"net_memif12", NULL, 9000, 0, "bsize=9024,rsize=8"},
        {"net_memif12", NULL, 9000, 512, "bsize=9024,rsize=9"},
        {"net_memif0", "bsize=4096,rsize=9,id=3", 9000, 256, "bsize=4096,rsize=9,id=3"},
        {"net_af_packet0", "iface=e", 1500, 0, "iface=e,blocksz=4096,framesz=2048,framecnt=512"},
        {"net_af_packet0", "iface=e", 2500, 0, "iface=e,blocksz=4096,framesz=4096,framecnt=512"},
        {"net_af_packet0", "iface=e", 9000, 0, "iface=e,blocksz=12288,framesz=12288,framecnt=512"},
        {"net_pcap0", "rx_pcap=f", 9000, 100, "rx_pcap=f"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_port_ethdev_config config = config_of(rows[i].device, rows[i].given, rows[i].mtu_bytes);
        char arguments[CW_PORT_ETHDEV_ARGUMENTS_BYTES];
        config.descriptor_count = rows[i].descriptor_count;
        assert_int_equal(cw_port_ethdev_arguments(&config, arguments, sizeof(arguments)), CW_OK);
        assert_string_equal(arguments, rows[i].expected);
        assert_int_equal(cw_port_ethdev_arguments(&config, arguments, strlen(arguments)), CW_ERROR_ARGUMENT);
    }
}

CASE_TEST(affinity)
CASE_TEST(eal_arguments)
CASE_TEST(huge_pages)
CASE_TEST(errors)

int main(void)
{
    return TESTS_RUN(test_arguments, test_affinity, test_eal_arguments, test_huge_pages, test_errors);
}
