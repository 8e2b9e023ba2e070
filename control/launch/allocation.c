#include "control/launch/allocation.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum {
    DIGITS_MAX = 9,
    RANGES_MAX = 4, /* of one name: rack[1-4]node[1-16] */
    LINE_BYTES = 4096,
    ENTRY_BYTES = 65536, /* of a list: "node[1,3,5,...]" */
};

static const char digits[] = "0123456789";
static const char blanks[] = " \t\r\v\f";
static const char name_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

/* The reader and its output. */
struct reader {
    struct cw_launch_allocation made; /* becomes the caller's in the end */
    uint32_t room;                    /* hosts that `made` has memory for */
    char where[300];                  /* "FILE:LINE", in front of errors */
    const char *tasks;                /* Slurm: the rest of the tasks per node; else NULL */
    uint32_t tasks_count;
    uint32_t tasks_repeat; /* nodes that still have tasks_count */
    char *error;
    size_t error_bytes;
};

#define REJECT(reader, status, format, ...) \
    cw_error_text((reader)->error, (reader)->error_bytes, (status), "%s: " format, (reader)->where, __VA_ARGS__)

static void reader_begin(struct reader *reader, const struct cw_launch_allocation *allocation, const char *where,
                         char *error, size_t error_bytes)
{
    *reader = (struct reader){.error = error, .error_bytes = error_bytes};
    snprintf(reader->where, sizeof(reader->where), "%.*s", (int)sizeof(reader->where) - 1, where);
    reader->made.slots = allocation->slots;
}

/* Begins with the contents of the allocation. */
static int reader_copy(struct reader *reader, const struct cw_launch_allocation *allocation)
{
    if (allocation->count > 0) {
        reader->made.hosts = malloc(allocation->count * sizeof(*allocation->hosts));
        if (reader->made.hosts == NULL) {
            return REJECT(reader, CW_ERROR_MEMORY, "no memory for %u hosts", allocation->count);
        }
        memcpy(reader->made.hosts, allocation->hosts, allocation->count * sizeof(*allocation->hosts));
        reader->made.count = reader->room = allocation->count;
    }
    return CW_OK;
}

/* Hands over what was read, or throws it away. */
static int reader_end(struct reader *reader, struct cw_launch_allocation *allocation, int status)
{
    struct cw_launch_allocation *gone = status == CW_OK ? allocation : &reader->made;
    free(gone->hosts);
    if (status == CW_OK) {
        *allocation = reader->made;
    }
    return status;
}

/* Up to DIGITS_MAX digits; *length: how many. */
static bool number_read(const char *text, uint32_t *number, size_t *length)
{
    char copy[DIGITS_MAX + 1];
    *length = strspn(text, digits);
    if (*length == 0 || *length > DIGITS_MAX) {
        return false;
    }
    memcpy(copy, text, *length);
    copy[*length] = 0;
    *number = (uint32_t)strtoul(copy, NULL, 10);
    return true;
}

/* ---- hosts ---- */

static bool name_is_valid(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    const char *at = strchr(name, '@');
    if (strchr(name, ':') != NULL) {
        return inet_pton(AF_INET6, name, address) == 1;
    }
    size_t user = at != NULL ? (size_t)(at - name) : 0;
    const char *host = at != NULL ? at + 1 : name;
    return name[0] != '-' && host[0] != '-' && host[0] != 0 && strspn(name, name_characters) >= user &&
           (at == NULL || user > 0) && host[strspn(host, name_characters)] == 0;
}

static struct cw_launch_host *host_find(const struct cw_launch_allocation *made, const char *name)
{
    for (uint32_t i = made->count; i-- > 0;) { /* the last one first: PBS repeats it for each rank */
        if (strcmp(made->hosts[i].name, name) == 0) {
            return &made->hosts[i];
        }
    }
    return NULL;
}

static int host_append(struct reader *reader, const char *name, struct cw_launch_host **host)
{
    struct cw_launch_allocation *made = &reader->made;
    if (made->count == CW_LAUNCH_HOSTS_MAX) {
        return REJECT(reader, CW_ERROR_LIMIT, "more than %d hosts (name fewer)", CW_LAUNCH_HOSTS_MAX);
    }
    if (made->count == reader->room) {
        uint32_t room = reader->room == 0 ? 16 : 2 * reader->room;
        struct cw_launch_host *hosts = realloc(made->hosts, room * sizeof(*hosts));
        if (hosts == NULL) {
            return REJECT(reader, CW_ERROR_MEMORY, "no memory for %u hosts", room);
        }
        made->hosts = hosts;
        reader->room = room;
    }
    *host = &made->hosts[made->count++];
    snprintf((*host)->name, sizeof((*host)->name), "%s", name);
    (*host)->slots = 0;
    return CW_OK;
}

/* The tasks of the next node: "2(x3),1". */
static int tasks_next(struct reader *reader, uint32_t *slots)
{
    size_t length = 0;
    if (reader->tasks_repeat == 0) {
        const char *rest = reader->tasks;
        reader->tasks_repeat = 1;
        bool is_good = number_read(rest, &reader->tasks_count, &length) && reader->tasks_count > 0;
        rest += length;
        if (is_good && strncmp(rest, "(x", 2) == 0) {
            is_good = number_read(rest + 2, &reader->tasks_repeat, &length) && reader->tasks_repeat > 0 &&
                      rest[2 + length] == ')';
            rest += is_good ? length + 3 : 0;
        }
        if (!is_good || (*rest != 0 && (*rest != ',' || rest[1] == 0))) {
            return REJECT(reader, CW_ERROR_ARGUMENT,
                          "SLURM_TASKS_PER_NODE has '%.40s' where the tasks of node %u are due, such as 2(x3),1 (use "
                          "--hosts)",
                          reader->tasks, reader->made.count + 1);
        }
        reader->tasks = *rest == ',' ? rest + 1 : rest;
    }
    reader->tasks_repeat--;
    *slots = reader->tasks_count;
    return CW_OK;
}

/* `slots` of a host that has a plain name now; 0: not said. */
static int host_add(struct reader *reader, const char *name, uint32_t slots)
{
    struct cw_launch_host *host;
    int status = CW_OK;
    if (!name_is_valid(name)) {
        return REJECT(reader, CW_ERROR_ARGUMENT,
                      "'%.80s' cannot be the name of a host (letters, digits, '.', '-', '_'; an address of IPv6 in "
                      "brackets)",
                      name);
    }
    if (reader->tasks != NULL) {
        status = tasks_next(reader, &slots);
    }
    slots = slots == 0 ? 1 : slots;
    if (status == CW_OK && slots > CW_LAUNCH_SLOTS_MAX - reader->made.slots) {
        status = REJECT(reader, CW_ERROR_LIMIT, "more than %d slots on all hosts together, with those of %.80s",
                        CW_LAUNCH_SLOTS_MAX, name);
    }
    host = status == CW_OK ? host_find(&reader->made, name) : NULL;
    if (status == CW_OK && host == NULL) {
        status = host_append(reader, name, &host);
    }
    if (status == CW_OK) {
        host->slots += slots;
        reader->made.slots += slots;
    }
    return status;
}

/* ---- ranges ---- */

/* A name under construction: the part before the ranges, and their numbers. */
struct expansion {
    struct reader *reader;
    const char *whole;
    uint32_t slots;
    size_t length;
    char name[CW_LAUNCH_HOST_NAME_BYTES];
};

static int range_reject(const struct expansion *expansion)
{
    return REJECT(expansion->reader, CW_ERROR_ARGUMENT,
                  "'%.80s' is no range of hosts (write it as node[01-16,20], with up to %d ranges)", expansion->whole,
                  RANGES_MAX);
}

static int name_extend(struct expansion *expansion, const char *text, size_t length)
{
    if (length >= sizeof(expansion->name) - expansion->length) {
        return REJECT(expansion->reader, CW_ERROR_ARGUMENT, "'%.80s...' is longer than the name of a host can be (%d)",
                      expansion->whole, CW_LAUNCH_HOST_NAME_BYTES - 1);
    }
    memcpy(expansion->name + expansion->length, text, length);
    expansion->length += length;
    expansion->name[expansion->length] = 0;
    return CW_OK;
}

/* Takes "01-03" or "7" apart; *rest: what follows. */
static bool range_read(const char *text, uint32_t *low, uint32_t *high, int *width, const char **rest)
{
    size_t length;
    if (!number_read(text, low, &length)) {
        return false;
    }
    *width = text[0] == '0' ? (int)length : 0; /* of numbers that begin with zeros */
    *high = *low;
    text += length;
    if (*text == '-') {
        if (!number_read(text + 1, high, &length)) {
            return false;
        }
        text += 1 + length;
    }
    *rest = text;
    return *high >= *low;
}

/* Takes what is left of a name, of which `ranges` may still be. Recursion ends by these. */
static int name_expand(struct expansion *expansion, const char *text, uint32_t ranges)
{
    const char *bracket = strchr(text, '[');
    int status = name_extend(expansion, text, bracket != NULL ? (size_t)(bracket - text) : strlen(text));
    if (status != CW_OK || bracket == NULL) {
        return status == CW_OK ? host_add(expansion->reader, expansion->name, expansion->slots) : status;
    }
    const char *end = strchr(bracket, ']');
    if (end == NULL || ranges == 0) {
        return range_reject(expansion);
    }
    size_t length = expansion->length;
    for (const char *rest = bracket; status == CW_OK && rest != end;) {
        uint32_t low, high;
        int width;
        if (!range_read(rest + 1, &low, &high, &width, &rest) || (*rest != ',' && rest != end)) {
            return range_reject(expansion);
        }
        for (uint64_t number = low; number <= high && status == CW_OK; number++) {
            char text_of_number[DIGITS_MAX + 2];
            int written = snprintf(text_of_number, sizeof(text_of_number), "%0*u", width, (uint32_t)number);
            expansion->length = length;
            status = name_extend(expansion, text_of_number, (size_t)written);
            status = status == CW_OK ? name_expand(expansion, end + 1, ranges - 1) : status;
        }
    }
    return status;
}

/* ---- entries ---- */

/* Cuts ":4" off; *slots: 0 if there is none. */
static int slots_cut(struct reader *reader, char *entry, char **name, uint32_t *slots)
{
    size_t length = 0;
    char *end = entry[0] == '[' ? strchr(entry, ']') : NULL;
    char *colon = end != NULL ? end + 1 : strchr(entry, ':');
    *name = end != NULL ? entry + 1 : entry;
    *slots = 0;
    if (colon != NULL && *colon != 0) {
        if (end == NULL && strchr(colon + 1, ':') != NULL) {
            return REJECT(reader, CW_ERROR_ARGUMENT, "'%.80s': write an address of IPv6 in brackets: [fd77::1]:4",
                          entry);
        }
        if (*colon != ':' || !number_read(colon + 1, slots, &length) || colon[1 + length] != 0 || *slots == 0) {
            return REJECT(reader, CW_ERROR_ARGUMENT, "'%.80s': a host and how many ranks it takes are due, such as a:4",
                          entry);
        }
        *colon = 0;
    }
    if (end != NULL) {
        *end = 0;
        if (strchr(*name, ':') == NULL) {
            return REJECT(reader, CW_ERROR_ARGUMENT, "'[%.80s]' is no address of IPv6, and a name is missing", *name);
        }
    }
    return CW_OK;
}

static int entry_parse(struct reader *reader, const char *name, uint32_t slots)
{
    struct expansion expansion = {.reader = reader, .whole = name, .slots = slots};
    if (slots > 0 && reader->tasks != NULL) {
        return REJECT(reader, CW_ERROR_ARGUMENT, "'%.80s' has a number of ranks, which Slurm does not write", name);
    }
    return name_expand(&expansion, name, RANGES_MAX);
}

/* Entries between commas that are in no brackets. */
static int list_parse(struct reader *reader, const char *text)
{
    char *entry = malloc(ENTRY_BYTES);
    int status = entry != NULL ? CW_OK : REJECT(reader, CW_ERROR_MEMORY, "no memory for %d bytes", ENTRY_BYTES);
    for (bool is_last = false; status == CW_OK && !is_last;) {
        size_t length = 0;
        for (bool inside = false; text[length] != 0 && (inside || text[length] != ','); length++) {
            inside = text[length] == '[' || (inside && text[length] != ']');
        }
        if (length == 0 || length >= ENTRY_BYTES) {
            status = length == 0
                         ? REJECT(reader, CW_ERROR_ARGUMENT, "a host is missing at '%.40s' (write a:4,b:4)", text)
                         : REJECT(reader, CW_ERROR_LIMIT, "'%.40s...' is too long", text);
            break;
        }
        memcpy(entry, text, length);
        entry[length] = 0;
        is_last = text[length] == 0;
        text += is_last ? length : length + 1;
        char *name;
        uint32_t slots;
        status = slots_cut(reader, entry, &name, &slots);
        status = status == CW_OK ? entry_parse(reader, name, slots) : status;
    }
    free(entry);
    return status;
}

/* ---- files ---- */

/* Open MPI's "slots=4" and "max_slots=8". */
static int word_parse(struct reader *reader, const char *word, uint32_t *slots, uint32_t *slots_max)
{
    const char *equal = strchr(word, '=');
    size_t length = equal != NULL ? (size_t)(equal - word) : 0;
    bool is_max = length == 9 && (strncmp(word, "max_slots", 9) == 0 || strncmp(word, "max-slots", 9) == 0);
    uint32_t *number = is_max ? slots_max : slots;
    if (!is_max && (length != 5 || strncmp(word, "slots", 5) != 0)) {
        return REJECT(reader, CW_ERROR_ARGUMENT, "'%.60s': behind a host, slots=N and max_slots=N are known", word);
    }
    if (*number != 0) {
        return REJECT(reader, CW_ERROR_ARGUMENT, "'%.60s': the line says it already", word);
    }
    if (!number_read(equal + 1, number, &length) || equal[1 + length] != 0 || *number == 0) {
        return REJECT(reader, CW_ERROR_ARGUMENT, "'%.60s': a number from 1 on is due", word);
    }
    return CW_OK;
}

static int line_parse(struct reader *reader, char *line)
{
    char *rest = NULL;
    char *name;
    uint32_t slots;
    uint32_t slots_max = 0;
    line[strcspn(line, "#")] = 0;
    char *entry = strtok_r(line, blanks, &rest);
    if (entry == NULL) {
        return CW_OK;
    }
    if (strchr(entry, ',') != NULL && strchr(entry, '[') == NULL) {
        return REJECT(reader, CW_ERROR_ARGUMENT, "'%.80s': a line has one host (lists are for --hosts)", entry);
    }
    int status = slots_cut(reader, entry, &name, &slots);
    for (const char *word; status == CW_OK && (word = strtok_r(NULL, blanks, &rest)) != NULL;) {
        status = word_parse(reader, word, &slots, &slots_max);
    }
    if (status == CW_OK && slots_max != 0 && slots_max < slots) {
        status = REJECT(reader, CW_ERROR_ARGUMENT, "max_slots=%u is less than its slots=%u", slots_max, slots);
    }
    return status == CW_OK ? entry_parse(reader, name, slots) : status;
}

/* ---- the calls ---- */

int cw_launch_hosts_list(struct cw_launch_allocation *allocation, const char *where, const char *text, char *error,
                         size_t error_bytes)
{
    struct reader reader;
    reader_begin(&reader, allocation, where, error, error_bytes);
    int status = reader_copy(&reader, allocation);
    status = status == CW_OK ? list_parse(&reader, text) : status;
    return reader_end(&reader, allocation, status);
}

int cw_launch_hosts_lines(struct cw_launch_allocation *allocation, const char *where, const char *text, size_t length,
                          char *error, size_t error_bytes)
{
    struct reader reader;
    char line[LINE_BYTES];
    reader_begin(&reader, allocation, where, error, error_bytes);
    int status = reader_copy(&reader, allocation);
    for (uint32_t number = 1; status == CW_OK && length > 0; number++) {
        const char *end = memchr(text, '\n', length);
        size_t taken = end != NULL ? (size_t)(end - text) : length;
        snprintf(reader.where, sizeof(reader.where), "%.250s:%u", where, number);
        if (taken >= sizeof(line) || memchr(text, 0, taken) != NULL) {
            status =
                REJECT(&reader, CW_ERROR_ARGUMENT, "%s", "this is no line of a file of hosts (a host a line: a:4)");
            break;
        }
        memcpy(line, text, taken);
        line[taken] = 0;
        status = line_parse(&reader, line);
        taken += end != NULL;
        text += taken;
        length -= taken;
    }
    if (status == CW_OK && reader.made.count == 0) {
        snprintf(reader.where, sizeof(reader.where), "%.*s", (int)sizeof(reader.where) - 1, where);
        status = REJECT(&reader, CW_ERROR_ARGUMENT, "%s", "there is no host in it (write one a line: a:4)");
    }
    return reader_end(&reader, allocation, status);
}

int cw_launch_hosts_slurm(struct cw_launch_allocation *allocation, const char *nodes, const char *tasks, char *error,
                          size_t error_bytes)
{
    struct reader reader;
    reader_begin(&reader, allocation, "SLURM_JOB_NODELIST", error, error_bytes);
    reader.tasks = tasks;
    int status = reader_copy(&reader, allocation);
    status = status == CW_OK ? list_parse(&reader, nodes) : status;
    if (status == CW_OK && tasks != NULL && (reader.tasks_repeat > 0 || reader.tasks[0] != 0)) {
        status =
            REJECT(&reader, CW_ERROR_ARGUMENT,
                   "'%.80s' has fewer nodes than SLURM_TASKS_PER_NODE '%.80s' has numbers (use --hosts)", nodes, tasks);
    }
    return reader_end(&reader, allocation, status);
}

void cw_launch_allocation_dispose(struct cw_launch_allocation *allocation)
{
    free(allocation->hosts);
    *allocation = (struct cw_launch_allocation){0};
}
