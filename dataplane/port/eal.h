/* EAL: DPDK's process-wide environment, started once, when the first ethdev port is opened.
 *
 * EAL is global to the process and can be started only once. Its library (dpdk.h) and this are the places below mpi/
 * with mutable globals. They hold only EAL's own state: that it runs, with which settings, and the last lines it
 * logged.
 *
 * Invariants
 *  - cw_eal_start leaves the caller's CPU affinity as it was and prints nothing.
 *  - By default no root, no huge pages, no PCI devices and no files are needed.
 *
 * Order of calls
 *    cw_eal_start, then anything of DPDK; a further cw_eal_start that asks for the same is free.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_EAL_CORE_CALLER = -1,
    CW_EAL_ARGUMENTS_MAX = 48,
    CW_EAL_MEMORY_DEFAULT_MB = 512, /* address space; only what is used becomes resident */
};

struct cw_eal_config {
    int32_t core; /* CPU of the lcore that EAL insists on; CW_EAL_CORE_CALLER: the one the caller runs on */
    uint32_t
        memory_mb; /* all pools of all ports of this process; 0: CW_EAL_MEMORY_DEFAULT_MB, with huge pages: as needed */
    bool huge_pages;      /* false: 4 KiB pages, without root */
    bool physical;        /* devices read physical addresses (uio, vfio without an IOMMU): with huge pages, as root */
    bool telemetry;       /* DPDK's socket for dpdk-telemetry is served, below /run/dpdk or XDG_RUNTIME_DIR */
    const char *pci_only; /* NULL: no PCI devices; else the address of the one that EAL may take at its start */
    const char *const
        *arguments; /* the user's own EAL arguments, passed on verbatim; they replace ours where they clash */
    size_t argument_count;
};

/* Starts EAL, or finds it started. CW_OK; CW_ERROR_BUSY (runs already, with other settings); CW_ERROR_ARGUMENT (EAL
 * refuses an argument); CW_ERROR_NOT_FOUND (no free huge pages); CW_ERROR_PERMISSION; CW_ERROR_MEMORY; CW_ERROR_SYSTEM.
 * `error` gets one line. The texts in `config` are copied. Any thread. */
int cw_eal_start(const struct cw_eal_config *config, char *error, size_t error_bytes);

/* Forgets the lines logged so far. Any thread; two that open ports at the same time may read each other's lines. */
void cw_eal_log_clear(void);

/* The first line logged since cw_eal_log_clear: drivers log the cause first, and the callers' failures afterwards.
 * Without line end and function name; "" if there was none. Any thread. */
void cw_eal_log_first(char *text, size_t text_bytes);

/* Gives the calling thread an lcore number, so that it has its own cache of free packet buffers; without effect when
 * all are taken (slower, but correct). Undone when the thread ends. */
void cw_eal_thread_register(void);
