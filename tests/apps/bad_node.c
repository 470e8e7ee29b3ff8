/* Preloaded into a process, in place of what nobody can do to one emulated node alone: its clocks are set, and packets to it get lost.
 *
 *   BAD_NODE_CLOCKS   a directory with a file for each host, by its name: two numbers of 8 bytes for CLOCK_REALTIME and two for CLOCK_MONOTONIC_RAW: what the clock is set
 *                     forward by, in nanoseconds, and what it gains from then on, in nanoseconds per second (less a thousand million: it stands still). They count as soon as
 *                     they are written.
 *   BAD_NODE_LOSS     of a million packets that come to a UDP socket, the kernel drops so many
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* What is wrong with a clock. */
struct wrong {
    int64_t ahead, gained;
};

static volatile struct wrong *clocks;
/* Since when they gain anything, as the true clocks show it. */
static volatile int64_t since[2];
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_recvmmsg)(int, struct mmsghdr *, unsigned, int, struct timespec *);
static int (*real_bind)(int, const struct sockaddr *, socklen_t);

__attribute__((constructor)) static void begin(void)
{
    const char *directory = getenv("BAD_NODE_CLOCKS");
    char host[256] = "", path[4096];
    real_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    real_recvmmsg = (int (*)(int, struct mmsghdr *, unsigned, int, struct timespec *))dlsym(RTLD_NEXT, "recvmmsg");
    real_bind = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
    if (!directory || gethostname(host, sizeof host - 1))
        return;
    snprintf(path, sizeof path, "%s/%s", directory, host);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    void *map = mmap(NULL, 2 * sizeof *clocks, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map != MAP_FAILED)
        clocks = map;
}

/* What a wrong clock shows at that time: the first or the second one. */
static void spoil(struct timespec *time, int which)
{
    int64_t true_time = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec, gained = clocks[which].gained;
    if (gained && !since[which])
        since[which] = true_time;
    int64_t passed = gained && true_time > since[which] ? true_time - since[which] : 0;
    int64_t shown = true_time + clocks[which].ahead + (int64_t)((__int128)passed * gained / 1000000000);
    time->tv_sec = shown / 1000000000;
    time->tv_nsec = shown % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = real_gettime(clock, time);
    if (result == 0 && clocks && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC_RAW))
        spoil(time, clock == CLOCK_MONOTONIC_RAW);
    return result;
}

/* The kernel stamps packets by the same clock. */
int recvmmsg(int file, struct mmsghdr *heads, unsigned count, int flags, struct timespec *timeout)
{
    int received = real_recvmmsg(file, heads, count, flags, timeout);
    for (int i = 0; clocks && i < received; i++)
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&heads[i].msg_hdr); c; c = CMSG_NXTHDR(&heads[i].msg_hdr, c))
            if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS)
                spoil((struct timespec *)CMSG_DATA(c), 0);
    return received;
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
