#include "eval/study/sampling.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/rng.h"
#include "eval/study/factors.h"
#include "eval/study/packing.h"
#include "eval/study/pairs500.h"
#include "eval/study/prompts.h"
#include "eval/study/random.h"

enum lk_code lk_pack_hits(int64_t n_items, int n_raters, int per_hit, int gold_per_hit, enum lk_packing rule,
                          struct lk_hits *out) {
    *out = (struct lk_hits){0};
    if (n_items < 1 || n_items > INT32_MAX || n_raters < 1 || n_raters > 1000 || per_hit < 1)
        return lk_fail(LK_E_INPUT, "packing: expected at least 1 item, rater and item per HIT, got %lld, %d and %d",
                       (long long)n_items, n_raters, per_hit);
    int64_t answers = n_items * n_raters;
    if (rule == LK_PACKING_PACKED) {
        int room = per_hit - gold_per_hit;
        if (gold_per_hit < 0 || room < 1)
            return lk_fail(LK_E_INPUT, "packing: %d gold items leave no room in a HIT of %d", gold_per_hit, per_hit);
        out->n_hits = (n_items + room - 1) / room;
        out->n_assignments = out->n_hits * n_raters;
        return LK_OK;
    }
    out->n_hits =
        rule == LK_PACKING_SEED ? (2 * answers + per_hit) / (2 * (int64_t)per_hit) : (answers + per_hit - 1) / per_hit;
    out->n_assignments = out->n_hits;
    return LK_OK;
}

void lk_pack_tasks(size_t n, bool blocked, uint64_t seed, int32_t *out) {
    for (size_t i = 0; i < n; i++) out[i] = (int32_t)i;
    if (blocked) return;
    struct lk_stream stream;
    lk_stream_named(&stream, seed, "tasks");
    lk_stream_shuffle(&stream, out, n);
}

/* stream(seed, "KIND|a|b"); ids may be longer than any fixed buffer. */
static enum lk_code labelled(struct lk_stream *stream, uint64_t seed, const char *kind, const char *a, const char *b) {
    int n = snprintf(NULL, 0, "%s|%s|%s", kind, a, b);
    char *label = lk_malloc((size_t)n + 1);
    if (!label) return lk_fail(LK_E_NOMEM, "out of memory for the label of a random stream");
    snprintf(label, (size_t)n + 1, "%s|%s|%s", kind, a, b);
    lk_stream_named(stream, seed, label);
    lk_free(label);
    return LK_OK;
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Gold item g goes behind item gaps[g]; the gaps differ, so no two are adjacent and none is first. */
enum lk_code lk_task_order(uint64_t seed, const char *participant, const char *task, size_t n_items, size_t n_gold,
                           int32_t *out) {
    struct lk_stream stream;
    if (n_gold > n_items || n_items > INT32_MAX)
        return lk_fail(LK_E_INPUT, "task %s: %zu gold items do not fit between %zu items", task, n_gold, n_items);
    LK_TRY(labelled(&stream, seed, "order", participant, task));
    int32_t *work = lk_malloc((2 * n_items + n_gold) * sizeof *work);
    if (!work) return lk_fail(LK_E_NOMEM, "out of memory for the order of a task");
    int32_t *order = work, *gaps = work + n_items, *gold = gaps + n_items;
    for (size_t i = 0; i < n_items; i++) order[i] = gaps[i] = (int32_t)i;
    for (size_t i = 0; i < n_gold; i++) gold[i] = -1 - (int32_t)i;
    lk_stream_shuffle(&stream, order, n_items);
    lk_stream_shuffle(&stream, gaps, n_items);
    lk_stream_shuffle(&stream, gold, n_gold);
    qsort(gaps, n_gold, sizeof *gaps, ascending);
    for (size_t i = 0, g = 0, at = 0; i < n_items; i++) {
        out[at++] = order[i];
        if (g < n_gold && gaps[g] == (int32_t)i) out[at++] = gold[g++];
    }
    lk_free(work);
    return LK_OK;
}

enum lk_code lk_left_arm(uint64_t seed, const char *participant, const char *item, int *out) {
    struct lk_stream stream;
    LK_TRY(labelled(&stream, seed, "side", participant, item));
    *out = (int)lk_stream_bounded(&stream, 2);
    return LK_OK;
}

enum { LINE_MAX_BYTES = 80 };

void lk_pairs500_fives(uint64_t seed, int32_t out[LK_N_FIVE_PAIR_CELLS]) {
    struct lk_stream stream;
    int32_t ages[] = {0, 1, 2, 5}, genders[] = {0, 0, 1, 1};
    const int races[] = {1, 3, 4, 5};
    lk_stream_named(&stream, seed, "pairs500/fives");
    lk_stream_shuffle(&stream, ages, 4);
    lk_stream_shuffle(&stream, genders, 4);
    for (int i = 0; i < LK_N_FIVE_PAIR_CELLS; i++) out[i] = lk_source(races[i], genders[i], ages[i]);
}

void lk_pairs500_arrange(const int32_t sources[84], const int32_t prompts[20], const int32_t five[LK_N_FIVE_PAIR_CELLS],
                         struct lk_pair out[LK_N_PAIRS]) {
    int k = 0;
    for (int cell = 0; cell < LK_N_SOURCES; cell++) {
        int n = 6;
        for (int i = 0; i < LK_N_FIVE_PAIR_CELLS; i++)
            if (sources[cell] == five[i]) n = 5;
        for (int i = 0; i < n; i++, k++)
            out[k] = (struct lk_pair){.source = (int16_t)sources[cell],
                                      .prompt = (int8_t)prompts[k % LK_N_EDIT_PROMPTS],
                                      .model = (int8_t)((k / LK_N_EDIT_PROMPTS + k % LK_N_EDIT_PROMPTS) % LK_N_MODELS)};
    }
}

void lk_pairs500(uint64_t seed, struct lk_pair out[LK_N_PAIRS]) {
    struct lk_stream stream;
    int32_t sources[LK_N_SOURCES], o[10], v[10], prompts[LK_N_EDIT_PROMPTS], five[LK_N_FIVE_PAIR_CELLS];
    for (int i = 0; i < LK_N_SOURCES; i++) sources[i] = i;
    lk_stream_named(&stream, seed, "pairs500/cells");
    lk_stream_shuffle(&stream, sources, LK_N_SOURCES);
    for (int i = 0; i < 10; i++) {
        o[i] = i;
        v[i] = 10 + i;
    }
    lk_stream_named(&stream, seed, "pairs500/prompts");
    lk_stream_shuffle(&stream, o, 10);
    lk_stream_shuffle(&stream, v, 10);
    for (int i = 0; i < 10; i++) {
        prompts[2 * i] = o[i];
        prompts[2 * i + 1] = v[i];
    }
    lk_pairs500_fives(seed, five);
    lk_pairs500_arrange(sources, prompts, five, out);
}

/* race,gender,age,prompt_id,model and a line feed. */
static size_t line_of(const struct lk_pair *pair, char out[LINE_MAX_BYTES]) {
    int race, gender, age;
    lk_source_factors(pair->source, &race, &gender, &age);
    return (size_t)snprintf(out, LINE_MAX_BYTES, "%s,%s,%s,%s,%s\n", lk_factor_key(LK_FACTOR_RACE, race),
                            lk_factor_key(LK_FACTOR_GENDER, gender), lk_factor_key(LK_FACTOR_AGE, age),
                            lk_prompt_id(pair->prompt), lk_factor_key(LK_FACTOR_MODEL, pair->model));
}

enum lk_code lk_pairs500_csv(const struct lk_pair pairs[LK_N_PAIRS], char **out, size_t *n) {
    static const char header[] = "pair_id,race,gender,age,prompt_id,model\n";
    char *text = lk_malloc(sizeof header + LK_N_PAIRS * (LINE_MAX_BYTES + 5));
    if (!text) return lk_fail(LK_E_NOMEM, "out of memory for pairs500.csv");
    memcpy(text, header, sizeof header);
    size_t used = sizeof header - 1;
    for (int i = 0; i < LK_N_PAIRS; i++) {
        char line[LINE_MAX_BYTES];
        line_of(&pairs[i], line);
        used += (size_t)snprintf(text + used, LINE_MAX_BYTES + 5, "P%03d,%s", i + 1, line);
    }
    *out = text;
    *n = used;
    return LK_OK;
}

enum lk_code lk_pairs500_sha256(const struct lk_pair pairs[LK_N_PAIRS], char out[65]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n_digest = 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context) return lk_fail(LK_E_NOMEM, "out of memory for a SHA-256");
    bool ok = EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    for (int i = 0; ok && i < LK_N_PAIRS; i++) {
        char line[LINE_MAX_BYTES];
        ok = EVP_DigestUpdate(context, line, line_of(&pairs[i], line));
    }
    ok = ok && EVP_DigestFinal_ex(context, digest, &n_digest) && n_digest == 32;
    EVP_MD_CTX_free(context);
    if (!ok) return lk_fail(LK_E_INTERNAL, "cannot compute a SHA-256");
    for (int i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return LK_OK;
}

const char lk_sampler_pandas_warning[] =
    "sampler pandas restarts its generator in every stratum, so strata of equal length give the same positions; where "
    "the input lists each source's prompts in order, a sample of 504 holds only four of the twenty prompts";

/* Fisher-Yates from the end, each index by masked rejection, as NumPy's legacy generator draws it. */
void lk_numpy_permutation(uint32_t seed, int32_t *out, size_t n) {
    struct lk_rng rng;
    lk_rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++) out[i] = (int32_t)i;
    for (size_t i = n; i-- > 1;) {
        uint32_t mask = UINT32_MAX >> __builtin_clz((uint32_t)i), j;
        do j = lk_rng_u32(&rng) & mask;
        while (j > i);
        int32_t value = out[i];
        out[i] = out[j];
        out[j] = value;
    }
}

/* The strata of a design: where each level of its columns stands in their order. */
struct strata {
    const struct lk_sample_design *design;
    int *order[LK_SAMPLE_MAX_BY], *rank[LK_SAMPLE_MAX_BY]; /* [levels] */
    int n;
};

static const struct lk_sample_column *column_of(const struct strata *s, int k) {
    return &s->design->columns[s->design->by[k]];
}

/* Levels as the column has them; or by the order of their keys as text, which pandas sorts by. */
static void order_levels(const struct lk_sample_column *column, bool sorted, int *order) {
    for (int i = 0; i < column->n; i++) {
        int at = i;
        for (; sorted && at && strcmp(column->keys[order[at - 1]], column->keys[i]) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static void strata_free(struct strata *s) {
    for (int k = 0; k < s->design->n_by; k++) lk_free(s->order[k]);
}

static enum lk_code make_strata(struct strata *s, const struct lk_sample_design *design) {
    *s = (struct strata){.design = design, .n = 1};
    for (int k = 0; k < design->n_by; k++) {
        const struct lk_sample_column *column = column_of(s, k);
        const int n = column->n;
        if (n && s->n > LK_SAMPLE_MAX_STRATA / n)
            return lk_fail(LK_E_INPUT, "a sample takes at most %d strata: leave out some of what they differ in",
                           LK_SAMPLE_MAX_STRATA);
        s->n *= n;
        s->order[k] = lk_malloc((2 * (size_t)n + 1) * sizeof(int));
        if (!s->order[k]) return lk_fail(LK_E_NOMEM, "out of memory for the strata");
        s->rank[k] = s->order[k] + n;
        order_levels(column, design->sampler == LK_SAMPLER_PANDAS && !column->ordered, s->order[k]);
        for (int i = 0; i < n; i++) s->rank[k][s->order[k][i]] = i;
    }
    return LK_OK;
}

static enum lk_code stratum_of(const struct strata *s, const struct lk_sample_item *item, int32_t *out) {
    int at = 0;
    for (int k = 0; k < s->design->n_by; k++) {
        const int n = column_of(s, k)->n, level = item->level[s->design->by[k]];
        if (level < 0 || level >= n)
            return lk_fail(LK_E_INPUT, "item \"%s\": expected a level of %s for a stratified sample", item->id,
                           column_of(s, k)->name);
        at = at * n + s->rank[k][level];
    }
    *out = at;
    return LK_OK;
}

static void name_stratum(const struct strata *s, int at, char out[LK_STRATUM_NAME_BYTES]) {
    int level[LK_SAMPLE_MAX_BY];
    size_t n = 0;
    for (int k = s->design->n_by; k-- > 0;) {
        level[k] = s->order[k][at % column_of(s, k)->n];
        at /= column_of(s, k)->n;
    }
    out[0] = 0;
    for (int k = 0; k < s->design->n_by && n < LK_STRATUM_NAME_BYTES; k++)
        n +=
            (size_t)snprintf(out + n, LK_STRATUM_NAME_BYTES - n, "%s%s", k ? "|" : "", column_of(s, k)->keys[level[k]]);
}

static int by_id(const void *a, const void *b, void *items) {
    const struct lk_sample_item *all = items;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    int order = strcmp(all[x].id, all[y].id);
    return order ? order : (x > y) - (x < y);
}

static void sort_by_id(const struct lk_sample_item *items, int32_t *indices, size_t n) {
    if (n > 1) qsort_r(indices, n, sizeof *indices, by_id, (void *)(uintptr_t)items);
}

/* Puts the stratum's items, in input order, into the order in which they are drawn. */
static void draw(const struct lk_sample_item *items, int32_t *indices, size_t n, const char *name, uint64_t seed,
                 enum lk_sampler sampler, int32_t *scratch) {
    if (sampler == LK_SAMPLER_PANDAS) {
        lk_numpy_permutation((uint32_t)seed, scratch, n);
        for (size_t i = 0; i < n; i++) scratch[i] = indices[scratch[i]];
        if (n) memcpy(indices, scratch, n * sizeof *indices);
        return;
    }
    struct lk_stream stream;
    sort_by_id(items, indices, n);
    lk_stream_named(&stream, seed, name);
    lk_stream_shuffle(&stream, indices, n);
}

/* members [2 n], of [n] and starts [strata + 1] are room to work in. */
static enum lk_code sample_into(const struct lk_sample_item *items, size_t n, uint64_t seed, const struct strata *s,
                                int32_t *members, int32_t *of, size_t *starts, struct lk_sample *out) {
    const size_t wanted = (size_t)s->design->each;
    size_t next = 0;
    for (size_t i = 0; i < n; i++) {
        LK_TRY(stratum_of(s, &items[i], &of[i]));
        out->strata[of[i]].size++;
    }
    for (int at = 0; at < s->n; next += out->strata[at++].size) starts[at] = next;
    for (size_t i = 0; i < n; i++) members[starts[of[i]]++] = (int32_t)i;
    for (int at = 0; at < s->n; at++) {
        struct lk_stratum *stratum = &out->strata[at];
        int32_t *of_stratum = members + starts[at] - stratum->size;
        name_stratum(s, at, stratum->name);
        draw(items, of_stratum, stratum->size, stratum->name, seed, s->design->sampler, members + n);
        stratum->n = stratum->size < wanted ? stratum->size : wanted;
        out->n_short += stratum->size < wanted;
        for (size_t i = 0; i < stratum->n; i++) {
            out->items[out->n] = of_stratum[i];
            out->stratum[out->n++] = at;
        }
    }
    return LK_OK;
}

enum lk_code lk_sample_strata(const struct lk_sample_item *items, size_t n, const struct lk_sample_design *design,
                              uint64_t seed, struct lk_sample *out) {
    struct strata s;
    *out = (struct lk_sample){0};
    if (design->each < 1 || n > INT32_MAX / 2)
        return lk_fail(LK_E_INPUT, "a sample takes at least 1 item per stratum, got %d", design->each);
    if (design->n_by > LK_SAMPLE_MAX_BY)
        return lk_fail(LK_E_INPUT, "strata: expected at most %d factors, got %d", LK_SAMPLE_MAX_BY, design->n_by);
    if (design->sampler == LK_SAMPLER_PANDAS && seed > UINT32_MAX)
        return lk_fail(LK_E_INPUT, "sampler pandas: expected a seed below 2^32, got %llu", (unsigned long long)seed);
    enum lk_code rc = make_strata(&s, design);
    int32_t *members = rc ? NULL : lk_malloc((3 * n + 1) * sizeof *members);
    size_t *starts = rc ? NULL : lk_malloc(((size_t)s.n + 1) * sizeof *starts);
    if (!rc) {
        out->items = lk_malloc((n + 1) * sizeof *out->items);
        out->stratum = lk_malloc((n + 1) * sizeof *out->stratum);
        out->strata = lk_calloc((size_t)s.n + 1, sizeof *out->strata);
        out->n_strata = s.n;
        rc = members && starts && out->items && out->stratum && out->strata
                 ? sample_into(items, n, seed, &s, members, members + 2 * n, starts, out)
                 : lk_fail(LK_E_NOMEM, "out of memory for a sample of %zu items", n);
    }
    lk_free(starts);
    lk_free(members);
    strata_free(&s);
    if (rc) lk_sample_free(out);
    return rc;
}

void lk_sample_free(struct lk_sample *sample) {
    lk_free(sample->items);
    lk_free(sample->stratum);
    lk_free(sample->strata);
    *sample = (struct lk_sample){0};
}

enum lk_code lk_mosaic_draw(const struct lk_sample_item *items, size_t n, size_t n_wanted, uint64_t seed,
                            int32_t *out) {
    struct lk_stream stream;
    if (n < n_wanted || n > INT32_MAX)
        return lk_fail(LK_E_INPUT, "the mosaic takes %zu outputs, there are %zu", n_wanted, n);
    int32_t *all = lk_malloc(n * sizeof *all);
    if (!all) return lk_fail(LK_E_NOMEM, "out of memory for the mosaic's draw");
    for (size_t i = 0; i < n; i++) all[i] = (int32_t)i;
    sort_by_id(items, all, n);
    lk_stream_named(&stream, seed, "mosaic");
    lk_stream_shuffle(&stream, all, n);
    if (n_wanted) memcpy(out, all, n_wanted * sizeof *out);
    lk_free(all);
    return LK_OK;
}
