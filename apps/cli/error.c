#include "apps/cli/cli.h"
#include "apps/cli/progress.h"

#include <stdio.h>

#include "dataplane/status.h"

/* Only for messages; set once by main before any command runs. */
static const char *command_name;

void app_command_set(const char *name)
{
    command_name = name;
}

enum { LINE_BYTES = 2048 /* longer ones are cut */ };

/* A line that grows; line ends inside the texts become spaces. */
struct line {
    size_t used;
    char text[LINE_BYTES];
};

static void add(struct line *line, const char *text)
{
    for (; *text != '\0' && line->used < LINE_BYTES - 2; text++) {
        line->text[line->used++] = *text == '\n' || *text == '\r' ? ' ' : *text;
    }
}

void app_error(const char *what, const char *where, const char *todo)
{
    struct line line = {0};
    add(&line, "causeway");
    if (command_name != NULL) {
        add(&line, " ");
        add(&line, command_name);
    }
    add(&line, ": ");
    add(&line, what);
    if (where != NULL) {
        add(&line, ": ");
        add(&line, where);
    }
    if (todo != NULL) {
        add(&line, " (");
        add(&line, todo);
        add(&line, ")");
    }
    line.text[line.used++] = '\n';
    app_progress_hide();
    fflush(stdout);                          /* so that the two streams keep their order in a log */
    fwrite(line.text, 1, line.used, stderr); /* at once: another process may report to the same stream */
}

int app_error_status(int status, const char *what, const char *where)
{
    static const struct {
        int status;
        enum app_exit exit_code;
        const char *todo;
    } table[] = {
        {CW_ERROR_ARGUMENT, APP_EXIT_USAGE, "see `causeway help` for the ranges"},
        {CW_ERROR_MEMORY, APP_EXIT_MACHINE, "free memory, or raise `ulimit -l` and `ulimit -v`"},
        {CW_ERROR_LIMIT, APP_EXIT_MACHINE, "ask for less at once"},
        {CW_ERROR_NOT_FOUND, APP_EXIT_MACHINE, "`causeway doctor` lists what is there"},
        {CW_ERROR_PERMISSION, APP_EXIT_MACHINE, "run as root or grant the capability; `causeway doctor` says which"},
        {CW_ERROR_UNSUPPORTED, APP_EXIT_MACHINE, "`causeway doctor` reports the abilities of this build and machine"},
        {CW_ERROR_SYSTEM, APP_EXIT_MACHINE, "`causeway doctor` looks for the cause"},
        {CW_ERROR_PEER_FAILED, APP_EXIT_FAILURE, "is the other process running, and does the link lose everything?"},
        {CW_ERROR_PEER_RESTARTED, APP_EXIT_FAILURE, "start both sides again"},
        {CW_ERROR_CLOSED, APP_EXIT_FAILURE, "the other side has ended"},
        {CW_ERROR_TIMEOUT, APP_EXIT_FAILURE, "is the other process running?"},
        {CW_ERROR_BUSY, APP_EXIT_MACHINE, "another process may hold it: end that one first"},
    };
    char text[512];

    snprintf(text, sizeof(text), "%s%s%s", where ? where : "", where ? ": " : "", cw_status_text(status));
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].status == status) {
            app_error(what, text, table[i].todo);
            return (int)table[i].exit_code;
        }
    }
    app_error(what, text, "this is a bug: please report it");
    return APP_EXIT_INTERNAL;
}
