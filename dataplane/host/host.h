/* Host: a process as an end of puts: a port named by a text, an endpoint and its loop, opened and closed together; and
 * cards, lines of text with which others add it as a peer.
 *
 * Invariants
 *   - If a step of cw_host_open fails, it closes all that earlier steps have opened.
 *   - A card has no secret: a process that has the card but not the job key cannot set up a session.
 *
 * Order of calls
 *   cw_host_config_init, cw_host_open
 *   cw_host_register; cw_host_card, passed to the other process by any means; cw_host_peer with the other's
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
     * address of this host, which is also the endpoint's address; no privilege, any network. For a name, the first
     * address that this host has. "memif:SOCKET,role=server" and "memif:SOCKET,role=client": two processes of one
     * machine, started in any order. "memif:SOCKET,port=2": port 2 of a `causeway switch`. Else a DPDK device as in
     * --vdev or -a: "net_af_packet0,iface=eth1", "0000:03:00.0". */
    const char *port;
    uint32_t mtu_bytes; /* of IP packets: 576 to 64000 */
    uint64_t
        link_timeout_ns; /* limit of cw_host_open's wait for the other end and of cw_host_peer's wait for the link */
    /* The caller must set job_key. A port "udp:" has its address; for memif and devices, one of 10.0.0.0/8 is drawn
     * at random if address.ip is not set; set it on networks with other hosts. Seed and waiting are set by
     * cw_host_open. */
    struct cw_endpoint_config endpoint;
    struct cw_loop_config loop;
};

/* Defaults: MTU 1500, ten seconds, those of cw_endpoint_config_init with CW_UDP_PORT (a port "udp:ADDRESS" takes a free
 * one, which is in the card), those of cw_loop_config_init. */
void cw_host_config_init(struct cw_host_config *config);

/* Opens port, endpoint and loop; nothing of `config` is kept. CW_OK, or with one line in `error`: CW_ERROR_NOT_FOUND (a
 * host name does not resolve, which may take the resolver's time-out, resolv.conf(5)), and those of the port, of
 * cw_endpoint_create and of cw_loop_create. One thread at a time. */
int cw_host_open(const struct cw_host_config *config, struct cw_host **host, char *error, size_t error_bytes);

/* Sends a BYE to peers, closes and frees. No other call may be running. NULL is allowed. */
void cw_host_close(struct cw_host *host);

/* The loop, for puts, gets, messages and events. The host owns it. */
struct cw_loop *cw_host_loop(struct cw_host *host);

/* As cw_region_register, from any thread. */
int cw_host_register(struct cw_host *host, void *memory, uint64_t bytes, uint32_t rights, uint64_t *token);

/* Convert an address to a card, and back: CW_OK or CW_ERROR_ARGUMENT (not a card). A card has no names. Any thread. */
void cw_card_write(const struct cw_address *address, char card[CW_CARD_BYTES]);
int cw_card_read(const char *card, struct cw_address *address);

/* The own card. Any thread. */
void cw_host_card(struct cw_host *host, char card[CW_CARD_BYTES]);

/* Adds the host of the card, as cw_peer_add, once the link is up. The card may have a host name instead of the
 * address: "node7:4791/02:...". With a port "udp:", it may end after the UDP port, since the kernel finds the MAC
 * address: "10.0.0.1:4791", "[fd77::1]:4791", "node7:4791". The calling thread resolves the name while other threads
 * turn the loop. Of several addresses it takes the first one of the IP version of this host's own address.
 *
 * CW_OK, or with one line in `error`: CW_ERROR_ARGUMENT (not a card); CW_ERROR_NOT_FOUND (the name does not
 * resolve); CW_ERROR_LIMIT; CW_ERROR_TIMEOUT (no link). Any thread. */
int cw_host_peer(struct cw_host *host, const char *card, uint32_t *peer, char *error, size_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif
