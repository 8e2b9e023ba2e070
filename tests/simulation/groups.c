#include "tests/simulation/groups.h"

#include "dataplane/status.h"
#include "tests/test.h"

enum { EVENTS_AT_ONCE = 16 };
#define ADDRESS_BASE 0xef0a0b00u

static struct cw_endpoint *endpoint_of(const struct sim_groups *member)
{
    return member->hosts->list[member->rank].endpoint;
}

/* ---- links ---- */

static int link_send(void *context, uint32_t rank, const void *data, uint32_t bytes)
{
    const struct sim_groups *member = context;
    struct cw_message message = {
        .peer = member->peers[rank], .source = {.contiguous = {.data = data, .bytes = bytes}}, /* copied: it is short */
    };
    return bytes > CW_INLINE_MAX ? CW_ERROR_ARGUMENT : cw_message_send(endpoint_of(member), &message);
}

static int link_peer(void *context, uint32_t rank, uint32_t *peer)
{
    const struct sim_groups *member = context;
    *peer = member->peers[rank];
    return CW_OK;
}

static void link_probe(void *context, uint32_t rank)
{
    const struct sim_groups *member = context;
    (void)cw_peer_check(endpoint_of(member), member->peers[rank]);
}

static int link_run(void *context, int (*function)(void *argument), void *argument)
{
    return function(argument);
}

/* ---- life ---- */

void sim_groups_create(struct sim_groups *member, struct sim_hosts *hosts, uint32_t rank,
                       const struct sim_groups_config *config)
{
    struct cw_mcast_config mcast;
    char error[200] = "";
    cw_mcast_config_init(&mcast);
    mcast.flood_ipv4 = cw_groups_flood_address(ADDRESS_BASE);
    mcast.keeps_flood_address = rank == 0;
    mcast.handler = config->handler;
    mcast.handler.laggard = cw_group_laggard;
    mcast.handler.unreached = cw_group_unreached;
    mcast.lag_ns = config->lag_ns > 0 ? config->lag_ns : mcast.lag_ns;
    *member = (struct sim_groups){.config = *config, .hosts = hosts, .rank = rank};
    assert_true_msg(cw_mcast_create(&mcast, endpoint_of(member), &member->mcast, error, sizeof(error)) == CW_OK, "%s",
                    error);
    struct cw_groups_config groups = {
        .rank = rank,
        .address_base = ADDRESS_BASE,
        .filter_budget = config->filter_budget > 0 ? config->filter_budget : CW_GROUPS_FILTERS,
        .seed = config->seed * 1000 + rank,
        .mcast = member->mcast,
        .links = config->links,
    };
    if (config->links.send == NULL) {
        groups.links =
            (struct cw_groups_links){.context = member, .send = link_send, .peer = link_peer, .probe = link_probe};
        member->peers = sim_hosts_peers(hosts, rank, hosts->count);
        hosts->list[rank].holds_events = true;
    }
    groups.links.run = link_run;
    assert_int_equal(cw_groups_create(&groups, &member->groups), CW_OK);
}

void sim_groups_destroy(struct sim_groups *member)
{
    cw_groups_destroy(member->groups);
    cw_mcast_destroy(member->mcast);
    free(member->peers);
    *member = (struct sim_groups){0};
}

/* ---- what comes ---- */

static uint32_t rank_of(const struct sim_groups *member, uint32_t peer)
{
    uint32_t rank = 0;
    while (rank < member->hosts->count && (rank == member->rank || member->peers[rank] != peer)) {
        rank++;
    }
    return rank;
}

void sim_groups_receive(struct sim_groups *member)
{
    struct cw_event events[EVENTS_AT_ONCE];
    uint32_t count;
    while ((count = cw_endpoint_events(endpoint_of(member), events, EVENTS_AT_ONCE)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t rank = rank_of(member, events[i].peer);
            if (events[i].kind == CW_EVENT_MESSAGE) {
                cw_groups_receive(member->groups, rank, events[i].data, (uint32_t)events[i].bytes);
                (void)cw_message_release(endpoint_of(member), events[i].slot);
            } else if (events[i].kind == CW_EVENT_PEER_DOWN) {
                member->down++;
                cw_groups_down(member->groups, rank);
            }
        }
    }
}

/* ---- letters ---- */

void sim_letter_post(struct sim_letters *letters, uint32_t from, uint32_t to, uint64_t due_ns, const void *data,
                     uint32_t bytes)
{
    uint64_t *last_ns = &letters->last_ns[from][to];
    *last_ns = due_ns > *last_ns ? due_ns : *last_ns;
    struct sim_letter *letter = calloc(1, sizeof(*letter)), **link = &letters->first;
    assert_true(letter != NULL && bytes <= sizeof(letter->data));
    while (*link != NULL && (*link)->due_ns <= *last_ns) {
        link = &(*link)->next;
    }
    *letter = (struct sim_letter){.next = *link, .due_ns = *last_ns, .from = from, .to = to, .bytes = bytes};
    memcpy(letter->data, data, bytes);
    *link = letter;
}

bool sim_letter_pop(struct sim_letters *letters, uint64_t now_ns, struct sim_letter *letter)
{
    struct sim_letter *first = letters->first;
    if (first == NULL || first->due_ns > now_ns) {
        return false;
    }
    *letter = *first;
    letters->first = first->next;
    free(first);
    return true;
}
