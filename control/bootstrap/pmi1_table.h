/* pmi1_table: the keys and values of PMI-1's server, as a tree of tsearch(3). Thread: one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct pmi1_table {
    void *entries; /* NULL: none */
    size_t count;
    size_t count_max;
};

/* NULL: there is no such key. Valid until its next pmi1_table_put. */
const char *pmi1_table_value(const struct pmi1_table *table, const char *key);
/* Keeps copies; a later value replaces an earlier one. `is_fresh`: the next pmi1_table_fresh reports it. CW_OK,
 * CW_ERROR_LIMIT (the table has count_max keys), CW_ERROR_MEMORY. */
int pmi1_table_put(struct pmi1_table *table, const char *key, const char *value, bool is_fresh);
/* Passes each fresh entry to `report` once. */
void pmi1_table_fresh(const struct pmi1_table *table, void (*report)(void *context, const char *key, const char *value),
                      void *context);
void pmi1_table_dispose(struct pmi1_table *table);
