/* An export's lines as a table: a column for each field of any line, "scores.race_drift" for one inside another. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/survey/store.h"

enum { MAX_COLUMNS = 96 };

struct table {
    char columns[MAX_COLUMNS][64];
    int n;
    const cJSON *cells[MAX_COLUMNS]; /* of the line at hand */
    struct lk_text *out;
};

/* The fields of a line into their columns; a new name makes a column. False when there are too many. */
static bool take(struct table *t, const cJSON *object, const char *prefix) {
    const cJSON *field;
    cJSON_ArrayForEach(field, object) {
        char name[64];
        int k = 0;
        if (snprintf(name, sizeof name, "%s%s", prefix, field->string) >= (int)sizeof name - 1) return false;
        if (cJSON_IsObject(field)) {
            memcpy(name + strlen(name), ".", 2);
            if (!take(t, field, name)) return false;
            continue;
        }
        while (k < t->n && strcmp(t->columns[k], name)) k++;
        if (k == MAX_COLUMNS) return false;
        if (k == t->n) snprintf(t->columns[t->n++], sizeof name, "%s", name);
        t->cells[k] = field;
    }
    return true;
}

void lk_survey_csv_text(struct lk_text *out, const char *text) {
    lk_text_add(out, "\"%s", *text && strchr("=+-@\t\r", *text) ? "'" : "");
    for (const char *at = text; *at; at++) lk_text_bytes(out, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
    lk_text_add(out, "\"");
}

static void write_cell(struct lk_text *out, const cJSON *cell) {
    if (cJSON_IsString(cell)) lk_survey_csv_text(out, cell->valuestring);
    if (cJSON_IsNumber(cell)) lk_text_add(out, "%.17g", cell->valuedouble);
    if (cJSON_IsBool(cell)) lk_text_add(out, cJSON_IsTrue(cell) ? "true" : "false");
}

/* The lines once to find the columns, and once to write them. */
static enum lk_code pass(struct table *t, const struct lk_text *lines, bool writes) {
    const char *line = lines->n ? lines->bytes : "";
    for (const char *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        cJSON *root = cJSON_ParseWithLength(line, (size_t)(end - line));
        memset(t->cells, 0, sizeof t->cells);
        bool ok = root && take(t, root, "");
        for (int k = 0; ok && writes && k < t->n; k++) {
            if (k) lk_text_bytes(t->out, ",", 1);
            write_cell(t->out, t->cells[k]);
        }
        if (writes) lk_text_bytes(t->out, "\n", 1);
        cJSON_Delete(root);
        if (!ok) return lk_fail(LK_E_INTERNAL, "an export with too many fields for a table");
    }
    return t->out->rc;
}

enum lk_code lk_survey_csv(const struct lk_text *lines, struct lk_text *out) {
    struct table *t = lk_calloc(1, sizeof *t);
    if (!t) return lk_fail(LK_E_NOMEM, "out of memory for an export");
    t->out = out;
    enum lk_code rc = pass(t, lines, false);
    for (int k = 0; !rc && k < t->n; k++) lk_text_add(out, "%s%s", k ? "," : "", t->columns[k]);
    lk_text_bytes(out, "\n", 1);
    if (!rc) rc = pass(t, lines, true);
    lk_free(t);
    return rc;
}
