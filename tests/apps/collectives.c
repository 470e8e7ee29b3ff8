/* Calls every blocking collective operation of MPI, to be recorded as a trace.
 *
 *   collectives [ROUNDS] [MICROSECONDS]      defaults: 1 round, 200 us of uneven work before each call
 *
 * Rooted operations run once per root, on each of four communicators: the world, the even and odd ranks, all ranks
 * in reversed order, and everybody alone. The v-variants give some members zero bytes. A few non-blocking
 * collectives close each round. Runs on any number of processes. Exits 1 if a received value is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int failures = 0;
static double microseconds = 200;
static int step = 0;

static void expect(int condition, const char *what)
{
    if (!condition) {
        failures++;
        fprintf(stderr, "collectives: wrong value: %s\n", what);
    }
}

/* Uneven work before a call, so that members arrive at different times and in changing order. */
static void arrive(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double end = MPI_Wtime() + microseconds * 1e-6 * ((rank * 5 + step * 3) % 7) / 6.0;
    while (MPI_Wtime() < end) {
    }
    step++;
}

/* Member `rank` contributes this many elements to the v-variants: every third one contributes nothing. */
static int share(int rank)
{
    return rank % 3 == 1 ? 0 : rank % 3 + 1;
}

static void rooted(MPI_Comm comm, int rank, int size, int root, int *a, int *b, int *counts, int *displs)
{
    arrive();
    a[0] = rank == root ? 1000 + root : -1;
    MPI_Bcast(a, 1, MPI_INT, root, comm);
    expect(a[0] == 1000 + root, "bcast");

    arrive();
    a[0] = 1;
    MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, root, comm);
    expect(rank != root || b[0] == size, "reduce");

    arrive();
    a[0] = rank;
    MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, root, comm);
    expect(rank != root || b[size - 1] == size - 1, "gather");

    arrive();
    for (int i = 0; i < size; i++)
        b[i] = 10 * i;
    MPI_Scatter(b, 1, MPI_INT, a, 1, MPI_INT, root, comm);
    expect(a[0] == 10 * rank, "scatter");

    arrive();
    for (int i = 0; i < 3; i++)
        a[i] = rank;
    MPI_Gatherv(a, share(rank), MPI_INT, b, counts, displs, MPI_INT, root, comm);
    expect(rank != root || share(size - 1) == 0 || b[displs[size - 1]] == size - 1, "gatherv");

    arrive();
    for (int i = 0; i < 3 * size; i++)
        b[i] = i;
    MPI_Scatterv(b, counts, displs, MPI_INT, a, share(rank), MPI_INT, root, comm);
    expect(share(rank) == 0 || a[0] == displs[rank], "scatterv");

    arrive();
    MPI_Bcast(a, 0, MPI_INT, root, comm); /* no bytes: synchronises nobody */
}

static void unrooted(MPI_Comm comm, int rank, int size, int *a, int *b, int *counts, int *displs)
{
    arrive();
    MPI_Barrier(comm);

    arrive();
    a[0] = rank;
    MPI_Allgather(a, 1, MPI_INT, b, 1, MPI_INT, comm);
    expect(b[size - 1] == size - 1, "allgather");

    arrive();
    for (int i = 0; i < 3; i++)
        a[i] = rank;
    MPI_Allgatherv(a, share(rank), MPI_INT, b, counts, displs, MPI_INT, comm);
    expect(b[0] == 0, "allgatherv");

    arrive();
    for (int i = 0; i < size; i++)
        a[i] = 100 * rank + i;
    MPI_Alltoall(a, 1, MPI_INT, b, 1, MPI_INT, comm);
    expect(b[size - 1] == 100 * (size - 1) + rank, "alltoall");

    /* Only even members send, only odd members receive (all of them, when there is one member). */
    int *scounts = calloc((size_t)size, sizeof(int)), *rcounts = calloc((size_t)size, sizeof(int));
    int *offsets = calloc((size_t)size, sizeof(int)), *bytes = calloc((size_t)size, sizeof(int));
    MPI_Datatype *types = malloc(sizeof *types * (size_t)size);
    for (int i = 0; i < size; i++) {
        scounts[i] = rank % 2 == 0 && i % 2 == 1;
        rcounts[i] = rank % 2 == 1 && i % 2 == 0;
        offsets[i] = i;
        bytes[i] = i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    arrive();
    MPI_Alltoallv(a, scounts, offsets, MPI_INT, b, rcounts, offsets, MPI_INT, comm);
    expect(rank % 2 == 0 || b[0] == rank, "alltoallv");
    arrive();
    MPI_Alltoallw(a, scounts, bytes, types, b, rcounts, bytes, types, comm);
    expect(rank % 2 == 0 || b[0] == rank, "alltoallw");
    free(scounts);
    free(rcounts);
    free(offsets);
    free(bytes);
    free(types);

    arrive();
    a[0] = 1;
    MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, comm);
    expect(b[0] == size, "allreduce");

    arrive();
    for (int i = 0; i < 3 * size; i++)
        a[i] = 1;
    MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm);
    expect(share(rank) == 0 || b[0] == size, "reduce_scatter");

    arrive();
    MPI_Reduce_scatter_block(a, b, 1, MPI_INT, MPI_SUM, comm);
    expect(b[0] == size, "reduce_scatter_block");

    arrive();
    a[0] = 1;
    MPI_Scan(a, b, 1, MPI_INT, MPI_SUM, comm);
    expect(b[0] == rank + 1, "scan");

    arrive();
    MPI_Exscan(a, b, 1, MPI_INT, MPI_SUM, comm);
    expect(rank == 0 || b[0] == rank, "exscan");
}

static void nonblocking(MPI_Comm comm, int rank, int size, int *a, int *b)
{
    MPI_Request requests[3];
    int value = rank == size - 1 ? 7 : 0;
    arrive();
    a[0] = 1;
    MPI_Ibcast(&value, 1, MPI_INT, size - 1, comm, &requests[0]);
    MPI_Iallreduce(a, b, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
    MPI_Ibarrier(comm, &requests[2]);
    arrive();
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    expect(value == 7 && b[0] == size, "non-blocking collectives");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    microseconds = argc > 2 ? atof(argv[2]) : 200;
    int world_rank, world_size;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm comms[4] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_SELF};
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[2]);

    size_t room = 3 * (size_t)world_size + 3;
    int *a = calloc(room, sizeof *a), *b = calloc(room, sizeof *b);
    int *counts = calloc(room, sizeof *counts), *displs = calloc(room, sizeof *displs);
    for (int round = 0; round < rounds; round++) {
        for (int which = 0; which < 4; which++) {
            int rank, size;
            MPI_Comm_rank(comms[which], &rank);
            MPI_Comm_size(comms[which], &size);
            for (int i = 0, at = 0; i < size; at += share(i), i++) {
                counts[i] = share(i);
                displs[i] = at;
            }
            for (int root = 0; root < size; root++)
                rooted(comms[which], rank, size, root, a, b, counts, displs);
            unrooted(comms[which], rank, size, a, b, counts, displs);
            nonblocking(comms[which], rank, size, a, b);
        }
    }
    free(a);
    free(b);
    free(counts);
    free(displs);

    int all_failures = 0;
    MPI_Allreduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_free(&comms[2]);
    MPI_Comm_free(&comms[1]);
    MPI_Finalize();
    return all_failures > 0;
}
