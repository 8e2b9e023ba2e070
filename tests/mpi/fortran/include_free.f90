! mpif.h in free form, in subroutines that include it by themselves.
program include_free
  implicit none
  include 'mpif.h'
  integer :: rank, ranks, failures
  call start()
  call kinds()
  call sentinels()
  call addresses()
  call finish()
contains
  include 'expect.inc'

  subroutine kinds()
    integer(kind=MPI_ADDRESS_KIND) :: address
    integer(kind=MPI_COUNT_KIND) :: count
    integer(kind=MPI_OFFSET_KIND) :: offset
    integer(kind=MPI_INTEGER_KIND) :: number
    call equal(storage_size(address), 64, 'MPI_ADDRESS_KIND')
    call equal(storage_size(count), 64, 'MPI_COUNT_KIND')
    call equal(storage_size(offset), 64, 'MPI_OFFSET_KIND')
    call equal(storage_size(number), storage_size(1), 'MPI_INTEGER_KIND')
    call expect(.not. MPI_SUBARRAYS_SUPPORTED, 'MPI_SUBARRAYS_SUPPORTED')
    call expect(.not. MPI_ASYNC_PROTECTS_NONBLOCKING, 'MPI_ASYNC_PROTECTS_NONBLOCKING')
    call equal(MPI_VERSION, 5, 'MPI_VERSION')
    call equal(MPI_MAX_OBJECT_NAME, 127, 'lengths of strings are one less than in C')
  end subroutine

  subroutine sentinels()
    integer :: code, status(MPI_STATUS_SIZE), requests(2), x
    status = -99
    x = rank
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 3, x, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    call equal(x, rank, 'MPI_STATUS_IGNORE')
    call expect(all(MPI_STATUS_IGNORE == 0), 'MPI_STATUS_IGNORE is not written to')
    call MPI_Irecv(x, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, requests(1), code)
    call MPI_Irecv(x, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, requests(2), code)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
    call equal(code, MPI_SUCCESS, 'MPI_STATUSES_IGNORE')
    call expect(all(MPI_STATUSES_IGNORE == 0), 'MPI_STATUSES_IGNORE is not written to')
    call MPI_Recv(x, 1, MPI_INTEGER, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, status, code)
    call equal(status(MPI_SOURCE), MPI_PROC_NULL, 'status of MPI_PROC_NULL: source')
    call equal(status(MPI_TAG), MPI_ANY_TAG, 'status of MPI_PROC_NULL: tag')
  end subroutine

  subroutine addresses()
    integer(kind=MPI_ADDRESS_KIND) :: first, second, size
    integer :: code
    double precision :: pair(2)
    call MPI_Get_address(pair(1), first, code)
    call MPI_Get_address(pair(2), second, code)
    size = MPI_Aint_diff(second, first)
    call expect(size == 8, 'MPI_Aint_diff')
    call expect(MPI_Aint_add(first, size) == second, 'MPI_Aint_add')
    call expect(first == loc(pair), 'MPI_Get_address')
    call MPI_F_sync_reg(pair)
  end subroutine
end program
