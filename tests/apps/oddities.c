/* Arguments that MPI refuses or ignores: whoever looks at them must not stumble. Three processes print what has become of each call. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int handled;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    handled++;
}

static void tell(const char *call, int code) {
    int class = 0;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    printf("%s: class %d, handled %d times\n", call, class, handled);
    handled = 0;
}

/* As many integers as fit before a page that must not be touched. */
static int *before_the_end(int count) {
    long page = sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (two == MAP_FAILED || mprotect(two + page, page, PROT_NONE) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
    return (int *)(two + page) - count;
}

static void refused(void) {
    int word = 0;
    MPI_Errhandler own;
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
    tell("receive without a status", MPI_Recv(&word, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, NULL));
    tell("wait for no request", MPI_Wait(NULL, MPI_STATUS_IGNORE));
    tell("wait for two of none", MPI_Waitall(2, NULL, MPI_STATUSES_IGNORE));
    tell("barrier of nobody", MPI_Barrier(MPI_COMM_NULL));
    tell("gather of nobody", MPI_Gather(&word, 1, MPI_INT, &word, 1, MPI_INT, 0, MPI_COMM_NULL));
    tell("send to nowhere", MPI_Send(&word, 1, MPI_INT, 99, 0, MPI_COMM_WORLD));
    tell("broadcast from nowhere", MPI_Bcast(&word, 1, MPI_INT, 99, MPI_COMM_WORLD));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&own);
}

/* In an inter-communicator of {0, 1} and {2}, root is 0. */
static void ignored(int rank) {
    MPI_Comm mine, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 2, 0, &mine);
    MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, rank == 2 ? 0 : 2, 5, &inter);
    MPI_Datatype none = (MPI_Datatype)(uintptr_t)0x10;
    int root = rank == 0 ? MPI_ROOT : rank == 1 ? MPI_PROC_NULL : 0;
    int words[2] = {rank, rank}, word = 40 + rank, got = -1;
    if (rank == 2)
        MPI_Gather(&word, 1, MPI_INT, NULL, 1, none, root, inter);
    else
        MPI_Gather(NULL, 1, none, &got, 1, rank == 0 ? MPI_INT : none, root, inter);
    printf("gathered %d\n", got);
    if (rank == 2)
        MPI_Scatter(NULL, 1, none, &got, 1, MPI_INT, root, inter);
    else
        MPI_Scatter(&word, 1, rank == 0 ? MPI_INT : none, NULL, 1, none, root, inter);
    printf("scattered %d\n", got);
    /* As many counts as there are members of the own group. */
    int *counts = before_the_end(rank == 2 ? 1 : 2);
    counts[0] = rank == 2 ? 2 : 1;
    if (rank != 2) counts[1] = 1;
    int reduced[2] = {-1, -1};
    MPI_Reduce_scatter(words, reduced, counts, MPI_INT, MPI_SUM, inter);
    printf("reduced %d %d\n", reduced[0], reduced[1]);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&mine);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) refused();
    ignored(rank);
    MPI_Finalize();
    return 0;
}
