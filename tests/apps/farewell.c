/* What goes on while MPI ends. The way is the first argument:
 *
 *   attribute   a function attached to MPI_COMM_SELF, which MPI_Finalize of rank 0 calls, sends what rank 1 waits for before it gets there
 *   at-once     every process ends after MPI_Init, without MPI_Finalize
 *   session     rank 0 has a session that outlives MPI_Finalize, and frees a communicator that it has made of one (from MPI 4 on)
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int farewell(MPI_Comm comm, int key, void *value, void *extra) {
    int word = 7;
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_Send(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int rank, word = 0;
    const char *way = argc > 1 ? argv[1] : "attribute";
    MPI_Init(&argc, &argv);
    if (strcmp(way, "at-once") == 0) _exit(3);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(way, "attribute") == 0) {
        if (rank == 0) {
            int key;
            MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, farewell, &key, NULL);
            MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
            MPI_Comm_free_keyval(&key);
        } else if (rank == 1) {
            MPI_Recv(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("received %d\n", word);
        }
        MPI_Finalize();
        return 0;
    }
#if MPI_VERSION >= 4
    MPI_Session session = MPI_SESSION_NULL;
    if (rank == 0) {
        MPI_Group group;
        MPI_Comm comm;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Group_from_session_pset(session, "mpi://SELF", &group);
        MPI_Comm_create_from_group(group, "farewell", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        MPI_Group_free(&group);
        MPI_Comm_free(&comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0) {
        MPI_Session_finalize(&session);
        printf("the session has ended\n");
    }
#else
    MPI_Finalize();
#endif
    return 0;
}
