/* Rows of texts and expected results of a reader. */
#pragma once

#include "tests/test.h"

struct row {
    const char *text;
    bool accepted;
    uint64_t value;
};

static void check_rows(const struct row *rows, size_t count, bool (*parse)(const char *, uint64_t *))
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 77;
        bool accepted = parse(rows[i].text, &value);
        assert_true_msg(accepted == rows[i].accepted, "'%s' was %s", rows[i].text, accepted ? "accepted" : "refused");
        assert_int_equal(value, rows[i].accepted ? rows[i].value : 77);
    }
}

#define CHECK_ROWS(parse, ...)                                   \
    do {                                                         \
        static const struct row rows[] = {__VA_ARGS__};          \
        check_rows(rows, sizeof(rows) / sizeof(rows[0]), parse); \
    } while (0)
