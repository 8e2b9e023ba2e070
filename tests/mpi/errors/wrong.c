/* A program that ends in the way that its argument names; errors_usage.py looks at what becomes of the job. */
#include <dirent.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, size;

static int is(const char *wanted, const char *found)
{
    return strcmp(wanted, found) == 0;
}

/* All exchange messages for ever; the rank that the number names is killed in their midst. */
static void exchange(unsigned number)
{
    static int out[20000], in[20000];
    int victim = (int)(number % (unsigned)size), right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (unsigned round = 0;; round++) {
        MPI_Request request;
        int count = round % 3 == 2 ? 20000 : (int)(round % 7);
        MPI_Isend(out, count, MPI_INT, right, 0, MPI_COMM_WORLD, &request);
        if (rank == victim && round == number * 37 % 1000) {
            raise(SIGKILL);
        }
        MPI_Recv(in, 20000, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (round % 10 == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

/* A message to itself, which it waits for before it looks at the send. */
static void send_to_itself(void)
{
    MPI_Request request;
    int value = 0;
    MPI_Isend(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request);
    MPI_Recv(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The root's buffer cannot be read. */
static void unmapped_bcast(void)
{
    enum { BYTES = 1 << 22 };
    int access = rank == 1 ? PROT_NONE : PROT_READ | PROT_WRITE;
    void *buffer = mmap(NULL, BYTES, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Bcast(buffer, BYTES, MPI_BYTE, 1, MPI_COMM_WORLD);
    printf("went on\n");
}

/* Whether all other threads of this process sleep: a thread that starts needs memory of its own first. */
static bool others_sleep(void)
{
    DIR *tasks = opendir("/proc/self/task");
    bool sleep = tasks != NULL;
    for (struct dirent *task = NULL; sleep && (task = readdir(tasks)) != NULL;) {
        char path[300];
        char state = 'S';
        snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
        FILE *file = atoi(task->d_name) > 0 && atoi(task->d_name) != gettid() ? fopen(path, "r") : NULL;
        if (file != NULL) {
            sleep = fscanf(file, "%*d %*s %c", &state) == 1 && state == 'S';
            fclose(file);
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return sleep;
}

/* The limit is the present address space, with room for less than any mapping of an inbox: a sanitizer needs some. */
static void space_limit(void)
{
    enum { SPARE_BYTES = 96 * 1024 };
    while (!others_sleep()) {
        sched_yield();
    }
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1 || fclose(file) != 0) {
        perror("/proc/self/statm");
        exit(3);
    }
    setrlimit(RLIMIT_AS, &(struct rlimit){.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + SPARE_BYTES,
                                          .rlim_max = RLIM_INFINITY});
}

/* The error of rank 1 while the others wait for it. */
static void do_wrong(const char *how)
{
    MPI_Comm comm;
    int value = 0;
    if (is(how, "rank")) {
        MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    } else if (is(how, "count")) {
        MPI_Send(&value, -5, MPI_INT, 0, 0, MPI_COMM_WORLD);
    } else if (is(how, "uncommitted")) {
        MPI_Datatype type;
        MPI_Type_contiguous(2, MPI_INT, &type);
        MPI_Recv(&value, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (is(how, "op")) {
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD);
    } else if (is(how, "null")) {
        MPI_Comm_size(MPI_COMM_WORLD, NULL);
    } else if (is(how, "buffer")) {
        MPI_Bsend(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    } else if (is(how, "truncate")) {
        int two[2] = {1, 2};
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        MPI_Comm_set_name(comm, "river");
        MPI_Request request;
        MPI_Isend(two, 2, MPI_INT, 0, 0, comm, &request);
        MPI_Recv(&value, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    } else if (is(how, "abort")) {
        MPI_Abort(MPI_COMM_WORLD, 7);
    } else if (is(how, "abort_self")) {
        MPI_Abort(MPI_COMM_SELF, 9);
    } else if (is(how, "files")) {
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = 3, .rlim_max = 3});
        MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    } else if (is(how, "files_self")) {
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = 3, .rlim_max = 3});
        send_to_itself();
    } else if (is(how, "space_self")) {
        space_limit();
        send_to_itself();
    } else if (is(how, "space")) { /* for the messages of the others as they make a segment for the barrier */
        space_limit();
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (is(how, "exit")) {
        exit(5); /* without MPI_Finalize */
    }
    printf("went on\n");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (is(how, "before")) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is(how, "killed")) {
        exchange((unsigned)atoi(argv[2]));
    }
    if (is(how, "after")) {
        MPI_Finalize();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (is(how, "unmapped")) {
        unmapped_bcast();
    }
    if (rank == 1) {
        do_wrong(how);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
