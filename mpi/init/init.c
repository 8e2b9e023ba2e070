/* From MPI_Init to MPI_Finalize (MPI 5.0, 11.2 to 11.4). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/groups/groups.h"
#include "control/job/dedicate.h"
#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "dataplane/base/process.h"
#include "dataplane/base/virtual.h"
#include "mpi/collective/calls/collective.h"
#include "mpi/collective/choice/choice.h"
#include "mpi/collective/compiled/record.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/collective/exchange/exchange.h"
#include "mpi/collective/exchange/groups.h"
#include "mpi/collective/exchange/refusal.h"
#include "mpi/collective/host/host.h"
#include "mpi/communicator/topology.h"
#include "mpi/group/communicator.h"
#include "mpi/init/wan_policy.h"
#include "mpi/point/buffered.h"
#include "mpi/point/describe.h"
#include "mpi/point/lost.h"
#include "mpi/point/point.h"
#include "mpi/point/request.h"
#include "mpi/runtime/attribute.h"
#include "mpi/runtime/errhandler.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/explain.h"
#include "mpi/runtime/lock.h"
#include "mpi/runtime/progress.h"
#include "mpi/runtime/virtual.h"
#include "mpi/runtime/waiting.h"
#include "mpi/state/process.h"
#include "mpi/transport/credit.h"
#include "mpi/transport/multicast.h"
#include "mpi/transport/outbox.h"
#include "mpi/transport/transport.h"
#include "mpi/transport/unknown.h"
#include "mpi_functions.h"

/* Longer messages on one host, and by devices, are fetched by the receiver in one copy: from this size on that is
 * faster than two (measured: `causeway bench mpi`). */
enum { EAGER_MAX_BYTES = 8192 };

static pthread_t main_thread;

/* The application computes: operations that wait for it advance. */
static void control_tick(void *context)
{
    (void)context;
    if (!mpi_lock_try_control()) {
        return;
    }
    for (int round = 0; round < 1000 && mpi_progress() > 0; round++) {
    }
    mpi_progress_rest();
    mpi_lock_release_control();
}

static void control_heartbeat(void *context)
{
    (void)context;
    if (cw_job_is_cut(mpi_process.job)) {
        fprintf(stderr, "causeway: rank %u: the launcher has gone: this process ends\n", mpi_process.rank);
        _exit(MPI_ERR_OTHER); /* no handlers of exit: the program's thread may be anywhere */
    }
    if (mpi_lock_try_control()) {
        cw_paths_watch(mpi_process.paths);
        mpi_exchange_compare(); /* a program that only tests never waits */
        mpi_lock_release_control();
    }
    mpi_waiting_heartbeat();
    cw_job_show(mpi_process.job);
}

/* Ranks that share this machine's cores. */
static uint32_t ranks_here(void)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < mpi_process.size; rank++) {
        count += cw_job_shares_machine(mpi_process.job, rank, mpi_process.rank);
    }
    return count;
}

/* The same at all ranks, since schedules depend on it: a rank with paths of both kinds has the shorter limit. To other
 * hosts it is the size of a message (job/wire.c), which is larger by sockets. */
static void eager_limits(void)
{
    uint64_t all = EAGER_MAX_BYTES, wire = 0;
    for (uint32_t rank = 0; rank < mpi_process.size; rank++) {
        uint64_t room = cw_paths_message_max(mpi_process.paths, rank) - MPI_HEAD_MAX;
        all = room < all ? room : all;
        wire = cw_paths_is_here(mpi_process.paths, rank) ? wire : room; /* one endpoint: the same for all */
    }
    mpi_process.eager_max_bytes = all;
    mpi_process.wire_eager_max_bytes = wire;
}

/* Exit code of `causeway run --plan` if it finds the same error before. */
enum { EXIT_USAGE = 2 };

/* ---- the parts of the library, which do not know those above them ---- */

static const struct mpi_comm_owner owners[] = {
    {mpi_transport_adopt, NULL}, {NULL, mpi_match_abandon},    {NULL, mpi_collectives_abandon},
    {mpi_replay_attach, NULL},   {NULL, mpi_topology_abandon},
};

static const struct mpi_waiting_parts waiting_parts = {
    .compare = mpi_exchange_compare,
    .describe_posted = mpi_describe_posted,
};

static void down_receive(void *context, uint32_t rank, int status)
{
    (void)context;
    mpi_lost_down(rank, status);
    mpi_collective_down(rank);
}

static void abandon_receive(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    (void)context, (void)lane_tag;
    int source;
    struct mpi_comm *comm = mpi_lost_receive(data, bytes, &source);
    if (comm == NULL) {
        return;
    }
    mpi_sends_abandoned(comm->group->ranks[source]);
    mpi_collective_lost(comm, source);
    if (comm == mpi_comm_world && cw_job_groups(mpi_process.job) != NULL) {
        cw_groups_down(cw_job_groups(mpi_process.job), rank);
    }
    mpi_comm_release(comm);
}

static void parts_join(struct cw_job_handler *handler)
{
    *handler = (struct cw_job_handler){
        .multicast = {.message = mpi_groups_message, .complete = mpi_multicast_complete},
    };
    mpi_point_listen();
    mpi_exchange_listen();
    mpi_transport_receiver_set(MPI_SENT_ABANDON, abandon_receive);
    mpi_transport_listen(&handler->path);
    handler->path.down = down_receive;
    mpi_progress_watch_memory(
        &(struct mpi_progress_memory){.doze = mpi_host_doze, .can_continue = mpi_host_can_continue});
    mpi_progress_add(mpi_transport_turn);
}

/* ---- beginning ---- */

/* Rank 0 reports the error and ends the job; the others wait for that, lest they end it first. */
static int choice_start(void)
{
    char error[1200] = "";
    int exit_code = EXIT_USAGE;
    int code = mpi_wan_policy_start(error, sizeof(error));
    if (code == MPI_SUCCESS) {
        code = mpi_choice_start(error, sizeof(error));
        exit_code = MPI_ERR_OTHER;
    }
    if (code == MPI_SUCCESS) {
        code = mpi_replay_start(error, sizeof(error));
        exit_code = EXIT_USAGE;
    }
    if (code == MPI_SUCCESS) {
        return mpi_record_start();
    }
    if (mpi_process.rank != 0) {
        cw_job_close(mpi_process.job);
        exit(1);
    }
    fprintf(stderr, "causeway: MPI_Init: %s\n", error);
    mpi_process_abort(exit_code);
}

/* The first rank of a machine speaks for all of them. */
static void undedicated_report(void)
{
    const struct cw_dedicated *dedicated = cw_job_dedicated(mpi_process.job);
    const char *undivided = cw_job_undivided(mpi_process.job);
    bool is_first = true;
    for (uint32_t rank = 0; rank < mpi_process.rank && is_first; rank++) {
        is_first = !cw_job_shares_machine(mpi_process.job, rank, mpi_process.rank);
    }
    const char *host = cw_job_host(mpi_process.job, mpi_process.rank);
    if (is_first && dedicated->why[0] != '\0') {
        fprintf(stderr, "causeway: rank %u on %s: no core for a dataplane thread: %s. The program's threads turn it\n",
                mpi_process.rank, host, dedicated->why);
    } else if (is_first && undivided[0] != '\0') {
        fprintf(stderr, "causeway: rank %u on %s: %u of %u dataplane threads: %s\n", mpi_process.rank, host,
                cw_job_threads(mpi_process.job), dedicated->count, undivided);
    }
}

static void unknown_report(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "causeway: MPI_Init: %s\n", line);
}

static int job_start(void)
{
    char error[1024] = "";
    uint8_t note[CW_JOB_NOTE_BYTES];
    struct cw_job_handler handler;
    parts_join(&handler);
    struct cw_control_config control = {.tick = control_tick, .heartbeat = control_heartbeat};
    cw_process_slice_shorten(); /* before there are other threads of ours */
    if (mpi_choice_prepare(note) != CW_OK || mpi_replay_prepare(note) != CW_OK ||
        mpi_wan_policy_prepare(note) != CW_OK) {
        return MPI_ERR_NO_MEM;
    }
    if (cw_job_open(&handler, note, &mpi_process.job, error, sizeof(error)) != CW_OK) {
        fprintf(stderr, "causeway: MPI_Init: %s\n", error);
        mpi_process_abort(MPI_ERR_OTHER);
    }
    struct cw_bootstrap_info info = cw_job_info(mpi_process.job);
    if (cw_job_narrow(mpi_process.job)[0] != '\0') {
        fprintf(stderr, "causeway: rank %u: %s\n", info.rank, cw_job_narrow(mpi_process.job));
    }
    mpi_process.rank = info.rank;
    mpi_process.size = info.size;
    if (info.rank == 0 && cw_setting(CW_SETTING_WORKER) == NULL) { /* else the launcher has looked */
        cw_settings_check(unknown_report, NULL);
    }
    mpi_process.paths = cw_job_paths(mpi_process.job);
    eager_limits();
    mpi_process.crowding = cw_job_crowding(mpi_process.job);
    mpi_process.spin_rounds = mpi_progress_spin_rounds(ranks_here() + cw_job_nodes(mpi_process.job));
    if (!mpi_waiting_start(info.rank, info.size, &waiting_parts)) {
        fprintf(stderr,
                "causeway: MPI_Init: CAUSEWAY_WATCHDOG is '%.40s': a number of seconds is wanted, or 0 for never\n",
                cw_setting(CW_SETTING_WATCHDOG));
        mpi_process_abort(MPI_ERR_OTHER);
    }
    if (cw_job_attend(mpi_process.job, &control, &mpi_process.control, error, sizeof(error)) != CW_OK) {
        fprintf(stderr, "causeway: MPI_Init: %s\n", error);
        mpi_process_abort(MPI_ERR_OTHER);
    }
    undedicated_report();
    return MPI_SUCCESS;
}

int mpi_init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)argc, (void)argv; /* no option is hidden among the program's */
    if (mpi_process.state != MPI_PROCESS_NEW) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_OTHER,
                         "MPI has been initialized already; it can be once in a program's life");
    }
    if (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED && required != MPI_THREAD_SERIALIZED &&
        required != MPI_THREAD_MULTIPLE) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "%d is no level of thread support", required);
    }
    int code = job_start();
    if (cw_virtual_is_on()) {
        cw_virtual_sleep_by(mpi_virtual_sleep);
    }
    if (cw_virtual_is_on() && required != MPI_THREAD_SINGLE) {
        required = MPI_THREAD_FUNNELED; /* one thread has a virtual time (MPI 5.0, 11.6.2: it may be less) */
    }
    if (code == MPI_SUCCESS) {
        code = mpi_outbox_start(mpi_process.size);
    }
    if (code == MPI_SUCCESS) {
        code = mpi_credit_start(mpi_process.size);
    }
    if (code == MPI_SUCCESS) {
        code = mpi_requests_start();
    }
    if (code == MPI_SUCCESS) {
        code = mpi_comm_start(mpi_process.rank, mpi_process.size, owners, sizeof(owners) / sizeof(owners[0]));
    }
    if (code == MPI_SUCCESS) {
        code = choice_start();
    }
    if (code != MPI_SUCCESS) {
        return mpi_error(MPI_COMM_NULL, code, "MPI could not be started");
    }
    main_thread = pthread_self();
    mpi_process.thread_level = required;
    if (required == MPI_THREAD_MULTIPLE) {
        mpi_lock_share();
    }
    mpi_process.state = MPI_PROCESS_RUNNING;
    *provided = required;
    return MPI_SUCCESS;
}

int mpi_init(int *argc, char ***argv)
{
    int provided;
    return mpi_init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

int mpi_initialized(int *flag)
{
    *flag = mpi_process.state != MPI_PROCESS_NEW;
    return MPI_SUCCESS;
}

int mpi_finalized(int *flag)
{
    *flag = mpi_process.state == MPI_PROCESS_FINALIZED;
    return MPI_SUCCESS;
}

static void outbox_describe(void *context, struct mpi_said *said)
{
    (void)context;
    mpi_describe(said, "%u messages for which there is no room at their receivers yet", (unsigned)mpi_outbox_waiting);
}

static bool nothing_waits(void *context)
{
    (void)context;
    return mpi_outbox_waiting == 0;
}

/* Reports the work of the library on request: calls are counted until their communicators have gone. */
static void explain(const char *multicasts)
{
    if (mpi_explain_is_wanted()) {
        char text[CW_SETTINGS_PATH_BYTES + 128];
        mpi_explain_paths();
        snprintf(text, sizeof(text), "algorithms chosen by %s", mpi_choice_source());
        mpi_explain_text(text);
        mpi_explain_print();
        mpi_kept_describe(text, sizeof(text));
        mpi_explain_text(text);
        mpi_explain_text(multicasts);
    }
    mpi_explain_clear();
}

int mpi_finalize(void)
{
    /* as MPI_COMM_FREE of MPI_COMM_SELF would: its attributes' delete functions are called first (11.4.4) */
    int code = mpi_attributes_free_comm(MPI_COMM_SELF, &mpi_comm_self->attributes);
    if (code != MPI_SUCCESS) {
        return mpi_error(MPI_COMM_SELF, code, "an attribute's delete function failed");
    }
    mpi_lost_abandon_all();
    mpi_buffered_finish();
    if (!nothing_waits(NULL)) {
        mpi_progress_wait(&(struct mpi_wait){.is_over = nothing_waits, .describe = outbox_describe});
    }
    mpi_record_stop();
    mpi_replay_report();
    mpi_record_finish();
    code = mpi_barrier(MPI_COMM_WORLD); /* others may still need this process to go on */
    if (code != MPI_SUCCESS) {
        mpi_lost_abandon_all(); /* a rank was lost since */
        mpi_progress_wait(&(struct mpi_wait){.is_over = nothing_waits, .describe = outbox_describe});
    }
    (void)mpi_attributes_free_comm(MPI_COMM_WORLD, &mpi_comm_world->attributes);
    mpi_multicasts_finish();
    char *multicasts = mpi_explain_is_wanted() ? mpi_groups_report() : NULL;
    mpi_process.returns_errors = !mpi_errhandler_is_fatal(MPI_COMM_WORLD);
    mpi_comm_stop();
    mpi_unknown_clear();
    mpi_lost_clear();
    mpi_groups_finish();
    cw_control_quiet(mpi_process.control);
    mpi_process.control = NULL;
    mpi_waiting_stop();
    explain(multicasts);
    free(multicasts);
    mpi_outbox_stop();
    mpi_credit_stop();
    mpi_requests_clear();
    mpi_collective_spares_free();
    mpi_choices_clear();
    mpi_replay_clear();
    mpi_wan_policy_clear();
    cw_job_close(mpi_process.job);
    mpi_process.job = NULL;
    mpi_process.paths = NULL;
    mpi_process.state = MPI_PROCESS_FINALIZED;
    return code;
}

int mpi_abort(MPI_Comm comm, int errorcode)
{
    (void)comm; /* all processes of the job end: the standard allows it */
    fprintf(stderr, "causeway: rank %u: MPI_Abort with code %d\n", mpi_process.rank, errorcode);
    mpi_process_abort(errorcode);
}

int mpi_query_thread(int *provided)
{
    *provided = mpi_process.thread_level;
    return MPI_SUCCESS;
}

int mpi_is_thread_main(int *flag)
{
    *flag = pthread_equal(pthread_self(), main_thread) != 0;
    return MPI_SUCCESS;
}
