! SPDX-License-Identifier: BSD-3-Clause
! The heat equation of heat.c in Fortran: the same plate, the same messages, the same result bit for bit.
!
!     mpifort -O2 heat_fortran.f90 -o heat && mpirun -np 2 heat [hidden|blocking] [COLUMNS [ROWS [SWEEPS [STEPS]]]]
module plates
  use, intrinsic :: iso_fortran_env, only: int64, real64, error_unit
  use mpi_f08
  implicit none

  integer :: columns, rows, sweeps                    ! rows 0 and rows+1 are the neighbours'
  real(real64), pointer, contiguous, asynchronous :: now(:, :), next(:, :)
  integer :: above, below                             ! ranks

contains

  subroutine make_plate(rank, ranks)
    integer, intent(in) :: rank, ranks
    integer(int64) :: row, column
    allocate (now(columns, 0:rows + 1), next(columns, 0:rows + 1))
    do row = 0, rows + 1
      do column = 1, columns
        now(column, row) = real(mod((row*columns + column - 1)*2654435761_int64 + rank*97_int64, 1000_int64), real64)
      end do
    end do
    next = now
    above = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    below = merge(rank + 1, MPI_PROC_NULL, rank + 1 < ranks)
  end subroutine

  subroutine relax_row(row)
    integer, intent(in) :: row
    integer :: i
    next(1, row) = now(1, row)
    do i = 2, columns - 1
      next(i, row) = now(i, row) + 0.1_real64*(now(i, row - 1) + now(i, row + 1) + now(i - 1, row) + now(i + 1, row) &
                                               - 4*now(i, row))
    end do
    next(columns, row) = now(columns, row)
  end subroutine

  subroutine relax_inner()
    integer :: sweep, row
    do sweep = 1, sweeps
      do row = 2, rows - 1
        call relax_row(row)
      end do
    end do
  end subroutine

  subroutine relax_borders()
    real(real64), pointer, contiguous, asynchronous :: old(:, :)
    call relax_row(1)
    call relax_row(rows)
    old => now
    now => next
    next => old
  end subroutine

  subroutine step_hidden()
    type(MPI_Request) :: requests(4)
    call MPI_Irecv(now(1, 0), columns, MPI_DOUBLE_PRECISION, above, 0, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(now(1, rows + 1), columns, MPI_DOUBLE_PRECISION, below, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Isend(now(1, 1), columns, MPI_DOUBLE_PRECISION, above, 1, MPI_COMM_WORLD, requests(3))
    call MPI_Isend(now(1, rows), columns, MPI_DOUBLE_PRECISION, below, 0, MPI_COMM_WORLD, requests(4))
    call relax_inner()
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
    call relax_borders()
  end subroutine

  subroutine step_blocking()
    call MPI_Sendrecv(now(1, rows), columns, MPI_DOUBLE_PRECISION, below, 0, &
                      now(1, 0), columns, MPI_DOUBLE_PRECISION, above, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(now(1, 1), columns, MPI_DOUBLE_PRECISION, above, 1, &
                      now(1, rows + 1), columns, MPI_DOUBLE_PRECISION, below, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call relax_inner()
    call relax_borders()
  end subroutine

  ! The bits of all values, each turned by its place.
  function digest(rank)
    integer, intent(in) :: rank
    integer(int64) :: digest, place
    integer :: row, column
    digest = 0
    place = int(rank, int64)*columns*rows
    do row = 1, rows
      do column = 1, columns
        digest = ieor(digest, ishftc(transfer(now(column, row), digest), int(mod(place, 61_int64)) + 1))
        place = place + 1
      end do
    end do
  end function
end module

program heat
  use plates
  implicit none
  integer, parameter :: warm_up = 3
  integer :: rank, ranks, steps, i
  logical :: blocking
  character(len=16) :: word
  double precision :: calculation, time
  integer(int64) :: mine, all

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(1, word)
  blocking = word == 'blocking'
  columns = number(2, 10000)
  rows = number(3, 32)
  sweeps = number(4, 1)
  steps = number(5, 20)
  call make_plate(rank, ranks)

  calculation = MPI_Wtime()
  call relax_inner()
  calculation = MPI_Wtime() - calculation
  do i = 1, warm_up
    call step()
  end do
  call MPI_Barrier(MPI_COMM_WORLD)
  time = MPI_Wtime()
  do i = 1, steps
    call step()
  end do
  time = MPI_Wtime() - time

  mine = digest(rank)
  call MPI_Reduce(mine, all, 1, MPI_INTEGER8, MPI_BXOR, 0, MPI_COMM_WORLD)
  if (rank == 0) then
    print '("heat: ", i0, " ranks, ", i0, " steps, result ", z16.16)', ranks, steps, all
    write (error_unit, '("heat: ", f0.3, " ms a step")') time/steps*1d3
    write (error_unit, '("heat: its calculation alone ", f0.3, " ms")') calculation*1d3
  end if
  deallocate (now, next)
  call MPI_Finalize()

contains

  subroutine step()
    if (blocking) then
      call step_blocking()
    else
      call step_hidden()
    end if
  end subroutine

  integer function number(place, otherwise)
    integer, intent(in) :: place, otherwise
    character(len=16) :: text
    integer :: wrong
    call get_command_argument(place, text)
    read (text, *, iostat=wrong) number
    if (wrong /= 0 .or. number <= 0) number = otherwise
  end function
end program
