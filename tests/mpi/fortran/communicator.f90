! Communicators, groups, Cartesian topologies, error handlers in Fortran (MPI 5.0, 7, 8, 9.3).
module handlers
  use mpi
  implicit none
  integer, save :: heard_comm = -1, heard_code = -1, heard = 0
contains
  subroutine handler(comm, error_code)
    integer :: comm, error_code
    heard_comm = comm
    heard_code = error_code
    heard = heard + 1
  end subroutine
end module

program communicator
  use mpi
  use handlers
  implicit none
  integer :: rank, ranks, failures
  call start()
  call duplicates()
  call splits()
  call groups()
  call grids()
  call error_handlers()
  call error_codes()
  call unsupported()
  call environment()
  call finish()
contains
  include 'expect.inc'

  subroutine duplicates()
    integer :: code, copy, later, other, result, request, requests(2), status(MPI_STATUS_SIZE), n
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, code)
    call MPI_Comm_compare(MPI_COMM_WORLD, copy, result, code)
    call equal(result, MPI_CONGRUENT, 'MPI_Comm_compare')
    ! the communicator comes into being while the request completes
    call MPI_Comm_idup(copy, later, request, code)
    call MPI_Wait(request, status, code)
    call MPI_Comm_compare(copy, later, result, code)
    call equal(result, MPI_CONGRUENT, 'MPI_Comm_idup')
    call MPI_Comm_size(later, n, code)
    call equal(n, ranks, 'MPI_Comm_idup: size')
    call MPI_Comm_free(later, code)
    call MPI_Comm_idup_with_info(copy, MPI_INFO_NULL, later, requests(1), code)
    call MPI_Comm_idup(copy, other, requests(2), code)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
    call MPI_Comm_compare(later, other, result, code)
    call equal(result, MPI_CONGRUENT, 'two of MPI_Comm_idup at a time')
    call MPI_Comm_free(later, code)
    call MPI_Comm_free(other, code)
    call MPI_Comm_free(copy, code)
    call equal(copy, MPI_COMM_NULL, 'MPI_Comm_free')
  end subroutine

  subroutine splits()
    integer :: code, part, n, r
    logical :: flag
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, part, code)
    call MPI_Comm_size(part, n, code)
    call equal(n, (ranks + 1 - mod(rank, 2)) / 2, 'MPI_Comm_split: size')
    call MPI_Comm_rank(part, r, code)
    call equal(r, (ranks - 1 - rank) / 2, 'MPI_Comm_split: rank')
    call MPI_Comm_test_inter(part, flag, code)
    call expect(.not. flag, 'MPI_Comm_test_inter')
    call MPI_Comm_free(part, code)
    call MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, part, code)
    call equal(part, MPI_COMM_NULL, 'MPI_Comm_split: MPI_UNDEFINED')
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, part, code)
    call expect(part /= MPI_COMM_NULL, 'MPI_Comm_split_type')
    call MPI_Comm_free(part, code)
  end subroutine

  subroutine groups()
    integer :: code, world, first, ranges(3, 1), r, result, translated(2), comm
    call MPI_Comm_group(MPI_COMM_WORLD, world, code)
    ranges(:, 1) = [0, ranks - 1, 2]
    call MPI_Group_range_incl(world, 1, ranges, first, code)
    call MPI_Group_size(first, r, code)
    call equal(r, (ranks + 1) / 2, 'MPI_Group_range_incl')
    call MPI_Group_rank(first, r, code)
    call equal(r, merge(rank / 2, MPI_UNDEFINED, mod(rank, 2) == 0), 'MPI_Group_rank')
    call MPI_Group_translate_ranks(first, 2, [0, MPI_PROC_NULL], world, translated, code)
    call expect(all(translated == [0, MPI_PROC_NULL]), 'MPI_Group_translate_ranks')
    call MPI_Comm_create(MPI_COMM_WORLD, first, comm, code)
    call expect((comm == MPI_COMM_NULL) .eqv. mod(rank, 2) == 1, 'MPI_Comm_create')
    if (comm /= MPI_COMM_NULL) call MPI_Comm_free(comm, code)
    call MPI_Group_free(first, code)
    call MPI_Group_incl(world, 0, [integer ::], first, code)
    call equal(first, MPI_GROUP_EMPTY, 'MPI_Group_incl of nobody')
    call MPI_Group_compare(world, first, result, code)
    call equal(result, MPI_UNEQUAL, 'MPI_Group_compare')
    call MPI_Group_free(world, code)
    call equal(world, MPI_GROUP_NULL, 'MPI_Group_free')
  end subroutine

  subroutine grids()
    integer :: code, grid, line, dims(2), found(2), coords(2), r, source, dest, n, kind
    logical :: periods(2)
    dims = 0
    call MPI_Dims_create(ranks, 2, dims, code)
    call equal(product(dims), ranks, 'MPI_Dims_create')
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .true., grid, code)
    call MPI_Topo_test(grid, kind, code)
    call equal(kind, MPI_CART, 'MPI_Topo_test')
    call MPI_Cartdim_get(grid, n, code)
    call equal(n, 2, 'MPI_Cartdim_get')
    call MPI_Cart_get(grid, 2, found, periods, coords, code)
    call expect(all(found == dims), 'MPI_Cart_get: dims')
    call expect(periods(1) .and. .not. periods(2), 'MPI_Cart_get: periods')
    call MPI_Cart_rank(grid, coords, r, code)
    call MPI_Comm_rank(grid, n, code)
    call equal(r, n, 'MPI_Cart_rank')
    call MPI_Cart_coords(grid, r, 2, found, code)
    call expect(all(found == coords), 'MPI_Cart_coords')
    call MPI_Cart_shift(grid, 1, 1, source, dest, code)
    if (coords(2) == 0) call equal(source, MPI_PROC_NULL, 'MPI_Cart_shift: source')
    if (coords(2) == dims(2) - 1) call equal(dest, MPI_PROC_NULL, 'MPI_Cart_shift: dest')
    call MPI_Cart_sub(grid, [.true., .false.], line, code)
    call MPI_Comm_size(line, n, code)
    call equal(n, dims(1), 'MPI_Cart_sub')
    call MPI_Comm_free(line, code)
    call MPI_Comm_free(grid, code)
  end subroutine

  subroutine error_handlers()
    integer :: code, comm, errhandler, found, class, ignored
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, code)
    call MPI_Comm_create_errhandler(handler, errhandler, code)
    call MPI_Comm_set_errhandler(comm, errhandler, code)
    call MPI_Comm_get_errhandler(comm, found, code)
    call equal(found, errhandler, 'MPI_Comm_get_errhandler')
    call MPI_Errhandler_free(found, code)
    call MPI_Errhandler_free(errhandler, code)
    call equal(errhandler, MPI_ERRHANDLER_NULL, 'MPI_Errhandler_free')
    call MPI_Send(rank, 1, MPI_INTEGER, ranks + 5, 0, comm, code)
    call equal(heard, 1, 'an error handler in Fortran: calls')
    call equal(heard_comm, comm, 'an error handler in Fortran: communicator')
    call equal(heard_code, code, 'an error handler in Fortran: code')
    call MPI_Error_class(code, class, ignored)
    call equal(class, MPI_ERR_RANK, 'its class')
    call MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER, code)
    call equal(heard_code, MPI_ERR_OTHER, 'MPI_Comm_call_errhandler')
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, code)
    call MPI_Send(rank, 1, MPI_DATATYPE_NULL, 0, 0, comm, code)
    call MPI_Error_class(code, class, ignored)
    call equal(class, MPI_ERR_TYPE, 'MPI_ERRORS_RETURN')
    call equal(heard, 2, 'a handler that has been replaced')
    call MPI_Comm_free(comm, code)
  end subroutine

  subroutine error_codes()
    integer :: code, class, own, length, found
    character(len=MPI_MAX_ERROR_STRING) :: text
    call MPI_Add_error_class(class, code)
    call MPI_Add_error_code(class, own, code)
    call MPI_Add_error_string(own, 'no milk', code)
    call MPI_Error_string(own, text, length, code)
    call expect(text == 'no milk' .and. length == 7, 'MPI_Add_error_string')
    call MPI_Error_class(own, found, code)
    call equal(found, class, 'MPI_Add_error_code')
    text = 'x'
    call MPI_Error_string(MPI_ERR_TRUNCATE, text, length, code)
    call expect(length == len_trim(text) .and. length > 5, 'MPI_Error_string')
  end subroutine

  ! What C does not have yet says so in Fortran, too.
  subroutine unsupported()
    integer :: code, comm, class, ignored, fresh
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, code)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, code)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, code)
    call MPI_Comm_spawn('program', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, comm, fresh, MPI_ERRCODES_IGNORE, code)
    call MPI_Error_class(code, class, ignored)
    call expect(class == MPI_SUCCESS .or. class == MPI_ERR_UNSUPPORTED_OPERATION .or. class == MPI_ERR_SPAWN, 'MPI_Comm_spawn')
    call MPI_Dist_graph_create_adjacent(comm, 0, [integer ::], MPI_UNWEIGHTED, 0, [integer ::], MPI_UNWEIGHTED, MPI_INFO_NULL, &
                                        .false., fresh, code)
    call MPI_Error_class(code, class, ignored)
    call expect(class == MPI_SUCCESS .or. class == MPI_ERR_UNSUPPORTED_OPERATION, 'MPI_Dist_graph_create_adjacent')
    if (class == MPI_SUCCESS) call MPI_Comm_free(fresh, code)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, code)
    call MPI_Comm_free(comm, code)
  end subroutine

  subroutine environment()
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    integer :: code, major, minor, provided, required
    integer(kind=MPI_ADDRESS_KIND) :: base
    type(c_ptr) :: memory
    integer, pointer :: numbers(:)
    logical :: flag
    call MPI_Get_version(major, minor, code)
    call expect(major == 5 .and. minor == 0, 'MPI_Get_version')
    call MPI_Abi_get_version(major, minor, code)
    call expect(major == MPI_ABI_VERSION .and. minor == MPI_ABI_SUBVERSION, 'MPI_Abi_get_version')
    call MPI_Is_thread_main(flag, code)
    call expect(flag, 'MPI_Is_thread_main')
    call MPI_Query_thread(provided, code)
    required = MPI_THREAD_SINGLE
    call expect(provided >= required, 'MPI_Query_thread')
    call MPI_Alloc_mem(4000_MPI_ADDRESS_KIND, MPI_INFO_NULL, base, code)
    call expect(base /= 0, 'MPI_Alloc_mem: address')
    call MPI_Alloc_mem(4000_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory, code)
    call c_f_pointer(memory, numbers, [1000])
    numbers = rank
    call equal(sum(numbers), 1000 * rank, 'MPI_Alloc_mem: pointer')
    call MPI_Free_mem(numbers, code)
    call equal(code, MPI_SUCCESS, 'MPI_Free_mem')
  end subroutine
end program
