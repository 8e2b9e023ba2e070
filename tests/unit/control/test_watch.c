/* Messages between ranks and their launcher, and the missing rank. */
#include "control/settings/setting.h"
#include "control/watch/watch.h"
#include "tests/test.h"

enum { RANKS = 4, TEXT_BYTES = 512 };
#define LONG_NS  2000000000ull
#define SHORT_NS 1000000ull

static void a_rank_answers_once_per_question(void **state)
{
    char number[16];
    int process;
    struct cw_watch *launcher = cw_watch_create(RANKS);
    assert_non_null(launcher);
    snprintf(number, sizeof(number), "%d", dup(cw_watch_descriptor(launcher)));
    setenv(cw_setting_name(CW_SETTING_WATCH_FD), number, 1);
    assert_null(cw_watch_open(0, RANKS + 1)); /* another job's */
    assert_null(cw_watch_open(RANKS, RANKS));
    struct cw_watch *rank = cw_watch_open(2, RANKS);
    assert_non_null(rank);
    assert_true(cw_watch_is_open(launcher, 2, &process));
    assert_int_equal(process, getpid());
    assert_false(cw_watch_is_open(launcher, 1, &process));
    assert_false(cw_watch_has_answered(launcher, 2));
    struct cw_watch_answer answer = {.awaited_count = 3, .awaited = {1, RANKS, 3}}, got;
    memset(answer.text, 'x', sizeof(answer.text)); /* does not end */
    memcpy(answer.text, "a\nb\x1b", 4);
    for (uint32_t question = 1; question <= 2; question++) {
        cw_watch_query(launcher);
        assert_int_equal(cw_watch_query_number(rank), question);
        assert_false(cw_watch_has_answered(launcher, 2));
        cw_watch_reply(rank, question, &answer);
        assert_true(cw_watch_has_answered(launcher, 2));
    }
    cw_watch_read(launcher, 2, &got);
    assert_int_equal(got.awaited_count, 2);
    assert_int_equal(got.awaited[0], 1);
    assert_int_equal(got.awaited[1], 3);
    assert_memory_equal(got.text, "a?b?x", 5);
    assert_int_equal(strlen(got.text), sizeof(got.text) - 1);
    assert_int_equal(cw_watch_alarm_raise(rank), 1);
    assert_int_equal(cw_watch_alarms(rank), 1);
    cw_watch_close(rank);
    assert_false(cw_watch_is_open(launcher, 2, &process));
    cw_watch_close(launcher);
    cw_watch_close(NULL);
}

static void foreign_descriptors_are_left_alone(void **state)
{
    static const char *const words[] = {"", "x", "-1", "0x3", "99999", "99999999999", "1 ", "1"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        setenv(cw_setting_name(CW_SETTING_WATCH_FD), words[i], 1);
        assert_null(cw_watch_open(0, RANKS));
    }
    unsetenv(cw_setting_name(CW_SETTING_WATCH_FD));
    assert_null(cw_watch_open(0, RANKS));
}

/* A rank: the call that it is in (0: none), whom it waits for (a digit each), since when. */
struct rank {
    uint64_t place;
    const char *where;
    const char *awaited;
    const char *brief;
    uint64_t waited_ns;
    bool has_moved;
};

struct verdict {
    struct rank ranks[RANKS];
    const char *says; /* "": nothing */
};

#define IN_17(awaited)                                           \
    {                                                            \
        17, "call 17", awaited, "in MPI_Barrier", LONG_NS, false \
    }
#define IN_RECV(from)                              \
    {                                              \
        0, "", from, "in MPI_Recv", LONG_NS, false \
    }
#define SLOW_RECV(from)                           \
    {                                             \
        0, "", from, "in MPI_Recv", LONG_NS, true \
    }
#define OUTSIDE                        \
    {                                  \
        0, "", "", "outside", 0, false \
    }

static const struct verdict verdicts[] = {
    {{IN_17("3"), IN_17("3"), IN_17("3"), OUTSIDE}, "missing in call 17: rank 3, outside"},
    {{IN_17("3"), IN_17("3"), IN_17("3"), IN_RECV("0")},
     "missing in call 17: rank 3, in MPI_Recv, which waits for rank 0"},
    {{IN_17("13"), OUTSIDE, IN_17("13"), OUTSIDE}, "missing in call 17: rank 1, outside; rank 3, outside"},
    {{IN_17("1"), {17, "call 17 of another kind", "0", "", LONG_NS, false}, OUTSIDE, OUTSIDE},
     "the calls do not match: rank 0 is in call 17, rank 1 in call 17 of another kind"},
    {{IN_RECV("1"), IN_RECV("2"), OUTSIDE, OUTSIDE}, "missing: rank 2, outside"},
    {{IN_RECV("1"), IN_RECV("0"), IN_RECV("0"), IN_RECV("2")},
     "they wait for each other in a circle: rank 0, in MPI_Recv; rank 1, in MPI_Recv"},
    {{IN_RECV("0"), IN_RECV("0"), IN_RECV("0"), IN_RECV("0")},
     "they wait for each other in a circle: rank 0, in MPI_Recv"},
    {{OUTSIDE, OUTSIDE, OUTSIDE, OUTSIDE}, ""},
    {{SLOW_RECV("1"), SLOW_RECV("0"), SLOW_RECV("0"), IN_RECV("2")},
     "3 of 4 ranks have moved data between two looks: this is slow, and no hang"},
    {{SLOW_RECV("1"), IN_RECV("0"), IN_RECV("1"), IN_RECV("2")},
     "1 of 4 ranks have moved data between two looks: this is slow, and no hang"},
    {{SLOW_RECV("1"), SLOW_RECV("0"), IN_RECV("3"), IN_RECV("2")},
     "they wait for each other in a circle: rank 2, in MPI_Recv; rank 3, in MPI_Recv"},
    {{IN_17("3"), IN_17("3"), IN_17("3"), SLOW_RECV("0")},
     "1 of 4 ranks have moved data between two looks: this is slow, and no hang"},
    {{{17, "call 17", "1", "in MPI_Barrier", SHORT_NS, false}, OUTSIDE, OUTSIDE, OUTSIDE},
     "no rank has waited for longer than 0.00 s: this does not look like a hang"},
};

static void missing_ranks_are_reported(void **state)
{
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
        struct cw_watch_answer answers[RANKS];
        char text[TEXT_BYTES], narrow[20];
        memset(answers, 0, sizeof(answers));
        for (int rank = 0; rank < RANKS; rank++) {
            const struct rank *from = &verdicts[i].ranks[rank];
            answers[rank].place = from->place;
            answers[rank].waited_ns = from->waited_ns;
            answers[rank].has_moved = from->has_moved;
            for (const char *at = from->awaited; *at != '\0'; at++) {
                answers[rank].awaited[answers[rank].awaited_count++] = (uint32_t)(*at - '0');
            }
            snprintf(answers[rank].where, sizeof(answers[rank].where), "%s", from->where);
            snprintf(answers[rank].brief, sizeof(answers[rank].brief), "%s", from->brief);
        }
        cw_watch_verdict(answers, RANKS, text, sizeof(text));
        assert_string_equal(text, verdicts[i].says);
        cw_watch_verdict(answers, RANKS, narrow, sizeof(narrow));
        assert_int_equal(strncmp(narrow, text, sizeof(narrow) - 1), 0);
    }
}

int main(void)
{
    return TESTS_RUN(a_rank_answers_once_per_question, foreign_descriptors_are_left_alone, missing_ranks_are_reported);
}
