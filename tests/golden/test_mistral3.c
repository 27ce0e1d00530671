/* Mistral-Small-3 with the Pixtral vision tower against transformers' (tests/golden/README.md): stages of the prompt,
 * replies to it, and pictures on their way to the tower. Arguments choose cases by a part of "CONFIG/CASE MODE", MODE
 * one of f32, bf16, reply, or "pictures": `test_mistral3 "silu/two f32"`. */
#include "tests/common/golden.h"
#include "tests/common/picture.h"
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "models/text/generate.h"
#include "models/text/mistral3.h"
#include "models/text/pixtral_image.h"

#define FOLDER "golden/data/mistral3/"

struct item {
    const char *config, *name;
    enum { F32, BF16, REPLY } mode;
    char label[64];
};

struct fixture {
    struct golden golden;
    struct lk_checkpoint checkpoint;
    struct lk_mistral3 m;
    struct lk_vlm view;
    struct lk_device *dev;
    struct lk_generate_request request;
    int32_t *ids;
    struct lk_vlm_image images[LK_VLM_MAX_IMAGES];
    enum lk_dtype dtype;
};

static void read_input(struct fixture *f) {
    struct lk_generate_request *q = &f->request;
    size_t n;
    float *ids = golden_values(&f->golden, "input.ids", &n);
    f->ids = calloc(n, sizeof *f->ids);
    assert_non_null(f->ids);
    for (size_t i = 0; i < n; i++) f->ids[i] = (int32_t)ids[i];
    free(ids);
    q->ids = f->ids;
    q->n_ids = (int64_t)n;
    char grids[128], name[64];
    snprintf(grids, sizeof grids, "%s", golden_text(&f->golden, "grids"));
    for (char *rest, *grid = strtok_r(grids, " ", &rest); grid; grid = strtok_r(NULL, " ", &rest)) {
        struct lk_vlm_image *image = &f->images[q->n_images];
        assert_int_equal(sscanf(grid, "%dx%d", &image->grid_h, &image->grid_w), 2);
        snprintf(name, sizeof name, "input.image.%d", q->n_images++);
        float *rows = golden_values(&f->golden, name, &n);
        for (size_t i = 0; i < n; i++) rows[i] = (rows[i] - 117.25f) / 53; /* pictures() of the generator */
        image->rows = rows;
    }
    q->images = f->images;
}

static void open_fixture(struct fixture *f, const struct item *item) {
    char path[256];
    struct lk_config *json;
    struct lk_mistral3_config config;
    memset(f, 0, sizeof *f);
    f->dtype = item->mode == BF16 ? LK_BF16 : LK_F32;
    snprintf(path, sizeof path, FOLDER "%s/checkpoint/config.json", item->config);
    assert_ok(lk_config_open(&json, path));
    assert_ok(lk_mistral3_config_read(&config, json));
    snprintf(path, sizeof path, FOLDER "%s/checkpoint", item->config);
    assert_ok(lk_checkpoint_open(&f->checkpoint, path, "model"));
    assert_ok(lk_mistral3_bind(&f->m, &config, &f->checkpoint, f->dtype));
    f->view = lk_mistral3_view(&f->m);
    snprintf(path, sizeof path, FOLDER "%s/cases/%s.safetensors", item->config, item->name);
    golden_open(&f->golden, path, item->label);
    assert_ok(lk_device_cpu_create(1, &f->dev));
    lk_generation_config_init(&f->request.config);
    f->request.config.max_new_tokens = 1;
    f->request.n_valid_ids = config.text.vocab_size;
    read_input(f);
}

static void close_fixture(struct fixture *f) {
    for (int i = 0; i < f->request.n_images; i++) free((void *)(uintptr_t)f->images[i].rows);
    free(f->ids);
    lk_device_free(f->dev);
    lk_mistral3_free(&f->m);
    lk_checkpoint_close(&f->checkpoint);
}

static void test_stages(void **state) {
    struct fixture f;
    struct golden_check check;
    struct lk_generation out;
    open_fixture(&f, *state);
    golden_check_begin(&check, &f.golden, f.dtype == LK_BF16 ? GOLDEN_BF16 : GOLDEN_F32);
    f.dev->trace = golden_check_trace;
    f.dev->trace_context = &check;
    assert_ok(lk_generate(f.dev, &f.view, f.dtype, &f.request, 1, 1, &out));
    lk_generation_free(&out);
    close_fixture(&f);
    golden_check_end(&check);
}

/* Greedy and drawn replies, each asked twice or more: one at a time, four or all together, with and without their
 * shared beginning computed once. The plan's memory, keys and values in it, is what is used, to the byte. */
static void test_replies(void **state) {
    static const char *const names[] = {"greedy",     "t0.1.seed1", "t0.1.seed2", "t0.1.seed3",
                                        "t1.0.seed1", "t1.0.seed2", "t1.0.seed3"};
    enum { N_NAMES = sizeof names / sizeof *names, N = 16 };
    struct fixture f;
    struct lk_generate_request requests[N];
    struct lk_generation out[N];
    open_fixture(&f, *state);
    for (int i = 0; i < N; i++) {
        requests[i] = f.request;
        requests[i].config.max_new_tokens = 64;
        requests[i].config.top_k = 0;
        requests[i].config.do_sample = i % N_NAMES > 0;
        requests[i].config.temperature = i % N_NAMES > 3 ? 1 : 0.1;
        requests[i].seed = (uint64_t)(i % N_NAMES - 1) % 3 + 1;
        requests[i].n_shared = f.request.n_ids - 2;
        requests[i].n_shared_images = f.request.n_images;
    }
    for (int k = 0; k < 6; k++) {
        struct lk_device *dev;
        for (int i = 0; i < N; i++) requests[i].shared_key = k % 2;
        assert_ok(lk_device_cpu_create(1, &dev));
        assert_ok(lk_generate(dev, &f.view, f.dtype, requests, N, 1 << k / 2 * 2, out));
        assert_int_equal(out[0].peak_bytes, dev->arena.capacity);
        lk_device_free(dev);
        for (int i = 0; i < N; i++) {
            char key[64];
            size_t n;
            snprintf(key, sizeof key, "input.reply.%s", names[i % N_NAMES]);
            float *expected = golden_values(&f.golden, key, &n);
            assert_int_equal(out[i].n, n);
            for (size_t j = 0; j < n; j++)
                if (out[i].ids[j] != (int32_t)expected[j])
                    fail_msg("%s: id %zu: expected %d, got %d", names[i % N_NAMES], j, (int)expected[j], out[i].ids[j]);
            free(expected);
            lk_generation_free(&out[i]);
        }
    }
    close_fixture(&f);
    golden_close(&f.golden);
}

static struct lk_pixtral_processor processor(int longest_edge) {
    return (struct lk_pixtral_processor){.patch_size = 14,
                                         .merge_size = 2,
                                         .longest_edge = longest_edge,
                                         .mean = {0.48145466f, 0.4578275f, 0.40821073f},
                                         .std = {0.26862954f, 0.26130258f, 0.27577711f}};
}

static void check_picture(const char *line) {
    int kind, seed, width, height, channels, edge, h, w, grid_h, grid_w;
    char digest[TEST_DIGEST_DIGITS + 1];
    assert_int_equal(sscanf(line, "picture %d %d %d %d %d %d %d %d %16s", &kind, &seed, &width, &height, &channels,
                            &edge, &h, &w, digest),
                     9);
    struct lk_pixtral_processor p = processor(edge);
    struct lk_image image = test_picture(kind, seed, width, height, channels);
    float *rows;
    assert_ok(lk_pixtral_rows(&p, &image, &rows, &grid_h, &grid_w));
    if (grid_h != h || grid_w != w) fail_msg("%s: grid %d x %d", line, grid_h, grid_w);
    test_digest_is(rows, (size_t)(h * w) * 3 * 14 * 14 * sizeof *rows, digest, line);
    lk_free(rows);
    lk_image_free(&image);
}

static void test_pictures(void **state) {
    size_t n;
    int n_sizes = 0, n_pictures = 0;
    char *text = test_read("golden/data/pixtral.txt", &n), *rest;
    struct lk_pixtral_processor p = processor(1540);
    (void)state;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        int width, height, w, h, out_w, out_h;
        if (sscanf(line, "size %d %d %d %d", &width, &height, &w, &h) == 4) {
            assert_ok(lk_pixtral_size(&p, width, height, &out_w, &out_h));
            if (w != out_w || h != out_h) fail_msg("%s: got %d x %d", line, out_w, out_h);
            n_sizes++;
        } else {
            check_picture(line);
            n_pictures++;
        }
    }
    assert_true(n_sizes == 400 && n_pictures == 400);
    free(text);
}

static void test_pooled(void **state) {
    (void)state;
    golden_check_pooled();
}

static bool chosen(const char *label, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strstr(label, argv[i])) return true;
    return argc < 2;
}

int main(int argc, char **argv) {
    static const char *const configs[] = {"silu", "gelu", "single"}, *const cases[] = {"text", "one", "two"};
    static const char *const modes[] = {"f32", "bf16", "reply"};
    static struct item items[27];
    struct CMUnitTest tests[29];
    size_t n = 0;
    for (int i = 0; i < 27; i++) {
        items[i] = (struct item){.config = configs[i / 9], .name = cases[i / 3 % 3], .mode = i % 3};
        snprintf(items[i].label, sizeof items[i].label, "%s/%s %s", items[i].config, items[i].name, modes[i % 3]);
        if (!chosen(items[i].label, argc, argv)) continue;
        tests[n++] = (struct CMUnitTest){.name = items[i].label,
                                         .test_func = items[i].mode == REPLY ? test_replies : test_stages,
                                         .initial_state = &items[i]};
    }
    if (chosen("pictures", argc, argv))
        tests[n++] = (struct CMUnitTest){.name = "pictures", .test_func = test_pictures};
    if (argc < 2) tests[n++] = (struct CMUnitTest){.name = "all bf16", .test_func = test_pooled};
    if (!n) {
        fprintf(stderr, "no case matches\n");
        return 1;
    }
    int failed = _cmocka_run_group_tests("mistral3 goldens", tests, n, NULL, NULL);
    golden_print_table();
    return failed;
}
