/* All processes compute for 20 ms, the first one for 40 ms, then they meet: the others wait for half of the time.
 *
 *   unbalanced [ROUNDS]      default: 50 */
#include <mpi.h>
#include <stdlib.h>

static void compute(double seconds)
{
    double start = MPI_Wtime();
    while (MPI_Wtime() - start < seconds)
        ;
}

int main(int argc, char **argv)
{
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 50;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < rounds; i++) {
        compute(rank == 0 ? 0.04 : 0.02);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
