! Tools in C and in Fortran take calls of Fortran programs, each by its own names (MPI 5.0, 15.2). layers_c.c is the tool in C.
subroutine mpi_barrier(comm, ierror)
  implicit none
  integer, intent(in) :: comm
  integer, intent(out) :: ierror
  integer :: taken
  common /tool/ taken
  taken = taken + 1
  call pmpi_barrier(comm, ierror)
end subroutine

program layers
  use mpi
  implicit none
  integer :: rank, ranks, failures, taken, code, x
  common /tool/ taken
  interface
    function c_taken() bind(c)
      use, intrinsic :: iso_c_binding, only: c_int
      integer(kind=c_int) :: c_taken
    end function
  end interface
  call start()
  taken = 0
  call MPI_Barrier(MPI_COMM_WORLD, code)
  call equal(taken, 1, 'a tool in Fortran takes MPI_Barrier')
  call equal(int(c_taken()), 0, 'a tool in C does not hear of what the one in Fortran calls')
  call PMPI_Barrier(MPI_COMM_WORLD, code)
  call equal(taken, 1, 'a tool in Fortran does not take PMPI_Barrier')
  call MPI_Allreduce(rank, x, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, code)
  call equal(int(c_taken()), 1, 'a tool in C takes MPI_Allreduce')
  call equal(x, ranks - 1, 'and passes it on')
  call PMPI_Allreduce(rank, x, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, code)
  call equal(int(c_taken()), 1, 'a tool in C does not take PMPI_Allreduce')
  call finish()
contains
  include 'expect.inc'
end program
