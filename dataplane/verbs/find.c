#include "dataplane/verbs/find.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/status.h"

enum { GIDS_MAX = 256 };

static const uint8_t any_gid[16] = {0};

/* How well a GID does: RoCE v2 before v1, and of any the most routable; 0: it is not the one. */
static int gid_rank(const struct ibv_gid_entry *entry, const uint8_t wanted[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (entry->gid_type == IBV_GID_TYPE_IB) {
        return 1;
    }
    if (memcmp(wanted, any_gid, sizeof(any_gid)) != 0) {
        bool is_ours = memcmp(entry->gid.raw, wanted, 16) == 0;
        return !is_ours ? 0 : entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? 3 : 2;
    }
    bool is_local = entry->gid.raw[0] == 0xfe && (entry->gid.raw[1] & 0xc0) == 0x80;
    int rank = memcmp(entry->gid.raw, mapped, sizeof(mapped)) == 0 ? 3 : is_local ? 1 : 2;
    return entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? rank + 4 : rank;
}

static bool is_iwarp(const struct ibv_context *context)
{
    return context->device->transport_type == IBV_TRANSPORT_IWARP;
}

static uint8_t kind_of(const struct ibv_context *context, const struct ibv_gid_entry *entry)
{
    return is_iwarp(context)                         ? CW_VERBS_IWARP
           : entry->gid_type == IBV_GID_TYPE_IB      ? CW_VERBS_INFINIBAND
           : entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? CW_VERBS_ROCE_V2
                                                     : CW_VERBS_ROCE_V1;
}

static void choice_write(struct ibv_context *context, const struct ibv_gid_entry *entry,
                         const struct ibv_port_attr *port, struct verbs_choice *choice)
{
    *choice = (struct verbs_choice){
        .port = {.number = (uint8_t)entry->port_num,
                 .kind = kind_of(context, entry),
                 .is_up = port->state == IBV_PORT_ACTIVE,
                 .lid = port->lid,
                 .mtu_bytes = 128u << port->active_mtu},
        .gid_index = (uint8_t)entry->gid_index,
        .interface = entry->ndev_ifindex,
        .is_global = port->link_layer == IBV_LINK_LAYER_ETHERNET || (port->flags & IBV_QPF_GRH_REQUIRED) != 0,
        .mtu = port->active_mtu,
        .message_max = port->max_msg_sz,
    };
    snprintf(choice->port.name, sizeof(choice->port.name), "%s", ibv_get_device_name(context->device));
    memcpy(choice->port.gid, entry->gid.raw, 16);
}

/* The best GID of a device, by a port that is up; of one port, if `only` says so (0: of all), up or not. How good it
 * is; 0: it has none. */
static int gid_choose(struct ibv_context *context, const uint8_t wanted[16], uint32_t only, struct verbs_choice *choice)
{
    struct ibv_gid_entry entries[GIDS_MAX];
    ssize_t count = ibv_query_gid_table(context, entries, GIDS_MAX, 0);
    int best = 0;
    for (ssize_t i = 0; i < count; i++) {
        struct ibv_port_attr port;
        int rank = gid_rank(&entries[i], wanted);
        if (rank <= best || (only != 0 && entries[i].port_num != only) ||
            ibv_query_port(context, (uint8_t)entries[i].port_num, &port) != 0 ||
            (only == 0 && port.state != IBV_PORT_ACTIVE)) {
            continue;
        }
        best = rank;
        choice_write(context, &entries[i], &port, choice);
    }
    return best;
}

/* Findings about rejected devices. */
struct search {
    int count;     /* of all there are */
    bool is_known; /* one has the name that is wanted */
    bool iwarps;
    int refusal; /* errno of the last one that could not be opened; 0: none */
};

/* The reason why there is none, of the devices found. */
static int none_report(const struct cw_verbs_config *config, const struct search *search, char *error,
                       size_t error_bytes)
{
    const char *name = config->name != NULL ? config->name : "";
    const char *blank = config->name != NULL ? " " : "s";
    char address[INET6_ADDRSTRLEN] = "";
    (void)inet_ntop(AF_INET6, config->gid, address, sizeof(address));
    bool is_any = memcmp(config->gid, any_gid, sizeof(any_gid)) == 0;
    if (search->count == 0) {
        snprintf(error, error_bytes,
                 "the kernel has an RDMA device, and libibverbs knows it not: apt-get install ibverbs-providers");
        return CW_ERROR_UNSUPPORTED;
    }
    if (!search->is_known && config->name != NULL) {
        snprintf(error, error_bytes, "RDMA device %s: there is none of this name, of %d; `causeway doctor` lists them",
                 config->name, search->count);
    } else if (search->refusal != 0) {
        snprintf(error, error_bytes, "RDMA device%s%s: cannot be opened: %s (may this user open /dev/infiniband?)",
                 blank, name, strerror(search->refusal));
        return CW_ERROR_PERMISSION;
    } else if (search->iwarps) {
        snprintf(error, error_bytes, "RDMA device%s%s: iWARP, which is not used: packets go by its interface", blank,
                 name);
        return CW_ERROR_UNSUPPORTED;
    } else if (is_any) {
        snprintf(error, error_bytes, "RDMA device%s%s: no port is up and has an address", blank, name);
    } else {
        snprintf(error, error_bytes, "RDMA device%s%s: no port that is up has the GID of the address %s", blank, name,
                 address);
    }
    return CW_ERROR_NOT_FOUND;
}

static int list_failed(char *error, size_t error_bytes)
{
    snprintf(error, error_bytes,
             errno == ENOSYS ? "this kernel has no RDMA (modprobe ib_uverbs)%s" : "RDMA devices cannot be listed: %s",
             errno == ENOSYS ? "" : strerror(errno));
    return errno == ENOSYS ? CW_ERROR_NOT_FOUND : CW_ERROR_SYSTEM;
}

int verbs_find(const struct cw_verbs_config *config, struct ibv_context **context, struct verbs_choice *choice,
               char *error, size_t error_bytes)
{
    struct search search = {.count = 0};
    struct ibv_device **list = ibv_get_device_list(&search.count);
    if (list == NULL) {
        return list_failed(error, error_bytes);
    }
    int best = 0;
    *context = NULL;
    for (int i = 0; i < search.count; i++) {
        if (config->name != NULL && strcmp(config->name, ibv_get_device_name(list[i])) != 0) {
            continue;
        }
        struct ibv_context *opened = ibv_open_device(list[i]);
        struct verbs_choice found;
        search.is_known = true;
        search.refusal = opened == NULL ? errno : search.refusal;
        search.iwarps = search.iwarps || (opened != NULL && is_iwarp(opened));
        int rank = opened != NULL && !is_iwarp(opened) ? gid_choose(opened, config->gid, 0, &found) : 0;
        if (rank > best) {
            struct ibv_context *other = *context;
            best = rank;
            *choice = found;
            *context = opened;
            opened = other;
        }
        if (opened != NULL) {
            (void)ibv_close_device(opened);
        }
    }
    ibv_free_device_list(list);
    return *context != NULL ? CW_OK : none_report(config, &search, error, error_bytes);
}

int verbs_port_find(const struct cw_verbs_config *config, struct cw_verbs_port *port, char *error, size_t error_bytes)
{
    struct ibv_context *context;
    struct verbs_choice choice;
    int status = verbs_find(config, &context, &choice, error, error_bytes);
    if (status == CW_OK) {
        *port = choice.port;
        (void)ibv_close_device(context);
    }
    return status;
}

/* Adds the ports of one device; one without a GID, too. */
static uint32_t ports_add(struct ibv_context *context, struct cw_verbs_port *ports, uint32_t count_max)
{
    struct ibv_device_attr limits = {.phys_port_cnt = 0};
    uint32_t count = 0;
    (void)ibv_query_device(context, &limits);
    for (uint32_t number = 1; number <= limits.phys_port_cnt && count < count_max; number++) {
        struct verbs_choice choice;
        struct ibv_port_attr port;
        if (gid_choose(context, any_gid, number, &choice) > 0) {
            ports[count++] = choice.port;
        } else if (ibv_query_port(context, (uint8_t)number, &port) == 0) {
            const struct ibv_gid_entry none = {
                .port_num = number,
                .gid_type = port.link_layer == IBV_LINK_LAYER_ETHERNET ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB};
            choice_write(context, &none, &port, &choice);
            ports[count++] = choice.port;
        }
    }
    return count;
}

int verbs_ports_list(struct cw_verbs_port *ports, uint32_t count_max, uint32_t *count, char *error, size_t error_bytes)
{
    int devices = 0;
    struct ibv_device **list = ibv_get_device_list(&devices);
    *count = 0;
    if (list == NULL) {
        return list_failed(error, error_bytes);
    }
    const struct cw_verbs_config all = {.name = NULL};
    struct search search = {.count = devices};
    for (int i = 0; i < devices; i++) {
        struct ibv_context *context = ibv_open_device(list[i]);
        if (context != NULL) {
            *count += ports_add(context, ports + *count, count_max - *count);
            (void)ibv_close_device(context);
        } else {
            search.refusal = errno;
        }
    }
    ibv_free_device_list(list);
    return *count > 0 ? CW_OK : none_report(&all, &search, error, error_bytes);
}
