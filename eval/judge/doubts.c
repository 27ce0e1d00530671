#include "eval/judge/doubts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/judge/ensemble.h"
#include "eval/scores/fields.h"

static const char *const names[] = {"half_even", "half_up", "half_down"};

const char *lk_rounding_name(enum lk_rounding rounding) { return names[rounding]; }

int lk_rounding_parse(const char *name) {
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

/* The one that is there when the other is missing; 0 when neither counts. */
static int single(int g, int o, const struct lk_ensemble *ensemble) {
    if (g) return g;
    return ensemble->secondary_only ? o : 0;
}

int lk_ensemble_score(int g, int o, const struct lk_ensemble *ensemble, bool *review) {
    *review = false;
    if (!g || !o) {
        *review = !g && o && ensemble->secondary_only;
        return single(g, o, ensemble);
    }
    if (abs(g - o) > 1) {
        *review = true;
        return g;
    }
    int sum = g + o;
    if (sum % 2 == 0) return sum / 2;
    switch (ensemble->rounding) {
    case LK_HALF_UP:
        return (sum + 1) / 2;
    case LK_HALF_DOWN:
        return (sum - 1) / 2;
    default:
        return sum % 4 == 1 ? (sum - 1) / 2 : (sum + 1) / 2;
    }
}

int lk_ensemble_bound(int g, int o, const struct lk_ensemble *ensemble, enum lk_bound bound) {
    if (!g || !o) return single(g, o, ensemble);
    return (bound == LK_BOUND_MIN) == (g < o) ? g : o;
}

int lk_ensemble_role(int g, int o, const struct lk_ensemble *ensemble, bool *review) {
    *review = false;
    if (g == LK_ROLE_NONE) {
        if (!ensemble->secondary_only) return LK_ROLE_NONE;
        *review = o != LK_ROLE_NONE;
        return o;
    }
    *review = o != LK_ROLE_NONE && o != g;
    return g;
}

void lk_ensemble_apply(struct lk_dataset *data, const struct lk_ensemble *ensemble, struct lk_ensemble_counts *counts) {
    struct lk_ensemble_counts c = {0};
    for (size_t i = 0; i < data->n_items; i++) {
        struct lk_item *item = &data->items[i];
        bool review, has_g = item->judge[0][0] || item->judge_role[0] != LK_ROLE_NONE;
        bool has_o = item->judge[1][0] || item->judge_role[1] != LK_ROLE_NONE;
        item->review = 0;
        for (int a = 0; a < LK_N_AXES; a++) {
            item->score[a] = (uint8_t)lk_ensemble_score(item->judge[0][a], item->judge[1][a], ensemble, &review);
            if (review) item->review |= (uint8_t)(1u << a);
            c.n_review_axis[a] += review;
        }
        item->role = (int8_t)lk_ensemble_role(item->judge_role[0], item->judge_role[1], ensemble, &review);
        if (review) item->review |= (uint8_t)(1u << LK_N_AXES);
        c.n_review += item->review != 0;
        c.n_both += has_g && has_o;
        c.n_primary_only += has_g && !has_o;
        c.n_secondary_only += !has_g && has_o;
        c.n_none += !has_g && !has_o;
    }
    if (counts) *counts = c;
}

static bool is_text(const struct lk_field *field, const char *text) {
    return field && field->kind == '"' && field->n == strlen(text) && !memcmp(field->text, text, field->n);
}

static enum lk_code read_scores(const struct lk_fields *fields, uint8_t score[LK_N_AXES]) {
    bool any = false;
    memset(score, 0, LK_N_AXES);
    if (!is_text(lk_fields_find(fields, "judge"), "pixel"))
        return lk_fail(LK_E_INPUT, "expected \"judge\": \"pixel\"; other judges score all five axes");
    for (int a = 0; a < LK_N_AXES; a++) {
        char name[64];
        snprintf(name, sizeof name, "scores.%s", lk_factor_key(LK_FACTOR_AXIS, a));
        const struct lk_field *field = lk_fields_find(fields, name);
        if (!field) continue;
        int level = field->kind == '0' ? lk_field_level(field) : 0;
        if (a != LK_AXIS_EDIT_SUCCESS && a != LK_AXIS_SKIN_TONE)
            return lk_fail(LK_E_INPUT, "%s: the pixel judge has no such score", name);
        if (!level) return lk_fail(LK_E_INPUT, "%s: expected an integer from 1 to 5", name);
        score[a] = (uint8_t)level;
        any = true;
    }
    return any ? LK_OK : lk_fail(LK_E_INPUT, "no score");
}

static enum lk_code read_record(struct lk_dataset *data, const struct lk_records *records,
                                const struct lk_judge_import *import, struct lk_judge_report *report) {
    static const uint8_t none[LK_N_AXES];
    const struct lk_field *id = lk_fields_find(&records->fields, "item_id");
    uint8_t score[LK_N_AXES];
    int32_t at;
    if (!id || id->kind != '"') return lk_fail(LK_E_INPUT, "expected a string \"item_id\"");
    const struct lk_field *sha256 = lk_fields_find(&records->fields, "edited_sha256");
    if (import->is_shown && sha256 && !import->is_shown(import->pictures, id->text, sha256->text)) {
        report->n_stale++;
        return LK_OK;
    }
    LK_TRY(read_scores(&records->fields, score));
    LK_TRY(import->known_only ? lk_dataset_find(data, id->text, id->n, &at)
                              : lk_dataset_item(data, id->text, id->n, &at));
    if (at < 0) {
        report->n_unknown++;
        return lk_rejects_add(&report->rejects, records->line, id->text, "no such item in this run");
    }
    uint8_t *stored = data->items[at].judge[import->slot];
    if (!memcmp(stored, none, LK_N_AXES)) {
        memcpy(stored, score, LK_N_AXES);
        report->n_matched++;
    } else if (memcmp(stored, score, LK_N_AXES)) {
        return lk_fail(LK_E_INPUT, "a second answer that differs from the first, which counts");
    } else {
        report->n_repeated++;
    }
    return LK_OK;
}

static enum lk_code read_all(struct lk_dataset *data, struct lk_records *records, const struct lk_judge_import *import,
                             struct lk_judge_report *report) {
    for (;;) {
        bool more, bad;
        LK_TRY(lk_records_next(records, &more, &bad));
        if (!more) return LK_OK;
        report->n_records++;
        enum lk_code rc = bad ? LK_E_INPUT : read_record(data, records, import, report);
        if (rc == LK_E_INPUT) {
            char reason[1024];
            const struct lk_field *id = bad ? NULL : lk_fields_find(&records->fields, "item_id");
            snprintf(reason, sizeof reason, "%s", lk_error_text());
            report->n_invalid++;
            rc = lk_rejects_add(&report->rejects, records->line, id ? id->text : "", reason);
        }
        LK_TRY(rc);
    }
}

enum lk_code lk_pixel_scores_read(struct lk_dataset *data, const char *text, size_t n, const char *name,
                                  const struct lk_judge_import *import, struct lk_judge_report *report) {
    struct lk_records records;
    if (import->slot < 0 || import->slot >= LK_N_JUDGES)
        return lk_fail(LK_E_USAGE, "%s: expected judge slot 0 or 1, got %d", name, import->slot);
    if (n && !lk_is_json(text, n)) return lk_fail(LK_E_JSON, "%s: expected JSON lines of the pixel judge", name);
    LK_TRY(lk_records_open(&records, text, n, name));
    enum lk_code rc = read_all(data, &records, import, report);
    lk_records_close(&records);
    return rc;
}

enum { TOLD = 20 }; /* low mass is told from one answer in so many on */

/* The scores of one judge on one axis. */
struct axis {
    size_t n, n_low;
    int score; /* 0: they differ */
};

static struct axis count(const struct lk_dataset *data, int judge, int axis) {
    struct axis out = {0};
    for (size_t i = 0; i < data->n_items; i++) {
        const int score = data->items[i].judge[judge][axis];
        if (!score) continue;
        out.score = !out.n || out.score == score ? score : 0;
        out.n++;
        out.n_low += data->items[i].low_mass[judge] >> axis & 1;
    }
    return out;
}

static void name_judge(struct lk_text *out, int judge, const char *name) {
    lk_text_add(out, "%s judge", judge ? "secondary" : "primary");
    if (name && *name) lk_text_add(out, " (%s)", name);
}

/* "Race Change (1), Age Change (3)": the axes whose scores are all the same, or of which `low` are told. */
static size_t list_axes(const struct lk_dataset *data, int judge, bool low, struct lk_text *out) {
    size_t most = 0;
    for (int a = 0; a < LK_N_AXES; a++) {
        const struct axis axis = count(data, judge, a);
        if (low ? !axis.n_low || axis.n_low * TOLD < axis.n : axis.n < 2 || !axis.score) continue;
        lk_text_add(out, "%s%s ", most ? ", " : "", lk_factor_display(LK_FACTOR_AXIS, a));
        if (low)
            lk_text_add(out, "(%zu of %zu)", axis.n_low, axis.n);
        else
            lk_text_add(out, "(%d)", axis.score);
        if (axis.n > most) most = axis.n;
    }
    return most;
}

enum lk_code lk_judge_doubts(const struct lk_dataset *data, const char *const names[LK_N_JUDGES], struct lk_text *out) {
    for (int judge = 0; judge < LK_N_JUDGES; judge++)
        for (int low = 0; low < 2; low++) {
            struct lk_text axes = {0};
            const size_t n = list_axes(data, judge, low, &axes);
            if (n && !axes.rc && !low) {
                lk_text_add(out, "The ");
                name_judge(out, judge, names[judge]);
                lk_text_add(out,
                            " gave all %zu outputs the same score on %s: by its scores no group, prompt or model can "
                            "differ there.\n",
                            n, axes.bytes);
            } else if (n && !axes.rc) {
                lk_text_add(out, "Answers of the ");
                name_judge(out, judge, names[judge]);
                lk_text_add(out,
                            " on %s have a low probability mass: the model would rather have said something else than "
                            "a score, so read them as guesses.\n",
                            axes.bytes);
            }
            const enum lk_code rc = axes.rc;
            lk_text_free(&axes);
            if (rc) return rc;
        }
    return out->rc;
}
