#include "engine/base/process.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/names.h"

/* The machine, and the processes that this one can see on it: a process number means something there only. */
uint32_t lk_host_number(void) {
    char text[HOST_NAME_MAX + 64] = "";
    struct stat st;
    gethostname(text, HOST_NAME_MAX);
    size_t n = strnlen(text, HOST_NAME_MAX);
    if (!stat("/proc/self/ns/pid", &st)) n += (size_t)sprintf(text + n, " %llu", (unsigned long long)st.st_ino);
    return (uint32_t)lk_hash_bytes(1, text, n);
}

/* Of /proc/PID/stat; false when it cannot be read. */
static bool look(long pid, char *state, long long *started) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *at = strrchr(text, ')'); /* the name may hold anything */
    return at && sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lld",
                        state, started) == 2;
}

int64_t lk_process_start(long pid) {
    char state;
    long long started;
    return look(pid, &state, &started) ? started : -1;
}

bool lk_process_is_gone(long pid) {
    char state;
    long long started;
    if (pid <= 0) return false;
    if (kill((pid_t)pid, 0) && errno == ESRCH) return true;
    return look(pid, &state, &started) && (state == 'Z' || state == 'X');
}
