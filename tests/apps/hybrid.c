/* A small hybrid program, to be recorded: a halo exchange between processes, whose cells teams of OpenMP threads compute.
 *
 *   hybrid [ITERATIONS] [MICROSECONDS] [THREADS]      defaults: 20 iterations, 100 us of work per iteration and thread, 3 threads
 *
 * Per iteration: a halo exchange by the master, a parallel region with a shared loop, a barrier, a critical construct and a lock, uneven work, a single construct with tasks
 * that are waited for; a region of fewer threads, one of one thread, and one within a region; an Allreduce. A critical construct outside of any region. It says how many of
 * each it has done. Exits 1 if a value is wrong. Without OpenMP it does the same with one thread. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#else
typedef int omp_lock_t;
static void omp_init_lock(omp_lock_t *lock) { *lock = 0; }
static void omp_set_lock(omp_lock_t *lock) { *lock = 1; }
static void omp_unset_lock(omp_lock_t *lock) { *lock = 0; }
static void omp_destroy_lock(omp_lock_t *lock) { *lock = 0; }
static int omp_get_thread_num(void) { return 0; }
static int omp_get_num_threads(void) { return 1; }
#endif

enum { CELLS = 512, TASKS = 4 };

/* Keeps the processor busy. */
static void work(double microseconds)
{
    double end = MPI_Wtime() + microseconds * 1e-6;
    while (MPI_Wtime() < end) {
    }
}

static long forks, begins, locks, tasks;
static omp_lock_t lock;

/* A thread of a team has begun. */
static void begun(void)
{
#pragma omp atomic
    begins++;
}

/* A team computes; returns how many cells. */
static long compute(double *cells, double microseconds, int threads)
{
    long count = 0;
    forks++;
#pragma omp parallel num_threads(threads) reduction(+ : count)
    {
        begun();
#pragma omp for schedule(static)
        for (int i = 0; i < CELLS; i++) {
            cells[i] += 1;
            count++;
        }
        work(microseconds * (1 + omp_get_thread_num()) / omp_get_num_threads());
#pragma omp barrier
        // One of them excludes nobody from the other one.
#pragma omp critical
#pragma omp atomic
        locks++;
        omp_set_lock(&lock);
#pragma omp atomic
        locks++;
        omp_unset_lock(&lock);
#pragma omp single
        {
            for (int i = 0; i < TASKS; i++) {
#pragma omp task
                {
                    work(microseconds / 10);
#pragma omp atomic
                    tasks++;
                }
            }
#pragma omp taskwait
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 20;
    double microseconds = argc > 2 ? atof(argv[2]) : 100;
    int threads = argc > 3 ? atoi(argv[3]) : 3;
    int rank, size, provided, wrong = 0;
    static double cells[CELLS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    omp_init_lock(&lock);
    for (int iteration = 0; iteration < iterations; iteration++) {
        double out[2] = {rank, -rank}, in[2] = {0, 0};
        MPI_Request requests[4];
        MPI_Irecv(&in[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&in[1], 1, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&out[0], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(&out[1], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        wrong += in[0] != left || in[1] != -right;
        wrong += compute(cells, microseconds, threads) != CELLS;
        forks++;
#pragma omp parallel num_threads(2)
        {
            begun();
            work(microseconds / 4);
        }
        forks++;
#pragma omp parallel num_threads(1)
        begun();
        forks++;
#pragma omp parallel num_threads(2)
        {
            begun();
#pragma omp atomic
            forks++;
#pragma omp parallel num_threads(2)
            begun();
        }
#pragma omp critical
        locks++;
        long local = locks, all = 0;
        MPI_Allreduce(&local, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        wrong += all < local;
    }
    omp_destroy_lock(&lock);
    wrong += cells[CELLS - 1] != iterations;
    long done[4] = {forks, begins, locks, tasks}, sum[4];
    MPI_Reduce(done, sum, 4, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("forks %ld\nbegins %ld\nlocks %ld\ntasks %ld\n", sum[0], sum[1], sum[2], sum[3]);
    MPI_Finalize();
    if (wrong)
        fprintf(stderr, "hybrid: %d wrong values\n", wrong);
    return wrong != 0;
}
