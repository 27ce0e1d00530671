#include "eval/judge/doubts.h"

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
