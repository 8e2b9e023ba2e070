/* Where and by what this rank goes to other hosts: its address, the way, and with ways that write Ethernet headers the
 * next hop to each rank. */
#include "control/job/private.h"

#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

static bool is_same_network(const struct cw_net_offer *one, const struct cw_net_offer *other)
{
    return memcmp(one->network, other->network, sizeof(one->network)) == 0;
}

/* Whether a rank that shares the interfaces goes by another one of their addresses: past sockets, what one of the two
 * sends to a group does not come to the other. */
static bool is_divided(const struct cw_job *job, const struct cw_net_offer *offers, const struct cw_ip *own)
{
    struct cw_net_address other;
    char why[CW_NET_TEXT_BYTES];
    for (uint32_t rank = 0; rank < job->info.size; rank++) {
        const struct cw_net_offer *its = &offers[rank], *mine = &offers[job->info.rank];
        bool is_alike = memcmp(its, mine, sizeof(*its)) == 0; /* then the choice is, too */
        if (is_same_network(its, mine) && !is_alike &&
            (!cw_net_choose(offers, job->info.size, rank, &other, why) || !cw_ip_is_equal(&other.ip, own))) {
            return true;
        }
    }
    return false;
}

int job_way_choose(struct cw_job *job, const struct cw_net_offer *offers, struct cw_net_address *own,
                   char interface[CW_JOB_INTERFACE_BYTES], struct cw_wire_request *request, char *error,
                   size_t error_bytes)
{
    char why[CW_NET_TEXT_BYTES], wrong[CW_NET_TEXT_BYTES * 2];
    const uint32_t size = job->info.size, rank = job->info.rank;
    if (!cw_net_choose(offers, size, rank, own, why)) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_NOT_FOUND,
            "rank %" PRIu32 " on %s: %s to reach ranks of other hosts by (`ip address` lists them; CAUSEWAY_NET "
            "names one)",
            rank, job->hosts[rank],
            offers[rank].count == 0 ? "this host has no address" : "all addresses are those of other hosts, too: none");
    }
    cw_net_interface(&own->ip, interface, CW_JOB_INTERFACE_BYTES);
    int status = cw_way_choose(offers, size, rank, &job->way_kind, wrong, sizeof(wrong));
    status = status == CW_OK ? cw_way_check(job->way_kind, interface, wrong, sizeof(wrong)) : status;
    if (status != CW_OK) {
        return cw_error_text(error, error_bytes, status, "rank %" PRIu32 " on %s: %s", rank, job->hosts[rank], wrong);
    }
    job->has_devices = !cw_way_all_sockets(offers, size);
    request->way = job->way_kind;
    request->interface = interface;
    request->has_devices = job->has_devices;
    request->no_groups = job->way_kind != CW_WAY_UDP && is_divided(job, offers, &own->ip);
    const char *what = getenv("CAUSEWAY_NET");
    if (what != NULL) {
        (void)cw_way_read(what, &what);
    }
    snprintf(job->way, sizeof(job->way), "%s", what != NULL && what[0] != 0 ? "CAUSEWAY_NET says so" : why);
    return CW_OK;
}

void job_way_tell(struct cw_job *job, const struct cw_wire_request *request)
{
    char since[CW_NET_TEXT_BYTES];
    char ip[CW_IP_TEXT_BYTES];
    cw_ip_write(&request->own->ip, ip);
    snprintf(since, sizeof(since), "%.150s", job->way);
    if (request->way == CW_WAY_UDP) {
        snprintf(job->way, sizeof(job->way), "UDP sockets at %s (%s), since %s", ip, request->interface, since);
    } else {
        snprintf(job->way, sizeof(job->way),
                 "%s on %s at %s, UDP port %u, since %s; sockets (--net udp) would stream faster and need no "
                 "privilege",
                 cw_way_name(request->way), request->interface, ip, job->wire.address.udp_port, since);
    }
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

int job_hops_find(struct cw_job *job, const struct cw_wire_request *request, struct cw_path_card *cards, char *error,
                  size_t error_bytes)
{
    if (request->way == CW_WAY_UDP) {
        return CW_OK;
    }
    job->hops = calloc(job->info.size, sizeof(*job->hops));
    if (job->hops == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the job");
    }
    for (uint32_t rank = 0; rank < job->info.size; rank++) { /* ranks of a host have one in common */
        const struct cw_ip *ip = &cards[rank].address.ip;
        if (!cw_ip_is_none(ip) && hop_of(job, ip) == NULL) {
            job->hops[job->hop_count++].ip = *ip;
        }
    }
    int status = cw_hops_find(request->interface, &request->own->ip, job->wire.port->info.mac, job->hops,
                              job->hop_count, error, error_bytes);
    for (uint32_t rank = 0; rank < job->info.size && status == CW_OK; rank++) {
        const struct cw_hop *hop = hop_of(job, &cards[rank].address.ip);
        if (hop != NULL) {
            memcpy(cards[rank].address.mac, hop->mac, sizeof(hop->mac));
        }
    }
    return status;
}

const struct cw_hop *job_hop_missing(const struct cw_job *job, const struct cw_path_card *card)
{
    const struct cw_hop *hop = hop_of(job, &card->address.ip);
    return hop != NULL && !hop->is_known ? hop : NULL;
}
