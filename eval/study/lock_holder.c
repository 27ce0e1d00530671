#include "eval/study/lock_holder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* /proc/locks: "1: POSIX  ADVISORY  WRITE 3057 08:01:1234 1073741824 1073742335". Devices differ from the file's where
 * file systems lie on each other; SQLite's locks are known by where they begin. */
static long holder_of(const struct stat *st) {
    enum { SQLITE_LOCKS = 0x40000000 };
    char line[256];
    long found = 0;
    FILE *locks = fopen("/proc/locks", "r");
    while (locks && !found && fgets(line, sizeof line, locks)) {
        long pid, start;
        unsigned long inode;
        if (sscanf(line, "%*d: %*s %*s %*s %ld %*x:%*x:%lu %ld", &pid, &inode, &start) == 3 && pid > 0 &&
            pid != (long)getpid() && inode == (unsigned long)st->st_ino && start >= SQLITE_LOCKS)
            found = pid;
    }
    if (locks) fclose(locks);
    return found;
}

/* /proc/PID/stat: "3057 (name) T ..."; a name may hold anything. */
static char state_of(long pid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 0;
}

void lk_lock_holder(const char *path, char out[LK_HOLDER_BYTES]) {
    struct stat st;
    const long pid = !stat(path, &st) ? holder_of(&st) : 0;
    if (!pid)
        snprintf(out, LK_HOLDER_BYTES, "another program");
    else if (state_of(pid) == 'T')
        snprintf(out, LK_HOLDER_BYTES, "process %ld, which is stopped (kill -CONT %ld lets it go on)", pid, pid);
    else
        snprintf(out, LK_HOLDER_BYTES, "process %ld", pid);
}
