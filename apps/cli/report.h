/* CLI report: one table of cells describes a line of results, and text, JSON and CSV are written from it.
 *
 * Invariants
 *  - A cell has a name for programs (a key of JSON, a column of CSV; its unit is the suffix) and a title for users,
 *    either of which may be NULL: then it is not there for them.
 *  - All rows of a table have the same cells; one that is absent from a row leaves its column blank, and no key.
 *  - The heads of the columns are printed with the first row. */
#pragma once

#include "apps/cli/cli.h"

enum app_cell_kind { APP_CELL_TEXT, APP_CELL_COUNT, APP_CELL_NUMBER, APP_CELL_FLAG };

struct app_cell {
    const char *name;
    const char *title;
    enum app_cell_kind kind;
    bool absent;
    int width;    /* text: of its column; others: 0, as wide as the title, ten at the least */
    int digits;   /* a number's behind the point, for users */
    double scale; /* people read a number or count times this */
    const char *text;
    uint64_t count;
    double number;
};

static inline struct app_cell app_text(const char *name, const char *title, int width, const char *text)
{
    return (struct app_cell){name, title, APP_CELL_TEXT, text == NULL, width, 0, 1, text, 0, 0};
}

static inline struct app_cell app_count(const char *name, const char *title, uint64_t count)
{
    return (struct app_cell){name, title, APP_CELL_COUNT, false, 0, 0, 1, NULL, count, 0};
}

/* People read it times `scale`. */
static inline struct app_cell app_scaled(const char *name, const char *title, int digits, double scale, uint64_t count)
{
    return (struct app_cell){name, title, APP_CELL_COUNT, false, 0, digits, scale, NULL, count, 0};
}

static inline struct app_cell app_flag(const char *name, const char *title, bool flag)
{
    return (struct app_cell){name, title, APP_CELL_FLAG, false, 0, 0, 1, NULL, flag, 0};
}

static inline struct app_cell app_number(const char *name, const char *title, int digits, double scale, double number)
{
    return (struct app_cell){name, title, APP_CELL_NUMBER, false, 0, digits, scale, NULL, 0, number};
}

/* The same cell, absent unless the condition holds. */
static inline struct app_cell app_when(bool condition, struct app_cell cell)
{
    cell.absent = cell.absent || !condition;
    return cell;
}

enum app_report_form {
    APP_REPORT_TABLE,  /* a row each, below heads */
    APP_REPORT_CSV,    /* the same, with commas between, to `csv` */
    APP_REPORT_RECORD, /* a line for each cell */
    APP_REPORT_LINE,   /* "text text: title value, title value": texts that come first have no title */
};

struct app_report {
    bool json; /* one object a line instead of text */
    enum app_report_form form;
    FILE *csv;
    bool begun; /* heads have been printed */
};

/* Writes a line; standard output is flushed, so that a reader sees it at once. */
void app_report_cells(struct app_report *report, const struct app_cell *cells, size_t count);

/* The same, but the JSON object becomes the child `key` of another one. */
void app_report_part(struct app_report *report, json_t *object, const char *key, const struct app_cell *cells,
                     size_t count);

/* A JSON object that begins with these cells, for parts and an end; NULL, and nothing is printed, where people read. */
json_t *app_report_begin(const struct app_report *report, const struct app_cell *cells, size_t count);

/* Of an array of cells. */
#define APP_CELLS(cells)                            cells, sizeof(cells) / sizeof((cells)[0])
#define APP_REPORT(report, cells)                   app_report_cells(report, APP_CELLS(cells))
#define APP_REPORT_BEGIN(report, cells)             app_report_begin(report, APP_CELLS(cells))
#define APP_REPORT_PART(report, object, key, cells) app_report_part(report, object, key, APP_CELLS(cells))
