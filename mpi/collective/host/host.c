#include "mpi/collective/host/host.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/base/clock.h"
#include "dataplane/status.h"
#include "mpi/collective/choice/choice.h"
#include "mpi/collective/host/state.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/state/process.h"

enum {
    HOST_SPINS = 200, /* looks before anything else is done meanwhile, where a rank has a core of its own */
    HOST_YIELDS = 4,  /* ... if ranks share cores: the awaited rank is on this host */
};

struct service {
    mpi_host_stage *copied; /* through the slots */
    mpi_host_stage *direct; /* long blocks; NULL: never */
    bool in_place; /* `copied` may find what is sent in the receive buffer; `direct`: see mpi_host_accepts_in_place */
    bool by_block; /* slots are shared by the blocks of all ranks */
};

static const struct service services[CW_COLLECTIVE_COUNT] = {
    [CW_BARRIER] = {.copied = host_barrier},
    [CW_BCAST] = {.copied = host_bcast, .direct = host_bcast_direct},
    [CW_SCATTER] = {.copied = host_scatter, .direct = host_scatter_direct, .by_block = true},
    [CW_GATHER] = {.copied = host_gather, .direct = host_gather_direct, .in_place = true},
    [CW_ALLGATHER] = {.copied = host_allgather, .direct = host_allgather_direct, .in_place = true},
    [CW_ALLTOALL] = {.copied = host_alltoall, .direct = host_alltoall_direct, .in_place = true, .by_block = true},
    [CW_REDUCE] = {.copied = host_reduce, .in_place = true},
    [CW_ALLREDUCE] = {.copied = host_allreduce, .in_place = true},
    [CW_REDUCE_SCATTER] = {.copied = host_reduce_scatter, .by_block = true},
    [CW_SCAN] = {.copied = host_scan, .in_place = true},
    [CW_EXSCAN] = {.copied = host_scan, .in_place = true},
};

/* ---- A call ---- */

static uint32_t class_of(uint64_t bytes)
{
    return bytes == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(bytes);
}

/* Bytes of a block, or the mean of unequal ones. */
static uint64_t mean_bytes(const struct mpi_collective *of)
{
    uint64_t count = of->problem.count;
    for (uint32_t rank = 0; of->counts != NULL && rank < of->problem.ranks; rank++) {
        count += of->counts[rank];
    }
    count *= of->problem.element_bytes;
    return of->counts != NULL ? count / of->problem.ranks : count;
}

uint8_t *host_kept(uint8_t verdicts[2][CW_COLLECTIVE_COUNT][HOST_SIZE_CLASSES], const struct mpi_collective *call)
{
    return &verdicts[call->counts != NULL][call->problem.collective][class_of(mean_bytes(call))];
}

/* Of everything that must be the same at all ranks. */
static uint64_t signature_of(const struct mpi_host_call *call)
{
    const struct mpi_collective *of = call->of;
    uint64_t hash = host_mix(call->collective + 1, call->root);
    hash = host_mix(hash, of->problem.element_bytes << 1 | of->problem.ordered);
    if (of->op != NULL && of->op->predefined) {
        hash = host_mix(hash, (uintptr_t)of->op->handle);
    }
    hash = host_mix(hash, call->bytes);
    for (uint32_t member = 0; call->counts != NULL && member < call->members; member++) {
        hash = host_mix(hash, call->counts[member]);
    }
    return hash;
}

static bool goes_direct(const struct mpi_host *host, enum cw_collective collective, uint64_t bytes)
{
    return services[collective].direct != NULL && host->copies_once && bytes >= HOST_DIRECT_MIN_BYTES;
}

/* Prepares a call before it begins: collective, root, bytes and counts are set. */
static void call_prepare(struct mpi_host_call *call, struct mpi_host *host, const struct mpi_collective *of)
{
    const struct service *service = &services[call->collective];
    uint64_t mean = call->counts == NULL ? call->bytes : mean_bytes(of);
    call->host = host;
    call->segment = &host->segment;
    call->of = of;
    call->member = host->segment.member;
    call->members = host->members;
    call->element = of->problem.element_bytes;
    uint64_t longest = host_longest_block(call);
    bool direct = goes_direct(host, call->collective, mean);
    uint64_t blocks = service->by_block ? call->members : 1;
    call->is_short = direct || (longest <= CW_SEGMENT_SHORT_BYTES && longest * blocks <= CW_SEGMENT_SHORT_BYTES);
    call->slot_bytes = call->is_short ? CW_SEGMENT_SHORT_BYTES : CW_SEGMENT_LONG_BYTES;
    call->entry = (struct cw_segment_call){
        .signature = signature_of(call),
        .bytes = mean_bytes(of),
        .kind = of->problem.collective,
        .root = of->problem.root,
    };
    call->next = direct ? service->direct : service->copied;
}

static void call_enter(const struct mpi_host_call *call)
{
    cw_segment_enter(call->segment, call->host->round + 1, &call->entry);
}

/* ---- Blocking calls that are one host op ---- */

/* Whether the whole call is one host op, and the origin of that choice; kept per class of sizes. */
static bool verdict_on(const struct mpi_collective *call, enum cw_measured_origin *origin)
{
    uint8_t *kept = host_kept(call->comm->collectives->host_verdicts, call);
    if (*kept == 0) {
        struct mpi_choice choice;
        char error[200];
        bool is_host = mpi_choice_find(call->comm, &call->problem, true, &choice, error, sizeof(error)) == CW_OK &&
                       (choice.algorithm->needs & CW_NEEDS_ONE_HOST) != 0;
        *kept = (uint8_t)(is_host ? 2 + (int)choice.origin : 1);
    }
    *origin = (enum cw_measured_origin)(*kept - 2);
    return *kept > 1;
}

/* Whether all ranks know all sizes. */
static bool is_known(const struct mpi_collective *call)
{
    return !call->has_rows && call->count_matrix == NULL && !call->by_pairs && call->scatterv == NULL;
}

bool mpi_host_fits(const struct mpi_collective *call)
{
    bool is_scatterv = call->problem.collective == CW_SCATTER && call->counts != NULL;
    uint64_t blocks = services[call->problem.collective].by_block ? (uint32_t)call->comm->size : 1u;
    return is_known(call) && !is_scatterv && call->problem.element_bytes * blocks <= CW_SEGMENT_LONG_BYTES;
}

/* Whether what was prepared for an earlier call is right for this one. */
static bool is_prepared(const struct host_prepared *prepared, const struct mpi_collective *of)
{
    const struct cw_problem_request *before = &prepared->problem, *problem = &of->problem;
    return problem->counts == NULL && before->counts == NULL && before->count == problem->count &&
           before->root == problem->root && before->element_bytes == problem->element_bytes &&
           before->ordered == problem->ordered && prepared->op == of->op;
}

static void prepare(struct host_prepared *prepared, struct mpi_host *host, const struct mpi_collective *of)
{
    enum cw_measured_origin origin;
    *prepared = (struct host_prepared){
        .problem = of->problem,
        .op = of->op,
        .is_served = mpi_host_fits(of) && verdict_on(of, &origin),
        .call =
            {
                .collective = of->problem.collective,
                .root = of->problem.root,
                .bytes = of->counts == NULL ? of->problem.count * of->problem.element_bytes : 0,
                .counts = of->counts,
            },
    };
    call_prepare(&prepared->call, host, of);
}

bool mpi_host_serves(const struct mpi_collective *call)
{
    struct mpi_host *host = call->comm->collectives->host;
    if (!mpi_host_has_levels(call->comm, call->comm->collectives->next_number) || host->ranks != NULL ||
        host->parts != NULL || !is_known(call)) {
        return false;
    }
    struct host_prepared *prepared = &host->prepared[call->problem.collective];
    if (!is_prepared(prepared, call)) {
        prepare(prepared, host, call);
    }
    return prepared->is_served;
}

uint32_t *mpi_host_kept_kind(const struct mpi_collective *call)
{
    return &call->comm->collectives->host->prepared[call->problem.collective].kind;
}

bool mpi_host_is_whole(const struct mpi_host *host, uint64_t run)
{
    char text[CW_SEGMENT_WHY_BYTES];
    uint64_t call;
    if (host->segment.shared == NULL || !cw_segment_is_broken(&host->segment)) {
        return true;
    }
    (void)cw_segment_why(&host->segment, &call, text, sizeof(text));
    return call >= run; /* this one finds out itself, and says so */
}

bool mpi_host_has_levels(const struct mpi_comm *comm, uint32_t number)
{
    struct mpi_collectives *collectives = comm->collectives;
    if (collectives->levels != NULL && !collectives->are_levels_over) {
        collectives->are_levels_over = !mpi_host_is_whole(collectives->host, number);
    }
    return collectives->levels != NULL && !collectives->are_levels_over;
}

bool mpi_host_accepts_in_place(const struct mpi_collective *call)
{
    /* alltoall: others read what this rank would already have overwritten */
    return services[call->problem.collective].in_place &&
           (call->problem.collective != CW_ALLTOALL ||
            !goes_direct(call->comm->collectives->host, CW_ALLTOALL, mean_bytes(call)));
}

const char *mpi_host_why(const struct mpi_collective *call)
{
    return call->comm->collectives->host->why;
}

void mpi_host_reconsider(struct mpi_comm *comm)
{
    if (comm->collectives != NULL) {
        if (comm->collectives->host != NULL) {
            memset(comm->collectives->host->prepared, 0, sizeof(comm->collectives->host->prepared));
        }
        memset(comm->collectives->host_verdicts, 0, sizeof(comm->collectives->host_verdicts));
        memset(comm->collectives->levels_verdicts, 0, sizeof(comm->collectives->levels_verdicts));
    }
}

static void account(const struct mpi_host_call *call, uint64_t took_ns)
{
    uint64_t bytes = mean_bytes(call->of);
    struct host_account *account = &call->host->accounts[call->collective][class_of(bytes)];
    account->calls++;
    (void)verdict_on(call->of, &account->origin);
    account->measured_ns += took_ns;
    account->bytes = bytes;
}

/* For flags that notify the others that this rank fails. */
static struct mpi_host_call failing_call(struct mpi_host *host, uint64_t number)
{
    return (struct mpi_host_call){
        .host = host,
        .segment = &host->segment,
        .member = host->segment.member,
        .members = host->members,
        .number = number,
    };
}

void mpi_host_abandon(struct mpi_collective *of, uint32_t number)
{
    struct mpi_host *host = of->comm->collectives->host;
    struct mpi_host_call call = failing_call(host, number);
    snprintf(host->why, sizeof(host->why), "rank %d has no memory for its part", of->comm->rank);
    (void)host_break(&call, MPI_ERR_NO_MEM);
}

bool mpi_host_kind(const struct mpi_host *host, uint32_t *kind)
{
    bool is_under_way = host != NULL && host->blocking != NULL;
    *kind = is_under_way ? host->blocking_kind : 0;
    return is_under_way;
}

bool mpi_host_mismatch(struct mpi_comm *comm, int peer)
{
    struct mpi_host *host = comm->collectives->host;
    if (host == NULL || host->blocking == NULL) {
        return false;
    }
    (void)host_differs(host->blocking, peer);
    (void)host_break(host->blocking, MPI_ERR_NOT_SAME);
    return true;
}

static bool is_over(void *context)
{
    struct mpi_host_call *call = context;
    if (++call->looks % HOST_LOOKS_BEFORE_DOUBT == 0) {
        host_doubt(call);
    }
    return host_has_arrived(call) || cw_segment_is_broken(call->segment);
}

static void doze(void *context, bool asleep)
{
    struct mpi_host_call *call = context;
    if (asleep) {
        host_doubt(call);
    }
    cw_segment_doze(call->segment, asleep);
}

static void describe(void *context, struct mpi_said *said)
{
    const struct mpi_host_call *call = context;
    mpi_collective_describe(call->of, said);
    host_describe(call, call->owner, said);
}

/* Until what the call awaits has come, or never will. */
static void word_wait(struct mpi_host_call *call)
{
    for (uint32_t i = 0; mpi_process.spin_rounds > 0 && i < HOST_SPINS; i++) {
        __builtin_ia32_pause(); /* host_poll has just looked */
        if (host_has_arrived(call)) {
            return;
        }
    }
    for (uint32_t i = 0; mpi_process.spin_rounds == 0 && i < HOST_YIELDS; i++) {
        sched_yield();
        if (host_has_arrived(call)) {
            return;
        }
    }
    mpi_progress_wait(&(struct mpi_wait){.is_over = is_over, .doze = doze, .describe = describe, .context = call});
}

int mpi_host_run(struct mpi_collective *of, uint32_t number, uint32_t kind, const void *send, void *receive)
{
    struct mpi_host *host = of->comm->collectives->host;
    struct mpi_host_call call = host->prepared[of->problem.collective].call;
    call.of = of;
    call.number = number;
    call.send = send;
    call.receive = receive;
    if (cw_segment_is_broken(&host->segment)) {
        return host_broken(&call);
    }
    uint64_t started_ns = host->accounts != NULL ? cw_clock_ns() : 0;
    int code;
    host->blocking = &call;
    host->blocking_kind = kind;
    call_enter(&call);
    while ((code = host_poll(&call)) == MPI_ERR_PENDING) {
        word_wait(&call);
    }
    host->blocking = NULL;
    if (host->accounts != NULL) {
        account(&call, cw_clock_ns() - started_ns);
    }
    return code != MPI_SUCCESS ? code : call.reduce_error;
}

/* ---- Host ops of schedules ---- */

/* All that are in progress in this process. */
static struct mpi_host_part *running; /* by next_running */

void mpi_host_part_begin(struct mpi_host_part *part, struct mpi_host *host, const struct mpi_collective *of,
                         uint64_t number, uint32_t ops)
{
    struct mpi_host_part **link = &host->parts;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *part = (struct mpi_host_part){.host = host, .of = of, .number = number, .left = ops};
    *link = part;
}

static void part_leave(struct mpi_host_part *part)
{
    struct mpi_host_part **link = &part->host->parts;
    while (*link != NULL && *link != part) {
        link = &(*link)->next;
    }
    if (*link == part) {
        *link = part->next;
    }
}

static void part_doze(struct mpi_host_part *part, bool asleep)
{
    if (part->is_dozing != asleep) {
        part->is_dozing = asleep;
        cw_segment_doze(part->call.segment, asleep);
    }
}

static void running_leave(struct mpi_host_part *part)
{
    struct mpi_host_part **link = &running;
    while (*link != NULL && *link != part) {
        link = &(*link)->next_running;
    }
    if (*link == part) {
        *link = part->next_running;
        part_doze(part, false);
    }
    part->is_running = false;
}

void mpi_host_part_end(struct mpi_host_part *part, bool has_failed)
{
    if (part->host == NULL) {
        return;
    }
    if (has_failed && !cw_segment_is_broken(&part->host->segment)) {
        struct mpi_host_call call = failing_call(part->host, part->number);
        snprintf(part->host->why, sizeof(part->host->why), "a call failed at rank %d", part->host->comm->rank);
        (void)host_break(&call, MPI_ERR_OTHER);
    }
    running_leave(part);
    part_leave(part);
    part->host = NULL;
}

/* The result of the op in progress: continue with the next one, of this schedule or of another. */
static int part_close(struct mpi_host_part *part, int code)
{
    running_leave(part);
    part->reduce_error = part->call.reduce_error != MPI_SUCCESS ? part->call.reduce_error : part->reduce_error;
    if (code == MPI_SUCCESS && --part->left == 0) {
        part_leave(part);
    }
    return code;
}

static int part_run(struct mpi_host_part *part)
{
    const struct cw_transport_host *op = &part->op;
    const struct mpi_host *host = part->host;
    uint32_t root = 0;
    while (cw_collective_rooted(op->collective) && (uint32_t)host_rank(host, root) != op->root) {
        root++;
    }
    part->is_asked = false;
    if (cw_segment_is_broken(&host->segment)) {
        struct mpi_host_call failing = failing_call(part->host, part->number);
        return host_broken(&failing);
    }
    const struct cw_problem_request *problem = &part->of->problem;
    part->call = (struct mpi_host_call){
        .collective = op->collective,
        .root = root,
        .bytes = !op->is_whole             ? op->bytes
                 : problem->counts == NULL ? problem->count * problem->element_bytes
                                           : 0,
        .counts = op->is_whole ? part->of->counts : NULL,
        .number = part->number,
        .send = op->from,
        .receive = op->to,
    };
    call_prepare(&part->call, part->host, part->of);
    call_enter(&part->call);
    part->is_running = true;
    part->next_running = running;
    running = part;
    int code = host_poll(&part->call);
    return code == MPI_ERR_PENDING ? code : part_close(part, code);
}

int mpi_host_part_start(struct mpi_host_part *part, const struct cw_transport_host *op)
{
    part->op = *op;
    part->is_asked = true;
    return mpi_host_part_poll(part);
}

int mpi_host_part_poll(struct mpi_host_part *part)
{
    if (part->host == NULL || (!part->is_asked && !part->is_running)) {
        return MPI_ERR_PENDING;
    }
    if (part->is_asked) {
        return part->host->parts == part && part->host->blocking == NULL ? part_run(part) : MPI_ERR_PENDING;
    }
    int code = host_poll(&part->call);
    return code == MPI_ERR_PENDING ? code : part_close(part, code);
}

bool mpi_host_part_describe(const struct mpi_host_part *part, struct mpi_said *said)
{
    if (part->host != NULL && part->is_running && part->call.word != NULL) {
        host_describe(&part->call, part->call.owner, said);
        return true;
    }
    return false;
}

const char *mpi_host_part_why(const struct mpi_host_part *part)
{
    return part->host->why;
}

void mpi_host_doze(bool asleep)
{
    for (struct mpi_host_part *part = running; part != NULL; part = part->next_running) {
        if (asleep) {
            host_doubt(&part->call);
        }
        part_doze(part, asleep);
    }
}

bool mpi_host_can_continue(void)
{
    for (struct mpi_host_part *part = running; part != NULL; part = part->next_running) {
        if (part->call.word != NULL && is_over(&part->call)) {
            return true;
        }
    }
    return false;
}
