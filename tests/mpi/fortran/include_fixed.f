! mpif.h in fixed form, in the way of old programs: implicit types, no
! explicit interfaces, the same call with buffers of several types.
      program fixed
      include 'mpif.h'
      integer rank, ranks, failures
      integer right, left, i, code, status(MPI_STATUS_SIZE)
      integer requests(2), statuses(MPI_STATUS_SIZE, 2)
      real x(10), y(10)
      double precision sums(3), sum
      integer whole(4), all
      character*8 word
      logical both, flag
      call start()
      right = mod(rank + 1, ranks)
      left = mod(rank + ranks - 1, ranks)
      do 10 i = 1, 10
        x(i) = 100.0 * rank + i
        y(i) = -1.0
   10 continue
      call MPI_IRECV(y, 10, MPI_REAL, left, 7, MPI_COMM_WORLD,
     &               requests(1), code)
      call MPI_ISEND(x, 10, MPI_REAL, right, 7, MPI_COMM_WORLD,
     &               requests(2), code)
      call MPI_WAITALL(2, requests, statuses, code)
      call equal(code, MPI_SUCCESS, 'MPI_WAITALL')
      call expect(y(1) .eq. 100.0 * left + 1, 'first of ring')
      call expect(y(10) .eq. 100.0 * left + 10, 'last of ring')
      call equal(statuses(MPI_SOURCE, 1), left, 'MPI_SOURCE')
      call equal(statuses(MPI_TAG, 1), 7, 'MPI_TAG')
      call equal(requests(1), MPI_REQUEST_NULL, 'null request')
      call MPI_GET_COUNT(statuses(1, 1), MPI_REAL, i, code)
      call equal(i, 10, 'MPI_GET_COUNT')
! another type through the same names; strings, parts of arrays, scalars
      do 20 i = 1, 4
        whole(i) = rank * 10 + i
   20 continue
      call MPI_SENDRECV_REPLACE(whole(2), 2, MPI_INTEGER, right, 1,
     &     left, 1, MPI_COMM_WORLD, status, code)
      call equal(whole(1), rank * 10 + 1, 'element before')
      call equal(whole(2), left * 10 + 2, 'first element')
      call equal(whole(3), left * 10 + 3, 'last element')
      call equal(whole(4), rank * 10 + 4, 'element behind')
      word = 'unset'
      if (rank .eq. 0) word = 'eight ch'
      call MPI_BCAST(word, 8, MPI_CHARACTER, 0, MPI_COMM_WORLD, code)
      call expect(word .eq. 'eight ch', 'MPI_BCAST of characters')
      do 30 i = 1, 3
        sums(i) = i * (rank + 1.0d0)
   30 continue
      call MPI_ALLREDUCE(MPI_IN_PLACE, sums, 3, MPI_DOUBLE_PRECISION,
     &                   MPI_SUM, MPI_COMM_WORLD, code)
      do 40 i = 1, 3
        sum = i * ranks * (ranks + 1) / 2
        call expect(sums(i) .eq. sum, 'sum of double precision')
   40 continue
      call MPI_REDUCE(rank, all, 1, MPI_INTEGER, MPI_MAX, 0,
     &                MPI_COMM_WORLD, code)
      if (rank .eq. 0) call equal(all, ranks - 1, 'maximum')
      call MPI_ALLREDUCE(rank .eq. 0, both, 1, MPI_LOGICAL, MPI_LOR,
     &                   MPI_COMM_WORLD, code)
      call expect(both, 'MPI_LOR')
      call MPI_INITIALIZED(flag, code)
      call expect(flag, 'MPI_INITIALIZED')
      call MPI_FINALIZED(flag, code)
      call expect(.not. flag, 'MPI_FINALIZED')
      call clock()
      call finish()
      contains
      include 'expect.inc'

      subroutine clock()
      double precision before
      before = MPI_WTIME()
      call expect(MPI_WTIME() .ge. before, 'MPI_WTIME')
      call expect(MPI_WTICK() .gt. 0.0d0 .and. MPI_WTICK() .lt. 1.0d0,
     &            'MPI_WTICK')
      call expect(PMPI_WTIME() .ge. before, 'PMPI_WTIME')
      call PMPI_COMM_SIZE(MPI_COMM_WORLD, i, code)
      call equal(i, ranks, 'PMPI_COMM_SIZE')
      call MPI_PCONTROL(1)
      end subroutine
      end program
