#include "mcast/loop_group.h"

#include "dataplane/status.h"

/* ---- the extension ---- */

struct creation {
    const struct cw_mcast_config *config;
    struct cw_mcast **mcast;
    char *error;
    size_t error_bytes;
};

static int create(struct cw_endpoint *endpoint, void *context)
{
    const struct creation *creation = context;
    return cw_mcast_create(creation->config, endpoint, creation->mcast, creation->error, creation->error_bytes);
}

int cw_loop_mcast_create(struct cw_loop *loop, const struct cw_mcast_config *config, struct cw_mcast **mcast,
                         char *error, size_t error_bytes)
{
    struct creation creation = {.config = config, .mcast = mcast, .error = error, .error_bytes = error_bytes};
    return cw_loop_call(loop, create, &creation);
}

static int destroy(struct cw_endpoint *endpoint, void *context)
{
    (void)endpoint;
    cw_mcast_destroy(context);
    return CW_OK;
}

void cw_loop_mcast_destroy(struct cw_loop *loop, struct cw_mcast *mcast)
{
    (void)cw_loop_call(loop, destroy, mcast);
}

/* ---- groups ---- */

/* The arguments of any of the calls below. */
struct call {
    struct cw_mcast *mcast;
    struct cw_mcast_group *group;
    const struct cw_mcast_group_config *config;
    const struct cw_mcast_put *put;
    const bool *live;
    char *error;
    size_t error_bytes;
    struct cw_mcast_counters counters;
    struct cw_mcast_stream_info stream;
    void *to;
    uint64_t bytes;
    uint64_t context;
    uint32_t number; /* of a member, or of an epoch */
};

static int group_open(struct cw_endpoint *endpoint, void *context)
{
    struct call *call = context;
    (void)endpoint;
    return cw_mcast_open(call->mcast, call->config, &call->group, call->error, call->error_bytes);
}

int cw_loop_group_open(struct cw_loop *loop, struct cw_mcast *mcast, const struct cw_mcast_group_config *config,
                       struct cw_mcast_group **group, char *error, size_t error_bytes)
{
    struct call call = {.mcast = mcast, .config = config, .error = error, .error_bytes = error_bytes};
    int status = cw_loop_call(loop, group_open, &call);
    *group = call.group;
    return status;
}

static int group_shut(struct cw_endpoint *endpoint, void *context)
{
    (void)endpoint;
    cw_mcast_shut(context);
    return CW_OK;
}

void cw_loop_group_shut(struct cw_loop *loop, struct cw_mcast_group *group)
{
    (void)cw_loop_call(loop, group_shut, group);
}

static int group_is_joined(struct cw_endpoint *endpoint, void *context)
{
    const struct call *call = context;
    (void)endpoint;
    return cw_mcast_is_joined(call->group);
}

bool cw_loop_group_is_joined(struct cw_loop *loop, const struct cw_mcast_group *group)
{
    struct call call = {.group = (struct cw_mcast_group *)(uintptr_t)group};
    return cw_loop_call(loop, group_is_joined, &call) != 0;
}

static int group_change(struct cw_endpoint *endpoint, void *context)
{
    const struct call *call = context;
    (void)endpoint;
    return cw_mcast_change(call->group, call->number, call->live);
}

int cw_loop_group_change(struct cw_loop *loop, struct cw_mcast_group *group, uint32_t epoch, const bool *live)
{
    struct call call = {.group = group, .number = epoch, .live = live};
    return cw_loop_call(loop, group_change, &call);
}

/* ---- messages ---- */

static int group_send(struct cw_endpoint *endpoint, void *context)
{
    const struct call *call = context;
    (void)endpoint;
    return cw_mcast_send(call->group, call->put);
}

int cw_loop_group_send(struct cw_loop *loop, struct cw_mcast_group *group, const struct cw_mcast_put *put)
{
    struct call call = {.group = group, .put = put};
    return cw_loop_call(loop, group_send, &call);
}

static int group_register(struct cw_endpoint *endpoint, void *context)
{
    const struct call *call = context;
    (void)endpoint;
    return cw_mcast_register(call->group, call->number, call->to, call->bytes, call->context);
}

int cw_loop_group_register(struct cw_loop *loop, struct cw_mcast_group *group, uint32_t sender, void *to,
                           uint64_t bytes, uint64_t context)
{
    struct call call = {.group = group, .number = sender, .to = to, .bytes = bytes, .context = context};
    return cw_loop_call(loop, group_register, &call);
}

/* ---- what it has done ---- */

static int mcast_counters(struct cw_endpoint *endpoint, void *context)
{
    struct call *call = context;
    (void)endpoint;
    call->counters = cw_mcast_counters(call->mcast);
    return CW_OK;
}

struct cw_mcast_counters cw_loop_mcast_counters(struct cw_loop *loop, const struct cw_mcast *mcast)
{
    struct call call = {.mcast = (struct cw_mcast *)(uintptr_t)mcast};
    (void)cw_loop_call(loop, mcast_counters, &call);
    return call.counters;
}

static int group_stream(struct cw_endpoint *endpoint, void *context)
{
    struct call *call = context;
    (void)endpoint;
    call->stream = cw_mcast_stream(call->group);
    return CW_OK;
}

struct cw_mcast_stream_info cw_loop_group_stream(struct cw_loop *loop, const struct cw_mcast_group *group)
{
    struct call call = {.group = (struct cw_mcast_group *)(uintptr_t)group};
    (void)cw_loop_call(loop, group_stream, &call);
    return call.stream;
}
