/* call_log: the last completed calls of a communicator on this rank.
 *
 * A rank that waits for no other rank, such as the root of a short broadcast, completes its call before it can detect
 * that another rank is in a different call. Later messages of that rank show it: then this rank rejects the call at the
 * other ranks, and its own next call fails.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mpi_call_head;
struct mpi_comm;
struct mpi_exchange;

/* Adds a completed call: run `run` of call `number`, with the kind of mpi_describe_kind. */
void mpi_call_log_note(const struct mpi_comm *comm, uint32_t number, uint32_t run, uint32_t kind, bool has_failed);

/* Whether a message that belongs to no current call belongs to a completed one. If its sender was in a different call,
 * current calls fail, or the next one. False if `comm` is NULL. */
bool mpi_call_log_accepts(struct mpi_comm *comm, const struct mpi_call_head *head);

/* Whether the call of an MPI_SENT_ASK is completed on this rank, and was a different one or has failed. Effects as
 * mpi_call_log_accepts. */
bool mpi_call_log_differs(struct mpi_comm *comm, const struct mpi_call_head *head);

/* A call begins: fails it if a completed call was different at another rank. */
void mpi_call_log_report(struct mpi_exchange *exchange);
