/* The words of the environment about the wide area: what is taken, what is refused, and that a text of them means the
 * same elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "control/job/wan_choice.h"
#include "control/topology/clusters.h"
#include "tests/test.h"

static void set(const char *pacing, const char *relays, const char *encrypt)
{
    const char *words[] = {pacing, relays, encrypt};
    for (uint32_t i = 0; i < CW_WAN_VARIABLES; i++) {
        if (words[i] == NULL) {
            unsetenv(cw_setting_name(cw_wan_variables[i].setting));
        } else {
            setenv(cw_setting_name(cw_wan_variables[i].setting), words[i], 1);
        }
    }
}

static bool read_back(struct cw_wan_choice *choice, char error[200])
{
    char words[CW_WAN_WORDS_BYTES];
    cw_wan_words(words);
    error[0] = '\0';
    return cw_wan_parse(words, choice, error, 200);
}

static void words_are_taken(void **state)
{
    static const struct {
        const char *words[CW_WAN_VARIABLES];
        struct cw_wan_choice choice;
    } table[] = {
        {{NULL, NULL, NULL}, {CW_PACING_ON, 0, CW_WAN_ENCRYPT_WIDE}},
        {{"", "", ""}, {CW_PACING_ON, 0, CW_WAN_ENCRYPT_WIDE}},
        {{"off", NULL, "all"}, {CW_PACING_OFF, 0, CW_WAN_ENCRYPT_ALL}},
        {{"found", "found", "off"}, {CW_PACING_FOUND, CW_CLUSTERS_RELAYS_FOUND, CW_WAN_ENCRYPT_OFF}},
        {{NULL, "1", NULL}, {CW_PACING_ON, 1, CW_WAN_ENCRYPT_WIDE}},
        {{"on", "32", "wide"}, {CW_PACING_ON, 32, CW_WAN_ENCRYPT_WIDE}},
        {{"on", "off", "wide"}, {CW_PACING_ON, 0, CW_WAN_ENCRYPT_WIDE}},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct cw_wan_choice choice;
        char error[200];
        set(table[i].words[0], table[i].words[1], table[i].words[2]);
        assert_true(read_back(&choice, error));
        assert_int_equal(choice.pacing, table[i].choice.pacing);
        assert_int_equal(choice.relays, table[i].choice.relays);
        assert_int_equal(choice.encryption, table[i].choice.encryption);
        for (uint32_t v = 0; v < CW_WAN_VARIABLES; v++) { /* what is said of a choice is taken for the same one */
            char word[CW_WAN_WORD_BYTES];
            struct cw_wan_choice again = {.relays = 7, .pacing = CW_PACING_OFF, .encryption = CW_WAN_ENCRYPT_OFF};
            cw_wan_word(v, &choice, word);
            assert_true(cw_wan_take(v, word, &again));
            assert_true(v != 0 || again.pacing == choice.pacing);
            assert_true(v != 1 || again.relays == choice.relays);
            assert_true(v != 2 || again.encryption == choice.encryption);
        }
    }
    char words[CW_WAN_WORDS_BYTES];
    set(NULL, NULL, NULL);
    cw_wan_words(words);
    assert_string_equal(words, "");
}

static void nonsense_is_refused(void **state)
{
    static const char *const bad[][CW_WAN_VARIABLES] = {
        {"slow", NULL, NULL}, {NULL, "0", NULL},   {NULL, "33", NULL},   {NULL, "-1", NULL},    {NULL, "4x", NULL},
        {NULL, " 4", NULL},   {NULL, "all", NULL}, {NULL, NULL, "none"}, {NULL, NULL, "wide "}, {"on;off", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cw_wan_choice choice;
        char error[200];
        set(bad[i][0], bad[i][1], bad[i][2]);
        uint32_t which = bad[i][0] != NULL ? 0 : bad[i][1] != NULL ? 1 : 2;
        assert_false(read_back(&choice, error));
        assert_non_null(strstr(error, cw_setting_name(cw_wan_variables[which].setting)));
        assert_non_null(strstr(error, cw_wan_variables[which].wanted));
        assert_true(strchr(bad[i][which], ';') != NULL || strstr(error, bad[i][which]) != NULL);
    }
    char longer[500];
    struct cw_wan_choice choice;
    char error[200];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    set(longer, longer, longer);
    assert_false(read_back(&choice, error));
    set(NULL, NULL, longer);
    assert_false(read_back(&choice, error));
    assert_non_null(strstr(error, "CAUSEWAY_ENCRYPT"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_taken),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
