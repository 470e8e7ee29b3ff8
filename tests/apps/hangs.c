/* Programs that hang, each in a way that `clc-replay watch` has to name. Run on 3 processes or more.
 *
 *   hangs WAY [SECONDS]      default: until it is killed
 *
 * missing   rank 1 computes in region "solve" and does not come to the third barrier
 * cycle    every rank waits for a message of the next one, with its own rank plus 40 as the tag
 * init      rank 1 does not call MPI_Init
 * kill      rank 1 is killed by SIGKILL in the midst of barriers
 * stop      rank 1 is stopped by SIGSTOP in the midst of barriers
 * differ    rank 1 calls MPI_Allreduce where the others call MPI_Bcast
 * waitall   rank 0 waits for messages by MPI_Waitall, one of which rank 1 never sends, since it waits by MPI_Test in vain for one of rank 2, which computes
 * comms     1,000 communicators; in the last one rank 1 is missing
 * fence     rank 1 computes and does not come to the second fence of a window
 * probe     rank 0 waits by MPI_Probe for a message of rank 1, which computes
 * iprobe    rank 0 repeats MPI_Iprobe for a message of rank 1, which computes; the others wait for rank 0
 * improbe   the same with MPI_Improbe
 * lock      rank 1 holds an exclusive lock of rank 2's part of a window and computes; rank 0 wants one, too, and rank 2 waits for a message of rank 0
 * post      rank 0 wants to write to ranks 1 and 2 (MPI_Win_start); rank 1 does not let it (MPI_Win_post)
 * complete  rank 0 lets ranks 1 and 2 write and waits for the end of that (MPI_Win_wait), to which rank 1 does not come
 * inter     an inter-communicator of the even ranks and the odd ones; rank 0 waits for a message of rank 1 of the other group, which is rank 3 and computes
 * between   the same, and rank 3 is missing in its second barrier
 * file      rank 1 computes and does not come to the first MPI_File_write_all of a file
 * neighbours ranks 1 and 3 wait for rank 2, which sleeps, in MPI_Neighbor_allgather of a ring with a name; rank 0 as well in a barrier
 * left      rank 0 is in a barrier, to which the others do not come: they call MPI_Finalize
 * moves     barriers all the time
 * split     a communicator of the odd ranks and one of the even ones; rank 2 is missing in the latter's second MPI_Allreduce */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <clc_recorder.h>

static double begun;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static double limit = 1e9;

/* For ever, or until the program is to end by itself; work, not sleep. */
static void compute(void)
{
    volatile double sum = 0;
    while (now() - begun < limit) {
        for (int i = 0; i < 1000; i++)
            sum += i;
        usleep(1000);
    }
    exit(0);
}

int main(int argc, char **argv)
{
    int rank = -1, size, value = 1, sum;
    const char *way = argc > 1 ? argv[1] : "";
    const char *launched = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    begun = now();
    if (argc > 2)
        limit = atof(argv[2]);
    if (!strcmp(way, "init") && launched && atoi(launched) == 1)
        compute();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(way, "missing")) {
        if (rank == 1) {
            clc_region_begin("solve");
            compute();
        }
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(way, "cycle")) {
        MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, rank + 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (!strcmp(way, "kill") || !strcmp(way, "stop")) {
        for (int i = 0;; i++) {
            if (rank == 1 && i == 200)
                raise(*way == 'k' ? SIGKILL : SIGSTOP);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    } else if (!strcmp(way, "differ")) {
        /* Whether one of these two operations comes back does not matter: they never do both. */
        if (rank == 1) {
            MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        } else {
            MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD);
        }
        compute();
    } else if (!strcmp(way, "waitall")) {
        MPI_Request requests[2];
        int flag = 0, values[2];
        if (rank == 0) {
            MPI_Irecv(&values[0], 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(&values[1], 1, MPI_INT, 2, 8, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else if (rank == 1) {
            MPI_Irecv(&values[0], 1, MPI_INT, 2, 9, MPI_COMM_WORLD, &requests[0]);
            while (!flag) {
                MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
                usleep(100);
            }
        } else {
            if (rank == 2)
                MPI_Send(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
            compute();
        }
    } else if (!strcmp(way, "comms")) {
        enum { COMMS = 1000 };
        static MPI_Comm comms[COMMS];
        for (int i = 0; i < COMMS; i++)
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        for (int i = 0; i < COMMS - (rank == 1); i++)
            MPI_Barrier(comms[i]);
        compute();
    } else if (!strcmp(way, "fence")) {
        MPI_Win window;
        MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_fence(0, window);
        if (rank == 1)
            compute();
        MPI_Win_fence(0, window);
        compute();
    } else if (!strcmp(way, "probe")) {
        if (rank == 0)
            MPI_Probe(1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute();
    } else if (!strcmp(way, "iprobe") || !strcmp(way, "improbe")) {
        MPI_Message message;
        int flag = 0;
        while (rank == 0 && !flag) {
            if (way[1] == 'p')
                MPI_Iprobe(1, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            else
                MPI_Improbe(1, 5, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
            usleep(100);
        }
        if (rank > 1)
            MPI_Recv(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute();
    } else if (!strcmp(way, "lock") || !strcmp(way, "post") || !strcmp(way, "complete")) {
        static const int zero[] = {0}, others[] = {1, 2};
        int *memory;
        MPI_Win window;
        MPI_Group all, first, rest;
        MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_incl(all, 1, zero, &first);
        MPI_Group_incl(all, 2, others, &rest);
        if (*way == 'l') {
            if (rank == 0)
                MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank < 2) {
                MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);
                MPI_Put(&value, 1, MPI_INT, 2, 0, 1, MPI_INT, window);
                MPI_Win_flush(2, window);
            }
            if (rank == 1) {
                MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
                compute();
            }
            if (rank == 0) {
                MPI_Win_unlock(2, window);
                MPI_Send(&value, 1, MPI_INT, 2, 4, MPI_COMM_WORLD);
            } else {
                MPI_Recv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        } else if ((*way == 'p') == (rank == 0)) {
            MPI_Win_start(*way == 'p' ? rest : first, 0, window);
            for (int target = *way == 'p'; target <= (*way == 'p' ? 2 : 0); target++)
                MPI_Put(&value, 1, MPI_INT, target, 0, 1, MPI_INT, window);
            if (*way == 'c' && rank == 1)
                compute();
            MPI_Win_complete(window);
        } else {
            if (*way == 'p' && rank == 1)
                compute();
            MPI_Win_post(*way == 'p' ? first : rest, 0, window);
            MPI_Win_wait(window);
        }
        compute();
    } else if (!strcmp(way, "inter") || !strcmp(way, "between")) {
        MPI_Comm part, inter;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
        MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, &inter);
        if (*way == 'i') {
            if (rank == 0)
                MPI_Recv(&value, 1, MPI_INT, 1, 7, inter, MPI_STATUS_IGNORE);
        } else {
            MPI_Barrier(inter);
            if (rank != 3)
                MPI_Barrier(inter);
        }
        compute();
    } else if (!strcmp(way, "file")) {
        MPI_File file;
        char name[1024];
        int process = getpid();
        MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
        snprintf(name, sizeof name, "%s/hangs.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", process);
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            unlink(name);
        if (rank == 1)
            compute();
        MPI_File_write_all(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(way, "neighbours")) {
        int periodic = 1, values[2];
        MPI_Comm ring;
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
        MPI_Comm_set_name(ring, "ring");
        if (rank == 2) {
            sleep(limit < 3600 ? (unsigned)limit : 3600);
            exit(0);
        }
        MPI_Neighbor_allgather(&value, 1, MPI_INT, values, 1, MPI_INT, ring);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(way, "left")) {
        if (rank == 0)
            MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(way, "moves")) {
        for (;;) {
            MPI_Barrier(MPI_COMM_WORLD);
            usleep(10000);
            /* All of them end together. */
            int more = now() - begun < limit;
            MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
            if (!more)
                break;
        }
    } else if (!strcmp(way, "split")) {
        MPI_Comm part;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part);
        if (rank == 2)
            compute();
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part);
        compute();
    }
    MPI_Finalize();
    return 0;
}
