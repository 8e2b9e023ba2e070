/* plan: shared by the files of `causeway plan`: the problem and parameters on the command line, plan files,
 * networks. */
#pragma once

#include "apps/cli/cli.h"
#include "collectives/algorithms/build.h"
#include "collectives/file/plan_file.h"
#include "collectives/price/network.h"

/* ---- The problem on the command line (plan/request.c) ---- */

enum { PLAN_REQUEST_OPTIONS = 20 };

/* A parameter that no option named: the default holds, and an algorithm that does not look at it is none the worse. */
#define PLAN_NOT_GIVEN UINT64_MAX

/* Zeroed, then plan_request_options. Texts point into argv. */
struct plan_request {
    const char *collective;
    const char *algorithm;
    const char *counts;
    const char *clusters;
    const char *via;
    const char *eager;
    uint64_t ranks;
    uint64_t root;
    uint64_t size_bytes;
    uint64_t element_bytes;
    uint64_t segment_bytes;
    uint64_t threshold_bytes;
    uint64_t degree;
    uint64_t concurrency;
    uint64_t senders;
    bool ordered;
    bool size_given;
};

/* Fills in the rows for a problem, and with `how` those for algorithm and parameters, with defaults; returns how
 * many. */
size_t plan_request_options(struct plan_request *request, bool how, struct app_option *rows);

/* The problem that was asked for; NULL: reported. */
struct cw_problem *plan_request_problem(const struct plan_request *request);

/* The plan, which owns the problem from then on; NULL: reported, the problem is still the caller's, and *exit_code says
 * how. A plan that does not fit the machine's memory is rejected before it is built. */
struct cw_plan *plan_request_build(struct cw_problem *problem, const struct cw_algorithm *algorithm,
                                   const struct cw_parameters *parameters, int *exit_code);

/* The algorithm; NULL: reported, with the names there are. */
const struct cw_algorithm *plan_request_algorithm(const struct plan_request *request, enum cw_collective collective);

/* The given parameters, and defaults. False: an option is malformed, or the algorithm does not use it; reported. */
bool plan_request_parameters(const struct plan_request *request, const struct cw_algorithm *algorithm,
                             struct cw_parameters *parameters);

/* A size, or `all`. False: reported. */
bool plan_eager_parse(const char *text, uint64_t *bytes);

/* ---- Lists on the command line (plan/lists.c) ---- */

/* `wanted` sizes apart by commas or white space, in elements, to be freed. `pairs`: one per pair of ranks. NULL:
 * reported. */
uint64_t *plan_counts_parse(const char *text, uint64_t wanted, bool pairs, uint64_t element_bytes);

/* "8,8": the cluster of each rank. Returns how many clusters; 0: reported. */
uint32_t plan_clusters_parse(const char *text, uint64_t ranks, uint32_t *cluster_of);

/* "0-2:1,0-3:1": both directions, into [a * clusters + b]. False: reported. */
bool plan_via_parse(const char *text, uint32_t clusters, uint32_t *via);

/* ---- Files (plan/io.c) ---- */

/* The plan in the file that is the only operand, argv[first], or number N of a bundle of plans (FILE#N, from 1 on).
 * `checked`: it passes the checker. NULL: reported, *exit_code says how. */
struct cw_plan *plan_operand_read(int first, int argc, char **argv, bool checked, int *exit_code);

/* One of enum app_exit. "-" is standard output. */
int plan_write(const struct cw_plan *plan, const char *path);

/* All bytes of a file, or of standard input ("-"), to be freed; NULL: reported. */
char *plan_read_bytes(const char *path, size_t *length);

/* A whole text file, ended by zero, to be freed; NULL: reported. */
char *plan_read_text(const char *path);

/* ---- Networks (plan/network.c) ---- */

/* A network by name, or @FILE. False: reported. */
bool plan_network_parse(const char *text, struct cw_network *network);

/* ---- Subcommands, argv[0] their name ---- */

int plan_build_main(int argc, char **argv);
int plan_check_main(int argc, char **argv);
int plan_compile_main(int argc, char **argv);
int plan_dump_main(int argc, char **argv);
int plan_list_main(int argc, char **argv);
int plan_networks_main(int argc, char **argv);
int plan_price_main(int argc, char **argv);
int plan_choose_main(int argc, char **argv);
int plan_draw_main(int argc, char **argv);

/* A time for users, as "12.3 us"; returns `text`. */
const char *plan_time_text(double time_ns, char *text, size_t text_bytes);
