/* pmi1_line: lines of the PMI-1 protocol, "cmd=put kvsname=k key=a value=b\n", taken apart and put together.
 *
 * Invariants
 *   - Whatever comes in, nothing is read or written outside of the buffers given, and at most CW_PMI1_WORDS_MAX words
 *     are taken.
 *   - What cw_pmi1_writer puts together, cw_pmi1_parse takes apart into the same words: an argument that would not
 *     survive is refused.
 *
 * The protocol is that of MPICH's "simple" PMI client and its process managers (src/pmi/simple in MPICH); there is no
 * document. Lines that belong to `mcmd=spawn` are taken apart like any other.
 *
 * Thread: any; nothing is shared. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    /* Characters, with the end of the line: MPICH's longest value (1024), key (64) and name of a table (256), and the
     * words around them. */
    CW_PMI1_LINE_MAX = 2047,
    CW_PMI1_WORDS_MAX = 16,
    CW_PMI1_BATCH_MAX = 64,     /* requests */
    CW_PMI1_BATCH_BYTES = 4096, /* in one piece */
};

/* An extension of ours in the answer to get_maxes, which other clients ignore: the number of requests that may be
 * outstanding. The protocol as others speak it has one at a time. */
#define CW_PMI1_BATCH "causeway_batch"

/* Points into the text that was taken apart. */
struct cw_pmi1_line {
    size_t count;
    struct cw_pmi1_word {
        const char *name;
        const char *value; /* "" for an item without '=' */
    } words[CW_PMI1_WORDS_MAX];
};

/* Takes `text` of `length` characters, without its end of line, apart: it writes zeros into it, one of them at
 * text[length]. CW_OK; CW_ERROR_ARGUMENT: not printable, empty, or an item without a name; CW_ERROR_LIMIT: too long, or
 * too many items. */
int cw_pmi1_parse(char *text, size_t length, struct cw_pmi1_line *line);

/* The value of the first word of that name; NULL: none. */
const char *cw_pmi1_value(const struct cw_pmi1_line *line, const char *name);
/* The same as a number. False: there is none, or it is no decimal number between low and high; *number stays as it
 * was. */
bool cw_pmi1_number(const struct cw_pmi1_line *line, const char *name, long low, long high, long *number);
/* A decimal number between low and high, and nothing else. */
bool cw_pmi1_number_read(const char *text, long low, long high, long *number);

/* Whether the text can be a value: printable, no blank. With `key`: no '=' and not empty either. */
bool cw_pmi1_text_fits(const char *text, bool key);

/* A line that is put together; once something did not fit, it stays failed. */
struct cw_pmi1_writer {
    size_t length;
    bool failed;
    char text[CW_PMI1_LINE_MAX + 1];
};

/* Begins with "cmd=COMMAND". */
void cw_pmi1_begin(struct cw_pmi1_writer *writer, const char *command);
void cw_pmi1_add(struct cw_pmi1_writer *writer, const char *name, const char *value);
void cw_pmi1_add_number(struct cw_pmi1_writer *writer, const char *name, long number);
/* Ends the line: text[0 .. length) is ready. CW_OK; CW_ERROR_ARGUMENT: something was too long or not printable. */
int cw_pmi1_end(struct cw_pmi1_writer *writer);
