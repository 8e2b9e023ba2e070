/* causeway plan compile: plans for the collective calls that `causeway run --record` has seen. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/plan/plan.h"
#include "collectives/compile/compile.h"
#include "control/groups/groups.h"
#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "dataplane/status.h"

enum { TRACES_MAX = 64 };

static const char compile_usage[] = "plan compile TRACE... -o FILE [OPTION...]\n"
                                    "\n"
                                    "Makes plans for the collective calls that recur in the recording of `causeway run "
                                    "--record TRACE`, where a plan is\n"
                                    "expected to be faster, and prints a table. `causeway run --plan FILE` uses them. "
                                    "Several traces are of several runs.";

struct options {
    const char *output;
    uint64_t calls_least;
    uint64_t filters;
    bool all;
    bool json;
};

/* ---- the table ---- */

/* "world", or the context of a communicator that the program has made. */
static const char *comm_text(const struct cw_bundle_comm *comm, char *text, size_t text_bytes)
{
    if (comm->context == 1) {
        return "world";
    }
    snprintf(text, text_bytes, "%llu.%llu", (unsigned long long)(comm->context >> 32),
             (unsigned long long)(comm->context & UINT32_MAX));
    return text;
}

static const char *call_text(const struct cw_compile_row *row, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%s%s", cw_collective_name(row->collective), row->has_rows ? "v" : "");
    return text;
}

static void row_print(const struct cw_compiled *compiled, const struct cw_compile_row *row)
{
    char comm[32], call[32], now[32], then[32];
    bool is_expected = row->then != NULL && row->then_ns > 0;
    printf("%-7s %-15s %10llu %6llu  %-26s %9s  %-26s %9s  %s%s%s\n",
           comm_text(&compiled->bundle->comms[row->comm], comm, sizeof(comm)), call_text(row, call, sizeof(call)),
           (unsigned long long)row->bytes, (unsigned long long)row->calls, row->now,
           plan_time_text(row->now_ns, now, sizeof(now)), row->then != NULL ? row->then : "-",
           is_expected ? plan_time_text(row->then_ns, then, sizeof(then)) : "-", cw_compile_verdict_text(row->verdict),
           row->reason[0] != '\0' ? ": " : "", row->reason);
}

static void row_json(const struct cw_compiled *compiled, const struct cw_compile_row *row)
{
    char comm[32], call[32];
    json_t *line = app_json_new();
    app_json_text(line, "communicator", comm_text(&compiled->bundle->comms[row->comm], comm, sizeof(comm)));
    app_json_text(line, "call", call_text(row, call, sizeof(call)));
    app_json_count(line, "root", row->root);
    app_json_count(line, "bytes", row->bytes);
    app_json_count(line, "calls", row->calls);
    app_json_text(line, "now", row->now);
    app_json_number(line, "now_ns", row->now_ns);
    if (row->then != NULL) {
        app_json_text(line, "then", row->then);
    }
    if (row->then_ns > 0) {
        app_json_number(line, "then_ns", row->then_ns);
    }
    app_json_flag(line, "planned", row->verdict == CW_COMPILE_SERVED);
    app_json_text(line, "verdict", cw_compile_verdict_text(row->verdict));
    if (row->reason[0] != '\0') {
        app_json_text(line, "reason", row->reason);
    }
    app_json_emit(line);
}

static void groups_print(const struct cw_compiled *compiled, bool json)
{
    for (uint32_t i = 0; i < compiled->group_count; i++) {
        const struct cw_compile_group *group = &compiled->groups[i];
        const struct cw_bundle_comm *comm = &compiled->bundle->comms[group->comm];
        char text[32];
        if (json) {
            json_t *line = app_json_new();
            app_json_text(line, "group", comm_text(comm, text, sizeof(text)));
            app_json_count(line, "ranks", comm->size);
            app_json_count(line, "calls", group->uses);
            app_json_flag(line, "at_once", group->at_once);
            app_json_emit(line);
        } else {
            printf("group of %s, %u ranks: %llu calls multicast; opened once, %s\n",
                   comm_text(comm, text, sizeof(text)), comm->size, (unsigned long long)group->uses,
                   group->at_once ? "with the communicator" : "with its first use: others need the addresses more");
        }
    }
}

/* Which control the plan does without. */
static void control_print(const struct cw_compiled *compiled)
{
    uint64_t served = 0, exchanges = 0, agreements = 0;
    double now_ns = 0, then_ns = 0;
    char now[32], then[32];
    for (uint32_t i = 0; i < compiled->row_count; i++) {
        const struct cw_compile_row *row = &compiled->rows[i];
        if (row->verdict == CW_COMPILE_SERVED) {
            served += row->calls;
            exchanges += strncmp(row->now, "counts + ", 9) == 0 ? row->calls : 0;
            agreements += row->has_rows ? row->calls : 0;
            now_ns += row->now_ns * (double)row->calls;
            then_ns += (row->then_ns > 0 ? row->then_ns : row->now_ns) * (double)row->calls;
        }
    }
    printf("%u plans for %llu of %llu calls: %s recorded, %s expected; %llu exchanges of counts eliminated, %llu "
           "agreements of a word a rank added\n",
           compiled->bundle->plan_count, (unsigned long long)served, (unsigned long long)compiled->calls,
           plan_time_text(now_ns, now, sizeof(now)), plan_time_text(then_ns, then, sizeof(then)),
           (unsigned long long)exchanges, (unsigned long long)agreements);
    if (compiled->unjoined > 0) {
        printf("%llu calls are not in the trace at all of their ranks\n", (unsigned long long)compiled->unjoined);
    }
}

static void compiled_print(const struct cw_compiled *compiled, bool json)
{
    if (!json) {
        printf("%-7s %-15s %10s %6s  %-26s %9s  %-26s %9s\n", "of", "call", "bytes", "calls", "now", "takes", "plan",
               "expected");
    }
    for (uint32_t i = 0; i < compiled->row_count; i++) {
        if (json) {
            row_json(compiled, &compiled->rows[i]);
        } else {
            row_print(compiled, &compiled->rows[i]);
        }
    }
    groups_print(compiled, json);
    if (!json) {
        control_print(compiled);
    }
}

/* ---- files ---- */

static struct cw_recording *trace_read(const char *path, int *exit_code)
{
    size_t length;
    char error[400];
    struct cw_recording *recording = NULL;
    char *bytes = plan_read_bytes(path, &length);
    *exit_code = APP_EXIT_USAGE;
    if (bytes == NULL) {
        return NULL;
    }
    int status = cw_recording_decode(bytes, length, &recording, error, sizeof(error));
    free(bytes);
    if (status != CW_OK) {
        app_error(error, path, "`causeway run --record` makes one");
        *exit_code = status == CW_ERROR_MEMORY ? APP_EXIT_MACHINE : APP_EXIT_USAGE;
        return NULL;
    }
    return recording;
}

/* The measurements by which MPI would choose. False: there is a file, but it is invalid; reported. */
static bool measured_read(struct cw_measured **measured)
{
    struct cw_settings_place place;
    size_t length;
    char error[400];
    *measured = NULL;
    cw_settings_plogp(&place);
    char *text = place.path[0] == '\0' ? NULL : cw_settings_read(place.path, CW_MEASURED_TEXT_MAX, &length);
    bool is_absent = place.path[0] == '\0' || errno == ENOENT || errno == ENOTDIR;
    if (text == NULL && (place.is_wanted || !is_absent)) {
        app_error("the measured parameters cannot be read", place.path, strerror(errno));
        return !place.is_wanted; /* else MPI does without, too */
    }
    if (text != NULL && cw_measured_decode(text, length, measured, error, sizeof(error)) != CW_OK) {
        app_error(error, place.path, "`causeway plogp` makes a new one");
        free(text);
        return !place.is_wanted;
    }
    free(text);
    return true;
}

static int bundle_write(const struct cw_bundle *bundle, const char *path)
{
    void *bytes;
    size_t length;
    int status = cw_bundle_encode(bundle, &bytes, &length);
    if (status != CW_OK) {
        return app_error_status(status, "the plans cannot be written", path);
    }
    bool written = cw_settings_write(path, bytes, length);
    free(bytes);
    if (!written) {
        app_error("the file cannot be written", path, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

static int compile(const struct options *options, const struct cw_recording *const *recordings, uint32_t count)
{
    struct cw_measured *measured;
    struct cw_compiled compiled;
    char error[400] = "";
    if (!measured_read(&measured)) {
        return APP_EXIT_USAGE;
    }
    const struct cw_compile_request request = {
        .recordings = recordings,
        .recording_count = count,
        .measured = measured,
        .calls_least = options->calls_least,
        .all = options->all,
        .filter_budget = (uint32_t)options->filters,
    };
    int status = cw_compile(&request, &compiled, error, sizeof(error));
    cw_measured_destroy(measured);
    if (status != CW_OK && error[0] != '\0') {
        app_error(error, NULL, "compile traces of one program, with as many ranks");
        return APP_EXIT_USAGE;
    }
    if (status != CW_OK) {
        return app_error_status(status, "the trace cannot be compiled", NULL);
    }
    int code = bundle_write(compiled.bundle, options->output);
    if (code == APP_EXIT_SUCCESS) {
        compiled_print(&compiled, options->json);
    }
    cw_compile_dispose(&compiled);
    return code;
}

int plan_compile_main(int argc, char **argv)
{
    struct options options = {.calls_least = 2, .filters = CW_GROUPS_FILTERS};
    const char *filters = cw_setting(CW_SETTING_MULTICAST_FILTERS);
    const struct cw_recording *recordings[TRACES_MAX];
    uint32_t count = 0;
    int code;
    const struct app_option rows[] = {
        {"output", "FILE", "the file of plans to write", APP_OPTION_TEXT, &options.output, 0, 0, NULL},
        {"least", "N", "how often a call comes to be planned for (2)", APP_OPTION_COUNT, &options.calls_least, 1, 0,
         NULL},
        {"all", NULL, "plans for all calls that recur, faster or not", APP_OPTION_FLAG, &options.all, 0, 0, NULL},
        {"filters", "N", "multicast addresses that a port lets in (CAUSEWAY_MULTICAST_FILTERS, or 20)",
         APP_OPTION_COUNT, &options.filters, CW_GROUPS_FILTERS_LEAST, UINT32_MAX, NULL},
        {"json", NULL, "a JSON object a call", APP_OPTION_FLAG, &options.json, 0, 0, NULL},
        {0},
    };
    if (filters != NULL && !app_parse_count(filters, &options.filters)) {
        app_error("bad value", "CAUSEWAY_MULTICAST_FILTERS", "a number is wanted");
        return APP_EXIT_USAGE;
    }
    int first = app_options_parse(compile_usage, rows, TRACES_MAX, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    if (first == argc || options.output == NULL || strcmp(options.output, "-") == 0) {
        app_error(first == argc ? "nothing to compile" : "nowhere to write to",
                  first == argc ? "the trace is missing" : "-o FILE is missing", "causeway plan compile TRACE -o FILE");
        return APP_EXIT_USAGE;
    }
    struct cw_recording *read = NULL;
    for (int i = first; i < argc && (read = trace_read(argv[i], &code)) != NULL; i++) {
        recordings[count++] = read;
    }
    if (read != NULL) {
        code = compile(&options, recordings, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        cw_recording_destroy((struct cw_recording *)recordings[i]);
    }
    return code;
}
