! Calls from Fortran what a recorder has to see exactly once: -DMODULE=mpi or -DMODULE=mpi_f08.
!
! Prints the same lines as recorded.c: what all processes have done together. Needs an even number of processes.
program recorded
  use MODULE
  implicit none
  integer, parameter :: rounds = 10
  integer :: rank, size, partner, i, value, got(2), answer, sums(7), error, place
  logical :: done
#ifdef F08
  type(MPI_Comm) :: half
  type(MPI_Request) :: requests(4)
  type(MPI_Status) :: status
#define SOURCE_OF(status) status%MPI_SOURCE
#else
  integer :: half, requests(4), status(MPI_STATUS_SIZE)
#define SOURCE_OF(status) status(MPI_SOURCE)
#endif
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  partner = ieor(rank, 1)
  ! sends, receives, immediate ones of both, cancelled, collectives (MPI_Init), immediate collectives
  sums = (/ 0, 0, 0, 0, 0, 1, 0 /)
  do i = 1, rounds
    value = rank
    if (mod(rank, 2) == 0) then
      call MPI_Send(value, 1, MPI_INTEGER, partner, i, MPI_COMM_WORLD, error)
      call MPI_Send(value, 1, MPI_INTEGER, partner, i, MPI_COMM_WORLD, error)
      sums(1) = sums(1) + 2
    else
      call MPI_Recv(answer, 1, MPI_INTEGER, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, status, error)
      if (answer /= partner .or. SOURCE_OF(status) /= partner) error stop 'receive'
      call MPI_Recv(answer, 1, MPI_INTEGER, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
      if (answer /= partner) error stop 'receive, status ignored'
      sums(2) = sums(2) + 2
    end if
    call MPI_Irecv(got(1), 1, MPI_INTEGER, partner, 1, MPI_COMM_WORLD, requests(1), error)
    call MPI_Irecv(got(2), 1, MPI_INTEGER, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, requests(2), error)
    call MPI_Isend(value, 1, MPI_INTEGER, partner, 1, MPI_COMM_WORLD, requests(3), error)
    call MPI_Isend(value, 1, MPI_INTEGER, partner, 2, MPI_COMM_WORLD, requests(4), error)
    select case (mod(i, 3))
    case (0)
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
    case (1)
      call MPI_Waitany(4, requests, place, status, error)
      ! MPICH 4.0 counts from 0 in mpi_f08.
      if (place < 0 .or. place > 4) error stop 'waitany'
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
    case default
      done = .false.
      do while (.not. done)
        call MPI_Test(requests(1), done, MPI_STATUS_IGNORE, error)
      end do
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
    end select
    if (any(got /= partner)) error stop 'immediate'
    sums(3:4) = sums(3:4) + 2
    value = 1
    call MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (value /= size) error stop 'allreduce in place'
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
    call MPI_Bcast(value, 1, MPI_INTEGER, 0, half, error)
    call MPI_Ibarrier(half, requests(1), error)
    call MPI_Wait(requests(1), status, error)
    call MPI_Comm_free(half, error)
    sums(6) = sums(6) + 4
    sums(7) = sums(7) + 1
  end do
  ! The one that adds them up, and MPI_Finalize.
  sums(6) = sums(6) + 2
  call MPI_Allreduce(MPI_IN_PLACE, sums, 7, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) then
    print '(a,i0)', 'sends ', sums(1), 'receives ', sums(2), 'immediate_sends ', sums(3), 'immediate_receives ', sums(4), &
      'cancelled ', sums(5), 'collectives ', sums(6), 'immediate_collectives ', sums(7)
  end if
  call MPI_Finalize(error)
end program recorded
