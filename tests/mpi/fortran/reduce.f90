! Operations on Fortran's datatypes, and operations written in Fortran (MPI 5.0, 6.9).
module operations
  use mpi
  implicit none
  integer, save :: seen_datatype = -1, calls = 0
contains
  ! Complex product by hand.
  subroutine multiply(invec, inoutvec, len, datatype)
    integer, intent(in) :: len, datatype
    complex, intent(in) :: invec(len)
    complex, intent(inout) :: inoutvec(len)
    inoutvec = invec * inoutvec
    seen_datatype = datatype
    calls = calls + 1
  end subroutine

  ! a then b for pairs of (slope, offset): does not commute.
  subroutine compose(invec, inoutvec, len, datatype)
    integer, intent(in) :: len, datatype
    integer, intent(in) :: invec(2, len)
    integer, intent(inout) :: inoutvec(2, len)
    integer :: i
    do i = 1, len
      inoutvec(2, i) = mod(invec(2, i) * inoutvec(1, i) + inoutvec(2, i), 1009)
      inoutvec(1, i) = mod(invec(1, i) * inoutvec(1, i), 1009)
    end do
    seen_datatype = datatype
  end subroutine
end module

program reduce
  use mpi
  use operations
  implicit none
  integer :: rank, ranks, failures
  call start()
  call numbers()
  call sized_numbers()
  call logicals()
  call bits()
  call pairs()
  call own_operation()
  call own_order()
  call sizes()
  call finish()
contains
  include 'expect.inc'

  subroutine numbers()
    integer :: code, n
    real :: r, r_sum
    double precision :: d, d_product
    complex :: c, c_sum
    complex(kind=8) :: z, z_product, z_wanted
    n = ranks * (ranks + 1) / 2
    r = rank + 1
    call MPI_Allreduce(r, r_sum, 1, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(r_sum == n, 'sum of MPI_REAL')
    d = 1d0 + rank
    call MPI_Allreduce(d, d_product, 1, MPI_DOUBLE_PRECISION, MPI_PROD, MPI_COMM_WORLD, code)
    call expect(abs(d_product - gamma(ranks + 1d0)) < 1d-9 * d_product, 'product of MPI_DOUBLE_PRECISION')
    c = cmplx(rank + 1, -rank - 1)
    call MPI_Allreduce(c, c_sum, 1, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(c_sum == cmplx(n, -n), 'sum of MPI_COMPLEX')
    z = (0d0, 1d0)
    call MPI_Allreduce(z, z_product, 1, MPI_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD, code)
    z_wanted = (0d0, 1d0)**ranks
    call expect(abs(z_product - z_wanted) < 1d-12, 'product of MPI_DOUBLE_COMPLEX')
  end subroutine

  subroutine sized_numbers()
    integer :: code
    integer(kind=1) :: i1
    integer(kind=2) :: i2
    integer(kind=8) :: i8
    integer(kind=16) :: i16
    real(kind=4) :: r4
    real(kind=8) :: r8
    real(kind=16) :: r16
    complex(kind=4) :: c8
    complex(kind=8) :: c16
    complex(kind=16) :: c32
    i1 = int(rank, 1)
    call MPI_Allreduce(MPI_IN_PLACE, i1, 1, MPI_INTEGER1, MPI_MAX, MPI_COMM_WORLD, code)
    call expect(i1 == ranks - 1, 'MPI_INTEGER1')
    i2 = int(-rank, 2)
    call MPI_Allreduce(MPI_IN_PLACE, i2, 1, MPI_INTEGER2, MPI_MIN, MPI_COMM_WORLD, code)
    call expect(i2 == 1 - ranks, 'MPI_INTEGER2')
    i8 = 2_8**40
    call MPI_Allreduce(MPI_IN_PLACE, i8, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(i8 == ranks * 2_8**40, 'MPI_INTEGER8')
    i16 = 2_16**100
    call MPI_Allreduce(MPI_IN_PLACE, i16, 1, MPI_INTEGER16, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(i16 == ranks * 2_16**100, 'MPI_INTEGER16')
    r4 = 0.25
    call MPI_Allreduce(MPI_IN_PLACE, r4, 1, MPI_REAL4, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(r4 == 0.25 * ranks, 'MPI_REAL4')
    r8 = -rank
    call MPI_Allreduce(MPI_IN_PLACE, r8, 1, MPI_REAL8, MPI_MAX, MPI_COMM_WORLD, code)
    call expect(r8 == 0, 'MPI_REAL8')
    r16 = 1 + 2._16**(-100)
    call MPI_Allreduce(MPI_IN_PLACE, r16, 1, MPI_REAL16, MPI_MAX, MPI_COMM_WORLD, code)
    call expect(r16 == 1 + 2._16**(-100), 'MPI_REAL16')
    c8 = (1., 2.)
    call MPI_Allreduce(MPI_IN_PLACE, c8, 1, MPI_COMPLEX8, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(c8 == ranks * (1., 2.), 'MPI_COMPLEX8')
    c16 = (1d0, 2d0)
    call MPI_Allreduce(MPI_IN_PLACE, c16, 1, MPI_COMPLEX16, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(c16 == ranks * (1d0, 2d0), 'MPI_COMPLEX16')
    c32 = (1._16, 2._16)
    call MPI_Allreduce(MPI_IN_PLACE, c32, 1, MPI_COMPLEX32, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(c32 == ranks * (1._16, 2._16), 'MPI_COMPLEX32')
  end subroutine

  subroutine logicals()
    integer :: code
    logical :: first, x(3), y(3)
    logical(kind=1) :: small
    logical(kind=8) :: large
    first = rank == 0
    x = [first, .true., .false.]
    call MPI_Allreduce(x, y, 3, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, code)
    call expect((y(1) .eqv. ranks == 1) .and. y(2) .and. .not. y(3), 'MPI_LAND')
    call expect(count(y) == merge(2, 1, ranks == 1), 'MPI_LAND: what counts as true')
    call MPI_Allreduce(x, y, 3, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, code)
    call expect(y(1) .and. y(2) .and. .not. y(3), 'MPI_LOR')
    call MPI_Allreduce(x, y, 3, MPI_LOGICAL, MPI_LXOR, MPI_COMM_WORLD, code)
    call expect(y(1) .and. (y(2) .eqv. mod(ranks, 2) == 1) .and. .not. y(3), 'MPI_LXOR')
    small = first
    call MPI_Allreduce(MPI_IN_PLACE, small, 1, MPI_LOGICAL1, MPI_LOR, MPI_COMM_WORLD, code)
    call expect(logical(small), 'MPI_LOGICAL1')
    large = first
    call MPI_Allreduce(MPI_IN_PLACE, large, 1, MPI_LOGICAL8, MPI_LAND, MPI_COMM_WORLD, code)
    call expect(logical(large) .eqv. ranks == 1, 'MPI_LOGICAL8')
  end subroutine

  subroutine bits()
    integer :: code, x
    call MPI_Allreduce(ibset(0, rank), x, 1, MPI_INTEGER, MPI_BOR, MPI_COMM_WORLD, code)
    call equal(x, 2**ranks - 1, 'MPI_BOR')
    call MPI_Allreduce(ibclr(-1, rank), x, 1, MPI_INTEGER, MPI_BAND, MPI_COMM_WORLD, code)
    call equal(x, not(2**ranks - 1), 'MPI_BAND')
    call MPI_Allreduce(ior(ibset(0, rank), 4096), x, 1, MPI_INTEGER, MPI_BXOR, MPI_COMM_WORLD, code)
    call equal(x, 2**ranks - 1 + 4096 * mod(ranks, 2), 'MPI_BXOR')
  end subroutine

  subroutine pairs()
    integer :: code, i(2), i_out(2)
    real :: r(2), r_out(2)
    double precision :: d(2), d_out(2)
    i = [abs(rank - ranks / 2), rank]
    call MPI_Allreduce(i, i_out, 1, MPI_2INTEGER, MPI_MINLOC, MPI_COMM_WORLD, code)
    call expect(all(i_out == [0, ranks / 2]), 'MPI_MINLOC of MPI_2INTEGER')
    r = [-abs(rank - ranks / 2), rank]
    call MPI_Allreduce(r, r_out, 1, MPI_2REAL, MPI_MAXLOC, MPI_COMM_WORLD, code)
    call expect(all(r_out == [0, ranks / 2]), 'MPI_MAXLOC of MPI_2REAL')
    d = [1d0, rank + 10d0]
    call MPI_Allreduce(d, d_out, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, code)
    call expect(all(d_out == [1d0, 10d0]), 'MPI_MAXLOC of MPI_2DOUBLE_PRECISION: the lowest index')
  end subroutine

  subroutine own_operation()
    integer :: code, op, request
    logical :: commutes
    complex :: x(5), y(5)
    call MPI_Op_create(multiply, .true., op, code)
    call MPI_Op_commutative(op, commutes, code)
    call expect(commutes, 'MPI_Op_commutative')
    x = (0., 1.)
    call MPI_Allreduce(x, y, 5, MPI_COMPLEX, op, MPI_COMM_WORLD, code)
    call expect(all(abs(y - (0., 1.)**ranks) < 1e-5), 'own operation')
    if (calls > 0) call equal(seen_datatype, MPI_COMPLEX, 'own operation: its datatype')
    if (ranks > 1) then
      call MPI_Ireduce(x, y, 5, MPI_COMPLEX, op, 0, MPI_COMM_WORLD, request, code)
      call MPI_Wait(request, MPI_STATUS_IGNORE, code)
      if (rank == 0) call expect(all(abs(y - (0., 1.)**ranks) < 1e-5), 'own operation, non-blocking')
    end if
    call MPI_Op_free(op, code)
    call equal(op, MPI_OP_NULL, 'MPI_Op_free')
  end subroutine

  ! On a derived datatype, whose handle the function is given.
  subroutine own_order()
    integer :: code, op, type, i, x(2, 3), y(2, 3), wanted(2)
    logical :: commutes
    call MPI_Op_create(compose, .false., op, code)
    call MPI_Op_commutative(op, commutes, code)
    call expect(.not. commutes, 'MPI_Op_commutative: no')
    call MPI_Type_contiguous(2, MPI_INTEGER, type, code)
    call MPI_Type_commit(type, code)
    do i = 1, 3
      x(:, i) = [rank + 2, rank * rank + i]
    end do
    seen_datatype = -1
    call MPI_Allreduce(x, y, 3, type, op, MPI_COMM_WORLD, code)
    wanted = [2, 3]
    do i = 1, ranks - 1
      wanted = [mod(wanted(1) * (i + 2), 1009), mod(wanted(2) * (i + 2) + i * i + 3, 1009)]
    end do
    call expect(all(y(:, 3) == wanted), 'an operation that does not commute')
    call MPI_Scan(x, y, 3, type, op, MPI_COMM_WORLD, code)
    if (rank == ranks - 1) call expect(all(y(:, 3) == wanted), 'MPI_Scan with it')
    if (rank == 0) call expect(all(y == x), 'MPI_Scan with it: the first')
    call MPI_Reduce_local(x, y, 3, type, op, code)
    call expect(seen_datatype /= -1, 'MPI_Reduce_local calls it')
    call MPI_Op_free(op, code)
    call MPI_Type_free(type, code)
  end subroutine

  subroutine sizes()
    integer :: code, n
    real :: array(3, 3)
    character(len=5) :: text
    complex(kind=8) :: z
    call size_of(MPI_INTEGER, 4, 'MPI_INTEGER')
    call size_of(MPI_REAL, 4, 'MPI_REAL')
    call size_of(MPI_DOUBLE_PRECISION, 8, 'MPI_DOUBLE_PRECISION')
    call size_of(MPI_COMPLEX, 8, 'MPI_COMPLEX')
    call size_of(MPI_DOUBLE_COMPLEX, 16, 'MPI_DOUBLE_COMPLEX')
    call size_of(MPI_LOGICAL, 4, 'MPI_LOGICAL')
    call size_of(MPI_CHARACTER, 1, 'MPI_CHARACTER')
    call size_of(MPI_2INTEGER, 8, 'MPI_2INTEGER')
    call size_of(MPI_2REAL, 8, 'MPI_2REAL')
    call size_of(MPI_2DOUBLE_PRECISION, 16, 'MPI_2DOUBLE_PRECISION')
    call size_of(MPI_REAL2, 2, 'MPI_REAL2')
    call size_of(MPI_COMPLEX4, 4, 'MPI_COMPLEX4')
    call size_of(MPI_AINT, 8, 'MPI_AINT')
    call size_of(MPI_COUNT, 8, 'MPI_COUNT')
    call size_of(MPI_OFFSET, 8, 'MPI_OFFSET')
    call MPI_Sizeof(array, n, code)
    call equal(n, 4, 'MPI_Sizeof of an array')
    call MPI_Sizeof(text, n, code)
    call equal(n, 5, 'MPI_Sizeof of a string')
    call MPI_Sizeof(z, n, code)
    call equal(n, 16, 'MPI_Sizeof of a complex')
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, n, code)
    call equal(n, MPI_REAL8, 'MPI_Type_match_size')
  end subroutine

  subroutine size_of(datatype, bytes, name)
    integer, intent(in) :: datatype, bytes
    character(len=*), intent(in) :: name
    integer :: code, n
    integer(kind=MPI_COUNT_KIND) :: large
    integer(kind=MPI_ADDRESS_KIND) :: lb, extent
    call MPI_Type_size(datatype, n, code)
    call equal(n, bytes, 'size of '//name)
    call MPI_Type_size_x(datatype, large, code)
    call expect(large == bytes, 'MPI_Type_size_x of '//name)
    call MPI_Type_get_extent(datatype, lb, extent, code)
    call expect(lb == 0 .and. extent == bytes, 'extent of '//name)
  end subroutine
end program
