/* pmi1_server: the launcher's side of PMI-1 for one job: bytes of its clients come in, lines for them come out. No I/O.
 *
 * Serves what MPICH's client and ours ask for: init, limits, name and size of the job, a table (put, get, barrier),
 * abort, finalize. Publishing names and spawning processes are rejected, with answers that these clients understand.
 *
 * Invariants
 *   - No input of a client corrupts the server: after a command that cannot be answered, this one client has failed
 *     permanently.
 *   - Memory is bounded: CW_PMI1_SERVER_KEYS keys for each client, one incomplete line, and the answers to one call of
 *     cw_pmi1_server_receive. So pass more input of a client only after its answers are sent.
 *   - What one client has put can be got by all after the next barrier (and is, before).
 *   - A server of some of a job's clients (`job_size`) holds a barrier until the caller that joins the servers releases
 *     it: cw_pmi1_server_is_held, cw_pmi1_server_fresh, then cw_pmi1_server_add with the entries of the others, and
 *     cw_pmi1_server_release.
 *
 * Order of calls
 *   cw_pmi1_server_create
 *   { cw_pmi1_server_receive; { cw_pmi1_server_next; cw_pmi1_server_pending, cw_pmi1_server_sent }* }*
 *   cw_pmi1_server_destroy
 *
 * Thread: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_PMI1_SERVER_CLIENTS_MAX = 1 << 16,
    CW_PMI1_SERVER_KEYS = 64,      /* for each client of the job */
    CW_PMI1_SERVER_KEY_BYTES = 64, /* with a 0 at the end, as are the next two */
    CW_PMI1_SERVER_VALUE_BYTES = 1024,
    CW_PMI1_SERVER_JOB_BYTES = 256,
};

struct cw_pmi1_server;

struct cw_pmi1_server_config {
    uint32_t client_count; /* 1 .. CW_PMI1_SERVER_CLIENTS_MAX */
    uint32_t job_size;     /* clients of all servers of the job; 0: this is the only one */
    uint32_t universe_size;
    const char *job; /* name of the job and its table: printable, no blank, below CW_PMI1_SERVER_JOB_BYTES */
    const char *process_mapping; /* value of PMI_process_mapping, as Hydra gives it; NULL: all are on one host */
    const uint32_t *app_numbers; /* one for each client, copied; NULL: all are 0 */
};

enum cw_pmi1_client_state {
    CW_PMI1_CLIENT_NEW = 0, /* has sent nothing yet */
    CW_PMI1_CLIENT_ACTIVE = 1,
    CW_PMI1_CLIENT_FINISHED = 2, /* has said goodbye; may begin again */
    CW_PMI1_CLIENT_FAILED = 3,   /* has sent what cannot be answered; nothing more is taken */
};

/* CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_MEMORY. */
int cw_pmi1_server_create(const struct cw_pmi1_server_config *config, struct cw_pmi1_server **server);
/* NULL is allowed. */
void cw_pmi1_server_destroy(struct cw_pmi1_server *server);

/* Parses input of a client, in pieces of any size. CW_OK; CW_ERROR_ARGUMENT, CW_ERROR_LIMIT, CW_ERROR_MEMORY: this
 * client has failed, cw_pmi1_server_failure says why. */
int cw_pmi1_server_receive(struct cw_pmi1_server *server, uint32_t client, const char *bytes, size_t count);
/* Error of the last client that failed, in one line. */
const char *cw_pmi1_server_failure(const struct cw_pmi1_server *server);

/* A client with new output since it was last returned here. False: none. */
bool cw_pmi1_server_next(struct cw_pmi1_server *server, uint32_t *client);
/* Bytes to send to a client, and their address: valid until the next call for this server. */
size_t cw_pmi1_server_pending(const struct cw_pmi1_server *server, uint32_t client, const char **bytes);
/* The first `count` bytes of it have been sent. */
void cw_pmi1_server_sent(struct cw_pmi1_server *server, uint32_t client, size_t count);

enum cw_pmi1_client_state cw_pmi1_server_state(const struct cw_pmi1_server *server, uint32_t client);
/* Clients in this state. */
uint32_t cw_pmi1_server_count(const struct cw_pmi1_server *server, enum cw_pmi1_client_state state);
/* ---- barriers of several servers ---- */

/* Whether all clients wait, and for the other servers' alone. */
bool cw_pmi1_server_is_held(const struct cw_pmi1_server *server);
/* Hands out what clients have put since the last time. */
void cw_pmi1_server_fresh(struct cw_pmi1_server *server,
                          void (*receive)(void *context, const char *key, const char *value), void *context);
/* Another server's client has put it. CW_OK; CW_ERROR_ARGUMENT, CW_ERROR_LIMIT, CW_ERROR_MEMORY. */
int cw_pmi1_server_add(struct cw_pmi1_server *server, const char *key, const char *value);
/* All clients of the job wait: releases ours. */
void cw_pmi1_server_release(struct cw_pmi1_server *server);

/* Whether the client waits in a barrier. */
bool cw_pmi1_server_waits(const struct cw_pmi1_server *server, uint32_t client);
/* Whether a client has asked for the end of the job; the first one and its exit code, 0 .. 255. */
bool cw_pmi1_server_aborted(const struct cw_pmi1_server *server, uint32_t *client, int *code);
