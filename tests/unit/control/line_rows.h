/* Lines of PMI-1 and PMI-2, as tests have them: what is taken apart, and what has to come of it. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "control/bootstrap/pmi1_line.h"
#include "tests/test.h"

struct line_row {
    const char *text;
    int status;
    size_t count;
    const char *name; /* of the last word */
    const char *value;
};

static inline void rows_expect(const struct line_row *rows, size_t count,
                               int (*parse)(char *text, size_t length, struct cw_pmi1_line *line))
{
    for (size_t i = 0; i < count; i++) {
        struct cw_pmi1_line line = {.count = 0};
        char *copy = strdup(rows[i].text); /* so that the sanitizer sees each byte too many */
        assert_non_null(copy);
        assert_int_equal(parse(copy, strlen(copy), &line), rows[i].status);
        assert_int_equal(line.count, rows[i].count);
        if (rows[i].count > 0) {
            assert_string_equal(line.words[line.count - 1].name, rows[i].name);
            assert_string_equal(line.words[line.count - 1].value, rows[i].value);
        }
        free(copy);
    }
}

static inline void words_expect(const struct cw_pmi1_line *line, const struct cw_pmi1_line *wanted)
{
    assert_int_equal(line->count, wanted->count);
    for (size_t i = 0; i < line->count; i++) {
        assert_string_equal(line->words[i].name, wanted->words[i].name);
        assert_string_equal(line->words[i].value, wanted->words[i].value);
    }
}
