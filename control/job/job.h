/* job: a process as a member of its job: its launcher, the other ranks, and the paths to them.
 *
 * cw_job_open asks the launcher (bootstrap.h), tells the others where this process is found (a card, path.h), learns
 * the same of all of them, and has paths to all ranks. Nothing is connected before it is used.
 *
 * Each rank may add a note to its card, 16 bytes that mean nothing here: whether all ranks have the same is known
 * without another exchange.
 *
 * Environment
 *   CAUSEWAY_HOST       processes with the same text share memory: hosts emulated by `causeway run --emulate`. Not set:
 *                       processes that see the same kernel, process numbers and user.
 *   CAUSEWAY_TRANSPORT, CAUSEWAY_PORTS   address and UDP ports for the ranks of other hosts (control/net/net.h)
 *   CAUSEWAY_RDMA       RDMA device, in addition (control/net/rdma.h)
 *   CAUSEWAY_DEDICATED  a dataplane thread on a core of its own (job/dedicate.h)
 *   CAUSEWAY_EMULATE    the ranks are on emulated hosts (job/wire.h); set by `causeway run --emulate`
 *   CAUSEWAY_COPY       "twice": no copies from another process's memory, as where the kernel forbids them; for tests
 *
 * Thread: one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/bootstrap/bootstrap.h"
#include "control/groups/groups.h"
#include "control/job/control.h"
#include "dataplane/path/path.h"

struct cw_job;

enum {
    CW_JOB_NOTE_BYTES = 16,
    CW_JOB_HOST_BYTES = 64, /* of a host's name, with its final 0; longer ones are cut */
};

/* What comes in: by paths, and by groups (groups/groups.h). */
struct cw_job_handler {
    struct cw_path_handler path; /* the listener of CW_JOB_TAG is the job's own */
    /* Members are ranks, the context is a struct cw_group. The job's own: laggard, unreached; nobody registers memory.
     * */
    struct cw_mcast_handler multicast;
};

/* Messages of paths with this tag are the job's own, in any lane. */
enum { CW_JOB_TAG = CW_PATH_LISTENERS - 1 };

/* CW_OK, or errors of cw_bootstrap_open, cw_paths_create and cw_paths_add, with a line in `error`. */
int cw_job_open(const struct cw_job_handler *handler, const uint8_t note[CW_JOB_NOTE_BYTES], struct cw_job **job,
                char *error, size_t error_bytes);
/* Starts the control thread, which also assists at the endpoint's loop, until cw_job_close; the job's loop replaces
 * that of `config`. Once. Errors as cw_control_create. */
int cw_job_attend(struct cw_job *job, const struct cw_control_config *config, struct cw_control **control, char *error,
                  size_t error_bytes);
/* Waits for all ranks, then takes everything down. It does not poll the paths while it waits: cw_paths_get and
 * cw_paths_put of other ranks from this process must have ended before. NULL is allowed. */
void cw_job_close(struct cw_job *job);

struct cw_bootstrap_info cw_job_info(const struct cw_job *job);
struct cw_paths *cw_job_paths(const struct cw_job *job);
/* How long a rank that owes an answer over the network may be silent, in nanoseconds (CAUSEWAY_FAILURE_TIMEOUT); 0:
 * there is no network. */
uint64_t cw_job_failure_timeout(const struct cw_job *job);
/* Whether this process uses the node of its host (causeway node), and the node is away. */
bool cw_job_node_is_away(const struct cw_job *job);
/* Traffic between this process and the launcher. */
struct cw_bootstrap_traffic cw_job_exchanged(const struct cw_job *job);
/* Grows with each message and packet of data that this process takes or sends, and with nothing else. */
uint64_t cw_job_moved(const struct cw_job *job);
/* The groups of this process; NULL: not all ranks of the job can multicast (one host, no port, CAUSEWAY_MULTICAST=off).
 * The same answer at all ranks, as far as it is NULL. */
struct cw_groups *cw_job_groups(const struct cw_job *job);
/* Whether something is under way that only cw_paths_poll brings on, such as groups that the network has yet to let in.
 * */
bool cw_job_is_busy(const struct cw_job *job);
/* The name of a rank's host, as its kernel has it; lives as long as the job. */
const char *cw_job_host(const struct cw_job *job, uint32_t rank);
/* Whether two ranks run on the same processors, even if on different hosts that are namespaces of one machine. */
bool cw_job_shares_machine(const struct cw_job *job, uint32_t one, uint32_t other);
/* How many ranks share a core where most do; 1: none, if each is bound to its own. The same answer at all ranks. */
uint32_t cw_job_crowding(const struct cw_job *job);
/* Dataplanes of hosts that run on this machine's processors, too, and that ranks of the job go by. */
uint32_t cw_job_nodes(const struct cw_job *job);
/* One line about memory registered with the NIC; "": no registration is needed, or there was none. Call it when no
 * operation is in progress. */
void cw_job_registrations(const struct cw_job *job, char *text, size_t text_bytes);
/* One line about queue pairs of an RDMA device; "": there is none. */
void cw_job_rdma(const struct cw_job *job, char *text, size_t text_bytes);
/* Whether the wire is queue pairs, between all hosts; the same at all ranks. */
bool cw_job_all_have_rdma(const struct cw_job *job);
/* The cores of this process's dataplane threads, or why it has none. */
struct cw_dedicated;
const struct cw_dedicated *cw_job_dedicated(const struct cw_job *job);
/* How many of them have a loop, from the first on; and why not all, in some words: "". */
uint32_t cw_job_threads(const struct cw_job *job);
const char *cw_job_undivided(const struct cw_job *job);
/* The transport to ranks of other hosts, and the reason for it, in one line; "": there are no others, or they are
 * emulated. */
const char *cw_job_transport(const struct cw_job *job);
/* Of a path to another host that passes smaller packets than its ends take, in one line; "": none is known. */
const char *cw_job_narrow(const struct cw_job *job);
/* Whether all ranks have brought the same note: the same answer at all ranks. */
bool cw_job_notes_agree(const struct cw_job *job);

/* Waits for all ranks, and polls the paths meanwhile: requests of other ranks to this process are answered at once.
 * CW_OK; CW_ERROR_CLOSED; CW_ERROR_SYSTEM: no thread can be made. */
int cw_job_fence(struct cw_job *job);

/* Whether the launcher has gone (cw_bootstrap_is_cut). Any thread. */
bool cw_job_is_cut(const struct cw_job *job);
/* Updates the figures for `causeway top`; every second or so, by the control thread. */
void cw_job_show(struct cw_job *job);
/* Ends all processes of the job. */
_Noreturn void cw_job_abort(struct cw_job *job, int code, const char *text);
