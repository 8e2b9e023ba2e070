/* walk: every MPI routine is called with every wrong argument, one at a time.
 *
 * A routine takes its arguments as numbers. A parameter has a kind: a right value, and wrong ones with the error
 * classes that may answer them (values.c). The table of routines is generated (generate.py), walk.c goes through it,
 * census.c counts references and live handles before and after each call. */
#pragma once

#include <stdint.h>

typedef intptr_t walk_value;

/* What parameters take; ANY: no value is wrong. */
enum walk_kind {
    WALK_ANY,
    WALK_OUT,
    WALK_ARRAY,
    WALK_COMM,
    WALK_COMM_OR_NULL,
    WALK_COMM_SELF,
    WALK_COMM_TO_FREE,
    WALK_GRID,
    WALK_GROUP,
    WALK_GROUP_TO_FREE,
    WALK_TYPE,
    WALK_TYPE_ANY,
    WALK_TYPE_OR_NULL,
    WALK_TYPE_TO_COMMIT,
    WALK_TYPE_TO_FREE,
    WALK_TYPES,
    WALK_TYPES_ANY,
    WALK_TYPE_CLASS,
    WALK_PRECISION,
    WALK_OP,
    WALK_OP_ANY,
    WALK_OP_TO_FREE,
    WALK_INFO,
    WALK_INFO_TO_CHANGE,
    WALK_INFO_TO_FREE,
    WALK_HINTS,
    WALK_KEY,
    WALK_VALUE,
    WALK_NTH_KEY,
    WALK_LENGTH,
    WALK_LENGTH_CELL,
    WALK_ERRHANDLER,
    WALK_ERRHANDLER_TO_FREE,
    WALK_ERROR_CODE,
    WALK_ADDED_CODE,
    WALK_FUNCTION,
    WALK_COMM_KEY,
    WALK_COMM_KEY_TO_SET,
    WALK_COMM_KEY_TO_FREE,
    WALK_TYPE_KEY,
    WALK_TYPE_KEY_TO_FREE,
    WALK_REQUEST,
    WALK_REQUEST_GENERAL,
    WALK_REQUEST_TO_WAIT,
    WALK_REQUEST_TO_USE,
    WALK_REQUESTS,
    WALK_REQUESTS_TO_START,
    WALK_LIST_LENGTH,
    WALK_MESSAGE,
    WALK_BUFFER,
    WALK_BUFFER_OR_IN_PLACE,
    WALK_ELEMENTS,
    WALK_ELEMENTS_LARGE,
    WALK_PACKED_LARGE,
    WALK_ARRAY_LENGTH,
    WALK_COUNTS,
    WALK_COUNTS_LARGE,
    WALK_COUNTS_SELF,
    WALK_COUNTS_SELF_LARGE,
    WALK_BLOCKLENGTHS,
    WALK_BLOCKLENGTHS_LARGE,
    WALK_DISPLACEMENTS,
    WALK_DISPLACEMENTS_LARGE,
    WALK_SIZES,
    WALK_SIZES_LARGE,
    WALK_SIZES_TO_FIND,
    WALK_GRID_SIZES,
    WALK_COORDINATES,
    WALK_DIMENSIONS,
    WALK_DIRECTION,
    WALK_NODES,
    WALK_ORDER,
    WALK_ROOM,
    WALK_NO_ROOM,
    WALK_POSITION,
    WALK_POSITION_LARGE,
    WALK_DEST,
    WALK_SOURCE,
    WALK_ROOT,
    WALK_ROOT_SELF,
    WALK_RANK,
    WALK_RANKS,
    WALK_DIFFERENT_RANKS,
    WALK_RANGES,
    WALK_GROUP_COUNT,
    WALK_TAG,
    WALK_TAG_OR_ANY,
    WALK_COLOR,
    WALK_SPLIT_TYPE,
    WALK_PHASES,
    WALK_PHASES_TO_FREE,
    WALK_SCATTER_GROUP,
    WALK_SCATTER_GROUP_TO_FREE,
    WALK_FILE_NAME,
    WALK_KIND_COUNT,
};

enum {
    WALK_PARAMETERS_MAX = 16,
    WALK_WRONG_MAX = 16,
};

/* The ranks at which an argument says something. */
enum walk_where {
    WALK_EVERYWHERE,
    WALK_AT_ROOT,
    WALK_BEHIND_FIRST, /* not at rank 0 */
};

struct walk_parameter {
    const char *name;
    enum walk_kind kind;
    enum walk_where where;
};

struct walk_routine {
    const char *name;
    int (*call)(const walk_value *values);
    int count;
    struct walk_parameter parameters[WALK_PARAMETERS_MAX];
};

extern const struct walk_routine walk_routines[];
extern const int walk_routine_count;

struct walk_wrong {
    const char *name;
    walk_value value;
    int classes[3]; /* that may be returned; 0: no more */
};

struct walk_values {
    walk_value right;
    int count;
    struct walk_wrong wrong[WALK_WRONG_MAX];
};

/* By kind. Made once after MPI_Init, with objects that live until walk_objects_free. */
extern struct walk_values walk_values[WALK_KIND_COUNT];
void walk_values_make(void);
/* Before each call: gives memory that calls may write to its right contents. */
void walk_values_refresh(void);

/* Counts references and live handles of all kinds; compares them with the last count: 0 if they are the same, else what
 * differs is printed. `calls`: the number of collective calls of MPI_COMM_WORLD must be the same, too. */
void walk_census_take(void);
int walk_census_compare(int calls);
