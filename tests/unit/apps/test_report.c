/* One table of cells as JSON, as a table, a record and a line for people, and as CSV. */
#include "apps/cli/report.h"
#include "tests/test.h"

/* Two rows, of which the second has no latency, in a form; frees nothing that is returned before the next call. */
static const char *report_rows(struct app_report report)
{
    static char *text;
    size_t bytes;
    free(text);
    FILE *before = stdout, *written = open_memstream(&text, &bytes);
    assert_non_null(written);
    report.csv = written;
    stdout = written;
    for (uint64_t row = 0; row < 2; row++) {
        const struct app_cell cells[] = {
            app_text("bench", NULL, 0, "test"),
            app_text("way", "way", 5, row == 0 ? "near" : "far"),
            app_count("size_bytes", "bytes", 8 + row),
            app_when(row == 0, app_number("latency_ns", "latency/us", 1, 1e-3, 1234567890)),
            app_scaled("rate_bps", "Mb/s", 1, 1e-6, 2500000),
            app_flag("sealed", "sealed", row == 1),
            app_number(NULL, "share, %", 0, 100, 0.5),
        };
        APP_REPORT(&report, cells);
    }
    stdout = before;
    fclose(written);
    return text;
}

static void test_json(void **state)
{
    assert_string_equal(
        report_rows((struct app_report){.json = true}),
        "{\"bench\":\"test\",\"way\":\"near\",\"size_bytes\":8,\"latency_ns\":1.23457e9,\"rate_bps\":2500000,"
        "\"sealed\":false}\n"
        "{\"bench\":\"test\",\"way\":\"far\",\"size_bytes\":9,\"rate_bps\":2500000,\"sealed\":true}\n");
}

static void test_csv_has_all_digits(void **state)
{
    assert_string_equal(report_rows((struct app_report){.form = APP_REPORT_CSV}),
                        "bench,way,size_bytes,latency_ns,rate_bps,sealed\n"
                        "test,near,8,1234567890,2500000,no\n"
                        "test,far,9,,2500000,yes\n");
}

static void test_people(void **state)
{
    assert_string_equal(report_rows((struct app_report){.form = APP_REPORT_TABLE}),
                        "way        bytes latency/us       Mb/s     sealed   share, %\n"
                        "near           8  1234567.9        2.5         no         50\n"
                        "far            9                   2.5        yes         50\n");
    assert_string_equal(report_rows((struct app_report){.form = APP_REPORT_LINE}),
                        "test: way near, bytes 8, latency/us 1234567.9, Mb/s 2.5, sealed no, share, % 50\n"
                        "test: way far, bytes 9, Mb/s 2.5, sealed yes, share, % 50\n");
    assert_non_null(strstr(report_rows((struct app_report){.form = APP_REPORT_RECORD}),
                           "latency/us                       1234567.9\n"));
}

int main(void)
{
    return TESTS_RUN(test_json, test_csv_has_all_digits, test_people);
}
