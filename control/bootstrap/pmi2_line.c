#include "control/bootstrap/pmi2_line.h"

#include <stdio.h>
#include <string.h>

#include "dataplane/status.h"

/* Not isprint(): that depends on the locale. */
static bool is_printable(char character)
{
    return character >= ' ' && character <= '~';
}

bool cw_pmi2_header_read(const char *header, size_t *length)
{
    char digits[CW_PMI2_HEADER + 1];
    size_t first = 0;
    size_t count = 0;
    long number = 0;
    while (first < CW_PMI2_HEADER && header[first] == ' ') {
        first++;
    }
    for (; first + count < CW_PMI2_HEADER && header[first + count] != ' '; count++) {
        digits[count] = header[first + count];
    }
    digits[count] = 0;
    for (size_t i = first + count; i < CW_PMI2_HEADER; i++) {
        if (header[i] != ' ') {
            return false;
        }
    }
    if (!cw_pmi1_number_read(digits, 0, CW_PMI2_MESSAGE_MAX, &number)) {
        return false;
    }
    *length = (size_t)number;
    return true;
}

/* Takes one word that starts at `text`, its value moved together where ';' was written twice. Returns what follows it;
 * NULL: it is none. */
static char *word_parse(char *text, struct cw_pmi1_word *word)
{
    size_t name_length = strcspn(text, "=;");
    if (name_length == 0 || text[name_length] != '=') {
        return NULL;
    }
    const char *from = text + name_length + 1;
    char *to = text + name_length;
    *to++ = 0;
    word->name = text;
    word->value = to;
    for (; *from != ';' || from[1] == ';'; from++) {
        if (*from == 0) {
            return NULL;
        }
        from += *from == ';';
        *to++ = *from;
    }
    char *rest = text + (from + 1 - text);
    *to = 0;
    return rest;
}

int cw_pmi2_parse(char *text, size_t length, struct cw_pmi1_line *line)
{
    if (length > CW_PMI2_MESSAGE_MAX) {
        return CW_ERROR_LIMIT;
    }
    for (size_t i = 0; i < length; i++) {
        if (!is_printable(text[i])) {
            return CW_ERROR_ARGUMENT;
        }
    }
    struct cw_pmi1_line found = {.count = 0};
    text[length] = 0;
    while (*text != 0) {
        if (found.count == CW_PMI1_WORDS_MAX) {
            return CW_ERROR_LIMIT;
        }
        text = word_parse(text, &found.words[found.count++]);
        if (text == NULL) {
            return CW_ERROR_ARGUMENT;
        }
    }
    if (found.count == 0) {
        return CW_ERROR_ARGUMENT;
    }
    *line = found;
    return CW_OK;
}

/* Keeps room for the 0. */
static void character_append(struct cw_pmi2_writer *writer, char character)
{
    if (writer->failed || !is_printable(character) || writer->length + 1 >= sizeof(writer->text)) {
        writer->failed = true;
        return;
    }
    writer->text[writer->length++] = character;
}

void cw_pmi2_begin(struct cw_pmi2_writer *writer, const char *command)
{
    writer->length = CW_PMI2_HEADER;
    writer->failed = false;
    cw_pmi2_add(writer, "cmd", command);
}

void cw_pmi2_add(struct cw_pmi2_writer *writer, const char *name, const char *value)
{
    if (name[0] == 0 || strpbrk(name, "=;") != NULL) {
        writer->failed = true;
        return;
    }
    for (; *name != 0; name++) {
        character_append(writer, *name);
    }
    character_append(writer, '=');
    for (; *value != 0 && !writer->failed; value++) {
        character_append(writer, *value);
        if (*value == ';') {
            character_append(writer, ';');
        }
    }
    character_append(writer, ';');
}

int cw_pmi2_end(struct cw_pmi2_writer *writer)
{
    char header[24];
    if (writer->failed) {
        return CW_ERROR_ARGUMENT;
    }
    snprintf(header, sizeof(header), "%*zu", CW_PMI2_HEADER, writer->length - CW_PMI2_HEADER);
    memcpy(writer->text, header, CW_PMI2_HEADER);
    writer->text[writer->length] = 0;
    return CW_OK;
}
