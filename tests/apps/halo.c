/* A small halo-exchange program: the kinds of communication that stencil codes use, to be recorded as a trace.
 *
 *   halo [ITERATIONS] [MICROSECONDS]      defaults: 20 iterations, 400 us of work per iteration and process
 *
 * Per iteration: a periodic 1-D halo exchange by non-blocking calls (two messages of one tag per neighbour, the
 * requests stored in another order than they were posted), uneven work, an Allreduce. Every few iterations: a ring
 * of blocking Send/Recv, Sendrecv, receives from MPI_ANY_SOURCE, Waitany and Test, a cancelled receive, collectives on the
 * world and on three sub-communicators (halves, halves in reversed rank order, all in reversed rank order), with
 * roots other than 0. Runs on any number of processes, 1 included. Exits 1 if a received value is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 64, LARGE = 3000, TAG_HALO = 1, TAG_RING = 2, TAG_PAIR = 3, TAG_ANY = 4, TAG_NEVER = 5 };

static int failures = 0;

static void expect(int condition, const char *what)
{
    if (!condition) {
        failures++;
        fprintf(stderr, "halo: wrong value: %s\n", what);
    }
}

/* Keeps the processor busy, so that processes reach the next exchange at different times. */
static void work(double microseconds)
{
    double end = MPI_Wtime() + microseconds * 1e-6;
    while (MPI_Wtime() < end) {
    }
}

/* A long and a short message to each neighbour, all with one tag: only the posting order tells them apart. */
static void exchange_halo(MPI_Comm comm, int iteration)
{
    int rank, size;
    static double long_out[2][LARGE], long_in[2][LARGE], short_out[2][CELLS], short_in[2][CELLS];
    MPI_Request requests[8];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int side = 0; side < 2; side++) {
        long_out[side][0] = rank + 0.25 * iteration;
        short_out[side][0] = -(rank + 0.25 * iteration);
    }
    /* Posted: long, short from the left, long, short from the right. Stored: the other way round, so that a
     * completion by index (as MPI_Waitall reports it) is not in posting order. */
    MPI_Irecv(long_in[0], LARGE, MPI_DOUBLE, left, TAG_HALO, comm, &requests[7]);
    MPI_Irecv(short_in[0], CELLS, MPI_DOUBLE, left, TAG_HALO, comm, &requests[5]);
    MPI_Irecv(long_in[1], LARGE, MPI_DOUBLE, right, TAG_HALO + 100, comm, &requests[6]);
    MPI_Irecv(short_in[1], CELLS, MPI_DOUBLE, right, TAG_HALO + 100, comm, &requests[4]);
    MPI_Isend(long_out[1], LARGE, MPI_DOUBLE, right, TAG_HALO, comm, &requests[0]);
    MPI_Isend(long_out[0], LARGE, MPI_DOUBLE, left, TAG_HALO + 100, comm, &requests[2]);
    MPI_Isend(short_out[1], CELLS, MPI_DOUBLE, right, TAG_HALO, comm, &requests[1]);
    MPI_Isend(short_out[0], CELLS, MPI_DOUBLE, left, TAG_HALO + 100, comm, &requests[3]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    expect(long_in[0][0] == left + 0.25 * iteration, "long halo from the left");
    expect(short_in[0][0] == -(left + 0.25 * iteration), "short halo from the left");
    expect(long_in[1][0] == right + 0.25 * iteration, "long halo from the right");
    expect(short_in[1][0] == -(right + 0.25 * iteration), "short halo from the right");
}

/* A token that visits every process by blocking calls and comes back to rank 0. */
static void pass_token(MPI_Comm comm)
{
    int rank, size, token = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (size == 1)
        return;
    if (rank > 0)
        MPI_Recv(&token, 1, MPI_INT, rank - 1, TAG_RING, comm, MPI_STATUS_IGNORE);
    token++;
    MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, TAG_RING, comm);
    if (rank == 0) {
        MPI_Recv(&token, 1, MPI_INT, size - 1, TAG_RING, comm, MPI_STATUS_IGNORE);
        expect(token == size, "token");
    }
}

/* A receive that nobody answers: it is tested once, then cancelled. */
static void give_up(MPI_Comm comm)
{
    MPI_Request request;
    MPI_Status status;
    int value, done = 0, cancelled = 0;
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, TAG_NEVER, comm, &request);
    MPI_Test(&request, &done, &status);
    expect(!done, "receive without a sender");
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    expect(cancelled, "cancellation");
}

/* Sendrecv around the ring, then everybody reports to the last rank, which takes what comes. */
static void shift_and_report(MPI_Comm comm)
{
    int rank, size, value, got = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size, last = size - 1;
    value = rank;
    MPI_Sendrecv(&value, 1, MPI_INT, right, TAG_PAIR, &got, 1, MPI_INT, left, TAG_PAIR, comm, MPI_STATUS_IGNORE);
    expect(got == left, "shifted value");
    if (rank != last) {
        MPI_Request request;
        int done = 0;
        MPI_Isend(&value, 1, MPI_INT, last, TAG_ANY, comm, &request);
        for (int tries = 0; tries < 3 && !done; tries++)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
    int *values = malloc(sizeof *values * (size_t)size), sum = 0;
    MPI_Request *requests = malloc(sizeof *requests * (size_t)size);
    for (int i = 0; i < last; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, TAG_ANY, comm, &requests[i]);
    for (int i = 0; i < last; i++) {
        int index;
        MPI_Status status;
        MPI_Waitany(last, requests, &index, &status);
        expect(values[index] == status.MPI_SOURCE, "report");
        sum += values[index];
    }
    expect(sum == last * (last - 1) / 2, "sum of reports");
    free(values);
    free(requests);
}

/* One round of collectives on `comm`, with a root that moves on from call to call. */
static void collectives(MPI_Comm comm, int round)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int root = round % size, one = 1, value = rank == root ? 42 + round : 0, sum = 0, prefix = 0, part = -1;
    int *all = calloc((size_t)size, sizeof *all);
    MPI_Bcast(&value, 1, MPI_INT, root, comm);
    expect(value == 42 + round, "broadcast value");
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, size - 1 - root, comm);
    expect(rank != size - 1 - root || sum == size, "reduced sum");
    MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, root, comm);
    expect(rank != root || all[size - 1] == size - 1, "gathered ranks");
    MPI_Scatter(all, 1, MPI_INT, &part, 1, MPI_INT, root, comm);
    expect(part == rank, "scattered rank");
    MPI_Scan(&one, &prefix, 1, MPI_INT, MPI_SUM, comm);
    expect(prefix == rank + 1, "scanned sum");
    MPI_Barrier(comm);
    free(all);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int iterations = argc > 1 ? atoi(argv[1]) : 20;
    double microseconds = argc > 2 ? atof(argv[2]) : 400;
    int rank, size;
    MPI_Comm half, half_reversed, reversed;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half_reversed);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm comms[4] = {MPI_COMM_WORLD, half, half_reversed, reversed};

    for (int iteration = 0; iteration < iterations; iteration++) {
        double share = 0.5 + 0.5 * ((rank * 7 + iteration * 3) % 5) / 4.0;
        work(share * microseconds);
        exchange_halo(iteration % 3 == 2 ? reversed : MPI_COMM_WORLD, iteration);
        double residual = 1, total = 0;
        MPI_Allreduce(&residual, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        expect(total == size, "allreduced sum");
        if (iteration % 4 == 1)
            pass_token(comms[(iteration / 4) % 4]);
        if (iteration % 4 == 3)
            shift_and_report(comms[(iteration / 4) % 4]);
        if (iteration % 8 == 6)
            give_up(MPI_COMM_WORLD);
        if (iteration % 5 == 4)
            collectives(comms[(iteration / 5) % 4], iteration);
    }

    int all_failures = 0;
    MPI_Allreduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&half_reversed);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return all_failures > 0;
}
