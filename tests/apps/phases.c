/* Process 1 computes with many small calls of MPI, then waits for process 0 in a barrier, again and again: when does the recorder write its buffers? Run on 2 processes.
 *
 *   phases [ROUNDS [CALLS [MILLISECONDS]]]      default: 40 rounds of 30,000 calls; process 0 comes 40 ms later
 *
 * Process 1 prints how many bytes it has written to files, by the kernel's count, while it computed and while it waited, what computing took on the whole and in
 * the quickest tenth of the rounds, and how long the recorder's thread was on a core, in ms. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long written(void)
{
    char line[128];
    long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "wchar: %ld", &bytes);
    if (file)
        fclose(file);
    return bytes;
}

/* Of the thread that writes buffers. */
static double writer(void)
{
    double time = 0;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *thread; threads && (thread = readdir(threads));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", thread->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && !strcmp(name, "clc-recorder\n")) {
            snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread->d_name);
            FILE *times = fopen(path, "r");
            if (times && fscanf(times, "%lf", &time) != 1)
                time = 0;
            if (times)
                fclose(times);
        }
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
    return time / 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 40, calls = argc > 2 ? atoi(argv[2]) : 30000, late = argc > 3 ? atoi(argv[3]) : 40;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *took = calloc(rounds + 1, sizeof *took), all = 0, sum = 0;
    long computing = 0, waiting = 0;
    volatile double cell = 1;
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            /* Until process 1 has computed, and longer. */
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            usleep(1000 * late);
        } else {
            MPI_Request request = MPI_REQUEST_NULL;
            int flag;
            long before = written();
            double start = MPI_Wtime();
            for (int call = 0; call < calls; call++) {
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
                for (int i = 0; i < 100; i++)
                    cell = cell * 0.999 + i;
            }
            took[round] = 1e3 * (MPI_Wtime() - start);
            all += took[round];
            long between = written();
            MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
            computing += between - before;
            waiting += written() - between;
        }
        if (rank == 0)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1) {
        int quick = rounds / 10 > 0 ? rounds / 10 : 1;
        qsort(took, rounds, sizeof *took, compare);
        for (int i = 0; i < quick; i++)
            sum += took[i];
        printf("computing %ld waiting %ld took %.1f quickest %.3f writer %.3f\n", computing, waiting, all, sum / quick, writer());
    }
    free(took);
    MPI_Finalize();
    return 0;
}
