! Collective calls, by the module mpi (MPI 5.0, 6).
program collective
  use mpi
  implicit none
  integer :: rank, ranks, failures
  call start()
  call equal_parts()
  call in_place()
  call unequal_parts()
  call types_of_their_own()
  call reductions()
  call nonblocking()
  call persistent()
  call neighbors()
  call finish()
contains
  include 'expect.inc'

  subroutine equal_parts()
    integer :: code, i, x(2), all(2 * ranks), wanted(2 * ranks), part(2), to(ranks), from(ranks)
    x = [rank, -rank]
    all = -7
    call MPI_Gather(x, 2, MPI_INTEGER, all, 2, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, code)
    wanted = [(i / 2 * (1 - 2 * mod(i, 2)), i=0, 2 * ranks - 1)]
    if (rank == ranks - 1) call expect(all_equal(all, wanted), 'MPI_Gather')
    if (rank /= ranks - 1) all = 0
    call MPI_Scatter(all, 2, MPI_INTEGER, part, 2, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, code)
    call expect(part(1) == rank .and. part(2) == -rank, 'MPI_Scatter')
    call MPI_Allgather(x, 2, MPI_INTEGER, all, 2, MPI_INTEGER, MPI_COMM_WORLD, code)
    call expect(all_equal(all, wanted), 'MPI_Allgather')
    to = [(100 * rank + i, i=0, ranks - 1)]
    call MPI_Alltoall(to, 1, MPI_INTEGER, from, 1, MPI_INTEGER, MPI_COMM_WORLD, code)
    call expect(all_equal(from, [(100 * i + rank, i=0, ranks - 1)]), 'MPI_Alltoall')
  end subroutine

  subroutine in_place()
    integer :: code, i, all(ranks), x(3)
    all = -1
    all(rank + 1) = rank * rank
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INTEGER, MPI_COMM_WORLD, code)
    call expect(all_equal(all, [(i * i, i=0, ranks - 1)]), 'MPI_Allgather in place')
    all = -1
    all(rank + 1) = rank
    if (rank == 0) then
      call MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, code)
      call expect(all_equal(all, [(i, i=0, ranks - 1)]), 'MPI_Gather in place')
      call MPI_Scatter(all, 1, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD, code)
    else
      call MPI_Gather(rank, 1, MPI_INTEGER, all, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, code)
      call MPI_Scatter(all, 1, MPI_INTEGER, x, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, code)
      call equal(x(1), rank, 'MPI_Scatter in place')
    end if
    x = [1, rank, 2 * rank]
    if (rank == 0) then
      call MPI_Reduce(MPI_IN_PLACE, x, 3, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, code)
      call expect(all_equal(x, [ranks, ranks * (ranks - 1) / 2, ranks * (ranks - 1)]), 'MPI_Reduce in place')
    else
      call MPI_Reduce(x, x, 3, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, code)
    end if
    x = rank
    call MPI_Scan(MPI_IN_PLACE, x, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call equal(x(3), rank * (rank + 1) / 2, 'MPI_Scan in place')
  end subroutine

  logical function all_equal(a, b)
    integer, intent(in) :: a(:), b(:)
    all_equal = size(a) == size(b)
    if (all_equal) all_equal = all(a == b)
  end function

  ! Rank i contributes i + 1 elements.
  subroutine unequal_parts()
    integer :: code, i, total, counts(ranks), starts(ranks), x(rank + 1), part(rank + 1)
    integer, allocatable :: all(:), wanted(:)
    counts = [(i, i=1, ranks)]
    starts = [(i * (i - 1) / 2, i=1, ranks)]
    total = ranks * (ranks + 1) / 2
    allocate (all(total), wanted(total))
    do i = 1, ranks
      wanted(starts(i) + 1:starts(i) + counts(i)) = i - 1
    end do
    x = rank
    all = -1
    call MPI_Gatherv(x, rank + 1, MPI_INTEGER, all, counts, starts, MPI_INTEGER, 0, MPI_COMM_WORLD, code)
    if (rank == 0) call expect(all_equal(all, wanted), 'MPI_Gatherv')
    call MPI_Scatterv(all, counts, starts, MPI_INTEGER, part, rank + 1, MPI_INTEGER, 0, MPI_COMM_WORLD, code)
    call expect(all_equal(part, x), 'MPI_Scatterv')
    all = -1
    call MPI_Allgatherv(x, rank + 1, MPI_INTEGER, all, counts, starts, MPI_INTEGER, MPI_COMM_WORLD, code)
    call expect(all_equal(all, wanted), 'MPI_Allgatherv')
    call exchange(counts, starts)
  end subroutine

  ! Everybody sends i + 1 elements to rank i.
  subroutine exchange(counts, starts)
    integer, intent(in) :: counts(:), starts(:)
    integer :: code, i, sent(ranks * (ranks + 1) / 2), received((rank + 1) * ranks), block
    sent = rank
    block = rank + 1
    received = -1
    call MPI_Alltoallv(sent, counts, starts, MPI_INTEGER, received, [(block, i=1, ranks)], [((i - 1) * block, i=1, ranks)], &
                       MPI_INTEGER, MPI_COMM_WORLD, code)
    call expect(all_equal(received, [((i - 1) / block, i=1, block * ranks)]), 'MPI_Alltoallv')
  end subroutine

  ! An array of handles: to even ranks integers, to odd ones reals.
  subroutine types_of_their_own()
    integer :: code, i, request
    integer :: counts(ranks), places(ranks), sent_types(ranks), received_types(ranks)
    real :: sent(ranks), received(ranks)
    integer :: sent_bits(ranks), received_bits(ranks)
    counts = 1
    places = [(4 * (i - 1), i=1, ranks)]
    sent_types = [(merge(MPI_INTEGER, MPI_REAL, mod(i, 2) == 0), i=0, ranks - 1)]
    received_types = merge(MPI_INTEGER, MPI_REAL, mod(rank, 2) == 0)
    sent_bits = [(merge(rank * 10, transfer(rank + 0.5, 0), mod(i, 2) == 0), i=0, ranks - 1)]
    sent = transfer(sent_bits, sent)
    received = -1
    call MPI_Alltoallw(sent, counts, places, sent_types, received, counts, places, received_types, MPI_COMM_WORLD, code)
    received_bits = transfer(received, received_bits)
    if (mod(rank, 2) == 0) then
      call expect(all_equal(received_bits, [(i * 10, i=0, ranks - 1)]), 'MPI_Alltoallw of integers')
    else
      call expect(all(received == [(i + 0.5, i=0, ranks - 1)]), 'MPI_Alltoallw of reals')
    end if
    received = -1
    call MPI_Ialltoallw(sent, counts, places, sent_types, received, counts, places, received_types, MPI_COMM_WORLD, &
                        request, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    if (mod(rank, 2) == 1) call expect(all(received == [(i + 0.5, i=0, ranks - 1)]), 'MPI_Ialltoallw')
    sent_types = -1 ! without a meaning in place
    call MPI_Alltoallw(MPI_IN_PLACE, counts, places, sent_types, received, counts, places, &
                       [(merge(MPI_INTEGER, MPI_REAL, .true.), i=1, ranks)], MPI_COMM_WORLD, code)
    call equal(code, MPI_SUCCESS, 'MPI_Alltoallw in place')
  end subroutine

  subroutine reductions()
    integer :: code, i, x(ranks), y(ranks), one, counts(ranks)
    x = [(rank + i, i=1, ranks)]
    call MPI_Allreduce(x, y, ranks, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD, code)
    call expect(all_equal(y, [(i, i=1, ranks)]), 'MPI_MIN')
    counts = 1
    call MPI_Reduce_scatter(x, one, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call equal(one, ranks * (ranks - 1) / 2 + ranks * (rank + 1), 'MPI_Reduce_scatter')
    call MPI_Reduce_scatter_block(x, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call equal(one, ranks * (ranks - 1) / 2 + ranks * (rank + 1), 'MPI_Reduce_scatter_block')
    one = 0
    call MPI_Exscan(rank, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    if (rank > 0) call equal(one, rank * (rank - 1) / 2, 'MPI_Exscan')
    one = 3
    call MPI_Reduce_local(4, one, 1, MPI_INTEGER, MPI_PROD, code)
    call equal(one, 12, 'MPI_Reduce_local')
  end subroutine

  subroutine nonblocking()
    integer :: code, requests(4), statuses(MPI_STATUS_SIZE, 4), x, sum, all(ranks), i
    x = merge(99, 0, rank == 0)
    call MPI_Ibcast(x, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1), code)
    call MPI_Iallreduce(rank, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2), code)
    call MPI_Iallgather(rank, 1, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD, requests(3), code)
    call MPI_Ibarrier(MPI_COMM_WORLD, requests(4), code)
    call MPI_Waitall(4, requests, statuses, code)
    call equal(x, 99, 'MPI_Ibcast')
    call equal(sum, ranks * (ranks - 1) / 2, 'MPI_Iallreduce')
    call expect(all_equal(all, [(i, i=0, ranks - 1)]), 'MPI_Iallgather')
  end subroutine

  subroutine persistent()
    integer :: code, requests(2), turn, x, all(ranks), i
    call MPI_Bcast_init(x, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), code)
    call MPI_Allgather_init(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, &
                            requests(2), code)
    do turn = 1, 3
      x = merge(turn, -1, rank == ranks - 1)
      all(rank + 1) = rank + turn
      call MPI_Startall(2, requests, code)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
      call MPI_F_sync_reg(x)
      call equal(x, turn, 'MPI_Bcast_init')
      call expect(all_equal(all, [(i + turn, i=0, ranks - 1)]), 'MPI_Allgather_init')
    end do
    call MPI_Request_free(requests(1), code)
    call MPI_Request_free(requests(2), code)
  end subroutine

  ! On a ring: two neighbours, with a datatype and an address each. What is not there yet says so.
  subroutine neighbors()
    integer :: code, ignored, ring, x(2), y(2), class
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring, code)
    call MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN, code)
    x = [rank, 100 + rank]
    y = -1
    call MPI_Neighbor_alltoallw(x, [1, 1], [0_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND], [MPI_INTEGER, MPI_INTEGER], &
                                y, [1, 1], [0_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND], [MPI_INTEGER, MPI_INTEGER], ring, code)
    call MPI_Error_class(code, class, ignored)
    if (class == MPI_SUCCESS) then
      call equal(y(1), 100 + mod(rank + ranks - 1, ranks), 'MPI_Neighbor_alltoallw from the left')
      call equal(y(2), mod(rank + 1, ranks), 'MPI_Neighbor_alltoallw from the right')
    else
      call equal(class, MPI_ERR_UNSUPPORTED_OPERATION, 'MPI_Neighbor_alltoallw')
    end if
    call MPI_Comm_free(ring, code)
  end subroutine
end program
