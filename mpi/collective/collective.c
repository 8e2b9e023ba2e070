#include "mpi/collective/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/core/clock.h"
#include "dataplane/status.h"
#include "mpi/collective/cast.h"
#include "mpi/collective/describe.h"
#include "mpi/collective/elements.h"
#include "mpi/collective/host.h"
#include "mpi/collective/state.h"
#include "mpi/group/communicator.h"
#include "mpi/point/internal.h"
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

/* ---- by pairs ---- */

static int pair_add(struct mpi_collective *collective, enum mpi_request_kind kind, const struct mpi_side *side,
                    int block, int peer)
{
    if (mpi_side_block_bytes(side, block) == 0) {
        return MPI_SUCCESS; /* both ranks know */
    }
    if (collective->pairs == NULL) {
        collective->pairs = calloc(2 * (size_t)collective->comm->size, sizeof(*collective->pairs));
        if (collective->pairs == NULL) {
            return mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "no memory for %d messages",
                             2 * collective->comm->size);
        }
    }
    struct mpi_request *request = &collective->pairs[collective->pair_count++];
    *request = (struct mpi_request){
        .kind = kind,
        .comm = collective->comm,
        .type = mpi_side_block_type(side, block),
        .buffer = mpi_side_block_start(side, block),
        .count = mpi_side_block_count(side, block),
        .bytes = mpi_side_block_bytes(side, block),
        .peer = peer,
    };
    mpi_comm_retain(request->comm);
    mpi_type_retain(request->type);
    return MPI_SUCCESS;
}

int mpi_collective_send(struct mpi_collective *collective, const struct mpi_side *side, int block, int dest)
{
    return pair_add(collective, MPI_REQUEST_SEND, side, block, dest);
}

int mpi_collective_receive(struct mpi_collective *collective, const struct mpi_side *side, int block, int source)
{
    return pair_add(collective, MPI_REQUEST_RECEIVE, side, block, source);
}

/* In place: what is sent is taken out of the way of what comes, and travels as bytes. */
static int pairs_detach(struct mpi_collective *collective)
{
    int code = MPI_SUCCESS;
    for (int pair = 0; code == MPI_SUCCESS && collective->send_must_pack && pair < collective->pair_count; pair++) {
        if (collective->pairs[pair].kind == MPI_REQUEST_SEND) {
            code = mpi_send_copy(&collective->pairs[pair]);
        }
    }
    return code;
}

/* Receives first, so that nothing need wait for its place. */
static void pairs_start(struct mpi_collective *collective)
{
    for (int pair = 0; pair < collective->pair_count; pair++) {
        struct mpi_request *request = &collective->pairs[pair];
        request->tag = MPI_TAG_COLLECTIVE + (int)(collective->number & 0x3fffffff);
        request->is_complete = false;
        request->number = 0;
        if (request->kind == MPI_REQUEST_RECEIVE) {
            mpi_receive_start(request);
        }
    }
    for (int pair = 0; pair < collective->pair_count; pair++) {
        if (collective->pairs[pair].kind == MPI_REQUEST_SEND) {
            mpi_send_start(&collective->pairs[pair]);
        }
    }
}

/* MPI_ERR_PENDING: not all are complete. */
static int pairs_poll(const struct mpi_collective *collective)
{
    int error = MPI_SUCCESS;
    for (int pair = 0; pair < collective->pair_count; pair++) {
        if (!collective->pairs[pair].is_complete) {
            return MPI_ERR_PENDING;
        }
        error = error == MPI_SUCCESS ? collective->pairs[pair].error : error;
    }
    return error;
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

static int plan_start(struct mpi_collective *collective)
{
    char error[200];
    void *send, *receive;
    int code = mpi_plan_find(collective->comm, &collective->problem, &collective->plan, error, sizeof(error));
    if (code == MPI_SUCCESS) {
        code = sides_open(collective, collective->send_must_pack, &send, &receive);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    collective->run = mpi_run_take(collective->comm, collective->plan, send, receive,
                                   collective->op != NULL ? elements_reduce : NULL, collective);
    if (collective->run == NULL) {
        return MPI_ERR_NO_MEM;
    }
    if ((collective->plan->algorithm->needs & CW_NEEDS_MULTICAST) != 0) {
        mpi_cast_open(collective->comm);
    }
    collective->reduce_error = MPI_SUCCESS;
    collective->started_ns = cw_clock_ns();
    if (!mpi_exchange_begin(&collective->run->exchange, collective->comm, collective->number, collective->run_count,
                            mpi_describe_kind(collective))) {
        mpi_run_give(collective->run, false);
        collective->run = NULL;
        return MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
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
static int plan_poll(struct mpi_collective *collective)
{
    struct mpi_run *run = collective->run;
    int status = cw_execution_poll(run->execution);
    if (status == CW_ERROR_AGAIN ||
        !(status == CW_OK ? mpi_exchange_is_idle(&run->exchange) : run->exchange.gets_open == 0 && run->exchange.casts_open == 0)) {
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
    if (status == CW_OK) {
        sides_close(collective);
    }
    return status == CW_OK               ? collective->reduce_error
           : status == CW_ERROR_ARGUMENT ? MPI_ERR_NOT_SAME
                                         : mpi_error_of_status(status);
}

/* ---- life ---- */

static void collective_end(struct mpi_collective *collective, int code)
{
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
    int code = collective->by_pairs ? pairs_poll(collective) : plan_poll(collective);
    if (code == MPI_ERR_PENDING) {
        return 0;
    }
    collective_end(collective, code);
    return 1;
}

void mpi_collective_start(struct mpi_request *request)
{
    struct mpi_collective *collective = request->collective;
    int code = collective->by_pairs ? pairs_detach(collective) : plan_start(collective);
    if (code != MPI_SUCCESS) {
        collective_end(collective, code);
        return;
    }
    if (collective->by_pairs) {
        pairs_start(collective);
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
    collective->number = collective->comm->collectives->next_number++;
    return MPI_SUCCESS;
}

/* A blocking call by shared memory. */
static int host_block(struct mpi_collective *collective)
{
    void *send, *receive;
    MPI_Comm comm = collective->comm->handle;
    char why[WHY_BYTES];
    int code =
        sides_open(collective, collective->send_must_pack && !mpi_host_takes_in_place(collective), &send, &receive);
    if (code == MPI_SUCCESS) {
        code = mpi_host_run(collective, send, receive);
    } else {
        mpi_host_abandon(collective);
    }
    if (code == MPI_SUCCESS) {
        sides_close(collective);
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
    if (mpi_host_serves(collective)) {
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
