! SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
! A Fortran program: what it calls reaches an MPI library by other names than C's.
program fortran
  use mpi
  implicit none
  integer :: rank, ranks, ierr, request, i
  integer :: status(MPI_STATUS_SIZE)
  double precision :: values(100), sums(100)
  logical :: mine, all
  integer :: numbers(4)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  do i = 1, 100
    values(i) = rank + i
  end do
  call MPI_Allreduce(values, sums, 100, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Allreduce(MPI_IN_PLACE, values, 100, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  all = .true.
  do i = 1, 100
    all = all .and. sums(i) == ranks * i + ranks * (ranks - 1) / 2 .and. values(i) == sums(i)
  end do
  mine = all
  call MPI_Allreduce(mine, all, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  numbers = rank
  call MPI_Ibcast(numbers, 4, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, request, ierr)
  call MPI_Wait(request, status, ierr)
  all = all .and. numbers(4) == ranks - 1
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. all) print '(a)', 'right'
  call MPI_Finalize(ierr)
end program fortran
