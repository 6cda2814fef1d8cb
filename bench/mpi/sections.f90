! SPDX-License-Identifier: BSD-3-Clause
! A coarray program, of two images: the first reads a section of 1 MiB of the other again and again, and works on it
! element by element, so many square roots each (its argument). Prints milliseconds a section and its work take.
program sections
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  integer, parameter :: cells = 131072, rounds = 20
  real(real64) :: field(cells)[*], sum
  real(real64), allocatable :: section(:)
  integer :: i, depth
  integer(int64) :: begin, end, rate
  character(20) :: argument

  call get_command_argument(1, argument)
  read (argument, *) depth
  allocate (section(cells))
  field = [(this_image() * 1e6_real64 + i, i = 1, cells)]
  sum = 0
  sync all
  if (this_image() == 1) then
    call work(section)
    call system_clock(begin, rate)
    do i = 1, rounds
      call work(section)
    end do
    call system_clock(end)
    if (sum < 0) error stop 'negative'
    print '(f0.3)', (end - begin) * 1e3 / rate / rounds
  end if
  sync all
contains
  subroutine work(section)
    real(real64), intent(out) :: section(cells)
    real(real64) :: x
    integer :: cell, root

    section = field(:)[2]
    do cell = 1, cells
      x = section(cell)
      if (x /= 2e6_real64 + cell) error stop 'wrong'
      do root = 1, depth
        x = sqrt(x) + 1
      end do
      sum = sum + x
    end do
  end subroutine
end program
