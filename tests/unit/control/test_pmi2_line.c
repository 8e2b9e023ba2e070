/* PMI-2 messages: taken apart, put together, and whatever else may come in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/bootstrap/pmi2_line.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"
#include "tests/unit/control/line_rows.h"

enum { RANDOM_MESSAGES = 200000 };

static void test_parse(void **state)
{
    static const struct line_row rows[] = {
        {"cmd=fullinit-response;rc=0;rank=3;size=8;", CW_OK, 4, "size", "8"},
        {"cmd=kvs-get-response;value=a=b;", CW_OK, 2, "value", "a=b"},
        {"value=a;;b;", CW_OK, 1, "value", "a;b"},
        {"value=;;;;;", CW_OK, 1, "value", ";;"},
        {"value=a;;;key=b;", CW_OK, 2, "key", "b"},
        {"value=;key=;", CW_OK, 2, "key", ""},
        {"errmsg=no such key;", CW_OK, 1, "errmsg", "no such key"},
        {"", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {";", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd;", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd=x", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd=x;;", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd=x;=y;", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd=x;y", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd=\x01;", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd=x\n;", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"cmd=\xe4;", CW_ERROR_ARGUMENT, 0, NULL, NULL},
        {"a=;b=;c=;d=;e=;f=;g=;h=;i=;j=;k=;l=;m=;n=;o=;p=;", CW_OK, 16, "p", ""},
        {"a=;b=;c=;d=;e=;f=;g=;h=;i=;j=;k=;l=;m=;n=;o=;p=;q=;", CW_ERROR_LIMIT, 0, NULL, NULL},
    };
    rows_expect(rows, sizeof(rows) / sizeof(rows[0]), cw_pmi2_parse);
}

static void test_headers(void **state)
{
    static const struct {
        const char *header;
        bool is_good;
        size_t length;
    } rows[] = {
        {"    12", true, 12}, {"12    ", true, 12},   {"  12  ", true, 12},  {"000012", true, 12},
        {"     0", true, 0},  {"  4095", true, 4095}, {"  4096", false, 0},  {"999999", false, 0},
        {"      ", false, 0}, {"    -1", false, 0},   {"   1x ", false, 0},  {"1 2   ", false, 0},
        {"cmd=ge", false, 0}, {"\n    1", false, 0},  {"\t    1", false, 0}, {"\0\0\0\0\0\0", false, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char exact[CW_PMI2_HEADER]; /* without a 0 */
        size_t length = 77;
        memcpy(exact, rows[i].header, sizeof(exact));
        assert_int_equal(cw_pmi2_header_read(exact, &length), rows[i].is_good);
        assert_int_equal(length, rows[i].is_good ? rows[i].length : 77);
    }
}

static void test_write(void **state)
{
    struct cw_pmi2_writer writer;
    cw_pmi2_begin(&writer, "kvs-put");
    cw_pmi2_add(&writer, "key", "a");
    cw_pmi2_add(&writer, "value", "x=1;y;");
    assert_int_equal(cw_pmi2_end(&writer), CW_OK);
    assert_string_equal(writer.text, "    33cmd=kvs-put;key=a;value=x=1;;y;;;");
    assert_int_equal(writer.length, strlen(writer.text));

    static const char *const bad[][2] = {{"", "b"}, {"a=", "b"}, {"a;", "b"}, {"a", "\n"}, {"a", "\xff"}, {"\t", "b"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cw_pmi2_begin(&writer, "kvs-put");
        cw_pmi2_add(&writer, bad[i][0], bad[i][1]);
        cw_pmi2_add(&writer, "key", "good");
        assert_int_equal(cw_pmi2_end(&writer), CW_ERROR_ARGUMENT);
    }
}

static void test_write_too_long(void **state)
{
    static const char characters[] = {'v', ';'};
    for (size_t i = 0; i < sizeof(characters); i++) {
        struct cw_pmi2_writer *writer = malloc(sizeof(*writer));
        char value[CW_PMI2_MESSAGE_MAX + 10];
        bool fitted = true;
        assert_non_null(writer);
        for (size_t length = CW_PMI2_MESSAGE_MAX / 2 - 40; length < sizeof(value); length++) {
            memset(value, characters[i], length);
            value[length] = 0;
            cw_pmi2_begin(writer, "put");
            cw_pmi2_add(writer, "value", value);
            bool fits = cw_pmi2_end(writer) == CW_OK;
            assert_true(fitted || !fits);
            assert_true(!fits || writer->length <= CW_PMI2_HEADER + CW_PMI2_MESSAGE_MAX);
            fitted = fits;
        }
        assert_false(fitted);
        free(writer);
    }
}

/* Mostly of what messages are made of. */
static char random_character(struct cw_random *random)
{
    static const char usual[] = "cmd=get;key=put;value=;;==ab 0123-";
    uint64_t draw = cw_random_next(random);
    return draw % 32 != 0 ? usual[(draw >> 8) % (sizeof(usual) - 1)] : (char)(draw >> 8);
}

static void test_random(void **state)
{
    struct cw_random random;
    uint64_t taken = 0;
    cw_random_seed(&random, 4);
    for (int i = 0; i < RANDOM_MESSAGES; i++) {
        size_t length = cw_random_next(&random) % 40;
        char *text = malloc(length + 1);
        assert_non_null(text);
        for (size_t j = 0; j < length; j++) {
            text[j] = random_character(&random);
        }
        struct cw_pmi1_line line;
        if (cw_pmi2_parse(text, length, &line) == CW_OK) {
            assert_in_range(line.count, 1, CW_PMI1_WORDS_MAX);
            struct cw_pmi2_writer writer = {.length = CW_PMI2_HEADER};
            for (size_t j = 0; j < line.count; j++) {
                assert_in_range(line.words[j].name - text, 0, length);
                cw_pmi2_add(&writer, line.words[j].name, line.words[j].value);
            }
            assert_int_equal(cw_pmi2_end(&writer), CW_OK);
            assert_int_equal(writer.length, CW_PMI2_HEADER + length);
            size_t told = 0;
            assert_true(cw_pmi2_header_read(writer.text, &told));
            assert_int_equal(told, length);
            struct cw_pmi1_line again;
            assert_int_equal(cw_pmi2_parse(writer.text + CW_PMI2_HEADER, length, &again), CW_OK);
            words_expect(&again, &line);
            taken++;
        }
        free(text);
    }
    assert_in_range(taken, RANDOM_MESSAGES / 1000, RANDOM_MESSAGES);
}

int main(void)
{
    return TESTS_RUN(test_parse, test_headers, test_write, test_write_too_long, test_random);
}
