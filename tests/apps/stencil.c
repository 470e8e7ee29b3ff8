/* Heat that spreads over a plate: a Jacobi stencil on a grid of processes, as real codes have it, to be recorded as a trace.
 *
 *   stencil [SIZE] [ITERATIONS] [EVERY]      defaults: 600 x 600 points, 400 iterations, the residual every 5 of them
 *
 * Per iteration: rows and columns at the edges of each process's part go to its neighbours by non-blocking messages, the inner points are computed
 * meanwhile, then those at the edges. Every few iterations the residual is summed up (Allreduce). Process 0 prints it at the end (Reduce, Gather). Any
 * number of processes; the result depends on it in the last digits only. */
#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int rows, columns; /* of this process, without the points of its neighbours */

static double *at(double *plate, int row, int column) { return plate + (size_t)row * (columns + 2) + column; }

/* New values of the rows and columns of a range; returns the sum of squares of the changes. */
static double relax(double *to, double *from, int row, int last_row, int column, int last_column)
{
    double sum = 0;
    for (int i = row; i <= last_row; i++)
        for (int k = column; k <= last_column; k++) {
            double mean =
                0.25 * (*at(from, i - 1, k) + *at(from, i + 1, k) + *at(from, i, k - 1) + *at(from, i, k + 1));
            double change = mean - *at(from, i, k);
            sum += change * change;
            *at(to, i, k) = mean;
        }
    return sum;
}

static int part(int points, int parts, int index) { return points / parts + (index < points % parts); }

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size = argc > 1 ? atoi(argv[1]) : 600, iterations = argc > 2 ? atoi(argv[2]) : 400;
    int every = argc > 3 ? atoi(argv[3]) : 5;
    int processes, rank, grid[2] = {0, 0}, periodic[2] = {0, 0}, place[2];
    if (size < 4 || iterations < 1 || every < 1) {
        fprintf(stderr, "stencil: what is this plate?\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    MPI_Dims_create(processes, 2, grid);
    MPI_Comm plane;
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periodic, 0, &plane);
    MPI_Comm_rank(plane, &rank);
    MPI_Cart_coords(plane, rank, 2, place);
    int up, down, left, right;
    MPI_Cart_shift(plane, 0, 1, &up, &down);
    MPI_Cart_shift(plane, 1, 1, &left, &right);
    rows = part(size, grid[0], place[0]);
    columns = part(size, grid[1], place[1]);
    double *old = calloc((size_t)(rows + 2) * (columns + 2), sizeof *old);
    double *new = calloc((size_t)(rows + 2) * (columns + 2), sizeof *new);
    MPI_Datatype column;
    MPI_Type_vector(rows, 1, columns + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    if (place[0] == 0) /* the upper edge is hot */
        for (int k = 0; k < columns + 2; k++)
            *at(old, 0, k) = *at(new, 0, k) = 100;

    double residual = 0;
    for (int iteration = 1; iteration <= iterations; iteration++) {
        MPI_Request requests[8];
        MPI_Irecv(at(old, 0, 1), columns, MPI_DOUBLE, up, 0, plane, &requests[0]);
        MPI_Irecv(at(old, rows + 1, 1), columns, MPI_DOUBLE, down, 1, plane, &requests[1]);
        MPI_Irecv(at(old, 1, 0), 1, column, left, 2, plane, &requests[2]);
        MPI_Irecv(at(old, 1, columns + 1), 1, column, right, 3, plane, &requests[3]);
        MPI_Isend(at(old, rows, 1), columns, MPI_DOUBLE, down, 0, plane, &requests[4]);
        MPI_Isend(at(old, 1, 1), columns, MPI_DOUBLE, up, 1, plane, &requests[5]);
        MPI_Isend(at(old, 1, columns), 1, column, right, 2, plane, &requests[6]);
        MPI_Isend(at(old, 1, 1), 1, column, left, 3, plane, &requests[7]);
        double changes = relax(new, old, 2, rows - 1, 2, columns - 1);
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
        changes += relax(new, old, 1, 1, 1, columns) + relax(new, old, rows, rows, 1, columns);
        changes += relax(new, old, 2, rows - 1, 1, 1) + relax(new, old, 2, rows - 1, columns, columns);
        if (iteration % every == 0)
            MPI_Allreduce(&changes, &residual, 1, MPI_DOUBLE, MPI_SUM, plane);
        double *next = old;
        old = new;
        new = next;
    }

    double heat = 0, total = 0;
    for (int i = 1; i <= rows; i++)
        for (int k = 1; k <= columns; k++)
            heat += *at(old, i, k);
    double *shares = rank == 0 ? malloc(processes * sizeof *shares) : NULL;
    MPI_Reduce(&heat, &total, 1, MPI_DOUBLE, MPI_SUM, 0, plane);
    MPI_Gather(&heat, 1, MPI_DOUBLE, shares, 1, MPI_DOUBLE, 0, plane);
    if (rank == 0)
        printf("stencil: %d x %d points on %d processes, residual %.6f, mean temperature %.6f\n", size, size, processes,
               sqrt(residual), total / size / size);
    free(shares);
    MPI_Type_free(&column);
    MPI_Comm_free(&plane);
    free(old);
    free(new);
    MPI_Finalize();
    return 0;
}
