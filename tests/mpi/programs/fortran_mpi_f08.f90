! SPDX-License-Identifier: BSD-3-Clause
! use mpi_f08: types of its own for handles, and a window.
program fortran_mpi_f08
  use mpi_f08
  implicit none
  integer, parameter :: length = 5000
  integer :: rank, ranks, i, left, right
  integer, asynchronous :: received(length), sent(length)
  integer :: shared(length)
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: statuses(2)
  type(MPI_Comm) :: twin
  type(MPI_Win) :: window

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  call MPI_Comm_dup(MPI_COMM_WORLD, twin)

  sent = [(rank * length + i, i=1, length)]
  call MPI_Recv_init(received, length, MPI_INTEGER, left, 1, twin, requests(1))
  call MPI_Ssend_init(sent, length, MPI_INTEGER, right, 1, twin, requests(2))
  do i = 1, 10
    received = 0
    call MPI_Startall(2, requests)
    call MPI_Waitall(2, requests, statuses)
    if (any(received /= [(left * length + i, i=1, length)])) call wrong('message')
    if (statuses(1)%MPI_SOURCE /= left) call wrong('source')
  end do
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))

  shared = -1
  call MPI_Win_create(shared, 4_MPI_ADDRESS_KIND * length, 4, MPI_INFO_NULL, twin, window)
  call MPI_Win_fence(0, window)
  call MPI_Put(sent, length, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, length, MPI_INTEGER, window)
  call MPI_Win_fence(0, window)
  if (any(shared /= [(left * length + i, i=1, length)])) call wrong('put')
  call MPI_Win_free(window)
  call MPI_Comm_free(twin)
  if (rank == 0) print '(a, i3)', 'use mpi_f08', ranks
  call MPI_Finalize()

contains

  subroutine wrong(what)
    character(*), intent(in) :: what
    write (0, *) 'rank', rank, ': a wrong ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
