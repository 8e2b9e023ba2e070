/* Apps: shared by the subcommands of `causeway`: exit codes, errors, options, units, JSON lines.
 *
 * Invariants
 *  - An error is one line on stderr: the problem, its place, the fix. Results go to stdout.
 *  - Every quantity on the command line carries its unit and is turned into bytes, bits per second, nanoseconds or a
 *    fraction once, here; keys of JSON objects carry theirs as a suffix (latency_ns, rate_bps).
 *
 * Order of calls
 *    main (causeway.c) finds the command in its table, calls app_command_set and then the command's function with
 *    argv[0] being the command's name; that calls app_options_parse, does its work and returns one of enum app_exit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

enum app_exit {
    APP_EXIT_SUCCESS = 0,
    APP_EXIT_FAILURE = 1,  /* the command ran and found a failure: a failing seed, a damaged file */
    APP_EXIT_USAGE = 2,    /* wrong usage or bad input */
    APP_EXIT_MACHINE = 3,  /* the machine lacks something: a device, a privilege, memory */
    APP_EXIT_INTERNAL = 4, /* a bug */
};

/* The subcommands: one file each, all as main: argv[0] is the command's name; they return one of enum app_exit. */
int agent_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int demo_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int node_main(int argc, char **argv);
int offload_main(int argc, char **argv);
int draw_main(int argc, char **argv);
int gateway_main(int argc, char **argv);
int paper_main(int argc, char **argv);
int plan_main(int argc, char **argv);
int plogp_main(int argc, char **argv);
int run_main(int argc, char **argv);
int switch_main(int argc, char **argv);
int top_main(int argc, char **argv);

/* ---- errors ---- */

/* Names the command that errors are reported for, "switch"; `name` is kept, not copied. Called by main only. */
void app_command_set(const char *name);

/* Prints "causeway switch: WHAT: WHERE (TODO)". `where` and `todo` may be NULL. Line ends inside the texts become
 * spaces. */
void app_error(const char *what, const char *where, const char *todo);

/* The same for a code of enum cw_status; returns the exit code that fits it. `where` may be NULL. */
int app_error_status(int status, const char *what, const char *where);

/* ---- tables ---- */

/* Opens the file of a table that an option requests; `path` NULL: not requested, and *file is NULL. `what` names it:
 * "the table". False: an error has been reported. */
bool app_csv_open(const char *what, const char *path, FILE **file);
/* NULL is allowed. False: not all could be written, which has been reported. */
bool app_csv_close(const char *what, const char *path, FILE *file);

/* ---- options ---- */

enum app_option_kind {
    APP_OPTION_FLAG,     /* no argument; value: bool */
    APP_OPTION_TEXT,     /* value: const char *, points into argv */
    APP_OPTION_COUNT,    /* value: uint64_t, a plain number between low and high; a high of 0: no bound */
    APP_OPTION_BYTES,    /* value: uint64_t, see control/settings/units.h */
    APP_OPTION_RATE,     /* value: uint64_t, bits per second */
    APP_OPTION_DURATION, /* value: uint64_t, nanoseconds */
    APP_OPTION_PERCENT,  /* value: double, a fraction */
    APP_OPTION_SIZES,    /* value: struct app_list, of bytes, each between low and high */
    APP_OPTION_EACH,     /* given any number of times: calls take(value, text); value: any context */
};

enum { APP_LIST_MAX = 32 };

/* Numbers with commas between them, one at the least. */
struct app_list {
    uint64_t values[APP_LIST_MAX];
    size_t count;
    size_t count_max; /* 0: APP_LIST_MAX */
    bool rising;      /* each one above the one before */
};

struct app_option {
    const char *name;     /* "rate" for --rate */
    const char *argument; /* how help names the argument, "RATE"; NULL for a flag */
    const char *help;     /* one line; says the default */
    enum app_option_kind kind;
    void *value;   /* keeps its content, the default, if the option is not given */
    uint64_t low;  /* APP_OPTION_COUNT, BYTES, RATE, DURATION: smallest and */
    uint64_t high; /* largest value; a high of 0: no bound */
    int (*parse)(void *context,
                 const char *text); /* APP_OPTION_EACH: 0, or reports an error and returns an exit code */
};

/* Rows by the type of their value; low and high as above. */
#define OPTION_ROW(...) \
    {                   \
        __VA_ARGS__     \
    }
#define OPTION_FLAG(name, help, value)             OPTION_ROW(name, NULL, help, APP_OPTION_FLAG, value, 0, 0, NULL)
#define OPTION_JSON(what, value)                   OPTION_FLAG("json", "one JSON object" what, value)
#define OPTION_TEXT(name, argument, help, value)   OPTION_ROW(name, argument, help, APP_OPTION_TEXT, value, 0, 0, NULL)
#define OPTION_COUNT(name, help, value, low, high) OPTION_ROW(name, "N", help, APP_OPTION_COUNT, value, low, high, NULL)
#define OPTION_BYTES(name, help, value, low, high) \
    OPTION_ROW(name, "BYTES", help, APP_OPTION_BYTES, value, low, high, NULL)
#define OPTION_RATE(name, help, value, low) OPTION_ROW(name, "RATE", help, APP_OPTION_RATE, value, low, 0, NULL)
#define OPTION_TIME(name, help, value, low, high) \
    OPTION_ROW(name, "TIME", help, APP_OPTION_DURATION, value, low, high, NULL)
#define OPTION_SIZES(name, help, value, low, high) \
    OPTION_ROW(name, "LIST", help, APP_OPTION_SIZES, value, low, high, NULL)
#define OPTION_EACH(name, argument, help, value, take) \
    OPTION_ROW(name, argument, help, APP_OPTION_EACH, value, 0, 0, take)

enum { APP_OPTIONS_MAX = 48 };

/* Parses --name ARGUMENT and --name=ARGUMENT by `options`, whose last row has name NULL; --output is -o, too. `usage`
 * is the first part of the help: the synopsis, an empty line, the description. apps/pages/pages.py makes man pages and
 * shell completion of the output: an argument written yes|no has these values. Returns the index of the first argument
 * that is no option (== argc: none), or -1 when the command has ended, with *exit_code (--help was printed, or an error
 * was reported). A command without plain arguments passes operands_max 0 and has them rejected here. */
int app_options_parse(const char *usage, const struct app_option *options, int operands_max, int argc, char **argv,
                      int *exit_code);

/* ---- units (rates, durations, bytes, shares: control/settings/units.h): each returns false, and leaves the output as
 * it was, if the text is not exactly one such quantity ---- */

/* A plain decimal (or 0x…) number. */
bool app_parse_count(const char *text, uint64_t *count);

/* Numbers with commas between them, each as `parse` reads it, at most list->count_max: 8,1K,64K. */
bool app_parse_list(const char *text, bool (*parse)(const char *text, uint64_t *value), struct app_list *list);

/* 02:00:5e:00:00:01 */
bool app_parse_mac(const char *text, uint8_t mac[6]);

/* ---- files ---- */

/* The first bytes of a file, `most` at most, and how many there are; to be freed. NULL: errno says why. */
uint8_t *app_file_read(const char *path, uint64_t most, uint64_t *bytes);

/* ---- JSON: one object a line, keys in the order they were set ---- */

/* An empty object; ends the process if memory is gone. */
json_t *app_json_new(void);

void app_json_text(json_t *object, const char *key, const char *text);
void app_json_flag(json_t *object, const char *key, bool flag);
void app_json_count(json_t *object, const char *key, uint64_t count);

/* A measured number, with six significant digits; one that is not finite (a ratio to nothing) becomes null. */
void app_json_number(json_t *object, const char *key, double number);

/* Puts `child` under `key`; the object owns it from then on. */
void app_json_child(json_t *object, const char *key, json_t *child);

/* Prints the object as one line on stdout, flushes and frees it. */
void app_json_emit(json_t *object);
