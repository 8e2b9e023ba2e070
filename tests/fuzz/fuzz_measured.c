/* Files of measured parameters that somebody has damaged: refused with a reason, or what is read is written and read
 * again the same. Bytes are changed, cut, doubled and swapped, and numbers replaced by ones at the edges.
 * CW_TEST_PACKETS (100,000) / 5 files. */
#include <stdlib.h>
#include <string.h>

#include "collectives/choose/measured.h"
#include "collectives/choose/override.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/fuzz/fuzz_text.h"
#include "tests/test.h"

static const char sample[] =
    "{\"causeway-plogp\": 1,\n\"made_by\": \"x\",\n\"networks\": [\n{\"path\": \"shared\", \"ranks\": 2, "
    "\"latency_ns\": 250, "
    "\"points\": [[0, 290, 200, 290], [64, 309, 301, 309], [8192, 2000.5, 400, 900]], \"ports\": 1, "
    "\"copy_ns_per_byte\": "
    "0.06, \"reduce_ns_per_byte\": 0.07, \"contention\": 1, \"concurrent\": [[1024, 2, 1e3, 1.5e3, "
    "1.1e3]]}],\n\"tests\": [\n"
    "{\"path\": \"shared\", \"collective\": \"bcast\", \"ranks\": 2, \"bytes\": 8, \"ns\": {\"binary\": 190, "
    "\"d-ary\": 195}, "
    "\"segment_bytes\": {\"d-ary\": 8}, \"degree\": {\"d-ary\": 1}},\n"
    "{\"path\": \"wire\", \"collective\": \"barrier\", \"ranks\": 2, \"bytes\": 0, \"ns\": {\"tree\": 1.9e5}}]}\n";

static const char *const numbers[] = {
    "-1",   "0",  "1e308", "1e-320", "9223372036854775807", "9007199254740993", "null",
    "\"\"", "[]", "{}",    "true",   "4294967296"};

/* Puts one of the words in the place of a number. */
static size_t number_replace(struct cw_random *random, char *text, size_t length, size_t room)
{
    size_t at = (uint32_t)cw_random_below(random, length);
    at += strcspn(text + at, "0123456789");
    size_t gone = strspn(text + at, "0123456789.e");
    const char *word = numbers[cw_random_below(random, sizeof(numbers) / sizeof(numbers[0]))];
    return fuzz_text_splice(text, length, room, at, gone, word);
}

static void damaged_files_are_refused_or_sound(void **state)
{
    uint64_t files = test_count("CW_TEST_PACKETS", 100000) / 5;
    uint64_t taken = 0;
    struct cw_random random;
    cw_random_seed(&random, 1);
    for (uint64_t file = 0; file < files; file++) {
        char text[2 * sizeof(sample)];
        char error[400] = "";
        struct cw_measured *measured = NULL, *again = NULL;
        size_t length = sizeof(sample) - 1;
        memset(text, 0, sizeof(text));
        memcpy(text, sample, sizeof(sample));
        for (uint32_t i = 0; i <= cw_random_below(&random, 3) && length > 0; i++) {
            length = fuzz_text_damage(&random, text, length, sizeof(text), 5, number_replace);
        }
        char *exact = malloc(length + 1); /* so that reading beyond the end is seen */
        memcpy(exact, text, length);
        int status = cw_measured_decode(exact, length, &measured, error, sizeof(error));
        free(exact);
        if (status != CW_OK) {
            assert_true(error[0] != '\0' && measured == NULL);
            continue;
        }
        taken++;
        char *written = cw_measured_encode(measured);
        assert_non_null(written);
        if (cw_measured_decode(written, strlen(written), &again, error, sizeof(error)) != CW_OK) {
            fail_msg("file %llu: %s\n%s", (unsigned long long)file, error, written);
        }
        free(written);
        cw_measured_destroy(again);
        cw_measured_destroy(measured);
    }
    print_message("%llu of %llu damaged files make sense\n", (unsigned long long)taken, (unsigned long long)files);
}

static void any_words_are_refused_or_sound(void **state)
{
    static const char letters[] = "bcast=,:binomialrg0129-\xff ";
    struct cw_random random;
    cw_random_seed(&random, 2);
    for (int round = 0; round < 100000; round++) {
        char text[300] = "bcast=segmented-chain:segment=8192,reduce=ring";
        char error[600] = "";
        struct cw_override override;
        uint32_t changes = (uint32_t)cw_random_below(&random, 6);
        for (uint32_t i = 0; i < changes; i++) {
            text[cw_random_below(&random, 60)] = letters[cw_random_below(&random, sizeof(letters))];
        }
        assert_true(cw_override_parse(text, &override, error, sizeof(error)) == CW_OK || error[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_files_are_refused_or_sound),
        cmocka_unit_test(any_words_are_refused_or_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
