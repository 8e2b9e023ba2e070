#include "control/bootstrap/pmi1_table.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

struct pair {
    const char *key;
    const char *value;
    bool is_fresh;
    char text[]; /* key and value */
};

static int entry_compare(const void *one, const void *other)
{
    return strcmp(((const struct pair *)one)->key, ((const struct pair *)other)->key);
}

/* NULL: there is none. */
static struct pair *entry_find(const struct pmi1_table *table, const char *key)
{
    const struct pair wanted = {.key = key};
    struct pair **found = tfind(&wanted, &table->entries, entry_compare);
    return found == NULL ? NULL : *found;
}

int pmi1_table_put(struct pmi1_table *table, const char *key, const char *value, bool is_fresh)
{
    size_t key_bytes = strlen(key) + 1, value_bytes = strlen(value) + 1;
    const struct pair *before = entry_find(table, key);
    if (before == NULL && table->count == table->count_max) {
        return CW_ERROR_LIMIT;
    }
    struct pair *entry = malloc(sizeof(*entry) + key_bytes + value_bytes);
    if (entry == NULL) {
        return CW_ERROR_MEMORY;
    }
    *entry = (struct pair){.key = entry->text, .value = entry->text + key_bytes, .is_fresh = is_fresh};
    memcpy(entry->text, key, key_bytes);
    memcpy(entry->text + key_bytes, value, value_bytes);
    struct pair **place = tsearch(entry, &table->entries, entry_compare);
    if (place == NULL) {
        free(entry);
        return CW_ERROR_MEMORY;
    }
    if (*place == entry) {
        table->count++;
    } else {
        free(*place);
        *place = entry;
    }
    return CW_OK;
}

const char *pmi1_table_value(const struct pmi1_table *table, const char *key)
{
    const struct pair *entry = entry_find(table, key);
    return entry == NULL ? NULL : entry->value;
}

struct fresh {
    void (*report)(void *context, const char *key, const char *value);
    void *context;
};

static void fresh_report(const void *node, VISIT visit, void *context)
{
    const struct fresh *fresh = context;
    struct pair *entry = *(struct pair *const *)node;
    if ((visit == postorder || visit == leaf) && entry->is_fresh) {
        entry->is_fresh = false;
        fresh->report(fresh->context, entry->key, entry->value);
    }
}

void pmi1_table_fresh(const struct pmi1_table *table, void (*report)(void *context, const char *key, const char *value),
                      void *context)
{
    struct fresh fresh = {.report = report, .context = context};
    twalk_r(table->entries, fresh_report, &fresh);
}

void pmi1_table_dispose(struct pmi1_table *table)
{
    tdestroy(table->entries, free);
    *table = (struct pmi1_table){.entries = NULL};
}
