#include "mpi/transport/unknown.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/transport/credit.h"
#include "mpi/transport/transport.h"

struct unknown {
    struct unknown *next;
    uint32_t rank;
    enum mpi_sent kind;
    uint32_t bytes;
    union {
        uint8_t data[1];
        uint64_t context; /* every head begins with it */
        struct {
            struct mpi_envelope envelope;
            uint32_t number;
        } numbered; /* SYNC, OFFER */
    };
};

static struct unknown *first;
static struct unknown **end = &first;

/* Whether the message has cost its sender credit, and for how many bytes of data. */
static bool has_cost(enum mpi_sent kind, uint32_t bytes, uint64_t *data_bytes)
{
    uint32_t head_bytes = sizeof(struct mpi_envelope) + (kind == MPI_SENT_SYNC ? sizeof(struct mpi_answer) : 0);
    *data_bytes = bytes - head_bytes;
    return (kind == MPI_SENT_EAGER || kind == MPI_SENT_SYNC) && bytes >= head_bytes;
}

void mpi_unknown_keep(uint32_t rank, enum mpi_sent kind, const void *data, uint32_t bytes)
{
    uint64_t context, data_bytes;
    memcpy(&context, data, sizeof(context));
    bool costs = has_cost(kind, bytes, &data_bytes);
    if ((kind == MPI_SENT_EAGER || kind == MPI_SENT_CALL) && mpi_context_was_freed(context)) {
        mpi_kept.dropped++;
        if (costs) {
            mpi_credit_release(rank, data_bytes);
        }
        return;
    }
    struct unknown *kept = mpi_message_memory(rank, sizeof(*kept) + bytes);
    *kept = (struct unknown){.rank = rank, .kind = kind, .bytes = bytes};
    memcpy(kept->data, data, bytes);
    *end = kept;
    end = &kept->next;
    if (costs) {
        mpi_kept_add(data_bytes);
    } else if (kind == MPI_SENT_CALL) {
        mpi_kept_add_early(bytes);
    }
}

/* Removes it from the list. */
static struct unknown *unknown_remove(struct unknown **link)
{
    struct unknown *taken = *link;
    uint64_t data_bytes;
    *link = taken->next;
    end = end == &taken->next ? link : end;
    if (has_cost(taken->kind, taken->bytes, &data_bytes)) {
        mpi_kept_remove(data_bytes);
    } else if (taken->kind == MPI_SENT_CALL) {
        mpi_kept_remove_early(taken->bytes);
    }
    return taken;
}

/* Frees a message that will never be received. */
static void unknown_drop(struct unknown *unknown)
{
    uint64_t data_bytes;
    if (has_cost(unknown->kind, unknown->bytes, &data_bytes)) {
        mpi_credit_release(unknown->rank, data_bytes);
    }
    free(unknown);
}

bool mpi_unknown_recall(uint32_t rank, uint64_t context, uint32_t number)
{
    for (struct unknown **link = &first; *link != NULL; link = &(*link)->next) {
        const struct unknown *at = *link;
        if ((at->kind == MPI_SENT_SYNC || at->kind == MPI_SENT_OFFER) && at->rank == rank && at->context == context &&
            at->numbered.number == number) {
            unknown_drop(unknown_remove(link));
            return true;
        }
    }
    return false;
}

void mpi_unknown_adopt(struct mpi_comm *comm, mpi_unknown_deliver_fn *deliver)
{
    struct unknown **link = &first;
    while (*link != NULL) {
        if ((*link)->context != comm->context) {
            link = &(*link)->next;
            continue;
        }
        struct unknown *adopted = unknown_remove(link);
        deliver(adopted->rank, adopted->kind, adopted->data, adopted->bytes);
        free(adopted);
    }
}

void mpi_unknown_clear(void)
{
    while (first != NULL) {
        unknown_drop(unknown_remove(&first));
    }
}
