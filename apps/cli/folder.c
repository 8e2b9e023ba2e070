#include "apps/cli/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "control/settings/setting.h"

#define FOLDER_PREFIX "causeway-run-"
/* Between making a folder and locking it, its owner may be interrupted for a moment. */
enum { AGE_MIN_S = 60 };

int run_folder_name(char folder[RUN_FOLDER_BYTES])
{
    const char *base = cw_environment("TMPDIR");
    char absolute[PATH_MAX]; /* DPDK takes no other for a socket's folder */
    uint32_t number = 0;
    base = base == NULL || base[0] == '\0' ? "/tmp" : base;
    base = realpath(base, absolute) != NULL ? absolute : base;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
        app_error("the kernel gives no random numbers", strerror(errno), NULL);
        return APP_EXIT_MACHINE;
    }
    int length = snprintf(folder, RUN_FOLDER_BYTES, "%s/" FOLDER_PREFIX "%08" PRIx32, base, number);
    if (length >= RUN_FOLDER_BYTES || access(base, W_OK | X_OK) != 0) {
        app_error("cannot make a folder for the switch's socket", base,
                  "set TMPDIR to a folder with a short name that is writable");
        folder[0] = '\0';
        return APP_EXIT_MACHINE;
    }
    return 0;
}

void run_folder_of(const char *path, char *folder, size_t folder_bytes)
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, folder_bytes, "%.*s", slash == NULL ? 1 : (int)(slash - path), slash == NULL ? "." : path);
}

/* A lock on a folder that has not been removed meanwhile; -1: another process has it, or it is gone. */
static int folder_lock(const char *folder)
{
    struct stat locked, named;
    int lock = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &locked) == 0 && stat(folder, &named) == 0 &&
        locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
        return lock;
    }
    if (lock >= 0) {
        close(lock);
    }
    return -1;
}

int run_folder_make(const char *folder)
{
    if (mkdir(folder, 0700) != 0) {
        app_error("cannot make the folder of the switch", folder, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    if (folder_lock(folder) < 0) {
        app_error("cannot lock the folder of the switch", folder, "start again, or set TMPDIR to another folder");
        rmdir(folder);
        return APP_EXIT_MACHINE;
    }
    return 0; /* the descriptor lives as long as this process */
}

void run_folder_remove(const char *folder)
{
    static const char *const names[] = {"s", "s.bell", "s.ctl"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[RUN_FOLDER_BYTES + 16];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void stale_remove(const char *folder)
{
    struct stat status;
    if (lstat(folder, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
        time(NULL) - status.st_mtime < AGE_MIN_S) {
        return;
    }
    int lock = folder_lock(folder);
    if (lock >= 0) {
        run_folder_remove(folder);
        close(lock);
    }
}

void run_folder_sweep(const char *folder)
{
    char base[RUN_FOLDER_BYTES], path[RUN_FOLDER_BYTES + 256];
    run_folder_of(folder, base, sizeof(base));
    DIR *list = opendir(base);
    const struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) == 0) {
            snprintf(path, sizeof(path), "%s/%s", base, entry->d_name);
            if (strlen(path) < RUN_FOLDER_BYTES) {
                stale_remove(path);
            }
        }
    }
    if (list != NULL) {
        closedir(list);
    }
}
