/* dsm_pages: the memory of a software DSM as one rank has it: pages, twins, diffs; no MPI.
 *
 * Every rank holds a copy of every page. Page p has its home at rank p % ranks. A rank that writes to a page with its
 * home elsewhere keeps a twin of the old contents, and sends the changed words to the home afterwards: the diff. The
 * home writes into its own copy, applies the diffs of the others, and sends the whole page to all others (home-based
 * eager release consistency; Zhou, Iftode and Li, OSDI 1996).
 *
 * Invariants
 *  - Writers of one page in one iteration write to different words, so that the order of diffs does not matter.
 *  - Received data is checked: nothing is written beyond a page, nor to pages that the sender may not change.
 *
 * Messages are 32-bit words. A diff: page, number of runs; each run: first word << 16 | words, and the words. A page:
 * its number, and its words.
 *
 * Order of calls, of all ranks in each iteration
 *    dsm_pages_write for each write; dsm_diffs_pack for each home; dsm_diffs_apply for what came; dsm_pages_pack;
 *    dsm_pages_receive for what came; dsm_pages_finish */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    DSM_PAGE_BYTES = 4096,
    DSM_PAGE_WORDS = DSM_PAGE_BYTES / 4,
    DSM_PAGES_PER_RANK = 16,    /* with their homes there */
    DSM_PAGES_WRITTEN_MAX = 16, /* by one rank in an iteration */
    DSM_RUNS = 8,               /* written in a page by one rank; fewer where more than 8 ranks share its blocks */
    DSM_BLOCK_WORDS = 16,       /* a run lies in one of these */
    DSM_PAGE_MESSAGE_WORDS = 1 + DSM_PAGE_WORDS,
    DSM_DIFF_WORDS_MAX = 2 + 1 + DSM_PAGE_WORDS, /* a run and the unchanged word after it are at most a word each */
    DSM_WRITES_MAX = DSM_PAGES_WRITTEN_MAX * DSM_RUNS * DSM_BLOCK_WORDS,
};

struct dsm_write {
    int page;
    int word;
    uint32_t value;
};

/* A rank's writes in an iteration, drawn from the seed: `pages` different pages of all (at most DSM_PAGES_WRITTEN_MAX),
 * in each some runs of words; no two ranks write to the same word. The rest as for dsm_pages_init. Returns the number
 * of writes, at most DSM_WRITES_MAX. */
int dsm_writes_draw(uint64_t seed, int iteration, int rank, int ranks, int pages, struct dsm_write *writes);

struct dsm_pages {
    int rank;
    int ranks;
    int count;        /* of pages: DSM_PAGES_PER_RANK for each rank */
    uint32_t *words;  /* [count * DSM_PAGE_WORDS] */
    uint32_t *twins;  /* likewise; those of pages that have one count */
    bool *has_twin;   /* [count] */
    bool *is_changed; /* [count]: pages with their home here, written by any rank */
};

/* All pages are zero. Memory by kernel_allocate. */
void dsm_pages_init(struct dsm_pages *memory, int rank, int ranks);
void dsm_pages_dispose(struct dsm_pages *memory);

void dsm_pages_write(struct dsm_pages *memory, const struct dsm_write *write);

/* Appends the diffs of all pages with a twin and their home at `home`; at most DSM_DIFF_WORDS_MAX words each. Returns
 * the number of words. */
int dsm_diffs_pack(const struct dsm_pages *memory, int home, uint32_t *words);

/* False: the received data is no sequence of diffs for pages that have their home here. */
bool dsm_diffs_apply(struct dsm_pages *memory, const uint32_t *words, int count);

/* All changed pages that have their home here. Returns the number of words, DSM_PAGE_MESSAGE_WORDS for each. */
int dsm_pages_pack(const struct dsm_pages *memory, uint32_t *words);

/* False: the data from `home` is no sequence of pages that have their home there. */
bool dsm_pages_receive(struct dsm_pages *memory, int home, const uint32_t *words, int count);

/* The copies are the same everywhere: forgets twins and changes. */
void dsm_pages_finish(struct dsm_pages *memory);
