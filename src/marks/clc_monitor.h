/* What a program gives to the monitor of its job, and asks it (`clc-replay record --monitor`): data of its own, which all nodes see, what the sensors of
 * the nodes read, and formulas over both. Header only; from C and C++. Functions return -1 where the job is not monitored, so a program need not care.
 *
 *     struct clc_monitor monitor;
 *     clc_monitor_init(&monitor);
 *     clc_monitor_send_number(&monitor, "queue", 17);
 *     clc_monitor_receive(&monitor, "queue", see, &loads);     // see(node, name, value, &loads) for each node
 *     clc_monitor_stop(&monitor);
 *
 * A value belongs to the node, not to the process: give keys of their own to several processes of a node. Other nodes see it some tenths of a second
 * later. All keys and values of a node have room in 1,000 bytes. Not for several threads at once with the same struct. */
#ifndef CLC_MONITOR_H
#define CLC_MONITOR_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A connection to the agent of this node. */
struct clc_monitor {
    int descriptor;
    size_t begin, end;
    char buffer[4096];
};

/* Called for each node: its number, its name, its value. */
typedef void clc_monitor_seen(int node, const char *name, const char *value, void *data);

/* The longest line and value. */
#define CLC_MONITOR_LONGEST 1024

/* Ends the connection. */
static inline void clc_monitor_stop(struct clc_monitor *monitor)
{
    if (monitor->descriptor >= 0)
        close(monitor->descriptor);
    monitor->descriptor = -1;
}

/* After MPI_Init: connects to the agent of this node; 0, or -1 if the job is not monitored. Waits up to five seconds for an agent that is being started. */
static inline int clc_monitor_init(struct clc_monitor *monitor)
{
    const char *states = getenv("CLC_RECORDER_STATE");
    struct sockaddr_un address;
    struct timeval patience = {5, 0};
    struct timespec pause = {0, 50000000};
    char host[256];

    monitor->descriptor = -1;
    monitor->begin = monitor->end = 0;
    if (!states || !*states || gethostname(host, sizeof host))
        return -1;
    host[sizeof host - 1] = 0;
    for (char *letter = host; *letter; letter++)
        if (*letter == '/')
            *letter = '_';
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(states) + strlen(host) + sizeof "//socket" > sizeof address.sun_path)
        return -1;
    strcat(strcat(strcat(strcpy(address.sun_path, states), "/"), host), "/socket");
    for (int tries = 0; tries < 100; tries++) {
        int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (descriptor < 0)
            return -1;
        if (!connect(descriptor, (struct sockaddr *)&address, sizeof address)) {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
            setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
            monitor->descriptor = descriptor;
            return 0;
        }
        close(descriptor);
        nanosleep(&pause, NULL);
    }
    return -1;
}

static inline int clc_monitor_say(struct clc_monitor *monitor, const char *bytes, size_t length)
{
    while (monitor->descriptor >= 0 && length > 0) {
        ssize_t sent = send(monitor->descriptor, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            clc_monitor_stop(monitor);
        else {
            bytes += sent;
            length -= (size_t)sent;
        }
    }
    return monitor->descriptor < 0 ? -1 : 0;
}

/* The next byte of an answer. */
static inline int clc_monitor_hear(struct clc_monitor *monitor)
{
    if (monitor->descriptor < 0)
        return -1;
    if (monitor->begin == monitor->end) {
        ssize_t came;
        do
            came = recv(monitor->descriptor, monitor->buffer, sizeof monitor->buffer, 0);
        while (came < 0 && errno == EINTR);
        if (came <= 0) {
            clc_monitor_stop(monitor);
            return -1;
        }
        monitor->begin = 0;
        monitor->end = (size_t)came;
    }
    return (unsigned char)monitor->buffer[monitor->begin++];
}

/* A line of an answer, without its end; or -1. */
static inline int clc_monitor_line(struct clc_monitor *monitor, char *line)
{
    for (size_t length = 0; length < CLC_MONITOR_LONGEST; length++) {
        int byte = clc_monitor_hear(monitor);
        if (byte < 0)
            return -1;
        line[length] = byte == '\n' ? 0 : (char)byte;
        if (byte == '\n')
            return 0;
    }
    clc_monitor_stop(monitor);
    return -1;
}

static inline int clc_monitor_ask(struct clc_monitor *monitor, const char *word, const char *name)
{
    char line[CLC_MONITOR_LONGEST];
    int length = snprintf(line, sizeof line, "%s %s\n", word, name);
    if (length < 0 || (size_t)length >= sizeof line || strpbrk(name, " \n"))
        return -1;
    return clc_monitor_say(monitor, line, (size_t)length);
}

static inline int clc_monitor_each(struct clc_monitor *monitor, clc_monitor_seen *seen, void *data)
{
    char line[CLC_MONITOR_LONGEST], name[CLC_MONITOR_LONGEST], value[CLC_MONITOR_LONGEST + 1];
    for (int nodes = 0;; nodes++) {
        int node;
        size_t length;
        if (clc_monitor_line(monitor, line))
            return -1;
        if (!strcmp(line, "end"))
            return nodes;
        if (sscanf(line, "%d %1023s %zu", &node, name, &length) != 3 || length > CLC_MONITOR_LONGEST) {
            clc_monitor_stop(monitor);
            return -1;
        }
        for (size_t i = 0; i < length; i++) {
            int byte = clc_monitor_hear(monitor);
            if (byte < 0)
                return -1;
            value[i] = (char)byte;
        }
        value[length] = 0;
        seen(node, name, value, data);
    }
}

/* Gives a text of at most 1,000 bytes under a key without blanks, in place of what was there; 0, or -1 if it has not been taken. */
static inline int clc_monitor_send(struct clc_monitor *monitor, const char *key, const char *value)
{
    char line[CLC_MONITOR_LONGEST];
    size_t length = strlen(value);
    int head = snprintf(line, sizeof line, "put %s %zu\n", key, length);
    if (head < 0 || (size_t)head >= sizeof line || strpbrk(key, " \n") || length > 1000)
        return -1;
    if (clc_monitor_say(monitor, line, (size_t)head) || clc_monitor_say(monitor, value, length) || clc_monitor_line(monitor, line))
        return -1;
    return strcmp(line, "ok") ? -1 : 0;
}

/* The same of a number: a sensor of the program's own. Formulas know it as data_KEY_mean, data_KEY_max and so on. */
static inline int clc_monitor_send_number(struct clc_monitor *monitor, const char *key, double value)
{
    char text[64];
    snprintf(text, sizeof text, "%.17g", value);
    return clc_monitor_send(monitor, key, text);
}

/* What all nodes have given under a key, this one included; the number of nodes, or -1. */
static inline int clc_monitor_receive(struct clc_monitor *monitor, const char *key, clc_monitor_seen *seen, void *data)
{
    return clc_monitor_ask(monitor, "get", key) ? -1 : clc_monitor_each(monitor, seen, data);
}

/* What the sensors of the nodes of this group read: "load1", "cpu", "memory" and others (docs/monitor.md); the number of nodes, or -1. */
static inline int clc_monitor_read(struct clc_monitor *monitor, const char *quantity, clc_monitor_seen *seen, void *data)
{
    return clc_monitor_ask(monitor, "read", quantity) ? -1 : clc_monitor_each(monitor, seen, data);
}

/* The value of a formula, or of an aggregate such as load1_max; 0, or -1 if it is not known. */
static inline int clc_monitor_value(struct clc_monitor *monitor, const char *name, double *value)
{
    char line[CLC_MONITOR_LONGEST];
    char *end;
    if (clc_monitor_ask(monitor, "value", name) || clc_monitor_line(monitor, line))
        return -1;
    *value = strtod(line, &end);
    return end == line || *end ? -1 : 0;
}

/* The number of this node among the agents, and how many of them are alive; 0 or -1. */
static inline int clc_monitor_node(struct clc_monitor *monitor, int *node, int *alive)
{
    char line[CLC_MONITOR_LONGEST];
    if (clc_monitor_say(monitor, "node\n", 5) || clc_monitor_line(monitor, line))
        return -1;
    return sscanf(line, "%d %d", node, alive) == 2 ? 0 : -1;
}

#ifdef __cplusplus
}
#endif

#endif
