/* Denied: a rank that may not copy from or to others' memory, as in a container whose system call filter forbids it, or
 * whose process the kernel hides from the others. Long messages arrive all the same.
 *
 * usage: denied readv | writev | both | hidden
 *        denied later | later-all FOLDER     a folder that they may write to
 *
 * The first three: of rank 1; hidden: of all. later: they hide when MPI runs, and wait for one message each; later-all:
 * for all at once. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../expect.h"

enum { COUNT = 1 << 18, NOBODY = 65534 };

static int out[COUNT], in[COUNT], all[8 * COUNT];

/* From now on these system calls of this process fail. */
static void calls_deny(unsigned int one, unsigned int other)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]), .filter = program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        fprintf(stderr, "the kernel has no system call filters: %s\n", strerror(errno));
        exit(1);
    }
}

static void deny(const char *kind, int rank)
{
    if (strcmp(kind, "hidden") == 0 || (strncmp(kind, "later", 5) == 0 && rank < 0)) {
        /* a process that changes its user is hidden, too */
        int failed = geteuid() == 0 ? setresuid(NOBODY, NOBODY, NOBODY) : 0;
        failed |= prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        EXPECT_EQUAL(failed, 0);
    } else if (rank == 1) {
        calls_deny(strcmp(kind, "writev") == 0 ? SYS_process_vm_writev : SYS_process_vm_readv,
                   strcmp(kind, "readv") == 0 ? SYS_process_vm_readv : SYS_process_vm_writev);
    }
}

/* Until all have come here, without a message. */
static void await_all(const char *folder)
{
    char path[400];
    snprintf(path, sizeof(path), "%.350s/%d", folder, expect_rank);
    int file = creat(path, 0600);
    EXPECT(file >= 0);
    close(file);
    for (int rank = 0; rank < expect_size; rank++) {
        snprintf(path, sizeof(path), "%.350s/%d", folder, rank);
        while (access(path, F_OK) != 0) {
            usleep(1000);
        }
    }
}

/* Each rank sends to the next one, which it cannot reach. The rank that it receives from cannot reach it either. */
static void exchange_hidden(int at_once)
{
    int to = (expect_rank + 1) % expect_size, from = (expect_rank + expect_size - 1) % expect_size;
    MPI_Request requests[2];
    if (!at_once) {
        MPI_Sendrecv(out, COUNT, MPI_INT, to, 1, in, COUNT, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Irecv(in, COUNT, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, COUNT, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void fill(int *numbers, int rank, int size, int step)
{
    for (int i = 0; i < size; i++) {
        numbers[i] = i * 7 + rank * 1001 + step;
    }
}

static int is_from(const int *numbers, int rank, int size, int step)
{
    for (int i = 0; i < size; i++) {
        if (numbers[i] != i * 7 + rank * 1001 + step) {
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    const char *number = getenv("PMI_RANK"), *kind = argc > 1 ? argv[1] : "";
    deny(kind, number != NULL ? atoi(number) : 0);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &expect_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &expect_size);
    if (strncmp(kind, "later", 5) == 0) {
        deny(kind, -1);
        await_all(argv[2]);
        exchange_hidden(strcmp(kind, "later-all") == 0);
    }
    for (int step = 1; step < expect_size; step++) { /* each with each, both ways */
        int to = (expect_rank + step) % expect_size, from = (expect_rank + expect_size - step) % expect_size;
        fill(out, expect_rank, COUNT, step);
        memset(in, 0, sizeof(in));
        MPI_Sendrecv(out, COUNT, MPI_INT, to, 1, in, COUNT, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(is_from(in, from, COUNT, step));
    }
    for (int root = 0; root < expect_size; root++) {
        fill(in, root, expect_rank == root ? COUNT : 0, 3);
        MPI_Bcast(in, COUNT, MPI_INT, root, MPI_COMM_WORLD);
        EXPECT(is_from(in, root, COUNT, 3));
    }
    fill(out, expect_rank, COUNT, 4);
    MPI_Allgather(out, COUNT, MPI_INT, all, COUNT, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < expect_size; rank++) {
        EXPECT(is_from(all + (size_t)rank * COUNT, rank, COUNT, 4));
    }
    memset(out, 0, sizeof(out));
    out[expect_rank] = 1;
    MPI_Allreduce(out, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int rank = 0; rank < expect_size; rank++) {
        EXPECT_EQUAL(in[rank], 1);
    }
    MPI_Finalize();
    return expect_failures > 0;
}
