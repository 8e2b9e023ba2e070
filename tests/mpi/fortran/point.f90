! Messages between pairs, by the module mpi (MPI 5.0, 3).
program point
  use mpi
  implicit none
  integer :: rank, ranks, failures, code
  call start()
  call wildcards()
  call MPI_Barrier(MPI_COMM_WORLD, code) ! what follows would match the wildcards, too
  call any_of_several()
  call some_of_several()
  call tests()
  call persistent()
  call probes()
  call matched_probes()
  call modes()
  call many_requests()
  call cancelled()
  call other_types()
  call finish()
contains
  include 'expect.inc'

  ! Everybody to rank 0, which takes what comes.
  subroutine wildcards()
    integer :: i, code, x(3), status(MPI_STATUS_SIZE), n, value, error_code
    logical :: seen(0:ranks - 1)
    if (rank /= 0) then
      x = rank
      call MPI_Send(x, 3, MPI_INTEGER, 0, 100 + rank, MPI_COMM_WORLD, code)
      return
    end if
    seen = .false.
    do i = 1, ranks - 1
      call MPI_Recv(x, 3, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, code)
      call equal(status(MPI_TAG), 100 + status(MPI_SOURCE), 'tag of the source')
      call equal(x(3), status(MPI_SOURCE), 'data of the source')
      call MPI_Get_count(status, MPI_INTEGER, n, code)
      call equal(n, 3, 'MPI_Get_count')
      call MPI_Get_count(status, MPI_DOUBLE_PRECISION, n, code)
      call equal(n, MPI_UNDEFINED, 'MPI_Get_count of a part')
      call MPI_Get_elements(status, MPI_INTEGER, n, code)
      call equal(n, 3, 'MPI_Get_elements')
      call MPI_Status_get_source(status, value, code)
      call equal(value, status(MPI_SOURCE), 'MPI_Status_get_source')
      call MPI_Status_get_tag(status, value, code)
      call equal(value, status(MPI_TAG), 'MPI_Status_get_tag')
      call MPI_Status_set_error(status, MPI_ERR_OTHER, code)
      call MPI_Status_get_error(status, error_code, code)
      call equal(error_code, MPI_ERR_OTHER, 'MPI_Status_get_error')
      call equal(status(MPI_ERROR), MPI_ERR_OTHER, 'MPI_ERROR')
      call expect(.not. seen(status(MPI_SOURCE)), 'each source once')
      seen(status(MPI_SOURCE)) = .true.
    end do
  end subroutine

  ! Indices begin at 1.
  subroutine any_of_several()
    integer :: requests(3), status(MPI_STATUS_SIZE), x(3), index, code
    logical :: flag
    requests = MPI_REQUEST_NULL
    call MPI_Waitany(3, requests, index, status, code)
    call equal(index, MPI_UNDEFINED, 'MPI_Waitany: none is active')
    index = 77
    flag = .false.
    call MPI_Testany(3, requests, index, flag, status, code)
    call expect(flag, 'MPI_Testany: none is active')
    call equal(index, MPI_UNDEFINED, 'MPI_Testany: no index')
    call MPI_Irecv(x(1), 1, MPI_INTEGER, rank, 11, MPI_COMM_WORLD, requests(1), code)
    call MPI_Irecv(x(2), 1, MPI_INTEGER, rank, 12, MPI_COMM_WORLD, requests(2), code)
    call MPI_Irecv(x(3), 1, MPI_INTEGER, rank, 13, MPI_COMM_WORLD, requests(3), code)
    call MPI_Testany(3, requests, index, flag, status, code)
    call expect(.not. flag, 'MPI_Testany: none has come')
    call equal(index, MPI_UNDEFINED, 'MPI_Testany: none has come, no index')
    call MPI_Send(5, 1, MPI_INTEGER, rank, 12, MPI_COMM_WORLD, code)
    call MPI_Waitany(3, requests, index, status, code)
    call equal(index, 2, 'MPI_Waitany: the second')
    call equal(requests(2), MPI_REQUEST_NULL, 'MPI_Waitany: its request is null')
    call equal(status(MPI_TAG), 12, 'MPI_Waitany: status')
    call equal(x(2), 5, 'MPI_Waitany: data')
    call MPI_Send(6, 1, MPI_INTEGER, rank, 13, MPI_COMM_WORLD, code)
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status_any(3, requests, index, flag, status, code)
    end do
    call equal(index, 3, 'MPI_Request_get_status_any: the third')
    flag = .false.
    do while (.not. flag)
      call MPI_Testany(3, requests, index, flag, status, code)
    end do
    call equal(index, 3, 'MPI_Testany: the third')
    call MPI_Send(7, 1, MPI_INTEGER, rank, 11, MPI_COMM_WORLD, code)
    call MPI_Waitany(3, requests, index, MPI_STATUS_IGNORE, code)
    call equal(index, 1, 'MPI_Waitany: the first')
    call equal(x(1), 7, 'MPI_Waitany: data of the first')
  end subroutine

  subroutine some_of_several()
    integer :: requests(4), statuses(MPI_STATUS_SIZE, 4), x(4), indices(4), count, code, i, done
    logical :: flag
    requests = MPI_REQUEST_NULL
    indices = -5
    call MPI_Waitsome(4, requests, count, indices, statuses, code)
    call equal(count, MPI_UNDEFINED, 'MPI_Waitsome: none is active')
    call expect(all(indices == -5), 'MPI_Waitsome: no index')
    do i = 2, 4
      call MPI_Irecv(x(i), 1, MPI_INTEGER, rank, 20 + i, MPI_COMM_WORLD, requests(i), code)
    end do
    call MPI_Testsome(4, requests, count, indices, statuses, code)
    call equal(count, 0, 'MPI_Testsome: none has come')
    call MPI_Send(40, 1, MPI_INTEGER, rank, 24, MPI_COMM_WORLD, code)
    call MPI_Waitsome(4, requests, count, indices, statuses, code)
    call equal(count, 1, 'MPI_Waitsome: one')
    call equal(indices(1), 4, 'MPI_Waitsome: the fourth')
    call equal(statuses(MPI_TAG, 1), 24, 'MPI_Waitsome: status')
    call MPI_Send(20, 1, MPI_INTEGER, rank, 22, MPI_COMM_WORLD, code)
    call MPI_Send(30, 1, MPI_INTEGER, rank, 23, MPI_COMM_WORLD, code)
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status_some(4, requests, count, indices, statuses, code)
      flag = count > 0
    end do
    call expect(indices(1) == 2 .or. indices(1) == 3, 'MPI_Request_get_status_some: index')
    done = 0
    do while (done < 2)
      call MPI_Testsome(4, requests, count, indices, MPI_STATUSES_IGNORE, code)
      do i = 1, count
        call equal(x(indices(i)), 10 * indices(i), 'MPI_Testsome: data of its index')
      end do
      done = done + count
    end do
    call expect(all(requests == MPI_REQUEST_NULL), 'MPI_Testsome: all requests are null')
  end subroutine

  subroutine tests()
    integer :: request, requests(2), x, code, status(MPI_STATUS_SIZE)
    logical :: flag
    call MPI_Irecv(x, 1, MPI_INTEGER, rank, 31, MPI_COMM_WORLD, request, code)
    flag = .true.
    call MPI_Test(request, flag, status, code)
    call expect(.not. flag, 'MPI_Test: nothing has come')
    call expect(request /= MPI_REQUEST_NULL, 'MPI_Test: the request stays')
    call MPI_Send(8, 1, MPI_INTEGER, rank, 31, MPI_COMM_WORLD, code)
    do while (.not. flag)
      call MPI_Request_get_status(request, flag, status, code)
    end do
    call equal(status(MPI_SOURCE), rank, 'MPI_Request_get_status: source')
    call MPI_Test(request, flag, status, code)
    call expect(flag, 'MPI_Test: it has come')
    call equal(request, MPI_REQUEST_NULL, 'MPI_Test: the request is null')
    call equal(x, 8, 'MPI_Test: data')
    requests = MPI_REQUEST_NULL
    call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE, code)
    call expect(flag, 'MPI_Testall: none is active')
    call MPI_Isend(1, 1, MPI_INTEGER, rank, 32, MPI_COMM_WORLD, request, code)
    call MPI_Recv(x, 1, MPI_INTEGER, rank, 32, MPI_COMM_WORLD, status, code)
    call MPI_Wait(request, status, code)
    call equal(code, MPI_SUCCESS, 'MPI_Wait')
  end subroutine

  subroutine persistent()
    integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), x(4), y(4), code, turn
    call MPI_Send_init(x, 4, MPI_INTEGER, mod(rank + 1, ranks), 41, MPI_COMM_WORLD, requests(1), code)
    call MPI_Recv_init(y, 4, MPI_INTEGER, mod(rank + ranks - 1, ranks), 41, MPI_COMM_WORLD, requests(2), code)
    do turn = 1, 3
      x = rank * 100 + turn
      if (turn == 2) then
        call MPI_Start(requests(1), code)
        call MPI_Start(requests(2), code)
      else
        call MPI_Startall(2, requests, code)
      end if
      call MPI_Waitall(2, requests, statuses, code)
      call expect(all(y == mod(rank + ranks - 1, ranks) * 100 + turn), 'persistent: data')
      call expect(all(requests /= MPI_REQUEST_NULL), 'persistent: requests stay')
    end do
    call MPI_Request_free(requests(1), code)
    call MPI_Request_free(requests(2), code)
    call expect(all(requests == MPI_REQUEST_NULL), 'MPI_Request_free')
  end subroutine

  subroutine probes()
    integer :: code, status(MPI_STATUS_SIZE), n, i
    real, allocatable :: x(:)
    logical :: flag
    call MPI_Iprobe(rank, 51, MPI_COMM_WORLD, flag, status, code)
    call expect(.not. flag, 'MPI_Iprobe: nothing')
    call MPI_Send([1.5, 2.5, 3.5], 3, MPI_REAL, rank, 51, MPI_COMM_WORLD, code)
    call MPI_Probe(MPI_ANY_SOURCE, 51, MPI_COMM_WORLD, status, code)
    call equal(status(MPI_SOURCE), rank, 'MPI_Probe: source')
    call MPI_Get_count(status, MPI_REAL, n, code)
    allocate (x(n))
    do while (.not. flag)
      call MPI_Iprobe(rank, MPI_ANY_TAG, MPI_COMM_WORLD, flag, status, code)
    end do
    call MPI_Recv(x, n, MPI_REAL, rank, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    call equal(n, 3, 'MPI_Probe: count')
    call expect(all(x == [(0.5 + i, i=1, 3)]), 'MPI_Probe: data')
  end subroutine

  subroutine matched_probes()
    integer :: code, status(MPI_STATUS_SIZE), message, request, x
    logical :: flag
    call MPI_Improbe(rank, 61, MPI_COMM_WORLD, flag, message, status, code)
    call expect(.not. flag, 'MPI_Improbe: nothing')
    call MPI_Send(61, 1, MPI_INTEGER, rank, 61, MPI_COMM_WORLD, code)
    call MPI_Send(62, 1, MPI_INTEGER, rank, 61, MPI_COMM_WORLD, code)
    call MPI_Mprobe(rank, 61, MPI_COMM_WORLD, message, status, code)
    call MPI_Mrecv(x, 1, MPI_INTEGER, message, status, code)
    call equal(x, 61, 'MPI_Mrecv')
    call equal(message, MPI_MESSAGE_NULL, 'MPI_Mrecv: the message is null')
    do while (.not. flag)
      call MPI_Improbe(rank, 61, MPI_COMM_WORLD, flag, message, status, code)
    end do
    call MPI_Imrecv(x, 1, MPI_INTEGER, message, request, code)
    call MPI_Wait(request, status, code)
    call equal(x, 62, 'MPI_Imrecv')
    call MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, message, status, code)
    call equal(message, MPI_MESSAGE_NO_PROC, 'MPI_MESSAGE_NO_PROC')
    call MPI_Mrecv(x, 1, MPI_INTEGER, message, status, code)
  end subroutine

  subroutine modes()
    integer, parameter :: room = 1000 + MPI_BSEND_OVERHEAD
    integer :: code, requests(2), size
    integer, save :: x
    character(len=1), save :: buffer(room)
    call MPI_Buffer_attach(buffer, room, code)
    call MPI_Bsend(71, 1, MPI_INTEGER, rank, 71, MPI_COMM_WORLD, code)
    call MPI_Recv(x, 1, MPI_INTEGER, rank, 71, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    call equal(x, 71, 'MPI_Bsend')
    call MPI_Buffer_detach(buffer, size, code)
    call equal(size, room, 'MPI_Buffer_detach')
    call MPI_Irecv(x, 1, MPI_INTEGER, rank, 72, MPI_COMM_WORLD, requests(1), code)
    call MPI_Issend(72, 1, MPI_INTEGER, rank, 72, MPI_COMM_WORLD, requests(2), code)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
    call equal(x, 72, 'MPI_Issend')
    call MPI_Irecv(x, 1, MPI_INTEGER, rank, 73, MPI_COMM_WORLD, requests(1), code)
    call MPI_Rsend(73, 1, MPI_INTEGER, rank, 73, MPI_COMM_WORLD, code)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, code)
    call equal(x, 73, 'MPI_Rsend')
  end subroutine

  ! More than fit into the array that handles are converted in.
  subroutine many_requests()
    integer, parameter :: many = 100
    integer :: requests(2 * many), statuses(MPI_STATUS_SIZE, 2 * many), x(many), y(many), i, code
    do i = 1, many
      x(i) = i * (rank + 1)
      call MPI_Irecv(y(i), 1, MPI_INTEGER, mod(rank + 1, ranks), 1000 + i, MPI_COMM_WORLD, requests(i), code)
    end do
    do i = many, 1, -1
      call MPI_Isend(x(i), 1, MPI_INTEGER, mod(rank + ranks - 1, ranks), 1000 + i, MPI_COMM_WORLD, requests(many + i), code)
    end do
    call MPI_Waitall(2 * many, requests, statuses, code)
    call expect(all(y == [(i * (mod(rank + 1, ranks) + 1), i=1, many)]), 'many requests: data')
    call expect(all(statuses(MPI_TAG, 1:many) == [(1000 + i, i=1, many)]), 'many requests: statuses')
    call expect(all(requests == MPI_REQUEST_NULL), 'many requests: null')
  end subroutine

  subroutine cancelled()
    integer :: request, status(MPI_STATUS_SIZE), x, code
    logical :: flag
    call MPI_Irecv(x, 1, MPI_INTEGER, rank, 81, MPI_COMM_WORLD, request, code)
    call MPI_Cancel(request, code)
    call MPI_Wait(request, status, code)
    call MPI_Test_cancelled(status, flag, code)
    call expect(flag, 'MPI_Test_cancelled')
    call MPI_Status_set_cancelled(status, .false., code)
    call MPI_Test_cancelled(status, flag, code)
    call expect(.not. flag, 'MPI_Status_set_cancelled')
    call MPI_Status_set_elements(status, MPI_INTEGER, 9, code)
    call MPI_Get_elements(status, MPI_INTEGER, x, code)
    call equal(x, 9, 'MPI_Status_set_elements')
  end subroutine

  ! Scalars, arrays of any rank, parts of them, strings, derived types.
  subroutine other_types()
    type :: pair
      sequence
      integer :: first, second
    end type
    type(pair) :: mine, theirs
    complex(kind=8) :: z(2, 3), w(2, 3)
    integer :: code, other, i, matrix(4, 5), row(5)
    character(len=6) :: text
    logical :: truth
    other = mod(rank + 1, ranks)
    mine = pair(rank, -rank)
    z = cmplx(rank, 2, kind=8)
    call MPI_Sendrecv(mine, 2, MPI_INTEGER, other, 1, theirs, 2, MPI_INTEGER, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, code)
    call equal(theirs%first, -theirs%second, 'a derived type')
    call MPI_Sendrecv(z, 6, MPI_DOUBLE_COMPLEX, other, 2, w, 6, MPI_DOUBLE_COMPLEX, theirs%first, 2, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, code)
    call expect(all(w == cmplx(theirs%first, 2, kind=8)), 'a complex matrix')
    matrix = reshape([(i, i=1, 20)], [4, 5]) + 100 * rank
    call MPI_Sendrecv(matrix(2, :), 5, MPI_INTEGER, other, 3, row, 5, MPI_INTEGER, theirs%first, 3, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, code)
    call expect(all(row == [(2 + 4 * i, i=0, 4)] + 100 * theirs%first), 'a row of a matrix')
    text = '......'
    call MPI_Sendrecv('abc', 3, MPI_CHARACTER, other, 4, text(2:4), 3, MPI_CHARACTER, theirs%first, 4, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, code)
    call expect(text == '.abc..', 'a part of a string')
    truth = .false.
    call MPI_Sendrecv(.true., 1, MPI_LOGICAL, other, 5, truth, 1, MPI_LOGICAL, theirs%first, 5, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, code)
    call expect(truth, 'a logical')
  end subroutine
end program
