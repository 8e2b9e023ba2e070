/* call_log: the last calls of a communicator that are over here. A rank that needs nobody, such as the root of a short
 * broadcast, has left its call before others can tell it that they are in another one; what they send finds out here,
 * the other ranks are told, and the next call ends with it.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mpi_call_head;
struct mpi_comm;
struct mpi_exchange;

/* A call is over: run `run` of call `number`, of the kind of mpi_describe_kind. */
void mpi_call_log_note(const struct mpi_comm *comm, uint32_t number, uint32_t run, uint32_t kind, bool has_failed);

/* Whether a message that no call under way takes is for one that is over (NULL: an unknown communicator's is not): then
 * nobody will take it. If its sender was in another call, those under way are told. */
bool mpi_call_log_takes(struct mpi_comm *comm, const struct mpi_call_head *head);

/* Whether the call that its sender asks about is over here, and was another one, or has failed. Those under way are
 * told as by mpi_call_log_takes. */
bool mpi_call_log_differs(struct mpi_comm *comm, const struct mpi_call_head *head);

/* A call begins: it ends at once if the ranks have come to be in different calls. */
void mpi_call_log_tell(struct mpi_exchange *exchange);
