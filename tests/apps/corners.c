/* What few programs do, and what a recorder may stumble on. The first argument says what. With -DTOOL: a library of a tool that stands in for MPI_Send. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef TOOL
static int sends;

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
    sends++;
    return PMPI_Send(buffer, count, type, peer, tag, comm);
}

int MPI_Finalize(void) {
    printf("the tool has seen %d sends\n", sends);
    fflush(stdout);
    return PMPI_Finalize();
}
#else
static int rank, size, words[16], more[16];
static MPI_Comm first, second;
static jmp_buf back;

/* Threads make communicators of the same members at the same time, told apart by a tag; the messages of each have a length of their own. */
static void *make_groups(void *argument) {
    int own = (int)(long)argument;
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int i = 0; i < 50; i++) {
        MPI_Comm made;
        MPI_Comm_create_group(MPI_COMM_WORLD, all, 100 + own, &made);
        if (rank == 0 && own == 0) usleep(300);
        if (rank == 0) MPI_Send(words, own + 1, MPI_INT, 1, 5, made);
        if (rank == 1) MPI_Recv(words + 8 * own, own + 1, MPI_INT, 0, 5, made, MPI_STATUS_IGNORE);
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&all);
    return NULL;
}

/* A thread frees a communicator while another one waits for a new one, which may get its handle. */
static void *use_and_free(void *argument) {
    (void)argument;
    usleep(100000);
    for (int i = 0; i < 10; i++)
        MPI_Sendrecv(words, 1, MPI_INT, 1 - rank, 1, words + 4, 1, MPI_INT, 1 - rank, 1, first, MPI_STATUS_IGNORE);
    MPI_Barrier(first);
    MPI_Comm_free(&first);
    return NULL;
}

static void *duplicate_and_use(void *argument) {
    (void)argument;
    MPI_Comm made;
    if (rank == 1) usleep(400000);
    MPI_Comm_dup(second, &made);
    for (int i = 0; i < 10; i++)
        MPI_Sendrecv(more, 2, MPI_INT, 1 - rank, 2, more + 4, 2, MPI_INT, 1 - rank, 2, made, MPI_STATUS_IGNORE);
    MPI_Comm_free(&made);
    return NULL;
}

static void both(void *one(void *), void *other(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, one, (void *)0);
    pthread_create(&threads[1], NULL, other, (void *)1);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static void leave(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    longjmp(back, 1);
}

static void exchange(int times) {
    for (int i = 0; i < times; i++)
        MPI_Sendrecv(words, 1, MPI_INT, (rank + 1) % size, 1, words + 4, 1, MPI_INT, (rank + size - 1) % size, 1, first,
                     MPI_STATUS_IGNORE);
}

/* An error handler leaves a call of MPI without returning from it. */
static void jump(void) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(first, handler);
    exchange(5);
    if (setjmp(back) == 0) {
        MPI_Send(words, 1, MPI_INT, size + 7, 1, first);
        printf("this should have failed\n");
    }
    /* With more arguments than the call that has failed, one could as well be within it. */
    MPI_Barrier(MPI_COMM_WORLD);
    exchange(5);
}

/* Matched probes for messages from nobody. */
static void nobody(void) {
    int flag = 0;
    MPI_Message message;
    MPI_Request request;
    MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    if (flag) {
        MPI_Imrecv(words, 1, MPI_INT, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(words, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
}

/* One process is ten messages ahead of the other one, which answers; now and then they meet. */
static void run_ahead(void) {
    const int all = 20000, ahead = 10;
    for (int i = 0; i < all + ahead; i++) {
        if (rank == 0 && i < all) MPI_Send(words, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        if (rank == 0 && i >= ahead) MPI_Recv(words + 4, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1 && i < all) {
            MPI_Recv(words, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(words + 4, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        }
        if (i % 500 == 0 && i < all) MPI_Barrier(first);
        /* The rings of the two begin at different places. */
        if (rank == 1 && i % 7 == 0) MPI_Sendrecv(more, 1, MPI_INT, 1, 3, more + 4, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Closes all files of a directory that it has not opened, as programs do that begin anew, and opens its own. */
static void close_files(const char *name, const char *own) {
    char path[64], target[4096], content[64] = {0};
    for (int i = 3; i < 1 << 15; i++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", i);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length > 0 && (target[length] = 0, strstr(target, name) != NULL)) close(i);
    }
    int files[4];
    for (int i = 0; i < 4; i++) {
        snprintf(target, sizeof target, "%s-%d-%d", own, rank, i);
        files[i] = open(target, O_CREAT | O_TRUNC | O_RDWR, 0600);
        if (write(files[i], "mine", 4) != 4) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    exchange(200000);
    for (int i = 0; i < 4; i++) {
        if (pread(files[i], content, sizeof content, 0) != 4 || strcmp(content, "mine") != 0) printf("a file has been written to\n");
    }
}

int main(int argc, char **argv) {
    int provided;
    const char *what = argv[1];
    /* With several threads, MPICH has a lock while it is in a call. */
    MPI_Init_thread(&argc, &argv, strcmp(what, "jump") == 0 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    if (strcmp(what, "groups") == 0) both(make_groups, make_groups);
    if (strcmp(what, "handles") == 0) both(use_and_free, duplicate_and_use);
    if (strcmp(what, "jump") == 0) jump();
    if (strcmp(what, "nobody") == 0) nobody();
    if (strcmp(what, "ahead") == 0) run_ahead();
    if (strcmp(what, "files") == 0) close_files(argv[2], argv[3]);
    if (strcmp(what, "tool") == 0) {
        if (rank == 0) MPI_Send(words, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(words, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
#endif
