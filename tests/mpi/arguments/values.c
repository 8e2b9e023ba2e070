/* Right and wrong values of all kinds of parameters. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/arguments/objects.h"
#include "tests/mpi/arguments/walk.h"

enum {
    CELLS = 2,         /* elements of each array that calls get: as many as requests, ranks of a group, dimensions */
    OVER = 0x7fffffff, /* above any rank, count of ranks, and tag */
};

struct walk_values walk_values[WALK_KIND_COUNT];

static int size;

/* Memory that calls may write to; a cell for each wrong value that is given by its address. */
static struct {
    unsigned char scratch[65536];
    walk_value cells[256];
    long long wide[64][4];
    int narrow[64][8];
} memory, fresh;
static int cell_count, wide_count, narrow_count;

static walk_value cell(walk_value value)
{
    fresh.cells[cell_count] = value;
    return (walk_value)&memory.cells[cell_count++];
}

static walk_value wide(long long a, long long b)
{
    fresh.wide[wide_count][0] = a;
    fresh.wide[wide_count][1] = b;
    return (walk_value)memory.wide[wide_count++];
}

static walk_value narrow(int a, int b)
{
    fresh.narrow[narrow_count][0] = a;
    fresh.narrow[narrow_count][1] = b;
    return (walk_value)memory.narrow[narrow_count++];
}

static walk_value handles(const void *a, const void *b)
{
    return wide((long long)(intptr_t)a, (long long)(intptr_t)b);
}

void walk_values_refresh(void)
{
    memory = fresh;
}

/* ---- making ---- */

static void right(enum walk_kind kind, walk_value value)
{
    walk_values[kind].right = value;
}

#define WRONG(kind, value, ...) wrong_add(WALK_##kind, #value, (walk_value)(value), (const int[3]){__VA_ARGS__})

static void wrong_add(enum walk_kind kind, const char *name, walk_value value, const int classes[3])
{
    struct walk_values *values = &walk_values[kind];
    struct walk_wrong *wrong = &values->wrong[values->count++];
    if (values->count > WALK_WRONG_MAX) {
        fprintf(stderr, "too many wrong values of a kind\n");
        exit(1);
    }
    *wrong = (struct walk_wrong){.name = name, .value = value};
    memcpy(wrong->classes, classes, sizeof(wrong->classes));
}

/* Numbers that are no handle of any kind, and handles of other kinds; `own` is a live one of the kind. */
static void foreign_add(enum walk_kind kind, int by_address, const void *own, int error_class)
{
    const struct {
        const char *name;
        const void *handle;
        int error_class; /* of its own kind */
    } foreign[] = {
        {"0", NULL, 0},
        {"12345", (const void *)12345, 0},
        {"-1", (const void *)-1, 0},
        {"a number above all handles of its kind", (const void *)((intptr_t)own | 0xfffff), 0},
        {"a live communicator", walk_objects.grid, MPI_ERR_COMM},
        {"a live datatype", walk_objects.derived, MPI_ERR_TYPE},
        {"a live group", walk_objects.group, MPI_ERR_GROUP},
        {"MPI_BYTE", MPI_BYTE, MPI_ERR_TYPE},
        {"MPI_MAX", MPI_MAX, MPI_ERR_OP},
    };
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        walk_value value = (walk_value)foreign[i].handle;
        if (foreign[i].error_class != error_class) {
            wrong_add(kind, foreign[i].name, by_address ? cell(value) : value, (const int[3]){error_class});
        }
    }
}

/* ---- kinds ---- */

static void handles_of_comms_and_groups(void)
{
    static const enum walk_kind comms[] = {WALK_COMM, WALK_COMM_OR_NULL, WALK_COMM_SELF, WALK_GRID};
    for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
        right(comms[i], (walk_value)MPI_COMM_WORLD);
        foreign_add(comms[i], 0, walk_objects.grid, MPI_ERR_COMM);
        wrong_add(comms[i], "a freed communicator", (walk_value)walk_objects.comm_stale, (const int[3]){MPI_ERR_COMM});
    }
    right(WALK_GRID, (walk_value)walk_objects.grid);
    right(WALK_COMM_SELF, (walk_value)MPI_COMM_SELF);
    WRONG(COMM, MPI_COMM_NULL, MPI_ERR_COMM);
    WRONG(COMM_SELF, MPI_COMM_NULL, MPI_ERR_COMM);
    WRONG(GRID, MPI_COMM_NULL, MPI_ERR_COMM);
    WRONG(GRID, MPI_COMM_WORLD, MPI_ERR_TOPOLOGY);
    foreign_add(WALK_COMM_TO_FREE, 1, walk_objects.grid, MPI_ERR_COMM);
    WRONG(COMM_TO_FREE, NULL, MPI_ERR_ARG);
    WRONG(COMM_TO_FREE, cell((walk_value)walk_objects.comm_stale), MPI_ERR_COMM);
    WRONG(COMM_TO_FREE, cell((walk_value)MPI_COMM_NULL), MPI_ERR_COMM);
    WRONG(COMM_TO_FREE, cell((walk_value)MPI_COMM_WORLD), MPI_ERR_COMM);
    WRONG(COMM_TO_FREE, cell((walk_value)MPI_COMM_SELF), MPI_ERR_COMM);
    right(WALK_GROUP, (walk_value)walk_objects.group);
    foreign_add(WALK_GROUP, 0, walk_objects.group, MPI_ERR_GROUP);
    WRONG(GROUP, MPI_GROUP_NULL, MPI_ERR_GROUP);
    WRONG(GROUP, walk_objects.group_stale, MPI_ERR_GROUP);
    WRONG(GROUP, walk_objects.group_kept, MPI_ERR_GROUP);
    foreign_add(WALK_GROUP_TO_FREE, 1, walk_objects.group, MPI_ERR_GROUP);
    WRONG(GROUP_TO_FREE, NULL, MPI_ERR_ARG);
    WRONG(GROUP_TO_FREE, cell((walk_value)MPI_GROUP_NULL), MPI_ERR_GROUP);
    WRONG(GROUP_TO_FREE, cell((walk_value)walk_objects.group_stale), MPI_ERR_GROUP);
    WRONG(GROUP_TO_FREE, cell((walk_value)walk_objects.group_kept), MPI_ERR_GROUP);
}

static void handles_of_types(void)
{
    static const enum walk_kind types[] = {WALK_TYPE, WALK_TYPE_ANY, WALK_TYPE_OR_NULL};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        right(types[i], (walk_value)(types[i] == WALK_TYPE ? MPI_INT : walk_objects.derived));
        foreign_add(types[i], 0, walk_objects.derived, MPI_ERR_TYPE);
        wrong_add(types[i], "a freed datatype", (walk_value)walk_objects.type_stale, (const int[3]){MPI_ERR_TYPE});
    }
    WRONG(TYPE, MPI_DATATYPE_NULL, MPI_ERR_TYPE);
    WRONG(TYPE_ANY, MPI_DATATYPE_NULL, MPI_ERR_TYPE);
    WRONG(TYPE, walk_objects.uncommitted, MPI_ERR_TYPE);
    WRONG(TYPE_TO_COMMIT, NULL, MPI_ERR_ARG);
    WRONG(TYPE_TO_COMMIT, cell((walk_value)MPI_DATATYPE_NULL), MPI_ERR_TYPE);
    WRONG(TYPE_TO_COMMIT, cell((walk_value)walk_objects.type_stale), MPI_ERR_TYPE);
    WRONG(TYPE_TO_COMMIT, cell((walk_value)MPI_COMM_WORLD), MPI_ERR_TYPE);
    WRONG(TYPE_TO_COMMIT, cell(0), MPI_ERR_TYPE);
    WRONG(TYPE_TO_COMMIT, cell(12345), MPI_ERR_TYPE);
    walk_values[WALK_TYPE_TO_FREE] = walk_values[WALK_TYPE_TO_COMMIT];
    WRONG(TYPE_TO_FREE, cell((walk_value)MPI_INT), MPI_ERR_TYPE);
    right(WALK_TYPES, handles(MPI_INT, MPI_INT));
    WRONG(TYPES, NULL, MPI_ERR_ARG);
    WRONG(TYPES, handles(walk_objects.type_stale, MPI_INT), MPI_ERR_TYPE);
    WRONG(TYPES, handles(walk_objects.uncommitted, MPI_INT), MPI_ERR_TYPE);
    if (size > 1) {
        WRONG(TYPES, handles(walk_objects.derived, MPI_COMM_WORLD), MPI_ERR_TYPE);
    }
    right(WALK_TYPES_ANY, handles(walk_objects.derived, MPI_INT));
    WRONG(TYPES_ANY, NULL, MPI_ERR_ARG);
    WRONG(TYPES_ANY, handles(walk_objects.derived, walk_objects.type_stale), MPI_ERR_TYPE);
    WRONG(TYPES_ANY, handles(MPI_INT, MPI_DATATYPE_NULL), MPI_ERR_TYPE);
    WRONG(TYPE_CLASS, 12345, MPI_ERR_ARG);
    WRONG(PRECISION, 10000, MPI_ERR_ARG);
}

static void handles_of_ops_and_infos(void)
{
    right(WALK_OP, (walk_value)MPI_SUM);
    WRONG(OP, MPI_OP_NULL, MPI_ERR_OP);
    WRONG(OP, walk_objects.op_stale, MPI_ERR_OP);
    WRONG(OP, 0, MPI_ERR_OP);
    WRONG(OP, 12345, MPI_ERR_OP);
    WRONG(OP, walk_objects.derived, MPI_ERR_OP);
    WRONG(OP, MPI_COMM_WORLD, MPI_ERR_OP);
    walk_values[WALK_OP_ANY] = walk_values[WALK_OP];
    WRONG(OP, MPI_REPLACE, MPI_ERR_OP);
    WRONG(OP, MPI_MINLOC, MPI_ERR_OP);
    WRONG(OP_TO_FREE, NULL, MPI_ERR_ARG);
    WRONG(OP_TO_FREE, cell((walk_value)MPI_OP_NULL), MPI_ERR_OP);
    WRONG(OP_TO_FREE, cell((walk_value)MPI_SUM), MPI_ERR_OP);
    WRONG(OP_TO_FREE, cell((walk_value)walk_objects.op_stale), MPI_ERR_OP);
    WRONG(OP_TO_FREE, cell((walk_value)walk_objects.derived), MPI_ERR_OP);
    static const enum walk_kind infos[] = {WALK_INFO, WALK_INFO_TO_CHANGE, WALK_HINTS};
    for (size_t i = 0; i < sizeof(infos) / sizeof(infos[0]); i++) {
        right(infos[i], (walk_value)walk_objects.info);
        foreign_add(infos[i], 0, walk_objects.info, MPI_ERR_INFO);
        wrong_add(infos[i], "a freed info object", (walk_value)walk_objects.info_stale, (const int[3]){MPI_ERR_INFO});
    }
    WRONG(INFO, MPI_INFO_NULL, MPI_ERR_INFO);
    WRONG(INFO_TO_CHANGE, MPI_INFO_NULL, MPI_ERR_INFO);
    WRONG(INFO_TO_CHANGE, MPI_INFO_ENV, MPI_ERR_INFO);
    WRONG(INFO_TO_FREE, NULL, MPI_ERR_ARG);
    WRONG(INFO_TO_FREE, cell((walk_value)MPI_INFO_NULL), MPI_ERR_INFO);
    WRONG(INFO_TO_FREE, cell((walk_value)MPI_INFO_ENV), MPI_ERR_INFO);
    WRONG(INFO_TO_FREE, cell((walk_value)walk_objects.info_stale), MPI_ERR_INFO);
    WRONG(INFO_TO_FREE, cell((walk_value)walk_objects.derived), MPI_ERR_INFO);
}

static void keys_and_errors(void)
{
    static char too_long[MPI_MAX_INFO_VAL + 8];
    memset(too_long, 'x', sizeof(too_long) - 1);
    right(WALK_KEY, (walk_value) "key");
    WRONG(KEY, NULL, MPI_ERR_INFO_KEY);
    WRONG(KEY, "", MPI_ERR_INFO_KEY);
    WRONG(KEY, too_long, MPI_ERR_INFO_KEY);
    right(WALK_VALUE, (walk_value) "value");
    WRONG(VALUE, NULL, MPI_ERR_INFO_VALUE);
    WRONG(VALUE, too_long, MPI_ERR_INFO_VALUE);
    WRONG(NTH_KEY, -1, MPI_ERR_INFO_NOKEY);
    WRONG(NTH_KEY, 1000, MPI_ERR_INFO_NOKEY);
    right(WALK_LENGTH, 64);
    WRONG(LENGTH, -1, MPI_ERR_ARG);
    WRONG(LENGTH, INT_MIN, MPI_ERR_ARG);
    right(WALK_LENGTH_CELL, narrow(64, 0));
    WRONG(LENGTH_CELL, NULL, MPI_ERR_ARG);
    WRONG(LENGTH_CELL, narrow(-1, 0), MPI_ERR_ARG);
    right(WALK_ERRHANDLER, (walk_value)walk_objects.errhandler);
    WRONG(ERRHANDLER, MPI_ERRHANDLER_NULL, MPI_ERR_ERRHANDLER);
    WRONG(ERRHANDLER, walk_objects.errhandler_stale, MPI_ERR_ERRHANDLER);
    WRONG(ERRHANDLER, walk_objects.errhandler_of_win, MPI_ERR_ERRHANDLER);
    WRONG(ERRHANDLER, 0, MPI_ERR_ERRHANDLER);
    WRONG(ERRHANDLER, 12345, MPI_ERR_ERRHANDLER);
    WRONG(ERRHANDLER, walk_objects.grid, MPI_ERR_ERRHANDLER);
    WRONG(ERRHANDLER_TO_FREE, NULL, MPI_ERR_ARG);
    WRONG(ERRHANDLER_TO_FREE, cell((walk_value)MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
    WRONG(ERRHANDLER_TO_FREE, cell((walk_value)walk_objects.errhandler_stale), MPI_ERR_ERRHANDLER);
    WRONG(ERRHANDLER_TO_FREE, cell((walk_value)walk_objects.grid), MPI_ERR_ERRHANDLER);
    WRONG(ERROR_CODE, -1, MPI_ERR_ARG);
    WRONG(ERROR_CODE, OVER, MPI_ERR_ARG);
    WRONG(ERROR_CODE, INT_MIN, MPI_ERR_ARG);
    walk_values[WALK_ADDED_CODE] = walk_values[WALK_ERROR_CODE];
    WRONG(ADDED_CODE, MPI_ERR_TAG, MPI_ERR_ARG);
    right(WALK_FUNCTION, (walk_value)walk_user_handler); /* is not called */
    WRONG(FUNCTION, NULL, MPI_ERR_ARG);
    static const enum walk_kind keys[] = {WALK_COMM_KEY, WALK_TYPE_KEY};
    for (int i = 0; i < 2; i++) {
        right(keys[i], i == 0 ? walk_objects.comm_key : walk_objects.type_key);
        wrong_add(keys[i], "MPI_KEYVAL_INVALID", MPI_KEYVAL_INVALID, (const int[3]){MPI_ERR_KEYVAL});
        wrong_add(keys[i], "0", 0, (const int[3]){MPI_ERR_KEYVAL});
        wrong_add(keys[i], "-1", -1, (const int[3]){MPI_ERR_KEYVAL});
        wrong_add(keys[i], "INT_MIN", INT_MIN, (const int[3]){MPI_ERR_KEYVAL});
        wrong_add(keys[i], "12345", 12345, (const int[3]){MPI_ERR_KEYVAL});
        wrong_add(keys[i], "a freed key", i == 0 ? walk_objects.comm_key_stale : walk_objects.type_key_stale,
                  (const int[3]){MPI_ERR_KEYVAL});
        wrong_add(keys[i], "a key of another kind", i == 0 ? walk_objects.type_key : walk_objects.comm_key,
                  (const int[3]){MPI_ERR_KEYVAL});
    }
    walk_values[WALK_COMM_KEY_TO_SET] = walk_values[WALK_COMM_KEY];
    WRONG(COMM_KEY_TO_SET, MPI_TAG_UB, MPI_ERR_KEYVAL);
    WRONG(COMM_KEY_TO_FREE, NULL, MPI_ERR_ARG);
    WRONG(COMM_KEY_TO_FREE, narrow(MPI_KEYVAL_INVALID, 0), MPI_ERR_KEYVAL);
    WRONG(COMM_KEY_TO_FREE, narrow(MPI_TAG_UB, 0), MPI_ERR_KEYVAL);
    WRONG(COMM_KEY_TO_FREE, narrow(12345, 0), MPI_ERR_KEYVAL);
    walk_values[WALK_TYPE_KEY_TO_FREE] = walk_values[WALK_COMM_KEY_TO_FREE];
    WRONG(COMM_KEY_TO_FREE, narrow(walk_objects.comm_key_stale, 0), MPI_ERR_KEYVAL);
    WRONG(COMM_KEY_TO_FREE, narrow(walk_objects.type_key, 0), MPI_ERR_KEYVAL);
    WRONG(TYPE_KEY_TO_FREE, narrow(walk_objects.type_key_stale, 0), MPI_ERR_KEYVAL);
    WRONG(TYPE_KEY_TO_FREE, narrow(walk_objects.comm_key, 0), MPI_ERR_KEYVAL);
}

static void requests_and_messages(void)
{
    right(WALK_REQUEST, (walk_value)walk_objects.persistent);
    foreign_add(WALK_REQUEST, 0, walk_objects.persistent, MPI_ERR_REQUEST);
    WRONG(REQUEST, walk_objects.request_stale, MPI_ERR_REQUEST);
    walk_values[WALK_REQUEST_GENERAL] = walk_values[WALK_REQUEST];
    right(WALK_REQUEST_GENERAL, (walk_value)walk_objects.general);
    WRONG(REQUEST_GENERAL, MPI_REQUEST_NULL, MPI_ERR_REQUEST);
    WRONG(REQUEST_GENERAL, walk_objects.persistent, MPI_ERR_REQUEST);
    right(WALK_REQUEST_TO_WAIT, cell((walk_value)walk_objects.persistent));
    WRONG(REQUEST_TO_WAIT, NULL, MPI_ERR_ARG);
    foreign_add(WALK_REQUEST_TO_WAIT, 1, walk_objects.persistent, MPI_ERR_REQUEST);
    WRONG(REQUEST_TO_WAIT, cell((walk_value)walk_objects.request_stale), MPI_ERR_REQUEST);
    walk_values[WALK_REQUEST_TO_USE] = walk_values[WALK_REQUEST_TO_WAIT];
    WRONG(REQUEST_TO_USE, cell((walk_value)MPI_REQUEST_NULL), MPI_ERR_REQUEST);
    right(WALK_REQUESTS, handles(MPI_REQUEST_NULL, walk_objects.persistent));
    WRONG(REQUESTS, NULL, MPI_ERR_ARG);
    WRONG(REQUESTS, handles(walk_objects.persistent, walk_objects.request_stale), MPI_ERR_REQUEST);
    WRONG(REQUESTS, handles(NULL, walk_objects.persistent), MPI_ERR_REQUEST);
    WRONG(REQUESTS, handles(walk_objects.persistent, walk_objects.grid), MPI_ERR_REQUEST);
    right(WALK_REQUESTS_TO_START, handles(walk_objects.persistent, walk_objects.persistent));
    WRONG(REQUESTS_TO_START, NULL, MPI_ERR_ARG);
    WRONG(REQUESTS_TO_START, handles(walk_objects.persistent, walk_objects.request_stale), MPI_ERR_REQUEST);
    WRONG(REQUESTS_TO_START, handles(walk_objects.persistent, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
    WRONG(REQUESTS_TO_START, handles(walk_objects.persistent, walk_objects.general), MPI_ERR_REQUEST);
    right(WALK_LIST_LENGTH, CELLS);
    WRONG(LIST_LENGTH, -1, MPI_ERR_COUNT);
    WRONG(LIST_LENGTH, INT_MIN, MPI_ERR_COUNT);
    right(WALK_MESSAGE, cell((walk_value)MPI_MESSAGE_NO_PROC));
    WRONG(MESSAGE, NULL, MPI_ERR_ARG);
    WRONG(MESSAGE, cell((walk_value)MPI_MESSAGE_NULL), MPI_ERR_REQUEST);
    WRONG(MESSAGE, cell(0), MPI_ERR_REQUEST);
    WRONG(MESSAGE, cell(12345), MPI_ERR_REQUEST);
    WRONG(MESSAGE, cell((walk_value)walk_objects.persistent), MPI_ERR_REQUEST);
}

static void buffers_and_counts(void)
{
    right(WALK_ANY, 0);
    right(WALK_OUT, (walk_value)memory.scratch);
    WRONG(OUT, NULL, MPI_ERR_ARG);
    right(WALK_ARRAY, (walk_value)memory.scratch);
    WRONG(ARRAY, NULL, MPI_ERR_ARG);
    right(WALK_FILE_NAME, (walk_value) "/nonexistent/phases");
    WRONG(FILE_NAME, NULL, MPI_ERR_ARG);
    right(WALK_BUFFER, (walk_value)memory.scratch);
    WRONG(BUFFER, NULL, MPI_ERR_BUFFER);
    WRONG(BUFFER, MPI_IN_PLACE, MPI_ERR_BUFFER);
    right(WALK_BUFFER_OR_IN_PLACE, (walk_value)memory.scratch + 4096);
    WRONG(BUFFER_OR_IN_PLACE, NULL, MPI_ERR_BUFFER);
    right(WALK_ELEMENTS, 1);
    WRONG(ELEMENTS, -1, MPI_ERR_COUNT);
    WRONG(ELEMENTS, INT_MIN, MPI_ERR_COUNT);
    right(WALK_ELEMENTS_LARGE, 1);
    WRONG(ELEMENTS_LARGE, -1, MPI_ERR_COUNT);
    WRONG(ELEMENTS_LARGE, -(1LL << 31), MPI_ERR_COUNT);
    WRONG(ELEMENTS_LARGE, INT64_MIN, MPI_ERR_COUNT);
    WRONG(ELEMENTS_LARGE, 1LL << 61, MPI_ERR_COUNT, MPI_ERR_ARG); /* constructors of datatypes have the latter */
    WRONG(ELEMENTS_LARGE, INT64_MAX, MPI_ERR_COUNT, MPI_ERR_ARG);
    walk_values[WALK_PACKED_LARGE] = walk_values[WALK_ELEMENTS_LARGE];
    right(WALK_ARRAY_LENGTH, CELLS);
    WRONG(ARRAY_LENGTH, -1, MPI_ERR_COUNT);
    WRONG(ARRAY_LENGTH, INT_MIN, MPI_ERR_COUNT);
    right(WALK_COUNTS, narrow(1, 1));
    WRONG(COUNTS, NULL, MPI_ERR_ARG);
    WRONG(COUNTS, narrow(-1, 1), MPI_ERR_COUNT);
    right(WALK_COUNTS_LARGE, wide(1, 1));
    WRONG(COUNTS_LARGE, NULL, MPI_ERR_ARG);
    WRONG(COUNTS_LARGE, wide(-1, 1), MPI_ERR_COUNT);
    WRONG(COUNTS_LARGE, wide(1LL << 61, 1), MPI_ERR_COUNT);
    WRONG(COUNTS_LARGE, wide(INT64_MAX, 1), MPI_ERR_COUNT);
    walk_values[WALK_COUNTS_SELF] = walk_values[WALK_COUNTS];
    walk_values[WALK_COUNTS_SELF_LARGE] = walk_values[WALK_COUNTS_LARGE];
    if (size > 1) {
        WRONG(COUNTS, narrow(1, -1), MPI_ERR_COUNT);
        WRONG(COUNTS_LARGE, wide(INT64_MAX / 4, INT64_MAX / 4), MPI_ERR_COUNT); /* each fits, the sum does not */
    }
    right(WALK_BLOCKLENGTHS, narrow(1, 1));
    WRONG(BLOCKLENGTHS, NULL, MPI_ERR_ARG);
    WRONG(BLOCKLENGTHS, narrow(1, -1), MPI_ERR_COUNT);
    right(WALK_BLOCKLENGTHS_LARGE, wide(1, 1));
    WRONG(BLOCKLENGTHS_LARGE, NULL, MPI_ERR_ARG);
    WRONG(BLOCKLENGTHS_LARGE, wide(1, -1), MPI_ERR_COUNT);
    WRONG(BLOCKLENGTHS_LARGE, wide(INT64_MAX, 1), MPI_ERR_ARG, MPI_ERR_COUNT);
    right(WALK_DISPLACEMENTS, narrow(0, 2));
    WRONG(DISPLACEMENTS, NULL, MPI_ERR_ARG);
    right(WALK_DISPLACEMENTS_LARGE, wide(0, 2));
    WRONG(DISPLACEMENTS_LARGE, NULL, MPI_ERR_ARG);
}

static void numbers(void)
{
    right(WALK_SIZES, narrow(4, 4));
    WRONG(SIZES, NULL, MPI_ERR_ARG);
    WRONG(SIZES, narrow(0, 4), MPI_ERR_ARG);
    WRONG(SIZES, narrow(4, -4), MPI_ERR_ARG);
    right(WALK_SIZES_LARGE, wide(4, 4));
    WRONG(SIZES_LARGE, NULL, MPI_ERR_ARG);
    WRONG(SIZES_LARGE, wide(0, 4), MPI_ERR_ARG);
    right(WALK_SIZES_TO_FIND, narrow(0, 0));
    WRONG(SIZES_TO_FIND, NULL, MPI_ERR_ARG);
    WRONG(SIZES_TO_FIND, narrow(-1, 0), MPI_ERR_DIMS);
    WRONG(SIZES_TO_FIND, narrow(7, 0), MPI_ERR_DIMS);
    right(WALK_GRID_SIZES, narrow(1, 1));
    WRONG(GRID_SIZES, NULL, MPI_ERR_ARG);
    WRONG(GRID_SIZES, narrow(-1, 1), MPI_ERR_DIMS);
    WRONG(GRID_SIZES, narrow(size + 1, 1), MPI_ERR_DIMS);
    WRONG(GRID_SIZES, narrow(OVER, OVER), MPI_ERR_DIMS);
    right(WALK_COORDINATES, narrow(0, 0));
    WRONG(COORDINATES, NULL, MPI_ERR_ARG);
    WRONG(COORDINATES, narrow(-1, 0), MPI_ERR_ARG);
    WRONG(COORDINATES, narrow(OVER, 0), MPI_ERR_ARG);
    right(WALK_DIMENSIONS, CELLS);
    WRONG(DIMENSIONS, -1, MPI_ERR_DIMS, MPI_ERR_ARG);
    WRONG(DIMENSIONS, INT_MIN, MPI_ERR_DIMS, MPI_ERR_ARG);
    WRONG(DIRECTION, -1, MPI_ERR_ARG);
    WRONG(DIRECTION, 1, MPI_ERR_ARG);
    right(WALK_NODES, 8);
    WRONG(NODES, 0, MPI_ERR_ARG);
    WRONG(NODES, -8, MPI_ERR_ARG);
    right(WALK_ORDER, MPI_ORDER_C);
    WRONG(ORDER, 12345, MPI_ERR_ARG);
    right(WALK_ROOM, 16);
    WRONG(ROOM, 0, MPI_ERR_ARG);
    WRONG(ROOM, -1, MPI_ERR_ARG);
    right(WALK_NO_ROOM, 16);
    WRONG(NO_ROOM, -1, MPI_ERR_ARG);
    right(WALK_POSITION, narrow(0, 0));
    WRONG(POSITION, NULL, MPI_ERR_ARG);
    WRONG(POSITION, narrow(-1, 0), MPI_ERR_ARG);
    WRONG(POSITION, narrow(OVER, 0), MPI_ERR_ARG);
    right(WALK_POSITION_LARGE, wide(0, 0));
    WRONG(POSITION_LARGE, NULL, MPI_ERR_ARG);
    WRONG(POSITION_LARGE, wide(-1, 0), MPI_ERR_ARG);
    WRONG(POSITION_LARGE, wide(INT64_MAX, 0), MPI_ERR_ARG);
    WRONG(COLOR, -1, MPI_ERR_ARG);
    WRONG(SPLIT_TYPE, 12345, MPI_ERR_ARG);
    WRONG(SPLIT_TYPE, -1, MPI_ERR_ARG);
}

static void ranks_and_tags(void)
{
    static const enum walk_kind ranks[] = {WALK_DEST, WALK_SOURCE, WALK_ROOT, WALK_ROOT_SELF, WALK_RANK};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        int error_class = ranks[i] == WALK_ROOT || ranks[i] == WALK_ROOT_SELF ? MPI_ERR_ROOT : MPI_ERR_RANK;
        wrong_add(ranks[i], "one more than there are", size, (const int[3]){error_class});
        wrong_add(ranks[i], "INT_MAX", INT_MAX, (const int[3]){error_class});
        wrong_add(ranks[i], "INT_MIN", INT_MIN, (const int[3]){error_class});
        wrong_add(ranks[i], "MPI_ROOT", MPI_ROOT, (const int[3]){error_class});
        wrong_add(ranks[i], "MPI_ANY_TAG", MPI_ANY_TAG, (const int[3]){error_class});
        if (ranks[i] != WALK_SOURCE) {
            wrong_add(ranks[i], "MPI_ANY_SOURCE", MPI_ANY_SOURCE, (const int[3]){error_class});
        }
        if (ranks[i] != WALK_SOURCE && ranks[i] != WALK_DEST) {
            wrong_add(ranks[i], "MPI_PROC_NULL", MPI_PROC_NULL, (const int[3]){error_class});
        }
    }
    WRONG(TAG, -1, MPI_ERR_TAG);
    WRONG(TAG, MPI_ANY_TAG, MPI_ERR_TAG);
    WRONG(TAG, INT_MIN, MPI_ERR_TAG);
    WRONG(TAG, INT_MAX, MPI_ERR_TAG);
    WRONG(TAG_OR_ANY, -1, MPI_ERR_TAG);
    WRONG(TAG_OR_ANY, INT_MIN, MPI_ERR_TAG);
    WRONG(TAG_OR_ANY, INT_MAX, MPI_ERR_TAG);
    right(WALK_GROUP_COUNT, 1);
    WRONG(GROUP_COUNT, -1, MPI_ERR_ARG);
    WRONG(GROUP_COUNT, INT_MIN, MPI_ERR_ARG);
    right(WALK_RANKS, narrow(0, 0));
    WRONG(RANKS, NULL, MPI_ERR_ARG);
    WRONG(RANKS, narrow(-1, 0), MPI_ERR_RANK);
    WRONG(RANKS, narrow(size, 0), MPI_ERR_RANK);
    walk_values[WALK_DIFFERENT_RANKS] = walk_values[WALK_RANKS];
    right(WALK_RANGES, narrow(0, 0));
    fresh.narrow[narrow_count - 1][2] = 1;
    WRONG(RANGES, NULL, MPI_ERR_ARG);
    WRONG(RANGES, narrow(0, 0), MPI_ERR_ARG); /* a stride of 0 */
    WRONG(RANGES, narrow(0, size), MPI_ERR_RANK);
    fresh.narrow[narrow_count - 1][2] = 1;
}

static void handles_of_mpix(void)
{
    right(WALK_PHASES, (walk_value)walk_objects.phases);
    foreign_add(WALK_PHASES, 0, walk_objects.phases, MPI_ERR_ARG);
    WRONG(PHASES, walk_objects.phases_stale, MPI_ERR_ARG);
    WRONG(PHASES_TO_FREE, NULL, MPI_ERR_ARG);
    WRONG(PHASES_TO_FREE, cell((walk_value)walk_objects.phases_stale), MPI_ERR_ARG);
    WRONG(PHASES_TO_FREE, cell((walk_value)walk_objects.grid), MPI_ERR_ARG);
    right(WALK_SCATTER_GROUP, (walk_value)walk_objects.scatter_group);
    foreign_add(WALK_SCATTER_GROUP, 0, walk_objects.scatter_group, MPI_ERR_ARG);
    WRONG(SCATTER_GROUP, walk_objects.scatter_group_stale, MPI_ERR_ARG);
    WRONG(SCATTER_GROUP_TO_FREE, NULL, MPI_ERR_ARG);
    WRONG(SCATTER_GROUP_TO_FREE, cell((walk_value)walk_objects.scatter_group_stale), MPI_ERR_ARG);
    WRONG(SCATTER_GROUP_TO_FREE, cell((walk_value)walk_objects.phases), MPI_ERR_ARG);
}

void walk_values_make(void)
{
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    walk_objects_make();
    handles_of_comms_and_groups();
    handles_of_types();
    handles_of_ops_and_infos();
    keys_and_errors();
    requests_and_messages();
    buffers_and_counts();
    numbers();
    ranks_and_tags();
    handles_of_mpix();
}
