/* Devices of CAUSEWAY_TRANSPORT: texts; and errors for devices that this process cannot use, by the files of an
 * artificial machine. */
#include "control/net/device.h"

#include <sys/stat.h>

#include "dataplane/status.h"
#include "tests/test.h"

enum { PATH_ROOM = 256, ERROR_ROOM = 400 };

static void names_are_known(void **state)
{
    static const struct {
        const char *text;
        bool is_device;
    } rows[] = {
        {"0000:03:00.0", true},
        {"03:00.0", true},
        {"0000:03:02.{local}", true},
        {"52:54:00:12:34:56", true},
        {"net_tap0,iface=x", true},
        {"net_memif{local},role=client", true},
        {"device:anything", true},
        {"virtio_user0,path=/dev/vhost-net", true},
        {"eth0", false},
        {"fd77::1", false},
        {"10.1.0.0/16", false},
        {"af_packet:eth0", false},
        {"0000:03:00.9", false},
        {"0000:03:20.0", false},
        {"52:54:00:12:34", false},
        {"net_", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true_msg(cw_device_is_named(rows[i].text) == rows[i].is_device, "'%s'", rows[i].text);
    }
}

static void texts_are_read(void **state)
{
    struct cw_device device;
    struct cw_ip ip;
    char error[ERROR_ROOM];
    assert_int_equal(cw_device_read("03:02.{local},ip=10.9.0.{rank}/24,gateway=10.9.0.254,mtu=9000,a=1,b=2", 7, 3,
                                    &device, error, sizeof(error)),
                     CW_OK);
    assert_string_equal(device.name, "0000:03:02.3");
    assert_string_equal(device.arguments, "a=1,b=2");
    assert_true(cw_ip_read("10.9.0.7", &ip) && cw_ip_is_equal(&ip, &device.ip));
    assert_true(cw_ip_read("10.9.0.254", &ip) && cw_ip_is_equal(&ip, &device.gateway));
    assert_int_equal(device.bits, CW_IP_V4_BITS + 24);
    assert_int_equal(device.mtu_bytes, 9000);
    assert_true(device.is_pci && !device.is_local);
    assert_int_equal(cw_device_read("03:02.{local}", 7, -1, &device, error, sizeof(error)), CW_OK);
    assert_true(device.is_local);
    assert_int_equal(cw_device_read("52:54:00:12:34:56", 0, 0, &device, error, sizeof(error)), CW_OK);
    assert_true(device.is_by_mac && device.mac[5] == 0x56);
    static const uint8_t mac[6] = {0x52, 0x54, 0, 0x12, 0x34, 0x56};
    struct cw_ip made = cw_device_link_local(mac);
    assert_true(cw_ip_read("fe80::5054:ff:fe12:3456", &ip) && cw_ip_is_equal(&ip, &made));
}

static void nonsense_is_named(void **state)
{
    static const char *const rows[][2] = {
        {"03:00.0,ip=10.9.0.5", "ip=10.9.0.5/24"},
        {"03:00.0,ip=10.9.0.5/33", "bits of its subnet"},
        {"03:00.0,ip=x/24", "bits of its subnet"},
        {"03:00.0,mtu=12", "bytes are possible"},
        {"03:00.0,mtu=9999999", "bytes are possible"},
        {"03:00.0,gateway=10.9.0.1", "needs ip="},
        {"03:00.0,ip=10.9.0.5/24,gateway=10.8.0.1", "in one subnet"},
        {"03:00.0,ip=10.9.0.5/24,gateway=fd77::1", "of the same kind"},
        {"device:", "wanted is a PCI address"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_device device;
        char error[ERROR_ROOM] = "";
        assert_int_equal(cw_device_read(rows[i][0], 0, 0, &device, error, sizeof(error)), CW_ERROR_ARGUMENT);
        assert_true_msg(strstr(error, rows[i][1]) != NULL, "'%s' is told: %s", rows[i][0], error);
    }
}

/* ---- machines that are made up ---- */

/* A file below the root, with the folders above it; content NULL: only these. */
static void file_make(const char *root, const char *name, const char *content)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof(path), "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = content == NULL ? NULL : fopen(path, "w");
    if (file != NULL) {
        fputs(content, file);
        fclose(file);
    }
}

static void link_make(const char *root, const char *name, const char *target)
{
    char path[PATH_ROOM];
    file_make(root, name, NULL);
    snprintf(path, sizeof(path), "%s%s", root, name);
    assert_int_equal(symlink(target, path), 0);
}

#define NIC "/sys/bus/pci/devices/0000:03:00.0"

static void checked(const char *root, const char *text, int status, const char *said)
{
    struct cw_device device;
    struct cw_device_access access;
    char error[ERROR_ROOM] = "";
    assert_int_equal(cw_device_read(text, 0, 0, &device, error, sizeof(error)), CW_OK);
    int result = cw_device_check(&device, root, &access, error, sizeof(error));
    if (result != status || strstr(error, said) == NULL) {
        fail_msg("%s is %d: %s; wanted is %d: %s", text, result, error, status, said);
    }
}

static void obstacles_are_named(void **state)
{
    char root[] = "/tmp/causeway-device-XXXXXX", command[PATH_ROOM];
    assert_non_null(mkdtemp(root));
    checked(root, "net_tap0,iface=x", CW_OK, "");
    checked(root, "03:00.0", CW_ERROR_NOT_FOUND, "no such PCI device");
    checked(root, "52:54:00:12:34:56", CW_ERROR_NOT_FOUND, "no interface of this machine has that MAC address");
    file_make(root, NIC "/net/eth1/address", "52:54:00:12:34:56\n");
    checked(root, "03:00.0", CW_ERROR_UNSUPPORTED, "no driver");
    link_make(root, NIC "/driver", "../../drivers/e1000e");
    checked(root, "03:00.0", CW_ERROR_UNSUPPORTED, "e1000e (interface eth1)");
    checked(root, "03:00.0", CW_ERROR_UNSUPPORTED, "--bind=vfio-pci 0000:03:00.0");
    file_make(root, "/sys/class/net/eth1/address", "52:54:00:12:34:56\n");
    link_make(root, "/sys/class/net/eth1/device", "../../../0000:03:00.0");
    checked(root, "52:54:00:12:34:56", CW_ERROR_UNSUPPORTED, "e1000e");
    snprintf(command, sizeof(command), "rm %s" NIC "/driver", root);
    assert_int_equal(system(command), 0);
    link_make(root, NIC "/driver", "../../drivers/mlx5_core");
    checked(root, "52:54:00:12:34:56", CW_OK, "");
    assert_int_equal(system(command), 0);
    link_make(root, NIC "/driver", "../../drivers/vfio-pci");
    checked(root, "03:00.0", CW_ERROR_UNSUPPORTED, "no group of an IOMMU");
    link_make(root, NIC "/iommu_group", "../../../kernel/iommu_groups/5");
    checked(root, "03:00.0", CW_ERROR_UNSUPPORTED, "modprobe vfio_iommu_type1");
    file_make(root, "/dev/vfio/vfio", ""); /* which answers nothing */
    checked(root, "03:00.0", CW_ERROR_UNSUPPORTED, "modprobe vfio_iommu_type1");
    file_make(root, "/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "N\n");
    checked(root, "03:00.0", CW_ERROR_NOT_FOUND, "/dev/vfio/5");
    file_make(root, "/dev/vfio/5", "");
    checked(root, "03:00.0", CW_OK, "");
    snprintf(command, sizeof(command), "mv %s/dev/vfio/5 %s/dev/vfio/noiommu-5", root, root);
    assert_int_equal(system(command), 0);
    checked(root, "03:00.0", CW_ERROR_NOT_FOUND, "sysctl vm.nr_hugepages");
    file_make(root, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "64\n");
    checked(root, "03:00.0", CW_OK, "");
    assert_int_equal(cw_device_huge_bytes(root), 128u << 20);
    snprintf(command, sizeof(command), "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    return TESTS_RUN(names_are_known, texts_are_read, nonsense_is_named, obstacles_are_named);
}
