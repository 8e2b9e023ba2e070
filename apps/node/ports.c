#include "apps/node/ports.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "apps/cli/cli.h"
#include "control/lease/lease_text.h"
#include "control/settings/settings.h"
#include "dataplane/base/clock.h"

enum { PORT_FREE = 0, PORT_LEASED = 1, PORT_HELD = 2 };

enum { RECORD_BYTES = NODE_PORTS * 24 /* a line for each port: its user, itself, and 1 */ };

void node_ports_record(struct node_ports *ports)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    for (uint32_t port = ports->first, next; file != NULL && port <= ports->last; port = next) {
        next = port + 1;
        if (ports->states[port] != PORT_LEASED) {
            continue;
        }
        while (next <= ports->last && next - port < CW_LEASE_PORTS_MAX && ports->states[next] == PORT_LEASED &&
               ports->users[next] == ports->users[port]) {
            next++;
        }
        fprintf(file, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", (uint32_t)ports->users[port], port, next - port);
    }
    if (file == NULL || fclose(file) != 0 || !cw_settings_write_own(ports->record_path, text, bytes)) {
        char where[sizeof(ports->record_path) + 64];
        snprintf(where, sizeof(where), "%s: %s", ports->record_path, strerror(errno));
        node_line(&ports->lines, cw_clock_ns(),
                  "the list of leases cannot be written: a node that is started again will not keep their ports",
                  where);
    }
    free(text);
}

static void record_read(struct node_ports *ports)
{
    size_t length;
    char *text = cw_settings_read_own(ports->record_path, RECORD_BYTES, &length), *place = NULL;
    for (char *line = text == NULL ? NULL : strtok_r(text, "\n", &place); line != NULL;
         line = strtok_r(NULL, "\n", &place)) {
        unsigned int user, first, count;
        if (sscanf(line, "%u %u %u", &user, &first, &count) != 3 || count > CW_LEASE_PORTS_MAX ||
            first + count > NODE_PORTS) {
            continue;
        }
        for (unsigned int port = first; port < first + count; port++) {
            ports->states[port] = PORT_HELD;
            ports->users[port] = user;
        }
    }
    free(text);
    ports->held_until_ns = cw_clock_ns() + NODE_HOLD_NS;
}

void node_ports_begin(struct node_ports *ports, const struct node_nic *nic, uint16_t first, uint16_t last,
                      uint32_t cores, const char *path)
{
    uint16_t any = 0;
    (void)getrandom(&any, sizeof(any), 0);
    ports->nic = nic;
    ports->first = first;
    ports->last = last;
    ports->each = node_ports_each((uint32_t)last - first + 1, cores);
    for (uint32_t core = 0; core < cores; core++) {
        ports->next[core] = (uint16_t)(any % ports->each);
    }
    snprintf(ports->record_path, sizeof(ports->record_path), "%s.leases", path);
    record_read(ports);
}

static bool are_free(const struct node_ports *ports, uint32_t first, uint32_t count, uid_t user, bool is_back)
{
    bool holds = cw_clock_ns() < ports->held_until_ns;
    if (first < ports->first || first + count - 1 > ports->last ||
        node_ports_core(ports, first) != node_ports_core(ports, first + count - 1)) {
        return false;
    }
    for (uint32_t port = first; port < first + count; port++) {
        bool is_held = ports->states[port] == PORT_HELD && holds && !(is_back && ports->users[port] == user);
        if (ports->states[port] == PORT_LEASED || is_held) {
            return false;
        }
    }
    return true;
}

static bool claim(struct node_ports *ports, uid_t user, uint32_t first, uint32_t count, bool is_back,
                  struct cw_reservation *reservation)
{
    char error[CW_LEASE_LINE_BYTES];
    if (!are_free(ports, first, count, user, is_back) ||
        (ports->nic->is_kernels && cw_reservation_open(&ports->nic->address.ip, (uint16_t)first, count, reservation,
                                                       error, sizeof(error)) != 0)) {
        return false;
    }
    for (uint32_t port = first; port < first + count; port++) {
        ports->states[port] = PORT_LEASED;
        ports->users[port] = user;
    }
    return true;
}

uint16_t node_ports_acquire(struct node_ports *ports, uid_t user, uint16_t wanted, uint32_t count, uint32_t core,
                            struct cw_reservation *reservation)
{
    if (wanted != 0) {
        return claim(ports, user, wanted, count, true, reservation) ? wanted : 0;
    }
    uint32_t begin = ports->first + core * ports->each;
    uint32_t span = begin > ports->last ? 0 : ports->last - begin + 1u;
    span = span < ports->each ? span : ports->each;
    for (uint32_t i = 0; i < span; i++) {
        uint32_t first = begin + (ports->next[core] + i) % span;
        if (claim(ports, user, first, count, false, reservation)) {
            ports->next[core] = (uint16_t)((first + count - begin) % span);
            return (uint16_t)first;
        }
    }
    return 0;
}

void node_ports_release(struct node_ports *ports, uint16_t first, uint32_t count, struct cw_reservation *reservation)
{
    memset(ports->states + first, PORT_FREE, count);
    cw_reservation_close(reservation);
    *reservation = (struct cw_reservation){.count = 0};
}
