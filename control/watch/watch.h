/* watch: memory that a launcher shares with the ranks of its job, for queries of their waits and the answers.
 *
 * A memfd that the ranks inherit, CAUSEWAY_WATCH_FD tells its number: a page for the question and a slot for each rank.
 * So a rank that is stopped, or does not read, delays no other rank, and no file remains. Other launchers do not have
 * it: then there is none.
 *
 * Invariants
 *   - A slot is written by its rank only, between two questions once; `answered` is set last.
 *   - Data written by a rank is copied and checked before use.
 *
 * Order of calls
 *   launcher: cw_watch_create; descriptor to the ranks; { cw_watch_query, { cw_watch_has_answered }*, cw_watch_read }*;
 *   cw_watch_close
 *   rank:     cw_watch_open; { cw_watch_query_number, cw_watch_reply }*; cw_watch_close
 *
 * Thread: launcher: one. Rank: cw_watch_reply by one at a time, the rest by any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_WATCH_AWAITED_MAX = 16,
    CW_WATCH_WHERE_BYTES = 160,
    CW_WATCH_BRIEF_BYTES = 160,
    CW_WATCH_TEXT_BYTES = 640,
};

/* The operation that a rank waits for. */
struct cw_watch_answer {
    uint64_t place; /* the collective call that it is in: all ranks have the same number for the same one; 0: none */
    uint64_t moved; /* grows with each message and packet of data that it takes or sends */
    bool has_moved; /* the launcher's: between its last two questions */
    uint64_t waited_ns;                     /* of its longest wait; 0: it does not wait */
    uint32_t awaited_count;                 /* of the next; more than are listed are left out */
    uint32_t awaited[CW_WATCH_AWAITED_MAX]; /* ranks that block it */
    char where[CW_WATCH_WHERE_BYTES];       /* "call 17 (MPI_Bcast) on MPI_COMM_WORLD", if `place` is not 0 */
    char brief[CW_WATCH_BRIEF_BYTES];       /* "in MPI_Recv" */
    char text[CW_WATCH_TEXT_BYTES];         /* all of it in a line: "60 s in MPI_Recv: from rank 1, tag 7" */
};

struct cw_watch;

/* NULL: the machine cannot, and ranks cannot be asked. */
struct cw_watch *cw_watch_create(uint32_t rank_count);
int cw_watch_descriptor(const struct cw_watch *watch);

void cw_watch_query(struct cw_watch *watch);
/* Whether a rank has opened the watch and not closed it; its process, if so. */
bool cw_watch_is_open(const struct cw_watch *watch, uint32_t rank, int *process);
/* Whether it has answered the last question. */
bool cw_watch_has_answered(const struct cw_watch *watch, uint32_t rank);
/* A copy, with texts that end and that hold printable characters only. */
void cw_watch_read(const struct cw_watch *watch, uint32_t rank, struct cw_watch_answer *answer);

/* Makes a safe copy of data that another process wrote and may have altered. */
void cw_watch_clean(struct cw_watch_answer *answer, uint32_t rank_count);

/* In a rank. NULL: the launcher has none for us. The descriptor is closed. */
struct cw_watch *cw_watch_open(uint32_t rank, uint32_t rank_count);
/* The number of the last question; 0: none yet. */
uint32_t cw_watch_query_number(const struct cw_watch *watch);
/* Answers the question of this number. */
void cw_watch_reply(struct cw_watch *watch, uint32_t asked, const struct cw_watch_answer *answer);

/* Ranks among themselves: one has waited for too long, and all shall say on standard error what they do. The number of
 * times that this was asked for. */
uint32_t cw_watch_alarm_raise(struct cw_watch *watch);
uint32_t cw_watch_alarms(const struct cw_watch *watch);

/* Launcher or rank. NULL is allowed. */
void cw_watch_close(struct cw_watch *watch);

/* From the answers of all ranks, in a line: which rank is missing, that some wait for each other in a circle, or that
 * none has waited for long; "" if nothing follows. A rank that has made progress is slow and not stuck: neither missing
 * nor in a circle. */
void cw_watch_verdict(const struct cw_watch_answer *answers, uint32_t rank_count, char *text, size_t text_bytes);
