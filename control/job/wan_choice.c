#include "control/job/wan_choice.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/setting.h"
#include "control/topology/clusters.h"

enum { PACING, RELAYS, ENCRYPT };

const struct cw_wan_variable cw_wan_variables[CW_WAN_VARIABLES] = {
    [PACING] = {CW_SETTING_PACING, "on, off or found"},
    [RELAYS] = {CW_SETTING_RELAYS, "off, found or a number from 1 to 32"},
    [ENCRYPT] = {CW_SETTING_ENCRYPT, "wide, all or off"},
};
static_assert(CW_CLUSTERS_RELAYS_MAX == 32, "the text of CAUSEWAY_RELAYS has this limit");

static const char *const pacings[] = {"on", "off", "found", NULL};
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

static bool relays_take(const char *word, uint32_t *relays)
{
    char *end;
    if (strcmp(word, "off") == 0) {
        *relays = 0;
        return true;
    }
    if (strcmp(word, "found") == 0) {
        *relays = CW_CLUSTERS_RELAYS_FOUND;
        return true;
    }
    unsigned long count = strtoul(word, &end, 10);
    if (word[0] < '0' || word[0] > '9' || *end != '\0' || count < 1 || count > CW_CLUSTERS_RELAYS_MAX) {
        return false;
    }
    *relays = (uint32_t)count;
    return true;
}

bool cw_wan_take(uint32_t variable, const char *word, struct cw_wan_choice *choice)
{
    static const struct cw_wan_choice defaults = {.pacing = CW_PACING_ON};
    bool none = word == NULL || word[0] == '\0';
    int index;
    switch (variable) {
    case PACING:
        index = none ? (int)defaults.pacing : word_find(pacings, word);
        choice->pacing = pacings[index] == NULL ? choice->pacing : (enum cw_pacing)index;
        return pacings[index] != NULL;
    case ENCRYPT:
        index = none ? (int)defaults.encryption : word_find(encryptions, word);
        choice->encryption = encryptions[index] == NULL ? choice->encryption : (enum cw_wan_encryption)index;
        return encryptions[index] != NULL;
    default:
        choice->relays = none ? defaults.relays : choice->relays;
        return none || relays_take(word, &choice->relays);
    }
}

void cw_wan_word(uint32_t variable, const struct cw_wan_choice *choice, char word[CW_WAN_WORD_BYTES])
{
    if (variable != RELAYS) {
        const char *found = variable == PACING ? pacings[choice->pacing] : encryptions[choice->encryption];
        snprintf(word, CW_WAN_WORD_BYTES, "%s", found);
    } else if (choice->relays == 0 || choice->relays == CW_CLUSTERS_RELAYS_FOUND) {
        snprintf(word, CW_WAN_WORD_BYTES, "%s", choice->relays == 0 ? "off" : "found");
    } else {
        snprintf(word, CW_WAN_WORD_BYTES, "%u", choice->relays);
    }
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
        if (!cw_wan_take(i, word, choice)) {
            snprintf(error, error_bytes, "%s is '%.40s': %s is wanted", cw_setting_name(cw_wan_variables[i].setting),
                     word, cw_wan_variables[i].wanted);
            return false;
        }
        words += length + (words[length] == ';');
    }
    return true;
}
