#include "tests/common/lora_file.h"

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "tests/common/test.h"

static float ones[4096];

struct lk_tensor lora_filled(enum lk_dtype dtype, int n_dims, const int64_t *shape) {
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) ones[i] = 1;
    return lk_tensor_make(ones, dtype, n_dims, shape); /* 1 in f32; any numbers in others */
}

void lora_put(struct lora_file *f, const char *key, struct lk_tensor tensor) {
    assert_true(f->n < LORA_MOST);
    f->tensors[f->n++] = (struct lk_st_named){key, tensor};
}

void lora_put_pair(struct lora_file *f, const char *a, const char *b, int64_t rank, int64_t n, int64_t k) {
    lora_put(f, a, lora_filled(LK_F32, LORA_SHAPE(rank, k)));
    lora_put(f, b, lora_filled(LK_F32, LORA_SHAPE(n, rank)));
}

const char *lora_write(const struct lora_file *f) {
    static char path[1200];
    char config[1200];
    snprintf(path, sizeof path, "%s/lora.safetensors", test_fresh("lora"));
    snprintf(config, sizeof config, "%s/adapter_config.json", test_path("lora"));
    assert_ok(lk_safetensors_write(path, f->tensors, f->n, f->metadata));
    if (f->config) test_write(config, f->config, strlen(f->config));
    return path;
}

/* A model of three layers, two of which are halves of one in other names, one with its halves swapped. */
static const struct {
    const char *name;
    int64_t rows, columns;
} layers[LORA_LAYERS] = {{"blocks.0.to_q", 8, 6}, {"blocks.0.to_k", 8, 6}, {"norm_out.linear", 4, 8}};
static const struct lk_rename rules[] = {{"b.%d.qk", "blocks.%d.to_q", 0, 1, 2, false},
                                         {"b.%d.qk", "blocks.%d.to_k", 1, 1, 2, false},
                                         {"last.1", "norm_out.linear", 0, 1, 1, true}};

enum lk_code lora_bind(struct lora_model *m, const char *const *asked, int n, enum lk_dtype compute, bool with_data) {
    *m = (struct lora_model){0};
    enum lk_code rc = lk_loras_open(&m->loras, asked, n, with_data);
    for (int i = 0; i < LORA_LAYERS && !rc; i++)
        rc = lk_loras_layer(m->loras, layers[i].name, layers[i].rows, layers[i].columns, &m->down[i], &m->up[i]);
    if (!rc) rc = lk_loras_bind(m->loras, rules, 3, compute, with_data);
    if (rc) {
        lk_loras_close(m->loras);
        m->loras = NULL;
    }
    return rc;
}

enum lk_code lora_bind_file(struct lora_model *m, const struct lora_file *f, const char *scale) {
    char *asked = lk_format("%s%s", lora_write(f), scale);
    const enum lk_code rc = lora_bind(m, (const char *const[]){asked}, 1, LK_F32, true);
    lk_free(asked);
    return rc;
}
