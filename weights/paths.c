#include "weights/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"

enum lk_code lk_real_path(const char *path, const char *shown, char **out) {
    char *real = realpath(path, NULL);
    *out = NULL;
    if (!real) {
        if (errno == ELOOP) return lk_fail(LK_E_INPUT, "%s: symbolic links form a loop", shown);
        if (errno == ENOTDIR || errno == ENAMETOOLONG) return lk_fail(LK_E_NOT_FOUND, "%s: %s", shown, strerror(errno));
        return lk_fail_errno(errno, "%s", shown);
    }
    *out = lk_strdup(real);
    free(real);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", shown);
}

size_t lk_hf_repository(const char *real) {
    /* .../models--ORG--NAME/snapshots/COMMIT, with anything behind */
    for (const char *at = real; (at = strstr(at, "/models--")); at++) {
        size_t n = strcspn(at + 1, "/");
        const char *rest = at + 1 + n;
        if (!strncmp(rest, "/snapshots/", 11) && rest[11] && rest[11] != '/') return (size_t)(rest - real);
    }
    return 0;
}

bool lk_stays_below(const char *relative) {
    if (!*relative || *relative == '/') return false;
    for (const char *part = relative;;) {
        size_t n = strcspn(part, "/");
        if (n == 2 && !strncmp(part, "..", 2)) return false;
        if (!part[n]) return true;
        part += n + 1;
    }
}
