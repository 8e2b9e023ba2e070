/* Whether a process can use a device: read from the kernel's files before DPDK tries, because DPDK's errors name no
 * remedy. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "control/net/device.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum { HOLDERS_BYTES = 64, FOLDER_BYTES = 512, PATH_BYTES = 640 };

/* Drivers of the kernel that leave the device to a process, or share it with one. */
static const struct driver {
    const char *name;
    bool physical;
    bool shared;
} drivers[] = {
    {.name = "vfio-pci"},
    {.name = "uio_pci_generic", .physical = true},
    {.name = "igb_uio", .physical = true},
    {.name = "mlx5_core", .shared = true},
    {.name = "mlx4_core", .shared = true},
    {.name = "mana", .shared = true},
};

static const struct driver *driver_find(const char *name)
{
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        if (strcmp(drivers[i].name, name) == 0) {
            return &drivers[i];
        }
    }
    return NULL;
}

/* The last part of where a symbolic link leads; "": there is none. */
static void link_name(char *name, size_t bytes, const char *path)
{
    char target[PATH_BYTES];
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    target[length < 0 ? 0 : length] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(name, bytes, "%.*s", (int)bytes - 1, slash == NULL ? target : slash + 1);
}

/* The name of an entry of a folder that is no dot; "": there is none. */
static void entry_name(char *name, size_t bytes, const char *path)
{
    DIR *folder = opendir(path);
    name[0] = '\0';
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] != '.') {
            snprintf(name, bytes, "%.*s", (int)bytes - 1, entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

uint64_t cw_device_huge_bytes(const char *root)
{
    char path[PATH_BYTES];
    uint64_t bytes = 0;
    snprintf(path, sizeof(path), "%.400s/sys/kernel/mm/hugepages", root);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        unsigned long long kib = 0, count = 0;
        if (sscanf(entry->d_name, "hugepages-%llukB", &kib) != 1) {
            continue;
        }
        snprintf(path, sizeof(path), "%.400s/sys/kernel/mm/hugepages/%.64s/free_hugepages", root, entry->d_name);
        FILE *file = fopen(path, "re");
        if (file != NULL) {
            bytes += fscanf(file, "%llu", &count) == 1 ? count * kib * 1024 : 0;
            fclose(file);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return bytes;
}

/* ---- one step each ---- */

/* The PCI address of the interface that has a MAC address. */
static int mac_find(const struct cw_device *device, const char *root, char pci[16], char *error, size_t error_bytes)
{
    char path[PATH_BYTES], line[32] = "", wanted[18];
    const uint8_t *mac = device->mac;
    snprintf(wanted, sizeof(wanted), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
    snprintf(path, sizeof(path), "%.400s/sys/class/net", root);
    DIR *folder = opendir(path);
    pci[0] = '\0';
    bool is_there = false;
    for (struct dirent *entry; folder != NULL && pci[0] == '\0' && (entry = readdir(folder)) != NULL;) {
        snprintf(path, sizeof(path), "%.400s/sys/class/net/%.64s/address", root, entry->d_name);
        FILE *file = fopen(path, "re");
        bool is_it = file != NULL && fscanf(file, "%31s", line) == 1 && strcmp(line, wanted) == 0;
        if (file != NULL) {
            fclose(file);
        }
        if (is_it) {
            char name[64];
            is_there = true;
            snprintf(path, sizeof(path), "%.400s/sys/class/net/%.64s/device", root, entry->d_name);
            link_name(name, sizeof(name), path);
            snprintf(pci, 16, "%.15s", strchr(name, '.') != NULL ? name : "");
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return pci[0] != '\0'
               ? CW_OK
               : cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                               "--transport %s: %s; `ip link` lists interfaces and their MAC addresses", wanted,
                               is_there ? "its interface is none of a PCI device"
                                        : "no interface of this machine has that MAC address");
}

static int pci_find(const char *pci, const char *folder, char *error, size_t error_bytes)
{
    return access(folder, F_OK) == 0
               ? CW_OK
               : cw_error_text(
                     error, error_bytes, CW_ERROR_NOT_FOUND,
                     "--transport %s: this machine has no such PCI device; `dpdk-devbind.py --status-dev net` "
                     "lists its NICs",
                     pci);
}

static int driver_check(const char *pci, const char *folder, struct cw_device_access *access_to, char *error,
                        size_t error_bytes)
{
    char path[PATH_BYTES], interface[32];
    snprintf(path, sizeof(path), "%.500s/driver", folder);
    link_name(access_to->driver, sizeof(access_to->driver), path);
    const struct driver *driver = driver_find(access_to->driver);
    if (driver != NULL) {
        access_to->physical = driver->physical;
        return CW_OK;
    }
    snprintf(path, sizeof(path), "%.500s/net", folder);
    entry_name(interface, sizeof(interface), path);
    return cw_error_text(
        error, error_bytes, CW_ERROR_UNSUPPORTED,
        "--transport %s: the device is bound to %s%s%s%s%s; as root: modprobe vfio-pci && dpdk-devbind.py "
        "--bind=vfio-pci %s%s",
        pci, access_to->driver[0] != '\0' ? "the kernel's driver " : "no driver", access_to->driver,
        interface[0] != '\0' ? " (interface " : "", interface, interface[0] != '\0' ? ")" : "", pci,
        interface[0] != '\0' ? ", which takes the interface from the kernel" : "");
}

/* The process that has a file open, for messages: " (process 17)". */
static void holder_find(const char *root, const char *file, char holder[HOLDERS_BYTES])
{
    char path[PATH_BYTES], target[PATH_BYTES];
    snprintf(path, sizeof(path), "%.400s/proc", root);
    DIR *folder = opendir(path);
    holder[0] = '\0';
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL && holder[0] == '\0';) {
        snprintf(path, sizeof(path), "%.400s/proc/%.32s/fd", root, entry->d_name);
        DIR *files = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? opendir(path) : NULL;
        for (struct dirent *each; files != NULL && (each = readdir(files)) != NULL;) {
            ssize_t length = readlinkat(dirfd(files), each->d_name, target, sizeof(target) - 1);
            target[length < 0 ? 0 : length] = '\0';
            if (strcmp(target, file) == 0) {
                snprintf(holder, HOLDERS_BYTES, " (process %.20s)", entry->d_name);
            }
        }
        if (files != NULL) {
            closedir(files);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* Whether vfio can map memory for the IOMMU. Usually a module does it, which is loaded with vfio only if modprobe
 * honours soft dependencies. If the kernel has it otherwise (iommufd, POWER), vfio itself reports it. */
static bool memory_is_mapped(const char *root)
{
    static const int kinds[] = {VFIO_TYPE1v2_IOMMU, VFIO_TYPE1_IOMMU, VFIO_SPAPR_TCE_v2_IOMMU};
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%.400s/sys/module/vfio_iommu_type1", root);
    bool is_mapped = access(path, F_OK) == 0;
    snprintf(path, sizeof(path), "%.400s/dev/vfio/vfio", root);
    int file = open(path, O_RDWR | O_CLOEXEC);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && file >= 0 && !is_mapped; i++) {
        is_mapped = ioctl(file, VFIO_CHECK_EXTENSION, kinds[i]) > 0;
    }
    if (file >= 0) {
        close(file);
    }
    return is_mapped;
}

/* The group of the IOMMU, which one process has at a time. */
static int group_check(const char *pci, const char *folder, const char *root, struct cw_device_access *access_to,
                       char *error, size_t error_bytes)
{
    char path[PATH_BYTES], group[32], holder[HOLDERS_BYTES];
    snprintf(path, sizeof(path), "%.500s/iommu_group", folder);
    link_name(group, sizeof(group), path);
    if (group[0] == '\0') {
        return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                             "--transport %s: the device is in no group of an IOMMU: turn the IOMMU on (firmware, and "
                             "intel_iommu=on on the kernel's command line), or as root, where no IOMMU is: echo 1 "
                             ">/sys/module/vfio/parameters/enable_unsafe_noiommu_mode, and bind the device again",
                             pci);
    }
    snprintf(path, sizeof(path), "%.400s/dev/vfio/noiommu-%.16s", root, group);
    access_to->physical = access(path, F_OK) == 0;
    if (!access_to->physical) {
        snprintf(path, sizeof(path), "%.400s/dev/vfio/%.16s", root, group);
    }
    if (!access_to->physical && !memory_is_mapped(root)) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_UNSUPPORTED,
            "--transport %s: the kernel's part that maps memory for vfio is not loaded; as root: modprobe "
            "vfio_iommu_type1",
            pci);
    }
    int file = open(path, O_RDWR | O_CLOEXEC);
    int failed = file < 0 ? errno : 0;
    if (file >= 0) {
        close(file);
    }
    if ((failed == EACCES || failed == EPERM) && access_to->physical) {
        return cw_error_text(error, error_bytes, CW_ERROR_PERMISSION,
                             "--transport %s: without an IOMMU the device is root's (%s): run as root", pci, path);
    }
    if (failed == EACCES || failed == EPERM) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_PERMISSION,
            "--transport %s: no permission for %s; as root: chown %u %s, and raise `ulimit -l` for that user", pci,
            path, geteuid(), path);
    }
    if (failed == EBUSY) {
        holder_find(root, path, holder);
        return cw_error_text(
            error, error_bytes, CW_ERROR_BUSY,
            "--transport %s: another process has the device%s: end it (`fuser -v %s`), or name another "
            "device",
            pci, holder, path);
    }
    if (failed == ENOENT) {
        return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                             "--transport %s: there is no %s: a container needs --device /dev/vfio", pci, path);
    }
    return failed == 0 ? CW_OK
                       : cw_error_text(error, error_bytes, cw_status_of_errno(failed), "--transport %s: %s: %s%s", pci,
                                       path, strerror(failed),
                                       failed == EINVAL ? "; other devices of its group are bound to the kernel's "
                                                          "drivers: bind these to vfio-pci, too"
                                                        : cw_errno_remedy(failed));
}

/* A device that reads physical addresses. */
static int physical_check(const char *pci, const char *root, const struct cw_device_access *access_to, char *error,
                          size_t error_bytes)
{
    if (geteuid() != 0 && root[0] == '\0') {
        return cw_error_text(error, error_bytes, CW_ERROR_PERMISSION,
                             "--transport %s: %s without an IOMMU needs root, because only root sees physical "
                             "addresses: run as root, or turn the IOMMU on and bind the device to vfio-pci",
                             pci, access_to->driver);
    }
    return cw_device_huge_bytes(root) > 0
               ? CW_OK
               : cw_error_text(
                     error, error_bytes, CW_ERROR_NOT_FOUND,
                     "--transport %s: %s without an IOMMU needs huge pages, and none is free; as root: sysctl "
                     "vm.nr_hugepages=64",
                     pci, access_to->driver);
}

int cw_device_check(const struct cw_device *device, const char *root, struct cw_device_access *access_to, char *error,
                    size_t error_bytes)
{
    struct cw_device_access found = {.physical = false};
    char folder[FOLDER_BYTES];
    if (!device->is_pci && !device->is_by_mac) {
        *access_to = found;
        return CW_OK;
    }
    int status = CW_OK;
    if (device->is_by_mac) {
        status = mac_find(device, root, found.pci, error, error_bytes);
    } else {
        snprintf(found.pci, sizeof(found.pci), "%.15s", device->name);
    }
    snprintf(folder, sizeof(folder), "%.400s/sys/bus/pci/devices/%s", root, found.pci);
    status = status == CW_OK ? pci_find(found.pci, folder, error, error_bytes) : status;
    status = status == CW_OK ? driver_check(found.pci, folder, &found, error, error_bytes) : status;
    if (status == CW_OK && strcmp(found.driver, "vfio-pci") == 0) {
        status = group_check(found.pci, folder, root, &found, error, error_bytes);
    }
    if (status == CW_OK && found.physical) {
        status = physical_check(found.pci, root, &found, error, error_bytes);
    }
    if (status == CW_OK) {
        *access_to = found;
    }
    return status;
}
