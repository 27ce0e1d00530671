/* What a fair instruction asked for beside what is perceived, and how often it succeeds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/proportion.h"
#include "eval/t2i/report.h"

/* A level that an instruction asks for: "ATTRIBUTE\tLEVEL\tLABEL" in pieces, and which perceived level that is. */
struct asked {
    char attribute[64], name[64], label[64];
    int a, level;
    bool known;
};

static void split(const char *entry, struct asked *out) {
    char *const to[] = {out->attribute, out->name, out->label};
    for (int i = 0; i < 3; i++) {
        const size_t n = strcspn(entry, "\t");
        snprintf(to[i], sizeof out->name, "%.*s", (int)n, entry);
        entry += n + (entry[n] == '\t');
    }
    out->known = lk_t2i_level_find(out->attribute, out->label, &out->a, &out->level);
}

/* Pictures [LK_T2I_MAX_LEVELS + 2] of a model at its reference CFG that were asked for a level: by perceived level,
 * then those without a label, then those without a face. */
enum { NO_LABEL = LK_T2I_MAX_LEVELS, NO_FACE, N_COUNTS };

static int64_t count(const struct lk_t2i_metrics *m, int32_t model, int number, const struct asked *asked,
                     int64_t counts[N_COUNTS]) {
    int64_t n = 0;
    for (size_t i = 0; i < m->images->n; i++) {
        const struct lk_t2i_image *image = &m->images->list[i];
        if (image->model != model || image->cfg != m->reference_cfg[model]) continue;
        for (int k = 0; k < LK_T2I_MAX_FAIR && image->fair.of[k] >= 0; k++) {
            if (image->fair.of[k] != number) continue;
            const int level = asked->known ? image->level[asked->a] : -1;
            counts[!image->face ? NO_FACE : level < 0 ? NO_LABEL : level]++;
            n++;
        }
    }
    return n;
}

static void success(struct lk_table *table, const struct lk_t2i_metrics *m, int64_t k, int64_t n) {
    struct lk_number rate;
    lk_table_percent(table, k, n);
    if (!lk_proportion(k, n, LK_WILSON, 1 - m->options.alpha, &rate) && !rate.undefined)
        lk_table_interval(table, rate.low, rate.high);
}

static void add_row(struct lk_table *table, const struct lk_t2i_metrics *m, int32_t model, const struct asked *asked,
                    const bool shown[LK_N_T2I_ATTRIBUTES], const int64_t counts[N_COUNTS], int64_t n) {
    int64_t n_labels = 0;
    lk_table_row(table);
    lk_table_text(table, "%s", m->images->models.list[model]);
    lk_table_text(table, "%s", asked->attribute);
    lk_table_text(table, "%s", asked->name);
    lk_table_count(table, n);
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++)
        for (int g = 0; g < lk_t2i_levels(a) && shown[a]; g++)
            if (asked->known && asked->a == a)
                lk_table_count(table, counts[g]), n_labels += counts[g];
            else
                lk_table_none(table, "another attribute");
    lk_table_count(table, counts[NO_LABEL]);
    lk_table_count(table, counts[NO_FACE]);
    if (asked->known)
        success(table, m, counts[asked->level], n_labels);
    else
        lk_table_none(table, "no label is called so: give the level a \"label\" in the instruction");
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

void lk_t2i_fair_rows(struct lk_table *table, const struct lk_t2i_metrics *m) {
    const struct lk_names *levels = &m->images->fair_levels;
    const char **sorted = lk_malloc((levels->n + 1) * sizeof *sorted); /* whatever the order of the log */
    bool shown[LK_N_T2I_ATTRIBUTES] = {false};
    struct asked asked;
    lk_table_columns(table, "Model|Attribute|Asked for|>Pictures");
    if (!sorted) {
        table->rc = lk_fail(LK_E_NOMEM, "t2i: out of memory");
        return;
    }
    if (levels->n) memcpy(sorted, levels->list, levels->n * sizeof *sorted);
    qsort(sorted, levels->n, sizeof *sorted, by_name);
    for (size_t i = 0; i < levels->n; i++) {
        split(levels->list[i], &asked);
        if (asked.known) shown[asked.a] = true;
    }
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++)
        for (int g = 0; g < lk_t2i_levels(a) && shown[a]; g++)
            lk_table_column(table, lk_t2i_level_name(a, g), LK_ALIGN_RIGHT);
    lk_table_column(table, "No label", LK_ALIGN_RIGHT);
    lk_table_column(table, "No face", LK_ALIGN_RIGHT);
    lk_table_column(table, "Success", LK_ALIGN_RIGHT);
    for (size_t model = 0; model < m->images->models.n; model++)
        for (size_t i = 0; i < levels->n; i++) {
            int64_t counts[N_COUNTS] = {0};
            split(sorted[i], &asked);
            const int number = (int)lk_names_find(levels, sorted[i], strlen(sorted[i]));
            const int64_t n = count(m, (int32_t)model, number, &asked, counts);
            if (n) add_row(table, m, (int32_t)model, &asked, shown, counts, n);
        }
    lk_free(sorted);
    size_t n_missed = 0;
    for (size_t i = 0; i < m->images->n; i++)
        n_missed += m->images->list[i].arm == LK_T2I_FAIR && m->images->list[i].fair.of[0] < 0;
    lk_table_note(table,
                  "Pictures by the level that the fair instruction asked for, and what a classifier perceives in them. "
                  "Success: perceived as asked, of those with a label, with Wilson's interval, %g%%, which takes the "
                  "pictures as independent. Pictures of prompts that no rule of the instruction hits: %zu.",
                  100 * (1 - m->options.alpha), n_missed);
}
