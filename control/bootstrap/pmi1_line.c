#include "control/bootstrap/pmi1_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

/* Not isprint(): that depends on the locale. */
static bool is_printable(char character)
{
    return character >= ' ' && character <= '~';
}

static bool is_blank(char character)
{
    return character == ' ' || character == '\t';
}

/* Takes one word that starts at `text`, where no blank is. Returns what follows it. */
static char *word_parse(char *text, struct cw_pmi1_word *word)
{
    char *rest = text;
    while (*rest != 0 && !is_blank(*rest)) {
        rest++;
    }
    if (*rest != 0) {
        *rest++ = 0;
    }
    char *equal = strchr(text, '=');
    word->name = text;
    word->value = "";
    if (equal != NULL) {
        *equal = 0;
        word->value = equal + 1;
    }
    return rest;
}

int cw_pmi1_parse(char *text, size_t length, struct cw_pmi1_line *line)
{
    if (length >= CW_PMI1_LINE_MAX) {
        return CW_ERROR_LIMIT;
    }
    for (size_t i = 0; i < length; i++) {
        if (!is_printable(text[i]) && !is_blank(text[i])) {
            return CW_ERROR_ARGUMENT;
        }
    }
    struct cw_pmi1_line found = {.count = 0};
    text[length] = 0;
    for (;;) {
        while (is_blank(*text)) {
            text++;
        }
        if (*text == 0) {
            break;
        }
        if (found.count == CW_PMI1_WORDS_MAX) {
            return CW_ERROR_LIMIT;
        }
        text = word_parse(text, &found.words[found.count]);
        if (found.words[found.count++].name[0] == 0) {
            return CW_ERROR_ARGUMENT;
        }
    }
    if (found.count == 0) {
        return CW_ERROR_ARGUMENT;
    }
    *line = found;
    return CW_OK;
}

const char *cw_pmi1_value(const struct cw_pmi1_line *line, const char *name)
{
    for (size_t i = 0; i < line->count; i++) {
        if (strcmp(line->words[i].name, name) == 0) {
            return line->words[i].value;
        }
    }
    return NULL;
}

bool cw_pmi1_number_read(const char *text, long low, long high, long *number)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    char *end;
    if (digits[0] < '0' || digits[0] > '9') {
        return false;
    }
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || *end != 0 || value < low || value > high) {
        return false;
    }
    *number = value;
    return true;
}

bool cw_pmi1_number(const struct cw_pmi1_line *line, const char *name, long low, long high, long *number)
{
    const char *text = cw_pmi1_value(line, name);
    return text != NULL && cw_pmi1_number_read(text, low, high, number);
}

bool cw_pmi1_text_fits(const char *text, bool key)
{
    if (key && text[0] == 0) {
        return false;
    }
    for (; *text != 0; text++) {
        if (!is_printable(*text) || *text == ' ' || (key && *text == '=')) {
            return false;
        }
    }
    return true;
}

/* Appends name=value; keeps room for the end of the line. */
static void word_append(struct cw_pmi1_writer *writer, const char *name, const char *value)
{
    size_t name_length = strlen(name);
    size_t value_length = strlen(value);
    size_t room = CW_PMI1_LINE_MAX - writer->length;
    if (writer->failed || !cw_pmi1_text_fits(name, true) || !cw_pmi1_text_fits(value, false) || name_length >= room ||
        value_length >= room || name_length + value_length + 3 > room) {
        writer->failed = true;
        return;
    }
    char *at = writer->text + writer->length;
    if (writer->length > 0) {
        *at++ = ' ';
    }
    memcpy(at, name, name_length);
    at += name_length;
    *at++ = '=';
    memcpy(at, value, value_length);
    at += value_length;
    writer->length = (size_t)(at - writer->text);
}

void cw_pmi1_begin(struct cw_pmi1_writer *writer, const char *command)
{
    writer->length = 0;
    writer->failed = false;
    word_append(writer, "cmd", command);
}

void cw_pmi1_add(struct cw_pmi1_writer *writer, const char *name, const char *value)
{
    word_append(writer, name, value);
}

void cw_pmi1_add_number(struct cw_pmi1_writer *writer, const char *name, long number)
{
    char text[24];
    snprintf(text, sizeof(text), "%ld", number);
    word_append(writer, name, text);
}

int cw_pmi1_end(struct cw_pmi1_writer *writer)
{
    if (writer->failed) {
        return CW_ERROR_ARGUMENT;
    }
    writer->text[writer->length++] = '\n';
    writer->text[writer->length] = 0;
    return CW_OK;
}
