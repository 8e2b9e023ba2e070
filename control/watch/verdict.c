/* Which rank is missing: a conclusion from the waits of all ranks. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "control/watch/watch.h"

enum { NAMED_MAX = 4 };
#define LONG_NS 500000000ull

/* A line under construction; text beyond its room is left out. */
struct line {
    char *text;
    size_t bytes;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length =
        line->used < line->bytes ? vsnprintf(line->text + line->used, line->bytes - line->used, format, arguments) : 0;
    va_end(arguments);
    line->used += length > 0 ? (size_t)length : 0;
}

static bool awaits(const struct cw_watch_answer *answer, uint32_t rank)
{
    for (uint32_t i = 0; i < answer->awaited_count; i++) {
        if (answer->awaited[i] == rank) {
            return true;
        }
    }
    return false;
}

/* The collective call that most ranks are in; `rank_count`: none is in any. One rank that is in it. */
static uint32_t common_place(const struct cw_watch_answer *answers, uint32_t rank_count)
{
    uint32_t best = rank_count, best_count = 0;
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        uint64_t place = answers[rank].place;
        if (place == 0 || (best < rank_count && place == answers[best].place)) {
            continue;
        }
        uint32_t count = 0;
        for (uint32_t other = rank; other < rank_count; other++) {
            count += answers[other].place == place;
        }
        if (count > best_count) {
            best = rank;
            best_count = count;
        }
    }
    return best;
}

/* Ranks in the same call of a communicator that are in different collectives. */
static bool disagreement_report(const struct cw_watch_answer *answers, uint32_t rank_count, uint32_t first,
                                struct line *line)
{
    for (uint32_t rank = first + 1; rank < rank_count; rank++) {
        if (answers[rank].place == answers[first].place && strcmp(answers[rank].where, answers[first].where) != 0) {
            add(line, "the calls do not match: rank %" PRIu32 " is in %s, rank %" PRIu32 " in %s", first,
                answers[first].where, rank, answers[rank].where);
            return true;
        }
    }
    return false;
}

/* Whether some rank of the call waits for `rank`, which is not in it. */
static bool is_missing(const struct cw_watch_answer *answers, uint32_t rank_count, uint64_t place, uint32_t rank)
{
    if (answers[rank].place == place || answers[rank].has_moved) {
        return false;
    }
    for (uint32_t other = 0; other < rank_count; other++) {
        if (answers[other].place == place && awaits(&answers[other], rank)) {
            return true;
        }
    }
    return false;
}

/* Whether some rank waits for `rank`, which itself waits for none. */
static bool is_end(const struct cw_watch_answer *answers, uint32_t rank_count, uint64_t place, uint32_t rank)
{
    (void)place;
    if (answers[rank].awaited_count > 0 || answers[rank].has_moved) {
        return false;
    }
    for (uint32_t other = 0; other < rank_count; other++) {
        if (other != rank && awaits(&answers[other], rank)) {
            return true;
        }
    }
    return false;
}

static void awaited_report(const struct cw_watch_answer *answer, struct line *line)
{
    for (uint32_t i = 0; i < answer->awaited_count && i < NAMED_MAX; i++) {
        add(line, i == 0 ? ", which waits for rank %" PRIu32 : ", %" PRIu32, answer->awaited[i]);
    }
    add(line, "%s", answer->awaited_count > NAMED_MAX ? ", ..." : "");
}

typedef bool (*predicate)(const struct cw_watch_answer *answers, uint32_t rank_count, uint64_t place, uint32_t rank);

/* Names the ranks that are judged so. False: there is none. */
static bool ranks_report(const struct cw_watch_answer *answers, uint32_t rank_count, uint64_t place, predicate matches,
                         const char *where, struct line *line)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        if (!matches(answers, rank_count, place, rank)) {
            continue;
        }
        if (count == 0) {
            add(line, "missing%s%s: ", where[0] != '\0' ? " in " : "", where);
        }
        if (count < NAMED_MAX) {
            add(line, "%srank %" PRIu32 ", %s", count > 0 ? "; " : "", rank, answers[rank].brief);
            awaited_report(&answers[rank], line);
        }
        count++;
    }
    if (count > NAMED_MAX) {
        add(line, "; and %" PRIu32 " more", count - NAMED_MAX);
    }
    return count > 0;
}

static bool is_stuck(const struct cw_watch_answer *answer)
{
    return answer->awaited_count > 0 && !answer->has_moved;
}

/* Follows the first rank that each one waits for, as many steps as there are ranks: the end is on a circle of ranks
 * that are stuck, if there is one. `rank_count`: it does not. */
static uint32_t circle_find(const struct cw_watch_answer *answers, uint32_t rank_count, uint32_t at)
{
    for (uint32_t step = 0; step < rank_count; step++) {
        if (!is_stuck(&answers[at])) {
            return rank_count;
        }
        at = answers[at].awaited[0];
    }
    return is_stuck(&answers[at]) ? at : rank_count;
}

static bool circle_report(const struct cw_watch_answer *answers, uint32_t rank_count, struct line *line)
{
    uint32_t at = rank_count, named = 0;
    for (uint32_t begin = 0; begin < rank_count && at == rank_count; begin++) {
        at = circle_find(answers, rank_count, begin);
    }
    if (at == rank_count) {
        return false;
    }
    uint32_t first = at;
    add(line, "they wait for each other in a circle:");
    do {
        add(line, "%s rank %" PRIu32 ", %s", named > 0 ? ";" : "", at, answers[at].brief);
        at = answers[at].awaited[0];
    } while (at != first && ++named < 2 * NAMED_MAX);
    if (at != first) {
        add(line, "; ...");
    }
    return true;
}

/* No rank has waited for long: the current waits mean nothing. */
static bool haste_report(const struct cw_watch_answer *answers, uint32_t rank_count, struct line *line)
{
    uint64_t longest_ns = 0;
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        longest_ns = answers[rank].waited_ns > longest_ns ? answers[rank].waited_ns : longest_ns;
    }
    if (longest_ns == 0 || longest_ns >= LONG_NS) {
        return false;
    }
    add(line, "no rank has waited for longer than %.2f s: this does not look like a hang", (double)longest_ns / 1e9);
    return true;
}

/* Some ranks make progress: so the others may do so later. */
static void movement_report(const struct cw_watch_answer *answers, uint32_t rank_count, struct line *line)
{
    uint32_t moved = 0;
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        moved += answers[rank].has_moved;
    }
    if (moved > 0) {
        add(line, "%" PRIu32 " of %" PRIu32 " ranks have moved data between two looks: this is slow, and no hang",
            moved, rank_count);
    }
}

void cw_watch_verdict(const struct cw_watch_answer *answers, uint32_t rank_count, char *text, size_t text_bytes)
{
    struct line line = {.text = text, .bytes = text_bytes};
    text[0] = '\0';
    if (haste_report(answers, rank_count, &line)) {
        return;
    }
    uint32_t common = common_place(answers, rank_count);
    if (common < rank_count &&
        (disagreement_report(answers, rank_count, common, &line) ||
         ranks_report(answers, rank_count, answers[common].place, is_missing, answers[common].where, &line))) {
        return;
    }
    if (!ranks_report(answers, rank_count, 0, is_end, "", &line) && !circle_report(answers, rank_count, &line)) {
        movement_report(answers, rank_count, &line);
    }
}
