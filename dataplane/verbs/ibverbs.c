/* Devices of libibverbs, by RC queue pairs with one shared receive queue; datagrams to groups are multicast.c's. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <infiniband/verbs.h>

#include "dataplane/status.h"
#include "dataplane/verbs/find.h"
#include "dataplane/verbs/module.h"
#include "dataplane/verbs/multicast.h"

enum {
    PAGE_BYTES = 4096,
    INLINE_WANTED = 220, /* the limit of common devices without a larger work request */
    PAIRS_FIRST = 16,    /* that the queue of own completions has room for; it grows */
    RECEIVE_SPARE = 64,
    MESSAGE_MAX = 1 << 30, /* a work request of a second at 10 Gb/s is long enough */
    TIMEOUT_CODE = 14,     /* 67 ms */
    RETRIES = 6,           /* rdma_rxe takes 7 for no bound */
    RECEIVER_RETRIES = 7,  /* of an empty receive queue: forever */
    RECEIVER_CODE = 7,     /* ... after 0.12 ms */
    READS_MAX = 16,
    HOPS = 64,
};

#define SETTLE_NS 5000000ull /* a driver without hardware (rxe) may still be in the middle of a packet */

struct verbs_device {
    struct cw_verbs_device base;
    struct ibv_context *context;
    struct ibv_pd *protection;
    struct ibv_comp_channel *channel;
    struct ibv_cq *queues[2]; /* CW_VERBS_SENT, CW_VERBS_RECEIVED */
    struct ibv_srq *receive;
    struct verbs_multicast *multicast; /* NULL: it has no groups */
    struct verbs_choice choice;
    uint32_t reads_in;  /* of peers, that are answered at a time */
    uint32_t reads_out; /* own ones at a time */
    uint32_t room_max;
    uint32_t pair_count;
    uint32_t sent_room; /* entries of the queue of own completions */
    bool has_failed;
};

struct verbs_pair {
    struct cw_verbs_pair base;
    struct ibv_qp *pair;
    struct cw_verbs_address own;
};

static struct verbs_device *device_of(struct cw_verbs_device *device)
{
    return (struct verbs_device *)device; /* its first member */
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static int status_of(int error)
{
    return error == ENOMEM || error == EAGAIN ? CW_ERROR_LIMIT : CW_ERROR_SYSTEM;
}

/* ---- memory ---- */

static int memory_register(struct cw_verbs_device *base, void *memory, uint64_t bytes, uint32_t rights,
                           struct cw_verbs_memory *registered)
{
    struct verbs_device *device = device_of(base);
    unsigned access = IBV_ACCESS_LOCAL_WRITE | ((rights & CW_VERBS_WRITE) != 0 ? IBV_ACCESS_REMOTE_WRITE : 0u) |
                      ((rights & CW_VERBS_READ) != 0 ? IBV_ACCESS_REMOTE_READ : 0u);
    uint64_t first = (uintptr_t)memory % PAGE_BYTES;
    struct ibv_mr *region = ibv_reg_mr_iova(device->protection, memory, bytes, first, access);
    if (region == NULL && (rights & (CW_VERBS_WRITE | CW_VERBS_FILL)) == 0) { /* it may lie in read-only memory */
        region = ibv_reg_mr_iova(device->protection, memory, bytes, first, access & ~(unsigned)IBV_ACCESS_LOCAL_WRITE);
    }
    if (region == NULL) {
        return status_of(errno);
    }
    *registered = (struct cw_verbs_memory){.handle = region,
                                           .local_key = region->lkey,
                                           .remote_key = region->rkey,
                                           .remote_base = first,
                                           .shift = (uintptr_t)memory - first};
    return CW_OK;
}

static void memory_unregister(struct cw_verbs_device *base, struct cw_verbs_memory *registered)
{
    (void)base;
    (void)ibv_dereg_mr(registered->handle);
}

/* ---- pairs ---- */

static struct ibv_qp *pair_new(struct verbs_device *device, uint32_t inline_bytes, struct ibv_qp_cap *granted)
{
    struct ibv_qp_init_attr wanted = {
        .send_cq = device->queues[CW_VERBS_SENT],
        .recv_cq = device->queues[CW_VERBS_RECEIVED],
        .srq = device->receive,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = device->base.info.work_max,
                .max_send_sge = device->base.info.pieces_max,
                .max_inline_data = inline_bytes},
    };
    struct ibv_qp *pair = ibv_create_qp(device->protection, &wanted);
    if (pair != NULL && granted != NULL) {
        *granted = wanted.cap;
    }
    return pair;
}

/* Room for the completions of one more pair. */
static bool room_make(struct verbs_device *device)
{
    uint32_t wanted = (device->pair_count + 1) * device->base.info.work_max;
    if (wanted <= device->sent_room) {
        return true;
    }
    uint32_t room = least(2 * wanted, device->room_max);
    if (room < wanted || ibv_resize_cq(device->queues[CW_VERBS_SENT], (int)room) != 0) {
        return false;
    }
    device->sent_room = (uint32_t)device->queues[CW_VERBS_SENT]->cqe;
    return device->sent_room >= wanted;
}

static int pair_create(struct cw_verbs_device *base, struct cw_verbs_pair **created, struct cw_verbs_address *address)
{
    struct verbs_device *device = device_of(base);
    struct verbs_pair *pair = room_make(device) ? calloc(1, sizeof(*pair)) : NULL;
    if (pair == NULL) {
        return CW_ERROR_LIMIT;
    }
    pair->base.device = base;
    pair->pair = pair_new(device, base->info.inline_max, NULL);
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT,
                                     .port_num = base->info.port.number,
                                     .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    if (pair->pair == NULL ||
        ibv_modify_qp(pair->pair, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) !=
            0) {
        int status = status_of(errno);
        if (pair->pair != NULL) {
            (void)ibv_destroy_qp(pair->pair);
        }
        free(pair);
        return status;
    }
    device->pair_count++;
    uint32_t first = 0; /* packets of a former pair are not counted as its own */
    (void)getrandom(&first, sizeof(first), 0);
    pair->own = (struct cw_verbs_address){.number = pair->pair->qp_num,
                                          .first = first & 0xffffff,
                                          .mtu_bytes = base->info.port.mtu_bytes,
                                          .lid = base->info.port.lid,
                                          .reads = (uint8_t)device->reads_in};
    memcpy(pair->own.gid, base->info.port.gid, sizeof(pair->own.gid));
    *address = pair->own;
    *created = &pair->base;
    return CW_OK;
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
    return bytes >= 4096   ? IBV_MTU_4096
           : bytes >= 2048 ? IBV_MTU_2048
           : bytes >= 1024 ? IBV_MTU_1024
           : bytes >= 512  ? IBV_MTU_512
                           : IBV_MTU_256;
}

static int pair_connect(struct cw_verbs_pair *base, const struct cw_verbs_address *peer)
{
    struct verbs_pair *pair = (struct verbs_pair *)base;
    const struct verbs_device *device = device_of(base->device);
    uint32_t mtu_bytes = least(peer->mtu_bytes, base->device->info.port.mtu_bytes);
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_of(mtu_bytes),
        .dest_qp_num = peer->number & 0xffffff,
        .rq_psn = peer->first & 0xffffff,
        .max_dest_rd_atomic = (uint8_t)device->reads_in,
        .min_rnr_timer = RECEIVER_CODE,
        .ah_attr = {.is_global = device->choice.is_global,
                    .dlid = peer->lid,
                    .port_num = device->choice.port.number,
                    .grh = {.sgid_index = device->choice.gid_index, .hop_limit = HOPS}},
    };
    memcpy(attributes.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
    if (ibv_modify_qp(pair->pair, &attributes,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
        return errno == EINVAL || errno == ENETUNREACH || errno == EHOSTUNREACH ? CW_ERROR_ARGUMENT : CW_ERROR_SYSTEM;
    }
    attributes = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                      .sq_psn = pair->own.first,
                                      .timeout = TIMEOUT_CODE,
                                      .retry_cnt = RETRIES,
                                      .rnr_retry = RECEIVER_RETRIES,
                                      .max_rd_atomic = (uint8_t)least(device->reads_out, peer->reads)};
    int failed = ibv_modify_qp(pair->pair, &attributes,
                               IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                   IBV_QP_MAX_QP_RD_ATOMIC);
    return failed == 0 ? CW_OK : CW_ERROR_SYSTEM;
}

static void pair_break(struct cw_verbs_pair *base)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_ERR};
    (void)ibv_modify_qp(((struct verbs_pair *)base)->pair, &attributes, IBV_QP_STATE);
}

static void pair_destroy(struct cw_verbs_pair *base)
{
    struct verbs_pair *pair = (struct verbs_pair *)base;
    (void)ibv_destroy_qp(pair->pair);
    device_of(base->device)->pair_count--;
    free(pair);
}

/* ---- work ---- */

static void work_write(const struct cw_verbs_work *work, struct ibv_send_wr *request, struct ibv_sge *pieces)
{
    static const enum ibv_wr_opcode opcodes[] = {
        [CW_VERBS_OP_WRITE] = IBV_WR_RDMA_WRITE,
        [CW_VERBS_OP_WRITE_NOTIFY] = IBV_WR_RDMA_WRITE_WITH_IMM,
        [CW_VERBS_OP_SEND] = IBV_WR_SEND_WITH_IMM,
        [CW_VERBS_OP_READ] = IBV_WR_RDMA_READ,
    };
    for (uint32_t i = 0; i < work->piece_count; i++) {
        const struct cw_verbs_piece *piece = &work->pieces[i];
        pieces[i].addr = (uintptr_t)piece->data - (work->is_inline ? 0 : piece->memory->shift);
        pieces[i].length = piece->bytes;
        pieces[i].lkey = work->is_inline ? 0 : piece->memory->local_key;
    }
    request->wr_id = work->id;
    request->next = NULL;
    request->sg_list = pieces;
    request->num_sge = (int)work->piece_count;
    request->opcode = opcodes[work->opcode];
    request->send_flags =
        (work->signaled ? IBV_SEND_SIGNALED : 0u) | (work->is_inline && work->piece_count > 0 ? IBV_SEND_INLINE : 0u);
    request->imm_data = htonl(work->immediate);
    request->wr.rdma.remote_addr = work->remote;
    request->wr.rdma.rkey = work->remote_key;
}

static uint32_t pair_post(struct cw_verbs_pair *base, const struct cw_verbs_work *work, uint32_t count)
{
    struct ibv_send_wr requests[CW_VERBS_BURST];
    struct ibv_sge pieces[CW_VERBS_BURST][CW_VERBS_PIECES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        work_write(&work[i], &requests[i], pieces[i]);
        if (i > 0) {
            requests[i - 1].next = &requests[i];
        }
    }
    struct ibv_send_wr *refused = NULL;
    if (count == 0 || ibv_post_send(((struct verbs_pair *)base)->pair, requests, &refused) == 0) {
        return count;
    }
    return refused != NULL ? (uint32_t)(refused - requests) : 0;
}

static uint32_t receive_post(struct cw_verbs_device *base, const struct cw_verbs_buffer *buffers, uint32_t count)
{
    struct ibv_recv_wr requests[CW_VERBS_BURST];
    struct ibv_sge pieces[CW_VERBS_BURST];
    for (uint32_t i = 0; i < count; i++) {
        pieces[i] = (struct ibv_sge){.addr = (uintptr_t)buffers[i].data - buffers[i].memory->shift,
                                     .length = buffers[i].bytes,
                                     .lkey = buffers[i].memory->local_key};
        requests[i] = (struct ibv_recv_wr){.wr_id = buffers[i].id,
                                           .next = i + 1 < count ? &requests[i + 1] : NULL,
                                           .sg_list = &pieces[i],
                                           .num_sge = 1};
    }
    struct ibv_recv_wr *refused = NULL;
    if (count == 0 || ibv_post_srq_recv(device_of(base)->receive, requests, &refused) == 0) {
        return count;
    }
    return refused != NULL ? (uint32_t)(refused - requests) : 0;
}

/* ---- groups ---- */

static int group_join(struct cw_verbs_device *base, const uint8_t address[16], uint32_t *group)
{
    struct verbs_multicast *multicast = device_of(base)->multicast;
    return multicast != NULL ? verbs_multicast_join(multicast, address, group) : CW_ERROR_UNSUPPORTED;
}

static bool group_is_joined(struct cw_verbs_device *base, uint32_t group)
{
    return verbs_multicast_is_joined(device_of(base)->multicast, group);
}

static void group_leave(struct cw_verbs_device *base, uint32_t group)
{
    verbs_multicast_leave(device_of(base)->multicast, group);
}

static bool datagram_post(struct cw_verbs_device *base, uint32_t group, const struct cw_verbs_buffer *datagram)
{
    return verbs_multicast_post(device_of(base)->multicast, group, datagram);
}

static uint32_t datagram_receive_post(struct cw_verbs_device *base, const struct cw_verbs_buffer *buffers,
                                      uint32_t count)
{
    return verbs_multicast_receive_post(device_of(base)->multicast, buffers, count);
}

/* ---- completions ---- */

static enum cw_verbs_status completion_status(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_SUCCESS:
        return CW_VERBS_OK;
    case IBV_WC_REM_ACCESS_ERR:
        return CW_VERBS_REFUSED;
    case IBV_WC_WR_FLUSH_ERR:
        return CW_VERBS_FLUSHED;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return CW_VERBS_UNREACHED;
    default:
        return CW_VERBS_BROKEN;
    }
}

static uint32_t device_poll(struct cw_verbs_device *base, enum cw_verbs_queue queue,
                            struct cw_verbs_completion *completions, uint32_t count_max)
{
    struct ibv_wc found[CW_VERBS_BURST];
    const struct verbs_device *device = device_of(base);
    int count = queue == CW_VERBS_DATAGRAMS ? verbs_multicast_poll(device->multicast, found, (int)count_max)
                                            : ibv_poll_cq(device->queues[queue], (int)count_max, found);
    for (int i = 0; i < count; i++) {
        completions[i] = (struct cw_verbs_completion){.id = (uint32_t)found[i].wr_id,
                                                      .pair = found[i].qp_num,
                                                      .status = completion_status(found[i].status),
                                                      .is_write = found[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM,
                                                      .bytes = found[i].byte_len,
                                                      .immediate = ntohl(found[i].imm_data)};
    }
    return count > 0 ? (uint32_t)count : 0;
}

static void device_arm(struct cw_verbs_device *base)
{
    struct verbs_device *device = device_of(base);
    struct ibv_cq *queue;
    void *context;
    while (ibv_get_cq_event(device->channel, &queue, &context) == 0) { /* it does not block */
        ibv_ack_cq_events(queue, 1);
    }
    (void)ibv_req_notify_cq(device->queues[CW_VERBS_SENT], 0);
    (void)ibv_req_notify_cq(device->queues[CW_VERBS_RECEIVED], 0);
    if (device->multicast != NULL) {
        verbs_multicast_arm(device->multicast);
    }
}

/* Pairs report their own failures by completions. */
static bool device_has_failed(struct cw_verbs_device *base)
{
    struct verbs_device *device = device_of(base);
    struct ibv_async_event event;
    while (ibv_get_async_event(device->context, &event) == 0) { /* it does not block */
        device->has_failed = device->has_failed || event.event_type == IBV_EVENT_DEVICE_FATAL ||
                             event.event_type == IBV_EVENT_CQ_ERR || event.event_type == IBV_EVENT_SRQ_ERR;
        ibv_ack_async_event(&event);
    }
    return device->has_failed;
}

/* ---- opening ---- */

static void device_close(struct cw_verbs_device *base)
{
    struct verbs_device *device = device_of(base);
    verbs_multicast_close(device->multicast);
    if (device->receive != NULL) {
        (void)ibv_destroy_srq(device->receive);
    }
    for (int i = 0; i < 2; i++) {
        if (device->queues[i] != NULL) {
            (void)ibv_destroy_cq(device->queues[i]);
        }
    }
    if (device->channel != NULL) {
        (void)ibv_destroy_comp_channel(device->channel);
    }
    if (device->protection != NULL) {
        (void)ibv_dealloc_pd(device->protection);
    }
    if (device->context != NULL) {
        (void)ibv_close_device(device->context);
    }
    free(device);
}

static const struct cw_verbs_ops verbs_ops = {
    .memory_register = memory_register,
    .memory_unregister = memory_unregister,
    .pair_create = pair_create,
    .pair_connect = pair_connect,
    .pair_break = pair_break,
    .pair_destroy = pair_destroy,
    .post = pair_post,
    .receive_post = receive_post,
    .poll = device_poll,
    .group_join = group_join,
    .group_leave = group_leave,
    .group_is_joined = group_is_joined,
    .datagram_post = datagram_post,
    .datagram_receive_post = datagram_receive_post,
    .arm = device_arm,
    .has_failed = device_has_failed,
    .close = device_close,
};

static bool unblock(int file)
{
    return fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK) == 0;
}

/* Protection domain, queues, and the limits of a pair, which one pair reports. */
static int device_make(struct verbs_device *device, const struct cw_verbs_config *config, char *error,
                       size_t error_bytes)
{
    struct ibv_device_attr limits;
    struct cw_verbs_info *info = &device->base.info;
    const char *what = "its limits cannot be read";
    if (ibv_query_device(device->context, &limits) != 0) {
        goto failed;
    }
    info->work_max = least(config->work_max, (uint32_t)limits.max_qp_wr);
    info->pieces_max = least(CW_VERBS_PIECES_MAX, (uint32_t)limits.max_sge);
    info->receive_max = least(config->receive_max, (uint32_t)limits.max_srq_wr);
    info->pair_count_max = least(config->pair_count_max, (uint32_t)limits.max_qp);
    device->reads_in = least(READS_MAX, (uint32_t)limits.max_qp_rd_atom);
    device->reads_out = least(READS_MAX, (uint32_t)limits.max_qp_init_rd_atom);
    device->room_max = (uint32_t)limits.max_cqe;
    what = "a protection domain";
    device->protection = ibv_alloc_pd(device->context);
    device->channel = ibv_create_comp_channel(device->context);
    if (device->protection == NULL || device->channel == NULL || !unblock(device->channel->fd) ||
        !unblock(device->context->async_fd)) {
        goto failed;
    }
    what = "completion queues";
    int sent = (int)least(PAIRS_FIRST * info->work_max, (uint32_t)limits.max_cqe);
    int received = (int)least(info->receive_max + RECEIVE_SPARE, (uint32_t)limits.max_cqe);
    device->queues[CW_VERBS_SENT] = ibv_create_cq(device->context, sent, NULL, device->channel, 0);
    device->queues[CW_VERBS_RECEIVED] = ibv_create_cq(device->context, received, NULL, device->channel, 0);
    if (device->queues[0] == NULL || device->queues[1] == NULL) {
        goto failed;
    }
    device->sent_room = (uint32_t)device->queues[CW_VERBS_SENT]->cqe;
    what = "a shared receive queue";
    struct ibv_srq_init_attr queue = {.attr = {.max_wr = info->receive_max, .max_sge = 1}};
    device->receive = ibv_create_srq(device->protection, &queue);
    if (device->receive == NULL) {
        goto failed;
    }
    what = "a queue pair";
    struct ibv_qp_cap granted = {.max_inline_data = 0};
    struct ibv_qp *pair = pair_new(device, INLINE_WANTED, &granted);
    if (pair == NULL) {
        pair = pair_new(device, 0, &granted);
    }
    if (pair == NULL) {
        goto failed;
    }
    (void)ibv_destroy_qp(pair);
    info->inline_max = least(granted.max_inline_data, INLINE_WANTED);
    info->descriptor = device->channel->fd;
    info->settle_ns = SETTLE_NS;
    return CW_OK;
failed:
    snprintf(error, error_bytes, "RDMA device %s: %s: %s%s", info->port.name, what, strerror(errno),
             errno == ENOMEM ? " (ulimit -l)" : "");
    return status_of(errno);
}

static void groups_make(struct verbs_device *device, const uint8_t address[16])
{
    struct cw_verbs_info *info = &device->base.info;
    const struct verbs_multicast_config config = {.context = device->context,
                                                  .protection = device->protection,
                                                  .channel = device->channel,
                                                  .choice = &device->choice,
                                                  .address = address};
    device->multicast = verbs_multicast_open(&config, info->without_groups, sizeof(info->without_groups));
    info->datagram_bytes = device->multicast != NULL ? info->port.mtu_bytes : 0;
}

static int verbs_open(const struct cw_verbs_config *config, struct cw_verbs_device **opened, char *error,
                      size_t error_bytes)
{
    struct verbs_device *device = calloc(1, sizeof(*device));
    if (device == NULL) {
        snprintf(error, error_bytes, "no memory for an RDMA device");
        return CW_ERROR_MEMORY;
    }
    device->base.ops = &verbs_ops;
    int status = verbs_find(config, &device->context, &device->choice, error, error_bytes);
    if (status == CW_OK) {
        device->base.info.port = device->choice.port;
        device->base.info.message_max = least(device->choice.message_max, MESSAGE_MAX);
        status = device_make(device, config, error, error_bytes);
    }
    if (status == CW_OK) {
        groups_make(device, config->ip);
    }
    if (status != CW_OK) {
        device_close(&device->base);
        return status;
    }
    *opened = &device->base;
    return CW_OK;
}

extern const struct cw_verbs_module cw_verbs_table;
const struct cw_verbs_module cw_verbs_table = {
    .module = {.build = CW_VERBS_BUILD}, .open = verbs_open, .find = verbs_port_find, .list = verbs_ports_list};
