/* Sessions of MPI 4: sessions.c alone|mixed|threads. What was done, as recorded.c says it.
 *
 *   alone     without MPI_Init
 *   mixed     beside MPI_Init, with the same communication in MPI_COMM_WORLD
 *   threads   no sessions: threads that the program has made before MPI_Init
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 50, THREADS = 3 };
static long done[2];

static void communicate(MPI_Comm comm, int tag)
{
    int rank, size, mine, theirs, sum;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    mine = rank;
    for (int i = 0; i < ROUNDS; i++)
        MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % size, tag, &theirs, 1, MPI_INT, (rank + size - 1) % size, tag, comm, MPI_STATUS_IGNORE);
    if (tag > 0)
        return;
    for (int i = 0; i < ROUNDS; i++)
        MPI_Allreduce(&theirs, &sum, 1, MPI_INT, MPI_SUM, comm);
    done[0] += ROUNDS;
    done[1] += ROUNDS;
}

/* Collective operations that are the recorder's: MPI_Init, MPI_Finalize, the end of a session's communicator. */
#ifdef SESSIONS
enum { ENDS = 3 };
static void session(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "clc-replay", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&group);
    communicate(comm, 0);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}
#else
enum { ENDS = 2 };
#endif

static volatile int ready;

static void *early(void *number)
{
    while (!ready)
        usleep(1000);
    communicate(MPI_COMM_WORLD, (int)(long)number);
    return NULL;
}

static void threads(int *argc, char ***argv)
{
    pthread_t all[THREADS];
    int given;
    for (long k = 0; k < THREADS; k++)
        pthread_create(&all[k], NULL, early, (void *)(k + 1));
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &given);
    ready = 1;
    for (int k = 0; k < THREADS; k++)
        pthread_join(all[k], NULL);
    done[0] += THREADS * ROUNDS;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "mixed";
    int rank, size, collectives;
    if (strcmp(how, "threads") == 0)
        threads(&argc, &argv);
#ifdef SESSIONS
    else if (strcmp(how, "alone") == 0) {
        session();
        printf("done %ld\n", done[0]);
        return 0;
    }
#endif
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    communicate(MPI_COMM_WORLD, 0);
#ifdef SESSIONS
    session();
#endif
    if (rank == 0)
        printf("sends %ld\nreceives %ld\nimmediate_sends 0\nimmediate_receives 0\ncancelled 0\ncollectives %ld\nimmediate_collectives 0\n",
               size * done[0], size * done[0], size * (done[1] + ENDS));
    MPI_Finalize();
    return 0;
}
