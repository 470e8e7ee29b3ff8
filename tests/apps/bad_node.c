/* Preloaded into a process, in place of what nobody can do to one emulated node alone: its clocks are set, and packets to it get lost.
 *
 *   BAD_NODE_CLOCKS   a directory with a file for each host, by its name: two numbers of 8 bytes, what CLOCK_REALTIME and CLOCK_MONOTONIC_RAW are set forward by, in
 *                     nanoseconds. They count as soon as they are written.
 *   BAD_NODE_LOSS     of a million packets that come to a UDP socket, the kernel drops so many
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The kernel's name for it, which libc does not have in every version. */
#define STAMP 0x8907

static volatile int64_t *ahead;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_ioctl)(int, unsigned long, void *);
static int (*real_bind)(int, const struct sockaddr *, socklen_t);

__attribute__((constructor)) static void begin(void)
{
    const char *directory = getenv("BAD_NODE_CLOCKS");
    char host[256] = "", path[4096];
    real_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    real_ioctl = (int (*)(int, unsigned long, void *))dlsym(RTLD_NEXT, "ioctl");
    real_bind = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
    if (!directory || gethostname(host, sizeof host - 1))
        return;
    snprintf(path, sizeof path, "%s/%s", directory, host);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    void *map = mmap(NULL, 2 * sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map != MAP_FAILED)
        ahead = map;
}

static void set_forward(struct timespec *time, int64_t by)
{
    int64_t sum = time->tv_nsec + by;
    time->tv_sec += sum / 1000000000;
    time->tv_nsec = sum % 1000000000;
    if (time->tv_nsec < 0) {
        time->tv_nsec += 1000000000;
        time->tv_sec--;
    }
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = real_gettime(clock, time);
    if (result == 0 && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC_RAW))
        set_forward(time, ahead[clock == CLOCK_MONOTONIC_RAW]);
    return result;
}

/* The kernel stamps packets by the same clock. */
int ioctl(int file, unsigned long what, ...)
{
    va_list more;
    va_start(more, what);
    void *argument = va_arg(more, void *);
    va_end(more);
    int result = real_ioctl(file, what, argument);
    if (result == 0 && ahead && (uint32_t)what == STAMP)
        set_forward(argument, ahead[0]);
    return result;
}

int bind(int file, const struct sockaddr *address, socklen_t length)
{
    const char *loss = getenv("BAD_NODE_LOSS");
    int kind = 0;
    socklen_t size = sizeof kind;
    if (loss && getsockopt(file, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 && kind == SOCK_DGRAM) {
        struct sock_filter words[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_RANDOM),
            BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)(strtod(loss, NULL) * 4294.967295), 0, 1),
            BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
            BPF_STMT(BPF_RET | BPF_K, 0),
        };
        struct sock_fprog filter = {sizeof words / sizeof *words, words};
        if (setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter))
            return -1;
    }
    return real_bind(file, address, length);
}
