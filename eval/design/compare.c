/* Whether two studies may be pooled: the settings in which they differ. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/design/internal.h"

struct comparison {
    const char *allowed; /* keys with commas between; NULL: none */
    struct lk_text *out;
    size_t n;
    enum lk_code rc;
};

/* By its whole path or its last part: "analysis.rounding", "rounding". */
static bool is_allowed(const struct comparison *c, const char *path) {
    for (const char *at = c->allowed; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t n = strcspn(at, ","), whole = strlen(path);
        if (n && n <= whole && !memcmp(path + whole - n, at, n) && (n == whole || path[whole - n - 1] == '.'))
            return true;
    }
    return false;
}

static void note(struct comparison *c, const char *path, const cJSON *a, const cJSON *b) {
    char *texts[2] = {a ? cJSON_PrintUnformatted(a) : lk_strdup("nothing"),
                      b ? cJSON_PrintUnformatted(b) : lk_strdup("nothing")};
    if (!texts[0] || !texts[1]) c->rc = lk_fail(LK_E_NOMEM, "out of memory for a comparison");
    if (!c->rc) {
        lk_text_add(c->out, "%s: %.200s and %.200s\n", path, texts[0], texts[1]);
        c->n++;
    }
    for (int i = 0; i < 2; i++) lk_free(texts[i]);
}

static void compare(struct comparison *c, const char *path, const cJSON *a, const cJSON *b);

/* The members of a, each beside b's; those of b alone come when the two are the other way round. */
static void compare_members(struct comparison *c, const char *path, const cJSON *a, const cJSON *b, bool both) {
    static const char *const own[] = {"study", "source_files", "jobs"};
    const cJSON *item;
    cJSON_ArrayForEach(item, a) {
        char inner[300];
        bool passed = false;
        const cJSON *other = b ? cJSON_GetObjectItemCaseSensitive(b, item->string) : NULL;
        for (size_t i = 0; i < sizeof own / sizeof *own && !*path; i++) passed |= !strcmp(own[i], item->string);
        snprintf(inner, sizeof inner, "%.180s%s%.100s", path, *path ? "." : "", item->string);
        if (passed || (other && !both)) continue;
        if (both)
            compare(c, inner, item, other);
        else
            compare(c, inner, NULL, item);
    }
}

static void compare(struct comparison *c, const char *path, const cJSON *a, const cJSON *b) {
    if (c->rc || (*path && is_allowed(c, path))) return;
    if (a && b && cJSON_IsObject(a) && cJSON_IsObject(b)) {
        compare_members(c, path, a, b, true);
        compare_members(c, path, b, a, false);
    } else if (!a || !b || !cJSON_Compare(a, b, true)) {
        note(c, path, a, b);
    }
}

enum lk_code lk_study_compare(const struct lk_study *a, const struct lk_study *b, const char *allowed,
                              struct lk_text *out, size_t *n_different) {
    struct comparison c = {.allowed = allowed, .out = out};
    cJSON *first = cJSON_Parse(a->asked.bytes), *second = cJSON_Parse(b->asked.bytes);
    if (first && second)
        compare(&c, "", first, second);
    else
        c.rc = lk_fail(LK_E_NOMEM, "out of memory for a comparison");
    cJSON_Delete(first);
    cJSON_Delete(second);
    *n_different = c.n;
    return c.rc ? c.rc : out->rc;
}
