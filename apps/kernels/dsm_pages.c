#include "apps/kernels/dsm_pages.h"

#include <stdlib.h>
#include <string.h>

#include "apps/kernels/kernel.h"

enum { BLOCKS = DSM_PAGE_WORDS / DSM_BLOCK_WORDS };

/* ---- what is written ---- */

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t random_next(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

static int random_below(uint64_t *state, int end)
{
    return (int)(random_next(state) >> 33) % end;
}

/* Blocks go round among the ranks, and begin with another one in each page and iteration. */
static int page_draw(uint64_t *state, int page, int shift, int ranks, struct dsm_write *writes)
{
    int own = (BLOCKS - shift + ranks - 1) / ranks;
    int runs = own < DSM_RUNS ? own : DSM_RUNS;
    int count = 0;
    for (int run = 0; run < runs; run++) {
        int block = shift + (run * own / runs) * ranks;
        int first = random_below(state, DSM_BLOCK_WORDS / 2);
        int words = 1 + random_below(state, DSM_BLOCK_WORDS / 2);
        for (int i = 0; i < words; i++)
            writes[count++] = (struct dsm_write){
                .page = page, .word = block * DSM_BLOCK_WORDS + first + i, .value = (uint32_t)random_next(state)};
    }
    return count;
}

int dsm_writes_draw(uint64_t seed, int iteration, int rank, int ranks, int pages, struct dsm_write *writes)
{
    int drawn[DSM_PAGES_WRITTEN_MAX];
    int count = 0;
    uint64_t state = seed ^ (uint64_t)iteration << 32 ^ (uint64_t)rank << 16;
    state = random_next(&state); /* so that states of neighbours are not neighbours */
    for (int i = 0; i < pages; i++) {
        bool is_new;
        do {
            drawn[i] = random_below(&state, ranks * DSM_PAGES_PER_RANK);
            is_new = true;
            for (int before = 0; before < i; before++)
                is_new = is_new && drawn[before] != drawn[i];
        } while (!is_new);
        count += page_draw(&state, drawn[i], (rank + iteration + drawn[i]) % ranks, ranks, writes + count);
    }
    return count;
}

/* ---- memory ---- */

void dsm_pages_init(struct dsm_pages *memory, int rank, int ranks)
{
    size_t count = (size_t)ranks * DSM_PAGES_PER_RANK;
    *memory = (struct dsm_pages){.rank = rank, .ranks = ranks, .count = (int)count};
    memory->words = kernel_allocate(count, DSM_PAGE_BYTES);
    memory->twins = kernel_allocate(count, DSM_PAGE_BYTES);
    memory->has_twin = kernel_allocate(count, sizeof(*memory->has_twin));
    memory->is_changed = kernel_allocate(count, sizeof(*memory->is_changed));
}

void dsm_pages_dispose(struct dsm_pages *memory)
{
    free(memory->words);
    free(memory->twins);
    free(memory->has_twin);
    free(memory->is_changed);
}

static uint32_t *page_of(const struct dsm_pages *memory, int page)
{
    return memory->words + (size_t)page * DSM_PAGE_WORDS;
}

static uint32_t *twin_of(const struct dsm_pages *memory, int page)
{
    return memory->twins + (size_t)page * DSM_PAGE_WORDS;
}

static bool has_home(const struct dsm_pages *memory, uint32_t page, int home)
{
    return page < (uint32_t)memory->count && (int)page % memory->ranks == home;
}

void dsm_pages_write(struct dsm_pages *memory, const struct dsm_write *write)
{
    if (has_home(memory, (uint32_t)write->page, memory->rank)) {
        memory->is_changed[write->page] = true;
    } else if (!memory->has_twin[write->page]) {
        memcpy(twin_of(memory, write->page), page_of(memory, write->page), DSM_PAGE_BYTES);
        memory->has_twin[write->page] = true;
    }
    page_of(memory, write->page)[write->word] = write->value;
}

/* ---- diffs ---- */

/* The words of a page's diff: 2 if nothing has changed. */
static int page_compare(const uint32_t *page, const uint32_t *twin, uint32_t *words)
{
    int count = 2;
    words[1] = 0;
    for (int first = 0; first < DSM_PAGE_WORDS; first++) {
        int end = first;
        while (end < DSM_PAGE_WORDS && page[end] != twin[end])
            end++;
        if (end == first)
            continue;
        words[1]++;
        words[count++] = (uint32_t)first << 16 | (uint32_t)(end - first);
        memcpy(words + count, page + first, (size_t)(end - first) * sizeof(*words));
        count += end - first;
        first = end;
    }
    return count;
}

int dsm_diffs_pack(const struct dsm_pages *memory, int home, uint32_t *words)
{
    int count = 0;
    for (int page = home; page < memory->count; page += memory->ranks) {
        if (!memory->has_twin[page])
            continue;
        words[count] = (uint32_t)page;
        count += page_compare(page_of(memory, page), twin_of(memory, page), words + count);
    }
    return count;
}

/* The words of the diff behind its head, or -1. */
static int runs_apply(uint32_t *page, uint32_t runs, const uint32_t *words, int count)
{
    int at = 0;
    for (uint32_t run = 0; run < runs; run++) {
        if (at == count)
            return -1;
        int first = (int)(words[at] >> 16);
        int length = (int)(words[at] & 0xffff);
        at++;
        if (first + length > DSM_PAGE_WORDS || length > count - at)
            return -1;
        memcpy(page + first, words + at, (size_t)length * sizeof(*words));
        at += length;
    }
    return at;
}

bool dsm_diffs_apply(struct dsm_pages *memory, const uint32_t *words, int count)
{
    for (int at = 0; at < count;) {
        if (count - at < 2 || !has_home(memory, words[at], memory->rank))
            return false;
        int page = (int)words[at];
        int length = runs_apply(page_of(memory, page), words[at + 1], words + at + 2, count - at - 2);
        if (length < 0)
            return false;
        memory->is_changed[page] = true;
        at += 2 + length;
    }
    return true;
}

/* ---- pages ---- */

int dsm_pages_pack(const struct dsm_pages *memory, uint32_t *words)
{
    int count = 0;
    for (int page = memory->rank; page < memory->count; page += memory->ranks) {
        if (!memory->is_changed[page])
            continue;
        words[count] = (uint32_t)page;
        memcpy(words + count + 1, page_of(memory, page), DSM_PAGE_BYTES);
        count += DSM_PAGE_MESSAGE_WORDS;
    }
    return count;
}

bool dsm_pages_receive(struct dsm_pages *memory, int home, const uint32_t *words, int count)
{
    if (count % DSM_PAGE_MESSAGE_WORDS != 0)
        return false;
    for (int at = 0; at < count; at += DSM_PAGE_MESSAGE_WORDS) {
        if (home == memory->rank || !has_home(memory, words[at], home))
            return false;
        memcpy(page_of(memory, (int)words[at]), words + at + 1, DSM_PAGE_BYTES);
    }
    return true;
}

void dsm_pages_finish(struct dsm_pages *memory)
{
    memset(memory->has_twin, 0, (size_t)memory->count * sizeof(*memory->has_twin));
    memset(memory->is_changed, 0, (size_t)memory->count * sizeof(*memory->is_changed));
}
