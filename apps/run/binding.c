#include "apps/run/binding.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"

enum { LIST_BYTES = 256 };

/* The processors of the list of a core's hardware threads, "0,4" or "0-1", that are `allowed`. Without a list it is the
 * one processor. */
static void core_read(size_t processor, const cpu_set_t *allowed, cpu_set_t *core)
{
    char path[96], list[LIST_BYTES] = "";
    CPU_ZERO(core);
    CPU_SET(processor, core);
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", processor);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    if (fgets(list, sizeof(list), file) == NULL) {
        list[0] = '\0';
    }
    fclose(file);
    for (char *at = list; *at >= '0' && *at <= '9';) {
        size_t first = strtoul(at, &at, 10), last = *at == '-' ? strtoul(at + 1, &at, 10) : first;
        for (size_t i = first; i <= last && i < CPU_SETSIZE; i++) {
            if (CPU_ISSET(i, allowed)) {
                CPU_SET(i, core);
            }
        }
        at += *at == ',';
    }
}

static int too_many(const char *word, uint32_t ranks, uint32_t count)
{
    char where[64], todo[96];
    snprintf(where, sizeof(where), "--bind-to %s", word);
    snprintf(todo, sizeof(todo), "%u ranks, and this process may use %u: fewer ranks, or --bind-to none", ranks, count);
    app_error("not one for each rank", where, todo);
    return APP_EXIT_USAGE;
}

int run_binding_make(const char *word, uint32_t ranks, cpu_set_t **cores)
{
    cpu_set_t allowed, left;
    bool by_thread = strcmp(word, "hwthread") == 0;
    *cores = NULL;
    if (strcmp(word, "none") == 0) {
        return 0;
    }
    if (!by_thread && strcmp(word, "core") != 0) {
        char where[128];
        snprintf(where, sizeof(where), "--bind-to %.100s", word);
        app_error("bad value", where, "'core', 'hwthread' or 'none' is wanted");
        return APP_EXIT_USAGE;
    }
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        app_error("the processors of this process are not known", strerror(errno), "leave --bind-to out");
        return APP_EXIT_MACHINE;
    }
    cpu_set_t *made = calloc(ranks, sizeof(*made));
    if (made == NULL) {
        app_error("out of memory", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    uint32_t count = 0;
    left = allowed;
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        cpu_set_t core;
        if (!CPU_ISSET(i, &left)) {
            continue;
        }
        core_read(i, &left, &core);
        if (by_thread) {
            CPU_ZERO(&core);
            CPU_SET(i, &core);
        }
        if (count < ranks) {
            made[count] = core;
        }
        count++;
        CPU_XOR(&left, &left, &core); /* all of it was left */
    }
    if (count < ranks) {
        free(made);
        return too_many(word, ranks, count);
    }
    *cores = made;
    return 0;
}
