#include "dataplane/fabric/bridge_addresses.h"

#include <assert.h>
#include <stdlib.h>

#include "dataplane/base/random.h"
#include "dataplane/status.h"

enum {
    ANCHOR = 0,        /* newer: the oldest row, older: the newest one */
    REFRESH_PARTS = 16 /* a row moves in the list only after this part of the age: not for every frame */
};

int cw_bridge_addresses_init(struct cw_bridge_addresses *table, uint32_t count_max, uint64_t age_ns, uint64_t seed)
{
    uint32_t bucket_bits = 4;

    while ((1u << bucket_bits) < 2 * count_max) {
        bucket_bits++;
    }
    *table = (struct cw_bridge_addresses){
        .rows = calloc((size_t)count_max + 1, sizeof(*table->rows)),
        .buckets = calloc((size_t)1 << bucket_bits, sizeof(*table->buckets)),
        .bucket_shift = 64 - bucket_bits,
        .count_max = count_max,
        .age_ns = age_ns,
        .multiplier = cw_random_derive(seed, 0) | 1,
    };
    if (!table->rows || !table->buckets) {
        cw_bridge_addresses_dispose(table);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t row = 1; row < count_max; row++) {
        table->rows[row].chain = row + 1;
    }
    table->free = 1;
    return CW_OK;
}

void cw_bridge_addresses_dispose(struct cw_bridge_addresses *table)
{
    free(table->rows);
    free(table->buckets);
    table->rows = NULL;
    table->buckets = NULL;
}

static uint32_t *bucket_of(const struct cw_bridge_addresses *table, uint64_t key)
{
    uint64_t mixed = key * table->multiplier;

    return &table->buckets[((mixed ^ (mixed >> 32)) * table->multiplier) >> table->bucket_shift];
}

static uint32_t row_find(const struct cw_bridge_addresses *table, uint64_t key)
{
    uint32_t row = *bucket_of(table, key);

    while (row && table->rows[row].key != key) {
        row = table->rows[row].chain;
    }
    return row;
}

static bool too_old(const struct cw_bridge_addresses *table, const struct cw_bridge_address *row, uint64_t now_ns)
{
    return !row->fixed && table->age_ns > 0 && now_ns - row->seen_ns > table->age_ns;
}

static void list_remove(struct cw_bridge_addresses *table, uint32_t row)
{
    struct cw_bridge_address *rows = table->rows;

    rows[rows[row].older].newer = rows[row].newer;
    rows[rows[row].newer].older = rows[row].older;
}

static void list_append(struct cw_bridge_addresses *table, uint32_t row)
{
    struct cw_bridge_address *rows = table->rows;

    rows[row].newer = ANCHOR;
    rows[row].older = rows[ANCHOR].older;
    rows[rows[ANCHOR].older].newer = row;
    rows[ANCHOR].older = row;
}

static void row_free(struct cw_bridge_addresses *table, uint32_t row)
{
    uint32_t *link = bucket_of(table, table->rows[row].key);

    while (*link != row) {
        link = &table->rows[*link].chain;
    }
    *link = table->rows[row].chain;
    if (!table->rows[row].fixed) {
        list_remove(table, row);
    }
    table->rows[row].key = 0;
    table->rows[row].chain = table->free;
    table->free = row;
    table->count--;
}

static uint32_t row_acquire(struct cw_bridge_addresses *table, uint64_t key)
{
    uint32_t row = table->free;
    uint32_t *bucket = bucket_of(table, key);

    assert(row && key != 0);
    table->free = table->rows[row].chain;
    table->rows[row] = (struct cw_bridge_address){.key = key, .chain = *bucket};
    *bucket = row;
    table->count++;
    return row;
}

int cw_bridge_addresses_find(const struct cw_bridge_addresses *table, uint64_t now_ns, uint64_t key)
{
    uint32_t row = row_find(table, key);

    return row && !too_old(table, &table->rows[row], now_ns) ? table->rows[row].port : -1;
}

enum cw_bridge_learn cw_bridge_addresses_learn(struct cw_bridge_addresses *table, uint64_t now_ns, uint64_t key,
                                               uint16_t port)
{
    uint32_t row = row_find(table, key);
    enum cw_bridge_learn outcome = CW_BRIDGE_LEARN_KNOWN;

    if (!row) {
        uint32_t oldest = table->rows[ANCHOR].newer;

        if (!table->free && oldest != ANCHOR && too_old(table, &table->rows[oldest], now_ns)) {
            row_free(table, oldest);
        }
        if (!table->free) {
            return CW_BRIDGE_LEARN_FULL;
        }
        row = row_acquire(table, key);
        table->rows[row].port = port;
        table->rows[row].seen_ns = now_ns;
        list_append(table, row);
        return CW_BRIDGE_LEARN_NEW;
    }
    if (table->rows[row].fixed) {
        return CW_BRIDGE_LEARN_KNOWN;
    }
    if (table->rows[row].port != port) {
        table->rows[row].port = port;
        outcome = CW_BRIDGE_LEARN_MOVED;
    }
    if (now_ns - table->rows[row].seen_ns > table->age_ns / REFRESH_PARTS) {
        table->rows[row].seen_ns = now_ns;
        list_remove(table, row);
        list_append(table, row);
    }
    return outcome;
}

bool cw_bridge_addresses_set(struct cw_bridge_addresses *table, uint64_t key, uint16_t port)
{
    uint32_t row = row_find(table, key);

    if (row && !table->rows[row].fixed) {
        list_remove(table, row);
    } else if (!row) {
        if (!table->free) {
            return false;
        }
        row = row_acquire(table, key);
    }
    table->rows[row].fixed = true;
    table->rows[row].port = port;
    return true;
}

void cw_bridge_addresses_flush(struct cw_bridge_addresses *table, uint16_t port)
{
    uint32_t row = table->rows[ANCHOR].newer;

    while (row != ANCHOR) {
        uint32_t next = table->rows[row].newer;

        if (table->rows[row].port == port) {
            row_free(table, row);
        }
        row = next;
    }
}
