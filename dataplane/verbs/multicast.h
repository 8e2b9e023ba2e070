/* Datagrams to groups: one UD queue pair, attached to groups that rdma_cm joins. Inside of libcauseway_verbs.so; the
 * calls are those of device.h. */
#pragma once

#include <infiniband/verbs.h>

#include "dataplane/verbs/find.h"

struct verbs_multicast;

/* The parts of the device that it uses, which outlive it. */
struct verbs_multicast_config {
    struct ibv_context *context;
    struct ibv_pd *protection;
    struct ibv_comp_channel *channel; /* its completions come there, too */
    const struct verbs_choice *choice;
    const uint8_t *address; /* [16] of the interface, as `ip` of struct cw_verbs_config; of InfiniBand */
};

/* NULL: it has no groups, and `error` says why. */
struct verbs_multicast *verbs_multicast_open(const struct verbs_multicast_config *config, char *error,
                                             size_t error_bytes);
/* NULL is allowed. */
void verbs_multicast_close(struct verbs_multicast *multicast);

int verbs_multicast_join(struct verbs_multicast *multicast, const uint8_t address[16], uint32_t *group);
bool verbs_multicast_is_joined(struct verbs_multicast *multicast, uint32_t group);
void verbs_multicast_leave(struct verbs_multicast *multicast, uint32_t group);
bool verbs_multicast_post(struct verbs_multicast *multicast, uint32_t group, const struct cw_verbs_buffer *datagram);
uint32_t verbs_multicast_receive_post(struct verbs_multicast *multicast, const struct cw_verbs_buffer *buffers,
                                      uint32_t count);
/* Answers of the network are processed before. */
int verbs_multicast_poll(struct verbs_multicast *multicast, struct ibv_wc *found, int count_max);
void verbs_multicast_arm(struct verbs_multicast *multicast);
