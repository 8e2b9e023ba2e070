/* path: all ranks of a job behind one interface, for every transport.
 *
 * Purpose
 *   A rank is reached by one transport, chosen once, when its card is added: shared memory (same host: rings, and one
 *   copy between the two processes) or packets (an endpoint and its port). cw_paths_why reports the reason.
 *
 * Invariants
 *   - Messages to a rank arrive once, and in the order of sending within a lane.
 *   - cw_paths_get and cw_paths_put move bytes between memory of two processes without the other's calls: by the
 *     kernel, or by the other's dataplane. Only if a host forbids single copies, the other process must poll.
 *   - All queues are bounded: CW_ERROR_AGAIN means that the call had no effect, and that cw_paths_poll will make room.
 *   - The handler is called by cw_paths_poll only, one call at a time. It may call all functions of this header
 *     except poll, wait and destroy.
 *
 * Order of calls
 *   cw_paths_create { cw_paths_connect }, cw_paths_card; cards go to all ranks by other means; cw_paths_add for each
 *   rank, also the own one { cw_paths_send | cw_paths_register, cw_paths_get, cw_paths_put, cw_paths_deregister |
 *   cw_paths_poll |
 *     cw_paths_wait }*
 *   cw_paths_destroy
 *
 * Thread: one at a time for all calls (a lock of the caller's), except cw_paths_wake: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/dataplane.h"
#include "dataplane/loop/loop_set.h"
#include "dataplane/shm/inbox.h"

struct cw_paths;

enum cw_path_transport {
    CW_PATH_TRANSPORT_NONE = 0,    /* no card yet */
    CW_PATH_TRANSPORT_SHARED = 1,  /* shared memory */
    CW_PATH_TRANSPORT_PACKETS = 2, /* an endpoint and its port */
};

/* The card of a process, for the others of its job. Plain bytes, the same on all hosts. */
struct cw_path_card {
    uint8_t host[16]; /* the same for processes that share memory, and for no others */
    struct cw_inbox_place inbox;
    struct cw_address address; /* of the endpoint; no ip: it has none */
    uint8_t multicasts;        /* it can be a member of groups */
    uint8_t loops;             /* endpoints, at consecutive UDP ports; 0: as 1 */
    uint8_t reserved[6];
};

enum { CW_PATH_LISTENERS = 16 };

/* The receiver of messages. Data is valid during the call only. */
struct cw_path_listener {
    void *context;
    void (*message)(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes);
};

/* The functions for arriving messages and ended operations. */
struct cw_path_handler {
    struct cw_path_listener listeners[CW_PATH_LISTENERS]; /* of messages, by their tag; `message` NULL: `others` */
    struct cw_path_listener others;                       /* of all other tags; `message` NULL: they are dropped */
    void *context;                                        /* of the functions below */
    void (*arrived)(void *context, uint32_t rank,
                    uint32_t lane_tag); /* all bytes of a put into own memory have arrived */
    void (*complete)(void *context, uint64_t operation, int status); /* an own get or put is complete, or has failed */
    void (*sent)(
        void *context,
        uint64_t operation); /* the last byte of an own put has left: before `complete`, or never; NULL: no call */
    /* The rank has failed, and all operations in flight to it: CW_ERROR_PEER_FAILED, or CW_ERROR_PEER_RESTARTED:
     * another process is in its place. */
    void (*down)(void *context, uint32_t rank, int status);
};

/* Functions that maintain groups of ranks, in addition to the handler. */
struct cw_path_watcher {
    void *context;
    void (*down)(void *context, uint32_t rank); /* before the handler's */
    uint32_t (*poll)(void *context);            /* by cw_paths_poll, while `is_due`; returns the amount of work */
    bool is_due;
};

struct cw_paths_config {
    uint32_t rank;
    uint32_t rank_count;
    uint8_t host[16];
    uint64_t nonce;       /* random */
    bool copy_twice;      /* never a single copy, as if the kernel forbids it */
    const char *ancestor; /* for cw_copy_allow */
    struct cw_loop_set
        set; /* the endpoints for other hosts; count 0: none. The caller owns the loops, which must outlive the paths */
    struct cw_address address; /* of the first of them */
    uint64_t
        stopped_timeout_ns; /* a probed process of this host may be stopped by a signal for this time; 0: no limit */
    bool multicasts;        /* for the card */
    uint32_t message_bytes_max; /* of the endpoint: its pool_slot_bytes */
    bool messages_registered;   /* long ones are sent without a copy: registering memory costs the port nothing */
    struct cw_path_handler handler;
    const struct cw_path_watcher *watcher; /* NULL: none; must outlive the paths */
};

/* CW_OK; CW_ERROR_ARGUMENT, CW_ERROR_MEMORY, CW_ERROR_SYSTEM with a line in `error`. */
int cw_paths_create(const struct cw_paths_config *config, struct cw_paths **paths, char *error, size_t error_bytes);
/* Sets the endpoint for other hosts, if it was not known at creation: its six fields of the configuration. Once, before
 * any rank is added. Errors as cw_paths_create. */
int cw_paths_connect(struct cw_paths *paths, const struct cw_paths_config *config, char *error, size_t error_bytes);
void cw_paths_destroy(struct cw_paths *paths);

void cw_paths_card(const struct cw_paths *paths, struct cw_path_card *card);

/* Adds `rank` with its card. CW_OK; CW_ERROR_UNSUPPORTED: neither memory nor a network connects it; CW_ERROR_ARGUMENT;
 * a line in `error`. */
int cw_paths_add(struct cw_paths *paths, uint32_t rank, const struct cw_path_card *card, char *error,
                 size_t error_bytes);

enum cw_path_transport cw_paths_transport(const struct cw_paths *paths, uint32_t rank);
/* True: the rank is, or was, on this host. It does not change when the rank fails. */
bool cw_paths_is_here(const struct cw_paths *paths, uint32_t rank);
/* An order of the ranks' hosts; 0: two ranks are, or were, on the same host. */
int cw_paths_hosts_compare(const struct cw_paths *paths, uint32_t one, uint32_t other);
/* "rank 3: shared memory, single copy: same host" in one line. */
void cw_paths_why(const struct cw_paths *paths, uint32_t rank, char *text, size_t text_bytes);

/* The first loop of the configuration. NULL: there is none. */
struct cw_loop *cw_paths_loop(const struct cw_paths *paths);

/* Sets the text of cw_paths_why for a rank of another host, if the general reason is not enough: "other cluster
 * (leiden), paced at 62.5 Mb/s". CW_OK, CW_ERROR_MEMORY. */
int cw_paths_describe(struct cw_paths *paths, uint32_t rank, const char *how);

/* Until cw_paths_release, messages to ranks of other hosts may wait for each other: those to one rank share packets,
 * and all leave at once. For a caller that sends several messages and does not wait meanwhile. */
void cw_paths_hold(struct cw_paths *paths);
void cw_paths_release(struct cw_paths *paths);

/* The longest message to `rank`; it does not change when the rank fails. */
uint32_t cw_paths_message_max(const struct cw_paths *paths, uint32_t rank);

/* The check of payloads to a rank of another host (see CAUSEWAY_INTEGRITY). False: there is no session with it. */
bool cw_paths_cover(struct cw_paths *paths, uint32_t rank, enum cw_cover *cover);

/* The compression of such elements to `rank`; false: not known. */
bool cw_paths_compression(struct cw_paths *paths, uint32_t rank, enum cw_element element,
                          struct cw_compression_report *report);

/* Sends `head` and `data`, one after the other, as one message. `element`: the type of the data, a hint for
 * compression, as in the calls below. Both may be reused when it returns. CW_OK;
 * CW_ERROR_AGAIN; CW_ERROR_PEER_FAILED, CW_ERROR_NOT_FOUND, CW_ERROR_PERMISSION, ...: it cannot be reached, see
 * cw_paths_failure; unless its process has ended, `down` follows. */
int cw_paths_send(struct cw_paths *paths, uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes,
                  const void *data, uint32_t bytes, enum cw_element element);

/* The reason of the last failure, in one line. */
const char *cw_paths_failure(const struct cw_paths *paths);

/* Memory that one other rank may access. */
struct cw_registration {
    uint64_t token;
    uint64_t address; /* for a rank of the own host; 0 for others, which use the token, the same for all of them */
};

/* Lets `rank` get from (CW_REGION_READ) or put into (CW_REGION_WRITE) this memory; send it the registration. CW_OK;
 * CW_ERROR_LIMIT: no more at a time. */
int cw_paths_register(struct cw_paths *paths, uint32_t rank, void *base, uint64_t bytes, uint32_t rights,
                      struct cw_registration *registration);
/* After CW_OK no access to the memory follows. CW_ERROR_AGAIN: packets still refer to it: poll, call
 * again. */
int cw_paths_deregister(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration);

enum { CW_PATHS_DONE = 1 };

/* Gets `bytes` from `offset` of a registration of `rank`. CW_PATHS_DONE: complete, without a call of the handler;
 * CW_OK: the handler's `complete` follows; CW_ERROR_AGAIN; other codes: failed. */
int cw_paths_get(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                 void *to, uint64_t bytes, enum cw_element element, uint64_t operation);
/* Puts `bytes` there; the handler of `rank` gets `arrived` with `lane_tag`. The rest as cw_paths_get; `from` may change
 * when it is done. */
int cw_paths_put(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                 const void *from, uint64_t bytes, enum cw_element element, uint32_t lane_tag, uint64_t operation);

/* The number of a rank at this process's endpoints, for every kind of path. CW_OK; CW_ERROR_UNSUPPORTED: one of the
 * two has no endpoint; others as cw_peer_add. */
int cw_paths_wire_peer(struct cw_paths *paths, uint32_t rank, uint32_t *peer);
/* True: by their cards, all ranks can be members of groups. */
bool cw_paths_all_multicast(const struct cw_paths *paths);

/* Processes arrived messages and continues operations in flight; returns the amount of work (0: none). */
uint32_t cw_paths_poll(struct cw_paths *paths);

/* Sleeps until a message may have arrived, cw_paths_wake or another rank's cw_paths_kick is called, or the time has
 * passed. Call it when cw_paths_poll has returned 0. Before it sleeps it polls again, and calls `is_over` (NULL: none).
 * At that time writers of the state that `is_over` reads already see that this process sleeps. */
void cw_paths_wait(struct cw_paths *paths, uint64_t timeout_ns, bool (*is_over)(void *context), void *context);
void cw_paths_wake(struct cw_paths *paths);

/* Publishes that this process runs on `core`. True: a peer that does not sleep also runs there: a spin would keep it
 * from running. */
bool cw_paths_share_core(struct cw_paths *paths, uint32_t core);

/* For code that shares other memory with a rank of this host (shm/segment.h). cw_paths_kick ends its sleep in
 * cw_paths_wait; after a full barrier. */
void cw_paths_kick(struct cw_paths *paths, uint32_t rank);
/* True: that rank is on this host, and single copies from and to its memory work. From then on cw_paths_watch checks
 * it. */
bool cw_paths_reaches_memory(struct cw_paths *paths, uint32_t rank);
/* Copies from or to memory of such a rank. CW_OK; CW_ERROR_NOT_FOUND, CW_ERROR_REMOTE_ACCESS, CW_ERROR_PERMISSION,
 * CW_ERROR_SYSTEM: see shm/copy.h. */
int cw_paths_copy_from(struct cw_paths *paths, uint32_t rank, void *to, uint64_t address, uint64_t bytes);
int cw_paths_copy_to(struct cw_paths *paths, uint32_t rank, uint64_t address, const void *from, uint64_t bytes);

/* Probes a rank; call it every second or so during a wait for the rank. If the rank uses packets and is silent, `down`
 * follows within the endpoint's failure timeout (cw_peer_check). If it is on this host and stopped by a signal, `down`
 * follows after `stopped_timeout_ns`; if a debugger holds it, the wait has no limit. cw_paths_watch finds ranks that
 * have ended. */
void cw_paths_probe(struct cw_paths *paths, uint32_t rank);
/* The same for all ranks of this host. */
void cw_paths_probe_here(struct cw_paths *paths);
/* The number in /proc of a rank's process, from its card; 0: it has none yet. */
int cw_paths_process(const struct cw_paths *paths, uint32_t rank);
/* True: `down` has been called for the rank. */
bool cw_paths_is_down(const struct cw_paths *paths, uint32_t rank);
/* The reason of a rank that is down: silent, or its process is stopped; otherwise it has ended. */
bool cw_paths_is_silent(const struct cw_paths *paths, uint32_t rank);
bool cw_paths_is_stopped(const struct cw_paths *paths, uint32_t rank);
/* True: a rank is down because no memory can be shared with it, or because packets no longer reach it, for the reason
 * of cw_paths_why. */
bool cw_paths_is_unreachable(const struct cw_paths *paths, uint32_t rank);

/* Checks that the peers on this host are still running; `down` follows with the next poll. Call it every second or
 * so. */
void cw_paths_watch(struct cw_paths *paths);

struct cw_paths_counters {
    uint64_t messages_sent;
    uint64_t messages_received;
    uint64_t copies_single; /* gets and puts in one copy by the kernel */
    uint64_t copies_streamed;
    uint64_t gets_wire; /* by packets */
    uint64_t puts_wire;
    uint64_t refusals; /* CW_ERROR_AGAIN */
    uint64_t sleeps;
    uint64_t time_outs; /* sleeps that ended by their time */
};
struct cw_paths_counters cw_paths_counters(const struct cw_paths *paths);
