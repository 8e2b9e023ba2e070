/* Messages: records what a program sends, for `causeway bench codec`. It is loaded in front of the MPI library
 * (LD_PRELOAD). The first rank writes the doubles of its messages of 1 KiB and more to the file that CAUSEWAY_MESSAGES
 * names, one message behind the other, up to 16 MiB. Messages are those by MPI_Send, MPI_Isend, MPI_Sendrecv and
 * started MPI_Send_init, in programs of one thread. With CAUSEWAY_MESSAGES_COUNT=1, rank 0 prints in MPI_Finalize
 *
 *   messages: COUNT of BYTES on average, to PEERS per rank
 *
 * about such messages of all ranks to others. Without either variable nothing is done. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { BYTES_LEAST = 1024, BYTES_MAX = 16 << 20, PERSISTENT_MAX = 256, RANKS_MAX = 4096 };

static FILE *file;
static size_t recorded_bytes;

/* Requests of MPI_Send_init. MPI_REQUEST_NULL: freed. */
static struct {
    MPI_Request request;
    const void *data;
    int count;
    int peer;
} persistent[PERSISTENT_MAX];
static int persistent_count;

/* Sent by this rank. */
static struct {
    double messages;
    double bytes;
    double peers;
    bool has_sent_to[RANKS_MAX];
} sent;

/* `to`: MPI_PROC_NULL for a message to this rank itself, which no network carries. */
static void count_add(size_t bytes, int to)
{
    if (to == MPI_PROC_NULL) {
        return;
    }
    sent.messages++;
    sent.bytes += (double)bytes;
    if (to < RANKS_MAX && !sent.has_sent_to[to]) {
        sent.has_sent_to[to] = true;
        sent.peers++;
    }
}

static void counts_print(void)
{
    const char *wanted = getenv("CAUSEWAY_MESSAGES_COUNT");
    double own[] = {sent.messages, sent.bytes, sent.peers}, all[3];
    int rank = 0, ranks = 1;
    if (wanted == NULL || *wanted == '\0') {
        return;
    }
    (void)PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    (void)PMPI_Reduce(own, all, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        double average = all[0] > 0 ? all[1] / all[0] : 0;
        printf("messages: %.0f of %.1f bytes on average, to %.2f per rank\n", all[0], average, all[2] / ranks);
    }
}

/* Opens the file with the first message. */
static bool is_recording(void)
{
    static bool is_open = false;
    if (!is_open) {
        const char *path = getenv("CAUSEWAY_MESSAGES");
        int rank = -1;
        is_open = true;
        (void)PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        file = path != NULL && rank == 0 ? fopen(path, "wbe") : NULL;
        if (path != NULL && rank == 0 && file == NULL) {
            perror(path);
        }
    }
    return file != NULL;
}

static void record(const void *data, int count, int peer)
{
    size_t bytes = count > 0 ? (size_t)count * sizeof(double) : 0;
    if (bytes < BYTES_LEAST) {
        return;
    }
    count_add(bytes, peer);
    if (!is_recording()) {
        return;
    }
    bytes = bytes < BYTES_MAX - recorded_bytes ? bytes : BYTES_MAX - recorded_bytes;
    recorded_bytes += fwrite(data, 1, bytes, file);
}

static int peer_of(int to, MPI_Comm comm)
{
    int rank = MPI_PROC_NULL;
    (void)PMPI_Comm_rank(comm, &rank);
    return to == rank ? MPI_PROC_NULL : to;
}

static void send_record(const void *data, int count, MPI_Datatype type, int to, MPI_Comm comm)
{
    if (type == MPI_DOUBLE && to != MPI_PROC_NULL) {
        record(data, count, peer_of(to, comm));
    }
}

static int persistent_find(MPI_Request request)
{
    int found = 0;
    while (found < persistent_count && persistent[found].request != request) {
        found++;
    }
    return found;
}

static void started(MPI_Request request)
{
    int found = persistent_find(request);
    if (found < persistent_count) {
        record(persistent[found].data, persistent[found].count, persistent[found].peer);
    }
}

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    send_record(buf, count, datatype, dest, comm);
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    send_record(buf, count, datatype, dest, comm);
    return PMPI_Isend(buf, count, datatype, dest, tag, comm, request);
}

int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    send_record(sendbuf, sendcount, sendtype, dest, comm);
    return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
                         comm, status);
}

int MPI_Send_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    int status = PMPI_Send_init(buf, count, datatype, dest, tag, comm, request);
    if (status == MPI_SUCCESS && datatype == MPI_DOUBLE && dest != MPI_PROC_NULL) {
        int place = persistent_find(MPI_REQUEST_NULL); /* where one was freed */
        if (place < PERSISTENT_MAX) {
            persistent[place].request = *request;
            persistent[place].data = buf;
            persistent[place].count = count;
            persistent[place].peer = peer_of(dest, comm);
            persistent_count += place == persistent_count;
        }
    }
    return status;
}

int MPI_Start(MPI_Request *request)
{
    started(*request);
    return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request array_of_requests[])
{
    for (int i = 0; i < count; i++) {
        started(array_of_requests[i]);
    }
    return PMPI_Startall(count, array_of_requests);
}

int MPI_Request_free(MPI_Request *request)
{
    int found = persistent_find(*request);
    if (found < persistent_count) {
        persistent[found].request = MPI_REQUEST_NULL;
    }
    return PMPI_Request_free(request);
}

int MPI_Finalize(void)
{
    if (file != NULL && fclose(file) != 0) {
        perror("CAUSEWAY_MESSAGES");
    }
    file = NULL;
    counts_print();
    return PMPI_Finalize();
}
