#include "models/text/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/alloc.h"

enum lk_code lk_sampler_init(struct lk_sampler *s, const struct lk_generation_config *config, int64_t n_vocab,
                             int64_t n_valid, uint64_t seed) {
    *s = (struct lk_sampler){.config = *config, .n_vocab = n_vocab, .n_valid = n_valid < n_vocab ? n_valid : n_vocab};
    LK_TRY(lk_generation_config_check(config));
    size_t n = (size_t)n_vocab;
    s->seen = lk_calloc(n, sizeof *s->seen);
    s->scores = lk_malloc(n * sizeof *s->scores);
    s->candidates = lk_malloc(n * sizeof *s->candidates);
    s->probabilities = lk_malloc(n * sizeof *s->probabilities);
    lk_rng_seed(&s->rng, seed);
    if (s->seen && s->scores && s->candidates && s->probabilities) return LK_OK;
    lk_sampler_free(s);
    return lk_fail(LK_E_NOMEM, "sampler: no memory for %zu scores", n);
}

void lk_sampler_free(struct lk_sampler *s) {
    lk_free(s->seen);
    lk_free(s->scores);
    lk_free(s->candidates);
    lk_free(s->probabilities);
    *s = (struct lk_sampler){0};
}

void lk_sampler_see(struct lk_sampler *s, const int32_t *ids, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (ids[i] >= 0 && ids[i] < s->n_vocab) s->seen[ids[i]] = true;
}

static void penalize(struct lk_sampler *s) {
    float penalty = (float)s->config.repetition_penalty;
    if (s->config.repetition_penalty == 1) return;
    for (int64_t i = 0; i < s->n_valid; i++)
        if (s->seen[i]) s->scores[i] = s->scores[i] < 0 ? s->scores[i] * penalty : s->scores[i] / penalty;
}

/* The k-th highest score, by a heap of the k highest with the least at its top. */
static float kth_highest(const struct lk_sampler *s, int64_t k, float *heap) {
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_valid; i++) {
        float score = s->scores[i];
        if (n == k && score <= heap[0]) continue;
        int64_t at = 0, child;
        if (n < k) {
            at = n++;
            for (; at && heap[(at - 1) / 2] > score; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
        } else {
            while ((child = 2 * at + 1) < n) {
                if (child + 1 < n && heap[child + 1] < heap[child]) child++;
                if (heap[child] >= score) break;
                heap[at] = heap[child];
                at = child;
            }
        }
        heap[at] = score;
    }
    return heap[0];
}

/* Scores as high as the k-th highest stay, all of them. */
static void keep_top_k(struct lk_sampler *s) {
    if (!s->config.top_k || s->config.top_k >= s->n_valid) return;
    float least = kth_highest(s, s->config.top_k, s->probabilities);
    for (int64_t i = 0; i < s->n_valid; i++)
        if (s->scores[i] < least) s->scores[i] = -INFINITY;
}

static int ascending(const void *a, const void *b) {
    const struct lk_sampler_candidate *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Takes out the least likely ids whose probabilities together are at most 1 - top_p; the most likely one stays. Of
 * equal scores the smaller id goes first; the reference leaves open which. */
static void keep_top_p(struct lk_sampler *s) {
    if (s->config.top_p >= 1) return;
    int64_t n = 0;
    double sum = 0, cumulative = 0;
    for (int64_t i = 0; i < s->n_valid; i++)
        if (s->scores[i] > -INFINITY) s->candidates[n++] = (struct lk_sampler_candidate){s->scores[i], (int32_t)i};
    qsort(s->candidates, (size_t)n, sizeof *s->candidates, ascending);
    float most = s->candidates[n - 1].score, limit = (float)(1 - s->config.top_p);
    for (int64_t i = 0; i < n; i++) sum += expf(s->candidates[i].score - most);
    for (int64_t i = 0; i < n - 1; i++) {
        cumulative += expf(s->candidates[i].score - most) / (float)sum;
        if ((float)cumulative <= limit) s->scores[s->candidates[i].id] = -INFINITY;
    }
}

/* A temperature near 0 can make finite logits infinite: the scores are looked at after it. */
static enum lk_code check_finite(const struct lk_sampler *s) {
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_valid; i++) n += !isfinite(s->scores[i]);
    if (!n) return LK_OK;
    return lk_fail(LK_E_NONFINITE,
                   "logits: %lld values are NaN or Inf; the weights or the dtype are at fault: run `verify`, try "
                   "--dtype f32",
                   (long long)n);
}

enum lk_code lk_sampler_process(struct lk_sampler *s, const float *logits) {
    for (int64_t i = 0; i < s->n_vocab; i++) s->scores[i] = i < s->n_valid ? logits[i] : -INFINITY;
    penalize(s);
    float temperature = s->config.do_sample ? (float)s->config.temperature : 1;
    for (int64_t i = 0; i < s->n_valid; i++) s->scores[i] /= temperature;
    LK_TRY(check_finite(s));
    if (!s->config.do_sample) return LK_OK;
    keep_top_k(s);
    keep_top_p(s);
    return LK_OK;
}

void lk_sampler_probabilities(const struct lk_sampler *s, float *probabilities) {
    float most = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < s->n_vocab; i++) most = s->scores[i] > most ? s->scores[i] : most;
    for (int64_t i = 0; i < s->n_vocab; i++)
        sum += probabilities[i] = s->scores[i] > -INFINITY ? expf(s->scores[i] - most) : 0;
    for (int64_t i = 0; i < s->n_vocab; i++) probabilities[i] /= (float)sum;
}

/* torch.multinomial: the first maximum of p / q with q from the exponential distribution, one for each id. */
static int32_t draw(struct lk_sampler *s) {
    int32_t best = -1;
    int64_t next = 0; /* id of the generator's next value */
    float highest = 0;
    lk_sampler_probabilities(s, s->probabilities);
    for (int64_t i = 0; i < s->n_valid; i++) {
        if (!(s->probabilities[i] > 0)) continue;
        lk_rng_skip_exponential(&s->rng, (size_t)(i - next));
        float ratio = s->probabilities[i] / lk_rng_exponential_f32(&s->rng);
        next = i + 1;
        if (best >= 0 && ratio <= highest) continue;
        best = (int32_t)i;
        highest = ratio;
    }
    lk_rng_skip_exponential(&s->rng, (size_t)(s->n_vocab - next));
    return best;
}

static int32_t first_highest(const struct lk_sampler *s) {
    int64_t best = 0;
    for (int64_t i = 1; i < s->n_valid; i++)
        if (s->scores[i] > s->scores[best]) best = i;
    return (int32_t)best;
}

int32_t lk_sampler_pick(struct lk_sampler *s) {
    int32_t id = s->config.do_sample ? draw(s) : first_highest(s);
    s->seen[id] = true;
    return id;
}
