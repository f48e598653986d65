// Stands between a program and the file of its database, and lets the disk be sick as long as the file named by SICK_DISK says so:
// "hang" holds every write and sync, makes a file with the ending .held beside it, and holds the removal of the admin socket; "full"
// refuses writes and syncs with ENOSPC, "lost" refuses syncs with EIO, and "slow" lets each sync take 50 ms.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char wish(void) {
    const char *path = getenv("SICK_DISK");
    char first = 'o';
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (read(fd, &first, 1) != 1) {
            first = 'o';
        }
        close(fd);
    }
    return first;
}

static int is_database(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    const char *name = "/callboard.redb";
    size_t tail = strlen(name);
    return length >= (ssize_t)tail && memcmp(path + length - tail, name, tail) == 0;
}

// Makes the file beside the wish that says that an operation is held.
static void tell_that_it_is_held(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s.held", getenv("SICK_DISK"));
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }
}

// Gives the error that an operation fails with, or 0, after it was held as long as is wished.
static int trouble(int fd, int is_sync) {
    if (!is_database(fd)) {
        return 0;
    }
    if (wish() == 'h') {
        tell_that_it_is_held();
    }
    while (wish() == 'h') {
        usleep(10000);
    }
    switch (wish()) {
    case 'f':
        return ENOSPC;
    case 'l':
        return is_sync ? EIO : 0;
    case 's':
        usleep(is_sync ? 50000 : 0);
        return 0;
    default:
        return 0;
    }
}

#define PASS(name, type, is_sync, parameters, arguments)                   \
    type name parameters {                                                 \
        static type(*real) parameters;                                     \
        if (!real) {                                                       \
            real = (type(*) parameters)dlsym(RTLD_NEXT, #name);            \
        }                                                                  \
        int error = trouble(fd, is_sync);                                  \
        if (error) {                                                       \
            errno = error;                                                 \
            return -1;                                                     \
        }                                                                  \
        return real arguments;                                             \
    }

PASS(fsync, int, 1, (int fd), (fd))
PASS(fdatasync, int, 1, (int fd), (fd))
PASS(pwrite64, ssize_t, 0, (int fd, const void *bytes, size_t length, off64_t at), (fd, bytes, length, at))

int unlink(const char *path) {
    static int (*real)(const char *);
    if (!real) {
        real = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
    }
    const char *name = "/admin.sock";
    size_t length = strlen(path), tail = strlen(name);
    while (length >= tail && strcmp(path + length - tail, name) == 0 && wish() == 'h') {
        usleep(10000);
    }
    return real(path);
}
