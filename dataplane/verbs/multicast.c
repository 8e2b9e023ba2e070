#include "dataplane/verbs/multicast.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "dataplane/status.h"

struct verbs_group {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;             /* family 0: free */
    bool is_answered;      /* by the network */
    struct ibv_ah *handle; /* NULL: nobody is reached */
    union ibv_gid gid;
    uint16_t lid;
    uint32_t number; /* of the queue pairs that are meant */
    uint32_t key;
};

struct verbs_multicast {
    struct ibv_pd *protection;
    struct ibv_qp *pair;
    struct ibv_cq *queue;
    struct rdma_event_channel *events;
    struct rdma_cm_id *id;
    uint32_t joining; /* groups that the network has not answered for */
    struct verbs_group groups[CW_VERBS_GROUPS_MAX];
};

/* ---- groups ---- */

static bool address_write(const uint8_t ip[16], uint32_t interface, struct verbs_group *group)
{
    static const uint8_t none[16] = {0}, mapped[12] = {[10] = 0xff, [11] = 0xff};
    memset(&group->address, 0, sizeof(group->address));
    if (memcmp(ip, mapped, sizeof(mapped)) == 0) {
        group->address.v4.sin_family = AF_INET;
        memcpy(&group->address.v4.sin_addr, ip + sizeof(mapped), 4);
    } else {
        group->address.v6.sin6_family = AF_INET6;
        group->address.v6.sin6_scope_id = interface;
        memcpy(&group->address.v6.sin6_addr, ip, 16);
    }
    return memcmp(ip, none, sizeof(none)) != 0;
}

int verbs_multicast_join(struct verbs_multicast *multicast, const uint8_t address[16], uint32_t *group)
{
    uint32_t at = 0;
    while (at < CW_VERBS_GROUPS_MAX && multicast->groups[at].address.any.sa_family != 0) {
        at++;
    }
    if (at == CW_VERBS_GROUPS_MAX) {
        return CW_ERROR_LIMIT;
    }
    struct verbs_group *made = &multicast->groups[at];
    *made = (struct verbs_group){.is_answered = false};
    (void)address_write(address, 0, made);
    if (rdma_join_multicast(multicast->id, &made->address.any, made) != 0) {
        made->address.any.sa_family = 0;
        return errno == ENOMEM || errno == ENOSPC ? CW_ERROR_LIMIT : CW_ERROR_SYSTEM;
    }
    multicast->joining++;
    *group = at;
    return CW_OK;
}

/* The network has answered: the group can receive and send. If it refuses, the group has no members. */
static void group_answered(struct verbs_multicast *multicast, struct rdma_cm_event *event)
{
    struct verbs_group *group = (struct verbs_group *)(uintptr_t)event->param.ud.private_data;
    for (uint32_t i = 0; event->event == RDMA_CM_EVENT_DEVICE_REMOVAL && i < CW_VERBS_GROUPS_MAX; i++) {
        multicast->groups[i].is_answered = true; /* no answer will come */
        multicast->joining = 0;
    }
    bool is_joined = event->event == RDMA_CM_EVENT_MULTICAST_JOIN && event->status == 0;
    if (!is_joined && event->event != RDMA_CM_EVENT_MULTICAST_ERROR) {
        return; /* an address has changed, and the like */
    }
    if (group == NULL || group->address.any.sa_family == 0 || group->is_answered) {
        return;
    }
    group->is_answered = true;
    multicast->joining--;
    if (!is_joined) {
        return;
    }
    struct ibv_ah_attr attributes = event->param.ud.ah_attr;
    group->gid = attributes.grh.dgid;
    group->lid = attributes.dlid;
    group->number = event->param.ud.qp_num;
    group->key = event->param.ud.qkey;
    if (ibv_attach_mcast(multicast->pair, &group->gid, group->lid) == 0) {
        group->handle = ibv_create_ah(multicast->protection, &attributes);
        if (group->handle == NULL) {
            (void)ibv_detach_mcast(multicast->pair, &group->gid, group->lid);
        }
    }
}

static void answers_receive(struct verbs_multicast *multicast)
{
    struct rdma_cm_event *event;
    while (multicast->joining > 0 && rdma_get_cm_event(multicast->events, &event) == 0) { /* it does not block */
        group_answered(multicast, event);
        (void)rdma_ack_cm_event(event);
    }
}

bool verbs_multicast_is_joined(struct verbs_multicast *multicast, uint32_t group)
{
    answers_receive(multicast);
    return multicast->groups[group].is_answered;
}

void verbs_multicast_leave(struct verbs_multicast *multicast, uint32_t index)
{
    struct verbs_group *group = &multicast->groups[index];
    answers_receive(multicast);
    if (group->handle != NULL) {
        (void)ibv_detach_mcast(multicast->pair, &group->gid, group->lid);
        (void)ibv_destroy_ah(group->handle);
        group->handle = NULL;
    } else if (!group->is_answered) {
        multicast->joining--;
    }
    (void)rdma_leave_multicast(multicast->id, &group->address.any);
    group->address.any.sa_family = 0;
}

/* ---- datagrams ---- */

bool verbs_multicast_post(struct verbs_multicast *multicast, uint32_t index, const struct cw_verbs_buffer *datagram)
{
    const struct verbs_group *group = &multicast->groups[index];
    struct ibv_sge piece = {.addr = (uintptr_t)datagram->data - datagram->memory->shift,
                            .length = datagram->bytes,
                            .lkey = datagram->memory->local_key};
    struct ibv_send_wr request = {
        .wr_id = datagram->id,
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.ud = {.ah = group->handle, .remote_qpn = group->number, .remote_qkey = group->key},
    };
    struct ibv_send_wr *refused;
    return group->handle != NULL && ibv_post_send(multicast->pair, &request, &refused) == 0;
}

uint32_t verbs_multicast_receive_post(struct verbs_multicast *multicast, const struct cw_verbs_buffer *buffers,
                                      uint32_t count)
{
    uint32_t taken = 0;
    for (; taken < count; taken++) {
        struct ibv_sge piece = {.addr = (uintptr_t)buffers[taken].data - buffers[taken].memory->shift,
                                .length = buffers[taken].bytes,
                                .lkey = buffers[taken].memory->local_key};
        struct ibv_recv_wr request = {.wr_id = buffers[taken].id, .sg_list = &piece, .num_sge = 1};
        struct ibv_recv_wr *refused;
        if (ibv_post_recv(multicast->pair, &request, &refused) != 0) {
            break;
        }
    }
    return taken;
}

int verbs_multicast_poll(struct verbs_multicast *multicast, struct ibv_wc *found, int count_max)
{
    if (multicast->joining > 0) {
        answers_receive(multicast);
    }
    return ibv_poll_cq(multicast->queue, count_max, found);
}

void verbs_multicast_arm(struct verbs_multicast *multicast)
{
    (void)ibv_req_notify_cq(multicast->queue, 0);
}

/* ---- opening ---- */

void verbs_multicast_close(struct verbs_multicast *multicast)
{
    if (multicast == NULL) {
        return;
    }
    for (uint32_t i = 0; i < CW_VERBS_GROUPS_MAX; i++) {
        if (multicast->groups[i].address.any.sa_family != 0) {
            verbs_multicast_leave(multicast, i);
        }
    }
    if (multicast->pair != NULL) {
        (void)ibv_destroy_qp(multicast->pair);
    }
    if (multicast->queue != NULL) {
        (void)ibv_destroy_cq(multicast->queue);
    }
    if (multicast->id != NULL) {
        (void)rdma_destroy_id(multicast->id);
    }
    if (multicast->events != NULL) {
        rdma_destroy_event_channel(multicast->events);
    }
    free(multicast);
}

static bool pair_make(struct verbs_multicast *multicast, const struct verbs_multicast_config *config)
{
    int room = CW_VERBS_DATAGRAMS_IN + CW_VERBS_DATAGRAMS_OUT;
    multicast->queue = ibv_create_cq(config->context, room, NULL, config->channel, 0);
    if (multicast->queue == NULL) {
        return false;
    }
    struct ibv_qp_init_attr wanted = {
        .send_cq = multicast->queue,
        .recv_cq = multicast->queue,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = CW_VERBS_DATAGRAMS_OUT,
                .max_recv_wr = CW_VERBS_DATAGRAMS_IN,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    multicast->pair = ibv_create_qp(config->protection, &wanted);
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT, .port_num = config->choice->port.number, .qkey = RDMA_UDP_QKEY};
    if (multicast->pair == NULL || ibv_modify_qp(multicast->pair, &attributes,
                                                 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0) {
        return false;
    }
    attributes.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(multicast->pair, &attributes, IBV_QP_STATE) != 0) {
        return false;
    }
    attributes.qp_state = IBV_QPS_RTS;
    return ibv_modify_qp(multicast->pair, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0;
}

/* Whether rdma_cm, which knows interfaces by their IP addresses, means the port that is meant. */
static bool id_make(struct verbs_multicast *multicast, const struct verbs_multicast_config *config)
{
    const struct cw_verbs_port *port = &config->choice->port;
    struct verbs_group own;
    if (!address_write(port->kind == CW_VERBS_INFINIBAND ? config->address : port->gid, config->choice->interface,
                       &own)) {
        errno = EADDRNOTAVAIL;
        return false;
    }
    multicast->events = rdma_create_event_channel();
    if (multicast->events == NULL ||
        fcntl(multicast->events->fd, F_SETFL, fcntl(multicast->events->fd, F_GETFL) | O_NONBLOCK) != 0 ||
        rdma_create_id(multicast->events, &multicast->id, NULL, RDMA_PS_UDP) != 0 ||
        rdma_bind_addr(multicast->id, &own.address.any) != 0) {
        return false;
    }
    bool is_it = multicast->id->verbs != NULL && multicast->id->port_num == port->number &&
                 strcmp(ibv_get_device_name(multicast->id->verbs->device), port->name) == 0;
    errno = is_it ? 0 : EADDRNOTAVAIL;
    return is_it;
}

struct verbs_multicast *verbs_multicast_open(const struct verbs_multicast_config *config, char *error,
                                             size_t error_bytes)
{
    struct verbs_multicast *multicast = calloc(1, sizeof(*multicast));
    if (multicast == NULL) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    multicast->protection = config->protection;
    const char *what = NULL;
    if (!id_make(multicast, config)) {
        what = "rdma_cm cannot join groups (is the kernel's module rdma_ucm loaded?)";
    } else if (!pair_make(multicast, config)) {
        what = "a queue pair for datagrams";
    }
    if (what != NULL) {
        snprintf(error, error_bytes, "%s: %s", what, strerror(errno));
        verbs_multicast_close(multicast);
        return NULL;
    }
    return multicast;
}
