#include "weights/paths.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"

#define MAX_NAME 256 /* of a user or a variable, with NUL */

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

/* The home folder of the user `name`, or of this one; NULL when nobody is called so. */
static const char *home_of(const char *name) {
    const char *home = *name ? NULL : getenv("HOME");
    if (home) return home;
    const struct passwd *user = *name ? getpwnam(name) : getpwuid(getuid());
    return user ? user->pw_dir : NULL;
}

/* A leading ~ or ~NAME; returns what follows it. What is unknown stays as written. */
static const char *add_home(struct lk_text *out, const char *path) {
    size_t n = *path == '~' ? strcspn(path, "/") : 0;
    char name[MAX_NAME];
    if (!n || n > MAX_NAME) return path;
    snprintf(name, sizeof name, "%.*s", (int)n - 1, path + 1);
    const char *home = home_of(name);
    size_t length = home ? strlen(home) : 0;
    if (!home) return path;
    while (length && home[length - 1] == '/') length--;
    lk_text_bytes(out, home, length);
    if (!length && !path[n]) lk_text_add(out, "/");
    return path + n;
}

/* $NAME or ${NAME} at `at`, when there is such a variable: its value, and in *n the bytes it took. */
static const char *variable(const char *at, size_t *n) {
    bool braces = at[1] == '{';
    const char *name = at + 1 + braces;
    size_t length = braces ? strcspn(name, "}") : 0;
    while (!braces && (isalnum((unsigned char)name[length]) || name[length] == '_')) length++;
    char copy[MAX_NAME];
    if (!length || length >= MAX_NAME || (braces && !name[length])) return NULL;
    snprintf(copy, sizeof copy, "%.*s", (int)length, name);
    *n = 1 + length + 2 * braces;
    return getenv(copy);
}

char *lk_expand_path(const char *path) {
    struct lk_text out = {0};
    lk_text_add(&out, "%s", "");
    for (const char *at = add_home(&out, path); *at;) {
        size_t n = 0;
        const char *value = *at == '$' ? variable(at, &n) : NULL;
        if (value)
            lk_text_add(&out, "%s", value);
        else
            lk_text_bytes(&out, at, n = 1);
        at += n;
    }
    if (!out.rc) return out.bytes;
    lk_text_free(&out);
    return NULL;
}
