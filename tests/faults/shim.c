/* Makes calls fail, loaded before the libraries (LD_PRELOAD). What fails is told by environment variables:
 *
 *   SHIM_MPI=NAME       the MPI call NAME fails with MPI_ERR_OTHER
 *   SHIM_RANKS=1,2      on these ranks only (default: on all)
 *   SHIM_AFTER=N        after N calls that succeed (default 0)
 *   SHIM_READ=ENDING    reading files whose name ends so ...
 *   SHIM_WRITE=TEXT     writing files whose name contains TEXT ...
 *   SHIM_ERRNO=N        ... fails with this error, or
 *   SHIM_DELAY=MS       ... takes so many milliseconds longer
 *   SHIM_CUT=ENDING     a file whose name ends so is emptied right after it has been mapped (after SHIM_AFTER times)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int concerned(void)
{
    const char *ranks = getenv("SHIM_RANKS");
    const char *rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    if (!ranks || !rank)
        return !ranks;
    const char *at = strstr(ranks, rank);
    return at != NULL;
}

static int fails(const char *name)
{
    static int calls;
    const char *wanted = getenv("SHIM_MPI");
    if (!wanted || strcmp(wanted, name) || !concerned())
        return 0;
    if (calls++ < number("SHIM_AFTER", 0))
        return 0;
    fprintf(stderr, "shim: %s fails\n", name);
    return 1;
}

#define CALL(NAME, PARAMETERS, ARGUMENTS)                                                                              \
    int NAME PARAMETERS                                                                                                \
    {                                                                                                                  \
        return fails(#NAME) ? MPI_ERR_OTHER : P##NAME ARGUMENTS;                                                       \
    }

CALL(MPI_Isend, (const void *b, int n, MPI_Datatype t, int d, int g, MPI_Comm c, MPI_Request *r), (b, n, t, d, g, c, r))
CALL(MPI_Irecv, (void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Request *r), (b, n, t, s, g, c, r))
CALL(MPI_Improbe, (int s, int g, MPI_Comm c, int *f, MPI_Message *m, MPI_Status *st), (s, g, c, f, m, st))
CALL(MPI_Imrecv, (void *b, int n, MPI_Datatype t, MPI_Message *m, MPI_Request *r), (b, n, t, m, r))
CALL(MPI_Ibcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *r), (b, n, t, root, c, r))
CALL(MPI_Iallreduce, (const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request *r),
     (s, b, n, t, o, c, r))
CALL(MPI_Iallgatherv,
     (const void *s, int n, MPI_Datatype t, void *b, const int *ns, const int *ds, MPI_Datatype u, MPI_Comm c,
      MPI_Request *r),
     (s, n, t, b, ns, ds, u, c, r))
CALL(MPI_Comm_create_group, (MPI_Comm c, MPI_Group g, int tag, MPI_Comm *n), (c, g, tag, n))
CALL(MPI_Comm_dup, (MPI_Comm c, MPI_Comm *n), (c, n))

/* Whether the file behind a descriptor is meant; its name is put into `name`. */
static int meant(int file, const char *pattern, int at_end, char name[4096])
{
    char link[64];
    if (!pattern || !concerned())
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, 4095);
    if (length < 0)
        return 0;
    name[length] = 0;
    const char *found = strstr(name, pattern);
    return found && !(at_end && strcmp(name + length - strlen(pattern), pattern));
}

/* The same; waits if the file is only slow. */
static int disturbed(int file, const char *pattern, int at_end)
{
    char name[4096];
    if (!meant(file, pattern, at_end, name))
        return 0;
    int delay = number("SHIM_DELAY", 0);
    struct timespec left = {delay / 1000, 1000000L * (delay % 1000)};
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
    errno = number("SHIM_ERRNO", 0);
    return errno != 0;
}

ssize_t read(int file, void *buffer, size_t length)
{
    static ssize_t (*real)(int, void *, size_t);
    if (!real)
        real = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    return disturbed(file, getenv("SHIM_READ"), 1) ? -1 : real(file, buffer, length);
}

ssize_t write(int file, const void *buffer, size_t length)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return disturbed(file, getenv("SHIM_WRITE"), 0) ? -1 : real(file, buffer, length);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    static ssize_t (*real)(int, const struct iovec *, int);
    if (!real)
        real = (ssize_t(*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    return disturbed(file, getenv("SHIM_WRITE"), 0) ? -1 : real(file, parts, count);
}

/* How whole files are copied. */
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *to_at, size_t length, unsigned flags)
{
    static ssize_t (*real)(int, off64_t *, int, off64_t *, size_t, unsigned);
    if (!real)
        real = (ssize_t(*)(int, off64_t *, int, off64_t *, size_t, unsigned))dlsym(RTLD_NEXT, "copy_file_range");
    if (disturbed(from, getenv("SHIM_READ"), 1) || disturbed(to, getenv("SHIM_WRITE"), 0))
        return -1;
    return real(from, at, to, to_at, length, flags);
}

void *mmap64(void *at, size_t length, int protection, int flags, int file, off64_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off64_t);
    static int times;
    char name[4096];
    if (!real)
        real = (void *(*)(void *, size_t, int, int, int, off64_t))dlsym(RTLD_NEXT, "mmap64");
    void *place = real(at, length, protection, flags, file, offset);
    if (place != MAP_FAILED && file >= 0 && meant(file, getenv("SHIM_CUT"), 1, name) && times++ >= number("SHIM_AFTER", 0) &&
        truncate(name, 0))
        fprintf(stderr, "shim: %s cannot be truncated\n", name);
    return place;
}
