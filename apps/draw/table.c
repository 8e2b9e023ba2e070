#include "apps/draw/table.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"

enum { TEXT_BYTES = 512 };

/* Cuts a line into cells; returns how many there are, of which those that have room are in the list. */
static uint32_t cells_cut(char *line, char *cells[DRAW_COLUMNS_MAX])
{
    uint32_t count = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; at != NULL; count++) {
        char *comma = strchr(at, ',');
        if (comma != NULL) {
            *comma++ = '\0';
        }
        if (count < DRAW_COLUMNS_MAX) {
            cells[count] = at;
        }
        at = comma;
    }
    return count;
}

static int header_take(struct draw_table *table, const char *source)
{
    char *cells[DRAW_COLUMNS_MAX] = {NULL};
    char todo[TEXT_BYTES];
    table->columns = cells_cut(table->line, cells);
    for (uint32_t i = 0; i < table->wanted; i++) {
        uint32_t place = 0;
        uint32_t end = table->columns < DRAW_COLUMNS_MAX ? table->columns : DRAW_COLUMNS_MAX;
        while (place < end && strcmp(cells[place], table->names[i]) != 0) {
            place++;
        }
        if (place == end) {
            snprintf(todo, sizeof(todo), "its first line has no column %s; %s", table->names[i], source);
            app_error("this file cannot be drawn", table->path, todo);
            return APP_EXIT_USAGE;
        }
        table->places[i] = place;
    }
    return APP_EXIT_SUCCESS;
}

int draw_table_open(struct draw_table *table, const char *path, const char *const *names, uint32_t wanted,
                    const char *source)
{
    assert(wanted <= DRAW_COLUMNS_MAX);
    *table = (struct draw_table){.path = path, .file = fopen(path, "re"), .names = names, .wanted = wanted};
    if (table->file == NULL) {
        app_error("the file cannot be read", path, strerror(errno));
        return APP_EXIT_USAGE;
    }
    if (getline(&table->line, &table->line_bytes, table->file) < 0) {
        bool is_broken = ferror(table->file) != 0;
        app_error(is_broken ? "the file cannot be read" : "the file is empty", path,
                  is_broken ? strerror(errno) : source);
        return APP_EXIT_USAGE;
    }
    table->number = 1;
    return header_take(table, source);
}

void draw_table_close(struct draw_table *table)
{
    if (table->file != NULL) {
        fclose(table->file);
    }
    free(table->line);
    *table = (struct draw_table){.path = NULL};
}

bool draw_table_next(struct draw_table *table, int *code)
{
    char *cells[DRAW_COLUMNS_MAX] = {NULL};
    ssize_t length = getline(&table->line, &table->line_bytes, table->file);
    *code = APP_EXIT_SUCCESS;
    if (length < 0 && ferror(table->file)) {
        app_error("the file cannot be read", table->path, strerror(errno));
        *code = APP_EXIT_MACHINE;
    }
    if (length <= 0 || table->line[length - 1] != '\n') {
        return false;
    }
    table->number++;
    uint32_t count = cells_cut(table->line, cells);
    if (count != table->columns) {
        char what[TEXT_BYTES];
        snprintf(what, sizeof(what), "line %llu has %u cells, the first line %u", (unsigned long long)table->number,
                 count, table->columns);
        app_error(what, table->path, "is it damaged?");
        *code = APP_EXIT_USAGE;
        return false;
    }
    for (uint32_t i = 0; i < table->wanted; i++) {
        table->cells[i] = cells[table->places[i]];
    }
    return true;
}

void draw_table_refuse(const struct draw_table *table, uint32_t column, const char *wanted)
{
    char what[TEXT_BYTES];
    snprintf(what, sizeof(what), "line %llu, column %s is %s: '%.64s'", (unsigned long long)table->number,
             table->names[column], wanted, table->cells[column]);
    app_error(what, table->path, "is it damaged?");
}

bool draw_table_count(const struct draw_table *table, uint32_t column, uint64_t *count)
{
    const char *text = table->cells[column];
    char *end;
    errno = 0;
    *count = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
        draw_table_refuse(table, column, "no number");
        return false;
    }
    return true;
}

bool draw_table_number(const struct draw_table *table, uint32_t column, double *number)
{
    const char *text = table->cells[column];
    char *end;
    *number = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*number) || *number <= 0) {
        draw_table_refuse(table, column, "no number above 0");
        return false;
    }
    return true;
}
