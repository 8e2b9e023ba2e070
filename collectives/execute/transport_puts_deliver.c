/* What the endpoint reports: arrivals, completions, peers that come and go; and the transport's own messages. */
#include <assert.h>
#include <string.h>

#include "collectives/execute/transport_puts_state.h"

/* ---- Arrivals ---- */

static void slot_drop(struct cw_puts_transport *transport, const struct cw_event *event)
{
    if (event->kind == CW_EVENT_MESSAGE) {
        (void)cw_message_release(transport->request.endpoint, event->slot);
    }
}

/* Where the bytes of a message stay until the execution takes them. False: nowhere. */
static bool message_keep(struct cw_puts_transport *transport, const struct cw_event *event, uint32_t parity,
                         struct cw_transport_event *arrival)
{
    struct puts_arena *arena = &transport->arenas[parity];
    arrival->buffer = PUTS_NO_SLOT;
    if (event->bytes == 0) {
        slot_drop(transport, event);
        return true;
    }
    if (transport->slots_kept < transport->request.slots_kept_max) {
        transport->slots_kept++;
        arrival->buffer = event->slot + 1ull;
        arrival->data = event->data;
        return true;
    }
    if (event->bytes > transport->arena_bytes - arena->used) {
        return false;
    }
    arrival->data = memcpy(arena->memory + arena->used, event->data, event->bytes);
    arena->used += event->bytes;
    slot_drop(transport, event);
    return true;
}

static void arrival_take(struct cw_puts_transport *transport, const struct cw_event *event, uint32_t parity)
{
    struct puts_partner *partner = puts_partner_of_peer(transport, event->peer);
    bool early = parity != (transport->run & 1);
    bool eager = event->kind == CW_EVENT_MESSAGE;
    struct cw_transport_event arrival = {
        .kind = CW_TRANSPORT_ARRIVED,
        .tag = cw_tag(event->lane_tag),
        .eager = eager,
        .bytes = event->bytes,
    };
    if (transport->status != CW_OK) { /* nobody wants it any more */
        slot_drop(transport, event);
        return;
    }
    if (partner == NULL || partner->got[parity] >= partner->due ||
        (early && (!eager || transport->early_count == transport->early_count_max)) ||
        (eager && !message_keep(transport, event, parity, &arrival))) {
        puts_fail(transport, CW_ERROR_ARGUMENT,
                  "peer %u of the endpoint: %s with tag %u that the schedule does not expect", event->peer,
                  eager ? "a message" : "a put", arrival.tag);
        slot_drop(transport, event);
        return;
    }
    partner->got[parity]++;
    arrival.peer = partner->rank;
    if (early) {
        transport->early[transport->early_count++] = arrival;
    } else {
        puts_arrive(transport, &arrival);
    }
}

/* ---- Puts that leave, and their completions ---- */

static void put_tell(struct cw_puts_transport *transport, enum cw_transport_event_kind kind, uint64_t context)
{
    if (transport->status == CW_OK) {
        struct cw_transport_event event = {.kind = kind, .context = context};
        (void)transport->sink.event(transport->sink.context, &event);
    }
}

static void completion_take(struct cw_puts_transport *transport, const struct cw_event *event)
{
    struct puts_record *record = &transport->records[event->context];
    bool last = record->complete + 1 == record->peer_count;
    bool tells = last && !record->notified;
    uint64_t context = record->context;
    assert(record->complete < record->posted && transport->puts_open > 0);
    transport->puts_open--;
    record->complete++;
    if (event->status != CW_OK) {
        const struct puts_partner *partner = puts_partner_of_peer(transport, event->peer);
        puts_fail(transport, event->status, "rank %u: put with tag %u: %s", partner != NULL ? partner->rank : PUTS_NONE,
                  cw_tag(event->lane_tag), cw_status_text(event->status));
    }
    if (last) {
        puts_record_free(transport, (uint32_t)event->context);
    }
    if (tells) {
        put_tell(transport, CW_TRANSPORT_COMPLETE, context);
    }
}

/* ---- Peers that go ---- */

void puts_partner_down(struct cw_puts_transport *transport, struct puts_partner *partner, int status,
                       const char *reason)
{
    if (partner->down != CW_OK) {
        return;
    }
    partner->down = status;
    transport->control_wanted -= partner->owes + partner->probe_wanted + partner->failed_wanted;
    partner->owes = 0;
    partner->probe_wanted = false;
    partner->failed_wanted = false;
    if (partner->got[transport->run & 1] < partner->due || partner->blocks) {
        puts_fail(transport, status, "rank %u: %s", partner->rank, reason);
    }
}

static int peer_take(struct cw_puts_transport *transport, const struct cw_event *event)
{
    struct puts_partner *partner = puts_partner_of_peer(transport, event->peer);
    if (partner == NULL) {
        return CW_ERROR_NOT_FOUND;
    }
    /* a new session is news only if it took the place of another one: then what was under way in that is lost */
    if (event->status != CW_OK) {
        puts_partner_down(transport, partner, event->status, cw_status_text(event->status));
    }
    return CW_OK;
}

/* ---- Control messages ---- */

static void control_take(struct cw_puts_transport *transport, const struct cw_event *event)
{
    struct puts_partner *partner = puts_partner_of_peer(transport, event->peer);
    slot_drop(transport, event);
    if (partner == NULL) {
        return;
    }
    if (event->kind == CW_EVENT_COMPLETE) {
        partner->probe_open = false;
        if (event->status != CW_OK) {
            puts_partner_down(transport, partner, event->status, cw_status_text(event->status));
        }
    } else if (event->kind == CW_EVENT_MESSAGE && cw_tag(event->lane_tag) == PUTS_BEGUN) {
        partner->begun++;
    } else if (event->kind == CW_EVENT_MESSAGE && cw_tag(event->lane_tag) == PUTS_FAILED) {
        puts_partner_down(transport, partner, CW_ERROR_PEER_FAILED, "it has given up");
    }
}

static int control_post(struct cw_puts_transport *transport, struct puts_partner *partner, enum puts_control what,
                        uint32_t flags)
{
    struct cw_message message = {
        .peer = partner->peer,
        .lane_tag = cw_lane_tag(transport->request.lane + PUTS_CONTROL_LANE, what),
        .flags = flags | CW_MORE,
    };
    int status = cw_message_send(transport->request.endpoint, &message);
    if (status == CW_OK) {
        transport->control_wanted--;
    } else if (status != CW_ERROR_AGAIN) {
        puts_partner_down(transport, partner, status, cw_status_text(status));
    }
    return status;
}

/* What one partner is to be sent. False: the endpoint takes no more for now. */
static bool partner_pump(struct cw_puts_transport *transport, struct puts_partner *partner)
{
    int status = CW_OK;
    if (partner->failed_wanted && (status = control_post(transport, partner, PUTS_FAILED, 0)) == CW_OK) {
        partner->failed_wanted = false;
    }
    while (status == CW_OK && partner->owes > 0 &&
           (status = control_post(transport, partner, PUTS_BEGUN, 0)) == CW_OK) {
        partner->owes--;
    }
    if (status == CW_OK && partner->probe_wanted &&
        (status = control_post(transport, partner, PUTS_PROBE, CW_SIGNAL)) == CW_OK) {
        partner->probe_wanted = false;
        partner->probe_open = true;
    }
    return status != CW_ERROR_AGAIN;
}

void puts_control_pump(struct cw_puts_transport *transport)
{
    for (uint32_t left = transport->partner_count; left > 0 && transport->control_wanted > 0; left--) {
        uint32_t cursor = transport->control_cursor < transport->partner_count ? transport->control_cursor : 0;
        transport->refusals += partner_pump(transport, &transport->partners[cursor]) ? 0 : 1;
        transport->control_cursor = cursor + 1;
    }
}

void cw_puts_transport_probe(struct cw_puts_transport *transport)
{
    for (uint32_t i = 0; i < transport->partner_count; i++) {
        struct puts_partner *partner = &transport->partners[i];
        bool waited_for = partner->got[transport->run & 1] < partner->due || partner->blocks;
        if (waited_for && partner->down == CW_OK && !partner->probe_open && !partner->probe_wanted) {
            partner->probe_wanted = true;
            transport->control_wanted++;
        }
    }
    puts_control_pump(transport);
    puts_failure_tell(transport);
}

int cw_puts_transport_abort(struct cw_puts_transport *transport)
{
    puts_fail(transport, CW_ERROR_CLOSED, "this rank has given up");
    for (uint32_t i = 0; !transport->aborted && i < transport->partner_count; i++) {
        struct puts_partner *partner = &transport->partners[i];
        if (partner->down == CW_OK) {
            partner->failed_wanted = true;
            transport->control_wanted++;
        }
    }
    transport->aborted = true;
    puts_control_pump(transport);
    puts_failure_tell(transport);
    return transport->control_wanted > 0 ? CW_ERROR_AGAIN : CW_OK;
}

/* ---- All of them ---- */

static int event_take(struct cw_puts_transport *transport, const struct cw_event *event)
{
    if (event->kind == CW_EVENT_PEER_UP || event->kind == CW_EVENT_PEER_DOWN) {
        return peer_take(transport, event);
    }
    uint32_t lane = cw_lane(event->lane_tag) - transport->request.lane;
    if (lane >= CW_PUTS_LANES || event->kind == CW_EVENT_GET) {
        return CW_ERROR_NOT_FOUND;
    }
    if (lane == PUTS_CONTROL_LANE) {
        control_take(transport, event);
    } else if (event->kind == CW_EVENT_SENT) {
        put_tell(transport, CW_TRANSPORT_SENT, transport->records[event->context].context);
    } else if (event->kind == CW_EVENT_COMPLETE) {
        completion_take(transport, event);
    } else {
        arrival_take(transport, event, lane);
    }
    return CW_OK;
}

int cw_puts_transport_deliver(struct cw_puts_transport *transport, const struct cw_event *event)
{
    int status = event_take(transport, event);
    puts_failure_tell(transport);
    return status;
}
