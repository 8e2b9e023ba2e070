/* path: all ranks of a job behind one interface, whatever lies between.
 *
 * Purpose
 *   A rank is reached by one transport, chosen once, when its card is added: shared memory (same host: rings, and one
 *   copy between the two processes) or packets (an endpoint and its port). cw_paths_why reports the reason.
 *
 * Invariants
 *   - Messages to a rank arrive once, and in the order of sending within a lane.
 *   - cw_paths_get and cw_paths_put move bytes between memory of two processes without the other's calls: by the
 *     kernel, or by the other's dataplane. Only where a host forbids single copies the other side must poll.
 *   - Everything is bounded: CW_ERROR_AGAIN means that nothing has happened, and that cw_paths_poll makes room in time.
 *   - The handler is called by cw_paths_poll only, one call at a time. It may call anything here but poll, wait and
 *     destroy.
 *
 * Order of calls
 *   cw_paths_create { cw_paths_connect }, cw_paths_card; cards go to all ranks by other means; cw_paths_add for each rank, the own one too
 *   { cw_paths_send | cw_paths_register, cw_paths_get, cw_paths_put, cw_paths_deregister | cw_paths_poll |
 *     cw_paths_wait }*
 *   cw_paths_destroy
 *
 * Thread: one at a time for all calls (a lock of the caller's), but cw_paths_wake: any. */
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

/* What a process tells the others of its job. Plain bytes, the same on all hosts. */
struct cw_path_card {
    uint8_t host[16]; /* the same for processes that share memory, and for no others */
    struct cw_inbox_place inbox;
    struct cw_address address; /* of the endpoint; no ip: it has none */
    uint8_t multicasts;        /* whether it can be member of groups */
    uint8_t loops;             /* endpoints, at UDP ports side by side; 0: as 1 */
    uint8_t reserved[6];
};

enum { CW_PATH_LISTENERS = 16 };

/* Who gets messages. Data is valid during the call only. */
struct cw_path_listener {
    void *context;
    void (*message)(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes);
};

/* What comes in. */
struct cw_path_handler {
    struct cw_path_listener listeners[CW_PATH_LISTENERS]; /* of messages, by their tag; `message` NULL: `others` */
    struct cw_path_listener others;                       /* of all other tags; `message` NULL: they are dropped */
    void *context;                                        /* of the functions below */
    void (*arrived)(void *context, uint32_t rank, uint32_t lane_tag); /* all bytes of a put into own memory are there */
    void (*complete)(void *context, uint64_t operation, int status);  /* an own get or put is done, or has failed */
    void (*sent)(
        void *context,
        uint64_t operation); /* the last byte of an own put has left: before `complete`, or never; NULL: nobody cares */
    /* The rank is gone, what was under way to it has failed: CW_ERROR_PEER_FAILED, or CW_ERROR_PEER_RESTARTED: another
     * process is in its place. */
    void (*down)(void *context, uint32_t rank, int status);
};

/* Who looks after groups of ranks, beside the handler. */
struct cw_path_watcher {
    void *context;
    void (*down)(void *context, uint32_t rank); /* before the handler's */
    uint32_t (*poll)(void *context);            /* by cw_paths_poll, while `is_due`; returns how much it did */
    bool is_due;
};

struct cw_paths_config {
    uint32_t rank;
    uint32_t rank_count;
    uint8_t host[16];
    uint64_t nonce;       /* random */
    bool copy_twice;      /* never a single copy, as where the kernel forbids it */
    const char *ancestor; /* as cw_copy_allow has it */
    struct cw_loop_set
        set; /* the endpoints for other hosts; count 0: none. Loops stay the caller's, and outlive the paths */
    struct cw_address address; /* of the first of them */
    uint64_t
        stopped_timeout_ns; /* how long a process of this host that is asked may be stopped by a signal; 0: for ever */
    bool multicasts;        /* for the card */
    uint32_t message_bytes_max; /* of the endpoint: its pool_slot_bytes */
    bool messages_registered;   /* long ones are sent from where they wait: to register memory costs the port nothing */
    struct cw_path_handler handler;
    const struct cw_path_watcher *watcher; /* NULL: nobody; outlives the paths */
};

/* CW_OK; CW_ERROR_ARGUMENT, CW_ERROR_MEMORY, CW_ERROR_SYSTEM with a line in `error`. */
int cw_paths_create(const struct cw_paths_config *config, struct cw_paths **paths, char *error, size_t error_bytes);
/* The endpoint for other hosts, if it was not known at creation: the six fields of the configuration that tell of it.
 * Once, before any rank is added. Errors as cw_paths_create. */
int cw_paths_connect(struct cw_paths *paths, const struct cw_paths_config *config, char *error, size_t error_bytes);
void cw_paths_destroy(struct cw_paths *paths);

void cw_paths_card(const struct cw_paths *paths, struct cw_path_card *card);

/* Tells who `rank` is. CW_OK; CW_ERROR_UNSUPPORTED: neither memory nor a network lies between; CW_ERROR_ARGUMENT; a
 * line in `error`. */
int cw_paths_add(struct cw_paths *paths, uint32_t rank, const struct cw_path_card *card, char *error,
                 size_t error_bytes);

enum cw_path_transport cw_paths_transport(const struct cw_paths *paths, uint32_t rank);
/* Whether the rank is, or was, on this host: it does not change when the rank fails. */
bool cw_paths_is_here(const struct cw_paths *paths, uint32_t rank);
/* An order of the ranks' hosts; 0: two ranks are, or were, on the same host. */
int cw_paths_hosts_compare(const struct cw_paths *paths, uint32_t one, uint32_t other);
/* "rank 3: shared memory, single copy: same host" in one line. */
void cw_paths_why(const struct cw_paths *paths, uint32_t rank, char *text, size_t text_bytes);

/* The first loop of the configuration (NULL: there is none), and where that of any rank is reached (no ip: nowhere). */
struct cw_loop *cw_paths_loop(const struct cw_paths *paths);
const struct cw_address *cw_paths_address(const struct cw_paths *paths, uint32_t rank);

/* What cw_paths_why says of a rank of another host if the general reason is not enough: "other cluster (leiden), paced
 * at 62.5 Mb/s". CW_OK, CW_ERROR_MEMORY. */
int cw_paths_describe(struct cw_paths *paths, uint32_t rank, const char *how);

/* Until cw_paths_release, messages to ranks of other hosts may wait for each other: those to one rank share packets, and
 * all leave at once. For somebody who sends several and does not wait meanwhile. */
void cw_paths_hold(struct cw_paths *paths);
void cw_paths_release(struct cw_paths *paths);

/* The longest message to `rank`; it does not change when the rank fails. */
uint32_t cw_paths_message_max(const struct cw_paths *paths, uint32_t rank);

/* What covers payloads to a rank of another host (CAUSEWAY_INTEGRITY has a say). False: there is no session with it. */
bool cw_paths_cover(struct cw_paths *paths, uint32_t rank, enum cw_cover *cover);

/* What has become of such bytes on their way to `rank`; false: nothing is known. */
bool cw_paths_compression(struct cw_paths *paths, uint32_t rank, enum cw_element element,
                          struct cw_compression_report *report);

/* Sends `head` and `data`, one behind the other, as one message. `element`: the type of the data, a hint for compression, as
 * in the calls below. Both may be reused when it returns. CW_OK;
 * CW_ERROR_AGAIN; CW_ERROR_PEER_FAILED, CW_ERROR_NOT_FOUND, CW_ERROR_PERMISSION, ...: it cannot be reached, see
 * cw_paths_failure; unless its process has ended, `down` follows. */
int cw_paths_send(struct cw_paths *paths, uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes,
                  const void *data, uint32_t bytes, enum cw_element element);

/* The last reason why something could not be done, in one line. */
const char *cw_paths_failure(const struct cw_paths *paths);

/* Memory that one other rank may reach. */
struct cw_registration {
    uint64_t token;
    uint64_t address; /* for a rank of the own host; 0 for others, which use the token, the same for all of them */
};

/* Lets `rank` get from (CW_REGION_READ) or put into (CW_REGION_WRITE) this memory; send it the registration. CW_OK;
 * CW_ERROR_LIMIT: no more at a time. */
int cw_paths_register(struct cw_paths *paths, uint32_t rank, void *base, uint64_t bytes, uint32_t rights,
                      struct cw_registration *registration);
/* Nothing touches the memory any more when it returns CW_OK. CW_ERROR_AGAIN: packets still hold on to it: poll, call
 * again. */
int cw_paths_deregister(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration);

enum { CW_PATHS_DONE = 1 };

/* Gets `bytes` from `offset` of what `rank` has registered. CW_PATHS_DONE: they are there, nothing else comes; CW_OK:
 * the handler's `complete` will tell; CW_ERROR_AGAIN; other codes: failed. */
int cw_paths_get(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                 void *to, uint64_t bytes, enum cw_element element, uint64_t operation);
/* Puts `bytes` there; the handler of `rank` gets `arrived` with `lane_tag`. The rest as cw_paths_get; `from` may change
 * when it is done. */
int cw_paths_put(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                 const void *from, uint64_t bytes, enum cw_element element, uint32_t lane_tag, uint64_t operation);

/* The number of a rank at this process's endpoints, whatever path leads to it. CW_OK; CW_ERROR_UNSUPPORTED: one of the
 * two has no endpoint; others as cw_peer_add. */
int cw_paths_wire_peer(struct cw_paths *paths, uint32_t rank, uint32_t *peer);
/* Whether all ranks' cards say that they can be members of groups. */
bool cw_paths_all_multicast(const struct cw_paths *paths);

/* Takes what has come and goes on with what is under way; returns how much it did (0: nothing). */
uint32_t cw_paths_poll(struct cw_paths *paths);

/* Sleeps until something may have come, cw_paths_wake or another rank's cw_paths_kick is called, or the time is over.
 * Call it when cw_paths_poll has found nothing; it looks once more, and asks `is_over` (NULL: nobody), when whoever
 * changes what that looks at knows already that this process sleeps. */
void cw_paths_wait(struct cw_paths *paths, uint64_t timeout_ns, bool (*is_over)(void *context), void *context);
void cw_paths_wake(struct cw_paths *paths);

/* Says that this process runs on `core`. True: so does another rank that it talks to and that does not sleep: to spin
 * would keep it from running. */
bool cw_paths_share_core(struct cw_paths *paths, uint32_t core);

/* For those who share memory of their own with a rank of this host (shm/segment.h). cw_paths_kick ends its sleep in
 * cw_paths_wait; behind a full barrier. */
void cw_paths_kick(struct cw_paths *paths, uint32_t rank);
/* Whether that rank is on this host and bytes can be copied from and to it at once; from then on cw_paths_watch looks
 * after it. */
bool cw_paths_reaches_memory(struct cw_paths *paths, uint32_t rank);
/* Copies from or to memory of such a rank. CW_OK; CW_ERROR_NOT_FOUND, CW_ERROR_REMOTE_ACCESS, CW_ERROR_PERMISSION,
 * CW_ERROR_SYSTEM: see shm/copy.h. */
int cw_paths_copy_from(struct cw_paths *paths, uint32_t rank, void *to, uint64_t address, uint64_t bytes);
int cw_paths_copy_to(struct cw_paths *paths, uint32_t rank, uint64_t address, const void *from, uint64_t bytes);

/* Asks a rank whether it is there, every second or so while somebody waits for it. If packets reach it, and it is
 * silent, `down` follows within the endpoint's failure bound (cw_peer_ask). If it is on this host, and stopped by a
 * signal, `down` follows after `stopped_timeout_ns`; one that a debugger holds is waited for. Those that end are
 * found by cw_paths_watch. */
void cw_paths_ask(struct cw_paths *paths, uint32_t rank);
/* The same for all ranks of this host. */
void cw_paths_ask_here(struct cw_paths *paths);
/* The number in /proc of a rank's process, as its card has it; 0: it has none yet. */
int cw_paths_process(const struct cw_paths *paths, uint32_t rank);
/* Whether `down` has been called for a rank. */
bool cw_paths_is_down(const struct cw_paths *paths, uint32_t rank);
/* Whether a rank is down because nothing was heard of it, or because its process is stopped; else it has ended. */
bool cw_paths_is_silent(const struct cw_paths *paths, uint32_t rank);
bool cw_paths_is_stopped(const struct cw_paths *paths, uint32_t rank);
/* Whether a rank is down because no memory can be shared with it, or since packets do not reach it any more, for the
 * reason that cw_paths_why gives. */
bool cw_paths_is_unreachable(const struct cw_paths *paths, uint32_t rank);

/* Looks whether processes of this host that it has talked to are still there; `down` follows with the next poll. Every
 * second or so. */
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
    uint64_t time_outs; /* of them: nothing ended them but their time */
};
struct cw_paths_counters cw_paths_counters(const struct cw_paths *paths);
