#include "apps/cli/report.h"
#include "apps/cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { COLUMN_MIN = 10, VALUE_BYTES = 128, RECORD_TITLE = 32 };

/* Adds the cells' keys to an object, in their order. */
static void cells_json(json_t *object, const struct app_cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct app_cell *cell = &cells[i];
        if (cell->name == NULL || cell->absent) {
            continue;
        }
        switch (cell->kind) {
        case APP_CELL_TEXT:
            app_json_text(object, cell->name, cell->text);
            break;
        case APP_CELL_COUNT:
            app_json_count(object, cell->name, cell->count);
            break;
        case APP_CELL_NUMBER:
            app_json_number(object, cell->name, cell->number);
            break;
        case APP_CELL_FLAG:
            app_json_flag(object, cell->name, cell->count != 0);
            break;
        }
    }
}

/* As people read it. */
static const char *cell_text(const struct app_cell *cell, char text[VALUE_BYTES])
{
    text[0] = '\0';
    if (cell->absent) {
        return text;
    }
    switch (cell->kind) {
    case APP_CELL_TEXT:
        return cell->text;
    case APP_CELL_COUNT:
        snprintf(text, VALUE_BYTES, "%" PRIu64, cell->count);
        if (cell->scale != 1) {
            snprintf(text, VALUE_BYTES, "%.*f", cell->digits, (double)cell->count * cell->scale);
        }
        break;
    case APP_CELL_NUMBER:
        snprintf(text, VALUE_BYTES, "%.*f", cell->digits, cell->number * cell->scale);
        break;
    case APP_CELL_FLAG:
        return cell->count != 0 ? "yes" : "no";
    }
    return text;
}

/* Texts stand to the left of their column, all else to the right. */
static void column_print(const struct app_cell *cell, const char *text, bool first)
{
    int width = cell->width > 0 ? cell->width : (int)strlen(cell->title);
    width = cell->width > 0 || width > COLUMN_MIN ? width : COLUMN_MIN;
    printf("%s%*s", first ? "" : " ", cell->kind == APP_CELL_TEXT ? -width : width, text);
}

static void row_print(const struct app_cell *cells, size_t count, bool heads)
{
    char text[VALUE_BYTES];
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        if (cells[i].title != NULL) {
            column_print(&cells[i], heads ? cells[i].title : cell_text(&cells[i], text), first);
            first = false;
        }
    }
    putchar('\n');
}

static void record_print(const struct app_cell *cells, size_t count)
{
    char text[VALUE_BYTES];
    for (size_t i = 0; i < count; i++) {
        if (cells[i].title != NULL && !cells[i].absent) {
            printf("%-*s %s\n", RECORD_TITLE, cells[i].title, cell_text(&cells[i], text));
        }
    }
}

static void line_print(const struct app_cell *cells, size_t count)
{
    char text[VALUE_BYTES];
    const char *between = "";
    for (size_t i = 0; i < count; i++) {
        const struct app_cell *cell = &cells[i];
        if (cell->absent || (cell->title == NULL && cell->kind != APP_CELL_TEXT)) {
            continue;
        }
        bool names = cell->title == NULL; /* subject of the line */
        bool named = i > 0 && cells[i - 1].title == NULL;
        printf("%s%s%s%s", names || !named ? between : ": ", names ? "" : cell->title, names ? "" : " ",
               cell_text(cell, text));
        between = names ? " " : ", ";
    }
    putchar('\n');
}

/* Numbers in full: a plot may subtract them. */
static void csv_value(FILE *csv, const struct app_cell *cell)
{
    char text[VALUE_BYTES];
    if (cell->kind == APP_CELL_NUMBER && !cell->absent) {
        fprintf(csv, "%.10g", cell->number);
    } else if (cell->kind == APP_CELL_COUNT) {
        fprintf(csv, "%" PRIu64, cell->count);
    } else {
        fputs(cell_text(cell, text), csv);
    }
}

static void csv_print(FILE *csv, const struct app_cell *cells, size_t count, bool heads)
{
    const char *between = "";
    for (size_t i = 0; i < count; i++) {
        if (cells[i].name == NULL) {
            continue;
        }
        fputs(between, csv);
        between = ",";
        if (heads) {
            fputs(cells[i].name, csv);
        } else {
            csv_value(csv, &cells[i]);
        }
    }
    fputc('\n', csv);
}

static void cells_print(struct app_report *report, const struct app_cell *cells, size_t count)
{
    bool heads = !report->begun;
    report->begun = true;
    app_progress_hide();
    switch (report->form) {
    case APP_REPORT_TABLE:
        if (heads) {
            row_print(cells, count, true);
        }
        row_print(cells, count, false);
        break;
    case APP_REPORT_CSV:
        if (heads) {
            csv_print(report->csv, cells, count, true);
        }
        csv_print(report->csv, cells, count, false);
        break;
    case APP_REPORT_RECORD:
        record_print(cells, count);
        break;
    case APP_REPORT_LINE:
        line_print(cells, count);
        break;
    }
    fflush(stdout);
}

void app_report_part(struct app_report *report, json_t *object, const char *key, const struct app_cell *cells,
                     size_t count)
{
    if (report->json) {
        json_t *part = app_json_new();
        cells_json(part, cells, count);
        app_json_child(object, key, part);
    } else {
        cells_print(report, cells, count);
    }
}

void app_report_cells(struct app_report *report, const struct app_cell *cells, size_t count)
{
    if (report->json) {
        json_t *object = app_json_new();
        cells_json(object, cells, count);
        app_json_emit(object);
    } else {
        cells_print(report, cells, count);
    }
}

json_t *app_report_begin(const struct app_report *report, const struct app_cell *cells, size_t count)
{
    json_t *object = report->json ? app_json_new() : NULL;
    if (object != NULL) {
        cells_json(object, cells, count);
    }
    return object;
}
