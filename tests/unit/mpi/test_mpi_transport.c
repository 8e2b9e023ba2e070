/* The parts of the transport that other ranks reach: numbers that are old, forged or of another rank; messages of
 * communicators that do not exist yet, against a list that remembers everything; messages that are cut off. */
#include "mpi/transport/credit.h"
#include "mpi/transport/number.h"
#include "mpi/transport/transport.h"
#include "mpi/transport/unknown.h"
#include "tests/test.h"

enum { SEEDS = 300, RANKS = 5, WAITING_MAX = 600, CONTEXTS = 4, KEPT_MAX = 200, BYTES_MAX = 300 };

static uint32_t drawn(uint32_t below)
{
    return (uint32_t)random() % below;
}

/* ---- numbers ---- */

struct waiting {
    struct mpi_numbered numbered;
    uint32_t answers;
    int32_t status; /* of the last one */
};

static void answered(struct mpi_numbered *numbered, enum mpi_sent kind, const struct mpi_answer *answer,
                     const void *data, uint32_t bytes)
{
    struct waiting *waiting = (struct waiting *)numbered;
    assert_int_equal(kind, MPI_SENT_DONE);
    assert_null(data);
    assert_int_equal(bytes, 0);
    waiting->answers++;
    waiting->status = answer->status;
}

static void answer(uint32_t rank, uint32_t number, int32_t status)
{
    mpi_number_answer(rank, MPI_SENT_DONE, &(struct mpi_answer){.number = number, .status = status}, NULL, 0);
}

static uint32_t counted;

static void count(struct mpi_numbered *numbered)
{
    counted++;
    mpi_number_free(numbered);
}

static void only_who_waits_gets_an_answer(void **state)
{
    static struct waiting waiting[WAITING_MAX];
    struct test_seeds seeds = test_seeds(1, SEEDS);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        uint32_t old[WAITING_MAX] = {0};
        srandom((unsigned)seed);
        memset(waiting, 0, sizeof(waiting));
        for (int step = 0; step < 2 * WAITING_MAX; step++) {
            uint32_t at = drawn(WAITING_MAX);
            struct waiting *one = &waiting[at];
            uint32_t rank = one->numbered.rank, answers = one->answers;
            if (one->numbered.number == 0) {
                answer(rank, old[at], 1); /* of a rank that does not wait any more */
                assert_int_equal(one->answers, answers);
                one->numbered = (struct mpi_numbered){.rank = drawn(RANKS), .answered = answered};
                assert_true(mpi_number_make(&one->numbered));
                assert_int_not_equal(one->numbered.number, 0);
                assert_int_not_equal(one->numbered.number, old[at]);
                continue;
            }
            answer(rank + 1, one->numbered.number, 2); /* by a rank that was not asked */
            answer(rank, one->numbered.number ^ 1u << 31, 3);
            assert_int_equal(one->answers, answers);
            answer(rank, one->numbered.number, step);
            assert_int_equal(one->answers, answers + 1);
            assert_int_equal(one->status, step);
            if (drawn(2) == 0) {
                old[at] = one->numbered.number;
                mpi_number_free(&one->numbered);
                mpi_number_free(&one->numbered); /* of none: nothing happens */
            }
        }
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            uint32_t expected = 0;
            for (int at = 0; at < WAITING_MAX; at++) {
                expected += waiting[at].numbered.number != 0 && waiting[at].numbered.rank == rank;
            }
            counted = 0;
            mpi_numbers_each_of(rank, count);
            assert_int_equal(counted, expected);
        }
        answer(0, UINT32_MAX, 0);
        answer(0, 0, 0);
    }
}

/* ---- messages of communicators that do not exist yet ---- */

struct kept {
    uint32_t rank;
    enum mpi_sent kind;
    uint32_t bytes;
    uint8_t data[BYTES_MAX];
};

static struct kept model[KEPT_MAX]; /* in the order of coming */
static uint32_t model_count;
static uint64_t adopted; /* the context whose communicator is made */

static uint64_t context_of(const struct kept *kept)
{
    uint64_t context;
    memcpy(&context, kept->data, sizeof(context));
    return context;
}

static void model_remove(uint32_t at)
{
    memmove(&model[at], &model[at + 1], (model_count - at - 1) * sizeof(*model));
    model_count--;
}

/* The first one of the context comes, and no other. */
static void message_expect(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    uint32_t at = 0;
    while (at < model_count && context_of(&model[at]) != adopted) {
        at++;
    }
    assert_true(at < model_count);
    assert_int_equal(rank, model[at].rank);
    assert_int_equal(cw_tag(lane_tag), model[at].kind);
    assert_int_equal(bytes, model[at].bytes);
    assert_memory_equal(data, model[at].data, bytes);
    model_remove(at);
}

static void one_arrives(void)
{
    static const enum mpi_sent kinds[] = {MPI_SENT_EAGER, MPI_SENT_SYNC, MPI_SENT_OFFER, MPI_SENT_CALL};
    struct kept *kept = &model[model_count++];
    struct {
        struct mpi_envelope envelope;
        uint32_t number;
    } head = {.envelope = {.context = 1000 + drawn(CONTEXTS)}, .number = drawn(8)};
    *kept = (struct kept){.rank = drawn(RANKS), .kind = kinds[drawn(4)]};
    kept->bytes = 64 + drawn(BYTES_MAX - 64);
    for (uint32_t at = 0; at < kept->bytes; at++) {
        kept->data[at] = (uint8_t)random();
    }
    memcpy(kept->data, &head, sizeof(head));
    mpi_unknown_keep(kept->rank, kept->kind, kept->data, kept->bytes);
}

/* A sender wants the message of a number back: the first such one goes, if there is any. */
static void one_is_recalled(void)
{
    uint32_t rank = drawn(RANKS), number = drawn(8), at = 0;
    uint64_t context = 1000 + drawn(CONTEXTS);
    for (; at < model_count; at++) {
        uint32_t its_number;
        memcpy(&its_number, model[at].data + sizeof(struct mpi_envelope), sizeof(its_number));
        bool is_numbered = model[at].kind == MPI_SENT_SYNC || model[at].kind == MPI_SENT_OFFER;
        if (is_numbered && model[at].rank == rank && context_of(&model[at]) == context && its_number == number) {
            break;
        }
    }
    assert_int_equal(mpi_unknown_recall(rank, context, number), at < model_count);
    if (at < model_count) {
        model_remove(at);
    }
}

static void messages_before_their_communicator_arrive_with_it(void **state)
{
    struct test_seeds seeds = test_seeds(1, SEEDS);
    assert_int_equal(mpi_credit_start(RANKS), MPI_SUCCESS);
    mpi_transport_receiver_set(MPI_SENT_EAGER, message_expect);
    mpi_transport_receiver_set(MPI_SENT_SYNC, message_expect);
    mpi_transport_receiver_set(MPI_SENT_OFFER, message_expect);
    mpi_transport_receiver_set(MPI_SENT_CALL, message_expect);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        srandom((unsigned)seed);
        for (int step = 0; step < 2 * KEPT_MAX; step++) {
            uint32_t what = drawn(20);
            if (what == 0) {
                struct mpi_comm comm = {.context = adopted = 1000 + drawn(CONTEXTS)};
                mpi_unknown_adopt(&comm, mpi_transport_deliver);
                for (uint32_t at = 0; at < model_count; at++) {
                    assert_int_not_equal(context_of(&model[at]), adopted);
                }
            } else if (what < 6) {
                one_is_recalled();
            } else if (model_count < KEPT_MAX) {
                one_arrives();
            }
        }
        uint64_t kept = mpi_kept.bytes + mpi_kept.early_bytes;
        assert_true(model_count == 0 || kept > 0);
        mpi_unknown_clear();
        assert_int_equal(mpi_kept.bytes + mpi_kept.early_bytes, 0);
        model_count = 0;
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            mpi_credits[rank].owed = 0; /* nothing is sent here */
        }
    }
    mpi_credit_stop();
}

/* ---- messages that are cut off ---- */

static void no_part_is_longer_than_its_message(void **state)
{
    const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (uint32_t length = 0; length <= sizeof(bytes); length++) {
        const void *data = bytes;
        uint32_t left = length;
        uint8_t part[5] = {0};
        bool fits = mpi_message_read(&data, &left, part, sizeof(part));
        assert_int_equal(fits, length >= sizeof(part));
        assert_int_equal(left, fits ? length - sizeof(part) : length);
        assert_ptr_equal(data, fits ? bytes + sizeof(part) : bytes);
        assert_int_equal(part[4], fits ? 5 : 0);
    }
}

int main(void)
{
    return TESTS_RUN(only_who_waits_gets_an_answer, messages_before_their_communicator_arrive_with_it,
                     no_part_is_longer_than_its_message);
}
