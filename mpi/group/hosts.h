/* hosts: which ranks of a communicator share a host. Within the lock of enter.h only. */
#pragma once

struct mpi_comm;

/* Numbers the hosts in the order of their first ranks: host_of[rank] is the rank's host, firsts[host] its first rank;
 * both have room for all ranks. Returns the number of hosts; 0: no memory. Takes O(n log n). */
int mpi_hosts_number(const struct mpi_comm *comm, int *host_of, int *firsts);
