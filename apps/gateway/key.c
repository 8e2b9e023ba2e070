/* The key that two gateways share, in a file: 32 hexadecimal digits. */
#include "apps/gateway/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "apps/cli/cli.h"

enum {
    DIGITS = 2 * GATEWAY_KEY_BYTES,
    FILE_BYTES_MAX = DIGITS + 32, /* spaces and line ends */
};

int gateway_key_make(const char *path)
{
    uint8_t key[GATEWAY_KEY_BYTES];
    char text[DIGITS + 2];
    if (sodium_init() < 0) {
        app_error("no random numbers", "libsodium", NULL);
        return APP_EXIT_MACHINE;
    }
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) {
        app_error("the key cannot be written there", path,
                  errno == EEXIST ? "there is a file already, which stays as it is" : strerror(errno));
        return APP_EXIT_USAGE;
    }
    randombytes_buf(key, sizeof(key));
    sodium_bin2hex(text, DIGITS + 1, key, sizeof(key));
    text[DIGITS] = '\n';
    bool written = write(file, text, DIGITS + 1) == DIGITS + 1;
    written = close(file) == 0 && written;
    sodium_memzero(key, sizeof(key));
    sodium_memzero(text, sizeof(text));
    if (!written) {
        unlink(path);
        app_error("the key could not be written", path, "is the disk full?");
        return APP_EXIT_MACHINE;
    }
    printf("key: %s; take it to the other site by a way that you trust\n", path);
    return APP_EXIT_SUCCESS;
}

static int reject(const char *what, const char *path, const char *todo)
{
    app_error(what, path, todo);
    return APP_EXIT_USAGE;
}

/* Only of an open file can the permissions be checked. */
static int file_check(int file, const char *path)
{
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        return reject("the key is no file", path, "`causeway gateway --make-key FILE` makes one");
    }
    if ((status.st_mode & 077) != 0) {
        return reject("others than its owner may read or change the key", path, "chmod 600 it, or make a new one");
    }
    return APP_EXIT_SUCCESS;
}

int gateway_key_load(const char *path, uint8_t key[GATEWAY_KEY_BYTES])
{
    char text[FILE_BYTES_MAX + 1];
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return reject("the key cannot be read", path, strerror(errno));
    }
    int code = file_check(file, path);
    ssize_t bytes = code == APP_EXIT_SUCCESS ? read(file, text, sizeof(text)) : 0;
    close(file);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    size_t key_bytes = 0;
    bool is_key = bytes > 0 && bytes <= FILE_BYTES_MAX &&
                  sodium_hex2bin(key, GATEWAY_KEY_BYTES, text, (size_t)bytes, " \r\n\t", &key_bytes, NULL) == 0 &&
                  key_bytes == GATEWAY_KEY_BYTES;
    sodium_memzero(text, sizeof(text));
    return is_key ? APP_EXIT_SUCCESS
                  : reject("the file holds no key", path,
                           "32 hexadecimal digits are wanted; `causeway gateway --make-key FILE` makes one");
}
