/* Expectations of a program that runs as many ranks: each rank prints its failures, and the job's exit code shows
 * them. */
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static _Atomic int expect_failures; /* threads may add to it */

/* Of MPI_COMM_WORLD, with the neighbours in a ring of all ranks; set by expect_ranks. */
static int expect_rank, expect_size, expect_left, expect_right;

#define EXPECT(condition) expect((condition) != 0, #condition, __FILE__, __LINE__)
#define EXPECT_EQUAL(found, wanted) \
    expect_equal((long long)(found), (long long)(wanted), #found " == " #wanted, __FILE__, __LINE__)
/* The class of an error code. */
#define EXPECT_CLASS(code, wanted) expect_class((code), (wanted), #code " is " #wanted, __FILE__, __LINE__)

static inline void expect_failed(const char *text, const char *file, int line)
{
    if (expect_failures++ < 10) {
        fprintf(stderr, "rank %d of %d: %s:%d: expected %s", expect_rank, expect_size, file, line, text);
    }
}

static inline void expect(int holds, const char *text, const char *file, int line)
{
    if (!holds) {
        expect_failed(text, file, line);
        fprintf(stderr, "\n");
    }
}

static inline void expect_equal(long long found, long long wanted, const char *text, const char *file, int line)
{
    if (found != wanted) {
        expect_failed(text, file, line);
        fprintf(stderr, ": %lld, not %lld\n", found, wanted);
    }
}

static inline void expect_class(int code, int wanted, const char *text, const char *file, int line)
{
    int found = -1;
    MPI_Error_class(code, &found);
    expect_equal(found, wanted, text, file, line);
}

/* The results of these calls, for an expectation. */
static inline int expect_count(const MPI_Status *status, MPI_Datatype type)
{
    int count = -9;
    MPI_Get_count(status, type, &count);
    return count;
}

static inline int expect_elements(const MPI_Status *status, MPI_Datatype type)
{
    int count = -9;
    MPI_Get_elements(status, type, &count);
    return count;
}

static inline int expect_cancelled(const MPI_Status *status)
{
    int flag = -9;
    MPI_Test_cancelled(status, &flag);
    return flag;
}

/* A status tells of a message from `source`, with `tag`, of `count` elements. */
#define EXPECT_RECEIVED(status, source, tag, type, count)                              \
    (EXPECT_EQUAL((status)->MPI_SOURCE, source), EXPECT_EQUAL((status)->MPI_TAG, tag), \
     EXPECT_EQUAL(expect_count(status, type), count))

static inline void expect_ranks(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &expect_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &expect_size);
    expect_left = (expect_rank + expect_size - 1) % expect_size;
    expect_right = (expect_rank + 1) % expect_size;
}

/* MPI_Init, errors returned. */
static inline void expect_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    expect_ranks();
}

/* MPI_Finalize; the exit code. */
static inline int expect_end(void)
{
    MPI_Finalize();
    return expect_failures == 0 ? 0 : 1;
}
