#include "mpi/fortran/entry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As Fortran aligns its common blocks, with which these become one. */
#define COMMON __attribute__((aligned(32)))

COMMON MPI_Fint mpi_f_bottom_, mpi_f_in_place_, mpi_f_buffer_automatic_;
COMMON MPI_Fint mpi_f_errcodes_ignore_[1], mpi_f_unweighted_[1], mpi_f_weights_empty_[1];
COMMON char mpi_f_argv_null_[1], mpi_f_argvs_null_[1];

void *fortran_buffer(const void *buffer)
{
    if (buffer == &mpi_f_bottom_) {
        return MPI_BOTTOM;
    }
    if (buffer == &mpi_f_in_place_) {
        return MPI_IN_PLACE;
    }
    if (buffer == &mpi_f_buffer_automatic_) {
        return MPI_BUFFER_AUTOMATIC;
    }
    return (void *)(uintptr_t)buffer;
}

MPI_Status *fortran_status(const MPI_Fint *status)
{
    bool is_ignored = status == mpi_f_status_ignore_ || status == mpi_f_statuses_ignore_;
    return is_ignored ? MPI_STATUS_IGNORE : (MPI_Status *)(uintptr_t)status;
}

int *fortran_weights(const MPI_Fint *weights)
{
    if (weights == mpi_f_unweighted_) {
        return MPI_UNWEIGHTED;
    }
    return weights == mpi_f_weights_empty_ ? MPI_WEIGHTS_EMPTY : (int *)(uintptr_t)weights;
}

void **fortran_handles(const MPI_Fint *from, int count, void *few[FORTRAN_FEW])
{
    void **handles = count <= FORTRAN_FEW ? few : malloc((size_t)count * sizeof(void *));
    if (handles == NULL) {
        fprintf(stderr, "causeway: no memory for an array of %d handles\n", count);
        abort();
    }
    for (int i = 0; i < count; i++) {
        handles[i] = (void *)(intptr_t)from[i];
    }
    return handles;
}

void fortran_handles_back(MPI_Fint *from, int count, void **handles, void *few[FORTRAN_FEW])
{
    for (int i = 0; i < count; i++) {
        from[i] = FORTRAN_NUMBER(handles[i]);
    }
    fortran_handles_drop(handles, few);
}

void fortran_handles_drop(void **handles, void *few[FORTRAN_FEW])
{
    if (handles != few) {
        free(handles);
    }
}

static int peers_of_all(MPI_Comm comm)
{
    int is_inter = 0;
    int size = 0;
    if (PMPI_Comm_test_inter(comm, &is_inter) == MPI_SUCCESS) {
        (void)(is_inter ? PMPI_Comm_remote_size(comm, &size) : PMPI_Comm_size(comm, &size));
    }
    return size;
}

static int peers_of_neighbors(MPI_Comm comm, bool sends)
{
    int kind = MPI_UNDEFINED;
    int rank = 0;
    int in = 0;
    int out = 0;
    int is_weighted;
    if (PMPI_Topo_test(comm, &kind) != MPI_SUCCESS) {
        return 0;
    }
    if (kind == MPI_CART && PMPI_Cartdim_get(comm, &in) == MPI_SUCCESS) {
        out = in = 2 * in;
    } else if (kind == MPI_GRAPH && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS) {
        (void)PMPI_Graph_neighbors_count(comm, rank, &in);
        out = in;
    } else if (kind == MPI_DIST_GRAPH) {
        (void)PMPI_Dist_graph_neighbors_count(comm, &in, &out, &is_weighted);
    }
    return sends ? out : in;
}

int fortran_peers(MPI_Comm comm, bool neighbors, bool sends, const void *sendbuf)
{
    if (sends && sendbuf == &mpi_f_in_place_) {
        return 0; /* send types have no meaning then, and may not be there */
    }
    return neighbors ? peers_of_neighbors(comm, sends) : peers_of_all(comm);
}

MPI_Fint fortran_index(int index)
{
    return index == MPI_UNDEFINED ? MPI_UNDEFINED : index + 1;
}

void fortran_indices(MPI_Fint indices[], int count)
{
    for (int i = 0; count != MPI_UNDEFINED && i < count; i++) {
        indices[i]++;
    }
}

char *fortran_text(const char *text, size_t length, bool both)
{
    size_t start = 0;
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    while (both && start < length && text[start] == ' ') {
        start++;
    }
    char *copy = malloc(length - start + 1);
    if (copy != NULL) {
        memcpy(copy, text + start, length - start);
        copy[length - start] = '\0';
    }
    return copy;
}

void fortran_pad(char *to, size_t length, const char *from)
{
    if (from != NULL) {
        size_t used = strnlen(from, length);
        memcpy(to, from, used);
        memset(to + used, ' ', length - used);
    }
}

struct promise {
    MPI_Comm comm; /* first: C writes to it */
    MPI_Fint *target;
    struct promise *next;
};

static pthread_mutex_t promises_lock = PTHREAD_MUTEX_INITIALIZER;
static struct promise *promises;
static _Atomic int promise_count; /* so that no lock is taken without need */

MPI_Comm *fortran_promise(MPI_Fint *newcomm)
{
    struct promise *promise = malloc(sizeof(*promise));
    if (promise == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&promises_lock);
    *promise = (struct promise){.comm = MPI_COMM_NULL, .target = newcomm, .next = promises};
    promises = promise;
    atomic_fetch_add(&promise_count, 1);
    pthread_mutex_unlock(&promises_lock);
    return &promise->comm;
}

/* Takes out what is kept, or `given`; kept promises reach the program. */
static void promises_end(const MPI_Comm *given)
{
    pthread_mutex_lock(&promises_lock);
    for (struct promise **link = &promises; *link != NULL;) {
        struct promise *promise = *link;
        bool is_kept = given == NULL && __atomic_load_n(&promise->comm, __ATOMIC_ACQUIRE) != MPI_COMM_NULL;
        if (is_kept) {
            *promise->target = FORTRAN_NUMBER(promise->comm);
        }
        if (is_kept || given == &promise->comm) {
            *link = promise->next;
            atomic_fetch_sub(&promise_count, 1);
            free(promise);
        } else {
            link = &promise->next;
        }
    }
    pthread_mutex_unlock(&promises_lock);
}

void fortran_clear(MPI_Comm *promised)
{
    promises_end(promised);
}

void fortran_finish(void)
{
    if (atomic_load_explicit(&promise_count, memory_order_relaxed) > 0) {
        promises_end(NULL);
    }
}
