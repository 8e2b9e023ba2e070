#include "apps/cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/units.h"

bool app_parse_count(const char *text, uint64_t *count)
{
    unsigned long long number;
    char *end;

    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    number = strtoull(text, &end, text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10);
    if (errno != 0 || *end != 0) {
        return false;
    }
    *count = number;
    return true;
}

bool app_parse_list(const char *text, bool (*parse)(const char *text, uint64_t *value), struct app_list *list)
{
    char item[32];
    list->count = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        if (length >= sizeof(item) || list->count == list->count_max) {
            return false;
        }
        snprintf(item, sizeof(item), "%.*s", (int)length, text);
        if (!parse(item, &list->values[list->count++])) {
            return false;
        }
        if (text[length] == 0) {
            return true;
        }
        text += length + 1;
    }
}

bool app_parse_mac(const char *text, uint8_t mac[6])
{
    unsigned int bytes[6];
    int end = 0;

    if (strspn(text, "0123456789abcdefABCDEF:") != strlen(text) ||
        sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &bytes[0], &bytes[1], &bytes[2], &bytes[3], &bytes[4], &bytes[5],
               &end) != 6 ||
        text[end] != 0) {
        return false;
    }
    for (int i = 0; i < 6; i++) {
        mac[i] = (uint8_t)bytes[i];
    }
    return true;
}
