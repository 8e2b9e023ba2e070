/* Plan files and text files: the I/O that collectives/ leaves to its callers. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/plan/plan.h"
#include "collectives/check/check.h"
#include "collectives/file/bundle.h"
#include "dataplane/status.h"

enum { READ_FIRST = 1 << 16 };

/* More than any plan that fits into memory. */
#define FILE_MAX ((size_t)1 << 30)

/* All bytes of a stream, and a zero after them. NULL: errno says why. */
static char *stream_read(FILE *stream, size_t *length, size_t most)
{
    size_t capacity = READ_FIRST;
    char *bytes = malloc(capacity + 1);
    *length = 0;
    while (bytes != NULL) {
        *length += fread(bytes + *length, 1, capacity - *length, stream);
        if (*length < capacity) {
            bytes[*length] = '\0';
            break;
        }
        if (*length > most) {
            free(bytes);
            errno = EFBIG;
            return NULL;
        }
        capacity *= 2;
        char *grown = realloc(bytes, capacity + 1);
        if (grown == NULL) {
            free(bytes);
        }
        bytes = grown;
    }
    if (bytes != NULL && ferror(stream)) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

static char *file_read(const char *path, size_t *length)
{
    FILE *stream = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (stream == NULL) {
        app_error("the file cannot be opened", path, strerror(errno));
        return NULL;
    }
    char *bytes = stream_read(stream, length, FILE_MAX);
    if (bytes == NULL) {
        app_error("the file cannot be read", path, strerror(errno));
    }
    if (stream != stdin) {
        fclose(stream);
    }
    return bytes;
}

char *plan_read_bytes(const char *path, size_t *length)
{
    return file_read(path, length);
}

char *plan_read_text(const char *path)
{
    size_t length;
    char *text = file_read(path, &length);
    if (text != NULL && strlen(text) != length) {
        app_error("the file is no text: it has a zero byte", path, "write it with an editor");
        free(text);
        return NULL;
    }
    return text;
}

/* Plan `number` of a bundle. */
static int bundle_extract(const char *bytes, size_t length, uint64_t number, struct cw_plan **plan, char *error,
                          size_t error_bytes)
{
    struct cw_bundle *bundle;
    int status = cw_bundle_decode(bytes, length, &bundle, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    if (number == 0 || number > bundle->plan_count) {
        snprintf(error, error_bytes, "this is a bundle of %u plans: say which one, as FILE#1", bundle->plan_count);
        status = CW_ERROR_ARGUMENT;
    } else {
        *plan = bundle->plans[number - 1].plan;
        bundle->plans[number - 1].plan = NULL;
    }
    cw_bundle_destroy(bundle);
    return status;
}

static struct cw_plan *plan_read(const char *path, int *exit_code)
{
    size_t length;
    char error[400];
    char name[PATH_MAX];
    uint64_t number = 0;
    struct cw_plan *plan = NULL;
    const char *mark = strrchr(path, '#');
    snprintf(name, sizeof(name), "%s", path);
    if (mark != NULL && app_parse_count(mark + 1, &number) && (size_t)(mark - path) < sizeof(name)) {
        name[mark - path] = '\0';
    }
    char *bytes = file_read(name, &length);
    *exit_code = APP_EXIT_USAGE;
    if (bytes == NULL) {
        return NULL;
    }
    int status = cw_bundle_is(bytes, length) ? bundle_extract(bytes, length, number, &plan, error, sizeof(error))
                                             : cw_plan_decode(bytes, length, &plan, error, sizeof(error));
    free(bytes);
    if (status != CW_OK) {
        app_error(error, path, "`causeway plan build` makes plan files");
        *exit_code = status == CW_ERROR_MEMORY ? APP_EXIT_MACHINE : APP_EXIT_USAGE;
        return NULL;
    }
    *exit_code = APP_EXIT_SUCCESS;
    return plan;
}

struct cw_plan *plan_operand_read(int first, int argc, char **argv, bool checked, int *exit_code)
{
    char error[500];
    if (first == argc) {
        app_error("nothing to do", "the plan file is missing", "causeway plan build makes one");
        *exit_code = APP_EXIT_USAGE;
        return NULL;
    }
    struct cw_plan *plan = plan_read(argv[first], exit_code);
    int status = plan != NULL && checked ? cw_check_validate(plan, error, sizeof(error)) : CW_OK;
    if (status == CW_OK) {
        return plan;
    }
    if (status == CW_ERROR_ARGUMENT) {
        app_error(error, argv[first], "`causeway plan dump` shows it, `causeway plan build` makes another");
        *exit_code = APP_EXIT_USAGE;
    } else {
        *exit_code = app_error_status(status, "the plan cannot be checked", argv[first]);
    }
    cw_plan_destroy(plan);
    return NULL;
}

int plan_write(const struct cw_plan *plan, const char *path)
{
    void *bytes;
    size_t length;
    int status = cw_plan_encode(plan, &bytes, &length);
    if (status != CW_OK) {
        app_error(status == CW_ERROR_LIMIT ? "the plan is larger than any that is read again"
                                           : "no memory for the plan file",
                  path, "build it for fewer ranks");
        return APP_EXIT_MACHINE;
    }
    FILE *stream = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    bool written = stream != NULL && fwrite(bytes, 1, length, stream) == length && fflush(stream) == 0;
    if (stream != NULL && stream != stdout) {
        written = fclose(stream) == 0 && written;
    }
    free(bytes);
    if (!written) {
        app_error("the file cannot be written", path, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

const char *plan_time_text(double time_ns, char *text, size_t text_bytes)
{
    const char *units[] = {"ns", "us", "ms", "s"};
    uint32_t unit = 0;
    while (time_ns >= 1000 && unit < 3) {
        time_ns /= 1000;
        unit++;
    }
    snprintf(text, text_bytes, "%.4g %s", time_ns, units[unit]);
    return text;
}
