#include "control/job/dedicate.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#define LIST "cores:"

static bool core_add(struct cw_dedicate_wish *wish, unsigned long core)
{
    for (uint32_t i = 0; i < wish->count; i++) {
        if (wish->cores[i] == core) {
            return false;
        }
    }
    wish->cores[wish->count++] = (uint16_t)core;
    return true;
}

/* "4" or "4-7"; `*at` points behind it afterwards. */
static bool range_add(struct cw_dedicate_wish *wish, const char **at)
{
    char *end;
    unsigned long first = strtoul(*at, &end, 10), last = first;
    if (!isdigit((unsigned char)**at)) {
        return false;
    }
    if (*end == '-') {
        *at = end + 1;
        if (!isdigit((unsigned char)**at)) {
            return false;
        }
        last = strtoul(*at, &end, 10);
    }
    *at = end;
    for (unsigned long core = first; core <= last && last < CPU_SETSIZE; core++) {
        if (!core_add(wish, core)) {
            return false;
        }
    }
    return first <= last && last < CPU_SETSIZE;
}

static bool list_read(const char *at, struct cw_dedicate_wish *wish)
{
    wish->has_list = true;
    while (range_add(wish, &at)) {
        if (*at == 0) {
            return true;
        }
        if (*at++ != ',') {
            return false;
        }
    }
    return false;
}

/* "2", "cores:2,4-7" or "2,cores:2,4-7". */
static bool wish_read(const char *text, struct cw_dedicate_wish *wish)
{
    char *end = (char *)(uintptr_t)text;
    unsigned long threads = isdigit((unsigned char)text[0]) ? strtoul(text, &end, 10) : 1;
    bool has_number = end != text;
    if (threads < 1 || threads > CW_LOOP_SET_MAX || (has_number && *end != 0 && *end++ != ',')) {
        return false;
    }
    wish->threads = (uint32_t)threads;
    return (has_number && *end == 0 && end[-1] != ',') ||
           (strncmp(end, LIST, strlen(LIST)) == 0 && list_read(end + strlen(LIST), wish));
}

int cw_dedicate_read(const char *text, struct cw_dedicate_wish *wish, char *error, size_t error_bytes)
{
    *wish = (struct cw_dedicate_wish){.threads = 0};
    if (text == NULL || text[0] == 0 || strcmp(text, "off") == 0 || strcmp(text, "0") == 0 || wish_read(text, wish)) {
        return CW_OK;
    }
    return cw_error_text(
        error, error_bytes, CW_ERROR_ARGUMENT,
        "'%.60s' dedicates no cores: a number up to %d (of dataplane threads of each rank), cores:2,4-7 (one each on "
        "these cores of each machine, each named once), 2,cores:2,4-7 (two each), or off is wanted",
        text, CW_LOOP_SET_MAX);
}

/* Takes the last cores out of a set, `threads` for each of `count` ranks; those of the rank with that number, from the
 * end, are its own. */
static void cores_claim(cpu_set_t *set, uint32_t count, uint32_t number, uint32_t threads,
                        struct cw_dedicated *dedicated)
{
    uint32_t taken = 0;
    for (int core = CPU_SETSIZE - 1; core >= 0 && taken < count * threads; core--) {
        if (CPU_ISSET((size_t)core, set)) {
            CPU_CLR((size_t)core, set);
            if (taken++ / threads == number) {
                dedicated->cores[dedicated->count++] = core;
            }
        }
    }
}

static void of_list(const struct cw_dedicate_wish *wish, const struct cw_dedicate_place *place, cpu_set_t *rest,
                    struct cw_dedicated *dedicated)
{
    uint32_t first = place->number * wish->threads, wanted = place->count * wish->threads;
    if (first + wish->threads > wish->count) {
        snprintf(dedicated->why, sizeof(dedicated->why),
                 "%" PRIu32 " ranks of this machine want %" PRIu32 " cores, and the list of CAUSEWAY_DEDICATED has "
                 "%" PRIu32,
                 place->count, wanted, wish->count);
        return;
    }
    for (uint32_t i = 0; i < wish->count && i < wanted; i++) {
        CPU_CLR(wish->cores[i], rest);
    }
    if (CPU_COUNT(rest) == 0) { /* named cores may be shared on purpose */
        *rest = place->allowed;
    }
    while (dedicated->count < wish->threads) {
        dedicated->cores[dedicated->count] = wish->cores[first + dedicated->count];
        dedicated->count++;
    }
}

void cw_dedicate_choose(const struct cw_dedicate_wish *wish, const struct cw_dedicate_place *place, cpu_set_t *rest,
                        struct cw_dedicated *dedicated)
{
    uint32_t own = place->cores.own, threads = wish->threads;
    *dedicated = (struct cw_dedicated){.count = 0};
    *rest = place->allowed;
    if (threads == 0) {
        return;
    }
    if (wish->has_list) {
        of_list(wish, place, rest, dedicated);
        return;
    }
    bool is_bound = place->count == 1 || (uint64_t)place->count * own <= place->cores.all; /* to cores of its own */
    if (is_bound && own > threads) {
        cores_claim(rest, 1, 0, threads, dedicated);
    } else if (!is_bound && own >= (threads + 1) * place->count) {
        cores_claim(rest, place->count, place->number, threads, dedicated);
    } else if (is_bound) {
        snprintf(dedicated->why, sizeof(dedicated->why),
                 "this rank may run on %" PRIu32 " core%s, of which the program computes on one: bind it to %" PRIu32
                 ", or name others by CAUSEWAY_DEDICATED=cores:LIST",
                 own, own == 1 ? "" : "s", threads + 1);
    } else {
        snprintf(dedicated->why, sizeof(dedicated->why),
                 "%" PRIu32 " ranks of this machine with %" PRIu32 " dataplane thread%s each want %" PRIu32
                 " cores, and they may run on %" PRIu32,
                 place->count, threads, threads == 1 ? "" : "s", (threads + 1) * place->count, own);
    }
}

int cw_dedicate_parse(const char *text, struct cw_dedicated *dedicated)
{
    static const char none[] = "none: ";
    *dedicated = (struct cw_dedicated){.count = 0};
    if (strncmp(text, none, strlen(none)) == 0) {
        snprintf(dedicated->why, sizeof(dedicated->why), "%.150s", text + strlen(none));
        return CW_OK;
    }
    while (isdigit((unsigned char)text[0]) && dedicated->count < CW_LOOP_SET_MAX) {
        char *end;
        unsigned long number = strtoul(text, &end, 10);
        if (number >= CPU_SETSIZE) {
            break;
        }
        dedicated->cores[dedicated->count++] = (int)number;
        if (*end == 0) {
            return CW_OK;
        }
        text = *end == ',' ? end + 1 : "";
    }
    return CW_ERROR_ARGUMENT;
}
