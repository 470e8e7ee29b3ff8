/* Calls nearly everything that sends, receives or makes requests and communicators, and says what it did, so that a recording can be compared with it.
 *
 *   recorded [ROUNDS] [threads | crash]      default: 10 rounds
 *
 * Each process adds up what it does; rank 0 prints the sums over all processes, one line "NAME NUMBER" each, to standard output:
 * sends and receives that have a partner, posted receives, cancelled ones, and (over all processes) ends of collective operations.
 * "threads": two further threads of each process exchange messages as well (MPI_THREAD_MULTIPLE). "crash": the last rank kills itself in the
 * middle of the last round, when the others wait for it. Exits 1 if a received value is wrong. Needs at least 2 processes, an even number. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SENT, RECEIVED, ISENT, IRECEIVED, CANCELLED, COLLECTIVE, IMMEDIATE, COUNTERS };
static const char *names[COUNTERS] = {"sends",     "receives",    "immediate_sends",       "immediate_receives",
                                      "cancelled", "collectives", "immediate_collectives"};
static __thread long count[COUNTERS];
static long total[COUNTERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rank, size, failures = 0;

static void expect(int condition, const char *what)
{
    if (!condition) {
        failures++;
        fprintf(stderr, "recorded: rank %d: wrong: %s\n", rank, what);
    }
}

static void keep_counts(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < COUNTERS; i++) {
        total[i] += count[i];
        count[i] = 0;
    }
    pthread_mutex_unlock(&lock);
}

/* Every second process sends to its neighbour, which knows neither source nor tag. */
static void blocking(MPI_Comm comm, int me)
{
    int partner = me ^ 1, value = me;
    MPI_Status status;
    if (me % 2 == 0) {
        MPI_Send(&value, 1, MPI_INT, partner, 5, comm);
        MPI_Ssend(&value, 1, MPI_INT, partner, 6, comm);
        count[SENT] += 2;
    } else {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
        expect(value == partner && status.MPI_SOURCE == partner && status.MPI_TAG == 5, "blocking");
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
        expect(value == partner, "blocking, status ignored");
        count[RECEIVED] += 2;
    }
    value = me;
    MPI_Sendrecv_replace(&value, 1, MPI_INT, partner, 7, partner, 7, comm, MPI_STATUS_IGNORE);
    expect(value == partner, "sendrecv_replace");
    double out[3] = {me, me, me}, in[3];
    MPI_Sendrecv(out, 3, MPI_DOUBLE, partner, 8, in, 3, MPI_DOUBLE, partner, 8, comm, &status);
    expect(in[2] == partner, "sendrecv");
    count[SENT] += 2;
    count[RECEIVED] += 2;
    /* Nobody. */
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 9, comm);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 9, comm, &status);
}

/* One batch of requests for each way of waiting. */
static void immediate(MPI_Comm comm, int me)
{
    enum { N = 4, WAYS = 6 };
    int partner = me ^ 1, out = me, in[N], done, index, indices[2 * N];
    for (int way = 0; way < WAYS; way++) {
        MPI_Request requests[2 * N + 1];
        MPI_Status statuses[2 * N + 1];
        for (int i = 0; i < N; i++)
            MPI_Irecv(&in[i], 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : partner, 10 + i, comm, &requests[i]);
        for (int i = 0; i < N; i++)
            (i % 2 ? MPI_Isend : MPI_Issend)(&out, 1, MPI_INT, partner, 10 + i, comm, &requests[N + i]);
        requests[2 * N] = MPI_REQUEST_NULL;
        int left = 2 * N;
        switch (way) {
        case 0:
            MPI_Waitall(2 * N + 1, requests, MPI_STATUSES_IGNORE);
            break;
        case 1:
            for (; left; left--)
                MPI_Waitany(2 * N + 1, requests, &index, MPI_STATUS_IGNORE);
            MPI_Waitany(2 * N + 1, requests, &index, MPI_STATUS_IGNORE);
            expect(index == MPI_UNDEFINED, "waitany of nothing");
            break;
        case 2:
            while (left) {
                MPI_Waitsome(2 * N + 1, requests, &done, indices, statuses);
                left -= done;
            }
            break;
        case 3:
            while (left) {
                MPI_Testsome(2 * N, requests, &done, indices, MPI_STATUSES_IGNORE);
                left -= done;
                if (!done)
                    usleep(10);
            }
            break;
        case 4:
            for (done = 0; !done; usleep(10))
                MPI_Testall(2 * N, requests, &done, statuses);
            break;
        default:
            for (int i = 0; i < 2 * N; i++)
                for (done = 0; !done; usleep(10))
                    if (i % 2)
                        MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
                    else
                        MPI_Testany(1, &requests[i], &index, &done, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < N; i++)
            expect(in[i] == partner, "immediate");
        count[ISENT] += N;
        count[IRECEIVED] += N;
    }
    MPI_Request request;
    MPI_Irecv(in, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, 99, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    count[CANCELLED]++;
}

static void persistent(MPI_Comm comm, int me)
{
    int partner = me ^ 1, out = me, in = -1;
    MPI_Request requests[2];
    MPI_Send_init(&out, 1, MPI_INT, partner, 20, comm, &requests[0]);
    MPI_Recv_init(&in, 1, MPI_INT, partner, 20, comm, &requests[1]);
    for (int i = 0; i < 3; i++) {
        if (i == 1) {
            MPI_Start(&requests[1]);
            MPI_Start(&requests[0]);
        } else {
            MPI_Startall(2, requests);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect(in == partner, "persistent");
        count[ISENT]++;
        count[IRECEIVED]++;
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void matched(MPI_Comm comm, int me)
{
    int partner = me ^ 1, value = me, flag = 0;
    MPI_Message message;
    MPI_Status status;
    if (me % 2 == 0) {
        MPI_Send(&value, 1, MPI_INT, partner, 30, comm);
        MPI_Send(&value, 1, MPI_INT, partner, 31, comm);
        MPI_Send(&value, 1, MPI_INT, partner, 32, comm);
        count[SENT] += 3;
        return;
    }
    MPI_Probe(MPI_ANY_SOURCE, 32, comm, &status);
    MPI_Mprobe(MPI_ANY_SOURCE, 30, comm, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Improbe(partner, MPI_ANY_TAG, comm, &flag, &message, &status);
    MPI_Request request;
    MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
    MPI_Wait(&request, &status);
    expect(value == partner && status.MPI_TAG == 31, "imrecv");
    MPI_Recv(&value, 1, MPI_INT, partner, 32, comm, &status);
    count[RECEIVED] += 2;
    count[IRECEIVED]++;
}

static void collective(MPI_Comm comm)
{
    int me, members, value = 1, sum = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    int *all = calloc((size_t)members, sizeof *all);
    MPI_Request requests[2];
    MPI_Barrier(comm);
    MPI_Bcast(&value, 1, MPI_INT, members - 1, comm);
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, comm);
    expect(value == members, "allreduce in place");
    if (me == 0) {
        all[0] = members;
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, 0, comm);
    } else {
        MPI_Gather(&value, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, comm);
    }
    expect(me > 0 || all[members - 1] == members, "gather in place");
    MPI_Iallreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Ibarrier(comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(sum == members * (members - 1) / 2, "iallreduce");
    count[COLLECTIVE] += 4;
    count[IMMEDIATE] += 2;
    free(all);
}

/* Communicators of every kind, used as soon as they are made. */
static void communicators(void)
{
    MPI_Comm half, copy, copied, grid, row, some, inter, merged;
    int dims[2] = {size / 2, 2}, periods[2] = {0, 0}, keep[2] = {0, 1}, me, value = rank;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    collective(half);
    MPI_Comm_dup(half, &copy);
    collective(copy);
    MPI_Request request;
    MPI_Comm_idup(half, &copied, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    collective(copied);
    MPI_Comm nobody;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 1 : MPI_UNDEFINED, 0, &nobody);
    if (rank == 0) {
        collective(nobody);
        MPI_Comm_free(&nobody);
        count[COLLECTIVE]++;
    }
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
    MPI_Cart_sub(grid, keep, &row);
    MPI_Comm_rank(row, &me);
    blocking(row, me);
    collective(row);
    /* Only the first half makes this one. */
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int range[1][3] = {{0, size / 2 - 1, 1}};
    MPI_Group_range_incl(world, 1, range, &group);
    if (rank < size / 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &some);
        collective(some);
        MPI_Comm_free(&some);
        count[COLLECTIVE]++;
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? size - 2 : size - 1, 4, &inter);
    MPI_Comm_rank(half, &me);
    MPI_Sendrecv_replace(&value, 1, MPI_INT, me, 40, me, 40, inter, MPI_STATUS_IGNORE);
    expect(value == (rank ^ 1), "inter-communicator");
    count[SENT]++;
    count[RECEIVED]++;
    MPI_Intercomm_merge(inter, rank % 2, &merged);
    collective(merged);
    MPI_Comm *all[] = {&merged, &inter, &row, &grid, &copied, &copy, &half};
    for (int i = 0; i < 7; i++)
        MPI_Comm_free(all[i]);
    /* split twice, dup, cart, sub, seven times free */
    count[COLLECTIVE] += 5 + 7;
}

static void *worker(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    for (int i = 0; i < 20; i++) {
        blocking(comm, rank);
        persistent(comm, rank);
    }
    keep_counts();
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10, provided = MPI_THREAD_SINGLE;
    int threads = argc > 2 && !strcmp(argv[2], "threads"), crash = argc > 2 && !strcmp(argv[2], "crash");
    if (threads)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(&argc, &argv);
    count[COLLECTIVE]++;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (threads && provided == MPI_THREAD_MULTIPLE) {
        pthread_t workers[2];
        MPI_Comm own[2];
        for (int i = 0; i < 2; i++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
            pthread_create(&workers[i], NULL, worker, &own[i]);
        }
        for (int i = 0; i < 2; i++)
            pthread_join(workers[i], NULL);
        for (int i = 0; i < 2; i++)
            MPI_Comm_free(&own[i]);
        count[COLLECTIVE] += 4;
    }
    /* A child that is no MPI program. */
    if (rank == 0 && system("true") != 0)
        expect(0, "child");
    for (int i = 0; i < rounds; i++) {
        blocking(MPI_COMM_WORLD, rank);
        immediate(MPI_COMM_WORLD, rank);
        persistent(MPI_COMM_WORLD, rank);
        matched(MPI_COMM_WORLD, rank);
        if (crash && i == rounds - 1 && rank == size - 1)
            raise(SIGKILL);
        collective(MPI_COMM_WORLD);
        collective(MPI_COMM_SELF);
        communicators();
    }
    keep_counts();
    long sum[COUNTERS];
    MPI_Reduce(total, sum, COUNTERS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    /* These two, and MPI_Finalize. */
    sum[COLLECTIVE] += 3 * size;
    if (rank == 0)
        for (int i = 0; i < COUNTERS; i++)
            printf("%s %ld\n", names[i], sum[i]);
    MPI_Finalize();
    return failures != 0;
}
