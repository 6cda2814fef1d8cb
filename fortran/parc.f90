! SPDX-License-Identifier: BSD-3-Clause
! The calls of <parc/parc.h> for Fortran: the same names, the same results, the same error codes (libparc(3), and
! parc-fortran(3) for what is different).
!
!     use parc
!     real(c_double), asynchronous :: ghost(n), border(n)
!     rid = parc_initread(context, peer, tag, ghost)
!     wid = parc_initwrite(context, peer, tag, border)
!     ... calculate what needs neither ...
!     code = parc_wait(context, wid)
!     code = parc_wait(context, rid)
!
! A buffer is type(*), dimension(..): the compiler hands over any variable of any type and rank with its length, by
! TS 29113's descriptor, and copies nothing; type(c_ptr) would ask for target, c_loc and a count of bytes in each call.
! Lists of pieces, which C has as an array of struct iovec, are addresses: parc_iovec(c_loc(x), c_sizeof(x)).
module parc
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer, parameter :: parc_op = c_int64_t ! the kind of an operation
  integer(parc_op), parameter :: PARC_OP_NULL = 0_parc_op

  integer(c_int), parameter :: PARC_ANY_SOURCE = -1, PARC_ANY_TAG = -1, PARC_NO_PEER = -2
  integer(c_int32_t), parameter :: PARC_CONTEXT_RESERVED = int(z'ffff0000', c_int32_t) ! without a sign
  integer(c_int), parameter :: PARC_ADDRESS_BYTES = 64, PARC_MAX_OPERATIONS = 2097152

  integer(c_int), parameter :: PARC_OK = 0, PARC_EINVAL = -1, PARC_ENOMEM = -2, PARC_EAGAIN = -3, &
    PARC_ETRUNCATE = -4, PARC_EPEER = -5, PARC_EKERNEL = -6, PARC_ECANCELED = -7, PARC_EFORK = -8, &
    PARC_EVERSION = -9, PARC_ENOKERNEL = -10, PARC_ESPAWN = -11, PARC_EPLACE = -12

  integer(c_int), parameter :: PARC_FROM_END = 1, PARC_EARLY = 2, PARC_SYNCHRONOUS = 4, PARC_NOW = 8, &
    PARC_CLAIM = 16, PARC_QUEUED = 32, PARC_UNTAGGED = 64, PARC_WITH_DATA = 128, PARC_AT_ONCE = 256
  integer(c_int), parameter :: PARC_MAY_GET = 1, PARC_MAY_PUT = 2, PARC_MAY_ANYBODY = 4, &
    PARC_ADD = 0, PARC_SWAP = 1, PARC_COMPARE_SWAP = 2, PARC_AND = 3, PARC_OR = 4, PARC_XOR = 5

  integer(c_int), parameter :: PARC_RELEASE_OFF = 0, PARC_RELEASE_ENVELOPE = 1, PARC_RELEASE_FULL = 2, &
    PARC_RELEASE_GETS = 3
  integer(c_int), parameter :: PARC_ORDER_ANY = 0, PARC_ORDER_UP = 1, PARC_ORDER_DOWN = 2

  type, bind(c) :: parc_status
    integer(c_int) :: source = 0, tag = 0
    integer(c_int32_t) :: context = 0
    integer(c_int) :: error = PARC_OK
    integer(c_int64_t) :: length = 0, data = 0
    integer(c_int) :: has_data = 0
  end type

  type, bind(c) :: parc_envelope
    integer(c_int) :: peer
    integer(c_int64_t) :: tag, ignore = 0, data = 0
  end type

  type, bind(c) :: parc_iovec ! struct iovec
    type(c_ptr) :: base
    integer(c_size_t) :: length
  end type

  type, bind(c) :: parc_place
    integer(c_int) :: peer
    integer(c_int64_t) :: window, offset = 0
  end type

  type, bind(c) :: parc_completion
    integer(parc_op) :: operation = PARC_OP_NULL
    type(parc_status) :: status
  end type

  type, bind(c) :: parc_lost
    type(c_ptr) :: buffer
    integer(c_int64_t) :: length, front
    integer(c_int) :: source, tag, error
  end type

  type, bind(c) :: parc_release_counts
    integer(c_int64_t) :: released = 0, faults = 0, late_faults = 0, openings = 0
  end type

  abstract interface
    subroutine parc_lost_handler(argument, lost) bind(c)
      import
      type(c_ptr), value :: argument
      type(parc_lost), intent(in) :: lost
    end subroutine
  end interface

  ! Context.
  interface
    function parc_open(context) bind(c) result(code)
      import
      type(c_ptr), intent(out) :: context
      integer(c_int) :: code
    end function
    function parc_start_kernel() bind(c) result(code)
      import
      integer(c_int) :: code
    end function
    function parc_close(context) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int) :: code
    end function
    function parc_rank(context) bind(c) result(rank)
      import
      type(c_ptr), value :: context
      integer(c_int) :: rank
    end function
    function parc_size(context) bind(c) result(size)
      import
      type(c_ptr), value :: context
      integer(c_int) :: size
    end function
    subroutine parc_abort(context, status) bind(c)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: status
    end subroutine
    function parc_clock() bind(c) result(seconds)
      import
      real(c_double) :: seconds
    end function
    function parc_barrier(context) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int) :: code
    end function
    function parc_set_put_off(context, operations, peer) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int64_t), value :: operations
      integer(c_int), value :: peer
      integer(c_int) :: code
    end function
    function parc_set_copy_room(context, bytes) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_size_t), value :: bytes
      integer(c_int) :: code
    end function
  end interface

  ! Memory: call c_f_pointer(parc_alloc(context, bytes), array, [n]).
  interface
    function parc_alloc(context, bytes) bind(c) result(memory)
      import
      type(c_ptr), value :: context
      integer(c_size_t), value :: bytes
      type(c_ptr) :: memory
    end function
    subroutine parc_free(context, memory) bind(c)
      import
      type(c_ptr), value :: context, memory
    end subroutine
  end interface

  ! Starting operations.
  interface
    function parc_initread(context, peer, tag, buffer) bind(c, name="parc_fortran_initread") result(operation)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: peer, tag
      type(*), dimension(..), intent(inout), asynchronous :: buffer
      integer(parc_op) :: operation
    end function
    function parc_initwrite(context, peer, tag, buffer) bind(c, name="parc_fortran_initwrite") result(operation)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: peer, tag
      type(*), dimension(..), intent(in), asynchronous :: buffer
      integer(parc_op) :: operation
    end function
    function parc_initreadv(context, envelope, pieces, count, flags) bind(c) result(operation)
      import
      type(c_ptr), value :: context
      type(parc_envelope), intent(in) :: envelope
      type(parc_iovec), intent(in) :: pieces(*)
      integer(c_int), value :: count, flags
      integer(parc_op) :: operation
    end function
    function parc_initwritev(context, envelope, pieces, count, flags) bind(c) result(operation)
      import
      type(c_ptr), value :: context
      type(parc_envelope), intent(in) :: envelope
      type(parc_iovec), intent(in) :: pieces(*)
      integer(c_int), value :: count, flags
      integer(parc_op) :: operation
    end function
    function parc_initprobe(context, envelope, flags) bind(c) result(operation)
      import
      type(c_ptr), value :: context
      type(parc_envelope), intent(in) :: envelope
      integer(c_int), value :: flags
      integer(parc_op) :: operation
    end function
    function parc_initexit(context, peer, flags) bind(c) result(operation)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: peer, flags
      integer(parc_op) :: operation
    end function
    function parc_initread_claimed(context, claim, pieces, count, flags) bind(c) result(operation)
      import
      type(c_ptr), value :: context
      integer(parc_op), value :: claim
      type(parc_iovec), intent(in) :: pieces(*)
      integer(c_int), value :: count, flags
      integer(parc_op) :: operation
    end function
  end interface

  include 'windows.inc'

  ! Finishing operations.
  interface
    function parc_wait(context, operation, status) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(parc_op), value :: operation
      type(parc_status), intent(inout), optional :: status
      integer(c_int) :: code
    end function
    function parc_test(context, operation, status) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(parc_op), value :: operation
      type(parc_status), intent(inout), optional :: status
      integer(c_int) :: code
    end function
    function parc_done(context, operation) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(parc_op), value :: operation
      integer(c_int) :: code
    end function
    function parc_waitall(context, count, operations, statuses) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: count
      integer(parc_op), intent(inout) :: operations(*)
      type(parc_status), intent(inout), optional :: statuses(*)
      integer(c_int) :: code
    end function
    function parc_waitany(context, count, operations, index, status) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: count
      integer(parc_op), intent(inout) :: operations(*)
      integer(c_int), intent(out) :: index ! as in C: 0 is the first, -1 none
      type(parc_status), intent(inout), optional :: status
      integer(c_int) :: code
    end function
    function parc_waitsome(context, count, operations, done, indices, statuses) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: count
      integer(parc_op), intent(inout) :: operations(*)
      integer(c_int), intent(out) :: done
      integer(c_int), intent(inout), optional :: indices(*) ! as in C: from 0
      type(parc_status), intent(inout), optional :: statuses(*)
      integer(c_int) :: code
    end function
    function parc_parent(context) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int) :: code
    end function
    function parc_kill(context, peer, signal) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: peer, signal
      integer(c_int) :: code
    end function
    function parc_cancel(context, operation) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(parc_op), value :: operation
      integer(c_int) :: code
    end function
  end interface

  ! The completion queue.
  interface
    function parc_op_index(operation) bind(c) result(index)
      import
      integer(parc_op), value :: operation
      integer(c_int) :: index
    end function
    function parc_completions(context, completions, count, timeout) bind(c) result(code)
      import
      type(c_ptr), value :: context
      type(parc_completion), intent(inout) :: completions(*)
      integer(c_int), value :: count
      real(c_double), value :: timeout
      integer(c_int) :: code
    end function
    function parc_wake(context) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int) :: code
    end function
    function parc_descriptor(context) bind(c) result(descriptor)
      import
      type(c_ptr), value :: context
      integer(c_int) :: descriptor
    end function
    function parc_arm(context) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int) :: code
    end function
  end interface

  ! Whole calls.
  interface
    function parc_read(context, peer, tag, buffer, status) bind(c, name="parc_fortran_read") result(code)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: peer, tag
      type(*), dimension(..), intent(inout) :: buffer
      type(parc_status), intent(inout), optional :: status
      integer(c_int) :: code
    end function
    function parc_write(context, peer, tag, buffer) bind(c, name="parc_fortran_write") result(code)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: peer, tag
      type(*), dimension(..), intent(in) :: buffer
      integer(c_int) :: code
    end function
    function parc_probe(context, envelope, status) bind(c) result(code)
      import
      type(c_ptr), value :: context
      type(parc_envelope), intent(in) :: envelope
      type(parc_status), intent(inout), optional :: status
      integer(c_int) :: code
    end function
    function parc_iprobe(context, envelope, status) bind(c) result(code)
      import
      type(c_ptr), value :: context
      type(parc_envelope), intent(in) :: envelope
      type(parc_status), intent(inout), optional :: status
      integer(c_int) :: code
    end function
  end interface

  ! Early release.
  interface
    function parc_set_release(context, level) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: level
      integer(c_int) :: code
    end function
    function parc_set_order(context, order) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: order
      integer(c_int) :: code
    end function
    function parc_set_strip(context, bytes) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_size_t), value :: bytes
      integer(c_int) :: code
    end function
    function parc_set_train(context, gets) bind(c) result(code)
      import
      type(c_ptr), value :: context
      integer(c_int), value :: gets
      integer(c_int) :: code
    end function
    function parc_settle(context, buffer) bind(c, name="parc_fortran_settle") result(code)
      import
      type(c_ptr), value :: context
      type(*), dimension(..), intent(in), optional :: buffer
      integer(c_int) :: code
    end function
    function parc_on_lost(context, handler, argument) bind(c) result(code)
      import
      type(c_ptr), value :: context, argument
      type(c_funptr), value :: handler ! c_funloc of a parc_lost_handler, or c_null_funptr
      integer(c_int) :: code
    end function
    function parc_get_release_counts(context, counts) bind(c) result(code)
      import
      type(c_ptr), value :: context
      type(parc_release_counts), intent(inout) :: counts
      integer(c_int) :: code
    end function
  end interface

  private :: as_text

contains

  ! Of a context and a tag, or PARC_ANY_TAG, as parc.h has it.
  function parc_envelope_of(peer, context, tag) result(envelope)
    integer(c_int), intent(in) :: peer, tag
    integer(c_int32_t), intent(in) :: context
    type(parc_envelope) :: envelope
    integer(c_int64_t), parameter :: lower_half = int(z'ffffffff', c_int64_t)
    envelope = parc_envelope(peer, shiftl(int(context, c_int64_t), 32))
    if (tag == PARC_ANY_TAG) then
      envelope%ignore = lower_half
    else
      envelope%tag = ior(envelope%tag, iand(int(tag, c_int64_t), lower_half))
    end if
    if ((tag < 0 .and. tag /= PARC_ANY_TAG) .or. (context < 0 .and. context >= PARC_CONTEXT_RESERVED)) &
      envelope%peer = PARC_NO_PEER
  end function

  ! A text of C's; nothing where there is none.
  function as_text(address) result(text)
    type(c_ptr), intent(in) :: address
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    interface
      function strlen(address) bind(c) result(length)
        import
        type(c_ptr), value :: address
        integer(c_size_t) :: length
      end function
    end interface
    text = ''
    if (.not. c_associated(address)) return
    call c_f_pointer(address, letters, [strlen(address)])
    deallocate (text)
    allocate (character(len=size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  ! Name of the host of a rank, of no letters when there is no such rank.
  function parc_host(context, rank) result(name)
    type(c_ptr), intent(in) :: context
    integer(c_int), intent(in) :: rank
    character(len=:), allocatable :: name
    interface
      function host_c(context, rank) bind(c, name="parc_host") result(name)
        import
        type(c_ptr), value :: context
        integer(c_int), value :: rank
        type(c_ptr) :: name
      end function
    end interface
    name = as_text(host_c(context, rank))
  end function

  ! `text` is filled up with blanks, as Fortran's are; PARC_ADDRESS_BYTES are enough.
  function parc_address_of(context, peer, text) result(code)
    type(c_ptr), intent(in) :: context
    integer(c_int), intent(in) :: peer
    character(len=*), intent(out) :: text
    integer(c_int) :: code
    character(len=len(text) + 1, kind=c_char), target :: ended
    interface
      function address_of_c(context, peer, text, bytes) bind(c, name="parc_address_of") result(code)
        import
        type(c_ptr), value :: context
        integer(c_int), value :: peer
        character(kind=c_char), intent(inout) :: text(*)
        integer(c_size_t), value :: bytes
        integer(c_int) :: code
      end function
    end interface
    ended = c_null_char
    code = address_of_c(context, peer, ended, len(ended, c_size_t))
    text = ended(:index(ended, c_null_char) - 1)
  end function

  ! `job`: "NAME" or "NAME@HOST".
  function parc_join(context, job, rank, size) result(code)
    type(c_ptr), intent(out) :: context
    character(len=*), intent(in) :: job
    integer(c_int), intent(in) :: rank, size
    integer(c_int) :: code
    interface
      function join_c(context, job, rank, size) bind(c, name="parc_join") result(code)
        import
        type(c_ptr), intent(out) :: context
        character(kind=c_char), intent(in) :: job(*)
        integer(c_int), value :: rank, size
        integer(c_int) :: code
      end function
    end interface
    code = join_c(context, trim(job)//c_null_char, rank, size)
  end function

  function parc_add_peer(context, address) result(code)
    type(c_ptr), intent(in) :: context
    character(len=*), intent(in) :: address
    integer(c_int) :: code
    interface
      function add_peer_c(context, address) bind(c, name="parc_add_peer") result(code)
        import
        type(c_ptr), value :: context
        character(kind=c_char), intent(in) :: address(*)
        integer(c_int) :: code
      end function
    end interface
    code = add_peer_c(context, trim(address)//c_null_char)
  end function

  ! `arguments`: the program's name first; blanks at the end of each are not its own. `hosts`: "a:2,b"; absent:
  ! those of this job take turns.
  function parc_spawn(context, arguments, count, hosts, peers) result(code)
    type(c_ptr), intent(in) :: context
    character(len=*), intent(in) :: arguments(:)
    integer(c_int), intent(in) :: count
    character(len=*), intent(in), optional :: hosts
    integer(c_int), intent(out), optional :: peers(*)
    integer(c_int) :: code
    character(len=len(arguments) + 1, kind=c_char), target :: words(size(arguments))
    type(c_ptr) :: list(size(arguments) + 1)
    character(len=:, kind=c_char), allocatable, target :: places
    type(c_ptr) :: place
    integer :: i
    interface
      function spawn_c(context, arguments, count, hosts, peers) bind(c, name="parc_spawn") result(code)
        import
        type(c_ptr), value :: context
        type(c_ptr), intent(in) :: arguments(*)
        integer(c_int), value :: count
        type(c_ptr), value :: hosts
        integer(c_int), intent(out), optional :: peers(*)
        integer(c_int) :: code
      end function
    end interface
    do i = 1, size(arguments)
      words(i) = trim(arguments(i))//c_null_char
      list(i) = c_loc(words(i))
    end do
    list(size(arguments) + 1) = c_null_ptr
    place = c_null_ptr
    if (present(hosts)) then
      places = trim(hosts)//c_null_char
      place = c_loc(places)
    end if
    code = spawn_c(context, list, count, place, peers)
  end function

  function parc_error_string(error) result(sentence)
    integer(c_int), intent(in) :: error
    character(len=:), allocatable :: sentence
    interface
      function error_string_c(error) bind(c, name="parc_error_string") result(sentence)
        import
        integer(c_int), value :: error
        type(c_ptr) :: sentence
      end function
    end interface
    sentence = as_text(error_string_c(error))
  end function

  function parc_error_detail() result(sentence)
    character(len=:), allocatable :: sentence
    interface
      function error_detail_c() bind(c, name="parc_error_detail") result(sentence)
        import
        type(c_ptr) :: sentence
      end function
    end interface
    sentence = as_text(error_detail_c())
  end function

end module
