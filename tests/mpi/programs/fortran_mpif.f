! SPDX-License-Identifier: BSD-3-Clause
! mpif.h: fixed form and implicit interfaces, as old programs have them.
      program fortran_mpif
      implicit none
      include 'mpif.h'
      integer length
      parameter (length = 40000)
      integer ierr, rank, ranks, i, left, right, got, column, other
      integer requests(2), statuses(MPI_STATUS_SIZE, 2)
      integer table(20, 30)
      double precision sent(length), received(length), total, most
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      left = mod(rank + ranks - 1, ranks)
      right = mod(rank + 1, ranks)
      do 10 i = 1, length
        sent(i) = rank * 1000.0d0 + i
   10 continue
      call MPI_IRECV(received, length, MPI_DOUBLE_PRECISION, left, 3,
     &               MPI_COMM_WORLD, requests(1), ierr)
      call MPI_ISEND(sent, length, MPI_DOUBLE_PRECISION, right, 3,
     &               MPI_COMM_WORLD, requests(2), ierr)
      call MPI_WAITALL(2, requests, statuses, ierr)
      call MPI_GET_COUNT(statuses(1, 1), MPI_DOUBLE_PRECISION, got,
     &                   ierr)
      if (got .ne. length) call wrong('count', rank)
      if (statuses(MPI_SOURCE, 1) .ne. left) call wrong('source', rank)
      do 20 i = 1, length
        if (received(i) .ne. left * 1000.0d0 + i) then
          call wrong('number', rank)
        end if
   20 continue
!     A row of a table is no neighbourhood in Fortran.
      call MPI_TYPE_VECTOR(30, 1, 20, MPI_INTEGER, column, ierr)
      call MPI_TYPE_COMMIT(column, ierr)
      do 30 i = 1, 30
        table(4, i) = rank * 100 + i
        table(5, i) = 0
   30 continue
      call MPI_SENDRECV(table(4, 1), 1, column, right, 4, table(5, 1),
     &                  1, column, left, 4, MPI_COMM_WORLD,
     &                  statuses(1, 1), ierr)
      do 40 i = 1, 30
        if (table(5, i) .ne. left * 100 + i) call wrong('row', rank)
   40 continue
      call MPI_TYPE_FREE(column, ierr)
      call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(rank, 2), rank, other,
     &                    ierr)
      call MPI_ALLREDUCE(received(length), total, 1,
     &                   MPI_DOUBLE_PRECISION, MPI_SUM, other, ierr)
      call MPI_COMM_FREE(other, ierr)
      call MPI_ALLREDUCE(total, most, 1, MPI_DOUBLE_PRECISION,
     &                   MPI_MAX, MPI_COMM_WORLD, ierr)
      if (rank .eq. 0) write (*, '(a, i3, f14.1)') 'mpif.h', ranks,
     &  most
      call MPI_FINALIZE(ierr)
      end

      subroutine wrong(what, rank)
      implicit none
      include 'mpif.h'
      character*(*) what
      integer rank, ierr
      write (0, *) 'rank', rank, ': a wrong ', what
      call MPI_ABORT(MPI_COMM_WORLD, 1, ierr)
      end
