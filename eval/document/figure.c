/* What all figures have in common: the head, the table of their numbers, how values print. */
#include "eval/document/figure.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/figure_draw.h"

void lk_figure_free(struct lk_figure *figure) {
    lk_text_free(&figure->wide);
    lk_text_free(&figure->narrow);
    lk_table_free(figure->data);
    lk_free((void *)figure->id);
    lk_free((void *)figure->description);
    *figure = (struct lk_figure){0};
}

enum lk_code lk_figure_begin(struct lk_figure *out, const struct lk_figure_head *head) {
    char id[256];
    *out = (struct lk_figure){0};
    if (!head->id || !head->id[0] || strlen(head->id) > 200)
        return lk_fail(LK_E_INTERNAL, "figure: expected an id of 1 to 200 bytes, got \"%.40s\"",
                       head->id ? head->id : "");
    snprintf(id, sizeof id, "%s_data", head->id);
    LK_TRY(lk_table_new(&out->data, id, head->title ? head->title : "", NULL));
    out->id = lk_strdup(head->id);
    out->description = lk_strdup(head->description ? head->description : "");
    if (!out->id || !out->description) {
        lk_figure_free(out);
        return lk_fail(LK_E_NOMEM, "figure %s: no memory; free memory and try again", head->id);
    }
    if (head->note) lk_table_note(out->data, "%s", head->note);
    return LK_OK;
}

enum lk_code lk_figure_end(struct lk_figure *out) {
    enum lk_code rc = lk_table_finish(out->data);
    if (!rc) rc = out->wide.rc ? out->wide.rc : out->narrow.rc;
    if (rc) {
        lk_figure_free(out);
        return rc;
    }
    out->title = out->data->caption;
    out->note = out->data->note;
    return LK_OK;
}

bool lk_figure_drawable(double number) { return number >= -1e12 && number <= 1e12; }

enum lk_code lk_figure_check(const struct lk_figure_head *head, const struct lk_figure_value *values, int n) {
    if (n < 1) return lk_fail(LK_E_INTERNAL, "figure %s: expected at least one value, got %d", head->id, n);
    for (int i = 0; i < n; i++)
        if (!values[i].none && (values[i].k < 0 || values[i].k > values[i].n))
            return lk_fail(LK_E_INTERNAL, "figure %s: value %d: expected a count within 0 and n", head->id, i);
        else if (!values[i].none && !(lk_figure_drawable(values[i].value) && lk_figure_drawable(values[i].low) &&
                                      lk_figure_drawable(values[i].high)))
            return lk_fail(LK_E_INTERNAL, "figure %s: value %d: expected numbers within 1e12 of zero", head->id, i);
    return LK_OK;
}

bool lk_figure_has_interval(const struct lk_figure_value *value) {
    return !value->none && (value->low != 0 || value->high != 0);
}

void lk_figure_cell(struct lk_table *table, const struct lk_figure_value *value, enum lk_unit unit, int decimals) {
    if (value->none)
        lk_table_none(table, NULL);
    else if (unit == LK_UNIT_PERCENT && value->n)
        lk_table_percent(table, value->k, value->n);
    else if (unit == LK_UNIT_PERCENT)
        lk_table_rate(table, value->value);
    else if (unit == LK_UNIT_POINTS)
        lk_table_points(table, value->value);
    else
        lk_table_fixed(table, value->value, decimals);
    if (lk_figure_has_interval(value)) lk_table_interval(table, value->low, value->high);
}

void lk_figure_print(char out[LK_NUMBER_MAX + 8], const struct lk_figure_value *value, enum lk_unit unit,
                     int decimals) {
    if (value->none) {
        strcpy(out, LK_EN_DASH);
        return;
    }
    if (unit == LK_UNIT_NUMBER) {
        lk_print_fixed(out, value->value, decimals, false);
        return;
    }
    if (unit == LK_UNIT_PERCENT && value->n > 0) {
        int64_t tenths = lk_percent_tenths(value->k, value->n);
        snprintf(out, LK_NUMBER_MAX, "%lld.%lld", (long long)(tenths / 10), (long long)(tenths % 10));
    } else
        lk_print_fixed(out, 100 * value->value, 1, false);
    strcat(out, unit == LK_UNIT_PERCENT ? "%" : " pp");
}

bool lk_figure_range(const struct lk_figure_value *values, int n, double *low, double *high) {
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (values[i].none) continue;
        double least = values[i].value, most = values[i].value;
        if (lk_figure_has_interval(&values[i])) {
            if (values[i].low < least) least = values[i].low;
            if (values[i].high > most) most = values[i].high;
        }
        if (!any || least < *low) *low = least;
        if (!any || most > *high) *high = most;
        any = true;
    }
    return any;
}
