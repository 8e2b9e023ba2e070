/* The lists on the command line of `causeway plan`: counts, clusters, ways between clusters. Malformed lists are
 * rejected, with the place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/plan/plan.h"
#include "control/settings/units.h"

enum {
    COUNTS_FIRST = 64,   /* initial room: the file may have fewer entries than it announces */
    WORD_BYTES_MAX = 40, /* of an entry, as errors show it */
};

static const char blanks[] = " \t\r\n";

/* ---- Counts ---- */

/* Where the next entry begins. */
struct list_reader {
    const char *at;
    uint64_t line;    /* from 1 */
    uint64_t found;   /* entries read */
    bool after_comma; /* so that an entry must follow */
    const char *each; /* the meaning of an entry */
};

static void blanks_skip(struct list_reader *reader)
{
    for (; *reader->at != '\0' && strchr(blanks, *reader->at) != NULL; reader->at++) {
        reader->line += *reader->at == '\n';
    }
}

/* Reports the wrong entry; its text has `length` bytes. */
static void entry_reject(const struct list_reader *reader, const char *what, size_t length, const char *todo)
{
    char where[160];
    bool cut = length > WORD_BYTES_MAX;
    snprintf(where, sizeof(where), "--counts, line %llu, entry %llu%s%.*s%s", (unsigned long long)reader->line,
             (unsigned long long)reader->found + 1, length > 0 ? ", " : "", (int)(cut ? WORD_BYTES_MAX : length),
             reader->at, cut ? "..." : "");
    app_error(what, where, todo);
}

/* The bytes of the entry at hand, which is `length` bytes long. False: it is no size. */
static bool size_parse(const char *text, size_t length, uint64_t *bytes)
{
    char word[WORD_BYTES_MAX + 1];
    if (length > WORD_BYTES_MAX) {
        return false;
    }
    memcpy(word, text, length);
    word[length] = '\0';
    return cw_units_bytes(word, bytes);
}

/* The entry at hand, in elements; moves on to the next. False: reported. */
static bool entry_parse(struct list_reader *reader, uint64_t wanted, uint64_t element_bytes, uint64_t *count)
{
    size_t length = strcspn(reader->at, ", \t\r\n");
    uint64_t bytes;
    if (length == 0) {
        entry_reject(reader, "a count is missing", 0, "write one size, 0 perhaps, before and after each comma");
        return false;
    }
    if (reader->found == wanted) {
        entry_reject(reader, "more counts than are wanted", length, reader->each);
        return false;
    }
    if (!size_parse(reader->at, length, &bytes)) {
        entry_reject(reader, "a count is no size", length, "write it like 1500, 64K or 10MB");
        return false;
    }
    if (bytes % element_bytes != 0) {
        entry_reject(reader, "a count is no multiple of --element", length, "counts are bytes of whole elements");
        return false;
    }
    *count = bytes / element_bytes;
    reader->found++;
    reader->at += length;
    blanks_skip(reader);
    reader->after_comma = *reader->at == ',';
    reader->at += reader->after_comma;
    blanks_skip(reader);
    return true;
}

/* The list with room for one more, up to `wanted` and one. NULL: reported, and the list is freed. */
static uint64_t *counts_grow(uint64_t *counts, uint64_t found, uint64_t *capacity, uint64_t wanted)
{
    if (counts != NULL && found < *capacity) {
        return counts;
    }
    uint64_t doubled = *capacity == 0 ? COUNTS_FIRST : 2 * *capacity;
    *capacity = doubled < wanted + 1 ? doubled : wanted + 1;
    uint64_t *grown = realloc(counts, *capacity * sizeof(*counts));
    if (grown == NULL) {
        app_error("no memory for the counts", "--counts", "plan for fewer ranks");
        free(counts);
    }
    return grown;
}

uint64_t *plan_counts_parse(const char *text, uint64_t wanted, bool pairs, uint64_t element_bytes)
{
    struct list_reader reader = {
        .at = text,
        .line = 1,
        .each = pairs ? "one size per pair of ranks, row by row" : "one size per rank",
    };
    uint64_t capacity = 0;
    uint64_t *counts = counts_grow(NULL, 0, &capacity, wanted);
    blanks_skip(&reader);
    while (counts != NULL && (*reader.at != '\0' || reader.after_comma)) {
        counts = counts_grow(counts, reader.found, &capacity, wanted);
        if (counts != NULL && !entry_parse(&reader, wanted, element_bytes, &counts[reader.found])) {
            free(counts);
            return NULL;
        }
    }
    if (counts != NULL && reader.found < wanted) {
        char where[80];
        snprintf(where, sizeof(where), "--counts has %llu of %llu", (unsigned long long)reader.found,
                 (unsigned long long)wanted);
        app_error("fewer counts than are wanted", where, reader.each);
        free(counts);
        return NULL;
    }
    return counts;
}

/* ---- Clusters ---- */

/* Digits alone, then one character of `after`, behind which *at moves; where that may be a comma the list may end
 * instead, but not behind a comma. False: something else is there. */
static bool number_parse(const char **at, uint64_t limit, const char *after, uint64_t *number)
{
    size_t length = strspn(*at, "0123456789");
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        value = value * 10 + (uint64_t)((*at)[i] - '0');
        if (value > limit) {
            return false;
        }
    }
    char next = (*at)[length];
    bool more = next != '\0' && strchr(after, next) != NULL;
    bool last = next == '\0' && strchr(after, ',') != NULL;
    if (length == 0 || !(last || (more && (next != ',' || (*at)[length + 1] != '\0')))) {
        return false;
    }
    *number = value;
    *at += length + (next != '\0');
    return true;
}

uint32_t plan_clusters_parse(const char *text, uint64_t ranks, uint32_t *cluster_of)
{
    uint32_t clusters = 0;
    uint64_t rank = 0;
    const char *at = text;
    while (*at != '\0') {
        uint64_t size;
        if (!number_parse(&at, ranks - rank, ",", &size) || size == 0 || clusters == CW_CLUSTERS_MAX) {
            app_error("bad --clusters", text, "numbers of ranks that add up to --ranks, like 8,8");
            return 0;
        }
        for (; size > 0; size--) {
            cluster_of[rank++] = clusters;
        }
        clusters++;
    }
    if (rank != ranks) {
        app_error("bad --clusters", text, "the numbers must add up to --ranks");
        return 0;
    }
    return clusters;
}

bool plan_via_parse(const char *text, uint32_t clusters, uint32_t *via)
{
    static const char *const after[] = {"-", ":", ","};
    const char *at = text;
    for (size_t i = 0; i < (size_t)clusters * clusters; i++) {
        via[i] = CW_DIRECT;
    }
    do {
        uint64_t numbers[3] = {0};
        const char *start = at;
        bool good = true;
        for (uint32_t i = 0; i < 3 && good; i++) {
            good = number_parse(&at, clusters - 1, after[i], &numbers[i]);
        }
        if (!good || numbers[0] == numbers[1]) {
            app_error("bad way between clusters in --via", start,
                      "like 0-2:1: between clusters 0 and 2 through 1, numbers of --clusters");
            return false;
        }
        via[numbers[0] * clusters + numbers[1]] = (uint32_t)numbers[2];
        via[numbers[1] * clusters + numbers[0]] = (uint32_t)numbers[2];
    } while (*at != '\0');
    return true;
}
