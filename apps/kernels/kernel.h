/* Kernels: programs with the communication of real applications: integer sort (is) and 3-D Fourier transform (ft),
 * whose problems are those of the NAS parallel benchmarks (Bailey et al., RNR-94-007), the page exchange of a software
 * DSM (dsm), the sum of a long vector (allreduce), streams between pairs of ranks (pairs), and communication beside
 * computing (overlap). Kernels with messages of simulation fields represent the programs with
 * which Ke, Burtscher and Speight measured compressed messages (Runtime Compression of MPI Messages, 2004): alternating
 * directions (adi: BT, SP), symmetric over-relaxation (ssor: LU), particle transport (sweep: Sweep3D), gas dynamics
 * (ppm: sPPM), an unstructured system (krylov: AZTEC). This header has the shared parts: arguments, random numbers,
 * division among ranks, timing, the verdict.
 *
 * Invariants
 *  - Every rank makes the same calls. A program's exit code is 0 only if all ranks found everything right.
 *  - Only the standard MPI is used, so that the kernels compile with any.
 *
 * Order of calls
 *    kernel_start, kernel_timer_start, any number of kernel_communication_begin, calls of MPI and
 *    kernel_communication_end, kernel_timer_stop, kernel_require for each check, kernel_finish: main returns its value.
 *  A program without problem classes: kernel_open and kernel_numbers instead of kernel_start, kernel_is_verified and
 *  kernel_close instead of kernel_finish. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

enum {
    KERNEL_CLASSES = 3,
    KERNEL_RANKS_MAX = 64,
    KERNEL_RANDOM_SEED = 314159265,
};

enum kernel_exit {
    KERNEL_EXIT_SUCCESS = 0,
    KERNEL_EXIT_FAILURE = 1, /* it ran, and the result is wrong */
    KERNEL_EXIT_USAGE = 2,
    KERNEL_EXIT_MACHINE = 3, /* out of memory */
};

/* A program's description of itself; texts are kept, not copied. */
struct kernel_about {
    const char *name;
    const char *purpose;
    const char *classes[KERNEL_CLASSES]; /* the sizes of S, W and A, for --help */
    const char *work;                    /* the unit of the count, in millions: "Mkeys" */
};

struct kernel {
    const struct kernel_about *about;
    int class_index; /* 0, 1, 2: S, W, A */
    int rank;
    int ranks;
    double seconds;
    double communication_seconds; /* the part of them in MPI calls */
    double call_began;
    bool timing;
    bool verified;
};

/* MPI_Init, rank and size. */
void kernel_open(struct kernel *kernel, const struct kernel_about *about, int *argc, char ***argv);

/* kernel_open and the arguments. False: the program is done (--help, or one line about the error went to stderr), MPI
 * is finalised, and main returns *exit_code. */
bool kernel_start(struct kernel *kernel, const struct kernel_about *about, int argc, char **argv, int *exit_code);

/* An option of a program without classes: --NAME NUMBER. */
struct kernel_number {
    const char *name; /* "--bytes" */
    long *value;      /* holds the default */
    long least;
    long most;
    long multiple; /* of this; 1: any */
};

/* Reads the options into `numbers`, `count` of them; also refuses more ranks than KERNEL_RANKS_MAX. False: the program
 * is done as with kernel_start; `help` is the output of --help, `usage` a line. */
bool kernel_numbers(struct kernel *kernel, const struct kernel_number *numbers, int count, int argc, char **argv,
                    const char *usage, const char *help, int *exit_code);

/* All ranks begin together. */
void kernel_timer_start(struct kernel *kernel);
void kernel_timer_stop(struct kernel *kernel);

/* Around calls of MPI; counts only between start and stop of the timer. */
void kernel_communication_begin(struct kernel *kernel);
void kernel_communication_end(struct kernel *kernel);

/* Records a check; a failed one is reported on stderr: `format` and printf's arguments. Any rank, not collective. */
void kernel_require(struct kernel *kernel, bool right, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Collective: prints the program's line with `work` units done, finalises MPI and returns the exit code. */
int kernel_finish(struct kernel *kernel, double work);

/* Collective: whether all ranks have found everything right so far. */
bool kernel_is_verified(const struct kernel *kernel);

/* Collective: MPI_Finalize, when all have written their output. */
void kernel_close(void);

/* Zeroed memory, freed by free; without any the job ends with KERNEL_EXIT_MACHINE. */
void *kernel_allocate(size_t count, size_t bytes);

/* The first of `total` items that rank `rank` of `ranks` has; the next rank's first is its end. */
int64_t kernel_share_begin(int64_t total, int ranks, int rank);

/* Sums of the counts before each: where parts begin that lie back to back. Returns the sum of all. */
int kernel_offsets(int *offsets, const int *counts, int ranks);

/* The larger of two errors, which are not negative; one that is not a number counts as infinite. */
double kernel_most(double most, double error);

/* The generator x <- 5^13 x mod 2^46; returns x / 2^46, above 0 and below 1. */
double kernel_random(uint64_t *state);

/* The state `count` numbers later. */
uint64_t kernel_random_skip(uint64_t state, uint64_t count);
