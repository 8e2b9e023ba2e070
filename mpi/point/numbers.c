#include "mpi/point/numbers.h"

#include <stdlib.h>

#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"

/* A number is an index into the table, and how often the entry has been used. */
enum { INDEX_BITS = 20, USES_MASK = (1 << (32 - INDEX_BITS)) - 1 };

struct number_entry {
    struct mpi_request *request; /* NULL: free */
    uint32_t uses;               /* 1 .. USES_MASK: a number is never 0 */
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

uint32_t mpi_number_make(struct mpi_request *request)
{
    if (free_first == entry_count && !table_grow()) {
        return 0;
    }
    uint32_t index = free_first;
    free_first = entries[index].next_free;
    entries[index].request = request;
    return entries[index].uses << INDEX_BITS | index;
}

struct mpi_request *mpi_number_find(uint32_t number)
{
    uint32_t index = number & ((1u << INDEX_BITS) - 1);
    return index < entry_count && entries[index].uses == number >> INDEX_BITS ? entries[index].request : NULL;
}

void mpi_number_free(uint32_t number)
{
    uint32_t index = number & ((1u << INDEX_BITS) - 1);
    if (mpi_number_find(number) == NULL) {
        return;
    }
    entries[index].request = NULL;
    entries[index].uses = entries[index].uses % USES_MASK + 1;
    entries[index].next_free = free_first;
    free_first = index;
}

void mpi_numbers_each_of(uint32_t rank, void (*function)(struct mpi_request *request))
{
    for (uint32_t index = 0; index < entry_count; index++) {
        if (entries[index].request != NULL && entries[index].request->rank == rank) {
            function(entries[index].request);
        }
    }
}

struct deregistered {
    struct deregistered *next;
    uint32_t rank;
    struct cw_registration registration;
    void (*then)(void *context);
    void *context;
};

static struct deregistered *deregistered_first;
static uint32_t awaited; /* of them */
enum { TURNS_BETWEEN = 1024, TURNS_BETWEEN_AWAITED = 8 };

void mpi_deregister(uint32_t rank, const struct cw_registration *registration, void (*then)(void *context),
                    void *context)
{
    bool is_held = cw_paths_deregister(mpi_process.paths, rank, registration) == CW_ERROR_AGAIN;
    struct deregistered *kept = is_held ? malloc(sizeof(*kept)) : NULL;
    if (kept != NULL) { /* else it stays registered: a leak, but nothing wrong */
        *kept = (struct deregistered){
            .next = deregistered_first, .rank = rank, .registration = *registration, .then = then, .context = context};
        deregistered_first = kept;
        awaited += then != NULL;
        mpi_progress_is_blind = awaited > 0;
        mpi_progress_is_due = true;
    } else if (then != NULL) {
        then(context);
    }
}

/* The next one that is let go of, out of the list; NULL: none. */
static struct deregistered *released_take(void)
{
    for (struct deregistered **link = &deregistered_first; *link != NULL; link = &(*link)->next) {
        struct deregistered *kept = *link;
        if (cw_paths_deregister(mpi_process.paths, kept->rank, &kept->registration) != CW_ERROR_AGAIN) {
            *link = kept->next;
            return kept;
        }
    }
    return NULL;
}

bool mpi_deregister_progress(void)
{
    static uint32_t calls;
    if (deregistered_first == NULL || ++calls % (awaited > 0 ? TURNS_BETWEEN_AWAITED : TURNS_BETWEEN) != 0) {
        return deregistered_first != NULL;
    }
    struct deregistered *kept;
    while ((kept = released_take()) != NULL) { /* `then` may bring further ones */
        if (kept->then != NULL) {
            awaited--;
            kept->then(kept->context);
        }
        free(kept);
    }
    mpi_progress_is_blind = awaited > 0;
    return deregistered_first != NULL;
}
