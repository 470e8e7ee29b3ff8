/* Programs that hang, each in a way that `clc-replay watch` has to name. Run on 3 processes or more.
 *
 *   hangs WAY [SECONDS]      default: until it is killed
 *
 * missing   rank 1 computes in region "solve" and does not come to the third barrier
 * circle    every rank waits for a message of the next one, with its own rank plus 40 as the tag
 * init      rank 1 does not call MPI_Init
 * kill      rank 1 is killed by SIGKILL in the midst of barriers
 * stop      rank 1 is stopped by SIGSTOP in the midst of barriers
 * differ    rank 1 calls MPI_Allreduce where the others call MPI_Bcast
 * waitall   rank 0 waits for messages by MPI_Waitall, one of which rank 1 never sends, since it waits by MPI_Test in vain for one of rank 2, which computes
 * comms     1,000 communicators; in the last one rank 1 is missing
 * fence     rank 1 computes and does not come to the second fence of a window
 * probe     rank 0 waits by MPI_Probe for a message of rank 1, which computes
 * moves     barriers all the time
 * split     a communicator of the odd ranks and one of the even ones; rank 2 is missing in the latter's second MPI_Allreduce */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <clc_recorder.h>

static double begun;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static double limit = 1e9;

/* For ever, or until the program is to end by itself; work, not sleep. */
static void compute(void)
{
    volatile double sum = 0;
    while (now() - begun < limit) {
        for (int i = 0; i < 1000; i++)
            sum += i;
        usleep(1000);
    }
    exit(0);
}

int main(int argc, char **argv)
{
    int rank = -1, size, value = 1, sum;
    const char *way = argc > 1 ? argv[1] : "";
    const char *launched = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    begun = now();
    if (argc > 2)
        limit = atof(argv[2]);
    if (!strcmp(way, "init") && launched && atoi(launched) == 1)
        compute();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(way, "missing")) {
        if (rank == 1) {
            clc_region_begin("solve");
            compute();
        }
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(way, "circle")) {
        MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, rank + 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strcmp(way, "kill") || !strcmp(way, "stop")) {
        for (int i = 0;; i++) {
            if (rank == 1 && i == 200)
                raise(*way == 'k' ? SIGKILL : SIGSTOP);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    } else if (!strcmp(way, "differ")) {
        /* Whether one of these two operations comes back does not matter: they never do both. */
        if (rank == 1) {
            MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        } else {
            MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD);
        }
        compute();
    } else if (!strcmp(way, "waitall")) {
        MPI_Request requests[2];
        int flag = 0, values[2];
        if (rank == 0) {
            MPI_Irecv(&values[0], 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(&values[1], 1, MPI_INT, 2, 8, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else if (rank == 1) {
            MPI_Irecv(&values[0], 1, MPI_INT, 2, 9, MPI_COMM_WORLD, &requests[0]);
            while (!flag) {
                MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
                usleep(100);
            }
        } else {
            if (rank == 2)
                MPI_Send(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
            compute();
        }
    } else if (!strcmp(way, "comms")) {
        enum { COMMS = 1000 };
        static MPI_Comm comms[COMMS];
        for (int i = 0; i < COMMS; i++)
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        for (int i = 0; i < COMMS - (rank == 1); i++)
            MPI_Barrier(comms[i]);
        compute();
    } else if (!strcmp(way, "fence")) {
        MPI_Win window;
        MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_fence(0, window);
        if (rank == 1)
            compute();
        MPI_Win_fence(0, window);
        compute();
    } else if (!strcmp(way, "probe")) {
        if (rank == 0)
            MPI_Probe(1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute();
    } else if (!strcmp(way, "moves")) {
        for (;;) {
            MPI_Barrier(MPI_COMM_WORLD);
            usleep(10000);
            /* All of them end together. */
            int more = now() - begun < limit;
            MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
            if (!more)
                break;
        }
    } else if (!strcmp(way, "split")) {
        MPI_Comm part;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part);
        if (rank == 2)
            compute();
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part);
        compute();
    }
    MPI_Finalize();
    return 0;
}
