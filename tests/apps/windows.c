/* One-sided communication of every kind, and what it did: so that a recording can be compared with it.
 *
 *   windows        at least 2 processes, an even number
 *
 * Rank 0 prints the sums over all processes, one line "NAME NUMBER" each. Exits 1 if a value is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { PUTS, GETS, ATOMICS, FENCES, GROUPS, LOCKS, REQUESTS, WINDOWS, COUNTERS };
static const char *names[COUNTERS] = {"puts", "gets", "atomics", "fences", "groups", "locks", "requests", "windows"};
static long count[COUNTERS];
static int rank, size, failures;

static void expect(int condition, const char *what)
{
    if (!condition) {
        failures++;
        fprintf(stderr, "windows: rank %d: wrong: %s\n", rank, what);
    }
}

static void fences(MPI_Win window, int *memory, int next, int previous)
{
    int value = rank, got = -1;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, window);
    MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    expect(memory[0] == previous, "put");
    MPI_Get(&got, 1, MPI_INT, next, 0, 1, MPI_INT, window);
    MPI_Accumulate(&value, 1, MPI_INT, next, 1, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    expect(got == rank, "get");
    count[FENCES] += 3;
    count[PUTS]++;
    count[GETS]++;
    count[ATOMICS]++;
}

static void groups(MPI_Win window, int *memory)
{
    /* Even ranks are origins, odd ones targets. */
    int partner = rank ^ 1, value = 100 + rank, flag = 0;
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &partner, &group);
    for (int round = 0; round < 2; round++) {
        if (rank % 2 == 0) {
            MPI_Win_start(group, 0, window);
            MPI_Put(&value, 1, MPI_INT, partner, 2, 1, MPI_INT, window);
            MPI_Win_complete(window);
            count[PUTS]++;
        } else {
            MPI_Win_post(group, 0, window);
            if (round == 0)
                MPI_Win_wait(window);
            else
                while (!flag)
                    MPI_Win_test(window, &flag);
            expect(memory[2] == 100 + partner, "put in an epoch");
        }
        count[GROUPS] += 2;
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

static void locks(MPI_Win window, int next)
{
    int value = 1, old = -1, compare = -7;
    MPI_Request request;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window);
    MPI_Put(&value, 1, MPI_INT, next, 3, 1, MPI_INT, window);
    MPI_Win_flush_local(next, window);
    MPI_Win_unlock(next, window);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
    MPI_Get(&old, 1, MPI_INT, next, 3, 1, MPI_INT, window);
    MPI_Win_flush(next, window);
    expect(old == 1, "get under a lock");
    MPI_Win_unlock(next, window);
    MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&value, &old, MPI_INT, next, 4, MPI_SUM, window);
    MPI_Fetch_and_op(NULL, &old, MPI_INT, next, 4, MPI_NO_OP, window);
    MPI_Compare_and_swap(&value, &compare, &old, MPI_INT, next, 4, window);
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, &old, 1, MPI_INT, next, 4, 1, MPI_INT, MPI_NO_OP, window);
    MPI_Win_flush_all(window);
    MPI_Rput(&value, 1, MPI_INT, next, 5, 1, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget(&old, 1, MPI_INT, next, 5, 1, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(window);
    expect(old == 1, "get with a request");
    count[LOCKS] += 3;
    count[PUTS] += 2;
    count[GETS] += 2;
    count[ATOMICS] += 4;
    count[REQUESTS] += 2;
}

int main(int argc, char **argv)
{
    int *memory, *shared;
    static int value;
    MPI_Win window, other, part, dynamic;
    MPI_Comm reversed;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    /* Open MPI 4.1 confuses windows of disjoint communicators that are made at the same time. */
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_set_name(reversed, "reversed");
    MPI_Win_allocate(8 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_set_name(window, "halo");
    memset(memory, 0, 8 * sizeof *memory);
    MPI_Barrier(MPI_COMM_WORLD);
    fences(window, memory, next, previous);
    groups(window, memory);
    MPI_Barrier(MPI_COMM_WORLD);
    locks(window, next);
    MPI_Win_free(&window);
    /* A window on a communicator whose ranks are others, and its handle used again. */
    MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, reversed, &part);
    MPI_Win_set_name(part, "part");
    MPI_Win_fence(0, part);
    MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, part);
    MPI_Win_fence(0, part);
    MPI_Win_free(&part);
    MPI_Win_allocate_shared(sizeof *shared, sizeof *shared, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &other);
    MPI_Win_fence(0, other);
    MPI_Win_free(&other);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_free(&dynamic);
    count[FENCES] += 3;
    count[PUTS]++;
    count[WINDOWS] += 4;
    MPI_Comm_free(&reversed);
    long sum[COUNTERS];
    MPI_Reduce(count, sum, COUNTERS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        for (int i = 0; i < COUNTERS; i++)
            printf("%s %ld\n", names[i], sum[i]);
    MPI_Finalize();
    return failures != 0;
}
