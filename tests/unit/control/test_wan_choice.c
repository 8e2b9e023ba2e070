/* Wide-area settings of the environment: accepted, rejected, and a text of them means the same elsewhere. */
#include "control/job/wan_choice.h"
#include "tests/test.h"

static void set(const char *pacing, const char *encrypt)
{
    const char *words[] = {pacing, encrypt};
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

static void words_are_parsed(void **state)
{
    static const struct {
        const char *words[CW_WAN_VARIABLES];
        struct cw_wan_choice choice;
    } table[] = {
        {{NULL, NULL}, {CW_PACING_ON, CW_WAN_ENCRYPT_WIDE}},   {{"", ""}, {CW_PACING_ON, CW_WAN_ENCRYPT_WIDE}},
        {{"off", "all"}, {CW_PACING_OFF, CW_WAN_ENCRYPT_ALL}}, {{NULL, "off"}, {CW_PACING_ON, CW_WAN_ENCRYPT_OFF}},
        {{"on", "wide"}, {CW_PACING_ON, CW_WAN_ENCRYPT_WIDE}},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct cw_wan_choice choice;
        char error[200];
        set(table[i].words[0], table[i].words[1]);
        assert_true(read_back(&choice, error));
        assert_int_equal(choice.pacing, table[i].choice.pacing);
        assert_int_equal(choice.encryption, table[i].choice.encryption);
    }
    char words[CW_WAN_WORDS_BYTES];
    set(NULL, NULL);
    cw_wan_words(words);
    assert_string_equal(words, "");
}

static void nonsense_is_rejected(void **state)
{
    static const char *const bad[][CW_WAN_VARIABLES] = {
        {"slow", NULL}, {"found", NULL}, {NULL, "none"}, {NULL, "wide "}, {"on;off", NULL},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cw_wan_choice choice;
        char error[200];
        set(bad[i][0], bad[i][1]);
        uint32_t which = bad[i][0] != NULL ? 0 : 1;
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
    set(longer, longer);
    assert_false(read_back(&choice, error));
    set(NULL, longer);
    assert_false(read_back(&choice, error));
    assert_non_null(strstr(error, "CAUSEWAY_ENCRYPT"));
}

int main(void)
{
    return TESTS_RUN(words_are_parsed, nonsense_is_rejected);
}
