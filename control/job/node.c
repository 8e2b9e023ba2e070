/* A rank that uses the host's dataplane: its offer, and the next hop to each rank. */
#include "control/job/private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control/lease/lease.h"
#include "control/settings/setting.h"
#include "dataplane/base/clock.h"

#define ASK_NS  1500000000ull
#define LOOK_NS 5000000

bool job_node_is_named(const char **socket)
{
    const char *text = cw_setting(CW_SETTING_TRANSPORT);
    *socket = NULL;
    return text != NULL && cw_net_transport_read(text, socket) == CW_NET_TRANSPORT_NODE;
}

int job_node_offer(struct cw_net_offer *offer, const struct job_report *report)
{
    struct cw_lease_nic nic;
    const char *socket;
    memset(offer, 0, sizeof(*offer));
    if (!job_node_is_named(&socket)) {
        return CW_ERROR_ARGUMENT;
    }
    int status = cw_lease_hello(socket, &nic, report->text, report->bytes);
    if (status == CW_OK && cw_net_identify(offer->network) != CW_OK) {
        status = FAIL(report, CW_ERROR_SYSTEM, "the interfaces of this host are not known (mount /proc)");
    }
    if (status == CW_OK) {
        offer->transport = CW_NET_TRANSPORT_NODE;
        offer->count = 1;
        offer->addresses[0] = (struct cw_net_address){.ip = nic.ip,
                                                      .speed_mbps = (uint32_t)(nic.rate_bps / 1000000),
                                                      .mtu_bytes = (uint16_t)nic.mtu_bytes,
                                                      .bits = nic.bits,
                                                      .is_default = 1};
    }
    return status;
}

uint32_t job_nodes_count(const struct cw_job *job, const struct job_card *cards)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < job->info.size; rank++) {
        const struct cw_net_offer *offer = &cards[rank].offer;
        bool is_new = offer->transport == CW_NET_TRANSPORT_NODE && job->machines[rank] == job->machines[job->info.rank];
        for (uint32_t i = 0; i < rank && is_new; i++) {
            is_new = cards[i].offer.transport != CW_NET_TRANSPORT_NODE ||
                     memcmp(cards[i].offer.network, offer->network, sizeof(offer->network)) != 0;
        }
        count += is_new;
    }
    return count;
}

int job_node_hops(struct cw_job *job, char *error, size_t error_bytes)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    struct cw_ip *ips = calloc(job->hop_count, sizeof(*ips));
    uint8_t(*macs)[6] = calloc(job->hop_count, sizeof(*macs));
    bool *known = calloc(job->hop_count, sizeof(*known));
    uint64_t until_ns = cw_clock_ns() + ASK_NS;
    uint32_t missing = job->hop_count;
    int status = ips == NULL || macs == NULL || known == NULL
                     ? cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the job")
                     : CW_OK;
    for (uint32_t i = 0; i < job->hop_count && status == CW_OK; i++) {
        ips[i] = job->hops[i].ip;
    }
    while (status == CW_OK && missing > 0) {
        status = cw_lease_hops(job->wire.lease, ips, job->hop_count, macs, known, error, error_bytes);
        missing = status == CW_ERROR_CLOSED; /* it may come back */
        status = missing > 0 && cw_clock_ns() < until_ns ? CW_OK : status;
        for (uint32_t i = 0; i < job->hop_count && status == CW_OK; i++) {
            missing += !known[i];
        }
        if (missing > 0 && cw_clock_ns() > until_ns) {
            break;
        }
        if (missing > 0) {
            nanosleep(&pause, NULL);
        }
    }
    for (uint32_t i = 0; i < job->hop_count && status == CW_OK; i++) {
        struct cw_hop *hop = &job->hops[i];
        hop->next = hop->ip;
        hop->is_known = known[i];
        memcpy(hop->mac, macs[i], sizeof(hop->mac));
        snprintf(hop->reason, sizeof(hop->reason), "the node finds no host there (%s)",
                 cw_ip_is_v4(&hop->ip) ? "ARP" : "neighbour discovery");
    }
    free(ips);
    free(macs);
    free(known);
    return status;
}
