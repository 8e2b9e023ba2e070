/* page: statistics that a process of a job publishes for readers such as `causeway top`. It is memory without a file in
 * any folder (memfd), so that nothing remains however the process ends. Users who may look at the process
 * (/proc/PID/fd) can read it: its user, and root.
 *
 * Invariants
 *   - One process writes, any number read. A sequence number shows a reader that figures have changed during the read.
 *   - A reader trusts nothing: any process can make a page. Texts are cut and printable, lengths checked.
 *
 * Order of calls: cw_statistics_page_open { cw_statistics_page_write }* cw_statistics_page_close; others:
 * cw_statistics_pages_read. Thread: the writer's, one at a time; readers: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CW_STATISTICS_PAGE_TEXT_BYTES = 64, CW_STATISTICS_PAGES_MAX = 4096 };

/* Constant part. */
struct cw_statistics_page_identity {
    uint32_t rank;
    uint32_t size;
    uint32_t process; /* as the reader's /proc has it; set by cw_statistics_pages_read */
    uint32_t reserved;
    char job[CW_STATISTICS_PAGE_TEXT_BYTES]; /* the launcher's name of it */
    char host[CW_STATISTICS_PAGE_TEXT_BYTES];
    char program[CW_STATISTICS_PAGE_TEXT_BYTES];
};

/* Counts since the start, except the last four. Zeroes where there is no network. */
struct cw_statistics_page_figures {
    uint64_t time_ns; /* when they were written, CLOCK_MONOTONIC */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t packets_in;
    uint64_t packets_out;
    uint64_t data_packets_out; /* for the first time */
    uint64_t retransmitted;
    uint64_t dropped;       /* packets that this process received and dropped, or that its device refused to send */
    uint64_t messages_sent; /* to other ranks, by any path */
    uint64_t messages_received;
    uint64_t peers;           /* with a session at the moment */
    uint64_t in_flight_bytes; /* sent and not acknowledged, at the moment */
    uint64_t unsent_bytes;    /* posted and not sent: the queue */
    uint64_t round_trip_ns;   /* the mean of the sessions', smoothed; 0: not measured */
};

struct cw_statistics_page;

/* CW_OK; CW_ERROR_SYSTEM, CW_ERROR_MEMORY with a line in `error`. Texts that are too long are cut. */
int cw_statistics_page_open(const struct cw_statistics_page_identity *identity, struct cw_statistics_page **page,
                            char *error, size_t error_bytes);
void cw_statistics_page_write(struct cw_statistics_page *page, const struct cw_statistics_page_figures *figures);
/* NULL is allowed. */
void cw_statistics_page_close(struct cw_statistics_page *page);

struct cw_statistics_page_view {
    struct cw_statistics_page_identity identity;
    struct cw_statistics_page_figures figures;
    uint32_t user; /* of the process */
};

/* The pages of all processes of this machine that this one may read, by job and rank; the caller frees *views. CW_OK;
 * CW_ERROR_SYSTEM: there is no /proc; CW_ERROR_MEMORY. */
int cw_statistics_pages_read(struct cw_statistics_page_view **views, size_t *count);

/* ---- what comes from outside, for tests ---- */

/* Takes a copy of a page apart: CW_OK; CW_ERROR_ARGUMENT: it is none, or of another version; CW_ERROR_AGAIN: it was
 * being written. */
int cw_statistics_page_parse(const void *bytes, size_t count, struct cw_statistics_page_view *view);
