/* A program of MPI 4 that sends and receives by one request, looks at requests without completing them, and starts partitioned messages. Run on 2 processes. MPICH leaves the statuses of such requests as they were, so
   other messages, with other tags and lengths, go before. It prints how many messages it has sent and received, how many partitions, and how many of the messages were from a process to itself. */

#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 20, PARTITIONS = 4 };

int main(int argc, char **argv)
{
    int rank, cells[8] = {0}, others[8];
    long sends = 0, receives = 0, partitions = 0;
    MPI_Request request;
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int other = 1 - rank;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Sendrecv(cells, 8, MPI_INT, other, 40 + i, others, 8, MPI_INT, other, 40 + i, MPI_COMM_WORLD, &status);
        /* With itself. */
        MPI_Isendrecv(cells, 2, MPI_INT, rank, 1, others, 2, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Isendrecv(cells, 3, MPI_INT, other, 2, others, 3, MPI_INT, other, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        MPI_Isendrecv_replace(cells, 4, MPI_INT, other, 3, other, 3, MPI_COMM_WORLD, &request);
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
        /* Only one of the two: from process 0 to 1. */
        int to = rank == 0 ? 1 : MPI_PROC_NULL, from = rank == 1 ? 0 : MPI_PROC_NULL;
        MPI_Isendrecv(cells, 5, MPI_INT, to, 4, others, 5, MPI_INT, from, 4, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        /* Requests that are looked at until they are complete, and then freed: no call completes them. */
        MPI_Request looked[2];
        MPI_Irecv(others, 6, MPI_INT, other, 5, MPI_COMM_WORLD, &looked[0]);
        MPI_Isend(cells, 6, MPI_INT, other, 5, MPI_COMM_WORLD, &looked[1]);
        for (int flag = 0, k = 0; k < 2; k += flag != 0) {
            MPI_Request_get_status(looked[k], &flag, k == 0 ? &status : MPI_STATUS_IGNORE);
            usleep(flag ? 0 : 100);
        }
        MPI_Request_free(&looked[0]);
        MPI_Wait(&looked[1], MPI_STATUS_IGNORE);
        sends += 5 + (rank == 0);
        receives += 5 + (rank == 1);
    }
    if (rank == 0)
        MPI_Psend_init(cells, PARTITIONS, 2, MPI_INT, other, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(others, PARTITIONS, 2, MPI_INT, other, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Start(&request);
        for (int part = 0; rank == 0 && part < PARTITIONS; part++, partitions++)
            MPI_Pready(part, request);
        MPI_Wait(&request, &status);
    }
    MPI_Request_free(&request);
    long mine[3] = {sends, receives, partitions}, all[3];
    MPI_Reduce(mine, all, 3, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sends %ld\nreceives %ld\npartitions %ld\nitself %d\n", all[0], all[1], all[2], 2 * ROUNDS);
    MPI_Finalize();
    return 0;
}
