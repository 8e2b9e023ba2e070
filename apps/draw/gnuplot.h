/* gnuplot: pictures, by gnuplot as a process of its own. Whole, or not at all: what was in a file before stays if
 * nothing can be drawn. */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct gnuplot {
    const char *path;
    FILE *script; /* to be written; what it draws goes to the path */
};

/* Whether the file's name ends with what can be drawn: .svg or .png. APP_EXIT_SUCCESS, or APP_EXIT_USAGE after
 * reporting. */
int gnuplot_check(const char *path);

/* Begins a script with the terminal for the file's ending, of that size in points of the picture. APP_EXIT_SUCCESS, or
 * an exit code after reporting; otherwise gnuplot_end is due. `path` is kept. */
int gnuplot_begin(struct gnuplot *plot, const char *path, uint32_t width, uint32_t height);

/* Writes a text as a string of gnuplot's, in quotes. Control characters become spaces. */
void gnuplot_text(FILE *script, const char *text);

/* Runs the script and writes the file. APP_EXIT_SUCCESS, or an exit code after reporting. */
int gnuplot_end(struct gnuplot *plot);
