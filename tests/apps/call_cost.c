/* What calls of MPI take: means of many calls in a row, many times, for scripts/bench record. Run on 2 processes.
 *
 *   call_cost [BATCHES]      default: 300 batches of each kind
 *
 * Process 0 prints a line per kind: its name, the calls of a process in a batch, and the mean time per call of each batch in ns. Then the number of
 * calls that one process has made in all, and what two readings of the time stamp counter take. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined __x86_64__
#include <x86intrin.h>
#endif

enum { CELLS = 100 };

static int rank, other;
static long calls = 4; /* Init, Comm_rank, Comm_size, Finalize */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void tests(int rounds)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int flag;
    for (int i = 0; i < rounds; i++)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static void itself(int rounds)
{
    int out = 1, in;
    for (int i = 0; i < rounds; i++) {
        MPI_Request requests[2];
        MPI_Irecv(&in, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&out, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

static void ping_pong(int rounds)
{
    double cell = 0;
    for (int i = 0; i < rounds; i++) {
        if (rank == 0)
            MPI_Send(&cell, 1, MPI_DOUBLE, other, 2, MPI_COMM_WORLD);
        MPI_Recv(&cell, 1, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(&cell, 1, MPI_DOUBLE, other, 2, MPI_COMM_WORLD);
    }
}

static void halo(int rounds)
{
    static double out[2][CELLS], in[2][CELLS];
    for (int i = 0; i < rounds; i++) {
        MPI_Request requests[4];
        for (int side = 0; side < 2; side++)
            MPI_Irecv(in[side], CELLS, MPI_DOUBLE, other, side, MPI_COMM_WORLD, &requests[side]);
        for (int side = 0; side < 2; side++)
            MPI_Isend(out[side], CELLS, MPI_DOUBLE, other, side, MPI_COMM_WORLD, &requests[2 + side]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
}

static void collectives(int rounds)
{
    double cell = 1, sum;
    for (int i = 0; i < rounds; i++) {
        MPI_Allreduce(&cell, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Bcast(&cell, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void measure(const char *name, void (*work)(int), int rounds, int each, int batches)
{
    double *means = malloc(batches * sizeof *means);
    MPI_Barrier(MPI_COMM_WORLD);
    work(rounds);
    for (int i = 0; i < batches; i++) {
        double start = now();
        work(rounds);
        means[i] = (now() - start) / (rounds * each);
    }
    calls += 1 + (long)(batches + 1) * rounds * each;
    if (rank == 0) {
        printf("%s %d", name, rounds * each);
        for (int i = 0; i < batches; i++)
            printf(" %.2f", means[i]);
        printf("\n");
    }
    free(means);
}

int main(int argc, char **argv)
{
    int size, batches = argc > 1 ? atoi(argv[1]) : 300;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || batches < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    other = 1 - rank;
    measure("tests", tests, 500, 1, batches);
    measure("itself", itself, 170, 3, batches);
    measure("ping-pong", ping_pong, 100, 2, batches);
    measure("halo", halo, 50, 5, batches);
    measure("collectives", collectives, 40, 3, batches);
    if (rank == 0) {
        printf("calls %ld\n", calls);
#if defined __x86_64__
        unsigned long long sum = 0;
        double fastest = 1e9;
        for (int batch = 0; batch < 100; batch++) {
            double start = now();
            for (int i = 0; i < 1000; i++) {
                sum += __rdtsc();
                _mm_lfence();
                sum -= __rdtsc();
            }
            double mean = (now() - start) / 1000;
            fastest = mean < fastest ? mean : fastest;
        }
        printf("stamps %.2f%s\n", fastest, sum == 1 ? " " : "");
#endif
    }
    MPI_Finalize();
    return 0;
}
