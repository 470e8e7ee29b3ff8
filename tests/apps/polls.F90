! Polls in vain from Fortran, 100 of each kind: nothing comes before process 0 has sent a message.
program polls
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
#ifdef F08
  type(MPI_Request) :: requests(2)
#else
  integer :: requests(2)
#endif
  integer :: rank, error, i, place, values(2)
  logical :: flag
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  values = 0
  if (rank == 0) then
     call MPI_Irecv(values(1), 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, requests(1), error)
     call MPI_Irecv(values(2), 1, MPI_INTEGER, 1, 2, MPI_COMM_WORLD, requests(2), error)
     do i = 1, 100
        call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, error)
        if (flag) stop 1
        call MPI_Testany(2, requests, place, flag, MPI_STATUS_IGNORE, error)
        if (flag) stop 2
        call MPI_Iprobe(1, 9, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, error)
        if (flag) stop 3
     end do
     call MPI_Send(values, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, error)
     call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  else
     call MPI_Recv(values, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
     do i = 1, 2
        call MPI_Send(values, 1, MPI_INTEGER, 0, i, MPI_COMM_WORLD, error)
     end do
  end if
  call MPI_Finalize(error)
end program polls
