#include "apps/draw/gnuplot.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/cli.h"

enum { COPY_BYTES = 1 << 16, NOT_FOUND = 127 };

static bool ends_with(const char *path, const char *ending)
{
    size_t length = strlen(path);
    return length > strlen(ending) && strcasecmp(path + length - strlen(ending), ending) == 0;
}

int gnuplot_check(const char *path)
{
    if (!ends_with(path, ".svg") && !ends_with(path, ".png")) {
        app_error("no such kind of picture", path, "the name is to end with .svg or .png");
        return APP_EXIT_USAGE;
    }
    return APP_EXIT_SUCCESS;
}

int gnuplot_begin(struct gnuplot *plot, const char *path, uint32_t width, uint32_t height)
{
    int code = gnuplot_check(path);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    *plot = (struct gnuplot){.path = path, .script = tmpfile()};
    if (plot->script == NULL) {
        app_error("cannot make a file for gnuplot's script", "tmpfile", strerror(errno));
        return APP_EXIT_MACHINE;
    }
    if (ends_with(path, ".svg")) {
        fprintf(plot->script, "set terminal svg size %u,%u font 'sans-serif,13' background 'white' noenhanced\n", width,
                height);
    } else {
        fprintf(plot->script, "set terminal pngcairo size %u,%u font 'Sans,10' background 'white' noenhanced\n", width,
                height);
    }
    return APP_EXIT_SUCCESS;
}

void gnuplot_text(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputc('\'', script);
        }
        fputc((unsigned char)*text < ' ' ? ' ' : *text, script);
    }
    fputc('\'', script);
}

/* gnuplot's exit code; -1: it could not be started, or was killed. */
static int script_run(FILE *script, FILE *picture)
{
    int status = 0;
    fflush(stdout);
    if (ferror(script) || fflush(script) != 0 || lseek(fileno(script), 0, SEEK_SET) != 0) {
        return -1;
    }
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(script), STDIN_FILENO);
        dup2(fileno(picture), STDOUT_FILENO);
        execlp("gnuplot", "gnuplot", "-", (char *)NULL);
        _exit(errno == ENOENT ? NOT_FOUND : 1);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int picture_keep(FILE *picture, const char *path)
{
    char bytes[COPY_BYTES];
    size_t count;
    rewind(picture);
    FILE *file = fopen(path, "wbe");
    if (file == NULL) {
        app_error("the picture cannot be written there", path, strerror(errno));
        return APP_EXIT_USAGE;
    }
    bool right = true;
    while (right && (count = fread(bytes, 1, sizeof(bytes), picture)) > 0) {
        right = fwrite(bytes, 1, count, file) == count;
    }
    if (fclose(file) != 0 || !right) {
        app_error("the picture cannot be written", path, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

static int script_draw(const struct gnuplot *plot, FILE *picture)
{
    int ended = script_run(plot->script, picture);
    if (ended == NOT_FOUND) {
        app_error("gnuplot is missing", plot->path, "apt-get install gnuplot-nox");
        return APP_EXIT_MACHINE;
    }
    if (ended != 0) {
        app_error("gnuplot has failed", plot->path, "its own words, if there are any, are above");
        return APP_EXIT_FAILURE;
    }
    return picture_keep(picture, plot->path);
}

int gnuplot_end(struct gnuplot *plot)
{
    FILE *picture = tmpfile();
    int code = APP_EXIT_MACHINE;
    if (picture != NULL) {
        code = script_draw(plot, picture);
        fclose(picture);
    } else {
        app_error("cannot make a file for the picture", "tmpfile", strerror(errno));
    }
    fclose(plot->script);
    return code;
}
