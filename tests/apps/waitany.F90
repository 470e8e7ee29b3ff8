! Waits for one of several requests, most of which are null, by the module mpi_f08.
program waitany
  use mpi_f08
  implicit none
  integer :: rank, ranks, i, k, place, sent(10), received(10)
  type(MPI_Request) :: requests(8)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  sent = rank
  do k = 1, 20
    requests = MPI_REQUEST_NULL
    call MPI_Irecv(received, 10, MPI_INTEGER, modulo(rank - 1, ranks), 3, MPI_COMM_WORLD, requests(3))
    call MPI_Isend(sent, 7, MPI_INTEGER, modulo(rank + 1, ranks), 3, MPI_COMM_WORLD, requests(5))
    do i = 1, 2
      call MPI_Waitany(8, requests, place, MPI_STATUS_IGNORE)
    end do
  end do
  call MPI_Finalize()
end program
