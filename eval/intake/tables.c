/* The tables' files, and the rows behind their cells as views of the store. */
#include "eval/intake/tables.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/data/data.h"
#include "eval/intake/internal.h"

/* The order within a section. */
const char *const lk_audit_tables[] = {"rates_by_model",
                                       "rates_by_category",
                                       "rates_by_subcategory",
                                       "rates_by_prompt",
                                       "rates_by_attribute",
                                       "cached_steps",
                                       "pairs_by_model",
                                       "raters",
                                       "judges",
                                       "judge_agreement",
                                       "review_decisions",
                                       "seeds",
                                       "refusals",
                                       "refusals_by_attribute",
                                       "refusals_by_stage",
                                       "refusals_by_category",
                                       "refusals_by_prompt",
                                       "refusal_bounds",
                                       "refusal_pairs",
                                       "refusal_changes",
                                       "refusals_over_time",
                                       "revised_prompts",
                                       "rewrites",
                                       "rewrite_words",
                                       "rewrite_differences",
                                       "rewrite_outcomes",
                                       "masks",
                                       "mask_floor",
                                       "models",
                                       "outputs",
                                       "sources",
                                       "prompts",
                                       NULL};

char *lk_audit_fill(const char *text, const struct lk_attribute *attribute) {
    struct lk_text out = {0};
    lk_text_add(&out, "%s", "");
    while (*text) {
        const bool name = attribute && !strncmp(text, "$attribute", 10),
                   display = attribute && !strncmp(text, "$display", 8);
        if (name || display) {
            lk_text_add(&out, "%s", name ? attribute->name : attribute->display);
            text += name ? 10 : 8;
        } else {
            lk_text_bytes(&out, text++, 1);
        }
    }
    if (!out.rc) return out.bytes;
    lk_text_free(&out);
    return NULL;
}

enum lk_code lk_audit_table_file(const char *name, struct lk_audit_table_file *out) {
    struct lk_data_file file;
    *out = (struct lk_audit_table_file){.form = "list"};
    if (!lk_data_find(name, &file)) return lk_fail(LK_E_INTERNAL, "%s.sql is not part of this program", name);
    const char *at = file.text;
    const struct {
        const char *key;
        char *to;
        size_t size;
    } keys[] = {{"title", out->title, sizeof out->title},
                {"section", out->section, sizeof out->section},
                {"note", out->note, sizeof out->note},
                {"form", out->form, sizeof out->form},
                {"rows", out->rows, sizeof out->rows}};
    while (!strncmp(at, "-- ", 3)) {
        const size_t n = strcspn(at, "\n");
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            const size_t n_key = strlen(keys[i].key);
            if (!strncmp(at + 3, keys[i].key, n_key) && at[3 + n_key] == ':')
                snprintf(keys[i].to, keys[i].size, "%.*s", (int)(n - n_key - 5), at + n_key + 5);
        }
        out->each_attribute |= !strncmp(at, "-- for: attribute", 17);
        at += n + (at[n] == '\n');
    }
    out->sql = lk_strdup(at);
    return out->sql ? LK_OK : lk_fail(LK_E_NOMEM, "report: out of memory");
}

void lk_audit_table_id(const char *name, const struct lk_attribute *attribute, char id[100]) {
    snprintf(id, 100, "%s%s%s", name, attribute ? "_" : "", attribute ? attribute->name : "");
}

_Static_assert(sizeof lk_audit_tables / sizeof *lk_audit_tables <= LK_MAX_AUDIT_TABLES + 1, "one more");

/* "SELECT labels, sum(counted) AS k ... FROM rows GROUP BY ..." without the sums: the rows themselves. Nothing is made
 * of a SELECT of another form. */
static enum lk_code add_view(struct lk_audit *a, const char *name, const struct lk_audit_table_file *file,
                             const struct lk_attribute *attribute) {
    static const char select[] = "SELECT ";
    char id[100];
    char *sql = lk_audit_fill(file->sql, attribute), *view = NULL;
    if (!sql) return lk_fail(LK_E_NOMEM, "out of memory for the audit");
    const char *labels = sql + strlen(select), *sum = strstr(sql, ", sum("), *rows = strstr(sql, "\nFROM "),
               *group = strstr(sql, "\nGROUP BY ");
    enum lk_code rc = LK_OK;
    if (!sum) sum = strstr(sql, ", avg(");
    lk_audit_table_id(name, attribute, id);
    if (!strncmp(sql, select, strlen(select)) && sum && rows && group && sum < rows && rows < group) {
        const char *counted = sum + strlen(", sum(");
        view = lk_format("CREATE VIEW \"%s\" AS SELECT %.*s, %.*s AS counted, *%.*s", id, (int)(sum - labels), labels,
                         (int)strcspn(counted, ")"), counted, (int)(group - rows), rows);
        rc = view ? lk_sql_execute(&a->sql, view) : lk_fail(LK_E_NOMEM, "out of memory for the audit");
    }
    lk_free(view);
    lk_free(sql);
    return rc;
}

enum lk_code lk_audit_add_views(struct lk_audit *a, const struct lk_study *study) {
    int n;
    const struct lk_attribute *attributes = lk_study_attributes(study, &n);
    enum lk_code rc = LK_OK;
    for (int t = 0; lk_audit_tables[t] && !rc; t++) {
        struct lk_audit_table_file file;
        rc = lk_audit_table_file(lk_audit_tables[t], &file);
        const bool cells = !rc && strcmp(file.form, "list") != 0;
        for (int i = 0; i < n && cells && file.each_attribute && !rc; i++)
            rc = add_view(a, lk_audit_tables[t], &file, &attributes[i]);
        if (cells && !file.each_attribute) rc = add_view(a, lk_audit_tables[t], &file, NULL);
        lk_free(file.sql);
    }
    return rc;
}

bool lk_audit_has_view(struct lk_audit *a, const char *id) {
    int64_t n = 0;
    return !lk_sql_number(&a->sql, &n, 0, "SELECT count(*) FROM sqlite_schema WHERE type='view' AND name=?1", "t",
                          id) &&
           n == 1;
}
