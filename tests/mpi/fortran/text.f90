! Strings, info objects, generalized requests (MPI 5.0, 10, 13.2, 19.1).
module general
  use mpi
  implicit none
  integer, save :: queries = 0, frees = 0, cancels = 0
  logical, save :: was_complete = .true.
contains
  subroutine on_query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: status(MPI_STATUS_SIZE), ierror
    queries = queries + 1
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state), ierror)
    call MPI_Status_set_cancelled(status, cancels > 0, ierror)
    status(MPI_SOURCE) = 33
    status(MPI_TAG) = 44
    ierror = MPI_SUCCESS
  end subroutine

  subroutine on_free(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    frees = frees + 1
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, extra_state == 12)
  end subroutine

  subroutine on_cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    cancels = cancels + 1
    was_complete = complete
    ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, extra_state == 12)
  end subroutine
end module

program text
  use mpi
  use general
  implicit none
  integer :: rank, ranks, failures
  call start()
  call names()
  call library()
  call infos()
  call short_strings()
  call requests()
  call finish()
contains
  include 'expect.inc'

  subroutine names()
    integer :: code, comm, length
    character(len=MPI_MAX_OBJECT_NAME) :: name
    character(len=4) :: short
    call MPI_Comm_get_name(MPI_COMM_WORLD, name, length, code)
    call expect(name == 'MPI_COMM_WORLD' .and. length == 14, 'MPI_Comm_get_name')
    call expect(name(15:) == ' ', 'MPI_Comm_get_name: blanks')
    call MPI_Comm_dup(MPI_COMM_SELF, comm, code)
    call MPI_Comm_set_name(comm, '  my own   ', code)
    call MPI_Comm_get_name(comm, name, length, code)
    call expect(name == '  my own' .and. length == 8, 'MPI_Comm_set_name: blanks at the end go')
    call MPI_Comm_get_name(comm, short, length, code)
    call expect(short == '  my', 'MPI_Comm_get_name: a short variable')
    call MPI_Comm_set_name(comm, '', code)
    call MPI_Comm_get_name(comm, name, length, code)
    call expect(name == ' ' .and. length == 0, 'an empty name')
    call MPI_Comm_set_name(comm, repeat('x', MPI_MAX_OBJECT_NAME), code)
    call MPI_Comm_get_name(comm, name, length, code)
    call expect(name == repeat('x', MPI_MAX_OBJECT_NAME) .and. length == MPI_MAX_OBJECT_NAME, 'the longest name')
    call MPI_Comm_free(comm, code)
  end subroutine

  subroutine library()
    integer :: code, length
    character(len=MPI_MAX_PROCESSOR_NAME) :: host
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    call MPI_Get_processor_name(host, length, code)
    call expect(length > 0 .and. len_trim(host) == length, 'MPI_Get_processor_name')
    call MPI_Get_library_version(version, length, code)
    call expect(version(1:8) == 'Causeway' .and. len_trim(version) == length, 'MPI_Get_library_version')
  end subroutine

  subroutine infos()
    integer :: code, info, second, n, length
    character(len=MPI_MAX_INFO_KEY) :: key
    character(len=20) :: value
    logical :: flag
    call MPI_Info_create(info, code)
    call MPI_Info_set(info, '  color ', '  dark red ', code)
    call MPI_Info_set(info, 'size', '7', code)
    call MPI_Info_get_nkeys(info, n, code)
    call equal(n, 2, 'MPI_Info_get_nkeys')
    call MPI_Info_get_nthkey(info, 0, key, code)
    call expect(key == 'color', 'MPI_Info_get_nthkey: numbers begin at 0, blanks go')
    call MPI_Info_get(info, 'color', 20, value, flag, code)
    call expect(flag .and. value == 'dark red', 'MPI_Info_get')
    call MPI_Info_get(info, 'color  ', 4, value, flag, code)
    call expect(flag .and. value == 'dark', 'MPI_Info_get: a part')
    call MPI_Info_get_valuelen(info, 'color', length, flag, code)
    call expect(flag .and. length == 8, 'MPI_Info_get_valuelen')
    length = 0
    value = 'as before'
    call MPI_Info_get_string(info, 'color', length, value, flag, code)
    call expect(flag .and. length == 8 .and. value == 'as before', 'MPI_Info_get_string: the length alone')
    length = 20
    call MPI_Info_get_string(info, 'color', length, value, flag, code)
    call expect(flag .and. length == 8 .and. value == 'dark red', 'MPI_Info_get_string')
    length = 3
    call MPI_Info_get_string(info, 'color', length, value, flag, code)
    call expect(flag .and. length == 8 .and. value == 'dar', 'MPI_Info_get_string: a part')
    value = 'as before'
    length = 20
    call MPI_Info_get_string(info, 'taste', length, value, flag, code)
    call expect(.not. flag .and. length == 20 .and. value == 'as before', 'MPI_Info_get_string: no such key')
    call MPI_Info_get(info, 'taste', 20, value, flag, code)
    call expect(.not. flag .and. value == 'as before', 'MPI_Info_get: no such key')
    call MPI_Info_dup(info, second, code)
    call MPI_Info_delete(info, 'color', code)
    call MPI_Info_get_nkeys(info, n, code)
    call equal(n, 1, 'MPI_Info_delete')
    call MPI_Info_get_nkeys(second, n, code)
    call equal(n, 2, 'MPI_Info_dup')
    call MPI_Info_free(info, code)
    call MPI_Info_free(second, code)
    call equal(info, MPI_INFO_NULL, 'MPI_Info_free')
    call MPI_Info_create_env(info, code)
    call equal(code, MPI_SUCCESS, 'MPI_Info_create_env')
    call MPI_Info_free(info, code)
  end subroutine

  subroutine short_strings()
    integer :: code, length
    character(len=3) :: short
    character(len=0) :: empty
    call MPI_Get_library_version(short, length, code)
    call expect(short == 'Cau', 'a string that is too short')
    call MPI_Get_library_version(empty, length, code)
    call expect(length > 8, 'a string of no length')
  end subroutine

  subroutine requests()
    integer :: code, request, status(MPI_STATUS_SIZE), n
    integer(kind=MPI_ADDRESS_KIND), volatile :: extra_state
    logical :: flag
    call MPI_Grequest_start(on_query, on_free, on_cancel, 12_MPI_ADDRESS_KIND, request, code)
    call MPI_Test(request, flag, status, code)
    call expect(.not. flag, 'MPI_Grequest_start')
    call MPI_Grequest_complete(request, code)
    call MPI_Wait(request, status, code)
    call equal(request, MPI_REQUEST_NULL, 'a generalized request: null')
    call equal(queries, 1, 'a generalized request: its query function')
    call equal(frees, 1, 'a generalized request: its free function')
    call equal(status(MPI_SOURCE), 33, 'a generalized request: source')
    call equal(status(MPI_TAG), 44, 'a generalized request: tag')
    call MPI_Get_elements(status, MPI_INTEGER, n, code)
    call equal(n, 12, 'a generalized request: elements')
    call MPI_Test_cancelled(status, flag, code)
    call expect(.not. flag, 'a generalized request: not cancelled')
    call MPI_Grequest_start(on_query, on_free, on_cancel, 12_MPI_ADDRESS_KIND, request, code)
    call MPI_Cancel(request, code)
    call equal(cancels, 1, 'a generalized request: its cancel function')
    call expect(.not. was_complete, 'a generalized request: not complete')
    call MPI_Grequest_complete(request, code)
    call MPI_Wait(request, status, code)
    call MPI_Test_cancelled(status, flag, code)
    call expect(flag, 'a generalized request: cancelled')
    call equal(frees, 2, 'a generalized request: freed again')
    extra_state = 5
    call MPI_Grequest_start(on_query, on_free, on_cancel, extra_state, request, code)
    extra_state = 12
    call MPI_Grequest_complete(request, code)
    call MPI_Wait(request, status, code)
    call MPI_Get_elements(status, MPI_INTEGER, n, code)
    call equal(n, 12, 'a generalized request: what its variable has become')
  end subroutine
end program
