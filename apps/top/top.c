/* `causeway top`: the jobs of this machine and their network traffic, as a table that is renewed, as JSON, or as a page
 * that Prometheus reads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/cli/report.h"
#include "control/statistics/statistics_page.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"

/* Figures that are older are of a process that is stopped, or computes with all its threads. */
#define OLD_NS 3000000000ull

struct options {
    bool once;
    bool json;
    bool prometheus;
    uint64_t interval_ns;
};

/* One sample of all processes. */
struct sample {
    struct cw_statistics_page_view *views;
    size_t count;
    uint64_t time_ns;
};

static int sample_read(struct sample *sample)
{
    *sample = (struct sample){.time_ns = cw_clock_ns()};
    int status = cw_statistics_pages_read(&sample->views, &sample->count);
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "/proc cannot be read", NULL);
}

/* The same process in another sample; NULL: it was not there. */
static const struct cw_statistics_page_view *view_before(const struct sample *before,
                                                         const struct cw_statistics_page_view *view)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct cw_statistics_page_view *other = &before->views[i];
        if (other->identity.process == view->identity.process && other->identity.rank == view->identity.rank &&
            strcmp(other->identity.job, view->identity.job) == 0) {
            return other;
        }
    }
    return NULL;
}

/* ---- a table, or JSON ---- */

static double a_second(uint64_t now, uint64_t before, uint64_t duration_ns)
{
    return duration_ns == 0 || now < before ? 0 : (double)(now - before) * 1e9 / (double)duration_ns;
}

static double share_lost(const struct cw_statistics_page_figures *now, const struct cw_statistics_page_figures *before)
{
    uint64_t sent = now->data_packets_out - before->data_packets_out;
    return sent == 0 ? 0 : (double)(now->retransmitted - before->retransmitted) / (double)sent;
}

static void view_report(struct app_report *report, const struct cw_statistics_page_view *view,
                        const struct cw_statistics_page_view *past, uint64_t time_ns)
{
    static const struct cw_statistics_page_figures none;
    const struct cw_statistics_page_figures *now = &view->figures, *before = past == NULL ? &none : &past->figures;
    uint64_t since_ns = past == NULL || now->time_ns <= before->time_ns ? 0 : now->time_ns - before->time_ns;
    bool is_old = now->time_ns + OLD_NS < time_ns;
    const struct app_cell cells[] = {
        app_text("job", "job", 24, view->identity.job),
        app_count("rank", "rank", view->identity.rank),
        app_count("ranks", NULL, view->identity.size),
        app_count("process", "process", view->identity.process),
        app_count("user", "user", view->user),
        app_text("program", "program", 16, view->identity.program),
        app_text("host", NULL, 0, view->identity.host),
        app_number("send_bps", "out Mb/s", 1, 1e-6, 8 * a_second(now->bytes_out, before->bytes_out, since_ns)),
        app_number("receive_bps", "in Mb/s", 1, 1e-6, 8 * a_second(now->bytes_in, before->bytes_in, since_ns)),
        app_number("send_pps", "out p/s", 0, 1, a_second(now->packets_out, before->packets_out, since_ns)),
        app_number("receive_pps", "in p/s", 0, 1, a_second(now->packets_in, before->packets_in, since_ns)),
        app_number("messages_per_s", "messages/s", 0, 1,
                   a_second(now->messages_sent + now->messages_received,
                            before->messages_sent + before->messages_received, since_ns)),
        app_number("resent_fraction", "resent %", 2, 100, share_lost(now, before)),
        app_count("dropped_packets", "dropped", now->dropped),
        app_scaled("in_flight_bytes", "flying KiB", 0, 1.0 / 1024, now->in_flight_bytes),
        app_scaled("queue_bytes", "queue KiB", 0, 1.0 / 1024, now->unsent_bytes),
        app_when(now->round_trip_ns != 0, app_scaled("round_trip_ns", "RTT us", 1, 1e-3, now->round_trip_ns)),
        app_count("peers", "peers", now->peers),
        app_text("state", "", 0, is_old ? "silent" : ""),
    };
    APP_REPORT(report, cells);
}

static void sample_report(const struct options *options, const struct sample *now, const struct sample *before)
{
    struct app_report report = {.json = options->json, .form = APP_REPORT_TABLE};
    if (now->count == 0 && !options->json) {
        printf("no process of a job runs here%s\n",
               geteuid() == 0 ? "" : ", or none of this user: root sees those of all");
    }
    for (size_t i = 0; i < now->count; i++) {
        view_report(&report, &now->views[i], view_before(before, &now->views[i]), now->time_ns);
    }
}

/* ---- Prometheus ---- */

struct metric {
    const char *name;
    const char *kind;
    const char *help;
    size_t offset; /* in struct cw_statistics_page_figures */
    double scale;
};

#define METRIC(name, kind, help, member, scale)                                      \
    {                                                                                \
        name, kind, help, offsetof(struct cw_statistics_page_figures, member), scale \
    }

static const struct metric metrics[] = {
    METRIC("causeway_receive_bytes_total", "counter", "Bytes of frames received.", bytes_in, 1),
    METRIC("causeway_send_bytes_total", "counter", "Bytes of frames sent.", bytes_out, 1),
    METRIC("causeway_receive_packets_total", "counter", "Packets received.", packets_in, 1),
    METRIC("causeway_send_packets_total", "counter", "Packets sent.", packets_out, 1),
    METRIC("causeway_resent_packets_total", "counter", "Data packets sent again.", retransmitted, 1),
    METRIC("causeway_dropped_packets_total", "counter", "Packets received and not taken, or refused by the own device.",
           dropped, 1),
    METRIC("causeway_sent_messages_total", "counter", "Messages sent to other ranks, by any path.", messages_sent, 1),
    METRIC("causeway_received_messages_total", "counter", "Messages received from other ranks.", messages_received, 1),
    METRIC("causeway_sessions", "gauge", "Peers with a session.", peers, 1),
    METRIC("causeway_in_flight_bytes", "gauge", "Bytes sent and not acknowledged.", in_flight_bytes, 1),
    METRIC("causeway_queue_bytes", "gauge", "Bytes posted and not sent.", unsent_bytes, 1),
    METRIC("causeway_round_trip_seconds", "gauge", "Mean of the sessions' smoothed round trips.", round_trip_ns, 1e-9),
};

/* The text format, version 0.0.4. */
static void sample_expose(const struct sample *now)
{
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        const struct metric *metric = &metrics[i];
        printf("# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name, metric->kind);
        for (size_t k = 0; k < now->count; k++) {
            const struct cw_statistics_page_identity *identity = &now->views[k].identity;
            uint64_t value;
            memcpy(&value, (const uint8_t *)&now->views[k].figures + metric->offset, sizeof(value));
            printf("%s{job=\"%s\",rank=\"%" PRIu32 "\",program=\"%s\",process=\"%" PRIu32 "\",user=\"%" PRIu32 "\"} ",
                   metric->name, identity->job, identity->rank, identity->program, identity->process,
                   now->views[k].user);
            printf(metric->scale == 1 ? "%.0f\n" : "%.9f\n", (double)value * metric->scale);
        }
    }
}

/* ---- all of it ---- */

static void nap(uint64_t duration_ns)
{
    struct timespec pause = {.tv_sec = (time_t)(duration_ns / 1000000000), .tv_nsec = (long)(duration_ns % 1000000000)};
    nanosleep(&pause, NULL);
}

/* Runs until a signal ends it. */
static int samples_show(const struct options *options)
{
    bool is_screen = isatty(STDOUT_FILENO) && !options->once && !options->json;
    struct sample before, now;
    int code = sample_read(&before);
    while (code == APP_EXIT_SUCCESS) {
        nap(options->interval_ns);
        code = sample_read(&now);
        if (code == APP_EXIT_SUCCESS) {
            fputs(is_screen ? "\033[H\033[J" : "", stdout); /* home, and clear what is below */
            sample_report(options, &now, &before);
            fflush(stdout);
            free(before.views);
            before = now;
        }
        if (options->once) {
            break;
        }
    }
    free(before.views);
    return code;
}

int top_main(int argc, char **argv)
{
    struct options options = {.interval_ns = 1000000000};
    const struct app_option rows[] = {
        OPTION_TIME("interval", "between two looks (1s)", &options.interval_ns, 100000000, 3600000000000ull),
        OPTION_FLAG("once", "one table, after one interval", &options.once),
        OPTION_JSON(" for each process and look", &options.json),
        OPTION_FLAG("prometheus", "one page of metrics in Prometheus's text format", &options.prometheus),
        {0},
    };
    int code;
    if (app_options_parse("top [OPTION...]\n"
                          "\n"
                          "Shows the network traffic of the processes of all jobs on this machine: rates, "
                          "retransmissions, queues, round trips. A user sees the own jobs, root all.",
                          rows, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (!options.prometheus) {
        return samples_show(&options);
    }
    struct sample now;
    code = sample_read(&now);
    if (code == APP_EXIT_SUCCESS) {
        sample_expose(&now);
        free(now.views);
    }
    return code;
}
