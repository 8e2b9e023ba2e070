/* One question: the time of each algorithm for a collective of a number of bytes.
 *
 * Each contender has a communicator whose hint asks for it; a question is asked once, so that no plan of another one is
 * in the way. They are measured in turn, so that other load on the machine affects all of them; the order moves on by
 * one from round to round. A call's time is that of its slowest rank, a contender's the median of its calls. Contenders
 * far behind drop out, so that the remaining time goes to the close ones. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/plogp/arithmetic.h"
#include "apps/plogp/question.h"
#include "collectives/choose/override.h"
#include "dataplane/status.h"

enum {
    ROUNDS_MAX = 400,
    CALLS_WARM = 5, /* before the first look: buffers of all kinds have been touched, slots of shared memory, too */
    WARM_MAX_BYTES = 65536,
    ROUNDS_LOOK = 2,
    ROUNDS_MIN = 5,
    BLOCK_MAX = 50,
    WORD_BYTES = 160,
    SEGMENT_SMALL = 8192, /* the limit of messages without a handshake */
    SEGMENT_LARGE = 65536,
};

/* A contender may be that many times slower than the best one and stay: by a first look, and once there are some
 * rounds. */
#define FAR_BEHIND 2.0
#define BEHIND     1.3

struct call {
    enum cw_collective collective;
    int count; /* of the elements below */
    uint8_t *send;
    uint8_t *receive;
};

/* ---- the calls ---- */

static void call_make(const struct call *call, MPI_Comm comm)
{
    const void *send = call->send;
    void *receive = call->receive;
    int count = call->count;
    switch (call->collective) {
    case CW_BCAST:
        MPI_Bcast(receive, count, MPI_BYTE, 0, comm);
        break;
    case CW_SCATTER:
        MPI_Scatter(send, count, MPI_BYTE, receive, count, MPI_BYTE, 0, comm);
        break;
    case CW_GATHER:
        MPI_Gather(send, count, MPI_BYTE, receive, count, MPI_BYTE, 0, comm);
        break;
    case CW_ALLGATHER:
        MPI_Allgather(send, count, MPI_BYTE, receive, count, MPI_BYTE, comm);
        break;
    case CW_ALLTOALL:
        MPI_Alltoall(send, count, MPI_BYTE, receive, count, MPI_BYTE, comm);
        break;
    case CW_REDUCE:
        MPI_Reduce(send, receive, count, MPI_DOUBLE, MPI_SUM, 0, comm);
        break;
    case CW_ALLREDUCE:
        MPI_Allreduce(send, receive, count, MPI_DOUBLE, MPI_SUM, comm);
        break;
    case CW_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(send, receive, count, MPI_DOUBLE, MPI_SUM, comm);
        break;
    case CW_SCAN:
        MPI_Scan(send, receive, count, MPI_DOUBLE, MPI_SUM, comm);
        break;
    case CW_EXSCAN:
        MPI_Exscan(send, receive, count, MPI_DOUBLE, MPI_SUM, comm);
        break;
    default:
        MPI_Barrier(comm);
        break;
    }
}

/* Blocks for all ranks, for any collective; touched, so that no call pays for page faults. */
static void call_prepare(const struct plogp_measure *measure, const struct plogp_question *question, struct call *call)
{
    size_t bytes = (size_t)question->bytes * (size_t)measure->size + 64;
    size_t element = cw_collective_reduces(question->collective) ? sizeof(double) : 1;
    call->collective = question->collective;
    call->count = (int)(question->bytes / element);
    call->send = malloc(bytes);
    call->receive = malloc(bytes);
    if (call->send == NULL || call->receive == NULL) {
        plogp_fail("no memory");
    }
    memset(call->send, 0, bytes);
    memset(call->receive, 0, bytes);
}

/* Sends rank 0's choice to all ranks, and sets it in the library by hints. */
static void arenas_set(const struct plogp_measure *measure, const struct plogp_question *question)
{
    static char words[PLOGP_CONTENDERS_MAX][WORD_BYTES];
    for (uint32_t i = 0; i < question->contender_count && measure->rank == 0; i++) {
        cw_override_write(question->contenders[i].algorithm, &question->contenders[i].parameters, words[i], WORD_BYTES);
    }
    MPI_Bcast(words, (int)question->contender_count * WORD_BYTES, MPI_CHAR, 0, measure->sync);
    for (uint32_t i = 0; i < question->contender_count; i++) {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "causeway_algorithm", words[i]);
        MPI_Comm_set_info(measure->arenas[i], info);
        MPI_Info_free(&info);
    }
}

/* ---- rounds ---- */

struct trial {
    uint32_t count; /* of contenders */
    uint64_t alive; /* bits */
    uint32_t rounds[PLOGP_CONTENDERS_MAX];
    double first_ns[PLOGP_CONTENDERS_MAX]; /* of rank 0's first call, which makes the plan */
    double times[PLOGP_CONTENDERS_MAX][ROUNDS_MAX];
};

static double call_time(const struct plogp_measure *measure, const struct call *call, MPI_Comm comm)
{
    MPI_Barrier(measure->sync);
    uint64_t start_ns = plogp_now_ns();
    call_make(call, comm);
    return (double)(plogp_now_ns() - start_ns);
}

/* Runs `rounds` rounds of the remaining ones; rank 0 gets the slowest rank's times. */
static void block_run(const struct plogp_measure *measure, const struct call *call, struct trial *trial, int rounds)
{
    static double own[PLOGP_CONTENDERS_MAX * BLOCK_MAX], slowest[PLOGP_CONTENDERS_MAX * BLOCK_MAX];
    for (int round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < trial->count; i++) {
            uint32_t contender = (i + (uint32_t)round) % trial->count;
            if ((trial->alive >> contender & 1) != 0) {
                own[(uint32_t)round * trial->count + contender] = call_time(measure, call, measure->arenas[contender]);
            }
        }
    }
    MPI_Reduce(own, slowest, rounds * (int)trial->count, MPI_DOUBLE, MPI_MAX, 0, measure->sync);
    for (int round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < trial->count; i++) {
            if ((trial->alive >> i & 1) != 0 && trial->rounds[i] < ROUNDS_MAX) {
                trial->times[i][trial->rounds[i]++] = slowest[(uint32_t)round * trial->count + i];
            }
        }
    }
}

static double least(const double *times, uint32_t count)
{
    double best = times[0];
    for (uint32_t i = 1; i < count; i++) {
        best = times[i] < best ? times[i] : best;
    }
    return best;
}

/* A few rounds are compared by their best call, more by the median. */
static double standing(struct trial *trial, uint32_t i)
{
    return trial->rounds[i] < ROUNDS_MIN ? fmin(trial->first_ns[i], least(trial->times[i], trial->rounds[i]))
                                         : cw_statistics_median(trial->times[i], trial->rounds[i]);
}

/* At rank 0: chooses the remaining ones, and the number of next rounds; 0: enough. */
static int plan_next(struct trial *trial, double round_ns, double left_ns)
{
    double best = 0;
    uint32_t most = 0;
    for (uint32_t i = 0; i < trial->count;
         i++) { /* a contender that dropped out had few rounds, which may look better than they are */
        double time_ns = (trial->alive >> i & 1) != 0 ? standing(trial, i) : INFINITY;
        best = i == 0 || time_ns < best ? time_ns : best;
        most = trial->rounds[i] > most ? trial->rounds[i] : most;
    }
    uint32_t before = (uint32_t)__builtin_popcountll(trial->alive);
    for (uint32_t i = 0; i < trial->count; i++) {
        bool is_near = standing(trial, i) <= (most < ROUNDS_MIN ? FAR_BEHIND : BEHIND) * best;
        trial->alive &= is_near ? ~0ull : ~(1ull << i);
    }
    uint32_t alive = (uint32_t)__builtin_popcountll(trial->alive);
    assert(alive > 0); /* the best one */
    double rounds = left_ns / (round_ns * alive / before);
    rounds = most >= ROUNDS_MIN ? rounds / 2 : rounds;
    if (most >= ROUNDS_MAX || rounds < 1) {
        return 0;
    }
    int next = most < ROUNDS_MIN ? ROUNDS_MIN : rounds > BLOCK_MAX ? BLOCK_MAX : (int)rounds;
    return (uint32_t)next > ROUNDS_MAX - most ? (int)(ROUNDS_MAX - most) : next;
}

/* Runs rounds of the remaining ones until the time has passed. */
static void rounds_run(const struct plogp_measure *measure, const struct call *call, struct trial *trial,
                       uint64_t end_ns)
{
    int rounds = ROUNDS_LOOK;
    while (rounds > 0) {
        uint64_t start_ns = plogp_now_ns();
        block_run(measure, call, trial, rounds);
        uint64_t now_ns = plogp_now_ns();
        uint64_t next[2] = {0, 0};
        if (measure->rank == 0) {
            double round_ns = (double)(now_ns - start_ns) / rounds + 1;
            next[0] = (uint64_t)plan_next(trial, round_ns, end_ns > now_ns ? (double)(end_ns - now_ns) : 0);
            next[1] = trial->alive;
        }
        MPI_Bcast(next, 2, MPI_UINT64_T, 0, measure->sync);
        rounds = (int)next[0];
        trial->alive = next[1];
    }
}

void plogp_question_run(const struct plogp_measure *measure, struct plogp_question *question, uint64_t budget_ns)
{
    static struct trial trial;
    struct call call;
    uint64_t end_ns = plogp_now_ns() + budget_ns;
    memset(&trial, 0, sizeof(trial));
    trial.count = question->contender_count;
    trial.alive = (1ull << trial.count) - 1;
    call_prepare(measure, question, &call);
    arenas_set(measure, question);
    for (uint32_t i = 0; i < trial.count; i++) {
        trial.first_ns[i] = call_time(measure, &call, measure->arenas[i]);
        for (int warm = 0; warm < CALLS_WARM && question->bytes <= WARM_MAX_BYTES; warm++) {
            call_make(&call, measure->arenas[i]);
        }
    }
    rounds_run(measure, &call, &trial, end_ns);
    for (uint32_t i = 0; i < trial.count; i++) {
        question->contenders[i].time_ns = cw_statistics_median(trial.times[i], trial.rounds[i]);
    }
    free(call.send);
    free(call.receive);
}

/* ---- who takes part ---- */

static void contender_add(struct plogp_question *question, const struct cw_algorithm *algorithm,
                          const struct cw_parameters *parameters)
{
    for (uint32_t i = 0; i < question->contender_count; i++) {
        const struct plogp_contender *known = &question->contenders[i];
        if (known->algorithm == algorithm && known->parameters.segment_bytes == parameters->segment_bytes &&
            known->parameters.degree == parameters->degree &&
            known->parameters.concurrency == parameters->concurrency) {
            return;
        }
    }
    if (question->contender_count < PLOGP_CONTENDERS_MAX) {
        question->contenders[question->contender_count++] =
            (struct plogp_contender){.algorithm = algorithm, .parameters = *parameters};
    }
}

/* Only what the algorithm looks at, so that equals are seen. */
static struct cw_parameters parameters_of(const struct cw_candidate *candidate)
{
    uint32_t takes = candidate->algorithm->takes;
    return (struct cw_parameters){
        .segment_bytes = (takes & CW_TAKES_SEGMENT) != 0 ? candidate->parameters.segment_bytes : 0,
        .degree = (takes & CW_TAKES_DEGREE) != 0 ? candidate->parameters.degree : 0,
        .concurrency = (takes & CW_TAKES_CONCURRENCY) != 0 ? candidate->parameters.concurrency : 0,
    };
}

/* The model's segments, and two that have shown to be good: just short enough for no handshake, and a few of them. */
static void candidate_add(struct plogp_question *question, const struct cw_candidate *candidate)
{
    static const uint64_t segments[] = {SEGMENT_SMALL, SEGMENT_LARGE};
    struct cw_parameters parameters = parameters_of(candidate);
    bool has_segments = (candidate->algorithm->takes & CW_TAKES_SEGMENT) != 0;
    if (has_segments && question->bytes <= SEGMENT_SMALL) {
        return; /* one segment: the same as the algorithm without any */
    }
    if (!has_segments || parameters.segment_bytes >= CW_MEASURED_SEGMENT_LEAST) {
        contender_add(question, candidate->algorithm, &parameters);
    }
    for (size_t i = 0; i < 2 && has_segments; i++) {
        if (segments[i] < question->bytes) {
            parameters.segment_bytes = segments[i];
            contender_add(question, candidate->algorithm, &parameters);
        }
    }
}

static void contenders_find(const struct plogp_measure *measure, const struct cw_problem *problem,
                            struct plogp_question *question)
{
    static struct cw_choice choice;
    struct cw_network network;
    struct cw_choose_request request = {.problem = problem,
                                        .network = &network,
                                        .eager_max_bytes = PLOGP_EAGER_BYTES,
                                        .multicast_eager_max_bytes = PLOGP_CAST_EAGER_BYTES,
                                        .multicast = measure->path != CW_MEASURED_SHARED};
    cw_measured_network(measure->result, measure->path, problem->ranks, &network);
    if (cw_choose(&request, &choice) != CW_OK) {
        plogp_fail("no algorithm fits, or there is no memory");
    }
    for (uint32_t i = 0; i < choice.count; i++) {
        candidate_add(question, &choice.candidates[i]);
    }
    if (measure->path == CW_MEASURED_SHARED) {
        const struct cw_algorithm *host = cw_algorithm_find(problem->collective, "host");
        contender_add(question, host, &(struct cw_parameters){.segment_bytes = 0});
    }
}

void plogp_contenders(const struct plogp_measure *measure, struct plogp_question *question)
{
    struct cw_problem *problem;
    char error[200];
    uint32_t element = cw_collective_reduces(question->collective) ? sizeof(double) : 1;
    struct cw_problem_request request = {
        .collective = question->collective,
        .ranks = (uint32_t)measure->size,
        .element_bytes = element,
        .count = question->bytes / element,
    };
    if (cw_problem_create(&request, &problem, error, sizeof(error)) != CW_OK) {
        plogp_fail(error);
    }
    contenders_find(measure, problem, question);
    cw_problem_destroy(problem);
}

void plogp_fail(const char *what)
{
    fprintf(stderr, "plogp_measure: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 4);
    exit(4);
}
