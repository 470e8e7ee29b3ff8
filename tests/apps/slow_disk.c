/* To be preloaded: the raw files of the recorder are on a disk that takes SLOW_DISK million bytes a second. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void take_time(int file, size_t bytes)
{
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    const char *rate = getenv("SLOW_DISK");
    if (!rate || !strstr(path, ".raw/"))
        return;
    double seconds = bytes / (atof(rate) * 1e6);
    struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t place)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real)
        real = dlsym(RTLD_NEXT, "pwrite");
    take_time(file, count);
    return real(file, bytes, count, place);
}
