! SPDX-License-Identifier: BSD-3-Clause
! ring.f90: ranks exchange 800,000 bytes while they calculate; with an argument, before.
program ring
  use parc
  implicit none
  integer, parameter :: border = 100000, steps = 20
  real(c_double), pointer, contiguous, asynchronous :: mine(:), ghost(:)
  real(c_double) :: field(500000), begin
  type(c_ptr) :: context
  integer(parc_op) :: both(2)
  integer(c_int) :: rank, ranks, step
  character(len=32) :: way
  logical :: hidden

  call check(parc_open(context))
  rank = parc_rank(context)
  ranks = parc_size(context)
  way = 'hidden'
  hidden = command_argument_count() == 0
  if (.not. hidden) call get_command_argument(1, way)
  mine => memory()
  ghost => memory()
  field = 0

  begin = parc_clock()
  do step = 0, steps - 1
    mine = rank + step
    both(1) = parc_initread(context, modulo(rank - 1, ranks), 0, ghost)
    both(2) = parc_initwrite(context, modulo(rank + 1, ranks), 0, mine)
    if (.not. hidden) call check(parc_waitall(context, 2, both))
    call calculate(parc_clock() + 0.07_c_double)
    if (hidden) call check(parc_waitall(context, 2, both))
    if (ghost(border) /= modulo(rank - 1, ranks) + step) error stop 'ring: this is not what the rank before has written'
  end do
  if (rank == 0) print '(2a,f0.1,a)', trim(way), ': ', (parc_clock() - begin)/steps*1e3, ' ms a step'
  call check(parc_close(context))

contains

  ! Any other variable works, too.
  function memory() result(array)
    real(c_double), pointer, contiguous :: array(:)
    type(c_ptr) :: block
    block = parc_alloc(context, border*8_c_size_t)
    if (.not. c_associated(block)) call check(PARC_ENOMEM)
    call c_f_pointer(block, array, [border])
  end function

  subroutine calculate(until)
    real(c_double), intent(in) :: until
    do while (parc_clock() < until)
      field = 0.5_c_double*field + step
    end do
  end subroutine

  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code >= PARC_OK) return
    print '(2a)', 'ring: ', parc_error_detail()
    error stop 1
  end subroutine
end program
