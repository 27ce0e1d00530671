#include "eval/t2i/confusion.h"

#include <string.h>

#include "engine/base/names.h"
#include "eval/document/table_print.h"

/* Whether the table says anything of the attribute. */
static bool has(const struct lk_labels *labels, int attribute) {
    for (size_t i = 0; i < labels->n; i++)
        if (lk_t2i_level_of(&labels->list[i], attribute) >= 0) return true;
    return false;
}

static void count(struct lk_t2i_confusion *out, const struct lk_label *known, const struct lk_label *perceived,
                  const bool *counted) {
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++) {
        const int truth = lk_t2i_level_of(known, a), seen = lk_t2i_level_of(perceived, a);
        if (truth < 0 || !counted[a]) continue;
        out->counts[a][truth][seen < 0 ? LK_T2I_MAX_LEVELS : seen]++;
        out->n[a]++;
        out->n_right[a] += truth == seen;
    }
}

static enum lk_code join(const struct lk_labels *known, const struct lk_labels *perceived, struct lk_names *paths,
                         struct lk_t2i_confusion *out) {
    bool counted[LK_N_T2I_ATTRIBUTES];
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++) counted[a] = has(perceived, a);
    for (size_t i = 0; i < known->n; i++) {
        const char *path = known->list[i].file_path;
        int32_t number;
        LK_TRY(lk_names_number(paths, path, strlen(path), &number));
        if ((size_t)number != i) return lk_fail(LK_E_INPUT, "known labels: \"%.200s\" stands there twice", path);
    }
    for (size_t i = 0; i < perceived->n; i++) {
        const char *path = perceived->list[i].file_path;
        const int32_t at = lk_names_find(paths, path, strlen(path));
        if (at < 0)
            out->n_unknown++;
        else
            count(out, &known->list[at], &perceived->list[i], counted);
    }
    if (out->n_unknown < perceived->n) return LK_OK;
    return lk_fail(LK_E_INPUT,
                   "labels: expected pictures whose file_path is among the known ones, as \"%.200s\"; got none",
                   known->n ? known->list[0].file_path : "");
}

enum lk_code lk_t2i_confuse(const struct lk_labels *known, const struct lk_labels *perceived,
                            struct lk_t2i_confusion *out) {
    struct lk_names paths = {0};
    *out = (struct lk_t2i_confusion){0};
    enum lk_code rc = join(known, perceived, &paths, out);
    lk_names_free(&paths);
    return rc;
}

enum lk_code lk_t2i_confusion_csv(const struct lk_t2i_confusion *c, struct lk_text *out) {
    lk_text_add(out, "attribute,known,perceived,n,share\r\n");
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++)
        for (int truth = 0; truth < lk_t2i_levels(a); truth++) {
            int64_t n = 0;
            for (int seen = 0; seen <= LK_T2I_MAX_LEVELS; seen++) n += c->counts[a][truth][seen];
            for (int seen = 0; n && seen <= LK_T2I_MAX_LEVELS; seen++) {
                const bool none = seen == LK_T2I_MAX_LEVELS;
                if (!none && seen >= lk_t2i_levels(a)) continue;
                lk_text_add(out, "%s,", lk_t2i_attribute_key(a));
                lk_print_csv_field(out, lk_t2i_level_name(a, truth), "");
                lk_text_add(out, ",");
                lk_print_csv_field(out, none ? "" : lk_t2i_level_name(a, seen), "");
                lk_text_add(out, ",%lld,", (long long)c->counts[a][truth][seen]);
                lk_text_number(out, (double)c->counts[a][truth][seen] / (double)n);
                lk_text_add(out, "\r\n");
            }
        }
    return out->rc;
}
