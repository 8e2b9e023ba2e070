/* Host: a process as an end of puts: a port that one text names, an endpoint and its loop, made and ended together; and
 * cards, lines of text by which others add it as a peer.
 *
 * Invariants
 *   - What was opened so far is closed when a later step fails.
 *   - A card holds no secret: who has it, but not the job key, can set up no session.
 *
 * Order of calls
 *   cw_host_config_init, cw_host_open
 *   cw_host_register; cw_host_card, handed to the other side by whatever way there is; cw_host_peer with the other's
 *   cw_loop_put, cw_loop_wait, ... (loop.h) with cw_host_loop
 *   cw_host_close
 */
#ifndef CW_HOST_H
#define CW_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "dataplane/dataplane.h"
#include "dataplane/loop/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CW_CARD_BYTES = 80, /* "10.0.0.1:4791/02:..." or "[fd77::1]:4791/02:...", with its zero byte */
};

struct cw_host;

struct cw_host_config {
    /* "udp:ADDRESS" or "udp:ADDRESS:PORT", the address "10.0.0.1" or "[fd77::1]", or a host name: a socket at an
     * address of this host, which the endpoint has, too; no privilege, any network. Of a name, the first address that
     * this host has. "memif:SOCKET,role=server" and "memif:SOCKET,role=client": two processes of one machine,
     * in whatever order they start. "memif:SOCKET,port=2": port 2 of a `causeway switch`. Else a DPDK device as --vdev
     * or -a take it: "net_af_packet0,iface=eth1", "0000:03:00.0". */
    const char *port;
    uint32_t mtu_bytes;       /* of IP packets: 576 to 64000 */
    uint64_t link_timeout_ns; /* how long cw_host_open waits for the other end and cw_host_peer for the link */
    /* job_key is the caller's to set. A port "udp:" has its address; for memif and devices, one of 10.0.0.0/8 is drawn
     * at random if address.ip is not set: set it on networks with other hosts. Seed and waiting are set by
     * cw_host_open. */
    struct cw_endpoint_config endpoint;
    struct cw_loop_config loop;
};

/* Defaults: MTU 1500, ten seconds, those of cw_endpoint_config_init with CW_UDP_PORT (a port "udp:ADDRESS" takes a free
 * one, which the card has), those of cw_loop_config_init. */
void cw_host_config_init(struct cw_host_config *config);

/* Opens port, endpoint and loop; nothing of `config` is kept. CW_OK, or with one line in `error`: CW_ERROR_NOT_FOUND (a
 * host name does not resolve, which may take the resolver's time-out, resolv.conf(5)), and those of the port, of
 * cw_endpoint_create and of cw_loop_create. Not from two threads at a time. */
int cw_host_open(const struct cw_host_config *config, struct cw_host **host, char *error, size_t error_bytes);

/* Says goodbye to peers, closes and frees. No other call may be under way. NULL is allowed. */
void cw_host_close(struct cw_host *host);

/* For puts, gets, messages and events. It stays the host's. */
struct cw_loop *cw_host_loop(struct cw_host *host);

/* As cw_region_register, from any thread. */
int cw_host_register(struct cw_host *host, void *memory, uint64_t bytes, uint32_t rights, uint64_t *token);

/* An address as a card, and back: CW_OK or CW_ERROR_ARGUMENT (it is no card). A card has no names. Any thread. */
void cw_card_write(const struct cw_address *address, char card[CW_CARD_BYTES]);
int cw_card_read(const char *card, struct cw_address *address);

/* The own card. Any thread. */
void cw_host_card(struct cw_host *host, char card[CW_CARD_BYTES]);

/* Adds the host whose card that is, as cw_peer_add, once the link is up. The card may have a host name instead of the
 * address: "node7:4791/02:...". With a port "udp:", it may end after the UDP port, since the kernel finds the MAC
 * address: "10.0.0.1:4791", "[fd77::1]:4791", "node7:4791". The calling thread resolves the name while other threads
 * turn the loop. Of several addresses it takes the first one of the IP version of this host's own address.
 *
 * CW_OK, or with one line in `error`: CW_ERROR_ARGUMENT (it is no card); CW_ERROR_NOT_FOUND (the name does not
 * resolve); CW_ERROR_LIMIT; CW_ERROR_TIMEOUT (no link). Any thread. */
int cw_host_peer(struct cw_host *host, const char *card, uint32_t *peer, char *error, size_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif
