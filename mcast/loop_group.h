/* Loop group: the calls of mcast.h for any thread, by the loop that turns the endpoint (dataplane/loop/loop.h).
 *
 * Each call runs as owner of the endpoint, after earlier calls of this thread to the loop. cw_loop_poll and
 * cw_loop_wait call the handler, in the thread that calls them. Arguments, results and errors are those of the function
 * in mcast.h with the same last word.
 *
 * Order of calls: those of mcast.h; all between cw_host_open and cw_host_close.
 * Thread: any, but not from within cw_loop_call. */
#pragma once

#include "dataplane/loop/loop.h"
#include "mcast/mcast.h"

#ifdef __cplusplus
extern "C" {
#endif

int cw_loop_mcast_create(struct cw_loop *loop, const struct cw_mcast_config *config, struct cw_mcast **mcast,
                         char *error, size_t error_bytes);
void cw_loop_mcast_destroy(struct cw_loop *loop, struct cw_mcast *mcast);

int cw_loop_group_open(struct cw_loop *loop, struct cw_mcast *mcast, const struct cw_mcast_group_config *config,
                       struct cw_mcast_group **group, char *error, size_t error_bytes);
/* In the thread that takes events, or while no thread does. */
void cw_loop_group_shut(struct cw_loop *loop, struct cw_mcast_group *group);
bool cw_loop_group_is_joined(struct cw_loop *loop, const struct cw_mcast_group *group);
int cw_loop_group_change(struct cw_loop *loop, struct cw_mcast_group *group, uint32_t epoch, const bool *live);

int cw_loop_group_send(struct cw_loop *loop, struct cw_mcast_group *group, const struct cw_mcast_put *put);
int cw_loop_group_register(struct cw_loop *loop, struct cw_mcast_group *group, uint32_t sender, void *to,
                           uint64_t bytes, uint64_t context);

struct cw_mcast_counters cw_loop_mcast_counters(struct cw_loop *loop, const struct cw_mcast *mcast);
struct cw_mcast_stream_info cw_loop_group_stream(struct cw_loop *loop, const struct cw_mcast_group *group);

#ifdef __cplusplus
}
#endif
