/* forms: a collective call as blocking, non-blocking or persistent. */
#pragma once

#include "tests/mpi/expect.h"

enum { FORMS = 3 }; /* 0: blocking, 1: non-blocking, 2: persistent, started twice */

static inline void finish(int form, MPI_Request *request)
{
    if (form == 1) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
    } else if (form == 2) {
        for (int run = 0; run < 2; run++) {
            MPI_Start(request);
            MPI_Wait(request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(request);
    }
}

/* The call in a form, by its names without MPI_ as a blocking and as a non-blocking one: its code. */
#define CALL(form, blocking, non_blocking, request, ...)      \
    ((form) == 0   ? MPI_##blocking(__VA_ARGS__)              \
     : (form) == 1 ? MPI_##non_blocking(__VA_ARGS__, request) \
                   : MPI_##blocking##_init(__VA_ARGS__, MPI_INFO_NULL, request))

/* Runs it to its end. */
#define RUN(form, blocking, non_blocking, ...)                                                \
    do {                                                                                      \
        MPI_Request request = MPI_REQUEST_NULL;                                               \
        EXPECT_EQUAL(CALL(form, blocking, non_blocking, &request, __VA_ARGS__), MPI_SUCCESS); \
        finish(form, &request);                                                               \
    } while (0)
