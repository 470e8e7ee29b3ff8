/* Load balancing by what the monitor of the job knows, the case study of GEMS (Raman 2002): each process has a queue of tasks, some far more than others.
 *
 *   mpicc -I src/marks load_balancing.c -o load_balancing
 *   clc-replay record --monitor -o run1 -- mpirun -n 8 ./load_balancing neighbours [TASKS [MILLISECONDS [SEED]]]
 *
 * none         every process does its own tasks
 * neighbours   nearest neighbour: a process gives a third of the difference to the less loaded of the two beside it in the ring
 * groups       hierarchical: within groups of about sqrt(n) who has more than the mean gives to who has less; the most loaded one of a group that has more
 *              than the mean of all groups gives to the least loaded one of a group that has less
 *
 * Information policy: periodic and on change. A process tells its queue's length when that has changed, ten times a second at most, and asks for those of others as often.
 * Transfer policy: a threshold, of two tasks at a time, and time for news of the last transfer to get round.
 * Location policy: as above. Processes know about the same loads and match givers and takers alike, lest all give to the same one.
 *
 * A task sleeps, so emulated nodes on few cores work at the same time. TASKS is the mean per process (default 60), MILLISECONDS the mean length of a task (20). */
#include <clc_monitor.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TASKS_COME = 1, HAVE_DONE = 2, ALL_DONE = 3 };

/* Half of it is the least that is given. */
#define THRESHOLD 4
/* Between two looks at others, and between two transfers: until news of the last one is round. In seconds. */
#define LOOK 0.1
#define NEWS 0.8

static int rank, size, group;
/* Lengths of the tasks that are left, in microseconds. */
static int *queue, tasks, room;
/* Lengths of the queues of all, as far as they are known; -1 if not. */
static double *loads;
static long moved, transfers;

static unsigned long long state;

static double uniform(void)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(state >> 33) / (double)(1ULL << 31);
}

static void push(int length)
{
    if (tasks == room) {
        room = room ? 2 * room : 256;
        queue = realloc(queue, (size_t)room * sizeof *queue);
        if (!queue)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    queue[tasks++] = length;
}

/* One process of each node tells of all of them: "rank:load ..." is a value that has room. */
static void seen(int node, const char *name, const char *value, void *data)
{
    (void)node, (void)name, (void)data;
    int of, load, length;
    while (sscanf(value, "%d:%d %n", &of, &load, &length) >= 2) {
        if (of >= 0 && of < size)
            loads[of] = load;
        value += length;
    }
}

/* Information policy. */
static void inform(struct clc_monitor *monitor, char keys[][16], double *told)
{
    static int last = -1;
    double now = MPI_Wtime();
    if (now - *told < LOOK)
        return;
    *told = now;
    if (tasks != last) {
        char value[48];
        snprintf(value, sizeof value, "%d:%d ", rank, tasks);
        last = tasks;
        clc_monitor_send(monitor, keys[rank], value);
    }
    for (int other = 0; other < size; other++)
        clc_monitor_receive(monitor, keys[other], seen, NULL);
    loads[rank] = tasks;
}

/* Who gives how many tasks to whom. */
struct share {
    int to, count;
};

/* What `own` of `count` loads gives to which other one, if all come to their mean: the most loaded gives to the least loaded, then the next. All processes know about the same loads
 * and come to about the same matches, so they do not all give to the same one. */
static struct share match(const double *loads_of, int count, int own)
{
    struct share none = {-1, 0};
    double mean = 0, *surplus = malloc((size_t)count * sizeof *surplus);
    if (!surplus)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (int i = 0; i < count; i++)
        mean += loads_of[i] / count;
    for (int i = 0; i < count; i++)
        surplus[i] = loads_of[i] - mean;
    for (;;) {
        int most = 0, least = 0;
        for (int i = 1; i < count; i++) {
            most = surplus[i] > surplus[most] ? i : most;
            least = surplus[i] < surplus[least] ? i : least;
        }
        double part = fmin(surplus[most], -surplus[least]);
        if (part < THRESHOLD / 2)
            break;
        if (most == own) {
            none.to = least;
            none.count = (int)part;
            break;
        }
        surplus[most] -= part;
        surplus[least] += part;
    }
    free(surplus);
    return none;
}

/* Location policy. */
static struct share locate(const char *method)
{
    struct share share = {-1, 0};
    if (!strcmp(method, "neighbours")) {
        int before = (rank + size - 1) % size, behind = (rank + 1) % size;
        share.to = loads[before] < loads[behind] ? before : behind;
        /* A third: the other neighbour gives, too. */
        share.count = (int)((tasks - loads[share.to]) / 3);
        return share;
    }
    int first = rank / group * group, count = first + group < size ? group : size - first;
    share = match(loads + first, count, rank - first);
    if (share.to >= 0) {
        share.to += first;
        return share;
    }
    for (int other = first; other < first + count; other++)
        if (loads[other] > loads[rank] || (loads[other] == loads[rank] && other < rank))
            return share;
    /* The most loaded of its group: groups balance their means. */
    int groups = (size + group - 1) / group;
    double *means = calloc((size_t)groups, sizeof *means);
    if (!means)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (int other = 0; other < size; other++)
        means[other / group] += loads[other] / (other / group == groups - 1 ? size - (groups - 1) * group : group);
    share = match(means, groups, rank / group);
    free(means);
    if (share.to < 0)
        return share;
    int to = share.to * group, end = to + group < size ? to + group : size;
    for (int other = to; other < end; other++)
        to = loads[other] < loads[to] ? other : to;
    share.to = to;
    /* For all of its group. */
    share.count *= count;
    return share;
}

/* Transfer policy. */
static void transfer(const char *method, double *given)
{
    double now = MPI_Wtime();
    for (int other = 0; other < size; other++)
        if (loads[other] < 0)
            return;
    if (now - *given < NEWS || tasks < THRESHOLD)
        return;
    struct share share = locate(method);
    int count = share.count < tasks / 2 ? share.count : tasks / 2, to = share.to;
    if (to < 0 || count < THRESHOLD / 2)
        return;
    MPI_Send(queue + tasks - count, count, MPI_INT, to, TASKS_COME, MPI_COMM_WORLD);
    tasks -= count;
    loads[to] += count;
    moved += count;
    transfers++;
    *given = now;
}

/* Takes what has come; returns whether all tasks of all processes are done. */
static bool receive(long *left)
{
    for (;;) {
        int there, count;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
        if (!there)
            return false;
        MPI_Get_count(&status, MPI_INT, &count);
        int *lengths = malloc((size_t)(count + 1) * sizeof *lengths);
        if (!lengths)
            MPI_Abort(MPI_COMM_WORLD, 3);
        MPI_Recv(lengths, count, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (status.MPI_TAG == TASKS_COME)
            for (int i = 0; i < count; i++)
                push(lengths[i]);
        if (status.MPI_TAG == HAVE_DONE)
            --*left;
        free(lengths);
        if (status.MPI_TAG == ALL_DONE)
            return true;
        if (rank == 0 && *left == 0)
            return true;
    }
}

static void rest(int microseconds)
{
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000L};
    nanosleep(&time, NULL);
}

int main(int argc, char **argv)
{
    const char *method = argc > 1 ? argv[1] : "";
    double mean = argc > 2 ? atof(argv[2]) : 60, length = argc > 3 ? atof(argv[3]) : 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if ((strcmp(method, "none") && strcmp(method, "neighbours") && strcmp(method, "groups")) || mean < 1 || length < 0.1) {
        if (rank == 0)
            fprintf(stderr, "load_balancing none|neighbours|groups [TASKS [MILLISECONDS [SEED]]]\n");
        MPI_Finalize();
        return 2;
    }
    group = (int)ceil(sqrt(size));
    loads = malloc((size_t)size * sizeof *loads);
    char(*keys)[16] = malloc((size_t)size * sizeof *keys);
    if (!loads || !keys)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (int other = 0; other < size; other++) {
        loads[other] = -1;
        snprintf(keys[other], sizeof keys[other], "queue%d", other);
    }
    /* All draw the same numbers, so each knows what there is to do. */
    state = argc > 4 ? (unsigned long long)atoll(argv[4]) : 1;
    double total = 0, most = 0;
    long left = 0;
    for (int other = 0; other < size; other++) {
        /* A quarter of the processes has most of the tasks. */
        int own = (int)(mean * (uniform() < 0.25 ? 2.5 + uniform() : 0.2 + 0.6 * uniform())) + 1;
        double work = 0;
        for (int task = 0; task < own; task++) {
            int lasts = (int)(1000 * length * (0.5 + uniform()));
            work += lasts * 1e-6;
            if (other == rank)
                push(lasts);
        }
        left += own;
        total += work;
        most = work > most ? work : most;
    }
    struct clc_monitor monitor;
    int monitored = !clc_monitor_init(&monitor), all;
    MPI_Allreduce(&monitored, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all && rank == 0)
        fprintf(stderr, "not monitored: nothing is known of others, so nothing is balanced\n");
    double begun = MPI_Wtime(), told = 0, given = 0;
    for (bool done = false; !done;) {
        if (all && strcmp(method, "none")) {
            inform(&monitor, keys, &told);
            transfer(method, &given);
        }
        if (tasks > 0) {
            rest(queue[--tasks]);
            int none = 0;
            if (rank == 0)
                left--;
            else
                MPI_Send(&none, 0, MPI_INT, 0, HAVE_DONE, MPI_COMM_WORLD);
        } else
            rest(1000);
        done = receive(&left) || (rank == 0 && left == 0);
    }
    if (rank == 0)
        for (int other = 1; other < size; other++)
            MPI_Send(NULL, 0, MPI_INT, other, ALL_DONE, MPI_COMM_WORLD);
    double took = MPI_Wtime() - begun, longest;
    long given_away[2] = {moved, transfers}, sums[2];
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(given_away, sums, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %.2f s; %.2f s if perfectly balanced, %.2f s for the one with most; %ld tasks given away in %ld transfers\n", method, longest,
               total / size, most, sums[0], sums[1]);
    clc_monitor_stop(&monitor);
    MPI_Finalize();
    return 0;
}
