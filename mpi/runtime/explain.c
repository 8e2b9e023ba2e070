#include "mpi/runtime/explain.h"
#include "control/settings/setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/job/dedicate.h"
#include "dataplane/codec/codec.h"
#include "mpi/state/process.h"

/* Sizes of a class differ by less than a factor of two; class 0: no bytes. */
struct line {
    const char *collective;
    char algorithm[96];
    const char *origin;
    uint32_t ranks;
    uint32_t size_class;
    uint64_t calls;
    double predicted_ns; /* of all calls */
    uint64_t measured_ns;
};

static struct line *lines;
static size_t line_count;

static uint32_t class_of(uint64_t bytes)
{
    uint32_t class = 0;
    while (bytes >> class != 0) {
        class ++;
    }
    return class;
}

/* NULL: no memory. */
static struct line *line_find(const struct line *wanted)
{
    for (size_t index = 0; index < line_count; index++) {
        struct line *line = &lines[index];
        if (line->ranks == wanted->ranks && line->size_class == wanted->size_class &&
            strcmp(line->collective, wanted->collective) == 0 && strcmp(line->algorithm, wanted->algorithm) == 0 &&
            strcmp(line->origin, wanted->origin) == 0) {
            return line;
        }
    }
    struct line *grown = realloc(lines, (line_count + 1) * sizeof(*lines));
    if (grown == NULL) {
        return NULL;
    }
    lines = grown;
    lines[line_count] = *wanted;
    return &lines[line_count++];
}

void mpi_explain_calls(const char *collective, const char *algorithm, uint32_t ranks, uint64_t bytes,
                       const char *origin, uint64_t calls, double predicted_ns, uint64_t measured_ns)
{
    struct line wanted = {.collective = collective, .origin = origin, .ranks = ranks, .size_class = class_of(bytes)};
    snprintf(wanted.algorithm, sizeof(wanted.algorithm), "%s", algorithm);
    struct line *line = line_find(&wanted);
    if (line != NULL) {
        line->calls += calls;
        line->predicted_ns += predicted_ns * (double)calls;
        line->measured_ns += measured_ns;
    }
}

static int line_compare(const void *a, const void *b)
{
    const struct line *left = a, *right = b;
    int names = strcmp(left->collective, right->collective);
    if (names != 0) {
        return names;
    }
    if (left->ranks != right->ranks) {
        return left->ranks < right->ranks ? -1 : 1;
    }
    return (int)left->size_class - (int)right->size_class;
}

bool mpi_explain_compression(enum cw_element element, const struct cw_compression_report *report, const char *to,
                             char *text, size_t text_bytes)
{
    static const char *const kinds[CW_ELEMENTS] = {"bytes",           "16-bit integers", "32-bit integers",
                                                   "64-bit integers", "floats",          "doubles"};
    if (report->samples == 0 && report->link_ns == 0) {
        return false;
    }
    char link[64] = "link: not measured";
    if (report->link_ns > 0) {
        snprintf(link, sizeof(link), "link: %.3f ns/byte", report->link_ns);
    }
    int used = snprintf(text, text_bytes, "compression of %s to %s: ", kinds[element], to);
    text += used;
    text_bytes -= (size_t)used;
    if (report->samples == 0) {
        snprintf(text, text_bytes, "no sample taken; %s", link);
        return true;
    }
    char took[96] = "";
    if (report->plain_ns > 0 && report->packed_ns > 0) {
        snprintf(took, sizeof(took), "; %.3f ns/byte compressed, %.3f ns/byte plain: %.3f s saved", report->packed_ns,
                 report->plain_ns, report->saved_ns / 1e9);
    }
    snprintf(text, text_bytes,
             "%s by %s, %" PRIu64 " samples, %" PRIu64 " trials; ratio %.2f; codecs: %.3f ns/byte, %s; %" PRIu64
             " bytes became %" PRIu64 "%s",
             report->is_on ? "on" : "off, tried", cw_codec_name(report->codec), report->samples, report->trials,
             report->rate, report->codec_ns, link, report->raw_bytes, report->chunk_bytes, took);
    return true;
}

static void explain_compression(uint32_t rank)
{
    for (enum cw_element element = 0; element < CW_ELEMENTS; element++) {
        struct cw_compression_report report;
        char to[32], text[512];
        snprintf(to, sizeof(to), "rank %u", rank);
        if (cw_paths_compression(mpi_process.paths, rank, element, &report) &&
            mpi_explain_compression(element, &report, to, text, sizeof(text))) {
            fprintf(stderr, "causeway: rank %u: %s\n", mpi_process.rank, text);
        }
    }
}

void mpi_explain_paths(void)
{
    if (cw_job_transport(mpi_process.job)[0] != '\0') {
        fprintf(stderr, "causeway: rank %u: to other hosts by %s\n", mpi_process.rank,
                cw_job_transport(mpi_process.job));
    }
    const struct cw_dedicated *dedicated = cw_job_dedicated(mpi_process.job);
    for (uint32_t i = 0; i < cw_job_threads(mpi_process.job); i++) {
        fprintf(stderr, "causeway: rank %u: a dataplane thread on core %d\n", mpi_process.rank, dedicated->cores[i]);
    }
    for (uint32_t rank = 0; rank < mpi_process.size; rank++) {
        char why[256];
        if (rank != mpi_process.rank) {
            cw_paths_why(mpi_process.paths, rank, why, sizeof(why));
            enum cw_cover cover;
            bool is_known = cw_paths_cover(mpi_process.paths, rank, &cover);
            fprintf(stderr, "causeway: rank %u: path to %s%s%s\n", mpi_process.rank, why,
                    is_known ? "; payloads are checked by " : "", is_known ? cw_cover_text(cover) : "");
        }
    }
    struct cw_paths_counters counters = cw_paths_counters(mpi_process.paths);
    fprintf(stderr,
            "causeway: rank %u: %" PRIu64 " messages sent, %" PRIu64 " received; %" PRIu64
            " long ones in one copy, %" PRIu64 " in two copies, %" PRIu64 " puts and %" PRIu64
            " gets over the network; %" PRIu64 " waits for room, %" PRIu64 " sleeps\n",
            mpi_process.rank, counters.messages_sent, counters.messages_received, counters.copies_single,
            counters.copies_streamed, counters.puts_wire, counters.gets_wire, counters.refusals, counters.sleeps);
    char registrations[512];
    cw_job_registrations(mpi_process.job, registrations, sizeof(registrations));
    if (registrations[0] != '\0') {
        fprintf(stderr, "causeway: rank %u: %s\n", mpi_process.rank, registrations);
    }
    char rdma[1024];
    cw_job_rdma(mpi_process.job, rdma, sizeof(rdma));
    if (rdma[0] != '\0') {
        fprintf(stderr, "causeway: rank %u: %s\n", mpi_process.rank, rdma);
    }
    const char *setting = cw_setting(CW_SETTING_COMPRESSION);
    if (setting != NULL && setting[0] != '\0') {
        fprintf(stderr, "causeway: rank %u: compression: %s, by CAUSEWAY_COMPRESSION\n", mpi_process.rank, setting);
    }
    for (uint32_t rank = 0; rank < mpi_process.size; rank++) {
        explain_compression(rank);
    }
    struct cw_bootstrap_traffic exchanged = cw_job_exchanged(mpi_process.job);
    fprintf(stderr, "causeway: rank %u: %" PRIu64 " requests to the launcher, %" PRIu64 " bytes in both directions\n",
            mpi_process.rank, exchanged.requests, exchanged.bytes);
}

void mpi_explain_print(void)
{
    qsort(lines, line_count, sizeof(*lines), line_compare);
    for (size_t index = 0; index < line_count; index++) {
        const struct line *line = &lines[index];
        uint64_t least = line->size_class == 0 ? 0 : 1ull << (line->size_class - 1);
        char expected[40] = "unknown";
        if (line->predicted_ns > 0) {
            snprintf(expected, sizeof(expected), "%.2f us%s", line->predicted_ns / (double)line->calls / 1e3,
                     least > 1 ? " or more" : ""); /* priced at the least of the sizes */
        }
        fprintf(stderr,
                "causeway: rank %u: %s of %" PRIu64 "%s bytes on %u ranks: %s (%s), %" PRIu64
                " calls, expected %s, took %.2f us\n",
                mpi_process.rank, line->collective, least, least > 1 ? " or more" : "", line->ranks, line->algorithm,
                line->origin, line->calls, expected, (double)line->measured_ns / (double)line->calls / 1e3);
    }
}

void mpi_explain_clear(void)
{
    free(lines);
    lines = NULL;
    line_count = 0;
}

void mpi_explain_text(const char *text)
{
    for (const char *at = text; at != NULL && *at != '\0';) {
        int length = (int)strcspn(at, "\n");
        fprintf(stderr, "causeway: rank %u: %.*s\n", mpi_process.rank, length, at);
        at += length + (at[length] == '\n');
    }
}

bool mpi_explain_is_wanted(void)
{
    const char *wanted = cw_setting(CW_SETTING_EXPLAIN);
    return wanted != NULL && strcmp(wanted, "0") != 0 && (mpi_process.rank == 0 || strcmp(wanted, "all") == 0);
}
