/* A program of MPI that makes threads in every way: they return, call pthread_exit, are cancelled, are detached, make threads themselves, or never call MPI. It prints how
   many of each step it has made that belong to threads that call MPI. */

#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RETURNS, EXITS, WAITS, NESTED, DETACHED, SILENT };

static sem_t called, left;
static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "wrong: %s\n", what);
        failures++;
    }
}

static void call(void)
{
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

static void *work(void *argument)
{
    int how = *(int *)argument;
    if (how != SILENT)
        call();
    switch (how) {
    case EXITS:
        pthread_exit(argument);
    case WAITS:
        sem_post(&called);
        for (;;)
            pause();
    case DETACHED:
        /* Whoever continues then may end MPI. */
        sem_post(&left);
        break;
    case NESTED: {
        pthread_t inner;
        int returns = RETURNS;
        void *result = NULL;
        expect(pthread_create(&inner, NULL, work, &returns) == 0, "a thread of a thread");
        expect(pthread_join(inner, &result) == 0 && result == &returns, "its result");
    }
    }
    return argument;
}

int main(int argc, char **argv)
{
    int provided, rank;
    static int ways[] = {RETURNS, EXITS, WAITS, NESTED, SILENT};
    enum { WAYS = sizeof ways / sizeof *ways };
    pthread_t threads[WAYS], alone;
    static int detached = DETACHED, early = SILENT;

    sem_init(&called, 0, 0);
    sem_init(&left, 0, 0);
    expect(pthread_create(&alone, NULL, work, &early) == 0, "a thread before MPI");
    expect(pthread_join(alone, NULL) == 0, "its end");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    expect(provided == MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < WAYS; i++)
        expect(pthread_create(&threads[i], NULL, work, &ways[i]) == 0, "a thread");
    sem_wait(&called);
    pthread_cancel(threads[2]);
    for (int i = 0; i < WAYS; i++) {
        void *result = NULL;
        expect(pthread_join(threads[i], &result) == 0, "a thread ends");
        expect(result == (ways[i] == WAITS ? PTHREAD_CANCELED : (void *)&ways[i]), "its result");
    }
    expect(pthread_join(pthread_self(), NULL) != 0, "nobody waits for itself");
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    expect(pthread_create(&alone, &attributes, work, &detached) == 0, "a detached thread");
    sem_wait(&left);
    usleep(100000);
    /* One that never calls MPI, and may well have the name that the detached one had. */
    expect(pthread_create(&alone, NULL, work, &early) == 0, "a silent thread");
    expect(pthread_join(alone, NULL) == 0, "its end");
    MPI_Barrier(MPI_COMM_WORLD);
    /* Those that return, exit, wait, make another one, this one, and the detached one. */
    if (rank == 0)
        printf("made 6\nwaited 5\n");
    MPI_Finalize();
    return failures != 0;
}
