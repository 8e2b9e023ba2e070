/* A rank with a NIC of its own: its offer, whether it has the device alone, and the next hop to each rank. */
#include "control/job/private.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/setting.h"
#include "dataplane/base/clock.h"
#include "dataplane/flow/extension.h"
#include "dataplane/limits.h"
#include "dataplane/loop/loop.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#define ASK_NS  1500000000ull
#define LOOK_NS 2000000ull

bool job_nic_is_named(void)
{
    const char *text = cw_setting(CW_SETTING_TRANSPORT);
    return text != NULL && cw_device_is_named(text);
}

int job_nic_offer(struct cw_job *job, struct cw_net_offer *offer, const struct job_report *report)
{
    const char *text = cw_setting(CW_SETTING_TRANSPORT);
    struct cw_device device;
    int status = cw_device_read(text, job->info.rank, -1, &device, report->text, report->bytes);
    if (status != CW_OK) {
        return status;
    }
    memset(offer, 0, sizeof(*offer));
    if (cw_net_identify(offer->network) != CW_OK) {
        return FAIL(report, CW_ERROR_SYSTEM, "the interfaces of this host are not known (mount /proc)");
    }
    offer->transport = CW_NET_TRANSPORT_DEVICE;
    if (!device.is_local) { /* of which each rank has another one */
        uint8_t hash[crypto_generichash_BYTES_MIN];
        char whole[CW_DEVICE_NAME_BYTES + CW_DEVICE_ARGUMENTS_BYTES + 16];
        snprintf(whole, sizeof(whole), "%s,%s,%02x%02x%02x%02x%02x%02x", device.name, device.arguments, device.mac[0],
                 device.mac[1], device.mac[2], device.mac[3], device.mac[4], device.mac[5]);
        (void)crypto_generichash(hash, sizeof(hash), (const uint8_t *)whole, strlen(whole), NULL, 0);
        memcpy(offer->device, hash, sizeof(offer->device));
        if (!cw_ip_is_none(&device.ip)) {
            offer->addresses[offer->count++] = cw_device_address(&device);
        }
    }
    return CW_OK;
}

static bool is_same_host(const struct job_card *one, const struct job_card *other)
{
    return memcmp(one->path.host, other->path.host, sizeof(one->path.host)) == 0;
}

/* Two ranks that see the same interfaces, and name the same device. */
static bool do_share(const struct cw_net_offer *one, const struct cw_net_offer *other)
{
    return one->transport == CW_NET_TRANSPORT_DEVICE && other->transport == CW_NET_TRANSPORT_DEVICE &&
           !sodium_is_zero(one->device, sizeof(one->device)) &&
           memcmp(one->device, other->device, sizeof(one->device)) == 0 &&
           memcmp(one->network, other->network, sizeof(one->network)) == 0;
}

static int sharing_check(const struct cw_job *job, const struct job_card *cards, char *error, size_t error_bytes)
{
    for (uint32_t rank = 0; rank < job->info.size; rank++) {
        if (rank != job->info.rank && do_share(&cards[rank].offer, &cards[job->info.rank].offer)) {
            uint32_t first = rank < job->info.rank ? rank : job->info.rank;
            return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                                 "ranks %" PRIu32 " and %" PRIu32
                                 " on %s name the same device, %.60s, which one process "
                                 "has at a time: start one rank a host, or name a virtual function for each, like "
                                 "0000:03:02.{local}",
                                 first, rank + job->info.rank - first, job->hosts[job->info.rank],
                                 job->device.is_by_mac ? "by its MAC address" : job->device.name);
        }
    }
    return CW_OK;
}

int job_nic_choose(struct cw_job *job, const struct job_card *cards, struct cw_net_address *own,
                   struct cw_wire_request *request, char *error, size_t error_bytes)
{
    int32_t local = 0;
    uint32_t devices = 0;
    for (uint32_t rank = 0; rank < job->info.size; rank++) {
        bool is_here = is_same_host(&cards[rank], &cards[job->info.rank]);
        local += is_here && rank < job->info.rank;
        devices += is_here && cards[rank].offer.transport == CW_NET_TRANSPORT_DEVICE;
    }
    struct cw_device *device = &job->device;
    int status = cw_device_read(cw_setting(CW_SETTING_TRANSPORT), job->info.rank, local, device, error, error_bytes);
    status = status == CW_OK ? sharing_check(job, cards, error, error_bytes) : status;
    if (status != CW_OK) {
        return status;
    }
    *own = cw_device_address(device);
    job->transport = CW_NET_TRANSPORT_DEVICE;
    job->has_devices = true;
    request->transport = CW_NET_TRANSPORT_DEVICE;
    request->device = device;
    request->device_ranks = devices;
    request->interface = device->name;
    request->has_devices = true;
    snprintf(job->transport_text, sizeof(job->transport_text), "--transport (CAUSEWAY_TRANSPORT) says so");
    return CW_OK;
}

/* Hosts on the link are reached at the MAC address that they publish. */
static bool is_on_link(const struct cw_job *job, const struct cw_ip *ip)
{
    const struct cw_device *device = &job->device;
    return cw_ip_is_none(&device->ip) ? ip->bytes[0] == 0xfe && ip->bytes[1] == 0x80
                                      : cw_ip_shares(&device->ip, ip, device->bits);
}

/* Hosts whose MAC address is not the card's: those behind a router, and those whose kernel has the address. */
struct asking {
    struct cw_neighbour_cache *neighbours;
    const struct cw_hop *hops;
    uint32_t count;
    uint32_t known;
    int status;
};

static int hops_want(struct cw_endpoint *endpoint, void *context)
{
    struct asking *asking = context;
    for (uint32_t i = 0; i < asking->count && asking->status == CW_OK; i++) {
        asking->status = cw_neighbour_want(asking->neighbours, &asking->hops[i].ip, cw_extension_now(endpoint));
    }
    return asking->status;
}

static int hops_look(struct cw_endpoint *endpoint, void *context)
{
    struct asking *asking = context;
    uint8_t mac[6];
    (void)endpoint;
    asking->known = 0;
    for (uint32_t i = 0; i < asking->count; i++) {
        asking->known += cw_neighbour_find(asking->neighbours, &asking->hops[i].ip, mac);
    }
    return CW_OK;
}

/* Requests all of them, for a second; those found stay known. */
static int hops_request(struct cw_job *job, char *error, size_t error_bytes)
{
    struct asking asking = {.neighbours = job->wire.neighbours, .hops = job->hops, .count = job->hop_count};
    uint64_t until_ns = cw_clock_ns() + ASK_NS;
    int status = cw_loop_call(job->wire.loop, hops_want, &asking);
    if (status != CW_OK) {
        return cw_error_text(error, error_bytes, status,
                             "too many hosts behind other next hops than their own: %d are "
                             "possible",
                             CW_NEIGHBOUR_HOPS_MAX);
    }
    do {
        (void)cw_loop_wait(job->wire.loop, NULL, 0, LOOK_NS);
        (void)cw_loop_call(job->wire.loop, hops_look, &asking);
    } while (asking.known < asking.count && cw_clock_ns() < until_ns);
    for (uint32_t i = 0; i < job->hop_count; i++) {
        struct cw_hop *hop = &job->hops[i];
        hop->next = cw_neighbour_next(job->wire.neighbours, &hop->ip);
        hop->is_known = cw_neighbour_find(job->wire.neighbours, &hop->ip, hop->mac);
        snprintf(hop->reason, sizeof(hop->reason), "no host answers for that address (%s)",
                 cw_ip_is_v4(&hop->ip) ? "ARP" : "neighbour discovery");
    }
    return CW_OK;
}

int job_nic_hops(struct cw_job *job, struct job_card *cards, char *error, size_t error_bytes)
{
    const struct cw_ip *own = &job->wire.address.ip;
    job->hops = calloc(job->info.size, sizeof(*job->hops));
    if (job->hops == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the job");
    }
    for (uint32_t rank = 0; rank < job->info.size; rank++) {
        const struct cw_address *its = &cards[rank].path.address;
        char ip[CW_IP_TEXT_BYTES], own_text[CW_IP_TEXT_BYTES];
        cw_ip_write(&its->ip, ip);
        cw_ip_write(own, own_text);
        if (cw_ip_is_none(&its->ip) || is_same_host(&cards[rank], &cards[job->info.rank])) {
            continue;
        }
        if (cw_ip_is_v4(&its->ip) != cw_ip_is_v4(own)) {
            return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                                 "rank %" PRIu32 " on %s is at %s, and rank %" PRIu32 " on %s at %s, which are of two "
                                 "kinds: give both an address of one kind (--transport DEVICE,ip=10.9.0.5/24)",
                                 job->info.rank, job->hosts[job->info.rank], own_text, rank, job->hosts[rank], ip);
        }
        if (!is_on_link(job, &its->ip) && cw_ip_is_none(&job->device.gateway)) {
            return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                                 "rank %" PRIu32 " on %s at %s does not reach rank %" PRIu32
                                 " on %s: %s is in no subnet of "
                                 "the device's; name a router (--transport DEVICE,ip=...,gateway=ADDRESS)",
                                 job->info.rank, job->hosts[job->info.rank], own_text, rank, job->hosts[rank], ip);
        }
        if (!is_on_link(job, &its->ip) || cards[rank].offer.transport != CW_NET_TRANSPORT_DEVICE) {
            job->hops[job->hop_count++].ip = its->ip;
        }
    }
    int status = job->hop_count > 0 ? hops_request(job, error, error_bytes) : CW_OK;
    for (uint32_t rank = 0; rank < job->info.size && status == CW_OK; rank++) {
        for (uint32_t i = 0; i < job->hop_count; i++) {
            if (cw_ip_is_equal(&job->hops[i].ip, &cards[rank].path.address.ip)) {
                memcpy(cards[rank].path.address.mac, job->hops[i].mac, sizeof(job->hops[i].mac));
            }
        }
    }
    return status;
}
