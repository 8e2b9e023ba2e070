#include "control/settings/setting.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/settings.h"

extern char **environ;

#define HEAD "CAUSEWAY_" /* of a setting's name in the environment */
enum {
    HEAD_BYTES = sizeof(HEAD) - 1,
    NAME_BYTES = 64,
    FILE_BYTES_MAX = 1 << 20,
    NEAR = 3 /* changed letters of a misspelt name */
};

static const struct {
    const char *name;
    enum cw_setting_kind kind;
    const char *standard;
    const char *meaning;
} rows[CW_SETTINGS] = {
#define X(name, kind, standard, meaning) {HEAD #name, CW_SETTING_##kind, standard, meaning},
    CW_SETTING_LIST(X)
#undef X
};

/* A process has one environment, and this goes with it. */
static struct {
    pthread_once_t once;
    char path[CW_SETTINGS_PATH_BYTES];
    char *text; /* of the file; NULL: none */
    const char *of_file[CW_SETTINGS];
    bool is_given[CW_SETTINGS];
} own = {.once = PTHREAD_ONCE_INIT};

/* NULL: not set, or empty. */
static const char *of_environment(enum cw_setting setting)
{
    const char *value = getenv(rows[setting].name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* ---- the file ---- */

/* The setting of a name, with or without CAUSEWAY_; CW_SETTINGS: there is none. */
static enum cw_setting find(const char *name, size_t length)
{
    bool has_head = length >= HEAD_BYTES && strncmp(name, HEAD, HEAD_BYTES) == 0;
    const char *tail = has_head ? name + HEAD_BYTES : name;
    size_t tail_length = has_head ? length - HEAD_BYTES : length;
    for (uint32_t i = 0; i < CW_SETTINGS; i++) {
        const char *other = rows[i].name + HEAD_BYTES;
        if (strlen(other) == tail_length && strncmp(other, tail, tail_length) == 0) {
            return (enum cw_setting)i;
        }
    }
    return CW_SETTINGS;
}

/* The setting that a line of a file gives a value; CW_SETTINGS: none, or one that no file may have. */
static enum cw_setting of_line(const char *line)
{
    size_t length = strcspn(line, "=");
    enum cw_setting setting = line[length] == '=' ? find(line, length) : CW_SETTINGS;
    bool is_allowed =
        setting < CW_SETTINGS && rows[setting].kind != CW_SETTING_LAUNCHER && setting != CW_SETTING_SETTINGS;
    return is_allowed ? setting : CW_SETTINGS;
}

/* The next line that says something, of a text that is cut into lines; NULL: the end. */
static char *line_next(char **rest)
{
    char *line;
    do {
        line = strsep(rest, "\n");
        line = line != NULL ? line + strspn(line, " \t\r") : NULL;
    } while (line != NULL && (line[0] == '\0' || line[0] == '#'));
    return line;
}

/* The text of the file, to be freed; NULL: there is none. `is_missing`: a setting names it, but it does not exist. */
static char *file_read(bool *is_missing)
{
    struct cw_settings_place place;
    size_t length;
    enum cw_setting self = CW_SETTING_SETTINGS;
    cw_settings_place_find(of_environment(self), rows[self].name, "settings", &place);
    strcpy(own.path, place.path);
    char *text = place.path[0] != '\0' ? cw_settings_read(place.path, FILE_BYTES_MAX, &length) : NULL;
    *is_missing = text == NULL && place.is_wanted;
    return text;
}

static void file_parse(void)
{
    bool is_missing;
    own.text = file_read(&is_missing);
    char *rest = own.text;
    for (char *line; rest != NULL && (line = line_next(&rest)) != NULL;) {
        enum cw_setting setting = of_line(line);
        if (setting < CW_SETTINGS) {
            char *value = strchr(line, '=') + 1;
            value[strcspn(value, "\r")] = '\0';
            own.of_file[setting] = value;
        }
    }
}

/* ---- values ---- */

static const char *of_file(enum cw_setting setting)
{
    (void)pthread_once(&own.once, file_parse);
    const char *value = own.of_file[setting];
    return value != NULL && value[0] != '\0' && !own.is_given[setting] ? value : NULL;
}

const char *cw_setting(enum cw_setting setting)
{
    const char *value = of_environment(setting);
    return value != NULL ? value : of_file(setting);
}

const char *cw_setting_origin(enum cw_setting setting)
{
    return of_environment(setting) != NULL ? own.is_given[setting] ? "command line" : "environment"
           : of_file(setting) != NULL      ? own.path
                                           : "default";
}

const char *cw_setting_name(enum cw_setting setting)
{
    return rows[setting].name;
}

const char *cw_setting_meaning(enum cw_setting setting)
{
    return rows[setting].meaning;
}

const char *cw_setting_default(enum cw_setting setting)
{
    return rows[setting].standard;
}

enum cw_setting_kind cw_setting_kind(enum cw_setting setting)
{
    return rows[setting].kind;
}

bool cw_setting_set(enum cw_setting setting, const char *value)
{
    own.is_given[setting] = true;
    return setenv(rows[setting].name, value, 1) == 0;
}

void cw_setting_clear(enum cw_setting setting)
{
    own.is_given[setting] = true;
    unsetenv(rows[setting].name);
}

void cw_settings_export(void)
{
    for (uint32_t i = 0; i < CW_SETTINGS; i++) {
        if (of_environment((enum cw_setting)i) == NULL && of_file((enum cw_setting)i) != NULL) {
            (void)setenv(rows[i].name, of_file((enum cw_setting)i), 1);
        }
    }
    (void)setenv(rows[CW_SETTING_SETTINGS].name, "none", 1);
}

/* ---- names that are none ---- */

/* Letters to change, insert or remove between the two words (Levenshtein), below NAME_BYTES. */
static uint32_t distance(const char *from, size_t length, const char *to)
{
    uint32_t row[NAME_BYTES] = {0};
    size_t width = strlen(to) < NAME_BYTES - 1 ? strlen(to) : NAME_BYTES - 1;
    for (uint32_t k = 0; k <= width; k++) {
        row[k] = k;
    }
    for (uint32_t i = 1; i <= length; i++) {
        uint32_t corner = row[0];
        row[0] = i;
        for (uint32_t k = 1; k <= width; k++) {
            uint32_t changed = corner + (from[i - 1] != to[k - 1]);
            uint32_t shorter = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
            corner = row[k];
            row[k] = changed < shorter ? changed : shorter;
        }
    }
    return row[width];
}

static void complain_about(const char *name, size_t length, const char *where,
                           void (*complain)(void *context, const char *line), void *context)
{
    char line[CW_SETTINGS_PATH_BYTES + 4 * NAME_BYTES];
    uint32_t best = UINT32_MAX, at = 0;
    length = length < NAME_BYTES ? length : NAME_BYTES;
    for (uint32_t i = 0; i < CW_SETTINGS; i++) {
        const char *other = strncmp(name, HEAD, HEAD_BYTES) == 0 ? rows[i].name : rows[i].name + HEAD_BYTES;
        uint32_t far = rows[i].kind == CW_SETTING_LAUNCHER ? UINT32_MAX : distance(name, length, other);
        at = far < best ? i : at;
        best = far < best ? far : best;
    }
    snprintf(line, sizeof(line), "%s: '%.*s' is no setting%s%s%s", where, (int)length, name,
             best <= NEAR ? ": " : " (`causeway doctor` lists all)", best <= NEAR ? rows[at].name : "",
             best <= NEAR ? " is meant?" : "");
    complain(context, line);
}

void cw_settings_check(void (*complain)(void *context, const char *line), void *context)
{
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        size_t length = strcspn(*at, "=");
        if (strncmp(*at, HEAD, HEAD_BYTES) == 0 && find(*at, length) == CW_SETTINGS) {
            complain_about(*at, length, "environment", complain, context);
        }
    }
    bool is_missing;
    char *text = file_read(&is_missing), *rest = text;
    if (is_missing) {
        char line[CW_SETTINGS_PATH_BYTES + NAME_BYTES];
        snprintf(line, sizeof(line), "%s: %s cannot be read: %s", rows[CW_SETTING_SETTINGS].name, own.path,
                 strerror(errno));
        complain(context, line);
    }
    for (char *line; rest != NULL && (line = line_next(&rest)) != NULL;) {
        if (of_line(line) == CW_SETTINGS) {
            complain_about(line, strcspn(line, "="), own.path, complain, context);
        }
    }
    free(text);
}

/* ---- others' variables ---- */

bool cw_environment_set(const char *name, const char *value)
{
    enum cw_setting setting = strncmp(name, HEAD, HEAD_BYTES) == 0 ? find(name, strlen(name)) : CW_SETTINGS;
    return setting < CW_SETTINGS ? cw_setting_set(setting, value) : setenv(name, value, 1) == 0;
}
