! SPDX-License-Identifier: BSD-3-Clause
! heat.cpp's plate in Fortran: each rank has a strip of its columns, exchanges the outer ones with its neighbours while
! it calculates the others, and the first compares the whole plate with what one calculates alone.
!
!     gfortran heat.f90 $(pkg-config --cflags --libs parc-fortran) -o heat
!     parc run -n 4 heat [FILE, which gets the temperatures of the whole plate]
module plate
  use parc
  implicit none
  integer, parameter :: columns = 64, points = 1000, steps = 22 ! columns of each rank, points of a column
  real(c_double), parameter :: r = 0.2_c_double
contains

  ! A cold plate with a warm left rim and three hot spots: column x, where 0 and whole+1 are the rim.
  pure function start(x, whole) result(column)
    integer, intent(in) :: x, whole
    real(c_double) :: column(points), across, along
    integer :: j
    across = real(x, c_double)/real(whole + 1, c_double)
    do j = 1, points
      along = real(j - 1, c_double)/real(points - 1, c_double)
      column(j) = merge(0.6_c_double*along*(1 - along)*4, 0.0_c_double, x == 0) &
        + spot(0.5_c_double, 0.45_c_double, 0.2_c_double, 1.0_c_double) &
        + spot(0.22_c_double, 0.7_c_double, 0.12_c_double, 0.8_c_double) &
        + spot(0.8_c_double, 0.75_c_double, 0.15_c_double, 0.9_c_double)
    end do
  contains
    pure real(c_double) function spot(x, y, radius, peak)
      real(c_double), intent(in) :: x, y, radius, peak
      spot = peak*max(0.0_c_double, 1 - ((across - x)**2 + (along - y)**2)/radius**2)
    end function
  end function

  ! Columns first to last of the next time step.
  subroutine advance(new, old, first, last)
    integer, intent(in) :: first, last
    real(c_double), intent(inout), contiguous :: new(:, 0:)
    real(c_double), intent(in), contiguous :: old(:, 0:)
    integer :: i, j
    do i = first, last
      do j = 2, points - 1
        new(j, i) = r*old(j, i - 1) + r*old(j, i + 1) + (1 - 2*r - 2*r)*old(j, i) + r*old(j - 1, i) + r*old(j + 1, i)
      end do
    end do
  end subroutine

  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code >= PARC_OK) return
    print '(2a)', 'heat: ', parc_error_detail()
    error stop 1
  end subroutine

  function started(operation) result(same)
    integer(parc_op), intent(in) :: operation
    integer(parc_op) :: same
    if (operation < 0) call check(int(operation, c_int))
    same = operation
  end function
end module

program heat
  use plate
  implicit none
  type(c_ptr) :: context, memory
  real(c_double), pointer, contiguous, asynchronous :: strip(:, :, :), old(:, :), new(:, :)
  real(c_double), allocatable, asynchronous :: result(:, :)
  integer(c_int) :: rank, ranks
  integer :: step, x
  integer(parc_op) :: writing
  logical :: same

  call check(parc_open(context))
  rank = parc_rank(context)
  ranks = parc_size(context)
  ! The kernel moves messages from and to this memory in place.
  memory = parc_alloc(context, 2*(columns + 2)*points*8_c_size_t)
  if (.not. c_associated(memory)) call check(PARC_ENOMEM)
  call c_f_pointer(memory, strip, [points, columns + 2, 2])
  old(1:, 0:) => strip(:, :, 1)
  new(1:, 0:) => strip(:, :, 2)
  do x = 0, columns + 1
    old(:, x) = start(rank*columns + x, ranks*columns)
  end do
  new = old

  do step = 1, steps
    call one_step()
  end do

  writing = started(parc_initwrite(context, 0, 1, old(:, 1:columns)))
  same = .true.
  if (rank == 0) then
    allocate (result(points, ranks*columns))
    do x = 0, ranks - 1
      call check(parc_read(context, int(x, c_int), 1, result(:, x*columns + 1:(x + 1)*columns)))
    end do
    same = all(transfer(result, [0_c_int64_t]) == transfer(alone(), [0_c_int64_t]))
    print '(i0,3a)', ranks, ' ranks: ', trim(merge('equal to', 'not     ', same)), ' what one calculates alone, bit for bit'
    call save_plate()
  end if
  call check(parc_wait(context, writing))
  call check(parc_close(context))
  if (.not. same) error stop 1

contains

  subroutine one_step()
    integer(parc_op) :: moving(4)
    integer :: first, last
    first = merge(1, 2, rank == 0) ! of the columns that no neighbour needs
    last = merge(columns, columns - 1, rank == ranks - 1)
    moving = PARC_OP_NULL
    if (rank > 0) then
      call advance(new, old, 1, 1)
      moving(1) = started(parc_initread(context, rank - 1, 0, new(:, 0)))
      moving(2) = started(parc_initwrite(context, rank - 1, 0, new(:, 1)))
    end if
    if (rank < ranks - 1) then
      call advance(new, old, columns, columns)
      moving(3) = started(parc_initread(context, rank + 1, 0, new(:, columns + 1)))
      moving(4) = started(parc_initwrite(context, rank + 1, 0, new(:, columns)))
    end if
    call advance(new, old, first, last) ! while the borders travel
    call check(parc_waitall(context, 4, moving))
    call swap(old, new)
  end subroutine

  subroutine swap(a, b)
    real(c_double), pointer, contiguous, asynchronous, intent(inout) :: a(:, :), b(:, :)
    real(c_double), pointer, contiguous, asynchronous :: kept(:, :)
    kept => a
    a => b
    b => kept
  end subroutine

  ! The whole plate, without its rims.
  function alone() result(inner)
    real(c_double), allocatable :: inner(:, :), now(:, :), next(:, :), kept(:, :)
    integer :: step, x
    allocate (now(points, 0:ranks*columns + 1))
    do x = 0, ranks*columns + 1
      now(:, x) = start(x, ranks*columns)
    end do
    next = now
    do step = 1, steps
      call advance(next, now, 1, ranks*columns)
      call move_alloc(now, kept)
      call move_alloc(next, now)
      call move_alloc(kept, next)
    end do
    inner = now(:, 1:ranks*columns)
  end function

  subroutine save_plate()
    character(len=1024) :: path
    integer :: file
    if (command_argument_count() == 0) return
    call get_command_argument(1, path)
    open (newunit=file, file=trim(path), access='stream', form='unformatted', status='replace')
    write (file) result
    close (file)
  end subroutine
end program
