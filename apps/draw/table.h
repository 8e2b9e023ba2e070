/* Draw table: a CSV file with a first line of names, without quotes, read line by line. Columns are found by their
 * names, in any order; others may be there, too.
 *
 * Order of calls: draw_table_open, { draw_table_next, draw_table_count | draw_table_number | texts of cells }*,
 * draw_table_close. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { DRAW_COLUMNS_MAX = 64 };

struct draw_table {
    const char *path;
    FILE *file;
    char *line;
    size_t line_bytes;
    uint64_t number; /* of the line, from 1 */
    uint32_t columns;
    uint32_t wanted;
    const char *const *names;            /* of the wanted ones */
    uint32_t places[DRAW_COLUMNS_MAX];   /* where each wanted one stands */
    const char *cells[DRAW_COLUMNS_MAX]; /* the wanted ones of this line */
};

/* `names`: of the columns that are wanted, `wanted` of them; kept, as `path` is. `source` says what writes such a file.
 * APP_EXIT_SUCCESS, or an exit code after reporting; draw_table_close is due in both cases. */
int draw_table_open(struct draw_table *table, const char *path, const char *const *names, uint32_t wanted,
                    const char *source);
void draw_table_close(struct draw_table *table);

/* Goes to the next line. False: there is none; *code is APP_EXIT_SUCCESS then, or an exit code after reporting. */
bool draw_table_next(struct draw_table *table, int *code);

/* A cell as a whole number, or as one above 0 that need not be whole. False: reported. */
bool draw_table_count(const struct draw_table *table, uint32_t column, uint64_t *count);
bool draw_table_number(const struct draw_table *table, uint32_t column, double *number);

/* Reports what is wrong with a cell of this line. */
void draw_table_refuse(const struct draw_table *table, uint32_t column, const char *wanted);
