/* Polls in vain, by every function that polls: `polls N [kill]`. Nothing that process 0 asks for happens before it has sent a message. With `kill`, it ends by SIGKILL after them. One
 * process alone has nothing to ask for but messages. */
#include "../../src/marks/clc_recorder.h"
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void in_vain(int flag) {
    if (flag) MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long count = atol(argv[1]);
    int size, rank, data[2] = {0, 0}, flag, index, indices[2];
    MPI_Win window;
    MPI_Group world, other;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 1) {
        for (long i = 0; i < count; i++) MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int peer = 1 - rank;
    MPI_Group_incl(world, 1, &peer, &other);
    MPI_Win_create(data, sizeof data, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    if (rank == 0) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Message message;
        for (int i = 0; i < 2; i++) MPI_Irecv(&data[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Win_post(other, 0, window);
        for (int function = 0; function < 8; function++) {
            clc_marker("next");
            for (long i = 0; i < count; i++) {
                switch (function) {
                case 0: MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE); break;
                case 1: MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE); break;
                case 2: MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE); break;
                case 3: MPI_Testsome(2, requests, &flag, indices, statuses); break;
                case 4: MPI_Iprobe(1, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE); break;
                case 5: MPI_Improbe(1, 9, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE); break;
                case 6: MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE); break;
                case 7: MPI_Win_test(window, &flag); break;
                }
                in_vain(flag);
            }
        }
        /* In turns. */
        clc_marker("next");
        for (long i = 0; i < count; i++) {
            MPI_Test(&requests[i % 2], &flag, MPI_STATUS_IGNORE);
            in_vain(flag);
            MPI_Iprobe(1, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            in_vain(flag);
        }
        /* With calls that have nothing to wait for. */
        clc_marker("next");
        for (long i = 0; i < count; i++) {
            MPI_Request null[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
            MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE);
            in_vain(flag);
            MPI_Wait(&null[0], MPI_STATUS_IGNORE);
            MPI_Waitsome(2, null, &flag, indices, statuses);
        }
        if (argc > 2 && !strcmp(argv[2], "kill")) raise(SIGKILL);
        clc_marker("next");
        for (long i = 0; i < count && i < 1000; i++) {
            MPI_Request null = MPI_REQUEST_NULL;
            MPI_Wait(&null, MPI_STATUS_IGNORE);
        }
        MPI_Send(data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        do MPI_Testall(2, requests, &flag, statuses);
        while (!flag);
        MPI_Win_wait(window);
    } else {
        MPI_Recv(data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; i++) MPI_Send(&data[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        MPI_Win_start(other, 0, window);
        MPI_Win_complete(window);
    }
    MPI_Win_free(&window);
    MPI_Group_free(&other);
    MPI_Group_free(&world);
    MPI_Finalize();
    return 0;
}
