#include "models/host_room.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define RESERVE ((uint64_t)4 << 30) /* bytes that are left to others */

/* Where a version of control groups says what. Not every kernel has every file. */
struct version {
    const char *mount, *controller; /* controller: "" in /proc/self/cgroup's line of version 2 */
    const char *limits[2], *use;
    const char *pages[2]; /* keys of memory.stat */
};
static const struct version versions[] = {
    {"/sys/fs/cgroup", "", {"memory.max", "memory.high"}, "memory.current", {"inactive_file", "active_file"}},
    {"/sys/fs/cgroup/memory",
     "memory",
     {"memory.limit_in_bytes", NULL},
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}}};

/* The number after `key` at the beginning of a line of folder/name (NULL: the number that the file begins with);
 * `otherwise` where there is none, as in a file that says "max". */
static uint64_t read_number(const char *folder, const char *name, const char *key, uint64_t otherwise) {
    char path[PATH_MAX], line[256], word[64];
    unsigned long long number;
    bool found = false;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return otherwise;
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = key ? sscanf(line, "%63s %llu", word, &number) == 2 && !strcmp(word, key)
                    : sscanf(line, "%llu", &number) == 1;
    if (f) fclose(f);
    return found ? number : otherwise;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* What one group's limits leave. */
static uint64_t left_in(const char *folder, const struct version *v) {
    uint64_t limit = UINT64_MAX, use = read_number(folder, v->use, NULL, 0);
    for (int i = 0; i < 2 && v->limits[i]; i++)
        limit = smaller(limit, read_number(folder, v->limits[i], NULL, UINT64_MAX));
    for (int i = 0; i < 2; i++) use = less(use, read_number(folder, "memory.stat", v->pages[i], 0));
    return less(limit, use);
}

/* The least that the group and those above it leave. A container may see itself as the mount's own group, whatever its
 * path says: what is not there limits nothing. */
static uint64_t left_above(const char *root, const char *group, const struct version *v) {
    char folder[PATH_MAX];
    const size_t mount = strlen(root) + strlen(v->mount);
    uint64_t left = UINT64_MAX;
    if (snprintf(folder, sizeof folder, "%s%s%s", root, v->mount, group) >= (int)sizeof folder) return left;
    for (;;) {
        left = smaller(left, left_in(folder, v));
        if (strlen(folder) <= mount) return left;
        *strrchr(folder, '/') = 0;
    }
}

/* Whether `list`, names between commas, has this one. */
static bool has_name(const char *list, const char *name) {
    for (;; list++) {
        const size_t n = strcspn(list, ",");
        if (n == strlen(name) && !strncmp(list, name, n)) return true;
        list += n;
        if (!*list) return false;
    }
}

uint64_t lk_host_room(const char *root) {
    char folder[PATH_MAX], line[PATH_MAX + 256];
    if (snprintf(folder, sizeof folder, "%s/proc", root) >= (int)sizeof folder) return 0;
    uint64_t room = 1024 * read_number(folder, "meminfo", "MemAvailable:", 0);
    snprintf(line, sizeof line, "%s/self/cgroup", folder);
    FILE *f = fopen(line, "r");
    while (f && fgets(line, sizeof line, f)) { /* number:controllers:path */
        char *rest = line;
        strsep(&rest, ":");
        const char *controllers = strsep(&rest, ":");
        if (!rest || *rest != '/') continue;
        rest[strcspn(rest, "\n")] = 0;
        for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
            if (has_name(controllers, versions[i].controller))
                room = smaller(room, left_above(root, rest, &versions[i]));
    }
    if (f) fclose(f);
    return less(room, RESERVE);
}
