/* Expectations of a program that runs as many ranks: each rank prints its failures, and the job's exit code shows
 * them. */
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static _Atomic int expect_failures; /* threads may add to it */

/* Of MPI_COMM_WORLD; set by expect_start. */
static int expect_rank, expect_size;

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

/* MPI_Init, errors returned. */
static inline void expect_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &expect_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &expect_size);
}

/* MPI_Finalize; the exit code. */
static inline int expect_end(void)
{
    MPI_Finalize();
    return expect_failures == 0 ? 0 : 1;
}
