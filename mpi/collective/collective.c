#include "mpi/collective/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/recording.h"
#include "dataplane/core/clock.h"
#include "dataplane/status.h"
#include "mpi/collective/cast.h"
#include "mpi/collective/describe.h"
#include "mpi/collective/elements.h"
#include "mpi/collective/host.h"
#include "mpi/collective/pairs.h"
#include "mpi/collective/pattern.h"
#include "mpi/collective/phases.h"
#include "mpi/collective/record.h"
#include "mpi/collective/replay.h"
#include "mpi/collective/state.h"
#include "mpi/collective/vote.h"
#include "mpi/group/communicator.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"

enum { WHY_BYTES = 400 };

/* Calls come and go all the time: freed ones are kept. */
static struct mpi_collective *spare_first;

static struct mpi_collective *collective_take(void)
{
    struct mpi_collective *taken = spare_first;
    if (taken == NULL) {
        return calloc(1, sizeof(*taken));
    }
    spare_first = taken->next_spare;
    *taken = (struct mpi_collective){.is_joined = false};
    return taken;
}

void mpi_collective_spares_free(void)
{
    while (spare_first != NULL) {
        struct mpi_collective *spare = spare_first;
        spare_first = spare->next_spare;
        free(spare);
    }
}

int mpi_collective_make(const char *name, MPI_Comm comm, int root, struct mpi_collective **collective)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (root < -1 || root >= found->size) {
        return mpi_error(comm, MPI_ERR_ROOT, "root %d is none of the %d ranks of %s", root, found->size, found->name);
    }
    struct mpi_collectives *collectives = mpi_collectives_of(found);
    struct mpi_collective *made = collectives == NULL ? NULL : collective_take();
    if (made == NULL) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for a collective call");
    }
    made->name = name;
    made->comm = found;
    made->ordinal = ++collectives->call_count;
    made->problem = (struct cw_problem_request){
        .ranks = (uint32_t)found->size,
        .root = root < 0 ? 0 : (uint32_t)root,
        .element_bytes = 1,
    };
    mpi_comm_retain(found);
    *collective = made;
    return MPI_SUCCESS;
}

void mpi_collective_destroy(struct mpi_collective *collective)
{
    if (collective == NULL) {
        return;
    }
    for (int pair = 0; pair < collective->pair_count; pair++) {
        mpi_request_release(&collective->pairs[pair]);
    }
    mpi_side_dispose(&collective->send);
    mpi_side_dispose(&collective->receive);
    if (collective->element != NULL) {
        mpi_type_release(collective->element);
    }
    if (collective->op != NULL) {
        mpi_op_release(collective->op);
    }
    mpi_pattern_free(collective->pattern);
    mpi_vote_free(collective->vote);
    mpi_comm_release(collective->comm);
    void *const memory[] = {collective->why, collective->pairs, collective->counts, collective->send_packed,
                            collective->receive_packed};
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
        if (memory[i] != NULL) { /* most calls have none */
            free(memory[i]);
        }
    }
    collective->next_spare = spare_first;
    spare_first = collective;
}

/* ---- by a plan ---- */

/* Combines packed elements. Derived types are laid out as the operation's function expects them. */
static void elements_reduce(void *context, void *to, const void *left, const void *right, uint64_t count)
{
    struct mpi_collective *collective = context;
    int code = mpi_elements_reduce(collective->op, collective->element, left, right, to, (MPI_Count)count);
    collective->reduce_error = code != MPI_SUCCESS ? code : collective->reduce_error;
}

/* Where a plan reads or writes: in place, or in memory that is packed from, or unpacked to, the side. NULL: no memory. */
static void *side_memory(const struct mpi_side *side, bool must_pack, uint8_t **packed)
{
    if (side->bytes == 0) {
        return "";
    }
    void *place = must_pack ? NULL : mpi_side_in_place(side);
    if (place == NULL && *packed == NULL) {
        *packed = malloc((size_t)side->bytes);
    }
    return place != NULL ? place : *packed;
}

/* Both sides as problem.h wants them. */
static int sides_open(struct mpi_collective *collective, bool send_must_pack, void **send, void **receive)
{
    *send = side_memory(&collective->send, send_must_pack, &collective->send_packed);
    *receive = side_memory(&collective->receive, collective->receive_is_dropped, &collective->receive_packed);
    if (*send == NULL || *receive == NULL) {
        return MPI_ERR_NO_MEM;
    }
    if (collective->send_packed != NULL) {
        mpi_side_pack(&collective->send, collective->send_packed);
    }
    return MPI_SUCCESS;
}

static void sides_close(struct mpi_collective *collective)
{
    if (collective->receive_packed != NULL && !collective->receive_is_dropped) {
        mpi_side_unpack(&collective->receive, collective->receive_packed);
    }
}

/* Runs a plan as call `number` of the communicator. MPI_SUCCESS or MPI_ERR_NO_MEM, not raised. */
static int plan_run(struct mpi_collective *collective, struct mpi_plan *plan, uint32_t number, const void *send,
                    void *receive)
{
    collective->plan = plan;
    collective->algorithm = plan->algorithm;
    collective->run = mpi_run_take(collective->comm, plan, send, receive,
                                   collective->op != NULL ? elements_reduce : NULL, collective);
    if (collective->run == NULL) {
        return MPI_ERR_NO_MEM;
    }
    if ((collective->plan->algorithm->needs & CW_NEEDS_MULTICAST) != 0) {
        mpi_cast_open(collective->comm);
    }
    collective->reduce_error = MPI_SUCCESS;
    collective->started_ns = cw_clock_ns();
    if (!mpi_exchange_begin(&collective->run->exchange, collective->comm, number, collective->run_count,
                            mpi_describe_kind(collective))) {
        mpi_run_give(collective->run, false);
        collective->run = NULL;
        return MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
}

static int plan_start(struct mpi_collective *collective, struct mpi_plan *plan, uint32_t number)
{
    char error[200];
    void *send = NULL, *receive = NULL;
    int code = MPI_SUCCESS;
    if (plan == NULL) {
        code = mpi_plan_find(collective->comm, &collective->problem, &plan, error, sizeof(error));
    }
    if (code == MPI_SUCCESS) {
        code = sides_open(collective, collective->send_must_pack, &send, &receive);
    }
    return code != MPI_SUCCESS ? code : plan_run(collective, plan, number, send, receive);
}

/* The ranks' calls do not match: keeps in which way, for who raises the error. */
static void mismatch_note(struct mpi_collective *collective)
{
    const struct mpi_run *run = collective->run;
    char text[400];
    cw_execution_describe(run->execution, text, sizeof(text));
    free(collective->why);
    collective->why = strdup(run->exchange.why[0] != '\0' ? run->exchange.why : text);
}

/* MPI_ERR_PENDING: not yet at its end. */
static int run_poll(struct mpi_collective *collective)
{
    struct mpi_run *run = collective->run;
    int status = cw_execution_poll(run->execution);
    if (status == CW_ERROR_AGAIN) {
        return MPI_ERR_PENDING;
    }
    if (status != CW_OK) {
        mpi_cast_abandon(&run->exchange);
    }
    /* after a failure nobody will get what was offered; but what reads or writes memory of this call must end */
    bool may_end = status == CW_OK ? mpi_exchange_is_idle(&run->exchange)
                                   : run->exchange.gets_open == 0 && run->exchange.casts_open == 0;
    if (!may_end) {
        return MPI_ERR_PENDING;
    }
    if (status == CW_ERROR_ARGUMENT) {
        mismatch_note(collective);
    }
    mpi_exchange_end(&run->exchange);
    collective->plan->calls++;
    collective->plan->measured_ns += cw_clock_ns() - collective->started_ns;
    mpi_run_give(run, status == CW_OK);
    collective->run = NULL;
    return status == CW_OK               ? collective->reduce_error
           : status == CW_ERROR_ARGUMENT ? MPI_ERR_NOT_SAME
                                         : mpi_error_of_status(status);
}

static int plan_poll(struct mpi_collective *collective)
{
    int code = run_poll(collective);
    if (code == MPI_SUCCESS) {
        sides_close(collective);
    }
    return code;
}

void mpi_collective_refuse(struct mpi_collective *collective, const struct mpi_refusal *refusal)
{
    mpi_exchange_refuse(collective->comm, collective->comm->collectives->next_number++, 0, refusal);
}

/* ---- by a plan whose counts are exchanged first, or by phases ---- */

/* The others are waiting, and are told that this rank fails. */
static void pattern_refuse(const struct mpi_collective *collective, uint32_t number)
{
    const struct mpi_refusal refusal = {.reason = MPI_REFUSAL_FAILED, .peer = -1};
    mpi_exchange_refuse(collective->comm, number, collective->run_count, &refusal);
}

/* What comes first is numbered as the call, what follows by the next number: vote, exchange of counts, data. */
static uint32_t exchange_number(const struct mpi_collective *collective)
{
    return collective->vote != NULL ? collective->number + 1 : collective->number;
}

static uint32_t data_number(const struct mpi_collective *collective)
{
    return collective->pattern->phases != NULL ? collective->number : exchange_number(collective) + 1;
}

static int data_start(struct mpi_collective *collective)
{
    struct mpi_phases *phases = collective->pattern->phases;
    int code = phases == NULL ? MPI_SUCCESS : mpi_pattern_check(collective);
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = plan_start(collective, phases == NULL ? NULL : mpi_phases_plan(phases), data_number(collective));
    if (code != MPI_SUCCESS) {
        pattern_refuse(collective, data_number(collective));
    }
    return code;
}

static int pattern_start(struct mpi_collective *collective)
{
    struct mpi_pattern *pattern = collective->pattern;
    const struct cw_problem_request exchange = mpi_pattern_exchange(collective);
    struct mpi_plan *plan;
    char error[200];
    if (pattern->phases != NULL || pattern->is_known) {
        return data_start(collective);
    }
    int code = mpi_plan_find(collective->comm, &exchange, &plan, error, sizeof(error));
    if (code == MPI_SUCCESS) {
        pattern->is_exchanging = collective->exchanges = true;
        code = plan_run(collective, plan, exchange_number(collective), pattern->own, pattern->all);
    }
    if (code != MPI_SUCCESS) {
        pattern_refuse(collective, exchange_number(collective));
    }
    return code;
}

static int pattern_poll(struct mpi_collective *collective)
{
    struct mpi_pattern *pattern = collective->pattern;
    int code = pattern->is_exchanging ? run_poll(collective) : plan_poll(collective);
    if (code == MPI_ERR_PENDING || !pattern->is_exchanging) {
        return code;
    }
    pattern->is_exchanging = false;
    code = code == MPI_SUCCESS ? mpi_pattern_settle(collective) : code;
    code = code == MPI_SUCCESS ? data_start(collective) : code;
    return code == MPI_SUCCESS ? pattern_poll(collective) : code; /* at once: who waits may go to sleep next */
}

/* ---- by a plan from a file, on which the ranks may have to agree first ---- */

/* Runs the vote; `booked` and what follows is known when it is over. */
static int vote_start(struct mpi_collective *collective)
{
    struct mpi_vote *vote = collective->vote;
    const struct cw_problem_request exchange = mpi_vote_exchange(collective);
    struct mpi_plan *plan;
    char error[200];
    int code = mpi_plan_find(collective->comm, &exchange, &plan, error, sizeof(error));
    if (code == MPI_SUCCESS) {
        vote->is_under_way = true;
        code = plan_run(collective, plan, collective->number, mpi_vote_own(vote, exchange.ranks), vote->all);
    }
    if (code != MPI_SUCCESS) {
        vote->is_under_way = false;
        pattern_refuse(collective, collective->number);
    }
    return code;
}

static int booked_start(struct mpi_collective *collective)
{
    uint32_t number = exchange_number(collective);
    int code = plan_start(collective, mpi_replay_plan(collective->booked), number);
    if (code != MPI_SUCCESS && collective->vote != NULL) {
        pattern_refuse(collective, number);
    }
    return code;
}

/* ---- life ---- */

static int begin(struct mpi_collective *collective)
{
    if (collective->vote != NULL && !collective->vote->is_over) {
        return vote_start(collective);
    }
    return collective->booked != NULL    ? booked_start(collective)
           : collective->by_pairs        ? mpi_pairs_detach(collective)
           : collective->pattern != NULL ? pattern_start(collective)
                                         : plan_start(collective, NULL, collective->number);
}

static int vote_poll(struct mpi_collective *collective);

static int poll_any(struct mpi_collective *collective)
{
    if (collective->vote != NULL && collective->vote->is_under_way) {
        return vote_poll(collective);
    }
    return collective->by_pairs          ? mpi_pairs_poll(collective)
           : collective->pattern != NULL ? pattern_poll(collective)
                                         : plan_poll(collective);
}

static int vote_poll(struct mpi_collective *collective)
{
    int code = run_poll(collective);
    if (code == MPI_ERR_PENDING) {
        return code;
    }
    collective->vote->is_under_way = false;
    code = code == MPI_SUCCESS ? mpi_vote_settle(collective) : code;
    code = code == MPI_SUCCESS ? begin(collective) : code;
    if (code == MPI_SUCCESS && collective->by_pairs) {
        mpi_pairs_start(collective);
    }
    return code == MPI_SUCCESS ? poll_any(collective) : code; /* at once: who waits may go to sleep next */
}

static bool is_timed(void)
{
    return mpi_record_is_on() || mpi_replay_is_on();
}

/* What has carried the call out, and in what time, for those who want to know. */
static void account(struct mpi_collective *collective, bool by_host)
{
    const struct mpi_replay_entry *booked = collective->booked;
    uint64_t took_ns = cw_clock_ns() - collective->begun_ns;
    bool by_plan = !by_host && !collective->by_pairs;
    bool is_served = by_plan && booked != NULL && collective->plan == mpi_replay_plan(booked);
    mpi_replay_count(collective, is_served, took_ns);
    if (mpi_record_is_on()) {
        mpi_record_call(collective,
                        by_host    ? MPI_HOST_NAME
                        : !by_plan ? CW_RECORDING_BY_PAIRS
                                   : collective->algorithm->name,
                        (is_served ? CW_RECORDING_PLANNED : 0u) | (collective->exchanges ? CW_RECORDING_EXCHANGED : 0u),
                        took_ns);
    }
}

static void collective_end(struct mpi_collective *collective, int code)
{
    if (code == MPI_SUCCESS && collective->begun_ns != 0) {
        account(collective, false);
    }
    if (collective->is_joined) {
        mpi_progress_leave(&collective->user);
        collective->is_joined = false;
    }
    collective->run_count++;
    if (collective->after != NULL) {
        int after = collective->after->end(collective->after);
        collective->after = NULL;
        code = code == MPI_SUCCESS ? after : code;
    }
    mpi_request_complete(collective->request, code);
}

static uint32_t collective_turn(struct mpi_progress_user *user)
{
    struct mpi_collective *collective = (struct mpi_collective *)user;
    int code = poll_any(collective);
    if (code == MPI_ERR_PENDING) {
        return 0;
    }
    collective_end(collective, code);
    return 1;
}

void mpi_collective_start(struct mpi_request *request)
{
    struct mpi_collective *collective = request->collective;
    collective->exchanges = false;
    collective->begun_ns = is_timed() ? cw_clock_ns() : 0;
    int code = begin(collective);
    if (code != MPI_SUCCESS) {
        collective_end(collective, code);
        return;
    }
    if (collective->by_pairs) {
        mpi_pairs_start(collective);
    }
    collective->user.turn = collective_turn;
    collective->is_joined = true;
    mpi_progress_join(&collective->user);
    (void)collective_turn(&collective->user);
}

void mpi_collective_after(MPI_Request request, struct mpi_after *after)
{
    struct mpi_request *found = mpi_request_find(request);
    if (!found->is_complete) {
        found->collective->after = after;
        return;
    }
    int code = after->end(after);
    found->error = found->error == MPI_SUCCESS ? code : found->error;
}

/* A request for the call, which from now on belongs to it. */
static int request_make(struct mpi_collective *collective, struct mpi_request **request)
{
    *request = mpi_request_make(MPI_REQUEST_COLLECTIVE);
    if (*request == NULL) {
        int code = mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "no memory for a request");
        mpi_collective_destroy(collective);
        return code;
    }
    (*request)->collective = collective;
    (*request)->comm = collective->comm;
    mpi_comm_retain(collective->comm);
    collective->request = *request;
    collective->number = collective->comm->collectives->next_number;
    const bool is_exchanged = collective->pattern != NULL && collective->pattern->phases == NULL;
    collective->comm->collectives->next_number += collective->vote != NULL ? 3 : is_exchanged ? 2 : 1;
    return MPI_SUCCESS;
}

/* A blocking call by shared memory. */
static int host_block(struct mpi_collective *collective)
{
    void *send, *receive;
    MPI_Comm comm = collective->comm->handle;
    char why[WHY_BYTES];
    collective->begun_ns = is_timed() ? cw_clock_ns() : 0;
    int code =
        sides_open(collective, collective->send_must_pack && !mpi_host_takes_in_place(collective), &send, &receive);
    if (code == MPI_SUCCESS) {
        code = mpi_host_run(collective, send, receive);
    } else {
        mpi_host_abandon(collective);
    }
    if (code == MPI_SUCCESS) {
        sides_close(collective);
        if (collective->begun_ns != 0) {
            account(collective, true);
        }
    } else {
        snprintf(why, sizeof(why), "%s", mpi_host_why(collective));
    }
    mpi_collective_destroy(collective);
    return code == MPI_SUCCESS ? MPI_SUCCESS : mpi_error(comm, code, "%s", why[0] != 0 ? why : mpi_error_text(code));
}

int mpi_collective_block(int code, struct mpi_collective *collective)
{
    struct mpi_request *request;
    if (code != MPI_SUCCESS) {
        mpi_collective_destroy(collective);
        return code;
    }
    collective->booked = mpi_replay_find(collective);
    if (collective->booked == NULL && mpi_host_serves(collective)) {
        return host_block(collective);
    }
    code = request_make(collective, &request);
    if (code != MPI_SUCCESS) {
        return code;
    }
    MPI_Comm comm = collective->comm->handle;
    mpi_collective_start(request);
    mpi_request_await(request);
    code = request->error;
    char why[WHY_BYTES];
    if (code != MPI_SUCCESS) {
        snprintf(why, sizeof(why), "%s", collective->why != NULL ? collective->why : mpi_error_text(code));
    }
    mpi_request_destroy(request);
    return code == MPI_SUCCESS ? MPI_SUCCESS : mpi_error(comm, code, "%s", why);
}

int mpi_collective_give(int code, struct mpi_collective *collective, MPI_Request *request)
{
    struct mpi_request *made;
    if (code != MPI_SUCCESS) {
        mpi_collective_destroy(collective);
        return code;
    }
    collective->booked = mpi_replay_find(collective);
    collective->mode = CW_RECORDING_NONBLOCKING;
    code = request_make(collective, &made);
    if (code == MPI_SUCCESS && mpi_request_handle_make(made) != MPI_SUCCESS) {
        code = mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "too many requests at a time");
        mpi_request_destroy(made);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    *request = made->handle;
    mpi_request_start(made);
    return MPI_SUCCESS;
}

int mpi_collective_keep(int code, struct mpi_collective *collective, MPI_Info info, MPI_Request *request)
{
    struct mpi_request *made;
    (void)info; /* no hint is known yet */
    if (code != MPI_SUCCESS) {
        mpi_collective_destroy(collective);
        return code;
    }
    collective->booked = mpi_replay_find(collective);
    collective->mode = CW_RECORDING_PERSISTENT;
    code = request_make(collective, &made);
    if (code == MPI_SUCCESS && mpi_request_handle_make(made) != MPI_SUCCESS) {
        code = mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "too many requests at a time");
        mpi_request_destroy(made);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    made->is_persistent = true;
    *request = made->handle;
    return MPI_SUCCESS;
}
