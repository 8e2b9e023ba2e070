/* Where files of settings are, and whole files read and written. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/settings/setting.h"
#include "control/settings/settings.h"

static bool place_set(struct cw_settings_place *place, const char *origin, const char *folder, const char *name)
{
    if (folder == NULL || folder[0] == '\0') {
        return false;
    }
    int length = snprintf(place->path, sizeof(place->path), "%s%s", folder, name);
    if (length >= (int)sizeof(place->path)) {
        place->path[0] = '\0';
        return false;
    }
    place->origin = origin;
    return true;
}

void cw_settings_place_find(const char *named, const char *origin, const char *name, struct cw_settings_place *place)
{
    char config[64], home[64];
    *place = (struct cw_settings_place){.origin = "default"};
    snprintf(config, sizeof(config), "/causeway/%s", name);
    snprintf(home, sizeof(home), "/.config/causeway/%s", name);
    if (named != NULL && strcmp(named, "none") == 0) {
        place->origin = origin;
    } else if (place_set(place, origin, named, "")) {
        place->is_wanted = true;
    } else if (!place_set(place, "XDG_CONFIG_HOME", cw_environment("XDG_CONFIG_HOME"), config)) {
        (void)place_set(place, "HOME", cw_environment("HOME"), home);
    }
}

static char *file_read(FILE *file, size_t most, size_t *length, int failure)
{
    struct stat status = {.st_mode = 0};
    failure = failure != 0 ? failure : fstat(fileno(file), &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
    size_t room =
        failure == 0 && S_ISREG(status.st_mode) && (size_t)status.st_size < most ? (size_t)status.st_size : most;
    char *text = failure == 0 ? malloc(room + 2) : NULL; /* one more byte, to detect a longer file */
    size_t got = text == NULL ? 0 : fread(text, 1, room + 1, file);
    failure = failure != 0 ? failure : text == NULL ? ENOMEM : ferror(file) ? EIO : got > room ? EFBIG : 0;
    fclose(file);
    if (failure != 0) {
        free(text);
        errno = failure;
        return NULL;
    }
    text[got] = '\0';
    *length = got;
    return text;
}

char *cw_settings_read(const char *path, size_t most, size_t *length)
{
    FILE *file = fopen(path, "rbe");
    return file == NULL ? NULL : file_read(file, most, length, 0);
}

char *cw_settings_read_own(const char *path, size_t most, size_t *length)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* a pipe does not wait for a writer */
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "rb");
    if (file == NULL) {
        if (descriptor >= 0) {
            close(descriptor);
        }
        return NULL;
    }
    bool is_own = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
    return file_read(file, most, length, is_own ? 0 : EPERM);
}

static bool file_write(FILE *file, const void *bytes, size_t length)
{
    bool is_whole = fwrite(bytes, 1, length, file) == length;
    return fclose(file) == 0 && is_whole;
}

/* Writes a new file in the same folder, with an unused name. */
bool cw_settings_write_own(const char *path, const void *bytes, size_t length)
{
    enum { BESIDE_BYTES = 4096 };
    char beside[BESIDE_BYTES];
    if (snprintf(beside, sizeof(beside), "%s.XXXXXX", path) >= (int)sizeof(beside)) {
        errno = ENAMETOOLONG;
        return false;
    }
    int descriptor = mkostemp(beside, O_CLOEXEC);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    if (descriptor < 0) {
        return false;
    }
    mode_t mask = umask(0); /* as fopen(3) makes files */
    umask(mask);
    bool is_written = file != NULL && fchmod(descriptor, 0666 & ~mask) == 0;
    if (file == NULL) {
        close(descriptor);
    } else {
        is_written = file_write(file, bytes, length) && is_written && rename(beside, path) == 0;
    }
    if (!is_written) {
        int reason = errno;
        (void)unlink(beside);
        errno = reason;
    }
    return is_written;
}

bool cw_settings_write(const char *path, const void *bytes, size_t length)
{
    struct stat status;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode)) {
        return cw_settings_write_own(path, bytes, length);
    }
    FILE *file = fopen(path, "wbe"); /* a device must not become a file */
    return file != NULL && file_write(file, bytes, length);
}
