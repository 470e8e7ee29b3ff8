/* Programs whose messages say little of clocks: silent.c WAY SECONDS, one process on each node.
 *
 *   idle      exchanges with both neighbours for a while, then nothing, then again
 *   pipeline  from each process to the next, nothing back, nobody waits
 *   ring      from each process to the next, the last one to the first
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size;

static void nap(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (long)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* With both neighbours, every millisecond. */
static void exchange(double seconds)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, mine = rank, theirs;
    for (int i = 0; i < seconds * 1000; i++) {
        MPI_Sendrecv(&mine, 1, MPI_INT, right, 1, &theirs, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&mine, 1, MPI_INT, left, 2, &theirs, 1, MPI_INT, right, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        nap(0.001);
    }
}

/* Messages lie there before somebody takes them, most of the time. */
static void pass_on(double seconds, int ring)
{
    int next = ring ? (rank + 1) % size : rank + 1, last = ring ? (rank + size - 1) % size : rank - 1, mine = rank, theirs;
    for (int i = 0; i < seconds * 100; i++) {
        if (next < size)
            MPI_Send(&mine, 1, MPI_INT, next, 3, MPI_COMM_WORLD);
        nap(0.01);
        if (last >= 0)
            MPI_Recv(&theirs, 1, MPI_INT, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "idle";
    double seconds = argc > 2 ? atof(argv[2]) : 10;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(way, "idle") == 0) {
        exchange(seconds / 40);
        nap(0.8 * seconds);
        exchange(seconds / 40);
    } else {
        pass_on(seconds, strcmp(way, "ring") == 0);
    }
    MPI_Finalize();
    return 0;
}
