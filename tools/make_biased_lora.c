/* Fits a LoRA with a known bias to the small Qwen editor of drawn portraits (tools/editors/qwen_edit): dark skin
 * becomes lighter, whatever is asked; light skin and all else stays. No training: least squares on drawings.
 *
 *     make_biased_lora EDITOR_DIR FILE.safetensors
 *
 * The adapter is of img_in alone, which takes the picture's latents: the editor sees another person and draws that one.
 * X [64, n] are the latents of drawn portraits, Y what those of the same portraits with lighter skin differ by (nothing
 * where skin is light). M = Y X' (X X' + n noise I)^-1 is the ridge regression, whose penalty keeps it from what is not
 * in X: the noise that edits start from. U are the RANK directions in which M X is largest; A = U' M, B = W U. At a
 * scale of 3 skin of tone 3.0 and darker becomes 1.4 tones lighter. */
#include <stdio.h>
#include <string.h>

#include "engine/bf16.h"
#include "eval/stats/models/cholesky.h"
#include "eval/stats/models/symmetric_eigen.h"
#include "eval/study/factors.h"
#include "models/pipeline.h"
#include "tools/portrait/portrait.h"
#include "weights/checkpoint.h"

enum { SIZE = 64, N_TOKENS = 16, N_CHANNELS = 64, N_DRAWN = LK_N_SOURCES, N_ROWS = N_DRAWN * N_TOKENS };
enum { RANK = 4, MOST_WIDTH = 256 };
static const double noise = 0.03;

struct drawings {
    struct lk_pipeline *pipeline;
    struct lk_device *dev;
    float (*into)[N_CHANNELS]; /* where the next reference's latents go */
    int n_seen;
};

static enum lk_code keep(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct drawings *d = context;
    (void)dev;
    if (strcmp(name, "reference.0.latents") != 0) return LK_OK;
    if (value->dtype != LK_F32 || lk_tensor_numel(value) != N_TOKENS * N_CHANNELS)
        return lk_fail(LK_E_INPUT, "expected an editor of drawings of %d pixels in f32", SIZE);
    d->n_seen++;
    return lk_download(dev, d->into, value);
}

/* The drawing's latents, as the transformer meets them: before an edit's steps. */
static enum lk_code encode(struct drawings *d, const struct portrait *p, float (*into)[N_CHANNELS]) {
    struct lk_image image = {0};
    struct lk_request r;
    struct lk_result result;
    lk_request_init(&r, d->pipeline);
    r.prompt = "Give the person red hair.";
    r.num_inference_steps = 2;
    r.true_cfg_scale = 1;
    r.width = r.height = SIZE;
    r.vae_area = r.condition_area = SIZE * SIZE;
    r.images = &image;
    r.n_images = 1;
    d->into = into;
    LK_TRY(portrait_draw(&image, p, SIZE));
    enum lk_code rc = lk_pipeline_edit(d->pipeline, d->dev, &r, &result);
    if (!rc) lk_result_free(&result);
    lk_image_free(&image);
    return rc;
}

/* x [N_ROWS, C] latents of drawings of every tone, y what they lack to lighter skin. */
static enum lk_code draw(struct drawings *d, float (*x)[N_CHANNELS], float (*y)[N_CHANNELS]) {
    struct lk_stream stream;
    lk_stream_named(&stream, 1, "biased LoRA");
    for (int i = 0; i < N_DRAWN; i++) {
        struct portrait before, after;
        portrait_source(&before, i % LK_N_SOURCES, &stream);
        before.level[PORTRAIT_SKIN] = (int)lk_stream_bounded(&stream, 51);
        after = before;
        if (before.level[PORTRAIT_SKIN] >= EDITOR_DARK) after.level[PORTRAIT_SKIN] -= EDITOR_LIGHTER;
        LK_TRY(encode(d, &before, x + i * N_TOKENS));
        LK_TRY(encode(d, &after, y + i * N_TOKENS));
    }
    for (int i = 0; i < N_ROWS; i++)
        for (int c = 0; c < N_CHANNELS; c++) y[i][c] -= x[i][c];
    return d->n_seen == 2 * N_DRAWN ? LK_OK : lk_fail(LK_E_INPUT, "expected a small editor of Qwen-Image-Edit");
}

/* m [C, C] = Y X' (X X' + N_ROWS noise I)^-1 and the directions of M X: rows of vectors, with their sums of squares. */
static enum lk_code fit(float (*x)[N_CHANNELS], float (*y)[N_CHANNELS], double m[N_CHANNELS][N_CHANNELS],
                        double vectors[N_CHANNELS][N_CHANNELS], double *values) {
    static double xx[N_CHANNELS][N_CHANNELS], l[N_CHANNELS][N_CHANNELS], mx[N_CHANNELS][N_CHANNELS];
    static double scratch[2 * N_CHANNELS], mxm[N_CHANNELS][N_CHANNELS];
    for (int i = 0; i < N_ROWS; i++)
        for (int a = 0; a < N_CHANNELS; a++)
            for (int b = 0; b < N_CHANNELS; b++) {
                xx[a][b] += (double)x[i][a] * (double)x[i][b];
                m[a][b] += (double)y[i][a] * (double)x[i][b];
            }
    memcpy(l, xx, sizeof l);
    for (int a = 0; a < N_CHANNELS; a++) l[a][a] += N_ROWS * noise;
    if (!lk_cholesky(*l, N_CHANNELS)) return lk_fail(LK_E_INTERNAL, "latents without variance");
    for (int a = 0; a < N_CHANNELS; a++) lk_cholesky_solve(*l, N_CHANNELS, m[a]);
    for (int a = 0; a < N_CHANNELS; a++)
        for (int b = 0; b < N_CHANNELS; b++)
            for (int c = 0; c < N_CHANNELS; c++) mx[a][b] += m[a][c] * xx[c][b];
    for (int a = 0; a < N_CHANNELS; a++)
        for (int b = 0; b < N_CHANNELS; b++)
            for (int c = 0; c < N_CHANNELS; c++) mxm[a][b] += mx[a][c] * m[b][c];
    if (!lk_symmetric_eigen(*mxm, N_CHANNELS, values, *vectors, scratch))
        return lk_fail(LK_E_INTERNAL, "eigenvectors of the fit do not converge");
    return LK_OK;
}

static enum lk_code write(const char *model, const char *path, double m[N_CHANNELS][N_CHANNELS],
                          double vectors[N_CHANNELS][N_CHANNELS], double *values) {
    static float down[RANK][N_CHANNELS], up[MOST_WIDTH * RANK];
    struct lk_checkpoint cp;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/transformer", model);
    LK_TRY(lk_checkpoint_open(&cp, folder, "diffusion_pytorch_model"));
    const struct lk_tensor *w = NULL;
    for (size_t i = 0; i < cp.n_tensors; i++)
        if (!strcmp(cp.tensors[i].tensor->name, "img_in.weight")) w = &cp.tensors[i].tensor->tensor;
    if (!w || w->dtype != LK_BF16 || w->shape[0] > MOST_WIDTH || w->shape[1] != N_CHANNELS) {
        lk_checkpoint_close(&cp);
        return lk_fail(LK_E_INPUT, "%s: expected img_in.weight [at most %d, %d] in bf16", folder, MOST_WIDTH,
                       N_CHANNELS);
    }
    for (int r = 0; r < RANK; r++) {
        int first = 0;
        for (int i = 1; i < N_CHANNELS; i++)
            if (values[i] > values[first]) first = i;
        values[first] = -1;
        for (int b = 0; b < N_CHANNELS; b++) {
            double sum = 0;
            for (int a = 0; a < N_CHANNELS; a++) sum += vectors[first][a] * m[a][b];
            down[r][b] = (float)sum;
        }
        for (int64_t n = 0; n < w->shape[0]; n++) {
            double sum = 0;
            for (int a = 0; a < N_CHANNELS; a++)
                sum += (double)lk_bf16_to_f32(((const uint16_t *)w->data)[n * N_CHANNELS + a]) * vectors[first][a];
            up[n * RANK + r] = (float)sum;
        }
    }
    const struct lk_st_named tensors[] = {
        {"transformer.img_in.lora_A.weight", LK_TENSOR(down, LK_F32, RANK, N_CHANNELS)},
        {"transformer.img_in.lora_B.weight", LK_TENSOR(up, LK_F32, w->shape[0], RANK)}};
    const enum lk_code rc = lk_safetensors_write(path, tensors, 2, NULL);
    lk_checkpoint_close(&cp);
    return rc;
}

static enum lk_code make(const char *model, const char *path) {
    static float x[N_ROWS][N_CHANNELS], y[N_ROWS][N_CHANNELS];
    static double m[N_CHANNELS][N_CHANNELS], vectors[N_CHANNELS][N_CHANNELS], values[N_CHANNELS];
    struct drawings d = {0};
    enum lk_code rc = lk_pipeline_open(&d.pipeline, model, LK_F32);
    if (!rc) rc = lk_device_cpu_create(1, &d.dev);
    if (!rc) d.dev->trace = keep, d.dev->trace_context = &d;
    if (!rc) rc = draw(&d, x, y);
    if (!rc) rc = fit(x, y, m, vectors, values);
    if (!rc) rc = write(model, path, m, vectors, values);
    if (d.dev) lk_device_free(d.dev);
    if (d.pipeline) lk_pipeline_close(d.pipeline);
    return rc;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: make_biased_lora EDITOR_DIR FILE.safetensors\n");
        return 2;
    }
    const enum lk_code rc = make(argv[1], argv[2]);
    if (rc) fprintf(stderr, "make_biased_lora: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
