#include "apps/cli/cli.h"

#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/settings/units.h"

/* getopt_long returns row + FIRST_ROW, clear of its own '?' and ':'. */
enum { FIRST_ROW = 256, HELP_COLUMN = 28 };

/* Options that have a letter, the same in every command. */
static const struct {
    const char *name;
    char letter;
} letters[] = {{"output", 'o'}};

static char letter_of(const char *name)
{
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        if (strcmp(letters[i].name, name) == 0) {
            return letters[i].letter;
        }
    }
    return 0;
}

/* The layout that apps/pages/pages.py reads: the text starts at HELP_COLUMN, on a new line if the option is long. */
static void row_print(const char *left, const char *text)
{
    if (strlen(left) > HELP_COLUMN) {
        printf("  %s\n", left);
        left = "";
    }
    printf("  %-*s %s\n", HELP_COLUMN, left, text);
}

static void help_print(const char *usage, const struct app_option *options)
{
    printf("usage: causeway %s\n\noptions:\n", usage);
    for (const struct app_option *option = options; option->name; option++) {
        char short_form[] = {'-', letter_of(option->name), ',', ' ', 0};
        char left[96];

        snprintf(left, sizeof(left), "%s--%s%s%s", short_form[1] ? short_form : "", option->name,
                 option->argument ? " " : "", option->argument ? option->argument : "");
        row_print(left, option->help);
    }
    row_print("-h, --help", "print this help");
}

/* Reports what is wrong with an option's argument. */
static int argument_reject(const struct app_option *option, const char *text, const char *todo)
{
    char where[256];

    snprintf(where, sizeof(where), "--%s %s", option->name, text);
    app_error("bad value", where, todo);
    return APP_EXIT_USAGE;
}

static int range_check(const struct app_option *option, const char *text, uint64_t value)
{
    static const char *const unit_names[] = {
        [APP_OPTION_BYTES] = " bytes", [APP_OPTION_RATE] = " bits per second", [APP_OPTION_DURATION] = " ns"};
    const char *unit = option->kind < sizeof(unit_names) / sizeof(unit_names[0]) && unit_names[option->kind]
                           ? unit_names[option->kind]
                           : "";
    char todo[128];

    if (value >= option->low && (option->high == 0 || value <= option->high)) {
        *(uint64_t *)option->value = value;
        return APP_EXIT_SUCCESS;
    }
    if (option->high == 0) {
        snprintf(todo, sizeof(todo), "at least %" PRIu64 "%s", option->low, unit);
    } else {
        snprintf(todo, sizeof(todo), "between %" PRIu64 " and %" PRIu64 "%s", option->low, option->high, unit);
    }
    return argument_reject(option, text, todo);
}

/* Takes all of a list, or nothing. */
static int list_parse(const struct app_option *option, const char *text)
{
    struct app_list *list = option->value;
    struct app_list taken = {.count_max = list->count_max > 0 ? list->count_max : APP_LIST_MAX, .rising = list->rising};
    bool good = app_parse_list(text, cw_units_bytes, &taken);
    for (size_t i = 0; i < taken.count && good; i++) {
        good = taken.values[i] >= option->low && (option->high == 0 || taken.values[i] <= option->high) &&
               (i == 0 || !taken.rising || taken.values[i] > taken.values[i - 1]);
    }
    if (!good) {
        char range[64] = "", todo[160];
        if (option->high > 0) {
            snprintf(range, sizeof(range), " from %" PRIu64 " to %" PRIu64, option->low, option->high);
        }
        snprintf(todo, sizeof(todo), "up to %zu %snumbers like 8,1K%s are wanted, with commas between", taken.count_max,
                 taken.rising ? "rising " : "", range);
        return argument_reject(option, text, todo);
    }
    *list = taken;
    return APP_EXIT_SUCCESS;
}

static int option_parse(const struct app_option *option, const char *text)
{
    uint64_t value = 0;

    switch (option->kind) {
    case APP_OPTION_FLAG:
        *(bool *)option->value = true;
        return APP_EXIT_SUCCESS;
    case APP_OPTION_TEXT:
        *(const char **)option->value = text;
        return APP_EXIT_SUCCESS;
    case APP_OPTION_COUNT:
        return app_parse_count(text, &value) ? range_check(option, text, value)
                                             : argument_reject(option, text, "a number is wanted");
    case APP_OPTION_BYTES:
        return cw_units_bytes(text, &value) ? range_check(option, text, value)
                                            : argument_reject(option, text, "a size like 1500, 64K or 10MB is wanted");
    case APP_OPTION_RATE:
        return cw_units_rate(text, &value) ? range_check(option, text, value)
                                           : argument_reject(option, text, "a rate like 10Gbps or 64kbps is wanted");
    case APP_OPTION_DURATION:
        return cw_units_duration(text, &value)
                   ? range_check(option, text, value)
                   : argument_reject(option, text, "a duration with its unit, like 20us, 1.5ms or 3s, is wanted");
    case APP_OPTION_PERCENT:
        return cw_units_percent(text, option->value)
                   ? APP_EXIT_SUCCESS
                   : argument_reject(option, text, "a percentage like 1% or 0.1% is wanted");
    case APP_OPTION_SIZES:
        return list_parse(option, text);
    case APP_OPTION_EACH:
        return option->parse(option->value, text);
    }
    return APP_EXIT_INTERNAL;
}

enum { LETTERS_BYTES = 4 + 2 * sizeof(letters) };

/* The table for getopt_long(3): a row for each option, and --help. */
static void rows_make(const struct app_option *options, struct option rows[APP_OPTIONS_MAX + 2],
                      char short_forms[LETTERS_BYTES])
{
    int count = 0;
    strcpy(short_forms, ":h");
    for (const struct app_option *option = options; option->name; option++) {
        int has_argument = option->kind == APP_OPTION_FLAG ? no_argument : required_argument;
        int row = FIRST_ROW + (int)(option - options);
        assert(option - options < APP_OPTIONS_MAX);
        rows[count++] = (struct option){option->name, has_argument, NULL, row};
        if (letter_of(option->name)) {
            strcat(short_forms, (char[]){letter_of(option->name), ':', 0});
        }
    }
    rows[count++] = (struct option){"help", no_argument, NULL, 'h'};
    rows[count] = (struct option){NULL, 0, NULL, 0};
}

int app_options_parse(const char *usage, const struct app_option *options, int operands_max, int argc, char **argv,
                      int *exit_code)
{
    struct option rows[APP_OPTIONS_MAX + 2];
    char short_forms[LETTERS_BYTES];
    int found;

    rows_make(options, rows, short_forms);
    optind = 0; /* GNU: starts afresh, even after earlier calls of getopt */
    opterr = 0;
    while ((found = getopt_long(argc, argv, short_forms, rows, NULL)) != -1) {
        if (found == 'h') {
            help_print(usage, options);
            *exit_code = APP_EXIT_SUCCESS;
            return -1;
        }
        if (found == ':' || found == '?') {
            app_error(found == ':' ? "an argument is missing" : "unknown option", argv[optind - 1],
                      "--help lists the options");
            *exit_code = APP_EXIT_USAGE;
            return -1;
        }
        const struct app_option *option = options;
        while (found < FIRST_ROW ? letter_of(option->name) != found : option - options != found - FIRST_ROW) {
            option++;
        }
        *exit_code = option_parse(option, optarg);
        if (*exit_code != APP_EXIT_SUCCESS) {
            return -1;
        }
    }
    if (argc - optind > operands_max) {
        app_error("unexpected argument", argv[optind + operands_max], "--help shows the usage");
        *exit_code = APP_EXIT_USAGE;
        return -1;
    }
    return optind;
}
