/* The pages of the software DSM: diffs are exactly the changes, and data from others is checked. */
#include <string.h>

#include "../test.h"
#include "apps/kernels/dsm_pages.h"

enum { RANKS = 3, ROOM = DSM_PAGES_PER_RANK * DSM_DIFF_WORDS_MAX };

static uint32_t room[ROOM];

static void word_write(struct dsm_pages *memory, int page, int word, uint32_t value)
{
    dsm_pages_write(memory, &(struct dsm_write){.page = page, .word = word, .value = value});
}

static void diffs_show_what_has_changed(void **state)
{
    struct dsm_pages memory;
    dsm_pages_init(&memory, 0, RANKS);
    word_write(&memory, 4, 0, 70);
    word_write(&memory, 4, 1, 71);
    word_write(&memory, 4, 5, 0); /* as it was */
    word_write(&memory, 4, DSM_PAGE_WORDS - 1, 72);
    word_write(&memory, 3, 9, 73); /* its home is here */
    word_write(&memory, 5, 9, 74);
    const uint32_t expected[] = {4, 2, 0u << 16 | 2, 70, 71, (DSM_PAGE_WORDS - 1) << 16 | 1, 72};
    assert_int_equal(dsm_diffs_pack(&memory, 1, room), 7);
    assert_memory_equal(room, expected, sizeof(expected));
    assert_int_equal(dsm_diffs_pack(&memory, 0, room), 0);
    assert_int_equal(dsm_pages_pack(&memory, room), DSM_PAGE_MESSAGE_WORDS);
    assert_int_equal(room[0], 3);
    dsm_pages_finish(&memory);
    assert_int_equal(dsm_diffs_pack(&memory, 1, room), 0);
    assert_int_equal(dsm_pages_pack(&memory, room), 0);
    dsm_pages_dispose(&memory);
}

static void longest_diffs_fit(void **state)
{
    for (int step = 1; step <= 3; step++) {
        struct dsm_pages from, home;
        dsm_pages_init(&from, 0, RANKS);
        dsm_pages_init(&home, 1, RANKS);
        for (int word = 0; word < DSM_PAGE_WORDS; word += step) {
            word_write(&from, 1, word, (uint32_t)word + 1);
        }
        int count = dsm_diffs_pack(&from, 1, room);
        assert_true(count <= DSM_DIFF_WORDS_MAX);
        assert_true(dsm_diffs_apply(&home, room, count));
        assert_memory_equal(home.words + DSM_PAGE_WORDS, from.words + DSM_PAGE_WORDS, DSM_PAGE_BYTES);
        dsm_pages_dispose(&from);
        dsm_pages_dispose(&home);
    }
}

static void what_makes_no_sense_is_rejected(void **state)
{
    static const struct {
        uint32_t words[5];
        int count;
    } diffs[] = {
        {{1}, 1},                               /* no number of runs */
        {{2, 0}, 2},                            /* has its home elsewhere */
        {{RANKS * DSM_PAGES_PER_RANK + 1}, 2},  /* there is no such page */
        {{1, 1}, 2},                            /* a run less than it says */
        {{1, 1, 2, 5}, 4},                      /* a word less */
        {{1, 1, DSM_PAGE_WORDS << 16 | 1}, 4},  /* beyond the page */
        {{1, 0xffffffff, 0, 0, 0xffffffff}, 5}, /* runs of nothing, and more of them than words */
    };
    struct dsm_pages memory;
    dsm_pages_init(&memory, 1, RANKS);
    for (size_t i = 0; i < sizeof(diffs) / sizeof(diffs[0]); i++) {
        assert_false(dsm_diffs_apply(&memory, diffs[i].words, diffs[i].count));
    }
    memset(room, 0, sizeof(room));
    assert_true(dsm_pages_receive(&memory, 0, room, DSM_PAGE_MESSAGE_WORDS));
    assert_false(dsm_pages_receive(&memory, 0, room, DSM_PAGE_MESSAGE_WORDS - 1));
    assert_false(dsm_pages_receive(&memory, 2, room, DSM_PAGE_MESSAGE_WORDS));
    room[0] = RANKS * DSM_PAGES_PER_RANK;
    assert_false(dsm_pages_receive(&memory, 0, room, DSM_PAGE_MESSAGE_WORDS));
    room[0] = 1;
    assert_false(dsm_pages_receive(&memory, 1, room, DSM_PAGE_MESSAGE_WORDS));
    dsm_pages_dispose(&memory);
}

static void ranks_share_pages_but_no_words(void **state)
{
    static struct dsm_write writes[DSM_WRITES_MAX];
    static int writer[64 * DSM_PAGES_PER_RANK * DSM_PAGE_WORDS]; /* of a word: rank + 1 */
    static const int rank_counts[] = {1, 2, 3, 8, 64};
    for (size_t i = 0; i < sizeof(rank_counts) / sizeof(rank_counts[0]); i++) {
        int ranks = rank_counts[i], shared = 0;
        for (int iteration = 1; iteration <= 5; iteration++) {
            int last_writer[64 * DSM_PAGES_PER_RANK] = {0};
            memset(writer, 0, sizeof(writer));
            for (int rank = 0; rank < ranks; rank++) {
                int count = dsm_writes_draw(7, iteration, rank, ranks, DSM_PAGES_WRITTEN_MAX, writes);
                assert_in_range(count, 1, DSM_WRITES_MAX);
                for (int k = 0; k < count; k++) {
                    int *of = &writer[writes[k].page * DSM_PAGE_WORDS + writes[k].word];
                    assert_in_range(writes[k].page, 0, ranks * DSM_PAGES_PER_RANK - 1);
                    assert_in_range(writes[k].word, 0, DSM_PAGE_WORDS - 1);
                    assert_int_equal(*of, 0);
                    *of = rank + 1;
                    shared += last_writer[writes[k].page] != 0 && last_writer[writes[k].page] != rank + 1;
                    last_writer[writes[k].page] = rank + 1;
                }
            }
        }
        assert_true(ranks == 1 || shared > 0);
    }
}

int main(void)
{
    return TESTS_RUN(diffs_show_what_has_changed, longest_diffs_fit, what_makes_no_sense_is_rejected,
                     ranks_share_pages_but_no_words);
}
