! SPDX-License-Identifier: BSD-3-Clause
! Coarrays (OpenCoarrays): sections of other images, whole and with strides, both ways, more coarrays than a library
! could keep in a small table, atomics, a lock, events; with `computing`, an image is read while it is in no call.
program coarrays
  use, intrinsic :: iso_fortran_env, only: atomic_int_kind, event_type, int64, lock_type, real64
  implicit none
  integer, parameter :: cells = 40000, rounds = 40
  type one_of_many
    integer, allocatable :: numbers(:)[:]
  end type
  real(real64) :: field(cells)[*], plate(30, 50)[*]
  integer(atomic_int_kind) :: counter[*], seen
  integer :: under_lock[*], round, me, images, next, before
  type(lock_type) :: lock[*]
  type(event_type) :: ready[*]
  type(one_of_many) :: first, second
  real(real64) :: got(cells), total
  character(20) :: mode

  me = this_image()
  images = num_images()
  next = mod(me, images) + 1
  before = mod(me + images - 2, images) + 1
  counter = 0
  under_lock = 0
  field = [(me * 1e6_real64 + round, round = 1, cells)]
  plate = me
  sync all

  ! Gets: a section of 320 kB, one of every seventh number, one number.
  got = field(:)[next]
  if (any(got /= [(next * 1e6_real64 + round, round = 1, cells)])) call wrong('section')
  got(:1000) = field(3:6996:7)[before]
  if (any(got(:1000) /= [(before * 1e6_real64 + 3 + 7 * round, round = 0, 999)])) call wrong('strides')
  if (field(cells)[next] /= next * 1e6_real64 + cells) call wrong('number')
  sync all

  ! Puts: rows of another's plate, of which nobody else writes, and a whole field, seen after sync.
  plate(me, :)[next] = 100 * me
  plate(11:20, 5:9)[before] = reshape([(me * 1000 + round, round = 1, 50)], [10, 5])
  field(:)[next] = [(me + 0.5_real64 * round, round = 1, cells)]
  if (images > 2) then ! one and the same may not be named twice
    sync images ([next, before])
  else
    sync all
  end if
  if (any(plate(before, 10:) /= 100 * before)) call wrong('row')
  if (any(plate(11:20, 5:9) /= reshape([(next * 1000 + round, round = 1, 50)], [10, 5]))) call wrong('block')
  if (any(field /= [(before + 0.5_real64 * round, round = 1, cells)])) call wrong('field')
  sync all

  ! Coarrays that come and go, two at a time; their windows are at other addresses each time.
  do round = 1, rounds
    allocate (first%numbers(round * 100)[*], second%numbers(round)[*])
    first%numbers = me * round
    second%numbers(:)[next] = me + round
    sync all
    if (any(first%numbers(:)[next] /= next * round)) call wrong('allocated')
    if (any(second%numbers /= before + round)) call wrong('allocated and put')
    deallocate (first%numbers, second%numbers) ! which synchronizes
  end do

  ! Each counts at the first image, with atomics and with a lock.
  do round = 1, rounds
    call atomic_add(counter[1], me)
    lock (lock[1])
    under_lock[1] = under_lock[1] + me
    unlock (lock[1])
  end do
  sync all
  call atomic_ref(seen, counter[1])
  if (seen /= rounds * images * (images + 1) / 2) call wrong('atomics')
  if (under_lock[1] /= rounds * images * (images + 1) / 2) call wrong('lock')

  ! An event says that a put is there.
  field(:100)[next] = -me
  event post (ready[next])
  event wait (ready)
  if (any(field(:100) /= -before)) call wrong('event')
  sync all

  call get_command_argument(1, mode)
  if (mode == 'computing') call read_who_computes()
  sync all
  total = sum(field)
  call co_sum(total)
  if (me == 1) print '(a,i0,a,f0.1)', 'coarrays ', images, ' ', total
contains
  ! The last image is in no call until all others have read what it has and the first has said so.
  subroutine read_who_computes()
    integer(atomic_int_kind), save, volatile :: over[*]
    integer(atomic_int_kind) :: readers

    over = 0
    sync all
    if (me == images) then
      do while (over == 0)
      end do
      return
    end if
    got = field(:)[images]
    if (any(got(101:) /= [(images - 1 + 0.5_real64 * round, round = 101, cells)])) call wrong('section of who computes')
    call atomic_add(counter[images], 1)
    do while (me == 1)
      call atomic_ref(readers, counter[images])
      if (readers == images - 1) exit
    end do
    if (me == 1) over[images] = 1
  end subroutine

  subroutine wrong(what)
    character(*), intent(in) :: what
    print '(a,i0,2a)', 'image ', me, ': wrong ', what
    error stop 1
  end subroutine
end program
