#include "eval/t2i/attention.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i attention: out of memory"); }

/* Values of a prompt: of each head, then their mean. */
static size_t width_of(const struct lk_t2i_attention *t) { return (size_t)t->n_heads + 1; }

enum lk_code lk_t2i_attention_init(struct lk_t2i_attention *t, const struct lk_t2i_prompts *prompts) {
    *t = (struct lk_t2i_attention){.outcomes = {.prompts = prompts, .n_units = prompts->n}};
    struct lk_store *store = &t->outcomes.store;
    int32_t *unit_of = lk_store_alloc(store, (prompts->n + 1) * sizeof *unit_of);
    t->n = lk_store_alloc(store, (prompts->n + 1) * sizeof *t->n);
    t->n_tokens = lk_store_alloc(store, (prompts->n + 1) * sizeof *t->n_tokens);
    if (!unit_of || !t->n || !t->n_tokens) return out_of_memory();
    for (size_t i = 0; i < prompts->n; i++) unit_of[i] = (int32_t)i;
    t->outcomes.unit_of = unit_of;
    return LK_OK;
}

static void add(const struct lk_t2i_attention *t, const double *values, double *sum) {
    for (int layer = 0; layer < t->n_layers; layer++)
        for (int i = t->first[layer]; i < t->first[layer + 1]; i++) {
            sum[i] += values[i];
            sum[t->n_heads] += values[i] / (t->first[layer + 1] - t->first[layer]) / t->n_layers;
        }
}

enum lk_code lk_t2i_attention_add(struct lk_t2i_attention *t, size_t prompt, const struct lk_t2i_seen *seen) {
    struct lk_store *store = &t->outcomes.store;
    if (!t->sum) {
        t->n_layers = seen->n_layers;
        t->n_heads = seen->first[seen->n_layers];
        t->sum = lk_store_alloc(store, t->outcomes.n_units * width_of(t) * sizeof *t->sum);
        t->share_sum = lk_store_alloc(store, t->outcomes.n_units * width_of(t) * sizeof *t->share_sum);
        t->layers = lk_store_alloc(store, (size_t)t->n_layers * sizeof *t->layers);
        t->first = lk_store_alloc(store, ((size_t)t->n_layers + 1) * sizeof *t->first);
        if (!t->sum || !t->share_sum || !t->layers || !t->first) return out_of_memory();
        memcpy(t->layers, seen->layers, (size_t)t->n_layers * sizeof *t->layers);
        memcpy(t->first, seen->first, ((size_t)t->n_layers + 1) * sizeof *t->first);
    }
    if (t->n_layers != seen->n_layers || t->n_heads != seen->first[seen->n_layers])
        return lk_fail(LK_E_INTERNAL, "t2i attention: two models");
    add(t, seen->weights, t->sum + prompt * width_of(t));
    add(t, seen->shares, t->share_sum + prompt * width_of(t));
    t->n[prompt]++;
    t->n_tokens[prompt] = seen->n_tokens;
    return LK_OK;
}

/* Column i of every prompt into x [n_units]; NaN where there is no picture. Gives the mean over the others. */
static double column(const struct lk_t2i_attention *t, const double *sums, size_t i, double *x) {
    double sum = 0, n = 0;
    for (size_t p = 0; p < t->outcomes.n_units; p++) {
        x[p] = t->n[p] ? sums[p * width_of(t) + i] / (double)t->n[p] : NAN;
        if (t->n[p]) sum += x[p], n++;
    }
    return sum / n;
}

static void cell_head(const struct lk_t2i_attention *t, size_t i, struct lk_text *out) {
    int layer = 0;
    while (i + 1 < width_of(t) && (int)i >= t->first[layer + 1]) layer++;
    if (i + 1 == width_of(t))
        lk_text_add(out, ",,");
    else
        lk_text_add(out, ",%s,%d", t->layers[layer], (int)i - t->first[layer]);
}

static void weight_lines(const struct lk_t2i_attention *t, double *x, double *shares, struct lk_text *out) {
    const size_t n = width_of(t);
    int64_t n_pictures = 0, n_prompts = 0;
    column(t, t->sum, n - 1, x);
    column(t, t->share_sum, n - 1, shares);
    for (size_t p = 0; p < t->outcomes.n_units; p++) {
        if (!t->n[p]) continue;
        lk_text_add(out, "prompt");
        lk_t2i_cell_text(out, t->outcomes.prompts->list[p].cells[LK_T2I_PROMPT_ID]);
        lk_text_add(out, ",,,%lld,%d", (long long)t->n[p], t->n_tokens[p]);
        lk_t2i_cell_number(out, x[p]);
        lk_t2i_cell_number(out, shares[p]);
        lk_text_add(out, ",,,,,,,,,%s\r\n", LK_T2I_CORRELATIONAL);
        n_pictures += t->n[p], n_prompts++;
    }
    for (size_t i = 0; i + 1 < n; i++) {
        lk_text_add(out, "head,");
        cell_head(t, i, out);
        lk_text_add(out, ",%lld,", (long long)n_pictures);
        lk_t2i_cell_number(out, column(t, t->sum, i, x));
        lk_t2i_cell_number(out, column(t, t->share_sum, i, x));
        lk_text_add(out, ",,,,%lld,,,,,%s\r\n", (long long)n_prompts, LK_T2I_CORRELATIONAL);
    }
}

/* tests, adjusted [width, outcomes]; scratch [3 n_units] */
static enum lk_code test_lines(const struct lk_t2i_attention *t, double *scratch, struct lk_test *tests,
                               double *adjusted, struct lk_text *out) {
    const size_t n = width_of(t), n_outcomes = t->outcomes.names.n, n_units = t->outcomes.n_units;
    for (size_t i = 0; i < n; i++) {
        column(t, t->sum, i, scratch);
        for (size_t k = 0; k < n_outcomes; k++)
            LK_TRY(lk_t2i_outcomes_correlate(&t->outcomes, k, scratch, scratch + n_units, &tests[i * n_outcomes + k]));
    }
    const size_t n_heads = (n - 1) * n_outcomes;
    LK_TRY(lk_t2i_adjust(tests, n_heads, adjusted));
    LK_TRY(lk_t2i_adjust(tests + n_heads, n_outcomes, adjusted + n_heads));
    for (size_t row = 0; row < n * n_outcomes; row++) {
        const size_t at = (row + n_heads) % (n * n_outcomes); /* all heads together come first */
        lk_text_add(out, "spearman,");
        cell_head(t, at / n_outcomes, out);
        lk_text_add(out, ",,,,");
        lk_t2i_cells_outcome(out, &t->outcomes, at % n_outcomes);
        lk_t2i_cells_test(out, &tests[at], adjusted[at]);
    }
    return LK_OK;
}

enum lk_code lk_t2i_attention_csv(const struct lk_t2i_attention *t, struct lk_text *out) {
    const size_t n = t->sum ? width_of(t) * t->outcomes.names.n : 0;
    double *scratch = lk_malloc((3 * t->outcomes.n_units + n + 1) * sizeof *scratch);
    struct lk_test *tests = lk_calloc(n + 1, sizeof *tests);
    enum lk_code rc = scratch && tests && t->sum ? LK_OK : out_of_memory();
    lk_text_add(out,
                "record,prompt_id,layer,head,n_pictures,n_tokens,weight,share,model,attribute,outcome,n_prompts,rho,p,"
                "adjusted_p,undefined,note\r\n");
    if (!rc) weight_lines(t, scratch, scratch + t->outcomes.n_units, out);
    if (!rc && n) rc = test_lines(t, scratch, tests, scratch + 3 * t->outcomes.n_units, out);
    lk_free(scratch);
    lk_free(tests);
    return rc ? rc : out->rc;
}

void lk_t2i_attention_free(struct lk_t2i_attention *t) {
    lk_t2i_outcomes_free(&t->outcomes);
    *t = (struct lk_t2i_attention){0};
}
