/* Shared by bootstrap.c and its clients.
 *
 * A client is a table of functions; bootstrap.c has checked all arguments before it calls them, and tells people's
 * lines from `failure`. */
#pragma once

#include "control/bootstrap/bootstrap.h"
#include "dataplane/port/error_text.h"

enum {
    BOOTSTRAP_FAILURE_BYTES = 256,
    BOOTSTRAP_RANKS_MAX = 1 << 24, /* more is no launcher's number */
};

/* Each returns what the function of bootstrap.h returns, and leaves a line in bootstrap->failure when it fails. */
struct bootstrap_client {
    int (*put)(struct cw_bootstrap *bootstrap, const char *key, const char *value);
    int (*get)(struct cw_bootstrap *bootstrap, const char *key, char *value, size_t value_bytes);
    /* NULL: one after the other */
    int (*get_each)(struct cw_bootstrap *bootstrap, uint32_t count, const struct cw_bootstrap_reader *reader);
    int (*fence)(struct cw_bootstrap *bootstrap);
    void (*abort)(struct cw_bootstrap *bootstrap, int code); /* returns once the launcher has been notified, or cannot
                                                              * be */
    bool (*is_cut)(const struct cw_bootstrap *bootstrap);    /* NULL: there is no launcher */
    void (*finish)(struct cw_bootstrap *bootstrap);          /* says goodbye */
    void (*release)(struct cw_bootstrap *bootstrap);         /* the client's allocations */
};

struct cw_bootstrap {
    const struct bootstrap_client *client;
    void *state; /* of the client */
    struct cw_bootstrap_info info;
    struct cw_bootstrap_traffic traffic;
    char failure[BOOTSTRAP_FAILURE_BYTES];
};

#define FAIL(bootstrap, status, ...) \
    cw_error_text((bootstrap)->failure, sizeof((bootstrap)->failure), (status), __VA_ARGS__)

/* Fill `client`, `state` and `info`, or fail with a line in `failure`. On failure they release their own
 * allocations. */
int bootstrap_pmi1_open(struct cw_bootstrap *bootstrap);
/* Also CW_ERROR_NOT_FOUND: the library of PMIx is not there. */
int bootstrap_pmix_open(struct cw_bootstrap *bootstrap);
int bootstrap_none_open(struct cw_bootstrap *bootstrap);

/* The descriptor of PMI-1 (pmi_socket.c). */

/* A number from the environment. CW_OK; CW_ERROR_UNSUPPORTED. */
int bootstrap_pmi_number(struct cw_bootstrap *bootstrap, const char *name, long low, long high, long *number);
/* PMI_FD, which is the caller's now, and PMI_RANK and PMI_SIZE into `info`. CW_OK; CW_ERROR_UNSUPPORTED;
 * CW_ERROR_SYSTEM: no such descriptor. */
int bootstrap_pmi_inherit(struct cw_bootstrap *bootstrap, int *descriptor);
/* All of it. CW_OK; CW_ERROR_CLOSED; CW_ERROR_SYSTEM. */
int bootstrap_pmi_write(struct cw_bootstrap *bootstrap, int descriptor, const char *text, size_t length);
/* Reads available bytes, at least one unless a signal arrives. CW_OK; CW_ERROR_CLOSED; CW_ERROR_SYSTEM. */
int bootstrap_pmi_read(struct cw_bootstrap *bootstrap, int descriptor, char *text, size_t room, size_t *got);
bool bootstrap_pmi_is_cut(int descriptor);
