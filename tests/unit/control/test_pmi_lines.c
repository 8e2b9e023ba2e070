/* Lines of PMI-1 and messages of PMI-2: parsed, built, and any other input. */
#include "control/bootstrap/pmi1_line.h"
#include "control/bootstrap/pmi2_line.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { RANDOM_LINES = 200000 };

struct line_row {
    const char *text;
    int status;
    size_t count;
    const char *name; /* of the last word */
    const char *value;
};

/* Inputs of the parser, and expected results. */
static void rows_expect(const struct line_row *rows, size_t count,
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

static void words_expect(const struct cw_pmi1_line *line, const struct cw_pmi1_line *wanted)
{
    assert_int_equal(line->count, wanted->count);
    for (size_t i = 0; i < line->count; i++) {
        assert_string_equal(line->words[i].name, wanted->words[i].name);
        assert_string_equal(line->words[i].value, wanted->words[i].value);
    }
}

/* ---- PMI-1 ---- */

static void test_parse_1(void **state)
{
    static const struct line_row rows[] = {
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
    rows_expect(rows, sizeof(rows) / sizeof(rows[0]), cw_pmi1_parse);
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

static void test_write_1(void **state)
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

/* ---- PMI-2 ---- */

static void test_parse_2(void **state)
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

static void test_write_2(void **state)
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

/* ---- Both ---- */

static const struct dialect {
    int (*parse)(char *text, size_t length, struct cw_pmi1_line *line);
    size_t header, bytes_max; /* of a line or message, with its header */
    const char *usual;        /* the most frequent characters of lines */
    uint64_t others;          /* one character in this number is another one */
} dialects[] = {
    {cw_pmi1_parse, 0, CW_PMI1_LINE_MAX, "cmd=get key=put value= =   \t\nabc0123-", 16},
    {cw_pmi2_parse, CW_PMI2_HEADER, CW_PMI2_HEADER + CW_PMI2_MESSAGE_MAX, "cmd=get;key=put;value=;;==ab 0123-", 32},
};

struct written {
    char text[CW_PMI1_LINE_MAX + CW_PMI2_MESSAGE_MAX + CW_PMI2_HEADER];
    size_t length;
};

static int line_write(const struct dialect *dialect, const struct cw_pmi1_line *line, struct written *written)
{
    struct cw_pmi1_writer one = {.length = 0};
    struct cw_pmi2_writer two = {.length = CW_PMI2_HEADER};
    for (size_t i = 0; i < line->count; i++) {
        if (dialect->header == 0) {
            cw_pmi1_add(&one, line->words[i].name, line->words[i].value);
        } else {
            cw_pmi2_add(&two, line->words[i].name, line->words[i].value);
        }
    }
    int status = dialect->header == 0 ? cw_pmi1_end(&one) : cw_pmi2_end(&two);
    written->length = dialect->header == 0 ? one.length : two.length;
    memcpy(written->text, dialect->header == 0 ? one.text : two.text, written->length);
    return status;
}

/* A value that becomes longer fits up to some length; ';' is doubled in PMI-2. */
static void test_write_too_long(void **state)
{
    static const char characters[] = {'v', 'v', ';'};
    for (size_t i = 0; i < sizeof(characters); i++) {
        const struct dialect *dialect = &dialects[i > 0];
        char value[CW_PMI1_LINE_MAX + CW_PMI2_MESSAGE_MAX];
        const struct cw_pmi1_line line = {.count = 1, .words = {{.name = "value", .value = value}}};
        struct written written;
        bool fitted = true;
        for (size_t length = dialect->bytes_max / 2 - 40; length < dialect->bytes_max + 10; length++) {
            memset(value, characters[i], length);
            value[length] = 0;
            bool fits = line_write(dialect, &line, &written) == CW_OK;
            assert_true(fitted || !fits);
            assert_true(!fits || written.length <= dialect->bytes_max);
            fitted = fits;
        }
        assert_false(fitted);
    }
}

/* An accepted text is written again, with the same result. */
static void test_random(void **state)
{
    for (size_t which = 0; which < 2; which++) {
        const struct dialect *dialect = &dialects[which];
        const size_t usual = strlen(dialect->usual);
        struct cw_random random;
        uint64_t accepted = 0;
        cw_random_seed(&random, 4);
        for (int i = 0; i < RANDOM_LINES; i++) {
            size_t length = cw_random_next(&random) % (which == 0 ? 80 : 40);
            char *text = malloc(length + 1);
            assert_non_null(text);
            for (size_t j = 0; j < length; j++) {
                uint64_t draw = cw_random_next(&random);
                text[j] = draw % dialect->others != 0 ? dialect->usual[(draw >> 8) % usual] : (char)(draw >> 8);
            }
            struct cw_pmi1_line line, again;
            if (dialect->parse(text, length, &line) == CW_OK) {
                struct written written;
                size_t told = 0;
                assert_in_range(line.count, 1, CW_PMI1_WORDS_MAX);
                for (size_t j = 0; j < line.count; j++) {
                    assert_in_range(line.words[j].name - text, 0, length);
                }
                assert_int_equal(line_write(dialect, &line, &written), CW_OK);
                assert_true(which == 0 || written.length == CW_PMI2_HEADER + length);
                assert_true(which == 0 || (cw_pmi2_header_read(written.text, &told) && told == length));
                /* a line of PMI-1 ends with a newline */
                size_t body = written.length - (which == 0 ? 1 : CW_PMI2_HEADER);
                assert_int_equal(dialect->parse(written.text + dialect->header, body, &again), CW_OK);
                words_expect(&again, &line);
                accepted++;
            }
            free(text);
        }
        assert_in_range(accepted, RANDOM_LINES / 1000, RANDOM_LINES);
    }
}

int main(void)
{
    return TESTS_RUN(test_parse_1, test_length, test_numbers, test_write_1, test_parse_2, test_headers, test_write_2,
                     test_write_too_long, test_random);
}
