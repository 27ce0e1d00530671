/* Candidate pools: seven independent draws of 84 pictures. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/store.h"
#include "eval/design/selection.h"
#include "eval/scores/fields.h"
#include "eval/study/random.h"

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
