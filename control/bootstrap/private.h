/* What bootstrap.c and its clients share.
 *
 * A client is a table of functions; bootstrap.c has checked all arguments before it calls them, and tells people's
 * lines from `failure`. */
#pragma once

#include "control/bootstrap/bootstrap.h"

enum { BOOTSTRAP_FAILURE_BYTES = 256 };

/* Each returns what the function of bootstrap.h returns, and leaves a line in bootstrap->failure when it fails. */
struct bootstrap_client {
    int (*put)(struct cw_bootstrap *bootstrap, const char *key, const char *value);
    int (*get)(struct cw_bootstrap *bootstrap, const char *key, char *value, size_t value_bytes);
    int (*fence)(struct cw_bootstrap *bootstrap);
    void (*abort)(struct cw_bootstrap *bootstrap, int code); /* returns once the launcher has been told, or cannot be */
    bool (*is_cut)(const struct cw_bootstrap *bootstrap);    /* NULL: there is no launcher */
    void (*finish)(struct cw_bootstrap *bootstrap);          /* says goodbye */
    void (*release)(struct cw_bootstrap *bootstrap);         /* of what the client has allocated */
};

struct cw_bootstrap {
    const struct bootstrap_client *client;
    void *state; /* of the client */
    struct cw_bootstrap_info info;
    char failure[BOOTSTRAP_FAILURE_BYTES];
};

/* Fill `client`, `state` and `info`, or fail with a line in `failure`; what they have allocated by then is released by
 * themselves. */
int bootstrap_pmi1_open(struct cw_bootstrap *bootstrap);
int bootstrap_none_open(struct cw_bootstrap *bootstrap);
