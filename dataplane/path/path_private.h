/* Shared by the files of path/. */
#pragma once

#include "dataplane/path/path.h"

enum {
    CW_PATH_REGISTRATIONS = 4096, /* at a time, where single copies are forbidden */
    CW_PATH_RECORDS_A_RING = 64,  /* taken from one ring before the next has its turn */
};

/* The kinds of records in a ring. */
enum path_record {
    PATH_MESSAGE = 1, /* user: lane_tag */
    PATH_NOTICE = 2,  /* all of a put is there; user: lane_tag */
    PATH_PUT = 3,     /* struct path_place, then bytes of a put */
    PATH_FETCH = 4,   /* struct path_fetch: asks for the bytes of a get */
    PATH_FETCHED = 5, /* struct path_fetched, then bytes of a get */
};

struct path_place {
    uint64_t token;
    uint64_t offset;
};

struct path_fetch {
    struct path_place place;
    uint64_t bytes;
    uint64_t stream; /* of the asking side */
};

struct path_fetched {
    uint64_t stream;
    uint64_t offset;
    int64_t status;
};

struct path_peer {
    enum cw_path_transport transport;
    bool attached; /* SHARED: `sender` is in use */
    bool reads;    /* SHARED, attached: we may copy from its memory, */
    bool writes;   /* and to it */
    bool failed;
    int failure;         /* of the session with it, by which it has failed; CW_OK: there was none */
    bool stopped;        /* failed: since its process is */
    int unreachable;     /* failed: why no memory can be shared with it any more; CW_OK: it can */
    uint64_t stopped_ns; /* SHARED: since when it is seen so; 0: it is not */
    uint64_t asked_ns;   /* SHARED: time of the last check */
    int process;         /* SHARED, attached: descriptor that shows when it is gone; -1: the kernel has none */
    uint32_t wire_peer;
    uint32_t loops;         /* PACKETS: that it and this process have in common */
    uint32_t messages_held; /* PACKETS: in memory of ours until it has acknowledged them */
    bool has_wire_peer;     /* SHARED: `wire_peer` is in use, for groups */
    struct cw_inbox_sender sender;
    struct cw_path_card card;
    char *description; /* PACKETS: for users; NULL: as within a cluster. Unreachable: why */
};

/* Bytes on their way through a ring: an own put, an own get (waits for the other side), or another process's get that
 * is answered. */
enum path_stream_kind { PATH_STREAM_PUT, PATH_STREAM_GET, PATH_STREAM_ANSWER };

struct path_stream {
    struct path_stream *next;
    enum path_stream_kind kind;
    bool asked; /* GET: the request has been sent */
    int status; /* ANSWER: what to say instead of data */
    uint32_t rank;
    uint32_t lane_tag;
    uint8_t *memory;
    uint64_t bytes;
    uint64_t moved;
    struct path_place place;
    uint64_t number; /* GET: the own stream's; ANSWER: the asking side's */
    uint64_t operation;
};

struct path_registered {
    uint64_t token; /* 0: free */
    uint8_t *base;
    uint64_t bytes;
    uint32_t rights;
    uint32_t rank;
};

struct cw_paths {
    struct cw_paths_config config;
    struct cw_inbox *inbox;
    struct path_peer *peers;
    uint32_t *rank_of_wire_peer;
    uint32_t wire_peer_count;
    struct path_registered *registered; /* made with the first one */
    uint64_t registered_count;          /* ever: makes tokens */
    struct path_stream *streams;        /* in order of posting */
    uint64_t stream_number;
    struct path_wire *wire;          /* NULL: no loop */
    struct path_division *divisions; /* gets of which parts wait for room at the endpoint */
    uint32_t down_count;             /* peers found dead and not yet reported */
    struct cw_paths_counters counters;
    uint64_t refusals_seen; /* when it slept the last time */
    bool holds;             /* between cw_paths_hold and cw_paths_release */
    bool has_held;          /* something since cw_paths_hold */
    char failure[CW_PORT_TEXT_BYTES];
};

/* Gives a message to its listener. */
void path_message(struct cw_paths *paths, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes);

/* shared.c */
int path_shared_send(struct cw_paths *paths, uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes,
                     const void *data, uint32_t bytes);
int path_shared_get(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                    void *to, uint64_t bytes, uint64_t operation);
int path_shared_put(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                    const void *from, uint64_t bytes, uint32_t lane_tag, uint64_t operation);
uint32_t path_shared_poll(struct cw_paths *paths);
/* Fails a rank of this host that is stopped for too long. */
void path_shared_probe(struct cw_paths *paths, uint32_t rank, uint64_t now_ns);
/* Attaches to the rank's inbox, if it has not been done. */
int path_shared_attach(struct cw_paths *paths, uint32_t rank);
void path_peer_fail(struct cw_paths *paths, uint32_t rank);

/* wire.c */
struct path_wire;
struct path_division;

/* A message, get, put, or part of a get in progress; its address is the context of the endpoint's operation. */
struct path_wire_operation {
    enum { WIRE_MESSAGE, WIRE_GET, WIRE_PUT, WIRE_PART } kind;
    uint32_t rank;
    uint64_t region;                /* GET, PUT: own region that was registered for it */
    uint64_t operation;             /* GET, PUT: the caller's; PART: the stream's index */
    struct path_division *division; /* PART */
};

int path_wire_create(struct cw_paths *paths);
void path_wire_destroy(struct cw_paths *paths);
int path_wire_add(struct cw_paths *paths, uint32_t rank);
int path_wire_send(struct cw_paths *paths, uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes,
                   const void *data, uint32_t bytes, enum cw_element element);
int path_wire_register(struct cw_paths *paths, void *base, uint64_t bytes, uint32_t rights, uint64_t *token);
int path_wire_deregister(struct cw_paths *paths, uint64_t token);
int path_wire_get(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                  void *to, uint64_t bytes, enum cw_element element, uint64_t operation);
int path_wire_put(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                  const void *from, uint64_t bytes, enum cw_element element, uint32_t lane_tag, uint64_t operation);
uint32_t path_wire_poll(struct cw_paths *paths);
/* The same, but sleeps up to `timeout_ns` for the first packet, or the alarm. */
uint32_t path_wire_wait(struct cw_paths *paths, uint64_t timeout_ns, const struct cw_port_alarm *alarm);
void path_wire_probe(struct cw_paths *paths, uint32_t peer);
/* An operation on memory that is registered for its time; NULL: *status says why not. */
struct path_wire_operation *path_wire_begin(struct cw_paths *paths, uint32_t rank, void *memory, uint64_t bytes,
                                            uint64_t operation, int *status);
/* Releases it, and its region now or when the packets have. */
void path_wire_drop(struct cw_paths *paths, struct path_wire_operation *operation);
/* It has ended: notifies the handler. */
void path_wire_end(struct cw_paths *paths, struct path_wire_operation *operation, int status);

/* stripe.c: long gets by several loops. As path_wire_get; CW_ERROR_UNSUPPORTED: it is not to be divided. */
int path_stripe_get(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                    void *to, uint64_t bytes, enum cw_element element, uint64_t operation);
/* A part has ended. */
void path_stripe_ended(struct cw_paths *paths, struct path_wire_operation *part, int status);
/* Posts what the endpoint had no room for. */
void path_stripe_poll(struct cw_paths *paths);

/* stream.c: where single copies are forbidden */
int path_stream_register(struct cw_paths *paths, uint32_t rank, void *base, uint64_t bytes, uint32_t rights,
                         uint64_t *token);
void path_stream_deregister(struct cw_paths *paths, uint64_t token);
int path_stream_get(struct cw_paths *paths, uint32_t rank, const struct path_place *place, void *to, uint64_t bytes,
                    uint64_t operation);
int path_stream_put(struct cw_paths *paths, uint32_t rank, const struct path_place *place, const void *from,
                    uint64_t bytes, uint32_t lane_tag, uint64_t operation);
/* A PATH_PUT, PATH_FETCH or PATH_FETCHED record from `rank`. False: it is invalid. */
bool path_stream_accept(struct cw_paths *paths, uint32_t rank, const struct cw_ring_record *record);
/* Advances all streams; returns the number of records written. */
uint32_t path_stream_poll(struct cw_paths *paths);
/* Ends those from and to a rank with a failure. */
void path_stream_fail(struct cw_paths *paths, uint32_t rank, int status);
