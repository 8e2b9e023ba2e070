#include "mpi/transport/number.h"

#include <stdlib.h>

/* A number is an index into the table, and how often the entry has been used. */
enum { INDEX_BITS = 20, USES_MASK = (1 << (32 - INDEX_BITS)) - 1 };

struct number_entry {
    struct mpi_numbered *numbered; /* NULL: free */
    uint32_t uses;                 /* 1 .. USES_MASK: a number is never 0 */
    uint32_t next_free;
};

static struct number_entry *entries;
static uint32_t entry_count;
static uint32_t free_first; /* == entry_count: none */

static bool table_grow(void)
{
    uint32_t count = entry_count == 0 ? 256 : 2 * entry_count;
    if (count > 1u << INDEX_BITS) {
        return false;
    }
    struct number_entry *grown = realloc(entries, count * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    for (uint32_t index = entry_count; index < count; index++) {
        grown[index] = (struct number_entry){.uses = 1, .next_free = index + 1};
    }
    entries = grown;
    free_first = entry_count;
    entry_count = count;
    return true;
}

bool mpi_number_make(struct mpi_numbered *numbered)
{
    if (free_first == entry_count && !table_grow()) {
        return false;
    }
    uint32_t index = free_first;
    free_first = entries[index].next_free;
    entries[index].numbered = numbered;
    numbered->number = entries[index].uses << INDEX_BITS | index;
    return true;
}

void mpi_number_free(struct mpi_numbered *numbered)
{
    if (numbered->number == 0) {
        return;
    }
    uint32_t index = numbered->number & ((1u << INDEX_BITS) - 1);
    numbered->number = 0;
    entries[index].numbered = NULL;
    entries[index].uses = entries[index].uses % USES_MASK + 1;
    entries[index].next_free = free_first;
    free_first = index;
}

void mpi_number_answer(uint32_t rank, enum mpi_sent kind, const struct mpi_answer *answer, const void *data,
                       uint32_t bytes)
{
    uint32_t index = answer->number & ((1u << INDEX_BITS) - 1);
    struct mpi_numbered *numbered = index < entry_count ? entries[index].numbered : NULL;
    if (numbered != NULL && numbered->number == answer->number && numbered->rank == rank) {
        numbered->answered(numbered, kind, answer, data, bytes);
    }
}

void mpi_numbers_each_of(uint32_t rank, void (*function)(struct mpi_numbered *numbered))
{
    for (uint32_t index = 0; index < entry_count; index++) {
        if (entries[index].numbered != NULL && entries[index].numbered->rank == rank) {
            function(entries[index].numbered);
        }
    }
}
