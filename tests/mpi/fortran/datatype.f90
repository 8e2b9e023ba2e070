! Derived datatypes (MPI 5.0, 5), each sent to oneself or to the next rank.
program datatype
  use mpi
  implicit none
  integer :: rank, ranks, failures
  call start()
  call vectors()
  call indexed()
  call structure()
  call addresses()
  call subarrays()
  call resized()
  call packing()
  call inquiries()
  call f90_types()
  call finish()
contains
  include 'expect.inc'

  subroutine pass(from, from_count, from_type, to, to_count, to_type)
    integer, intent(in) :: from(*), from_count, from_type, to_count, to_type
    integer, intent(inout) :: to(*)
    integer :: code
    call MPI_Sendrecv(from, from_count, from_type, rank, 0, to, to_count, to_type, rank, 0, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, code)
    call equal(code, MPI_SUCCESS, 'MPI_Sendrecv')
  end subroutine

  ! A row of a matrix, which lies in columns.
  subroutine vectors()
    integer :: code, row, matrix(3, 4), found(4), i, twice, size
    matrix = reshape([(i, i=1, 12)], [3, 4])
    call MPI_Type_vector(4, 1, 3, MPI_INTEGER, row, code)
    call MPI_Type_commit(row, code)
    call pass(matrix(2, 1), 1, row, found, 4, MPI_INTEGER)
    call expect(all(found == [2, 5, 8, 11]), 'MPI_Type_vector')
    call MPI_Type_create_hvector(2, 2, 12_MPI_ADDRESS_KIND, MPI_INTEGER, twice, code)
    call MPI_Type_commit(twice, code)
    call pass(matrix, 1, twice, found, 4, MPI_INTEGER)
    call expect(all(found == [1, 2, 4, 5]), 'MPI_Type_create_hvector')
    call MPI_Type_size(row, size, code)
    call equal(size, 16, 'MPI_Type_size')
    call MPI_Type_free(row, code)
    call equal(row, MPI_DATATYPE_NULL, 'MPI_Type_free')
    call MPI_Type_free(twice, code)
  end subroutine

  subroutine indexed()
    integer :: code, type, x(10), found(4), i
    x = [(i, i=1, 10)]
    call MPI_Type_indexed(2, [3, 1], [6, 0], MPI_INTEGER, type, code)
    call MPI_Type_commit(type, code)
    call pass(x, 1, type, found, 4, MPI_INTEGER)
    call expect(all(found == [7, 8, 9, 1]), 'MPI_Type_indexed')
    call MPI_Type_free(type, code)
    call MPI_Type_create_hindexed(2, [2, 2], [16_MPI_ADDRESS_KIND, 0_MPI_ADDRESS_KIND], MPI_INTEGER, type, code)
    call MPI_Type_commit(type, code)
    call pass(x, 1, type, found, 4, MPI_INTEGER)
    call expect(all(found == [5, 6, 1, 2]), 'MPI_Type_create_hindexed')
    call MPI_Type_free(type, code)
    call MPI_Type_create_indexed_block(2, 2, [8, 2], MPI_INTEGER, type, code)
    call MPI_Type_commit(type, code)
    call pass(x, 1, type, found, 4, MPI_INTEGER)
    call expect(all(found == [9, 10, 3, 4]), 'MPI_Type_create_indexed_block')
    call MPI_Type_free(type, code)
  end subroutine

  ! A derived type with holes, arrays of it, by addresses relative to its beginning.
  subroutine structure()
    type :: particle
      sequence
      double precision :: position(3)
      integer :: kind
      character(len=4) :: name
      logical :: active
      integer :: unused
    end type
    type(particle) :: mine(2), theirs(2)
    integer(kind=MPI_ADDRESS_KIND) :: places(4), start_address
    integer :: code, plain, type, i
    mine = particle([1d0, 2d0, 3d0], 5, 'abcd', .true., 1)
    mine(2)%position = rank
    theirs = particle([0d0, 0d0, 0d0], 0, '....', .false., -1)
    call MPI_Get_address(mine(1), start_address, code)
    call MPI_Get_address(mine(1)%position, places(1), code)
    call MPI_Get_address(mine(1)%kind, places(2), code)
    call MPI_Get_address(mine(1)%name, places(3), code)
    call MPI_Get_address(mine(1)%active, places(4), code)
    places = [(MPI_Aint_diff(places(i), start_address), i=1, 4)]
    call MPI_Type_create_struct(4, [3, 1, 4, 1], places, [MPI_DOUBLE_PRECISION, MPI_INTEGER, MPI_CHARACTER, MPI_LOGICAL], &
                                plain, code)
    call MPI_Type_create_resized(plain, 0_MPI_ADDRESS_KIND, int(storage_size(mine) / 8, MPI_ADDRESS_KIND), type, code)
    call MPI_Type_commit(type, code)
    call MPI_Sendrecv(mine, 2, type, mod(rank + 1, ranks), 1, theirs, 2, type, mod(rank + ranks - 1, ranks), 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    call expect(all(theirs(1)%position == [1d0, 2d0, 3d0]), 'MPI_Type_create_struct: reals')
    call expect(all(theirs(2)%position == mod(rank + ranks - 1, ranks)), 'MPI_Type_create_struct: the second')
    call equal(theirs(2)%kind, 5, 'MPI_Type_create_struct: integer')
    call expect(theirs(2)%name == 'abcd', 'MPI_Type_create_struct: characters')
    call expect(theirs(2)%active, 'MPI_Type_create_struct: logical')
    call equal(theirs(1)%unused, -1, 'MPI_Type_create_struct: what it leaves out')
    call MPI_Type_free(type, code)
    call MPI_Type_free(plain, code)
  end subroutine

  ! Variables anywhere, by absolute addresses from MPI_BOTTOM.
  subroutine addresses()
    integer, save, asynchronous :: i
    double precision, save, asynchronous :: d(2)
    integer(kind=MPI_ADDRESS_KIND) :: places(2)
    integer :: code, type, n
    double precision :: both(2)
    call MPI_Get_address(i, places(1), code)
    call MPI_Get_address(d, places(2), code)
    call MPI_Type_create_struct(2, [1, 2], places, [MPI_INTEGER, MPI_DOUBLE_PRECISION], type, code)
    call MPI_Type_commit(type, code)
    i = merge(17, 0, rank == 0)
    d = merge(2.5d0, 0d0, rank == 0)
    call MPI_F_sync_reg(i)
    call MPI_F_sync_reg(d)
    call MPI_Bcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD, code)
    call MPI_F_sync_reg(i)
    call MPI_F_sync_reg(d)
    n = i
    both = d
    call equal(n, 17, 'MPI_BOTTOM: integer')
    call expect(all(both == 2.5d0), 'MPI_BOTTOM: reals')
    call MPI_Type_free(type, code)
  end subroutine

  subroutine subarrays()
    integer :: code, type, x(4, 5), found(6), i
    x = reshape([(i, i=1, 20)], [4, 5])
    call MPI_Type_create_subarray(2, [4, 5], [2, 3], [1, 2], MPI_ORDER_FORTRAN, MPI_INTEGER, type, code)
    call MPI_Type_commit(type, code)
    call pass(x, 1, type, found, 6, MPI_INTEGER)
    call expect(all(found == reshape(x(2:3, 3:5), [6])), 'MPI_Type_create_subarray in the order of Fortran')
    call MPI_Type_free(type, code)
    call MPI_Type_create_subarray(2, [5, 4], [3, 2], [2, 1], MPI_ORDER_C, MPI_INTEGER, type, code)
    call MPI_Type_commit(type, code)
    found = 0
    call pass(x, 1, type, found, 6, MPI_INTEGER)
    call expect(all(found == reshape(x(2:3, 3:5), [6])), 'MPI_Type_create_subarray in the order of C')
    call MPI_Type_free(type, code)
  end subroutine

  subroutine resized()
    integer :: code, type
    integer(kind=MPI_ADDRESS_KIND) :: lb, extent
    integer(kind=MPI_COUNT_KIND) :: large_lb, large_extent
    call MPI_Type_create_resized(MPI_REAL, -4_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND, type, code)
    call MPI_Type_get_extent(type, lb, extent, code)
    call expect(lb == -4 .and. extent == 16, 'MPI_Type_create_resized')
    call MPI_Type_get_true_extent(type, lb, extent, code)
    call expect(lb == 0 .and. extent == 4, 'MPI_Type_get_true_extent')
    call MPI_Type_get_extent_x(type, large_lb, large_extent, code)
    call expect(large_lb == -4 .and. large_extent == 16, 'MPI_Type_get_extent_x')
    call MPI_Type_free(type, code)
  end subroutine

  subroutine packing()
    integer :: code, position, size, i
    character(len=1) :: buffer(100)
    double precision :: d
    call MPI_Pack_size(1, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, size, code)
    call expect(size >= 8, 'MPI_Pack_size')
    position = 0
    call MPI_Pack(rank, 1, MPI_INTEGER, buffer, 100, position, MPI_COMM_WORLD, code)
    call MPI_Pack(1.5d0, 1, MPI_DOUBLE_PRECISION, buffer, 100, position, MPI_COMM_WORLD, code)
    call expect(position >= 12, 'MPI_Pack')
    position = 0
    call MPI_Unpack(buffer, 100, position, i, 1, MPI_INTEGER, MPI_COMM_WORLD, code)
    call MPI_Unpack(buffer, 100, position, d, 1, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, code)
    call expect(i == rank .and. d == 1.5d0, 'MPI_Unpack')
  end subroutine

  subroutine inquiries()
    integer :: code, type, other, integers(3), types(1), n(3), combiner, length
    integer(kind=MPI_ADDRESS_KIND) :: places(1)
    character(len=MPI_MAX_OBJECT_NAME) :: name
    call MPI_Type_vector(4, 1, 3, MPI_INTEGER, type, code)
    call MPI_Type_get_envelope(type, n(1), n(2), n(3), combiner, code)
    call expect(all(n == [3, 0, 1]), 'MPI_Type_get_envelope')
    call equal(combiner, MPI_COMBINER_VECTOR, 'MPI_Type_get_envelope: combiner')
    call MPI_Type_get_contents(type, 3, 0, 1, integers, places, types, code)
    call expect(all(integers == [4, 1, 3]), 'MPI_Type_get_contents')
    call equal(types(1), MPI_INTEGER, 'MPI_Type_get_contents: type')
    call MPI_Type_set_name(type, 'a row   ', code)
    call MPI_Type_get_name(type, name, length, code)
    call expect(name == 'a row' .and. length == 5, 'MPI_Type_get_name')
    call MPI_Type_get_name(MPI_DOUBLE_PRECISION, name, length, code)
    call expect(name == 'MPI_DOUBLE_PRECISION', 'MPI_Type_get_name of a predefined type')
    call MPI_Type_dup(type, other, code)
    call MPI_Type_free(other, code)
    call MPI_Type_free(type, code)
  end subroutine

  ! Types by precision and range: predefined, the same again for the same question, and not to be freed (MPI 5.0, 19.1.9).
  subroutine f90_types()
    integer, parameter :: wide = selected_real_kind(15, 300), long = selected_int_kind(12)
    real(kind=wide) :: x, sum
    complex(kind=wide) :: z, z_sum
    integer(kind=long) :: i, most
    integer :: code, real_type, again, complex_type, integer_type, size, n(3), combiner, asked(2), nothing(1), class, ignored
    integer(kind=MPI_ADDRESS_KIND) :: no_places(1)
    call MPI_Type_create_f90_real(15, 300, real_type, code)
    call MPI_Type_create_f90_real(15, 300, again, code)
    call equal(again, real_type, 'MPI_Type_create_f90_real: the same again')
    call MPI_Type_size(real_type, size, code)
    call equal(size, 8, 'MPI_Type_create_f90_real: size')
    x = rank
    call MPI_Allreduce(x, sum, 1, real_type, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(sum == ranks * (ranks - 1) / 2, 'MPI_Type_create_f90_real: sum')
    call MPI_Type_get_envelope(real_type, n(1), n(2), n(3), combiner, code)
    call equal(combiner, MPI_COMBINER_F90_REAL, 'MPI_COMBINER_F90_REAL')
    call expect(all(n == [2, 0, 0]), 'MPI_Type_get_envelope of a type by precision')
    call MPI_Type_get_contents(real_type, 2, 0, 0, asked, no_places, nothing, code)
    call expect(all(asked == [15, 300]), 'MPI_Type_get_contents of a type by precision')
    call MPI_Type_create_f90_complex(15, MPI_UNDEFINED, complex_type, code)
    z = (1, 1)
    call MPI_Allreduce(z, z_sum, 1, complex_type, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(z_sum == ranks * z, 'MPI_Type_create_f90_complex: sum')
    call MPI_Type_create_f90_integer(12, integer_type, code)
    i = 10_long**12 - rank
    call MPI_Allreduce(i, most, 1, integer_type, MPI_MAX, MPI_COMM_WORLD, code)
    call expect(most == 10_long**12, 'MPI_Type_create_f90_integer: maximum')
    call MPI_Type_create_f90_integer(2, integer_type, code)
    call MPI_Type_size(integer_type, size, code)
    call equal(size, 1, 'MPI_Type_create_f90_integer: the smallest')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, code)
    call MPI_Type_create_f90_real(1000, MPI_UNDEFINED, again, code)
    call MPI_Error_class(code, class, ignored)
    call equal(class, MPI_ERR_ARG, 'MPI_Type_create_f90_real: no such kind')
    call MPI_Type_free(real_type, code)
    call MPI_Error_class(code, class, ignored)
    call equal(class, MPI_ERR_TYPE, 'a type by precision cannot be freed')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, code)
  end subroutine
end program
