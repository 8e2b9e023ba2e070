/* The table of closed forms, their inputs, and their common parts. */
#include <string.h>

#include "collectives/price/formulas_private.h"
#include "dataplane/status.h"

static const struct formula_family *const families[] = {
    &formulas_bcast,    &formulas_rooted, &formulas_allgather,      &formulas_alltoall,
    &formulas_clusters, &formulas_reduce, &formulas_reduce_scatter,
};

const struct cw_formula *cw_formula_at(uint32_t index)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (index < families[i]->count) {
            return &families[i]->rows[index].about;
        }
        index -= families[i]->count;
    }
    return NULL;
}

const struct cw_formula *cw_formula_find(enum cw_collective collective, const char *algorithm)
{
    const struct cw_formula *formula;
    for (uint32_t i = 0; (formula = cw_formula_at(i)) != NULL; i++) {
        if (formula->collective == collective && strcmp(formula->algorithm, algorithm) == 0) {
            return formula;
        }
    }
    return NULL;
}

/* ---- Terms ---- */

/* Whole elements, and not more iterations than a schedule may have: as the emitter divides. */
static void segments_fill(struct terms *terms, uint64_t asked)
{
    uint64_t element = terms->problem->element_bytes;
    terms->segment_bytes = terms->last_bytes = terms->bytes;
    terms->segments = 1;
    if (asked == 0 || asked >= terms->bytes) {
        return;
    }
    uint64_t least = (terms->bytes / CW_REPEAT_COUNT_MAX / element + 1) * element;
    uint64_t segment = asked / element * element;
    segment = segment > least ? segment : least;
    if (segment < terms->bytes) {
        terms->segment_bytes = segment;
        terms->segments = (terms->bytes + segment - 1) / segment;
        terms->last_bytes = terms->bytes - (terms->segments - 1) * segment;
    }
}

static uint64_t longest_message(const struct terms *terms, uint32_t flags)
{
    if ((flags & FORMULA_VECTOR) != 0) {
        return terms->bytes * terms->ranks;
    }
    return (flags & FORMULA_SEGMENTED) != 0 ? terms->segment_bytes : terms->bytes;
}

static bool row_applies(const struct formula_row *row, const struct cw_problem *problem)
{
    return !problem->has_counts && (problem->cluster_count > 1) == ((row->flags & FORMULA_CLUSTERS) != 0);
}

int cw_formula_evaluate(const struct cw_formula *formula, const struct cw_problem *problem,
                        const struct cw_parameters *parameters, const struct cw_network *network,
                        struct cw_formula_value *value)
{
    const struct formula_row *row = (const struct formula_row *)formula;
    if (formula->collective != problem->collective || !row_applies(row, problem)) {
        return CW_ERROR_NOT_FOUND;
    }
    struct terms terms = {
        .problem = problem,
        .network = network,
        .path = &network->paths[CW_PATH_LAN],
        .ranks = problem->ranks,
        .bytes = problem->count * problem->element_bytes,
        .ports = network->ports,
        .degree = parameters->degree != 0 ? parameters->degree : 2,
        .concurrency = parameters->concurrency != 0 ? parameters->concurrency : 2,
        .senders = parameters->senders,
        .eager_max_bytes = parameters->eager_max_bytes,
        .kind = formula->kind,
    };
    segments_fill(&terms, parameters->segment_bytes);
    if (problem->ranks == 1 || (terms.bytes == 0 && problem->collective != CW_BARRIER)) {
        value->time_ns = 0; /* copies at most */
        value->kind = CW_FORMULA_EXACT;
        return CW_OK;
    }
    value->time_ns = row->time(&terms);
    value->kind = terms.kind == CW_FORMULA_FITTED && formula->factor <= 0 ? CW_FORMULA_NONE : terms.kind;
    if ((row->flags & FORMULA_HANDSHAKES) == 0 && longest_message(&terms, row->flags) > terms.eager_max_bytes) {
        /* the first message waits for the clear-to-send; later ones mostly find it there; the last
         * one is complete when that is known */
        value->time_ns += gap(&terms, 0) + 2 * latency(&terms);
        value->kind = CW_FORMULA_NONE;
    }
    return CW_OK;
}

/* ---- In common ---- */

struct train formula_train_of(const struct terms *terms, uint64_t bytes)
{
    struct train train = {.gap = gap(terms, bytes), .ports = terms->ports};
    if (terms->ports > 1) {
        train.send = cw_plogp_send(terms->path, bytes);
        if (terms->ports * train.send > train.gap) {
            train = (struct train){.gap = train.send, .ports = 1};
        }
    }
    return train;
}

double formula_train(const struct terms *terms, uint64_t n, uint64_t bytes)
{
    struct train train = formula_train_of(terms, bytes);
    return formula_train_start(&train, n);
}

/* Between two points of the table the terms are those of an arithmetic progression. */
double formula_sum(const struct terms *terms, uint64_t count, uint64_t bytes)
{
    const struct cw_plogp *path = terms->path;
    double sum = 0;
    uint64_t first = 1;
    for (uint32_t i = 0; i <= path->count && first <= count; i++) {
        /* up to point i; the line before the last point continues beyond it */
        uint64_t last = i + 1 < path->count ? path->points[i].bytes / bytes : count;
        last = last < count ? last : count;
        if (last >= first) {
            sum += (double)(last - first + 1) * (gap(terms, first * bytes) + gap(terms, last * bytes)) / 2;
            first = last + 1;
        }
    }
    return sum;
}

double formula_funnel(const struct terms *terms, uint64_t n, uint64_t bytes)
{
    double receive = cw_plogp_receive(terms->path, bytes);
    double one = gap(terms, bytes);
    if (terms->ports == 1) {
        return (double)(n + 1) * one;
    }
    if (terms->ports * receive > one) {
        return one + (double)n * receive;
    }
    return one + (double)(n / terms->ports) * one + (double)(n % terms->ports) * receive;
}

bool formula_has_no_overheads(const struct terms *terms, uint64_t bytes)
{
    return cw_plogp_send(terms->path, bytes) <= 0 && cw_plogp_receive(terms->path, bytes) <= 0;
}

bool formula_keeps_up(const struct terms *terms, uint64_t bytes)
{
    return cw_plogp_send(terms->path, bytes) + cw_plogp_receive(terms->path, bytes) <= gap(terms, bytes);
}

bool formula_exchanges(const struct terms *terms, uint64_t bytes)
{
    return cw_plogp_send(terms->path, bytes) + cw_plogp_receive(terms->path, bytes) <= hop(terms, bytes);
}

/* Sends begin at multiples of g, arrivals end L after them: the remainder of L after whole gaps must hold both. */
bool formula_streams(const struct terms *terms, uint64_t bytes)
{
    double work = cw_plogp_send(terms->path, bytes) + cw_plogp_receive(terms->path, bytes);
    double one = gap(terms, bytes);
    if (work <= 0) {
        return true;
    }
    double phase = latency(terms);
    phase -= one * (double)(uint64_t)(phase / one);
    phase = phase <= 0 ? one : phase;
    return terms->ports == 1 && work <= phase;
}

double formula_doubling(struct terms *terms, uint32_t count, uint64_t bytes)
{
    double sum = 0;
    for (uint32_t j = 0; j < count; j++, bytes *= 2) {
        unless(terms, formula_exchanges(terms, bytes), CW_FORMULA_LOWER_BOUND);
        sum += hop(terms, bytes);
    }
    return sum;
}

double formula_halving(struct terms *terms, uint32_t steps, uint64_t bytes, bool reduces)
{
    double sum = 0;
    for (uint32_t i = 0; i < steps; i++) {
        bytes /= 2;
        unless(terms, formula_exchanges(terms, bytes), CW_FORMULA_LOWER_BOUND);
        sum += hop(terms, bytes) + (reduces ? reduce_time(terms, bytes) : 0);
    }
    return sum;
}

double formula_barrier(const struct terms *terms)
{
    return ceiling_log2(terms->ranks) * hop(terms, 0);
}
