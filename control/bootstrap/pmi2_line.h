/* pmi2_line: messages of the PMI-2 protocol: a length in six characters, then "cmd=kvs-put;key=a;value=b;". Parses and
 * builds them. A ';' within a value is written twice.
 *
 * Invariants
 *   - Whatever comes in, nothing is read or written outside of the buffers given, and at most CW_PMI1_WORDS_MAX words
 *     are taken.
 *   - What cw_pmi2_writer puts together, cw_pmi2_parse takes apart into the same words: an argument that would not
 *     survive is refused.
 *
 * The protocol is that of MPICH's client (src/pmi/pmi2/simple in MPICH) and of Slurm's plugin "pmi2". Items are those
 * of pmi1_line.h: cw_pmi1_value and cw_pmi1_number find them.
 *
 * Thread: any; nothing is shared. */
#pragma once

#include "control/bootstrap/pmi1_line.h"

enum {
    CW_PMI2_HEADER = 6, /* characters of the length */
    /* Characters behind the header: MPICH's longest value (1024), doubled, and the words around it. */
    CW_PMI2_MESSAGE_MAX = 4095,
};

/* The length in a header of CW_PMI2_HEADER characters: blanks, digits, blanks. False: there is none, or it exceeds
 * CW_PMI2_MESSAGE_MAX; *length stays unchanged. */
bool cw_pmi2_header_read(const char *header, size_t *length);

/* Takes `text` of `length` characters, without its header, apart: it moves its characters and writes zeros into them,
 * one of them at text[length]. CW_OK; CW_ERROR_ARGUMENT: not printable, empty, an item without a name, without '=' or
 * without its end; CW_ERROR_LIMIT: too long, or too many items. */
int cw_pmi2_parse(char *text, size_t length, struct cw_pmi1_line *line);

/* A message that is put together; once something did not fit, it stays failed. */
struct cw_pmi2_writer {
    size_t length; /* with the header */
    bool failed;
    char text[CW_PMI2_HEADER + CW_PMI2_MESSAGE_MAX + 1];
};

/* Begins with "cmd=COMMAND;". */
void cw_pmi2_begin(struct cw_pmi2_writer *writer, const char *command);
/* A name has no ';' and no '='. */
void cw_pmi2_add(struct cw_pmi2_writer *writer, const char *name, const char *value);
/* Writes the header: text[0 .. length) is ready. CW_OK; CW_ERROR_ARGUMENT: something was too long, or not of the form
 * above. */
int cw_pmi2_end(struct cw_pmi2_writer *writer);
