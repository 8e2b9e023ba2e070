/* measured: results of `causeway plogp` about a machine, and choices based on them.
 *
 * Purpose
 *   Two kinds of knowledge, distinguished in the file and in each answer:
 *     networks  pLogP parameters of a kind of path, with a number of ranks running: the input of models (choose.h)
 *     tests     the time of each algorithm, by collective, ranks and bytes. They go before models: pLogP gives each
 *               rank a processor of its own, and says little where ranks share cores, or where messages cost less than
 *               the calls around them.
 *
 * Invariants
 *   - The same question has the same answer at all ranks that have the same contents.
 *   - Text is read from and written to memory; input is not trusted: cw_measured_decode rejects text that it does not
 *     understand.
 *
 * Order of calls: { cw_measured_decode | cw_measured_create, cw_measured_add_* }, { cw_measured_choose, ... }*,
 * cw_measured_destroy. Thread: one at a time for changes; any number that only look. */
#pragma once

#include "collectives/choose/choose.h"

enum {
    CW_MEASURED_VERSION = 1,
    CW_MEASURED_NETWORKS_MAX = 64,
    CW_MEASURED_TESTS_MAX = 1 << 16,
    CW_MEASURED_CONCURRENT_MAX = 64,
    CW_MEASURED_TEXT_MAX = 16 << 20,  /* bytes of a file */
    CW_MEASURED_SEGMENT_LEAST = 4096, /* a model that sees no cost of a segment but g would take far shorter ones */
};

enum cw_measured_path {
    CW_MEASURED_SHARED = 0, /* between processes of one host */
    CW_MEASURED_WIRE = 1,   /* between hosts, by packets */
    CW_MEASURED_RDMA = 2,   /* ... by queue pairs of RDMA devices */
    CW_MEASURED_PATHS = 3,
};

/* The tests of Tipparaju and Nieplocha 2005, Figure 5: all ranks at once put to their neighbours in a ring. */
struct cw_measured_concurrent {
    uint64_t bytes;
    uint32_t puts;   /* at once, each to another rank */
    double one_ns;   /* to start and complete one put */
    double all_ns;   /* to start and complete this number */
    double first_ns; /* to start this number and complete the first: the overhead test */
};

struct cw_measured_network {
    enum cw_measured_path path;
    uint32_t ranks;            /* that were there when it was measured */
    struct cw_network network; /* paths[] are the same */
    uint32_t concurrent_count;
    struct cw_measured_concurrent concurrent[CW_MEASURED_CONCURRENT_MAX];
};

struct cw_measured_test {
    enum cw_measured_path path;
    enum cw_collective collective;
    uint32_t ranks;
    uint64_t bytes;                        /* of the vector, or of a rank's block */
    char algorithm[CW_ALGORITHM_NAME_MAX]; /* need not be one of the registry */
    struct cw_parameters parameters;       /* segment_bytes, degree and concurrency; the rest is 0 */
    double time_ns;
};

struct cw_measured {
    uint32_t network_count;
    uint32_t test_count;
    struct cw_measured_network *networks; /* by path, then ranks */
    struct cw_measured_test *tests;       /* by path, collective, ranks, bytes, algorithm */
};

/* "shared", "wire", "rdma". */
const char *cw_measured_path_name(enum cw_measured_path path);
/* CW_MEASURED_PATHS if there is none of that name. */
enum cw_measured_path cw_measured_path_find(const char *name);

/* An empty one; NULL: no memory. */
struct cw_measured *cw_measured_create(void);
/* NULL is allowed. */
void cw_measured_destroy(struct cw_measured *measured);

/* Adds, in its place; one for the same question takes the place of the one before. CW_OK; CW_ERROR_LIMIT;
 * CW_ERROR_MEMORY. */
int cw_measured_add_network(struct cw_measured *measured, const struct cw_measured_network *network);
int cw_measured_add_test(struct cw_measured *measured, const struct cw_measured_test *test);

/* All of `from` into `into`. Errors as above. */
int cw_measured_merge(struct cw_measured *into, const struct cw_measured *from);

/* ---- the file ---- */

/* Reads the text of a file. CW_OK: the caller destroys *measured. CW_ERROR_ARGUMENT with a line in `error`: the problem
 * and its place; CW_ERROR_MEMORY. */
int cw_measured_decode(const char *text, size_t length, struct cw_measured **measured, char *error, size_t error_bytes);

/* Writes the text of a file, to be freed; NULL: no memory. */
char *cw_measured_encode(const struct cw_measured *measured);

/* ---- answers ---- */

/* Parameters of a path for `ranks` ranks: those measured with the nearest number of them; without any, figures that are
 * about right for a present-day machine. `measured` may be NULL. True: they were measured. */
bool cw_measured_network(const struct cw_measured *measured, enum cw_measured_path path, uint32_t ranks,
                         struct cw_network *network);

/* Known properties of the routes between the clusters of a problem, from a topology (control/topology/topology.h).
 * Rates are those on the line, in bits per second. */
struct cw_measured_wan {
    uint64_t host_bps;      /* a rank's rate within its cluster; 0: no limit */
    uint64_t host_delay_ns; /* from host to host within a cluster */
    uint64_t rank_bps;      /* a rank's rate to another cluster; 0: not known */
    /* the rate of all ranks of a cluster to another one together, at least rank_bps; 0: not known, then rank_bps is
     * used */
    uint64_t link_bps;
    uint64_t delay_ns; /* from host to host across the link */
};

/* Makes a network of several clusters from a network of one, measured or not: the cost of a message stays, latencies
 * grow, and no path is faster than its links. */
void cw_measured_wan_apply(struct cw_network *network, const struct cw_measured_wan *across);

/* How many ranks of a cluster fill the link when they all send; at least 1. */
uint32_t cw_measured_senders(const struct cw_measured_wan *across);

/* Test results of an algorithm for one question. */
struct cw_measured_answer {
    const char *algorithm; /* points into `measured` */
    struct cw_parameters parameters;
    double time_ns;
};

/* Test results of all algorithms, the fastest first; returns their number, 0: no test is near. Between two sizes times
 * are interpolated linearly in logarithms; beyond the last they grow with the size; further than 16 times away there is
 * no result. For untested numbers of ranks, the nearest one is used that is at most twice as large or as small; powers
 * of two are kept separate, since algorithms distinguish them. */
uint32_t cw_measured_answers(const struct cw_measured *measured, enum cw_measured_path path,
                             const struct cw_problem *problem, struct cw_measured_answer *answers, uint32_t answer_max);

/* An algorithm's place in tests; also for algorithms outside the registry (mpi/collective/host/host.h). */
enum cw_measured_standing {
    CW_STANDING_UNKNOWN = 0, /* not tested near this question */
    CW_STANDING_FIRST = 1,
    CW_STANDING_BEHIND = 2,
};
/* *time_ns: its time in tests, unchanged if there is none; NULL is allowed. */
enum cw_measured_standing cw_measured_standing(const struct cw_measured *measured, enum cw_measured_path path,
                                               const struct cw_problem *problem, const char *name, double *time_ns);

/* The basis of a choice. */
enum cw_measured_origin {
    CW_BY_DEFAULTS = 0, /* a model, with built-in figures */
    CW_BY_MODEL = 1,    /* a model, with measured parameters */
    CW_BY_TEST = 2,     /* the soonest in tests */
    CW_BY_NAME = 3,     /* an override names it */
    CW_BY_PLAN = 4,     /* it was chosen before the program ran (bundle.h) */
    CW_BY_LEVELS = 5,   /* ranks share hosts, which no model and no test speaks against */
    CW_ORIGINS = 6,
};
const char *cw_measured_origin_name(enum cw_measured_origin origin);

/* The algorithm to take, of the registry, for a problem on a transport as in `request`, except its network. `across`:
 * of a problem of several clusters, with unmeasured routes between; NULL: all paths are alike. Errors as cw_choose. */
int cw_measured_choose(const struct cw_measured *measured, enum cw_measured_path path,
                       const struct cw_measured_wan *across, const struct cw_choose_request *request,
                       struct cw_candidate *best, enum cw_measured_origin *origin);
