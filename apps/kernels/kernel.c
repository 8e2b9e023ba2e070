#include "apps/kernels/kernel.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char class_letters[] = "SWA";

static const uint64_t random_factor = 1220703125; /* 5^13 */
static const uint64_t random_mask = ((uint64_t)1 << 46) - 1;

/* ---- arguments ---- */

static void help_print(const struct kernel_about *about)
{
    printf("usage: %s CLASS\n\n%s\n\n", about->name, about->purpose);
    for (int i = 0; i < KERNEL_CLASSES; i++)
        printf("  %c  %s\n", class_letters[i], about->classes[i]);
    printf("\nStarted by an MPI launcher with 1 to %d ranks: causeway run -n 4 %s S\n"
           "Prints one line; communication is the time inside MPI calls, of the rank that spent most.\n"
           "Exit codes: 0 verified, 1 wrong result, 2 wrong usage, 3 out of memory.\n",
           KERNEL_RANKS_MAX, about->name);
}

/* The class's index, or -1. */
static int class_find(const char *text)
{
    const char *letter = strlen(text) == 1 ? strchr(class_letters, text[0]) : NULL;
    return letter ? (int)(letter - class_letters) : -1;
}

/* Fills `problem` with the error in the call. */
static bool usage_check(struct kernel *kernel, int argc, char **argv, char *problem, size_t problem_bytes)
{
    if (argc < 2)
        snprintf(problem, problem_bytes, "no problem class");
    else if (argc > 2)
        snprintf(problem, problem_bytes, "more than one argument: %s", argv[2]);
    else if ((kernel->class_index = class_find(argv[1])) < 0)
        snprintf(problem, problem_bytes, "no such problem class: %s", argv[1]);
    else if (kernel->ranks > KERNEL_RANKS_MAX)
        snprintf(problem, problem_bytes, "too many ranks: %d (start at most %d)", kernel->ranks, KERNEL_RANKS_MAX);
    else
        return true;
    return false;
}

/* A launcher ends the other ranks when one ends in failure: not before all output is written. */
void kernel_close(void)
{
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

void kernel_open(struct kernel *kernel, const struct kernel_about *about, int *argc, char ***argv)
{
    *kernel = (struct kernel){.about = about, .verified = true};
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &kernel->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &kernel->ranks);
}

bool kernel_start(struct kernel *kernel, const struct kernel_about *about, int argc, char **argv, int *exit_code)
{
    kernel_open(kernel, about, &argc, &argv);
    bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
    char problem[256] = "";
    if (!help && usage_check(kernel, argc, argv, problem, sizeof(problem)))
        return true;
    if (kernel->rank == 0 && help)
        help_print(about);
    else if (kernel->rank == 0)
        fprintf(stderr, "%s: %s (usage: %s S, W or A; %s --help lists all)\n", about->name, problem, about->name,
                about->name);
    kernel_close();
    *exit_code = help ? KERNEL_EXIT_SUCCESS : KERNEL_EXIT_USAGE;
    return false;
}

/* ---- time ---- */

/* A number that is all of `text`. */
static bool number_read(const struct kernel_number *number, const char *text)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    bool right = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && value >= number->least &&
                 value <= number->most && value % number->multiple == 0;
    *number->value = right ? value : *number->value;
    return right;
}

static bool numbers_read(const struct kernel *kernel, const struct kernel_number *numbers, int count, int argc,
                         char **argv, char *problem, size_t problem_bytes)
{
    for (int i = 1; i < argc; i += 2) {
        int at = 0;
        while (at < count && strcmp(numbers[at].name, argv[i]) != 0)
            at++;
        if (at == count) {
            snprintf(problem, problem_bytes, "no such option: %s", argv[i]);
            return false;
        }
        if (i + 1 == argc || !number_read(&numbers[at], argv[i + 1])) {
            char multiple[64] = "";
            if (numbers[at].multiple > 1)
                snprintf(multiple, sizeof(multiple), ", a multiple of %ld", numbers[at].multiple);
            snprintf(problem, problem_bytes, "%s wants a number from %ld to %ld%s: %s", argv[i], numbers[at].least,
                     numbers[at].most, multiple, i + 1 < argc ? argv[i + 1] : "nothing is there");
            return false;
        }
    }
    if (kernel->ranks > KERNEL_RANKS_MAX) {
        snprintf(problem, problem_bytes, "too many ranks: %d (start at most %d)", kernel->ranks, KERNEL_RANKS_MAX);
        return false;
    }
    return true;
}

bool kernel_numbers(struct kernel *kernel, const struct kernel_number *numbers, int count, int argc, char **argv,
                    const char *usage, const char *help, int *exit_code)
{
    char problem[256];
    bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
    if (!is_help && numbers_read(kernel, numbers, count, argc, argv, problem, sizeof(problem)))
        return true;
    if (kernel->rank == 0 && is_help)
        printf("usage: %s\n\n%s", usage, help);
    else if (kernel->rank == 0)
        fprintf(stderr, "%s: %s (usage: %s; %s --help lists all)\n", kernel->about->name, problem, usage,
                kernel->about->name);
    kernel_close();
    *exit_code = is_help ? KERNEL_EXIT_SUCCESS : KERNEL_EXIT_USAGE;
    return false;
}

void kernel_timer_start(struct kernel *kernel)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1); /* profilers and recorders start here */
    kernel->timing = true;
    kernel->seconds = -MPI_Wtime();
}

void kernel_timer_stop(struct kernel *kernel)
{
    kernel->seconds += MPI_Wtime();
    kernel->timing = false;
    MPI_Pcontrol(0);
}

void kernel_communication_begin(struct kernel *kernel)
{
    kernel->call_began = MPI_Wtime();
}

void kernel_communication_end(struct kernel *kernel)
{
    if (kernel->timing)
        kernel->communication_seconds += MPI_Wtime() - kernel->call_began;
}

/* ---- verdict ---- */

void kernel_require(struct kernel *kernel, bool right, const char *format, ...)
{
    if (right)
        return;
    kernel->verified = false;
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: rank %d: %s\n", kernel->about->name, kernel->rank, what);
}

bool kernel_is_verified(const struct kernel *kernel)
{
    int right = kernel->verified;
    int all_right = 0;
    MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all_right;
}

int kernel_finish(struct kernel *kernel, double work)
{
    double mine[2] = {kernel->seconds, kernel->communication_seconds};
    double most[2] = {0};
    MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    bool all_right = kernel_is_verified(kernel);
    if (kernel->rank == 0)
        printf("%s %c: %d ranks, %.4f s, %.4f s of it communication, %.2f %s/s, %s\n", kernel->about->name,
               class_letters[kernel->class_index], kernel->ranks, most[0], most[1], work / most[0] * 1e-6,
               kernel->about->work, all_right ? "verified" : "NOT VERIFIED");
    kernel_close();
    return all_right ? KERNEL_EXIT_SUCCESS : KERNEL_EXIT_FAILURE;
}

double kernel_most(double most, double error)
{
    return error <= most ? most : error > most ? error : INFINITY;
}

/* ---- memory and division ---- */

void *kernel_allocate(size_t count, size_t bytes)
{
    /* a rank may have no share at all, and NULL must mean that there is no memory */
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) {
        fprintf(stderr, "out of memory: %zu bytes\n", count * bytes);
        MPI_Abort(MPI_COMM_WORLD, KERNEL_EXIT_MACHINE);
    }
    return memory;
}

int64_t kernel_share_begin(int64_t total, int ranks, int rank)
{
    return total * rank / ranks;
}

int kernel_offsets(int *offsets, const int *counts, int ranks)
{
    int sum = 0;
    for (int i = 0; i < ranks; i++) {
        offsets[i] = sum;
        sum += counts[i];
    }
    return sum;
}

/* ---- random numbers ---- */

double kernel_random(uint64_t *state)
{
    /* 2^46 divides 2^64, so that the overflow of the product does no harm */
    *state = *state * random_factor & random_mask;
    return (double)*state * 0x1p-46;
}

uint64_t kernel_random_skip(uint64_t state, uint64_t count)
{
    for (uint64_t power = random_factor; count; count >>= 1, power *= power) {
        if (count & 1)
            state *= power;
    }
    return state & random_mask;
}
