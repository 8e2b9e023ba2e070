/* causeway plogp: measures what collectives are chosen by. */
#include "apps/plogp/plogp.h"
#include "apps/cli/progress.h"
#include "apps/plogp/noise.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/status.h"

static const char usage[] =
    "plogp [-n RANKS | --ranks LIST] [--path shared|memif|all] [--time TIME] [-o FILE] [--json]\n"
    "       causeway plogp --hosts LIST [--path wire|rdma] [--launcher COMMAND] [--time TIME] [-o FILE] [--json]\n"
    "\n"
    "Measures the parameters of each kind of path (latency, gap and overheads by size, concurrency, contention) and "
    "how\n"
    "long each algorithm of each collective takes, and writes a small file that MPI chooses its algorithms by. Of a "
    "file that\n"
    "is there already the paths that are not measured are kept. Nothing else should be running: what others make noise "
    "of\n"
    "is measured again, and refused after three times (exit code 1).\n"
    "Hosts are reached as `causeway run --hosts` reaches them, by what CAUSEWAY_TRANSPORT and "
    "CAUSEWAY_RDMA "
    "say.";

static const struct app_list tested_sizes = {.values = {8, 64, 512, 4096, 16384, 32768, 131072, 262144, 1048576},
                                             .count = 9};
#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

enum { NOISY_ROUNDS = 3 };

/* Whether a path is among the requested ones. */
static bool path_is_requested(const struct plogp_options *options, enum cw_measured_path path)
{
    if (options->hosts != NULL) {
        return path == (strcmp(options->path, "rdma") == 0 ? CW_MEASURED_RDMA : CW_MEASURED_WIRE);
    }
    return path != CW_MEASURED_RDMA && (strcmp(options->path, "all") == 0 ||
                                        (strcmp(options->path, "shared") == 0) == (path == CW_MEASURED_SHARED));
}

/* Says on a terminal that the job of ranks[index] on a path begins. */
static void progress_report(const struct plogp_options *options, enum cw_measured_path path, uint32_t index)
{
    uint64_t done_ns = 0, all_ns = 0;
    char step[48];
    for (uint32_t i = 0; i < CW_MEASURED_PATHS * options->rank_count; i++) {
        enum cw_measured_path other = i / options->rank_count;
        if (i == path * options->rank_count + index) {
            done_ns = all_ns;
        }
        if (path_is_requested(options, other)) {
            all_ns += plogp_time_share(options, other, options->ranks[i % options->rank_count]);
        }
    }
    snprintf(step, sizeof(step), "%s, %" PRIu32 " ranks", cw_measured_path_name(path), options->ranks[index]);
    app_progress_step(done_ns / NS_PER_MS, all_ns / NS_PER_MS, step);
}

/* Reads a file of measured parameters; an exit code, with the reason reported. */
static int file_read(const char *path, struct cw_measured **measured)
{
    char error[400];
    size_t length;
    char *text = cw_settings_read(path, CW_MEASURED_TEXT_MAX, &length);
    if (text == NULL) {
        app_error("the file of measured parameters cannot be read", path, strerror(errno));
        return APP_EXIT_USAGE;
    }
    int status = cw_measured_decode(text, length, measured, error, sizeof(error));
    free(text);
    if (status != CW_OK) {
        app_error("the file of measured parameters cannot be understood", path, error);
        return status == CW_ERROR_MEMORY ? APP_EXIT_MACHINE : APP_EXIT_USAGE;
    }
    return APP_EXIT_SUCCESS;
}

static void ranks_add(struct plogp_options *options, uint64_t ranks)
{
    if (options->rank_count < PLOGP_RANKS_MAX) {
        options->ranks[options->rank_count++] = (uint32_t)ranks;
    }
}

/* Up to `most`: powers of two and the numbers before them, as algorithms distinguish these, and `most` itself. */
static void ranks_up_to(struct plogp_options *options, uint32_t most)
{
    for (uint32_t power = 2; power <= most; power *= 2) {
        if (power > 2) {
            ranks_add(options, power - 1);
        }
        ranks_add(options, power);
    }
    if (options->ranks[options->rank_count - 1] != most) {
        ranks_add(options, most);
    }
}

/* As plain numbers, which plogp_measure reads. */
static void sizes_finish(struct plogp_options *options, const struct app_list *asked)
{
    static char plain[APP_LIST_MAX * 24];
    const struct app_list *sizes = asked->count > 0 ? asked : &tested_sizes;
    for (size_t i = 0, used = 0; i < sizes->count; i++) {
        used += (size_t)snprintf(plain + used, sizeof(plain) - used, "%s%" PRIu64, i == 0 ? "" : ",", sizes->values[i]);
    }
    options->sizes = plain;
}

/* 0: they are no list of different hosts without slots. */
static uint32_t hosts_count(const char *hosts)
{
    uint32_t count = 0;
    for (const char *host = hosts; host != NULL; host = strchr(host, ',') != NULL ? strchr(host, ',') + 1 : NULL) {
        size_t length = strcspn(host, ",");
        for (const char *other = hosts; other < host; other = strchr(other, ',') + 1) {
            if (strcspn(other, ",") == length && strncmp(other, host, length) == 0) {
                return 0;
            }
        }
        if (length == 0 || memchr(host, ':', length) != NULL) {
            return 0;
        }
        count++;
    }
    return count;
}

/* A rank on each host: with more, the path between first and last rank need not be the wire. */
static bool hosts_suffice(const struct plogp_options *options)
{
    for (uint32_t i = 0; options->hosts != NULL && i < options->rank_count; i++) {
        if (options->ranks[i] > hosts_count(options->hosts)) {
            app_error("more ranks than hosts", options->hosts, "each host has one rank of these jobs");
            return false;
        }
    }
    return true;
}

static bool options_finish(struct plogp_options *options, const struct app_list *ranks, const struct app_list *sizes)
{
    uint32_t most = options->hosts != NULL ? hosts_count(options->hosts) : 8;
    bool is_between = strcmp(options->path, "wire") == 0 || strcmp(options->path, "rdma") == 0;
    if (options->hosts != NULL && strcmp(options->path, "all") != 0 && !is_between) {
        app_error("hosts have no such path between them", options->path, "--path wire or rdma goes with --hosts");
        return false;
    }
    if (options->hosts == NULL && is_between) {
        app_error("no hosts", options->path, "--path wire and rdma are between those of --hosts");
        return false;
    }
    if (options->hosts != NULL && hosts_count(options->hosts) < 2) {
        app_error("no list of hosts", options->hosts,
                  "two or more are wanted, all different, without slots, with commas between them; each gets one rank");
        return false;
    }
    for (size_t i = 0; i < ranks->count; i++) {
        ranks_add(options, ranks->values[i]);
    }
    if (ranks->count == 0) {
        ranks_up_to(options, most);
    }
    sizes_finish(options, sizes);
    if (!hosts_suffice(options)) {
        return false;
    }
    if (strcmp(options->path, "shared") != 0 && strcmp(options->path, "memif") != 0 && !is_between &&
        strcmp(options->path, "all") != 0) {
        app_error("bad value", options->path, "--path wants shared, memif or all; with --hosts wire or rdma");
        return false;
    }
    cw_settings_plogp(&options->place);
    if (options->file == NULL && options->place.path[0] == '\0') {
        app_error("there is no place for the file", "HOME is not set", "name one: -o FILE");
        return false;
    }
    options->file = options->file == NULL ? options->place.path : options->file;
    return true;
}

static void network_report(struct app_report *report, const struct cw_measured_network *row)
{
    const struct cw_plogp *plogp = &row->network.paths[CW_PATH_LAN];
    double gap_1m_ns = cw_plogp_gap(plogp, 1 << 20);
    const struct app_cell cells[] = {
        app_text("path", "path", 6, cw_measured_path_name(row->path)),
        app_count("ranks", "ranks", row->ranks),
        app_number("latency_ns", "L/us", 2, 1e-3, plogp->latency_ns),
        app_number("gap_0_ns", "g(0)/us", 2, 1e-3, cw_plogp_gap(plogp, 0)),
        app_number("send_0_ns", "os(0)/us", 2, 1e-3, cw_plogp_send(plogp, 0)),
        app_number("receive_0_ns", "or(0)/us", 2, 1e-3, cw_plogp_receive(plogp, 0)),
        app_number("gap_64k_ns", "g(64K)/us", 2, 1e-3, cw_plogp_gap(plogp, 65536)),
        app_number("gap_1m_ns", NULL, 0, 1, gap_1m_ns),
        app_number(NULL, "1M: B/ns", 2, 1, (double)(1 << 20) / gap_1m_ns),
        app_count("ports", "ports", row->network.ports),
        app_number("contention", "gamma", 2, 1, row->network.contention),
    };
    APP_REPORT(report, cells);
}

/* The part of the file that stays: paths that are not measured now. */
static struct cw_measured *kept_make(const struct plogp_options *options)
{
    struct cw_measured *kept = cw_measured_create();
    struct cw_measured *old = NULL;
    if (kept == NULL || access(options->file, F_OK) != 0 || file_read(options->file, &old) != APP_EXIT_SUCCESS) {
        return kept; /* an unreadable file was reported, and is replaced */
    }
    for (uint32_t i = 0; i < old->network_count; i++) {
        if (!path_is_requested(options, old->networks[i].path)) {
            (void)cw_measured_add_network(kept, &old->networks[i]);
        }
    }
    for (uint32_t i = 0; i < old->test_count; i++) {
        if (!path_is_requested(options, old->tests[i].path)) {
            (void)cw_measured_add_test(kept, &old->tests[i]);
        }
    }
    cw_measured_destroy(old);
    return kept;
}

/* Whole or not at all: a program may be starting. */
static int file_write(const char *path, const struct cw_measured *measured)
{
    char folder[CW_SETTINGS_PATH_BYTES];
    char *text = cw_measured_encode(measured);
    snprintf(folder, sizeof(folder), "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(folder, 0777);
        *slash = '/';
    }
    bool written = text != NULL && cw_settings_write(path, text, strlen(text));
    free(text);
    if (!written) {
        app_error("the file cannot be written", path, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

/* Measures until the machine is quiet enough, for some rounds: MPI would choose by noise, too. */
static int quiet_measure(const struct plogp_options *options, enum cw_measured_path path, uint32_t ranks,
                         struct cw_measured **one)
{
    for (int round = 1;; round++) {
        double noise = 0;
        struct plogp_machine before = plogp_machine_look();
        int code = plogp_job_run(options, path, ranks, one, &noise);
        struct plogp_machine after = plogp_machine_look();
        double others = plogp_machine_others(&before, &after);
        if (code != APP_EXIT_SUCCESS || plogp_is_quiet(noise, others)) {
            return code;
        }
        const char *what_now = options->noisy ? "--noisy: it is written all the same"
                               : round < NOISY_ROUNDS
                                   ? "measuring again"
                                   : "nothing is written: measure while the machine is idle, or --noisy";
        plogp_noise_report(path, ranks, noise, others, what_now);
        if (options->noisy) {
            return APP_EXIT_SUCCESS;
        }
        cw_measured_destroy(*one);
        if (round == NOISY_ROUNDS) {
            return APP_EXIT_FAILURE;
        }
    }
}

static int path_measure(struct plogp_options *options, enum cw_measured_path path, struct cw_measured *all)
{
    int code = APP_EXIT_SUCCESS;
    for (uint32_t i = 0; i < options->rank_count && code == APP_EXIT_SUCCESS; i++) {
        struct cw_measured *one;
        progress_report(options, path, i);
        code = quiet_measure(options, path, options->ranks[i], &one);
        if (code != APP_EXIT_SUCCESS) {
            break;
        }
        for (uint32_t row = 0; row < one->network_count; row++) {
            network_report(&options->report, &one->networks[row]);
        }
        code = cw_measured_merge(all, one) == CW_OK ? code : app_error_status(CW_ERROR_MEMORY, "cannot keep", NULL);
        cw_measured_destroy(one);
    }
    return code;
}

static int measure_all(struct plogp_options *options)
{
    struct cw_measured *all = kept_make(options);
    int code = all == NULL ? app_error_status(CW_ERROR_MEMORY, "cannot measure", NULL) : APP_EXIT_SUCCESS;
    for (uint32_t path = 0; path < CW_MEASURED_PATHS && code == APP_EXIT_SUCCESS; path++) {
        if (path_is_requested(options, path)) {
            code = path_measure(options, path, all);
        }
    }
    app_progress_end();
    if (code == APP_EXIT_SUCCESS) {
        code = file_write(options->file, all);
    }
    if (code == APP_EXIT_SUCCESS && !options->report.json) {
        printf("%" PRIu32 " tables of parameters and %" PRIu32 " tests in %s%s\n", all->network_count, all->test_count,
               options->file,
               strcmp(options->file, options->place.path) == 0 ? ", where MPI finds them"
                                                               : "; for MPI: CAUSEWAY_PLOGP=FILE");
    }
    cw_measured_destroy(all);
    return code;
}

int plogp_main(int argc, char **argv)
{
    struct plogp_options options = {.path = "all"};
    struct app_list ranks = {.count_max = PLOGP_RANKS_MAX}, sizes = {.rising = true};
    const struct app_option rows[] = {
        OPTION_TEXT("path", "shared|memif|all",
                    "kind of path (all); with --hosts wire: packets (the default), rdma: queue pairs", &options.path),
        OPTION_SIZES("ranks",
                     "numbers of ranks (powers of two up to 8, or the number of hosts, and the numbers before them)",
                     &ranks, 2, PLOGP_JOB_RANKS_MAX),
        OPTION_TIME("time", "of all measurements together, about (60s)", &options.time_ns, 0, 0),
        OPTION_SIZES("sizes", "sizes to test, in bytes", &sizes, 8, 16 << 20),
        OPTION_TEXT("output", "FILE", "the file (where MPI looks for it)", &options.file),
        OPTION_TEXT("hosts", "LIST", "measures between these hosts, each with one rank", &options.hosts),
        OPTION_TEXT("launcher", "ssh|srun|COMMAND", "--hosts: the command that starts ranks there (ssh)",
                    &options.launcher),
        OPTION_FLAG("noisy", "write also what other programs have made noise of (refuse it)", &options.noisy),
        OPTION_JSON(" a line", &options.report.json),
        {0},
    };
    int code;
    options.time_ns = 60 * NS_PER_S;
    if (app_options_parse(usage, rows, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (!options_finish(&options, &ranks, &sizes)) {
        return APP_EXIT_USAGE;
    }
    if (options.launcher != NULL && options.hosts == NULL) {
        app_error("--launcher is for --hosts", options.launcher, NULL);
        return APP_EXIT_USAGE;
    }
    app_progress_begin("plogp", options.report.json);
    return measure_all(&options);
}
