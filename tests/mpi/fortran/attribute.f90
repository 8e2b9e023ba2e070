! Attributes with functions in Fortran, and what Fortran and C see of each other's (MPI 5.0, 7.7, 16.1, 19.3.7). C's half is attribute_c.c.
module functions
  use mpi
  implicit none
  integer, save :: copies = 0, deletions = 0
  integer(kind=MPI_ADDRESS_KIND), save :: last_deleted = -1, last_state = -1
  integer, save :: last_keyval = -1
  logical, save :: refuses = .false.
contains
  subroutine copy(oldcomm, keyval, extra_state, value_in, value_out, flag, ierror)
    integer :: oldcomm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    copies = copies + 1
    last_state = extra_state
    last_keyval = keyval
    flag = value_in /= 13
    value_out = value_in + 1
    ierror = merge(MPI_ERR_OTHER, MPI_SUCCESS, value_in == 99 .or. oldcomm == MPI_COMM_NULL)
  end subroutine

  subroutine delete(comm, keyval, value, extra_state, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra_state
    deletions = deletions + 1
    last_deleted = value
    last_state = extra_state
    last_keyval = keyval
    ierror = merge(MPI_ERR_OTHER, MPI_SUCCESS, refuses .or. comm == MPI_COMM_NULL)
  end subroutine

  ! As MPI-1 had it: everything is INTEGER.
  subroutine old_copy(oldcomm, keyval, extra_state, value_in, value_out, flag, ierror)
    integer :: oldcomm, keyval, extra_state, value_in, value_out, ierror
    logical :: flag
    copies = copies + 1
    last_state = extra_state
    last_keyval = keyval
    flag = .true.
    value_out = value_in - 1
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, oldcomm /= MPI_COMM_NULL)
  end subroutine

  subroutine old_delete(comm, keyval, value, extra_state, ierror)
    integer :: comm, keyval, value, extra_state, ierror
    deletions = deletions + 1
    last_deleted = value
    last_state = extra_state
    last_keyval = keyval
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, comm /= MPI_COMM_NULL)
  end subroutine
end module

program attribute
  use mpi
  use functions
  use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t
  implicit none
  integer, parameter :: wide = MPI_ADDRESS_KIND
  integer(kind=wide), parameter :: big = 2_wide**40 + 5
  integer :: rank, ranks, failures
  interface
    integer(kind=c_int) function c_reads_aint(comm, keyval, value) bind(c)
      import c_int, c_intptr_t
      integer(kind=c_int) :: comm, keyval
      integer(kind=c_intptr_t) :: value
    end function
    integer(kind=c_int) function c_reads_int(comm, keyval, value) bind(c)
      import c_int, c_intptr_t
      integer(kind=c_int) :: comm, keyval, value
    end function
    integer(kind=c_int) function c_sets(comm, keyval) bind(c)
      import c_int, c_intptr_t
      integer(kind=c_int) :: comm, keyval
    end function
    integer(kind=c_int) function c_reads_own(comm, keyval) bind(c)
      import c_int, c_intptr_t
      integer(kind=c_int) :: comm, keyval
    end function
    integer(kind=c_intptr_t) function c_address() bind(c)
      import c_intptr_t
    end function
    integer(kind=c_int) function c_makes_key() bind(c)
      import c_int, c_intptr_t
    end function
    integer(kind=c_int) function c_copies() bind(c)
      import c_int, c_intptr_t
    end function
    integer(kind=c_int) function c_status(f_status) bind(c)
      import c_int, c_intptr_t
      integer(kind=c_int) :: f_status(8)
    end function
    integer(kind=c_int) function c_ignores(f_status, f_statuses) bind(c)
      import c_int, c_intptr_t
      integer(kind=c_int) :: f_status(8), f_statuses(8, *)
    end function
  end interface
  call start()
  call library()
  call own_functions()
  call refusals()
  call predefined_functions()
  call old_functions()
  call old_predefined_functions()
  call from_fortran_to_c()
  call from_c_to_fortran()
  call keys_of_c()
  call datatypes()
  call freed_keys()
  call statuses()
  call finish()
contains
  include 'expect.inc'

  subroutine address_is(comm, keyval, wanted, what)
    integer, intent(in) :: comm, keyval
    integer(kind=wide), intent(in) :: wanted
    character(len=*), intent(in) :: what
    integer(kind=wide) :: value
    integer :: code
    logical :: flag
    value = -77
    call MPI_Comm_get_attr(comm, keyval, value, flag, code)
    call expect(flag .and. code == MPI_SUCCESS, what//': there')
    call expect(value == wanted, what)
  end subroutine

  subroutine absent(comm, keyval, what)
    integer, intent(in) :: comm, keyval
    character(len=*), intent(in) :: what
    integer(kind=wide) :: value
    integer :: code
    logical :: flag
    value = -77
    flag = .true.
    call MPI_Comm_get_attr(comm, keyval, value, flag, code)
    call expect(.not. flag .and. value == -77, what)
  end subroutine

  ! Values, not addresses.
  subroutine library()
    integer(kind=wide) :: value
    integer :: short, code
    logical :: flag
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, code)
    call expect(flag .and. value >= 32767 .and. value <= huge(1), 'MPI_TAG_UB')
    call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, short, flag, code)
    call expect(flag .and. short == value, 'MPI_TAG_UB by MPI_Attr_get')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, value, flag, code)
    call expect(flag .and. (value == 0 .or. value == 1), 'MPI_WTIME_IS_GLOBAL')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, value, flag, code)
    if (flag) call expect(value >= ranks .and. value < 2**20, 'MPI_UNIVERSE_SIZE')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, value, flag, code)
    call expect(flag .and. value >= MPI_ERR_LASTCODE, 'MPI_LASTUSEDCODE')
  end subroutine

  subroutine own_functions()
    integer :: code, keyval, comm, second
    call MPI_Comm_create_keyval(copy, delete, keyval, big, code)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, code)
    call absent(comm, keyval, 'no attribute yet')
    call MPI_Comm_set_attr(comm, keyval, big + 1, code)
    call address_is(comm, keyval, big + 1, 'MPI_Comm_get_attr')
    copies = 0
    call MPI_Comm_dup(comm, second, code)
    call equal(copies, 1, 'the copy function is called')
    call expect(last_state == big, 'the copy function: extra state')
    call equal(last_keyval, keyval, 'the copy function: keyval')
    call address_is(second, keyval, big + 2, 'a copied attribute')
    call address_is(comm, keyval, big + 1, 'a copied attribute: the original')
    deletions = 0
    call MPI_Comm_set_attr(comm, keyval, 13_wide, code)
    call equal(deletions, 1, 'the delete function is called for the old value')
    call expect(last_deleted == big + 1, 'the delete function: value')
    call expect(last_state == big, 'the delete function: extra state')
    call MPI_Comm_free(second, code)
    call equal(deletions, 2, 'the delete function is called by MPI_Comm_free')
    call expect(last_deleted == big + 2, 'the delete function: value of the copy')
    call MPI_Comm_dup(comm, second, code)
    call absent(second, keyval, 'a copy function that declines')
    call MPI_Comm_free(second, code)
    call MPI_Comm_delete_attr(comm, keyval, code)
    call expect(last_deleted == 13, 'MPI_Comm_delete_attr')
    call absent(comm, keyval, 'a deleted attribute')
    call MPI_Comm_free_keyval(keyval, code)
    call equal(keyval, MPI_KEYVAL_INVALID, 'MPI_Comm_free_keyval')
    call MPI_Comm_free(comm, code)
  end subroutine

  subroutine refusals()
    integer :: code, keyval, comm, second
    call MPI_Comm_create_keyval(copy, delete, keyval, 0_wide, code)
    call MPI_Comm_dup(MPI_COMM_SELF, comm, code)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, code)
    call MPI_Comm_set_attr(comm, keyval, 99_wide, code)
    call MPI_Comm_dup(comm, second, code)
    call expect(code /= MPI_SUCCESS, 'a copy function that fails')
    call MPI_Comm_set_attr(comm, keyval, 98_wide, code)
    refuses = .true.
    call MPI_Comm_delete_attr(comm, keyval, code)
    call expect(code /= MPI_SUCCESS, 'a delete function that fails')
    call address_is(comm, keyval, 98_wide, 'a delete function that fails: the value stays')
    refuses = .false.
    call MPI_Comm_free(comm, code)
    call equal(code, MPI_SUCCESS, 'a delete function that has changed its mind')
    call MPI_Comm_free_keyval(keyval, code)
  end subroutine

  subroutine predefined_functions()
    integer :: code, dup_key, null_key, comm, second
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, dup_key, 0_wide, code)
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, null_key, 1_wide, code)
    call MPI_Comm_dup(MPI_COMM_SELF, comm, code)
    call MPI_Comm_set_attr(comm, dup_key, -big, code)
    call MPI_Comm_set_attr(comm, null_key, 4_wide, code)
    call MPI_Comm_dup(comm, second, code)
    call address_is(second, dup_key, -big, 'MPI_COMM_DUP_FN')
    call absent(second, null_key, 'MPI_COMM_NULL_COPY_FN')
    deletions = 0
    call MPI_Comm_free(comm, code)
    call equal(deletions, 1, 'MPI_COMM_NULL_DELETE_FN beside another')
    call address_is(second, dup_key, -big, 'MPI_COMM_DUP_FN: the original has gone')
    call MPI_Comm_free(second, code)
    call MPI_Comm_free_keyval(dup_key, code)
    call MPI_Comm_free_keyval(null_key, code)
  end subroutine

  subroutine old_functions()
    integer :: code, keyval, comm, second, value
    logical :: flag
    call MPI_Keyval_create(old_copy, old_delete, keyval, -3, code)
    call MPI_Comm_dup(MPI_COMM_SELF, comm, code)
    call MPI_Attr_put(comm, keyval, -5, code)
    call MPI_Attr_get(comm, keyval, value, flag, code)
    call expect(flag .and. value == -5, 'MPI_Attr_get')
    call address_is(comm, keyval, -5_wide, 'MPI_Comm_get_attr of MPI_Attr_put')
    call MPI_Comm_dup(comm, second, code)
    call expect(last_state == -3, 'an old copy function: extra state')
    call address_is(second, keyval, -6_wide, 'an old copy function: value')
    call MPI_Comm_free(second, code)
    call expect(last_deleted == -6, 'an old delete function')
    call MPI_Comm_set_attr(comm, keyval, 2_wide**32 + 9, code)
    call MPI_Attr_get(comm, keyval, value, flag, code)
    call expect(flag .and. value == 9, 'MPI_Attr_get of a long value')
    call MPI_Attr_delete(comm, keyval, code)
    call MPI_Attr_get(comm, keyval, value, flag, code)
    call expect(.not. flag, 'MPI_Attr_delete')
    call MPI_Keyval_free(keyval, code)
    call equal(keyval, MPI_KEYVAL_INVALID, 'MPI_Keyval_free')
    call MPI_Comm_free(comm, code)
  end subroutine

  subroutine old_predefined_functions()
    integer :: code, keyval, comm, second, value
    logical :: flag
    call MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, keyval, 0, code)
    call MPI_Comm_dup(MPI_COMM_SELF, comm, code)
    call MPI_Attr_put(comm, keyval, -8, code)
    call MPI_Comm_dup(comm, second, code)
    call MPI_Attr_get(second, keyval, value, flag, code)
    call expect(flag .and. value == -8, 'MPI_DUP_FN')
    call MPI_Comm_free(second, code)
    call MPI_Comm_free(comm, code)
    call MPI_Keyval_free(keyval, code)
  end subroutine

  ! C is given a pointer to the integer.
  subroutine from_fortran_to_c()
    integer :: code, keyval, comm, second
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_wide, code)
    call MPI_Comm_dup(MPI_COMM_SELF, comm, code)
    call MPI_Comm_set_attr(comm, keyval, big, code)
    call equal(c_reads_aint(comm, keyval, big), 1, 'C reads an address-sized value')
    call MPI_Comm_dup(comm, second, code)
    call equal(c_reads_aint(second, keyval, big), 1, 'C reads a copy of it')
    call MPI_Attr_put(comm, keyval, -21, code)
    call equal(c_reads_int(comm, keyval, -21), 1, 'C reads an INTEGER')
    call equal(c_reads_aint(second, keyval, big), 1, 'C still reads the copy')
    call MPI_Comm_free(second, code)
    call MPI_Comm_free(comm, code)
    call MPI_Comm_free_keyval(keyval, code)
  end subroutine

  ! Fortran reads the address.
  subroutine from_c_to_fortran()
    integer :: code, keyval, comm, second
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete, keyval, 0_wide, code)
    call MPI_Comm_dup(MPI_COMM_SELF, comm, code)
    call equal(c_sets(comm, keyval), MPI_SUCCESS, 'C sets an attribute of a key of Fortran')
    call address_is(comm, keyval, c_address(), 'Fortran reads a pointer of C')
    call MPI_Comm_dup(comm, second, code)
    call address_is(second, keyval, c_address(), 'MPI_COMM_DUP_FN of a pointer of C')
    call equal(c_reads_own(second, keyval), 1, 'C reads its pointer from the copy')
    call MPI_Comm_free(second, code)
    call expect(last_deleted == c_address(), 'the delete function is given the address')
    call MPI_Comm_free(comm, code)
    call MPI_Comm_free_keyval(keyval, code)
  end subroutine

  subroutine keys_of_c()
    integer :: code, keyval, comm, second, i
    keyval = c_makes_key()
    call MPI_Comm_dup(MPI_COMM_SELF, comm, code)
    do i = 1, 1000
      call MPI_Comm_set_attr(comm, keyval, big + mod(i, 4), code)
    end do
    call address_is(comm, keyval, big, 'an attribute of a key of C')
    call equal(c_reads_aint(comm, keyval, big), 1, 'an attribute of a key of C, read there')
    i = c_copies()
    call MPI_Comm_dup(comm, second, code)
    call equal(c_copies(), i + 1, 'the copy function of C is called')
    call address_is(second, keyval, big, 'the copy function of C copies what it is given')
    call MPI_Comm_free(comm, code)
    call address_is(second, keyval, big, 'the copy outlives the original')
    call MPI_Comm_free(second, code)
    call MPI_Comm_free_keyval(keyval, code)
  end subroutine

  subroutine datatypes()
    integer :: code, keyval, type, second
    integer(kind=wide) :: value
    logical :: flag
    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, keyval, 0_wide, code)
    call MPI_Type_contiguous(2, MPI_REAL, type, code)
    call MPI_Type_set_attr(type, keyval, big, code)
    call MPI_Type_dup(type, second, code)
    call MPI_Type_free(type, code)
    call MPI_Type_get_attr(second, keyval, value, flag, code)
    call expect(flag .and. value == big, 'an attribute of a datatype')
    call MPI_Type_delete_attr(second, keyval, code)
    call MPI_Type_get_attr(second, keyval, value, flag, code)
    call expect(.not. flag, 'MPI_Type_delete_attr')
    call MPI_Type_free(second, code)
    call MPI_Type_free_keyval(keyval, code)
    call MPI_Type_create_keyval(copy, delete, keyval, 7_wide, code)
    call MPI_Type_contiguous(2, MPI_REAL, type, code)
    call MPI_Type_set_attr(type, keyval, 1_wide, code)
    call MPI_Type_dup(type, second, code)
    call MPI_Type_get_attr(second, keyval, value, flag, code)
    call expect(flag .and. value == 2, 'a copy function of a datatype')
    call MPI_Type_free(second, code)
    call expect(last_deleted == 2 .and. last_state == 7, 'a delete function of a datatype')
    call MPI_Type_free(type, code)
    call MPI_Type_free_keyval(keyval, code)
  end subroutine

  ! A freed key works on while attributes have it.
  subroutine freed_keys()
    integer :: code, keyval, comm, second, i
    do i = 1, 100
      call MPI_Comm_create_keyval(copy, delete, keyval, int(i, wide), code)
      call MPI_Comm_dup(MPI_COMM_SELF, comm, code)
      call MPI_Comm_set_attr(comm, keyval, int(200 + i, wide), code)
      call MPI_Comm_free_keyval(keyval, code)
      call MPI_Comm_dup(comm, second, code)
      call MPI_Comm_free(comm, code)
      call expect(last_deleted == 200 + i .and. last_state == i, 'a freed key: the original')
      call MPI_Comm_free(second, code)
      call expect(last_deleted == 201 + i .and. last_state == i, 'a freed key: the copy')
    end do
  end subroutine

  subroutine statuses()
    integer :: code, status(MPI_STATUS_SIZE), x
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 6, x, 1, MPI_INTEGER, rank, 6, MPI_COMM_WORLD, status, code)
    call equal(c_status(status), 6, 'MPI_Status_f2c and back')
    call equal(c_ignores(MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE), 1, 'MPI_F_STATUS_IGNORE')
  end subroutine
end program
