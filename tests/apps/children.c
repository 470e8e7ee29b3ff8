/* Processes that a recorded program starts, and ways in which it ends.
 *
 *   children (children | abort | crash | exit | signal)
 *
 * 20 barriers; "children": in between, children that come and go: system(), fork with and without exec, a daemon, one that is this
 * program again without MPI. "abort", "crash", "exit": rank 1 ends so after the barriers. "signal": 2,000 barriers, SIGUSR1, 100,000 probes. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_for(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
        printf("a child failed\n");
}

static void children(const char *self)
{
    if (system("exit 7") == -1)
        printf("system failed\n");
    pid_t child = fork();
    if (child == 0) {
        /* MPI is not to be used here, but this is harmless, and must not be recorded. */
        int flag;
        MPI_Initialized(&flag);
        _exit(flag ? 7 : 1);
    }
    wait_for(child);
    child = fork();
    if (child == 0) {
        execl(self, self, "nothing", (char *)NULL);
        _exit(1);
    }
    wait_for(child);
    child = fork();
    if (child == 0) {
        if (daemon(1, 1) == 0)
            usleep(1000);
        _exit(7);
    }
    /* daemon() ends the child with 0. */
    int status;
    waitpid(child, &status, 0);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int rank, flag;
    if (!strcmp(way, "nothing"))
        return 7;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < (strcmp(way, "signal") ? 20 : 2000); i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (i == 10 && !strcmp(way, "children"))
            children(argv[0]);
    }
    if (!strcmp(way, "signal")) {
        raise(SIGUSR1);
        usleep(200000);
        for (int i = 0; i < 100000; i++)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    if (rank == 1) {
        usleep(50000);
        if (!strcmp(way, "abort"))
            MPI_Abort(MPI_COMM_WORLD, 3);
        if (!strcmp(way, "crash"))
            raise(SIGSEGV);
        if (!strcmp(way, "exit"))
            _exit(5);
    }
    if (!strcmp(way, "abort") || !strcmp(way, "crash") || !strcmp(way, "exit"))
        sleep(10);
    MPI_Finalize();
    if (rank == 0)
        printf("done\n");
    return 0;
}
