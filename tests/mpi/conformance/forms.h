/* forms: a collective call as blocking, non-blocking or persistent. */
#pragma once

#include "tests/mpi/expect.h"

enum { FORMS = 3 }; /* 0: blocking, 1: non-blocking, 2: persistent, started twice */

static void finish(int form, MPI_Request *request)
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

/* Runs the call in the form that is asked for. */
#define RUN(form, blocking, non_blocking, persistent) \
    do {                                              \
        MPI_Request request = MPI_REQUEST_NULL;       \
        if ((form) == 0) {                            \
            EXPECT_EQUAL(blocking, MPI_SUCCESS);      \
        } else if ((form) == 1) {                     \
            EXPECT_EQUAL(non_blocking, MPI_SUCCESS);  \
        } else {                                      \
            EXPECT_EQUAL(persistent, MPI_SUCCESS);    \
        }                                             \
        finish(form, &request);                       \
    } while (0)
