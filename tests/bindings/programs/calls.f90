! SPDX-License-Identifier: BSD-3-Clause
! Each call of the module parc between the two ranks of a job; says what it has done.
module checks
  use parc
  implicit none
  type(c_ptr) :: context
  integer(c_int) :: rank, other
contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print '(i0,4a)', rank, ': not so: ', what, '; the last failure: ', parc_error_detail()
    error stop 1
  end subroutine

  subroutine check(code)
    integer(c_int), intent(in) :: code
    call expect(code >= PARC_OK, 'a call succeeds')
  end subroutine

  ! Any type, any rank, and what lies in one piece.
  subroutine buffers()
    type, bind(c) :: point
      integer(c_int) :: i
      real(c_double) :: x
    end type
    type(parc_status) :: status
    type(point) :: points(2), their_points(2)
    real(c_double), asynchronous :: field(3, 4), ghost(3)
    integer(c_int) :: number
    character(len=5) :: word
    integer :: i, j
    field = reshape([((10*i + j + 100*rank, i=1, 3), j=1, 4)], [3, 4])
    call check(parc_write(context, other, 1, field(:, 2)))
    call check(parc_read(context, other, 1, ghost, status))
    call expect(all(ghost == [(10*i + 2 + 100*other, i=1, 3)]), 'a column arrives')
    call expect(status%length == 24 .and. status%source == other .and. status%tag == 1, 'its status says so')
    call check(parc_write(context, other, 2, 40 + rank))
    call check(parc_read(context, other, 2, number))
    call expect(number == 40 + other, 'a scalar arrives')
    points = [point(1, 0.5_c_double), point(2, rank + 1.5_c_double)]
    call check(parc_write(context, other, 3, points))
    call check(parc_read(context, other, 3, their_points))
    call expect(their_points(2)%i == 2 .and. their_points(2)%x == other + 1.5, 'points arrive')
    call check(parc_write(context, other, 4, 'hello'))
    call check(parc_read(context, other, 4, word))
    call expect(word == 'hello', 'a word arrives')
    call check(parc_write(context, other, 5, [integer ::]))
    call check(parc_read(context, other, 5, number, status))
    call expect(status%length == 0 .and. number == 40 + other, 'nothing arrives')
  end subroutine

  ! Sections that do not lie in one piece, read and written without a copy of them.
  subroutine sections()
    integer(c_int), asynchronous :: mine(6, 5, 4), theirs(6, 5, 4), expected(6, 5, 4)
    integer(parc_op) :: reading, writing
    integer :: i
    mine = reshape([(i, i=1, 120)], [6, 5, 4]) + 1000*rank
    theirs = -1
    expected = -1
    expected(2, :, 3) = mine(2, :, 3) + 1000*(other - rank)
    reading = parc_initread(context, other, 10, theirs(2, :, 3))
    writing = parc_initwrite(context, other, 10, mine(2, :, 3))
    call check(parc_wait(context, reading))
    call check(parc_wait(context, writing))
    call expect(all(theirs == expected), 'a row arrives where it belongs, and nothing else')
    reading = parc_initread(context, other, 11, theirs(2:5, 1:5:2, 4:1:-1))
    writing = parc_initwrite(context, other, 11, mine(2:5, 1:5:2, 4:1:-1))
    expected(2:5, 1:5:2, 4:1:-1) = mine(2:5, 1:5:2, 4:1:-1) + 1000*(other - rank)
    call check(parc_wait(context, reading))
    call check(parc_wait(context, writing))
    call expect(all(theirs == expected), 'a section with strides, backwards, arrives')
    call check(parc_write(context, other, 12, mine(:, 5, 2:3)))
    call check(parc_read(context, other, 12, theirs(6:1:-1, 5, 1:2)))
    call expect(all(theirs(6:1:-1, 5, 1:2) == mine(:, 5, 2:3) + 1000*(other - rank)), 'what came is turned')
  end subroutine

  subroutine refused()
    real(c_double) :: long(2, 1025)
    integer :: i
    long = 0
    call expect(parc_initwrite(context, other, 0, long(1, :)) == PARC_EINVAL, '1,025 pieces are too many')
    call expect(index(parc_error_detail(), '1025 pieces') > 0, 'that is said')
    call endless(long)
    call expect(parc_initread(c_null_ptr, other, 0, long) == PARC_EINVAL, 'no context')
    call expect(parc_initread(context, 2, 0, long) == PARC_EINVAL, 'no such rank')
    do i = 1, 10
      call expect(len_trim(parc_error_string(int(-i, c_int))) > 10, 'an error has a sentence')
    end do
    call expect(len(parc_host(context, 2)) == 0 .and. len(parc_host(context, other)) > 0, 'hosts have names')
  end subroutine

  subroutine endless(unknown)
    real(c_double), intent(inout) :: unknown(*)
    call expect(parc_initread(context, other, 0, unknown) == PARC_EINVAL, 'nobody knows its length')
    call expect(index(parc_error_detail(), 'too long') > 0, 'that is said, too')
    call check(parc_write(context, other, 15, unknown(:3)))
    call check(parc_read(context, other, 15, unknown(:3)))
  end subroutine

  subroutine waits()
    integer(c_int), asynchronous :: places(3)
    integer(parc_op) :: reads(3)
    integer(c_int) :: place, done, indices(3)
    type(parc_status) :: statuses(3), status
    integer :: i
    reads = [(parc_initread(context, other, int(20 + i, c_int), places(i)), i=1, 3)]
    call expect(parc_test(context, reads(1)) == 0 .and. parc_done(context, reads(1)) == 0, 'nothing is there')
    call check(parc_barrier(context))
    call check(parc_write(context, other, 22, 222))
    call check(parc_waitany(context, 3, reads, place, status))
    call expect(place == 1 .and. places(2) == 222 .and. reads(2) == PARC_OP_NULL .and. status%tag == 22, 'one came')
    call check(parc_barrier(context))
    call check(parc_write(context, other, 21, 211))
    call check(parc_waitsome(context, 3, reads, done, indices, statuses))
    call expect(done == 1 .and. indices(1) == 0 .and. statuses(1)%length == 4 .and. places(1) == 211, 'another')
    call check(parc_cancel(context, reads(3)))
    call expect(parc_waitall(context, 3, reads, statuses) == PARC_ECANCELED, 'the last is given up')
    call expect(statuses(3)%error == PARC_ECANCELED .and. all(reads == PARC_OP_NULL), 'and spent')
  end subroutine

  subroutine windows()
    integer(c_int), pointer, contiguous :: part(:)
    integer(c_int), asynchronous :: got(10)
    type(parc_status) :: status
    integer :: i
    integer(c_int64_t) :: before
    call c_f_pointer(parc_alloc(context, 400_c_size_t), part, [100])
    part = rank + 1
    call check(parc_expose(context, 5_c_int64_t, part, PARC_MAY_GET))
    call expect(parc_expose(context, 6_c_int64_t, part(::2), PARC_MAY_GET) == PARC_ENOMEM, 'a window is one piece')
    call check(parc_expose(context, 6_c_int64_t, got, PARC_MAY_GET))
    call check(parc_unexpose(context, 6_c_int64_t))
    call check(parc_barrier(context))
    got = 0
    call check(parc_get(context, parc_place(other, 5_c_int64_t, 40_c_int64_t), got(::2)))
    call expect(all(got(::2) == other + 1) .and. all(got(2::2) == 0), 'what is in the window of the other')
    call check(parc_wait(context, parc_initget(context, parc_place(other, 5_c_int64_t), got, PARC_FROM_END), status))
    call expect(all(got == other + 1) .and. status%source == other .and. status%length == 40, 'from its beginning')
    call expect(parc_get(context, parc_place(other, 5_c_int64_t, 364_c_int64_t), got) == PARC_EPLACE, 'and its end')
    got = 0
    call check(parc_wait(context, parc_initget_rows(context, parc_place(other, 5_c_int64_t, 4_c_int64_t), 4_c_int64_t, &
      40_c_int64_t, got(::2), 0)))
    call expect(all(got(::2) == other + 1) .and. all(got(2::2) == 0), 'a row of its columns')
    call expect(parc_initget_rows(context, parc_place(other, 5_c_int64_t), 3_c_int64_t, 8_c_int64_t, got, 0) == &
      PARC_EINVAL, 'no rows')
    call check(parc_barrier(context))
    call check(parc_unexpose(context, 5_c_int64_t))
    call check(parc_expose(context, 5_c_int64_t, part, PARC_MAY_PUT))
    call check(parc_barrier(context))
    got = [(10 * rank + i, i = 1, 10)]
    call check(parc_put(context, parc_place(other, 5_c_int64_t, 40_c_int64_t), got(::2)))
    call check(parc_wait(context, parc_initput(context, parc_place(other, 5_c_int64_t), got, PARC_SYNCHRONOUS), status))
    call expect(status%source == other .and. status%length == 40, 'what was put')
    call check(parc_wait(context, parc_initput_rows(context, parc_place(other, 5_c_int64_t, 240_c_int64_t), 4_c_int64_t, &
      -8_c_int64_t, got(:3), 0)))
    call check(parc_fetch_add(context, parc_place(other, 5_c_int64_t, 80_c_int64_t), 5_c_int64_t, before))
    call expect(before == ior(shiftl(int(other + 1, c_int64_t), 32), int(other + 1, c_int64_t)), 'was there before')
    call check(parc_wait(context, parc_initatomic(context, parc_place(other, 5_c_int64_t, 88_c_int64_t), PARC_SWAP, &
      4_c_size_t, 77_c_int64_t, 0_c_int64_t, flags=0), status))
    call expect(status%data == other + 1, 'is the data of its status')
    call check(parc_quiet(context))
    call check(parc_barrier(context))
    call expect(all(part(1:10) == [(10 * other + i, i = 1, 10)]), 'what the other has put')
    call expect(part(21) == rank + 6 .and. part(23) == 77, 'what the other has added and swapped')
    call expect(all(part(57:61) == [10 * other + 3, rank + 1, 10 * other + 2, rank + 1, 10 * other + 1]), 'and its rows')
    call expect(all(part(11:15) == [(10 * other + i, i = 1, 10, 2)]) .and. part(16) == rank + 1, 'and before')
    call check(parc_barrier(context))
    call check(parc_unexpose(context, 5_c_int64_t))
    call parc_free(context, c_loc(part))
  end subroutine

  subroutine envelopes()
    integer(c_int), target :: sent, got
    type(parc_iovec) :: from(1), to(1)
    type(parc_status) :: status
    integer(parc_op) :: reading, writing, claim
    sent = 77 + rank
    got = 0
    from(1) = parc_iovec(c_loc(sent), c_sizeof(sent))
    to(1) = parc_iovec(c_loc(got), c_sizeof(got))
    writing = parc_initwritev(context, parc_envelope(other, ibset(7_c_int64_t, 63), data=-1), from, 1, PARC_SYNCHRONOUS)
    claim = parc_initprobe(context, parc_envelope(PARC_ANY_SOURCE, 7, ignore=ibset(0_c_int64_t, 63)), PARC_CLAIM)
    call check(parc_wait(context, claim, status))
    call expect(status%data == -1 .and. status%has_data == 1 .and. status%length == 4, 'a message is claimed')
    call check(parc_wait(context, parc_initread_claimed(context, claim, to, 1, 0)))
    call check(parc_wait(context, writing))
    call expect(got == 77 + other, 'and read')
    writing = parc_initwritev(context, parc_envelope_of(other, 5, 8), [from, from], 2, PARC_FROM_END)
    call expect(parc_iprobe(context, parc_envelope_of(other, 0, 8)) == 0, 'another context has no message')
    call check(parc_probe(context, parc_envelope_of(other, 5, PARC_ANY_TAG), status))
    call expect(status%length == 8 .and. status%context == 5 .and. status%tag == 8, 'its own has')
    reading = parc_initreadv(context, parc_envelope_of(other, 5, 8), to, 1, 0)
    call expect(parc_wait(context, reading) == PARC_ETRUNCATE, 'half of it')
    call check(parc_wait(context, writing))
    call expect(parc_iprobe(context, parc_envelope_of(other, 5, -2)) == PARC_EINVAL, 'no tag is -2')
    call expect(index(parc_error_detail(), 'tag -2') > 0, 'which is said')
    call expect(parc_iprobe(context, parc_envelope_of(other, PARC_CONTEXT_RESERVED, 8)) == PARC_EINVAL, 'a context of parc')
    call expect(index(parc_error_detail(), 'context 0xffff0000') > 0, 'which is said, too')
    call expect(parc_iprobe(context, parc_envelope_of(other, PARC_CONTEXT_RESERVED - 1, 8)) == 0, 'as the one below is')
    writing = parc_initwritev(context, parc_envelope(other, 0), from, 1, PARC_UNTAGGED)
    call check(parc_wait(context, parc_initreadv(context, parc_envelope(other, 0), to, 1, PARC_UNTAGGED)))
    call check(parc_wait(context, writing))
  end subroutine

  subroutine the_queue()
    integer(c_int), target :: got
    type(parc_iovec) :: to(1)
    type(parc_completion) :: ended(2)
    integer(parc_op) :: reading
    to(1) = parc_iovec(c_loc(got), c_sizeof(got))
    reading = parc_initreadv(context, parc_envelope(other, 30), to, 1, PARC_QUEUED)
    call expect(parc_op_index(reading) >= 0 .and. parc_op_index(reading) < PARC_MAX_OPERATIONS, 'it has a place')
    call expect(parc_completions(context, ended, 2, 0.0_c_double) == 0, 'nothing has ended')
    call expect(parc_descriptor(context) >= 0 .and. parc_arm(context) == 0, 'it can be slept for')
    call check(parc_barrier(context))
    call check(parc_write(context, other, 30, 300 + rank))
    call expect(parc_completions(context, ended, 2, -1.0_c_double) == 1, 'one has ended')
    call expect(ended(1)%operation == reading .and. ended(1)%status%tag == 30 .and. got == 300 + other, 'this one')
    call check(parc_wake(context))
    call expect(parc_completions(context, ended, 2, -1.0_c_double) == 0, 'woken')
  end subroutine

  subroutine ignore_loss(argument, lost) bind(c)
    type(c_ptr), value :: argument
    type(parc_lost), intent(in) :: lost
    if (c_associated(argument)) print *, lost%error
  end subroutine

  subroutine settings()
    real(c_double), pointer :: big(:)
    type(c_ptr) :: memory
    type(parc_release_counts) :: counts
    integer(parc_op) :: writing
    memory = parc_alloc(context, 100000*8_c_size_t)
    call expect(c_associated(memory), 'there is memory')
    call c_f_pointer(memory, big, [100000])
    call check(parc_on_lost(context, c_funloc(ignore_loss), c_null_ptr))
    call check(parc_on_lost(context, c_null_funptr, c_null_ptr))
    call check(parc_set_copy_room(context, 1000000_c_size_t))
    call check(parc_set_put_off(context, 0_c_int64_t, PARC_ANY_SOURCE))
    call check(parc_set_order(context, PARC_ORDER_UP))
    call check(parc_set_order(context, PARC_ORDER_ANY))
    call check(parc_set_strip(context, 65536_c_size_t))
    call check(parc_set_train(context, 2))
    call check(parc_set_release(context, PARC_RELEASE_ENVELOPE))
    big = rank
    writing = parc_initwrite(context, other, 40, big(:50000))
    call check(parc_read(context, other, 40, big(50001:)))
    call check(parc_settle(context, big(50001:)))
    call check(parc_settle(context))
    call check(parc_wait(context, writing))
    call expect(all(big(50001:) == other) .and. all(big(:50000) == rank), 'it arrives')
    call check(parc_set_release(context, PARC_RELEASE_OFF))
    call check(parc_get_release_counts(context, counts))
    call expect(counts%faults >= 0, 'faults are counted')
    call parc_free(context, memory)
  end subroutine

  subroutine other_jobs()
    character(len=PARC_ADDRESS_BYTES) :: mine, theirs
    character(len=3) :: short
    call check(parc_start_kernel()) ! does nothing here
    call expect(parc_address_of(context, rank, short) == PARC_ETRUNCATE, 'no room for an address')
    call check(parc_address_of(context, rank, mine))
    call check(parc_write(context, other, 50, mine))
    call check(parc_read(context, other, 50, theirs))
    call expect(theirs /= mine .and. parc_add_peer(context, theirs) == other, 'an address says who it is')
    call expect(parc_add_peer(context, 'nobody') == PARC_EINVAL, 'and this is none')
    call expect(parc_clock() <= parc_clock(), 'time goes on')
  end subroutine

  subroutine say_sizes()
    type(parc_envelope) :: envelope
    type(parc_status) :: status
    type(parc_completion) :: completion
    type(parc_lost) :: lost
    type(parc_release_counts) :: counts
    print '(a,5(1x,i0))', 'sizes', c_sizeof(envelope), c_sizeof(status), c_sizeof(completion), &
      c_sizeof(counts), c_sizeof(lost)
  end subroutine
end module

program calls
  use checks
  implicit none
  call expect(parc_open(context) == PARC_OK, 'the job is joined')
  rank = parc_rank(context)
  other = 1 - rank
  call expect(parc_size(context) == 2, 'this is for two ranks')
  call buffers()
  call sections()
  call refused()
  call waits()
  call windows()
  call envelopes()
  call the_queue()
  call settings()
  call other_jobs()
  call check(parc_barrier(context))
  if (rank == 0) call say_sizes()
  call check(parc_close(context))
  call expect(parc_barrier(context) == PARC_EINVAL, 'it is closed')
end program
