/* Functions, regions, markers and metrics of a program's own. Compiled with -finstrument-functions it has call paths.
 *
 *   marks [jump]       any number of processes; "jump": a function is left by longjmp, an own region is not ended */
#include <clc_recorder.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static jmp_buf place;
static volatile double sink;

static inline double square(double x)
{
    return x * x;
}

static void relax(int step)
{
    for (int i = 0; i < 10; i++)
        sink = square(step + i);
}

static void leap(void)
{
    longjmp(place, 1);
}

void solve(int steps)
{
    char name[16];
    clc_region_begin("solve");
    for (int step = 0; step < steps; step++) {
        /* The same memory, another text. */
        snprintf(name, sizeof name, "step %d", step % 2);
        clc_region_begin(name);
        relax(step);
        MPI_Barrier(MPI_COMM_WORLD);
        clc_metric("residual", 1.0 / (1 + step));
        clc_region_end(name);
    }
    clc_marker("restart");
    clc_region_end("solve");
}

static void *worker(void *argument)
{
    relax(*(int *)argument);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, three = 3;
    /* Not recorded, and no harm. */
    clc_region_begin("before");
    clc_region_end("before");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    pthread_t thread;
    pthread_create(&thread, NULL, worker, &three);
    pthread_join(thread, NULL);
    solve(4);
    if (argc > 1 && !strcmp(argv[1], "jump")) {
        if (!setjmp(place))
            leap();
        clc_region_begin("not ended");
        clc_region_end("not begun");
    }
    MPI_Finalize();
    clc_region_begin("after");
    return 0;
}
