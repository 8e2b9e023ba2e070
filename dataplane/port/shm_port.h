/* shm_port: a port in shared memory between a process and a server that does not trust it: the host's dataplane
 * (apps/node/). The client's end is a port like any other; the server's end takes and gives bursts of frames.
 *
 *    client --reserve, write, transmit--> [ out: places, lengths ] --cw_shm_port_receive, cw_shm_port_consume--> server
 *           <------------- receive ------ [ in: lengths ]         <---------- cw_shm_port_send ------------
 *           --------------- release ----> [ empty: places ]
 *
 * The client makes the memory, a memfd of a fixed size, and passes its descriptor to the server. A server that was
 * killed and started again continues with the frames in the rings. It receives again the frames that its predecessor
 * had read without showing them as consumed; datagrams may be duplicated.
 *
 * Invariants
 *  - The server checks positions, places and lengths at each read. Concurrent writes of a client only change its own
 *    frames. A client with invalid ring positions is broken permanently (cw_shm_port_is_broken).
 *  - Each position has one writer. A buffer belongs to the client, except from `out` to its consumption and from
 *    `empty` to `in`.
 *  - No wake-up is lost: an end announces its sleep, checks again, and only then sleeps; the other end writes, executes
 *    a full fence, and then looks for a sleeper.
 *
 * Order of calls
 *    client  cw_shm_port_create, cw_shm_port_memory to the server, cw_shm_port_connect
 *            { the calls of port.h; cw_shm_port_disconnect, cw_shm_port_connect }* cw_port_close
 *    server  cw_shm_port_open
 *            { cw_shm_port_receive, cw_shm_port_consume, cw_shm_port_send, cw_shm_port_flush,
 *              cw_shm_port_arm, cw_shm_port_disarm, cw_shm_port_groups }* cw_shm_port_close
 *
 * Thread: as port.h says; cw_shm_port_connect and cw_shm_port_disconnect: any one; the server's end: one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/port/port.h"

enum {
    CW_SHM_PORT_VERSION = 2,
    CW_SHM_PORT_FRAMES_DEFAULT = 1024, /* in each direction */
    CW_SHM_PORT_FRAMES_MAX =
        4096, /* bounds what the server maps, and how long a client that gives pages back can stall it */
    CW_SHM_PORT_GROUPS_MAX = 64,
};

/* ---- the client's end ---- */

struct cw_shm_port_config {
    uint8_t mac[6];     /* of the host */
    uint32_t mtu_bytes; /* CW_PORT_MTU_MIN .. CW_PORT_MTU_MAX */
    uint64_t rate_bps;  /* of the server's NIC; 0: not known */
    uint32_t
        frames;   /* in each direction, a power of two up to CW_SHM_PORT_FRAMES_MAX; 0: the default, fewer long ones */
    bool reports; /* the server reports groups to switches (struct cw_port_info) */
    uint32_t medium;    /* of the server's NIC (the same); a shared-memory port keeps payloads */
    const char *driver; /* of struct cw_port_info; NULL: "node" */
};

/* A port without a server: sent frames wait in its ring. CW_OK; CW_ERROR_ARGUMENT, CW_ERROR_MEMORY,
 * CW_ERROR_LIMIT, CW_ERROR_SYSTEM with a line in `error`. */
int cw_shm_port_create(const struct cw_shm_port_config *config, struct cw_port **port, char *error, size_t error_bytes);
/* The descriptor of its memory; the port's. */
int cw_shm_port_memory(const struct cw_port *port);
/* A server serves it; `bell` becomes the port's: an eventfd (eventfd(2)) that wakes that server. It is no socket: a
 * client could send descriptors into a socket, and its reader would have to close them. */
void cw_shm_port_connect(struct cw_port *port, int bell);
/* No server does; the link is down. */
void cw_shm_port_disconnect(struct cw_port *port);
/* The server's NIC does these offloads (a bit of each enum cw_port_offload), before an endpoint has the port. */
void cw_shm_port_offloads(struct cw_port *port, uint32_t offloads);

/* ---- the server's end ---- */

struct cw_shm_port;

struct cw_shm_port_frame {
    const uint8_t *data; /* may change at any time: copy it, then look at it */
    uint32_t length;     /* 1 .. 14 + MTU */
    bool checksum;       /* as struct cw_transmit has them */
    uint64_t departure_ns;
};

/* Maps a client's memory; the descriptor stays the caller's. It must be a memfd of small pages that can neither shrink
 * nor grow, as long as its rings and buffers are, with a page behind each byte of it. CW_OK, or with a line in `error`:
 * CW_ERROR_ARGUMENT (it is no such memory, or has another MTU), CW_ERROR_UNSUPPORTED (another version),
 * CW_ERROR_SYSTEM. */
int cw_shm_port_open(int memory, uint32_t mtu_bytes, struct cw_shm_port **shm_port, char *error, size_t error_bytes);
void cw_shm_port_close(struct cw_shm_port *shm_port); /* NULL is allowed */

/* Its frames in order, at most `count_max`; they stay valid until they were consumed and that was shown. */
uint32_t cw_shm_port_receive(struct cw_shm_port *shm_port, struct cw_shm_port_frame *frames, uint32_t count_max);
void cw_shm_port_consume(struct cw_shm_port *shm_port, uint32_t count);
/* Copies a frame into an empty buffer of the client's, with the NIC's report about it. False: there is no such buffer,
 * or the frame is longer than they are. */
bool cw_shm_port_send(struct cw_shm_port *shm_port, const struct cw_received *packet);
/* Shows the client what was sent and consumed since, and wakes it if it sleeps. */
void cw_shm_port_flush(struct cw_shm_port *shm_port);
/* Says that the server is about to sleep. True: the client has sent something by now. */
bool cw_shm_port_arm(struct cw_shm_port *shm_port);
void cw_shm_port_disarm(struct cw_shm_port *shm_port);
/* The client's ring positions are invalid: the server must close the shared-memory port. */
bool cw_shm_port_is_broken(const struct cw_shm_port *shm_port);
/* The multicast MAC addresses that the client wants let in. Returns how many, and sets *version, which changes with
 * them; UINT32_MAX: they have not changed since `*version`, or are changing just now. */
uint32_t cw_shm_port_groups(const struct cw_shm_port *shm_port, uint32_t *version,
                            uint8_t groups[CW_SHM_PORT_GROUPS_MAX][6]);
/* The claim of a client's endpoint that does not run just now, and the offloads that it has turned off: bits. */
void cw_shm_port_nic(const struct cw_shm_port *shm_port, struct cw_port_claim *claim, uint32_t *doubts);
/* The link of the NIC has gone down or come up so often. */
void cw_shm_port_link(struct cw_shm_port *shm_port, uint32_t changes);
