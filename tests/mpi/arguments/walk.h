/* walk: every MPI routine is called with every wrong argument, one at a time.
 *
 * A routine takes its arguments as numbers. A parameter has a kind: a right value, and wrong ones with the error
 * classes that may answer them (values.c). The table of routines is generated (generate.py), walk.c goes through it,
 * census.c counts references and live handles before and after each call. */
#pragma once

#include <stdint.h>

#include "argument_kinds.h" /* enum walk_kind, generated: what parameters take; ANY: no value is wrong */

typedef intptr_t walk_value;

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
void walk_census_count(void);
int walk_census_compare(int calls);
