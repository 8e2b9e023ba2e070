/* How this rank reaches other hosts: its address, the transport, and the next hop to each rank for transports that
 * write Ethernet headers. */
#include "control/job/private.h"

#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/setting.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

static bool is_same_network(const struct cw_net_offer *one, const struct cw_net_offer *other)
{
    return memcmp(one->network, other->network, sizeof(one->network)) == 0;
}

/* Offers of ranks, without duplicates: ranks of a host mostly offer the same, and the choice compares all with all. */
struct offers {
    struct cw_net_offer *all, *distinct;
    uint32_t count; /* distinct ones */
    uint32_t mine;  /* ... of this rank */
};

static bool offers_gather(const struct cw_job *job, const struct job_card *cards, struct offers *offers)
{
    *offers = (struct offers){.all = calloc(job->info.size, sizeof(*offers->all)),
                              .distinct = calloc(job->info.size, sizeof(*offers->distinct))};
    for (uint32_t rank = 0; offers->all != NULL && offers->distinct != NULL && rank < job->info.size; rank++) {
        uint32_t at = 0;
        offers->all[rank] = cards[rank].offer;
        while (at < offers->count &&
               memcmp(&offers->distinct[at], &cards[rank].offer, sizeof(cards[rank].offer)) != 0) {
            at++;
        }
        if (at == offers->count) {
            offers->distinct[offers->count++] = cards[rank].offer;
        }
        offers->mine = rank == job->info.rank ? at : offers->mine;
    }
    return offers->count > 0;
}

static void offers_dispose(struct offers *offers)
{
    free(offers->all);
    free(offers->distinct);
}

/* Whether a rank that shares the interfaces uses another one of their addresses: without sockets, a multicast of one of
 * the two does not reach the other. */
static bool is_divided(const struct offers *offers, const struct cw_ip *own)
{
    struct cw_net_address other;
    char why[CW_NET_TEXT_BYTES];
    for (uint32_t i = 0; i < offers->count; i++) { /* the same offer, the same choice */
        if (i != offers->mine && is_same_network(&offers->distinct[i], &offers->distinct[offers->mine]) &&
            (!cw_net_choose(offers->distinct, offers->count, i, &other, why) || !cw_ip_is_equal(&other.ip, own))) {
            return true;
        }
    }
    return false;
}

static int transport_choose(struct cw_job *job, const struct offers *offers, struct cw_net_address *own,
                            char interface[CW_JOB_INTERFACE_BYTES], struct cw_wire_request *request, char *error,
                            size_t error_bytes)
{
    char why[CW_NET_TEXT_BYTES], wrong[CW_NET_TEXT_BYTES * 2];
    const uint32_t size = job->info.size, rank = job->info.rank;
    if (!cw_net_choose(offers->distinct, offers->count, offers->mine, own, why)) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_NOT_FOUND,
            "rank %" PRIu32 " on %s: other hosts cannot reach this one: %s (`ip address` lists them; --transport "
            "(CAUSEWAY_TRANSPORT) names one)",
            rank, job->hosts[rank],
            offers->all[rank].count == 0
                ? "it has no address"
                : "each of its addresses is one of theirs, too, or they have only the other kind of IP");
    }
    cw_net_interface(&own->ip, interface, CW_JOB_INTERFACE_BYTES);
    int status = cw_net_transport_choose(offers->all, size, rank, &job->transport, wrong, sizeof(wrong));
    if (status != CW_OK) {
        return cw_error_text(error, error_bytes, status, "rank %" PRIu32 " on %s: %s", rank, job->hosts[rank], wrong);
    }
    job->has_devices = !cw_net_transport_all_sockets(offers->all, size);
    request->transport = job->transport;
    request->interface = interface;
    request->has_devices = job->has_devices;
    request->no_groups = job->transport != CW_NET_TRANSPORT_UDP && is_divided(offers, &own->ip);
    const char *what = cw_setting(CW_SETTING_TRANSPORT);
    if (what != NULL) {
        (void)cw_net_transport_read(what, &what);
    }
    request->node = what; /* if that is the transport */
    snprintf(job->transport_text, sizeof(job->transport_text), "%s",
             what != NULL && what[0] != 0 ? "--transport (CAUSEWAY_TRANSPORT) says so" : why);
    return CW_OK;
}

int job_transport_choose(struct cw_job *job, const struct job_card *cards, struct cw_net_address *own,
                         char interface[CW_JOB_INTERFACE_BYTES], struct cw_wire_request *request, char *error,
                         size_t error_bytes)
{
    struct offers offers;
    if (cards[job->info.rank].offer.transport == CW_NET_TRANSPORT_DEVICE) {
        return job_nic_choose(job, cards, own, request, error, error_bytes);
    }
    int status = offers_gather(job, cards, &offers)
                     ? transport_choose(job, &offers, own, interface, request, error, error_bytes)
                     : cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the job");
    offers_dispose(&offers);
    return status;
}

void job_transport_describe(struct cw_job *job, const struct cw_wire_request *request)
{
    char since[CW_NET_TEXT_BYTES];
    char ip[CW_IP_TEXT_BYTES];
    cw_ip_write(&job->wire.address.ip, ip);
    snprintf(since, sizeof(since), "%.150s", job->transport_text);
    if (request->transport == CW_NET_TRANSPORT_UDP) {
        snprintf(job->transport_text, sizeof(job->transport_text), "UDP sockets at %s (%s), since %s", ip,
                 request->interface, since);
    } else if (request->transport == CW_NET_TRANSPORT_DEVICE) {
        snprintf(job->transport_text, sizeof(job->transport_text), "device %s by %s at %s, UDP port %u, since %s",
                 request->interface, job->wire.port->info.driver, ip, job->wire.address.udp_port, since);
    } else {
        snprintf(job->transport_text, sizeof(job->transport_text), "the host's node at %s, UDP port %u, since %s", ip,
                 job->wire.address.udp_port, since);
    }
    char rdma[CW_VERBS_TEXT_BYTES + CW_VERBS_ERROR_BYTES];
    size_t length = strlen(job->transport_text);
    cw_wire_rdma_write(&job->wire, rdma, sizeof(rdma));
    snprintf(job->transport_text + length, sizeof(job->transport_text) - length, "%s%.256s",
             rdma[0] != 0 ? "; beside them " : "", rdma);
}

static struct cw_hop *hop_of(const struct cw_job *job, const struct cw_ip *ip)
{
    for (uint32_t i = 0; i < job->hop_count; i++) {
        if (cw_ip_is_equal(&job->hops[i].ip, ip)) {
            return &job->hops[i];
        }
    }
    return NULL;
}

int job_hops_find(struct cw_job *job, const struct cw_wire_request *request, struct job_card *cards, char *error,
                  size_t error_bytes)
{
    if (request->transport == CW_NET_TRANSPORT_UDP) {
        return CW_OK;
    }
    if (request->transport == CW_NET_TRANSPORT_DEVICE) {
        return job_nic_hops(job, cards, error, error_bytes);
    }
    job->hops = calloc(job->info.size, sizeof(*job->hops));
    if (job->hops == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the job");
    }
    for (uint32_t rank = 0; rank < job->info.size; rank++) { /* ranks of a host have one in common */
        const struct cw_ip *ip = &cards[rank].path.address.ip;
        if (!cw_ip_is_none(ip) && hop_of(job, ip) == NULL) {
            job->hops[job->hop_count++].ip = *ip;
        }
    }
    int status = job_node_hops(job, error, error_bytes);
    for (uint32_t rank = 0; rank < job->info.size && status == CW_OK; rank++) {
        const struct cw_hop *hop = hop_of(job, &cards[rank].path.address.ip);
        if (hop != NULL) {
            memcpy(cards[rank].path.address.mac, hop->mac, sizeof(hop->mac));
        }
    }
    return status;
}

const struct cw_hop *job_hop_missing(const struct cw_job *job, const struct cw_path_card *card)
{
    const struct cw_hop *hop = hop_of(job, &card->address.ip);
    return hop != NULL && !hop->is_known ? hop : NULL;
}
