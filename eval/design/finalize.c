#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/names.h"
#include "engine/base/store.h"
#include "engine/image/image.h"
#include "eval/design/selection.h"
#include "eval/design/selection_state.h"
#include "eval/scores/fields.h"
#include "eval/study/random.h"

/* Candidate pools: seven independent draws of 84 pictures. */

/* The pictures of one cell, in the table's order. */
struct cell {
    const char **files;
    size_t n, capacity;
};

struct labelled {
    struct cell cells[LK_N_SOURCES];
    struct lk_store texts;
    const char *name;
};

static bool is_a_child(const struct lk_field *age) {
    static const char *const young[] = {"0-2", "3-9", "10-19"};
    for (int i = 0; age && i < 3; i++)
        if (!strcmp(age->text, young[i])) return true;
    return false;
}

static enum lk_code read_row(struct labelled *t, const struct lk_fields *fields, size_t line) {
    static const enum lk_factor factors[] = {LK_FACTOR_RACE, LK_FACTOR_GENDER, LK_FACTOR_AGE};
    const struct lk_field *file = lk_fields_find(fields, "file");
    int level[3];
    if (!file) return lk_fail(LK_E_INPUT, "%s: line %zu: field \"file\": expected a path, got nothing", t->name, line);
    if (is_a_child(lk_fields_find(fields, "age"))) return LK_OK;
    for (int f = 0; f < 3; f++) {
        const struct lk_field *field = lk_fields_find(fields, lk_factor_name(factors[f]));
        level[f] = field ? lk_factor_parse(factors[f], field->text, field->n) : -1;
        if (level[f] < 0)
            return lk_fail(LK_E_INPUT, "%s: line %zu: field \"%s\": expected one of the study's, got \"%.60s\"",
                           t->name, line, lk_factor_name(factors[f]), lk_field_shown(field));
    }
    struct cell *cell = &t->cells[lk_source(level[0], level[1], level[2])];
    LK_TRY(lk_grow(&cell->files, &cell->capacity, cell->n + 1, sizeof *cell->files));
    cell->files[cell->n] = lk_store_copy(&t->texts, file->text, file->n);
    return cell->files[cell->n++] ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", t->name);
}

static enum lk_code read_all(struct labelled *t, const char *text, size_t n) {
    struct lk_records records;
    bool more = false;
    enum lk_code rc = lk_records_open(&records, text, n, t->name);
    if (!rc) rc = lk_records_next_strict(&records, &more);
    while (!rc && more) {
        rc = read_row(t, &records.fields, records.line);
        if (!rc) rc = lk_records_next_strict(&records, &more);
    }
    lk_records_close(&records);
    for (int i = 0; i < LK_N_SOURCES && !rc; i++) {
        char id[48];
        lk_source_id(i, id);
        if (!t->cells[i].n) rc = lk_fail(LK_E_INPUT, "%s: %s: expected a picture of this cell, got none", t->name, id);
    }
    return rc;
}

static void draw(const struct labelled *t, uint64_t seed, struct lk_text *out) {
    for (int v = 1; v <= LK_N_POOLS; v++)
        for (int i = 0; i < LK_N_SOURCES; i++) {
            const struct cell *cell = &t->cells[i];
            struct lk_stream stream;
            char id[48], label[64] = "pool|";
            lk_source_id(i, id);
            strcat(label, id);
            lk_stream_named(&stream, seed + (uint64_t)v - 1, label);
            lk_text_add(out, "{\"pool\": %d, \"source_id\": \"%s\", \"file\": ", v, id);
            lk_text_json(out, cell->files[lk_stream_bounded(&stream, cell->n)]);
            lk_text_add(out, "}\n");
        }
}

enum lk_code lk_pools_draw(const char *text, size_t n, const char *name, uint64_t seed, struct lk_text *out) {
    struct labelled *t = lk_calloc(1, sizeof *t);
    if (!t) return lk_fail(LK_E_NOMEM, "%s: out of memory", name);
    t->name = name;
    enum lk_code rc = read_all(t, text, n);
    if (!rc) draw(t, seed, out);
    for (int i = 0; i < LK_N_SOURCES; i++) lk_free(t->cells[i].files);
    lk_store_free(&t->texts);
    lk_free(t);
    return rc ? rc : out->rc;
}

/* The final set: files in their place, the manifest, Table 2; and the check of such a set. */

enum { MAX_PICTURE_BYTES = 64 << 20, MAX_MANIFEST_BYTES = 1 << 22 };

/* Table 2: "V1 12", a line each. */
static void print_counts(const int count[LK_N_POOLS], struct lk_text *out) {
    int sum = 0;
    for (int v = 0; v < LK_N_POOLS; v++) {
        lk_text_add(out, "V%d %d\n", v + 1, count[v]);
        sum += count[v];
    }
    lk_text_add(out, "sum %d\n", sum);
}

/* Every cell that is not done, by name. */
static enum lk_code check_done(const struct lk_selection *s) {
    struct lk_text text = {0};
    int n = 0;
    for (int i = 0; i < LK_N_SOURCES; i++) {
        int chosen = 0, pool = lk_selection_chosen(s, i);
        char id[48];
        lk_source_id(i, id);
        for (int v = 0; v < LK_N_POOLS; v++) chosen += s->candidates[i][v].chosen;
        int failed = pool ? lk_selection_failed(&s->candidates[i][pool - 1]) : LK_N_CRITERIA;
        if (pool && failed == LK_N_CRITERIA) continue;
        if (n++ < 20)
            lk_text_add(&text, "%s%s (%s%s)", n > 1 ? ", " : "", id,
                        pool     ? "without "
                        : chosen ? "several are chosen"
                                 : "none is chosen",
                        pool ? lk_criteria[failed] : "");
    }
    enum lk_code rc = text.rc;
    if (!rc && n)
        rc = lk_fail(LK_E_INPUT, "%s: %d of %d cells are not done: %s%s", s->log, n, LK_N_SOURCES, text.bytes,
                     n > 20 ? ", ..." : "");
    lk_text_free(&text);
    return rc;
}

static enum lk_code make_folder(const char *path) {
    return mkdir(path, 0777) && errno != EEXIST ? lk_fail_errno(errno, "%s: cannot make the folder", path) : LK_OK;
}

/* Each source is another picture: digests are those of the sources before it, in their order. */
static enum lk_code check_new(struct lk_names *digests, const char *sha256, const char *where, size_t line,
                              const char *id) {
    const int32_t n_before = (int32_t)digests->n;
    char place[40] = "";
    int32_t number;
    LK_TRY(lk_names_number(digests, sha256, strlen(sha256), &number));
    if (line) snprintf(place, sizeof place, " line %zu:", line);
    if (number == n_before) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s:%s %s: expected a picture of its own, got that of source %d of the set", where,
                   place, id, number + 1);
}

static void add_record(int source, int pool, const char *extension, const struct lk_image *image, const char *sha256,
                       struct lk_text *out) {
    int race, gender, age;
    char id[48];
    lk_source_id(source, id);
    lk_source_factors(source, &race, &gender, &age);
    lk_text_add(out,
                "%s\n  {\"id\": \"%s\", \"ordinal\": %d, \"race\": \"%s\", \"gender\": \"%s\", \"age\": \"%s\", "
                "\"file\": \"source/%s.%s\", \"pool\": \"V%d\", \"width\": %d, \"height\": %d, \"sha256\": \"%s\", "
                "\"criteria\": {",
                source ? "," : "", id, source + 1, lk_factor_key(LK_FACTOR_RACE, race),
                lk_factor_key(LK_FACTOR_GENDER, gender), lk_factor_key(LK_FACTOR_AGE, age), id, extension, pool,
                image->width, image->height, sha256);
    for (int i = 0; i < LK_N_CRITERIA; i++) lk_text_add(out, "%s\"%s\": true", i ? ", " : "", lk_criteria[i]);
    lk_text_add(out, "}}");
}

static enum lk_code copy_source(const struct lk_selection *s, int source, const char *folder, struct lk_names *digests,
                                struct lk_text *out) {
    int pool = lk_selection_chosen(s, source);
    char id[48], sha256[65], *bytes = NULL;
    char *from = lk_path_beside(s->pools, s->candidates[source][pool - 1].file), *to = NULL;
    struct lk_image image = {0};
    size_t n = 0;
    lk_source_id(source, id);
    enum lk_code rc =
        from ? lk_read_file(from, MAX_PICTURE_BYTES, &bytes, &n) : lk_fail(LK_E_NOMEM, "out of memory for a selection");
    if (!rc) rc = lk_image_decode(&image, bytes, n, from, true, 0);
    if (!rc) {
        const char *extension = bytes[0] == (char)0x89 ? "png" : "jpg";
        lk_sha256(bytes, n, sha256);
        to = lk_format("%s/source/%s.%s", folder, id, extension);
        rc = check_new(digests, sha256, s->pools, 0, id);
        if (!rc) rc = to ? lk_atomic_write_file(to, bytes, n) : lk_fail(LK_E_NOMEM, "out of memory for a selection");
        if (!rc) add_record(source, pool, extension, &image, sha256, out);
    }
    lk_image_free(&image);
    lk_free(bytes);
    lk_free(from);
    lk_free(to);
    return rc;
}

static enum lk_code write_all(const struct lk_selection *s, const char *folder) {
    struct lk_text manifest = {0};
    struct lk_names digests = {0};
    char *sources = lk_format("%s/source", folder), *path = lk_format("%s/source_manifest.json", folder);
    enum lk_code rc = sources && path ? make_folder(folder) : lk_fail(LK_E_NOMEM, "out of memory for a selection");
    if (!rc) rc = make_folder(sources);
    lk_text_add(&manifest, "[");
    for (int i = 0; i < LK_N_SOURCES && !rc; i++) rc = copy_source(s, i, folder, &digests, &manifest);
    lk_text_add(&manifest, "\n]\n");
    if (!rc) rc = manifest.rc ? manifest.rc : lk_atomic_write_file(path, manifest.bytes, manifest.n);
    lk_text_free(&manifest);
    lk_names_free(&digests);
    lk_free(sources);
    lk_free(path);
    return rc;
}

/* A new set appears with its folder. In a folder that is there the files get their places when all are written. */
static enum lk_code write_set(const struct lk_selection *s, const char *folder) {
    struct lk_atomic_file *made = NULL;
    struct stat st;
    if (lstat(folder, &st)) LK_TRY(lk_atomic_open_folder(&made, folder));
    lk_atomic_batch_begin();
    enum lk_code rc = lk_atomic_batch_end(write_all(s, made ? lk_atomic_folder(made) : folder));
    if (!made) return rc;
    if (!rc) return lk_atomic_commit(made);
    lk_atomic_discard(made);
    return lk_fail_prefix(rc, "%s", folder);
}

enum lk_code lk_selection_finalize(const struct lk_selection *s, const char *folder, struct lk_text *summary) {
    int count[LK_N_POOLS] = {0};
    LK_TRY(check_done(s));
    LK_TRY(write_set(s, folder));
    for (int i = 0; i < LK_N_SOURCES; i++) count[lk_selection_chosen(s, i) - 1]++;
    print_counts(count, summary);
    int64_t seconds = s->last - s->first;
    lk_text_add(summary, "actions %zu\nwall time %lld:%02d:%02d\n", s->n_actions, (long long)(seconds / 3600),
                (int)(seconds / 60 % 60), (int)(seconds % 60));
    return summary->rc;
}

static enum lk_code check_file(const struct lk_fields *fields, const char *manifest, size_t line,
                               struct lk_names *digests) {
    const struct lk_field *file = lk_fields_find(fields, "file"), *digest = lk_fields_find(fields, "sha256");
    char sha256[65];
    struct lk_image image = {0};
    if (!file) return lk_fail(LK_E_INPUT, "%s: line %zu: field \"file\": expected a path, got nothing", manifest, line);
    char *path = lk_path_beside(manifest, file->text);
    enum lk_code rc = path ? lk_digest_file(LK_DIGEST_SHA256, path, sha256) : LK_E_NOMEM;
    if (!rc && (!digest || strcmp(digest->text, sha256)))
        rc = lk_fail(LK_E_CHANGED, "%s: line %zu: %s: expected the picture with SHA-256 %.64s, got %s", manifest, line,
                     path, lk_field_shown(digest), sha256);
    if (!rc) rc = check_new(digests, sha256, manifest, line, file->text);
    if (!rc) rc = lk_image_read(&image, path, true, 0);
    if (rc && strncmp(lk_error_text(), manifest, strlen(manifest))) lk_fail_prefix(rc, "%s: line %zu", manifest, line);
    lk_image_free(&image);
    lk_free(path);
    return rc;
}

enum lk_code lk_source_manifest_validate(const char *path, struct lk_text *summary) {
    struct lk_source_manifest manifest;
    struct lk_names digests = {0};
    struct lk_records records;
    char *text;
    size_t n;
    bool more = false;
    LK_TRY(lk_read_file(path, MAX_MANIFEST_BYTES, &text, &n));
    enum lk_code rc = lk_source_manifest_read(&manifest, text, n, path);
    for (int i = 0; i < LK_N_SOURCES && !rc; i++) {
        char id[48];
        lk_source_id(i, id);
        if (!manifest.pool[i]) rc = lk_fail(LK_E_INPUT, "%s: %s: expected a source of this cell, got none", path, id);
    }
    if (!rc) rc = lk_records_open(&records, text, n, path);
    if (!rc) {
        rc = lk_records_next_strict(&records, &more);
        while (!rc && more) {
            rc = check_file(&records.fields, path, records.line, &digests);
            if (!rc) rc = lk_records_next_strict(&records, &more);
        }
        lk_records_close(&records);
    }
    lk_free(text);
    lk_names_free(&digests);
    if (!rc) print_counts(manifest.count, summary);
    return rc ? rc : summary->rc;
}
