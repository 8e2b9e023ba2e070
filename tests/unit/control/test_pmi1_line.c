/* Lines of PMI-1: parsed, built, and any other input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/bootstrap/pmi1_line.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { RANDOM_LINES = 200000 };

static void words_expect(const struct cw_pmi1_line *line, const struct cw_pmi1_line *wanted)
{
    assert_int_equal(line->count, wanted->count);
    for (size_t i = 0; i < line->count; i++) {
        assert_string_equal(line->words[i].name, wanted->words[i].name);
        assert_string_equal(line->words[i].value, wanted->words[i].value);
    }
}

static void test_parse(void **state)
{
    static const struct {
        const char *text;
        int status;
        size_t count;
        const char *name; /* of the last word */
        const char *value;
    } rows[] = {
        {"cmd=init pmi_version=1 pmi_subversion=1", CW_OK, 3, "pmi_subversion", "1"},
        {"  cmd=get\tkey=a=b  ", CW_OK, 2, "key", "a=b"},
        {"endcmd", CW_OK, 1, "endcmd", ""},
        {"value=", CW_OK, 1, "value", ""},
        {"", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"   ", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd=put =x", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd=\x01", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd=\xe4", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"a b c d e f g h i j k l m n o p", CW_OK, 16, "p", ""},
        {"a b c d e f g h i j k l m n o p q", CW_ERROR_LIMIT, 0, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_pmi1_line line = {.count = 0};
        char *copy = strdup(rows[i].text); /* so that the sanitizer sees each byte too many */
        assert_non_null(copy);
        assert_int_equal(cw_pmi1_parse(copy, strlen(copy), &line), rows[i].status);
        assert_int_equal(line.count, rows[i].count);
        if (rows[i].count > 0) {
            assert_string_equal(line.words[line.count - 1].name, rows[i].name);
            assert_string_equal(line.words[line.count - 1].value, rows[i].value);
        }
        free(copy);
    }
}

static void test_length(void **state)
{
    char text[CW_PMI1_LINE_MAX + 1];
    struct cw_pmi1_line line;
    memset(text, 'a', sizeof(text));
    assert_int_equal(cw_pmi1_parse(text, CW_PMI1_LINE_MAX, &line), CW_ERROR_LIMIT);
    assert_int_equal(cw_pmi1_parse(text, CW_PMI1_LINE_MAX - 1, &line), CW_OK);
    assert_int_equal(strlen(line.words[0].name), CW_PMI1_LINE_MAX - 1);
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        bool good;
        long number;
    } rows[] = {
        {"0", true, 0},
        {"-5", true, -5},
        {"100", true, 100},
        {"101", false, 0},
        {"-6", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1x", false, 0},
        {"0x1", false, 0},
        {"1e1", false, 0},
        {"99999999999999999999999", false, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        long number = 77;
        assert_int_equal(cw_pmi1_number_read(rows[i].text, -5, 100, &number), rows[i].good);
        assert_int_equal(number, rows[i].good ? rows[i].number : 77);
    }
}

static void test_write(void **state)
{
    struct cw_pmi1_writer writer;
    cw_pmi1_begin(&writer, "put");
    cw_pmi1_add(&writer, "value", "a=(b,c)");
    cw_pmi1_add_number(&writer, "rc", -1);
    assert_int_equal(cw_pmi1_end(&writer), CW_OK);
    assert_string_equal(writer.text, "cmd=put value=a=(b,c) rc=-1\n");
    assert_int_equal(writer.length, strlen(writer.text));

    static const char *const bad[] = {"a b", "a\nb", "\t", "\x7f", "\xff"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cw_pmi1_begin(&writer, "put");
        cw_pmi1_add(&writer, "value", bad[i]);
        cw_pmi1_add(&writer, "key", "good");
        assert_int_equal(cw_pmi1_end(&writer), CW_ERROR_ARGUMENT);
    }
}

static int line_write(const struct cw_pmi1_line *line, struct cw_pmi1_writer *writer)
{
    *writer = (struct cw_pmi1_writer){.length = 0};
    for (size_t i = 0; i < line->count; i++) {
        cw_pmi1_add(writer, line->words[i].name, line->words[i].value);
    }
    return cw_pmi1_end(writer);
}

/* A value that becomes longer fits up to some length. */
static void test_write_too_long(void **state)
{
    char value[2 * CW_PMI1_LINE_MAX];
    const struct cw_pmi1_line line = {.count = 1, .words = {{.name = "value", .value = value}}};
    struct cw_pmi1_writer writer;
    bool fitted = true;
    for (size_t length = CW_PMI1_LINE_MAX / 2 - 40; length < CW_PMI1_LINE_MAX + 10; length++) {
        memset(value, 'v', length);
        value[length] = 0;
        bool fits = line_write(&line, &writer) == CW_OK;
        assert_true(fitted || !fits);
        assert_true(!fits || writer.length <= CW_PMI1_LINE_MAX);
        fitted = fits;
    }
    assert_false(fitted);
}

/* An accepted text is written again, with the same result. */
static void test_random(void **state)
{
    static const char usual[] = "cmd=get key=put value= =   \t\nabc0123-"; /* the most frequent characters */
    struct cw_random random;
    uint64_t accepted = 0;
    cw_random_seed(&random, 4);
    for (int i = 0; i < RANDOM_LINES; i++) {
        size_t length = cw_random_next(&random) % 80;
        char *text = malloc(length + 1);
        assert_non_null(text);
        for (size_t j = 0; j < length; j++) {
            uint64_t draw = cw_random_next(&random);
            text[j] = draw % 16 != 0 ? usual[(draw >> 8) % (sizeof(usual) - 1)] : (char)(draw >> 8);
        }
        struct cw_pmi1_line line, again;
        if (cw_pmi1_parse(text, length, &line) == CW_OK) {
            struct cw_pmi1_writer writer;
            assert_in_range(line.count, 1, CW_PMI1_WORDS_MAX);
            for (size_t j = 0; j < line.count; j++) {
                assert_in_range(line.words[j].name - text, 0, length);
            }
            assert_int_equal(line_write(&line, &writer), CW_OK);
            assert_int_equal(cw_pmi1_parse(writer.text, writer.length - 1, &again), CW_OK); /* without the newline */
            words_expect(&again, &line);
            accepted++;
        }
        free(text);
    }
    assert_in_range(accepted, RANDOM_LINES / 1000, RANDOM_LINES);
}

int main(void)
{
    return TESTS_RUN(test_parse, test_length, test_numbers, test_write, test_write_too_long, test_random);
}
