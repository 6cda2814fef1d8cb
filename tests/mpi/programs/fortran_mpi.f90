! SPDX-License-Identifier: BSD-3-Clause
! use mpi: blocking, probing and reducing calls, and an error that is returned.
program fortran_mpi
  use mpi
  implicit none
  integer, parameter :: most = 100000
  integer :: ierr, rank, ranks, i, from, got, class, status(MPI_STATUS_SIZE)
  integer, allocatable :: numbers(:), sums(:)
  integer(kind=8) :: total

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  allocate (numbers(most), sums(most))

  if (rank /= 0) then
    numbers = [(rank * i, i=1, most)]
    call MPI_Send(numbers, most - rank, MPI_INTEGER, 0, rank, MPI_COMM_WORLD, ierr)
  else
    do i = 1, ranks - 1
      call MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
      from = status(MPI_SOURCE)
      call MPI_Get_count(status, MPI_INTEGER, got, ierr)
      if (got /= most - from .or. status(MPI_TAG) /= from) call wrong('probe')
      call MPI_Recv(numbers, got, MPI_INTEGER, from, from, MPI_COMM_WORLD, status, ierr)
      if (any(numbers(:got) /= from * [(got, got=1, most - from)])) call wrong('message')
    end do
  end if

  numbers = [(i + rank, i=1, most)]
  call MPI_Allreduce(numbers, sums, most, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (any(sums /= [(ranks * i + ranks * (ranks - 1) / 2, i=1, most)])) call wrong('sum')
  call MPI_Bcast(numbers, most, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, ierr)
  if (any(numbers /= [(i + ranks - 1, i=1, most)])) call wrong('broadcast')

  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Sendrecv(sums, 100, MPI_INTEGER, mod(rank + 1, ranks), 5, numbers, 10, MPI_INTEGER, &
                    mod(rank + ranks - 1, ranks), 5, MPI_COMM_WORLD, status, ierr)
  call MPI_Error_class(ierr, class, got)
  if (class /= MPI_ERR_TRUNCATE) call wrong('error')

  total = sum(int(sums, 8))
  if (rank == 0) print '(a, i3, i18)', 'use mpi', ranks, total
  call MPI_Finalize(ierr)

contains

  subroutine wrong(what)
    character(*), intent(in) :: what
    write (0, *) 'rank', rank, ': a wrong ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine
end program
