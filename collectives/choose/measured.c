/* What was measured: kept in order, so that the file reads well and questions are searches. */
#include "collectives/choose/measured.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

static const char *const path_names[CW_MEASURED_PATHS] = {"shared", "wire", "rdma"};

const char *cw_measured_path_name(enum cw_measured_path path)
{
    return path_names[path];
}

enum cw_measured_path cw_measured_path_find(const char *name)
{
    uint32_t path = 0;
    while (path < CW_MEASURED_PATHS && strcmp(path_names[path], name) != 0) {
        path++;
    }
    return (enum cw_measured_path)path;
}

const char *cw_measured_origin_name(enum cw_measured_origin origin)
{
    static const char *const names[CW_ORIGINS] = {
        [CW_BY_DEFAULTS] = "built-in figures",
        [CW_BY_MODEL] = "measured parameters",
        [CW_BY_TEST] = "tests",
        [CW_BY_NAME] = "override",
        [CW_BY_PLAN] = "plan",
        [CW_BY_LEVELS] = "shared memory",
    };
    return names[origin];
}

struct cw_measured *cw_measured_create(void)
{
    return calloc(1, sizeof(struct cw_measured));
}

void cw_measured_destroy(struct cw_measured *measured)
{
    if (measured != NULL) {
        free(measured->networks);
        free(measured->tests);
        free(measured);
    }
}

/* ---- ordered arrays ---- */

static int compare_numbers(uint64_t left, uint64_t right)
{
    return left < right ? -1 : left > right;
}

static int network_compare(const void *a, const void *b)
{
    const struct cw_measured_network *left = a, *right = b;
    int order = compare_numbers(left->path, right->path);
    return order != 0 ? order : compare_numbers(left->ranks, right->ranks);
}

/* The question alone: times and parameters are the answer. */
static int test_compare(const void *a, const void *b)
{
    const struct cw_measured_test *left = a, *right = b;
    int order = compare_numbers(left->path, right->path);
    order = order != 0 ? order : compare_numbers(left->collective, right->collective);
    order = order != 0 ? order : compare_numbers(left->ranks, right->ranks);
    order = order != 0 ? order : compare_numbers(left->bytes, right->bytes);
    return order != 0 ? order : strcmp(left->algorithm, right->algorithm);
}

struct row_kind {
    size_t bytes;
    uint32_t most;
    int (*compare)(const void *a, const void *b);
};

static const struct row_kind networks_kind = {sizeof(struct cw_measured_network), CW_MEASURED_NETWORKS_MAX,
                                              network_compare};
static const struct row_kind tests_kind = {sizeof(struct cw_measured_test), CW_MEASURED_TESTS_MAX, test_compare};

/* Room is always a power of two, so that it need not be kept. */
static bool rows_grow(void **rows, uint32_t count, size_t bytes)
{
    if ((count & (count - 1)) != 0) {
        return true;
    }
    void *grown = realloc(*rows, (count == 0 ? 1 : 2 * (size_t)count) * bytes);
    if (grown == NULL) {
        return false;
    }
    *rows = grown;
    return true;
}

/* Rows mostly come in order: the search goes from the end. */
static int row_add(const struct row_kind *kind, void **rows, uint32_t *count, const void *row)
{
    uint32_t at = *count;
    while (at > 0 && kind->compare((uint8_t *)*rows + (at - 1) * kind->bytes, row) > 0) {
        at--;
    }
    if (at > 0 && kind->compare((uint8_t *)*rows + (at - 1) * kind->bytes, row) == 0) {
        memcpy((uint8_t *)*rows + (at - 1) * kind->bytes, row, kind->bytes);
        return CW_OK;
    }
    if (*count == kind->most) {
        return CW_ERROR_LIMIT;
    }
    if (!rows_grow(rows, *count, kind->bytes)) {
        return CW_ERROR_MEMORY;
    }
    uint8_t *place = (uint8_t *)*rows + at * kind->bytes;
    memmove(place + kind->bytes, place, (*count - at) * kind->bytes);
    memcpy(place, row, kind->bytes);
    ++*count;
    return CW_OK;
}

int cw_measured_add_network(struct cw_measured *measured, const struct cw_measured_network *network)
{
    return row_add(&networks_kind, (void **)&measured->networks, &measured->network_count, network);
}

int cw_measured_add_test(struct cw_measured *measured, const struct cw_measured_test *test)
{
    return row_add(&tests_kind, (void **)&measured->tests, &measured->test_count, test);
}

int cw_measured_merge(struct cw_measured *into, const struct cw_measured *from)
{
    int status = CW_OK;
    for (uint32_t i = 0; i < from->network_count && status == CW_OK; i++) {
        status = cw_measured_add_network(into, &from->networks[i]);
    }
    for (uint32_t i = 0; i < from->test_count && status == CW_OK; i++) {
        status = cw_measured_add_test(into, &from->tests[i]);
    }
    return status;
}
