#include "control/job/key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "control/settings/inherited.h"
#include "control/settings/setting.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

int cw_job_key_make(uint8_t key[CW_JOB_KEY_BYTES], char *error, size_t error_bytes)
{
    if (getrandom(key, CW_JOB_KEY_BYTES, 0) != CW_JOB_KEY_BYTES) {
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "the kernel gives no random numbers for a key: %s",
                             strerror(errno));
    }
    return CW_OK;
}

int cw_job_key_keep(const uint8_t key[CW_JOB_KEY_BYTES], char *error, size_t error_bytes)
{
    char number[16];
    int made = memfd_create("causeway-key", MFD_CLOEXEC);
    int kept = made < 0 ? -1 : fcntl(made, F_DUPFD, STDERR_FILENO + 1); /* no standard file; open across exec */
    bool done = kept >= 0 && write(kept, key, CW_JOB_KEY_BYTES) == CW_JOB_KEY_BYTES;
    int reason = errno;
    if (made >= 0) {
        close(made);
    }
    snprintf(number, sizeof(number), "%d", kept);
    if (done && cw_setting_set(CW_SETTING_JOB_KEY_FD, number)) {
        cw_setting_clear(CW_SETTING_JOB_KEY);
        return CW_OK;
    }
    if (kept >= 0) {
        close(kept);
    }
    return cw_error_text(error, error_bytes, cw_status_of_errno(reason), "no key can be handed to the ranks: %s%s",
                         strerror(reason), cw_errno_remedy(reason));
}

void cw_job_key_drop(void)
{
    const char *text = cw_setting(CW_SETTING_JOB_KEY_FD);
    if (text != NULL) {
        close(atoi(text));
        cw_setting_clear(CW_SETTING_JOB_KEY_FD);
    }
}

/* Also from where /proc/PID/environ reads. */
static void variable_remove(enum cw_setting setting)
{
    char *value = cw_environment(cw_setting_name(setting));
    if (value != NULL) {
        sodium_memzero(value, strlen(value));
        cw_setting_clear(setting);
    }
}

int cw_job_key_read(uint8_t key[CW_JOB_KEY_BYTES], int *found, char *error, size_t error_bytes)
{
    const char *text = cw_setting(CW_SETTING_JOB_KEY);
    bool by_hand = text != NULL && text[0] != '\0';
    uint8_t taken[CW_JOB_KEY_BYTES];
    size_t count = 0;
    bool makes_sense = !by_hand || (sodium_hex2bin(taken, sizeof(taken), text, strlen(text), NULL, &count, NULL) == 0 &&
                                    count == sizeof(taken));
    int descriptor = cw_inherited_find(CW_SETTING_JOB_KEY_FD, CW_JOB_KEY_BYTES);
    bool has = by_hand;
    if (descriptor >= 0) {
        /* not read: all ranks share one position */
        has = by_hand || pread(descriptor, taken, sizeof(taken), 0) == (ssize_t)sizeof(taken);
        close(descriptor);
    }
    variable_remove(CW_SETTING_JOB_KEY);
    variable_remove(CW_SETTING_JOB_KEY_FD);
    if (!makes_sense) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "CAUSEWAY_JOB_KEY is not 32 hexadecimal digits, the same on all ranks");
    }
    if (has) {
        memcpy(key, taken, sizeof(taken));
        sodium_memzero(taken, sizeof(taken));
    }
    *found = has;
    return CW_OK;
}
