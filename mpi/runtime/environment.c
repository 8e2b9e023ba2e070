/* Queries of the library and the machine (MPI 5.0, 9.1, 9.2, 9.6, 20). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "control/settings/setting.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/virtual.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/info.h"
#include "mpi_functions.h"

double mpi_wtime(void)
{
    struct timespec now;
    if (cw_virtual_is_on()) {
        if (cw_virtual_is_here()) {
            cw_virtual_spend(cw_virtual_page->poll_ns);
        }
        return 1e-9 * (double)cw_clock_ns();
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double mpi_wtick(void)
{
    struct timespec resolution;
    clock_getres(CLOCK_MONOTONIC, &resolution);
    return (double)resolution.tv_sec + 1e-9 * (double)resolution.tv_nsec;
}

int mpi_get_version(int *version, int *subversion)
{
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

int mpi_get_library_version(char *version, int *resultlen)
{
    *resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Causeway %s, MPI %d.%d, ABI %d.%d", CW_VERSION,
                          MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    return MPI_SUCCESS;
}

int mpi_get_processor_name(char *name, int *resultlen)
{
    const char *emulated = cw_setting(CW_SETTING_HOST);
    char host[MPI_MAX_PROCESSOR_NAME];
    if (gethostname(host, sizeof(host)) != 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_OTHER, "the host has no name");
    }
    host[sizeof(host) - 1] = '\0';
    snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", emulated != NULL ? emulated : host);
    *resultlen = (int)strlen(name);
    return MPI_SUCCESS;
}

int mpi_pcontrol(const int level)
{
    (void)level; /* for profilers, which put their own function in its place */
    return MPI_SUCCESS;
}

int mpi_alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    if (size < 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "%lld bytes", (long long)size);
    }
    if (info != MPI_INFO_NULL && mpi_info_find(info) == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_INFO, "unknown info object");
    }
    void *memory;
    if (posix_memalign(&memory, 64, size == 0 ? 1 : (size_t)size) != 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for %lld bytes", (long long)size);
    }
    *(void **)baseptr = memory;
    return MPI_SUCCESS;
}

int mpi_free_mem(void *base)
{
    free(base);
    return MPI_SUCCESS;
}

int mpi_abi_get_version(int *abi_major, int *abi_minor)
{
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return MPI_SUCCESS;
}
