/* Where a picture looks at words of its prompt: the probe's weights are the mean of those that the traced queries and
 * keys give, are diffusers' (generate_attended.py), and looking changes no bit of the picture. */
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/attended.h"
#include "models/tokenizer/tokenizer.h"
#include "tests/common/test.h"
#include "tests/common/tiny_edit.h"

enum { FIRST = TINY_EDITS - TINY_FAMILIES, N_WORDS = 3, MOST_LAYERS = 16, MOST_HEADS = 8 };

static const char prompt[] = "A Zo\xc3\xab of a male thief, an old man; no mane.";
static const char *const words[N_WORDS] = {"male", "old", "man"};
static struct lk_span spans[N_WORDS];

static int find_words(void **state) {
    (void)state;
    for (int i = 0; i < N_WORDS; i++)
        spans[i] = (struct lk_span){(size_t)(strstr(prompt, words[i]) - prompt), strlen(words[i]), 0};
    return 0;
}

static void open_job(struct tiny_job *job, int family, enum lk_dtype dtype) {
    tiny_job_open(job, &tiny_edits[FIRST + family], dtype, 2);
    job->request.prompt = prompt;
    job->request.seed = 7;
    if (family == 0) job->request.max_sequence_length = 400;
}

/* From what the trace shows: the full attention of each layer and head, row after row. */
struct stored {
    struct lk_tokenizer *tokenizer;
    int64_t n_ids, n_txt, n_query, n_skipped; /* rows without queries, of text in the last layer */
    int32_t *ids;
    float *query;
    double weights[MOST_LAYERS][MOST_HEADS]; /* mean over the words' tokens and the picture's rows, summed over steps */
    double off;                              /* of a row's sum from 1 */
    bool chosen[1024];                       /* text rows */
    int n_tokens, n_layers, layer;
};

/* Row by row: a window's lie apart. */
static float *download(struct lk_device *dev, const struct lk_tensor *t) {
    const int64_t width = lk_tensor_row_numel(t);
    float *out = malloc((size_t)lk_tensor_numel(t) * sizeof *out);
    for (int64_t i = 0; i < t->shape[0]; i++) {
        struct lk_tensor row = lk_tensor_rows(t, i, 1);
        row.ld = width;
        assert_ok(lk_download(dev, out + i * width, &row));
        for (int64_t c = width; t->dtype == LK_BF16 && c-- > 0;)
            out[i * width + c] = lk_bf16_to_f32(((uint16_t *)(out + i * width))[c]);
    }
    return out;
}

static int64_t count_ids(const struct stored *s, size_t n_bytes, int32_t **ids) {
    size_t n;
    assert_ok(lk_tokenizer_encode(s->tokenizer, prompt, n_bytes, ids, &n));
    return (int64_t)n;
}

/* Tokens of a word are those that the prompt up to its end has more than the prompt before its space. */
static void choose(struct stored *s) {
    int32_t *whole, *part;
    const int64_t n = count_ids(s, sizeof prompt - 1, &whole);
    int64_t at = s->n_ids - n;
    while (at >= 0 && memcmp(s->ids + at, whole, (size_t)n * sizeof *whole) != 0) at--;
    assert_true(at >= 0);
    for (int i = 0; i < N_WORDS; i++) {
        int64_t first = count_ids(s, spans[i].first - 1, &part);
        lk_free(part);
        int64_t end = count_ids(s, spans[i].first + spans[i].n, &part);
        assert_memory_equal(part, whole, (size_t)end * sizeof *part);
        lk_free(part);
        for (; first < end; first++, s->n_tokens++) s->chosen[at + first - (s->n_ids - s->n_txt)] = true;
    }
    lk_free(whole);
}

static void attend(struct stored *s, const struct lk_tensor *t, const float *key) {
    const int64_t n = t->shape[0], heads = t->shape[1], width = t->shape[2];
    double *row = malloc((size_t)n * sizeof *row);
    assert_true(heads <= MOST_HEADS && s->layer < MOST_LAYERS && s->n_txt <= 1024);
    for (int64_t k = 0; k < heads * (n - s->n_txt); k++) {
        const int64_t h = k % heads, i = s->n_txt + k / heads;
        double sum = 0, most = -INFINITY, whole = 0;
        for (int64_t j = 0; j < n; j++) {
            row[j] = 0;
            for (int64_t c = 0; c < width; c++)
                row[j] +=
                    (double)s->query[((i - s->n_skipped) * heads + h) * width + c] * key[(j * heads + h) * width + c];
            row[j] /= sqrt((double)width);
            most = fmax(most, row[j]);
        }
        for (int64_t j = 0; j < n; j++) sum += row[j] = exp(row[j] - most);
        for (int64_t j = 0; j < n; j++) {
            whole += row[j] / sum;
            if (j < s->n_txt && s->chosen[j])
                s->weights[s->layer][h] += row[j] / sum / (double)((n - s->n_txt) * s->n_tokens);
        }
        s->off = fmax(s->off, fabs(whole - 1));
    }
    free(row);
}

static enum lk_code store(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct stored *s = context;
    const char *end = strrchr(name, '.');
    if (strstr(name, "uncond")) return LK_OK;
    if (strstr(name, "text_encoder.ids")) {
        s->n_ids = value->shape[0];
        s->ids = malloc(lk_tensor_bytes(value));
        assert_ok(lk_download(dev, s->ids, value));
    }
    if (strstr(name, "prompt_embeds")) {
        s->n_txt = value->shape[0];
        choose(s);
    }
    if (end && !strcmp(end, ".query")) {
        s->query = download(dev, value);
        s->n_query = value->shape[0];
    }
    if (!end || strcmp(end, ".key") != 0) return LK_OK;
    float *key = download(dev, value);
    s->n_skipped = value->shape[0] - s->n_query;
    attend(s, value, key);
    s->layer = (s->layer + 1) % s->n_layers;
    free(s->query);
    free(key);
    return LK_OK;
}

static void open_tokenizer(struct stored *s, int family) {
    char path[512];
    for (int i = 0; i < 2 && !s->tokenizer; i++) {
        snprintf(path, sizeof path, "%s/%s/tokenizer.json", tiny_edits[FIRST + family].checkpoint,
                 i ? "processor" : "tokenizer");
        lk_tokenizer_open(&s->tokenizer, path);
    }
    assert_non_null(s->tokenizer);
}

static void mean_of_stored_weights(void **state) {
    (void)state;
    for (int k = 0; k < 2 * TINY_FAMILIES; k++) {
        const bool bf16 = k % 2;
        struct lk_device *dev;
        struct tiny_job job;
        struct lk_attended attended = {.spans = spans, .n_spans = N_WORDS};
        struct lk_result looked, plain;
        struct stored s = {0};
        int64_t live = lk_alloc_live();
        assert_ok(lk_device_cpu_create(2, &dev));
        open_job(&job, k / 2, bf16 ? LK_BF16 : LK_F32);
        assert_ok(lk_attended_edit(job.pipeline, dev, &job.request, &attended, &looked));
        assert_null(dev->trace);
        open_tokenizer(&s, k / 2);
        s.n_layers = attended.n_layers;
        dev->trace = store;
        dev->trace_context = &s;
        assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &plain));
        dev->trace = NULL;
        assert_memory_equal(looked.image.pixels, plain.image.pixels,
                            (size_t)plain.image.width * (size_t)plain.image.height * 3);
        assert_int_equal(attended.n_tokens, s.n_tokens);
        assert_int_equal(attended.n_steps, looked.n_steps);
        assert_true(s.off < 1e-12);
        double worst = 0;
        for (int layer = 0; layer < attended.n_layers; layer++)
            for (int i = attended.first[layer]; i < attended.first[layer + 1]; i++)
                worst = fmax(
                    worst,
                    fabs(s.weights[layer][i - attended.first[layer]] / attended.n_steps / attended.weights[i] - 1));
        assert_true(worst < (bf16 ? 5e-3 : 1e-6));          /* seen: 8e-4, 6e-8 */
        assert_true(attended.worst < (bf16 ? 1e-2 : 5e-6)); /* seen: 0, 4e-7 */
        lk_result_free(&looked);
        lk_result_free(&plain);
        lk_attended_free(&attended);
        lk_tokenizer_free(s.tokenizer);
        free(s.ids);
        tiny_job_close(&job);
        lk_device_free(dev);
        assert_int_equal(lk_alloc_live(), live);
    }
}

static void as_diffusers(void **state) {
    static const char *const names[] = {"flux2", "qwen_edit"};
    size_t n_bytes;
    char *text = test_read("golden/data/attended.txt", &n_bytes), *at = strchr(text, '\n');
    (void)state;
    for (int family = 0; family < 2; family++) {
        struct lk_device *dev;
        struct tiny_job job;
        struct lk_attended attended = {.spans = spans, .n_spans = N_WORDS};
        struct lk_result result;
        char name[32];
        int n, used;
        double worst = 0;
        assert_int_equal(sscanf(at, "%31s %d%n", name, &n, &used), 2);
        assert_string_equal(name, names[family]);
        at += used;
        assert_ok(lk_device_cpu_create(2, &dev));
        open_job(&job, family, LK_F32);
        job.request.guidance_scale = family ? job.request.guidance_scale : 4;
        job.request.true_cfg_scale = family ? 4 : job.request.true_cfg_scale;
        assert_ok(lk_attended_edit(job.pipeline, dev, &job.request, &attended, &result));
        assert_int_equal(attended.first[attended.n_layers], n);
        for (int i = 0; i < n; i++) worst = fmax(worst, fabs(attended.weights[i] / strtod(at, &at) - 1));
        assert_true(worst < 1e-5); /* seen: 6e-7 */
        assert_string_equal(attended.layers[0], family ? "block.0" : "double.0");
        if (!family) assert_string_equal(attended.layers[attended.n_layers - 1], "single.2");
        lk_result_free(&result);
        lk_attended_free(&attended);
        tiny_job_close(&job);
        lk_device_free(dev);
    }
    free(text);
}

static enum lk_code take_much(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct lk_tensor room;
    (void)context, (void)value;
    if (!strstr(name, ".key")) return LK_OK;
    const size_t mark = lk_arena_mark(&dev->arena);
    LK_TRY(LK_NEW(&dev->arena, &room, LK_F32, 4 << 20));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

/* More than all the rest: there is room for it where it is met in the plan. */
static void what_a_trace_takes_is_planned(void **state) {
    (void)state;
    for (int planned = 0; planned < 2; planned++) {
        struct lk_device *dev;
        struct tiny_job job;
        struct lk_result result;
        assert_ok(lk_device_cpu_create(1, &dev));
        open_job(&job, 0, LK_BF16);
        dev->trace = take_much;
        dev->trace_plans = planned;
        assert_int_equal(lk_pipeline_edit(job.pipeline, dev, &job.request, &result) == LK_OK, planned);
        lk_result_free(&result);
        tiny_job_close(&job);
        lk_device_free(dev);
    }
}

static enum lk_code look(struct tiny_job *job, struct lk_device *dev) {
    struct lk_attended attended = {.spans = spans, .n_spans = N_WORDS};
    struct lk_result result;
    enum lk_code rc = lk_attended_edit(job->pipeline, dev, &job->request, &attended, &result);
    lk_result_free(&result);
    lk_attended_free(&attended);
    return rc;
}

static void refused(void **state) {
    struct lk_device *dev;
    struct tiny_job job;
    (void)state;
    assert_ok(lk_device_cpu_create(1, &dev));
    open_job(&job, 0, LK_BF16);
    job.request.max_sequence_length = 40;
    assert_fails(look(&job, dev), LK_E_INPUT, "cut off by --max-sequence-length");
    job.request.max_sequence_length = 400;
    job.request.n_images = 1;
    assert_fails(look(&job, dev), LK_E_USAGE, "from text alone");
    job.request.n_images = 0;
    int64_t live = lk_alloc_live();
    enum lk_code rc = LK_E_NOMEM;
    for (int64_t n = 1; rc; n += 1 + n / 8) {
        lk_alloc_fail_at(n);
        rc = look(&job, dev);
        lk_alloc_fail_at(0);
        assert_true(!rc || rc == LK_E_NOMEM);
        assert_int_equal(lk_alloc_live(), live);
    }
    tiny_job_close(&job);
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_of_stored_weights),
        cmocka_unit_test(as_diffusers),
        cmocka_unit_test(what_a_trace_takes_is_planned),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, find_words, NULL);
}
