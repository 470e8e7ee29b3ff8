/* Records what a C program does with MPI, for test traces whose contents are known in full.
 *
 * Linked to a program (or preloaded as a shared library), it intercepts MPI calls through the profiling interface
 * and writes one text file per process, `$TRACER_DIR/<rank>.log`, at MPI_Finalize. `log_to_otf2.py` turns them into
 * an OTF2 archive. The lines are described there. The records, their order inside a call and their byte counts are
 * those of Score-P; the completion of a receive is recorded in the call that completes it. Events of one call share
 * timestamps on purpose (Enter with a send or CollectiveBegin, a receive or CollectiveEnd with Leave): OTF2 stores a
 * shared timestamp once, and a correction may have to split it.
 *
 * The clock is CLOCK_MONOTONIC in nanoseconds plus an artificial error, so that processes of one node disagree as
 * the nodes of a cluster do. Process r reads, t seconds after the start,
 *
 *     r * (CLOCK_OFFSET_US + CLOCK_DRIFT_PPM * t + CLOCK_SINE_US * sin(2 pi (t / CLOCK_SINE_PERIOD_S + r / 8)))
 *
 * microseconds more. Offsets to process 0 are measured by ping-pong in MPI_Init and MPI_Finalize, with these faulty
 * clocks, as a measurement system would: they remove offset and drift, the sine stays. TRACER_NO_OFFSETS=1 leaves
 * them out.
 *
 * Not covered: inter-communicators, persistent requests, one-sided communication, several threads. */
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- clock ---------------------------------------------------------------------------------------------------- */

static int world_rank = 0, world_size = 1;
static int64_t start_time = 0; /* of process 0, by the true clock */
static double offset_us, drift_ppm, sine_us, sine_period_s = 1;

static double setting(const char *name, double otherwise)
{
    const char *value = getenv(name);
    return value && *value ? atof(value) : otherwise;
}

static int64_t true_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* What the clock of this process shows at a true time. */
static int64_t shown(int64_t t)
{
    double seconds = (double)(t - start_time) * 1e-9;
    double phase = 2 * M_PI * (seconds / sine_period_s + world_rank / 8.0);
    double error_us = world_rank * (offset_us + drift_ppm * seconds + sine_us * sin(phase));
    return t + (int64_t)(error_us * 1e3);
}

/* ---- records: kept in memory, written at the end ---------------------------------------------------------------- */

struct record {
    int64_t time; /* true time; the clock's error is added when written, since the rank is unknown before MPI_Init */
    const char *kind;
    const char *region;
    int64_t fields[6];
    int count;
};

static struct record *records = NULL;
static size_t record_count = 0, record_room = 0;

static struct record *add(int64_t time, const char *kind)
{
    if (record_count == record_room) {
        record_room = record_room ? 2 * record_room : 4096;
        records = realloc(records, record_room * sizeof *records);
        if (!records) {
            fputs("otf2_tracer: out of memory\n", stderr);
            abort();
        }
    }
    struct record *record = &records[record_count++];
    memset(record, 0, sizeof *record);
    record->time = time;
    record->kind = kind;
    return record;
}

static void event(int64_t time, const char *kind, int count, const int64_t *fields)
{
    struct record *record = add(time, kind);
    record->count = count;
    memcpy(record->fields, fields, (size_t)count * sizeof *fields);
}
#define EVENT(time, kind, ...)                                                                                         \
    event(time, kind, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static int64_t enter(const char *region)
{
    int64_t now = true_time();
    add(now, "ENTER")->region = region;
    return now;
}

static void leave(int64_t time, const char *region)
{
    add(time, "LEAVE")->region = region;
}

/* ---- communicators ---------------------------------------------------------------------------------------------- */

/* A communicator has one name in all processes: the world rank of its first member, and that member's own count. */
struct comm {
    MPI_Comm handle;
    int alive;
    int64_t leader, serial, parent; /* parent: an index into this table, or -1 */
    int size, *members;             /* world ranks, by rank in the communicator */
};

static struct comm *comms = NULL;
static int comm_count = 0;
static int64_t next_serial = 0;

static int comm_index(MPI_Comm handle)
{
    for (int i = comm_count - 1; i >= 0; i--)
        if (comms[i].alive && comms[i].handle == handle)
            return i;
    return -1;
}

static int comm_rank(MPI_Comm handle)
{
    int rank;
    PMPI_Comm_rank(handle, &rank);
    return rank;
}

static int comm_size(MPI_Comm handle)
{
    int size;
    PMPI_Comm_size(handle, &size);
    return size;
}

static void add_comm(MPI_Comm handle, MPI_Comm parent)
{
    if (handle == MPI_COMM_NULL)
        return;
    struct comm comm = {.handle = handle, .alive = 1, .size = comm_size(handle)};
    comm.parent = parent == MPI_COMM_NULL ? -1 : comm_index(parent);
    comm.members = malloc(sizeof(int) * (size_t)comm.size);
    int *ranks = malloc(sizeof(int) * (size_t)comm.size);
    for (int i = 0; i < comm.size; i++)
        ranks[i] = i;
    MPI_Group group, world;
    PMPI_Comm_group(handle, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, comm.size, ranks, world, comm.members);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    free(ranks);
    int64_t name[2] = {world_rank, 0};
    if (comm_rank(handle) == 0)
        name[1] = next_serial++;
    PMPI_Bcast(name, 2, MPI_INT64_T, 0, handle);
    comm.leader = name[0];
    comm.serial = name[1];
    comms = realloc(comms, sizeof *comms * (size_t)(comm_count + 1));
    comms[comm_count] = comm;
    EVENT(true_time(), "COMM_CREATE", comm_count);
    comm_count++;
}

/* ---- requests ----------------------------------------------------------------------------------------------------- */

enum request_kind { SEND, RECEIVE, COLLECTIVE };

struct request {
    MPI_Request handle;
    enum request_kind kind;
    int64_t id, comm, op, root, sent, received;
};

static struct request *requests = NULL;
static int request_count = 0, request_room = 0;
static int64_t next_request = 1;

static struct request *open_request(MPI_Request handle, enum request_kind kind, int64_t id, int64_t comm)
{
    if (request_count == request_room) {
        request_room = request_room ? 2 * request_room : 64;
        requests = realloc(requests, sizeof *requests * (size_t)request_room);
    }
    struct request *request = &requests[request_count++];
    *request = (struct request){.handle = handle, .kind = kind, .id = id, .comm = comm};
    return request;
}

/* Records that the request which had this handle is complete. `handle` is the value before MPI reset it. */
static void complete(int64_t now, MPI_Request handle, MPI_Status *status)
{
    if (handle == MPI_REQUEST_NULL)
        return;
    for (int i = 0; i < request_count; i++) {
        if (requests[i].handle != handle)
            continue;
        struct request request = requests[i];
        requests[i] = requests[--request_count];
        int cancelled = 0, bytes = 0;
        if (request.kind != COLLECTIVE)
            PMPI_Test_cancelled(status, &cancelled);
        if (cancelled) {
            EVENT(now, "MPI_REQUEST_CANCELLED", request.id);
        } else if (request.kind == SEND) {
            EVENT(now, "MPI_ISEND_COMPLETE", request.id);
        } else if (request.kind == RECEIVE) {
            PMPI_Get_count(status, MPI_BYTE, &bytes);
            if (status->MPI_SOURCE >= 0)
                EVENT(now, "MPI_IRECV", status->MPI_SOURCE, request.comm, status->MPI_TAG, bytes, request.id);
        } else {
            EVENT(now, "NON_BLOCKING_COLLECTIVE_COMPLETE", request.op, request.comm, request.root, request.sent,
                  request.received, request.id);
        }
        return;
    }
}

/* Records that the request was looked at and is not complete. */
static void not_complete(int64_t now, MPI_Request handle)
{
    for (int i = 0; i < request_count; i++)
        if (requests[i].handle == handle)
            EVENT(now, "MPI_REQUEST_TEST", requests[i].id);
}

/* ---- point-to-point ------------------------------------------------------------------------------------------------ */

static int64_t bytes_of(int count, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    return (int64_t)count * size;
}

static void record_receive(int64_t now, MPI_Comm comm, MPI_Status *status)
{
    int bytes;
    if (status->MPI_SOURCE < 0)
        return; /* MPI_PROC_NULL */
    PMPI_Get_count(status, MPI_BYTE, &bytes);
    EVENT(now, "MPI_RECV", status->MPI_SOURCE, comm_index(comm), status->MPI_TAG, bytes);
}

#define BLOCKING_SEND(NAME)                                                                                            \
    int MPI_##NAME(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)                  \
    {                                                                                                                  \
        int64_t now = enter("MPI_" #NAME);                                                                             \
        if (to >= 0)                                                                                                   \
            EVENT(now, "MPI_SEND", to, comm_index(comm), tag, bytes_of(count, type));                                  \
        int result = PMPI_##NAME(buffer, count, type, to, tag, comm);                                                  \
        leave(true_time(), "MPI_" #NAME);                                                                              \
        return result;                                                                                                 \
    }
BLOCKING_SEND(Send)
BLOCKING_SEND(Ssend)
BLOCKING_SEND(Bsend)

#define IMMEDIATE_SEND(NAME)                                                                                           \
    int MPI_##NAME(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,                  \
                   MPI_Request *request)                                                                               \
    {                                                                                                                  \
        int64_t now = enter("MPI_" #NAME), id = next_request;                                                          \
        if (to >= 0)                                                                                                   \
            EVENT(now, "MPI_ISEND", to, comm_index(comm), tag, bytes_of(count, type), id);                             \
        int result = PMPI_##NAME(buffer, count, type, to, tag, comm, request);                                         \
        if (to >= 0)                                                                                                   \
            open_request(*request, SEND, next_request++, comm_index(comm));                                            \
        leave(true_time(), "MPI_" #NAME);                                                                              \
        return result;                                                                                                 \
    }
IMMEDIATE_SEND(Isend)
IMMEDIATE_SEND(Issend)

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    enter("MPI_Recv");
    int result = PMPI_Recv(buffer, count, type, from, tag, comm, status);
    int64_t now = true_time();
    record_receive(now, comm, status);
    leave(now, "MPI_Recv");
    return result;
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    enter("MPI_Irecv");
    int result = PMPI_Irecv(buffer, count, type, from, tag, comm, request);
    int64_t now = true_time();
    if (from != MPI_PROC_NULL) {
        EVENT(now, "MPI_IRECV_REQUEST", next_request);
        open_request(*request, RECEIVE, next_request++, comm_index(comm));
    }
    leave(now, "MPI_Irecv");
    return result;
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in, int in_count,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    int64_t now = enter("MPI_Sendrecv");
    if (to >= 0)
        EVENT(now, "MPI_SEND", to, comm_index(comm), out_tag, bytes_of(out_count, out_type));
    int result = PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
    now = true_time();
    record_receive(now, comm, status);
    leave(now, "MPI_Sendrecv");
    return result;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    MPI_Status own;
    MPI_Request before = *request;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    enter("MPI_Wait");
    int result = PMPI_Wait(request, status);
    int64_t now = true_time();
    complete(now, before, status);
    leave(now, "MPI_Wait");
    return result;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    MPI_Status own;
    MPI_Request before = *request;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    enter("MPI_Test");
    int result = PMPI_Test(request, flag, status);
    int64_t now = true_time();
    if (*flag)
        complete(now, before, status);
    else
        not_complete(now, before);
    leave(now, "MPI_Test");
    return result;
}

/* Copies of the handles, and statuses for callers who want none: the call overwrites the former, we need the latter. */
static MPI_Request *handles_before(int count, const MPI_Request array[])
{
    MPI_Request *copy = malloc(sizeof *copy * (size_t)(count + 1));
    memcpy(copy, array, sizeof *copy * (size_t)count);
    return copy;
}

static MPI_Status *statuses_or(int count, MPI_Status statuses[], MPI_Status **own)
{
    *own = malloc(sizeof **own * (size_t)(count + 1));
    return statuses == MPI_STATUSES_IGNORE ? *own : statuses;
}

int MPI_Waitall(int count, MPI_Request array[], MPI_Status statuses[])
{
    MPI_Status *own;
    MPI_Request *before = handles_before(count, array);
    statuses = statuses_or(count, statuses, &own);
    enter("MPI_Waitall");
    int result = PMPI_Waitall(count, array, statuses);
    int64_t now = true_time();
    for (int i = 0; i < count; i++)
        complete(now, before[i], &statuses[i]);
    leave(now, "MPI_Waitall");
    free(before);
    free(own);
    return result;
}

int MPI_Testall(int count, MPI_Request array[], int *flag, MPI_Status statuses[])
{
    MPI_Status *own;
    MPI_Request *before = handles_before(count, array);
    statuses = statuses_or(count, statuses, &own);
    enter("MPI_Testall");
    int result = PMPI_Testall(count, array, flag, statuses);
    int64_t now = true_time();
    for (int i = 0; i < count; i++) {
        if (*flag)
            complete(now, before[i], &statuses[i]);
        else
            not_complete(now, before[i]);
    }
    leave(now, "MPI_Testall");
    free(before);
    free(own);
    return result;
}

int MPI_Waitany(int count, MPI_Request array[], int *index, MPI_Status *status)
{
    MPI_Status own;
    MPI_Request *before = handles_before(count, array);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    enter("MPI_Waitany");
    int result = PMPI_Waitany(count, array, index, status);
    int64_t now = true_time();
    if (*index != MPI_UNDEFINED)
        complete(now, before[*index], status);
    leave(now, "MPI_Waitany");
    free(before);
    return result;
}

int MPI_Waitsome(int count, MPI_Request array[], int *done, int indices[], MPI_Status statuses[])
{
    MPI_Status *own;
    MPI_Request *before = handles_before(count, array);
    statuses = statuses_or(count, statuses, &own);
    enter("MPI_Waitsome");
    int result = PMPI_Waitsome(count, array, done, indices, statuses);
    int64_t now = true_time();
    for (int i = 0; *done != MPI_UNDEFINED && i < *done; i++)
        complete(now, before[indices[i]], &statuses[i]);
    leave(now, "MPI_Waitsome");
    free(before);
    free(own);
    return result;
}

/* ---- collectives ---------------------------------------------------------------------------------------------------- */

/* Numbers of OTF2_CollectiveOp. */
enum op {
    BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW,
    ALLREDUCE, REDUCE, REDUCE_SCATTER, SCAN, EXSCAN, REDUCE_SCATTER_BLOCK, CREATE_HANDLE, DESTROY_HANDLE
};

static const int64_t NO_ROOT = -1;

/* The body of a blocking collective: records around the call `CALL`, which may use everything in scope. */
#define RECORD_COLLECTIVE(NAME, OP, COMM, ROOT, SENT, RECEIVED, CALL)                                                  \
    int64_t begin = enter(NAME);                                                                                       \
    EVENT(begin, "MPI_COLLECTIVE_BEGIN", 0);                                                                           \
    int64_t on = comm_index(COMM), sent = (SENT), received = (RECEIVED);                                               \
    int result = CALL;                                                                                                 \
    int64_t now = true_time();                                                                                         \
    EVENT(now, "MPI_COLLECTIVE_END", OP, on, ROOT, sent, received);                                                    \
    leave(now, NAME);                                                                                                  \
    return result

static int64_t sum_of(const int counts[], int size, MPI_Datatype type)
{
    int64_t sum = 0;
    for (int i = 0; i < size; i++)
        sum += bytes_of(counts[i], type);
    return sum;
}

static int64_t sum_of_each(const int counts[], int size, const MPI_Datatype types[])
{
    int64_t sum = 0;
    for (int i = 0; i < size; i++)
        sum += bytes_of(counts[i], types[i]);
    return sum;
}

/* `amount` if this process is the root, else 0. */
static int64_t at_root(MPI_Comm comm, int root, int64_t amount)
{
    return comm_rank(comm) == root ? amount : 0;
}

int MPI_Barrier(MPI_Comm comm)
{
    RECORD_COLLECTIVE("MPI_Barrier", BARRIER, comm, NO_ROOT, 0, 0, PMPI_Barrier(comm));
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int64_t bytes = bytes_of(count, type);
    RECORD_COLLECTIVE("MPI_Bcast", BCAST, comm, root, at_root(comm, root, bytes * comm_size(comm)), bytes,
                      PMPI_Bcast(buffer, count, type, root, comm));
}

int MPI_Reduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    int64_t bytes = bytes_of(count, type);
    RECORD_COLLECTIVE("MPI_Reduce", REDUCE, comm, root, bytes, at_root(comm, root, bytes * comm_size(comm)),
                      PMPI_Reduce(out, in, count, type, op, root, comm));
}

int MPI_Gather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,
               int root, MPI_Comm comm)
{
    int64_t bytes = bytes_of(out_count, out_type);
    RECORD_COLLECTIVE("MPI_Gather", GATHER, comm, root, bytes, at_root(comm, root, bytes * comm_size(comm)),
                      PMPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm));
}

int MPI_Gatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                const int displs[], MPI_Datatype in_type, int root, MPI_Comm comm)
{
    RECORD_COLLECTIVE("MPI_Gatherv", GATHERV, comm, root, bytes_of(out_count, out_type),
                      comm_rank(comm) == root ? sum_of(in_counts, comm_size(comm), in_type) : 0,
                      PMPI_Gatherv(out, out_count, out_type, in, in_counts, displs, in_type, root, comm));
}

int MPI_Scatter(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,
                int root, MPI_Comm comm)
{
    int64_t bytes = bytes_of(in_count, in_type);
    RECORD_COLLECTIVE("MPI_Scatter", SCATTER, comm, root, at_root(comm, root, bytes * comm_size(comm)), bytes,
                      PMPI_Scatter(out, out_count, out_type, in, in_count, in_type, root, comm));
}

int MPI_Scatterv(const void *out, const int out_counts[], const int displs[], MPI_Datatype out_type, void *in,
                 int in_count, MPI_Datatype in_type, int root, MPI_Comm comm)
{
    RECORD_COLLECTIVE("MPI_Scatterv", SCATTERV, comm, root,
                      comm_rank(comm) == root ? sum_of(out_counts, comm_size(comm), out_type) : 0,
                      bytes_of(in_count, in_type),
                      PMPI_Scatterv(out, out_counts, displs, out_type, in, in_count, in_type, root, comm));
}

int MPI_Allgather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,
                  MPI_Comm comm)
{
    RECORD_COLLECTIVE("MPI_Allgather", ALLGATHER, comm, NO_ROOT, bytes_of(out_count, out_type) * comm_size(comm),
                      bytes_of(in_count, in_type) * comm_size(comm),
                      PMPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm));
}

int MPI_Allgatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                   const int displs[], MPI_Datatype in_type, MPI_Comm comm)
{
    RECORD_COLLECTIVE("MPI_Allgatherv", ALLGATHERV, comm, NO_ROOT, bytes_of(out_count, out_type) * comm_size(comm),
                      sum_of(in_counts, comm_size(comm), in_type),
                      PMPI_Allgatherv(out, out_count, out_type, in, in_counts, displs, in_type, comm));
}

int MPI_Alltoall(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,
                 MPI_Comm comm)
{
    RECORD_COLLECTIVE("MPI_Alltoall", ALLTOALL, comm, NO_ROOT, bytes_of(out_count, out_type) * comm_size(comm),
                      bytes_of(in_count, in_type) * comm_size(comm),
                      PMPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm));
}

int MPI_Alltoallv(const void *out, const int out_counts[], const int out_displs[], MPI_Datatype out_type, void *in,
                  const int in_counts[], const int in_displs[], MPI_Datatype in_type, MPI_Comm comm)
{
    RECORD_COLLECTIVE("MPI_Alltoallv", ALLTOALLV, comm, NO_ROOT, sum_of(out_counts, comm_size(comm), out_type),
                      sum_of(in_counts, comm_size(comm), in_type),
                      PMPI_Alltoallv(out, out_counts, out_displs, out_type, in, in_counts, in_displs, in_type, comm));
}

int MPI_Alltoallw(const void *out, const int out_counts[], const int out_displs[], const MPI_Datatype out_types[],
                  void *in, const int in_counts[], const int in_displs[], const MPI_Datatype in_types[], MPI_Comm comm)
{
    RECORD_COLLECTIVE("MPI_Alltoallw", ALLTOALLW, comm, NO_ROOT, sum_of_each(out_counts, comm_size(comm), out_types),
                      sum_of_each(in_counts, comm_size(comm), in_types),
                      PMPI_Alltoallw(out, out_counts, out_displs, out_types, in, in_counts, in_displs, in_types, comm));
}

int MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int64_t bytes = bytes_of(count, type) * comm_size(comm);
    RECORD_COLLECTIVE("MPI_Allreduce", ALLREDUCE, comm, NO_ROOT, bytes, bytes,
                      PMPI_Allreduce(out, in, count, type, op, comm));
}

int MPI_Reduce_scatter(const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    RECORD_COLLECTIVE("MPI_Reduce_scatter", REDUCE_SCATTER, comm, NO_ROOT, sum_of(counts, comm_size(comm), type),
                      bytes_of(counts[comm_rank(comm)], type) * comm_size(comm),
                      PMPI_Reduce_scatter(out, in, counts, type, op, comm));
}

int MPI_Reduce_scatter_block(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int64_t bytes = bytes_of(count, type) * comm_size(comm);
    RECORD_COLLECTIVE("MPI_Reduce_scatter_block", REDUCE_SCATTER_BLOCK, comm, NO_ROOT, bytes, bytes,
                      PMPI_Reduce_scatter_block(out, in, count, type, op, comm));
}

/* Scans: a member's data goes to every later one, and it gets data from every earlier one; Scan counts itself. */
int MPI_Scan(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int64_t bytes = bytes_of(count, type);
    RECORD_COLLECTIVE("MPI_Scan", SCAN, comm, NO_ROOT, bytes * (comm_size(comm) - comm_rank(comm)),
                      bytes * (comm_rank(comm) + 1), PMPI_Scan(out, in, count, type, op, comm));
}

int MPI_Exscan(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int64_t bytes = bytes_of(count, type);
    RECORD_COLLECTIVE("MPI_Exscan", EXSCAN, comm, NO_ROOT, bytes * (comm_size(comm) - comm_rank(comm) - 1),
                      bytes * comm_rank(comm), PMPI_Exscan(out, in, count, type, op, comm));
}

/* The body of a non-blocking collective. */
#define RECORD_IMMEDIATE(NAME, OP, COMM, ROOT, SENT, RECEIVED, CALL)                                                   \
    enter(NAME);                                                                                                       \
    EVENT(true_time(), "NON_BLOCKING_COLLECTIVE_REQUEST", next_request);                                               \
    int result = CALL;                                                                                                 \
    struct request *opened = open_request(*request, COLLECTIVE, next_request++, comm_index(COMM));                     \
    opened->op = OP;                                                                                                   \
    opened->root = ROOT;                                                                                               \
    opened->sent = SENT;                                                                                               \
    opened->received = RECEIVED;                                                                                       \
    leave(true_time(), NAME);                                                                                          \
    return result

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    RECORD_IMMEDIATE("MPI_Ibarrier", BARRIER, comm, NO_ROOT, 0, 0, PMPI_Ibarrier(comm, request));
}

int MPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    int64_t bytes = bytes_of(count, type);
    RECORD_IMMEDIATE("MPI_Ibcast", BCAST, comm, root, at_root(comm, root, bytes * comm_size(comm)), bytes,
                     PMPI_Ibcast(buffer, count, type, root, comm, request));
}

int MPI_Iallreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    int64_t bytes = bytes_of(count, type) * comm_size(comm);
    RECORD_IMMEDIATE("MPI_Iallreduce", ALLREDUCE, comm, NO_ROOT, bytes, bytes,
                     PMPI_Iallreduce(out, in, count, type, op, comm, request));
}

/* ---- communicator management ------------------------------------------------------------------------------------------ */

#define RECORD_CREATION(NAME, CALL)                                                                                    \
    int64_t begin = enter(NAME);                                                                                       \
    EVENT(begin, "MPI_COLLECTIVE_BEGIN", 0);                                                                           \
    int result = CALL;                                                                                                 \
    add_comm(*created, comm);                                                                                          \
    int64_t now = true_time();                                                                                         \
    EVENT(now, "MPI_COLLECTIVE_END", CREATE_HANDLE, comm_index(comm), NO_ROOT, 0, 0);                                  \
    leave(now, NAME);                                                                                                  \
    return result

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *created)
{
    RECORD_CREATION("MPI_Comm_split", PMPI_Comm_split(comm, color, key, created));
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *created)
{
    RECORD_CREATION("MPI_Comm_dup", PMPI_Comm_dup(comm, created));
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *created)
{
    RECORD_CREATION("MPI_Comm_create", PMPI_Comm_create(comm, group, created));
}

int MPI_Comm_free(MPI_Comm *comm)
{
    int index = comm_index(*comm);
    int64_t begin = enter("MPI_Comm_free");
    EVENT(begin, "MPI_COLLECTIVE_BEGIN", 0);
    int result = PMPI_Comm_free(comm);
    if (index >= 0) {
        comms[index].alive = 0;
        EVENT(true_time(), "COMM_DESTROY", index);
    }
    int64_t now = true_time();
    EVENT(now, "MPI_COLLECTIVE_END", DESTROY_HANDLE, index, NO_ROOT, 0, 0);
    leave(now, "MPI_Comm_free");
    return result;
}

/* ---- begin and end ------------------------------------------------------------------------------------------------------ */

struct offset {
    int64_t time, offset, round_trip; /* by the clock of this process; to process 0; of the best of all tries */
};

static struct offset offsets[2];

/* Process 0 answers each other process in turn with its own time; the quickest of several round trips counts. */
static struct offset measure_offset(void)
{
    enum { TRIES = 50 };
    struct offset best = {.time = shown(true_time()), .round_trip = INT64_MAX};
    PMPI_Barrier(MPI_COMM_WORLD);
    for (int other = 1; other < world_size; other++) {
        for (int i = 0; i < TRIES && world_rank == 0; i++) {
            int64_t answer;
            PMPI_Recv(NULL, 0, MPI_INT64_T, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            answer = shown(true_time());
            PMPI_Send(&answer, 1, MPI_INT64_T, other, 0, MPI_COMM_WORLD);
        }
        for (int i = 0; i < TRIES && world_rank == other; i++) {
            int64_t sent = shown(true_time()), answer;
            PMPI_Send(NULL, 0, MPI_INT64_T, 0, 0, MPI_COMM_WORLD);
            PMPI_Recv(&answer, 1, MPI_INT64_T, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            int64_t round_trip = shown(true_time()) - sent, middle = sent + round_trip / 2;
            if (round_trip < best.round_trip)
                best = (struct offset){.time = middle, .offset = answer - middle, .round_trip = round_trip};
        }
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    return best;
}

static void start(int64_t begin)
{
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    offset_us = setting("CLOCK_OFFSET_US", 0);
    drift_ppm = setting("CLOCK_DRIFT_PPM", 0);
    sine_us = setting("CLOCK_SINE_US", 0);
    sine_period_s = setting("CLOCK_SINE_PERIOD_S", 1);
    start_time = begin;
    PMPI_Bcast(&start_time, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    offsets[0] = measure_offset();
    add_comm(MPI_COMM_WORLD, MPI_COMM_NULL);
    add_comm(MPI_COMM_SELF, MPI_COMM_NULL);
    int64_t now = true_time();
    EVENT(now, "MPI_COLLECTIVE_END", CREATE_HANDLE, 0, NO_ROOT, 0, 0);
    leave(now, "MPI_Init");
}

int MPI_Init(int *argc, char ***argv)
{
    int64_t begin = enter("MPI_Init");
    EVENT(begin, "MPI_COLLECTIVE_BEGIN", 0);
    int result = PMPI_Init(argc, argv);
    start(begin);
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int64_t begin = enter("MPI_Init");
    EVENT(begin, "MPI_COLLECTIVE_BEGIN", 0);
    int result = PMPI_Init_thread(argc, argv, required, provided);
    start(begin);
    return result;
}

static void write_log(void)
{
    const char *folder = getenv("TRACER_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.log", folder && *folder ? folder : ".", world_rank);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return;
    }
    fprintf(file, "WORLD %d %d\n", world_rank, world_size);
    for (int i = 0; i < 2 && setting("TRACER_NO_OFFSETS", 0) == 0; i++)
        fprintf(file, "CLOCK_OFFSET %lld %lld\n", (long long)offsets[i].time, (long long)offsets[i].offset);
    for (int i = 0; i < comm_count; i++) {
        fprintf(file, "COMM %d %lld %lld %lld", i, (long long)comms[i].leader, (long long)comms[i].serial,
                (long long)comms[i].parent);
        for (int rank = 0; rank < comms[i].size; rank++)
            fprintf(file, " %d", comms[i].members[rank]);
        fputc('\n', file);
    }
    for (size_t i = 0; i < record_count; i++) {
        const struct record *record = &records[i];
        fprintf(file, "%lld %s", (long long)shown(record->time), record->kind);
        if (record->region)
            fprintf(file, " %s", record->region);
        for (int k = 0; k < record->count; k++)
            fprintf(file, " %lld", (long long)record->fields[k]);
        fputc('\n', file);
    }
    fclose(file);
}

int MPI_Finalize(void)
{
    int64_t begin = enter("MPI_Finalize");
    EVENT(begin, "MPI_COLLECTIVE_BEGIN", 0);
    offsets[1] = measure_offset();
    int64_t now = true_time();
    EVENT(now, "MPI_COLLECTIVE_END", DESTROY_HANDLE, 0, NO_ROOT, 0, 0);
    leave(now, "MPI_Finalize");
    write_log();
    return PMPI_Finalize();
}
