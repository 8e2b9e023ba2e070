/* Senders that send far more than their receiver requests: its memory stays within the bound (mpi/transport/credit.h),
 * matching messages are matched, and all come in order. */
#include "tests/mpi/expect.h"

#include <stdlib.h>
#include <string.h>

enum {
    MESSAGES = 200000, /* all senders together, unless an argument says another number; 800 MB */
    BYTES = 4096,
    PATTERNS = 64,
    KEPT_MAX_KIB = 96 << 10, /* of two senders: 32 MiB of credit; announcements, and the overhead of malloc */
    TAG_FLOOD = 1,
    TAG_LAST = 2,
};

static int messages = MESSAGES;
static unsigned char patterns[PATTERNS][BYTES];

/* AddressSanitizer keeps freed memory: its size proves nothing. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#endif

static long resident_kib(void)
{
#ifdef IS_SANITIZED
    return 0;
#endif
    char line[200];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return kib;
}

/* Senders are all but rank 0; alone, rank 0 sends to itself. */
static int sender_first(void)
{
    return expect_size > 1;
}

static int per_sender(void)
{
    return messages / (expect_size - sender_first());
}

static void flood_receive(void)
{
    unsigned char *data = malloc(BYTES);
    for (int i = 0; i < per_sender(); i++) {
        for (int source = sender_first(); source < expect_size; source++) {
            MPI_Recv(data, BYTES, MPI_BYTE, source, TAG_FLOOD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (memcmp(data, patterns[i % PATTERNS], BYTES) != 0) {
                EXPECT_EQUAL(data[0], patterns[i % PATTERNS][0]);
                i = messages;
            }
        }
    }
    free(data);
}

/* The receiver first receives the last message sent: legal, since MPI_Isend waits for no receiver. `mode`: of
 * sending. */
static void the_last_is_received_first(int (*isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
{
    int count = per_sender(), last = -1;
    MPI_Request *requests = malloc((size_t)count * sizeof(MPI_Request));
    MPI_Barrier(MPI_COMM_WORLD);
    long before = resident_kib();
    if (expect_rank >= sender_first()) {
        MPI_Request request;
        for (int i = 0; i < count; i++) {
            isend(patterns[i % PATTERNS], BYTES, MPI_BYTE, 0, TAG_FLOOD, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Isend(&count, 1, MPI_INT, 0, TAG_LAST, MPI_COMM_WORLD, &request);
        if (expect_rank != 0) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&last, 1, MPI_INT, 0, TAG_LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    if (expect_rank == 0) {
        for (int source = 1; source < expect_size; source++) {
            MPI_Recv(&last, 1, MPI_INT, source, TAG_LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        EXPECT_EQUAL(last, count);
        long more = resident_kib() - before;
        EXPECT(more < KEPT_MAX_KIB);
        if (more >= KEPT_MAX_KIB) {
            fprintf(stderr, "%ld KiB more than before\n", more);
        }
        flood_receive();
    }
    if (expect_rank >= sender_first()) {
        EXPECT_EQUAL(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    }
    free(requests);
}

/* A sender that waits for each message is held up. */
static void blocking_senders_are_held_up(void)
{
    if (expect_size == 1) {
        return; /* would wait for itself: MPI grants no buffer */
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (expect_rank == 0) {
        MPI_Status status;
        for (int looks = 0; looks < 1000; looks++) {
            MPI_Probe(1 + looks % (expect_size - 1), TAG_FLOOD, MPI_COMM_WORLD, &status);
        }
        long before = resident_kib();
        flood_receive();
        EXPECT(resident_kib() - before < KEPT_MAX_KIB);
    } else {
        for (int i = 0; i < per_sender(); i++) {
            EXPECT_EQUAL(MPI_Send(patterns[i % PATTERNS], BYTES, MPI_BYTE, 0, TAG_FLOOD, MPI_COMM_WORLD), MPI_SUCCESS);
        }
    }
}

/* The root of non-blocking broadcasts is ahead of ranks that have not begun any. */
static void roots_are_held_up(void)
{
    enum { CASTS = 5000 }; /* 20 MB */
    static MPI_Request requests[CASTS];
    unsigned char data[BYTES];
    int told = 0;
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Barrier(own);
    long before = resident_kib();
    for (int i = 0; expect_rank == 0 && i < CASTS; i++) {
        MPI_Ibcast(patterns[i % PATTERNS], BYTES, MPI_BYTE, 0, own, &requests[i]);
    }
    for (int rank = 1; expect_rank == 0 && rank < expect_size; rank++) {
        MPI_Send(&told, 1, MPI_INT, rank, TAG_LAST, MPI_COMM_WORLD);
    }
    if (expect_rank == 0) {
        MPI_Waitall(CASTS, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Recv(&told, 1, MPI_INT, 0, TAG_LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(resident_kib() - before < KEPT_MAX_KIB / 12);
        for (int i = 0; i < CASTS; i++) {
            MPI_Ibcast(data, BYTES, MPI_BYTE, 0, own, &requests[0]);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
            if (memcmp(data, patterns[i % PATTERNS], BYTES) != 0) {
                EXPECT_EQUAL(i, -1);
                i = CASTS;
            }
        }
    }
    MPI_Comm_free(&own);
}

/* Announced messages may be taken back, probed for, and be too long. */
static void announced_ones_are_like_others(void)
{
    enum { COUNT = 20000 };
    static MPI_Request requests[COUNT];
    int sender = sender_first();
    MPI_Barrier(MPI_COMM_WORLD);
    if (expect_rank == sender) {
        for (int i = 0; i < COUNT; i++) { /* beyond all credit */
            MPI_Isend(patterns[i % PATTERNS], BYTES, MPI_BYTE, 0, TAG_FLOOD, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Cancel(&requests[COUNT - 1]);
        if (expect_rank != 0) {
            MPI_Status status;
            int is_cancelled = 0;
            MPI_Wait(&requests[COUNT - 1], &status);
            MPI_Test_cancelled(&status, &is_cancelled);
            EXPECT(is_cancelled);
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_LAST, MPI_COMM_WORLD);
        }
    }
    if (expect_rank == 0) {
        unsigned char data[BYTES];
        MPI_Status status;
        if (sender != 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, sender, TAG_LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < COUNT - 2; i++) {
            MPI_Recv(data, BYTES, MPI_BYTE, sender, TAG_FLOOD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        int bytes = 0;
        MPI_Probe(sender, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        EXPECT_EQUAL(bytes, BYTES);
        EXPECT_CLASS(MPI_Recv(data, BYTES / 2, MPI_BYTE, sender, TAG_FLOOD, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
    }
    if (expect_rank == sender) {
        MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    }
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    if (argc > 1) {
        messages = atoi(argv[1]);
    }
    for (int i = 0; i < PATTERNS; i++) {
        for (int at = 0; at < BYTES; at++) {
            patterns[i][at] = (unsigned char)(i * 7 + at);
        }
    }
    the_last_is_received_first(MPI_Isend);
    blocking_senders_are_held_up();
    the_last_is_received_first(MPI_Issend);
    announced_ones_are_like_others();
    roots_are_held_up();
    return expect_end();
}
