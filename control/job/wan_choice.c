#include "control/job/wan_choice.h"

#include <stdio.h>
#include <string.h>

#include "control/settings/setting.h"

enum { PACING, ENCRYPT };

const struct cw_wan_variable cw_wan_variables[CW_WAN_VARIABLES] = {
    [PACING] = {CW_SETTING_PACING, "on or off"},
    [ENCRYPT] = {CW_SETTING_ENCRYPT, "wide, all or off"},
};

static const char *const pacings[] = {"on", "off", NULL};
static const char *const encryptions[] = {"wide", "all", "off", NULL};

/* The index of a name in a list; the index of the final NULL if it is missing. */
static int word_find(const char *const *list, const char *word)
{
    int index = 0;
    while (list[index] != NULL && strcmp(list[index], word) != 0) {
        index++;
    }
    return index;
}

bool cw_wan_value_set(uint32_t variable, const char *word, struct cw_wan_choice *choice)
{
    const char *const *list = variable == PACING ? pacings : encryptions;
    int index = word == NULL || word[0] == '\0' ? 0 : word_find(list, word); /* the first is the default */
    if (list[index] == NULL) {
        return false;
    }
    if (variable == PACING) {
        choice->pacing = (enum cw_pacing)index;
    } else {
        choice->encryption = (enum cw_wan_encryption)index;
    }
    return true;
}

void cw_wan_words(char words[CW_WAN_WORDS_BYTES])
{
    bool is_any = false;
    size_t used = 0;
    for (uint32_t i = 0; i < CW_WAN_VARIABLES; i++) {
        const char *word = cw_setting(cw_wan_variables[i].setting);
        word = word == NULL ? "" : word;
        is_any = is_any || word[0] != '\0';
        for (size_t at = 0; at < CW_WAN_WORD_BYTES - 2 && word[at] != '\0';
             at++) {                                          /* longer values are invalid, and are cut */
            words[used++] = word[at] == ';' ? '?' : word[at]; /* invalid, too */
        }
        words[used++] = ';';
    }
    words[is_any ? used : 0] = '\0';
}

bool cw_wan_parse(const char *words, struct cw_wan_choice *choice, char *error, size_t error_bytes)
{
    *choice = (struct cw_wan_choice){.pacing = CW_PACING_ON};
    for (uint32_t i = 0; i < CW_WAN_VARIABLES && words[0] != '\0'; i++) {
        char word[CW_WAN_WORD_BYTES];
        size_t length = strcspn(words, ";");
        snprintf(word, sizeof(word), "%.*s", (int)length, words);
        if (!cw_wan_value_set(i, word, choice)) {
            snprintf(error, error_bytes, "%s is '%.40s': %s is wanted", cw_setting_name(cw_wan_variables[i].setting),
                     word, cw_wan_variables[i].wanted);
            return false;
        }
        words += length + (words[length] == ';');
    }
    return true;
}
