/* Both of CLIP's towers against transformers (generate_clip.py): projected states and cosines of texts and pictures of
 * five sizes and kinds, from a config as the released file has it. */
#include <math.h>
#include <string.h>

#include "models/clip/clip.h"
#include "tests/common/golden.h"
#include "tests/common/test.h"

enum { N_TEXTS = 4, N_PICTURES = 5, WIDTH = 16 };
static const char folder[] = "golden/data/clip/checkpoint";

static double worst_of(const float *a, const float *b) {
    double most = 0;
    for (int i = 0; i < WIDTH; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static struct lk_image picture(const struct golden *g, int i) {
    char name[32];
    const struct lk_st_tensor *t;
    struct lk_image image;
    snprintf(name, sizeof name, "pictures.%d", i);
    assert_non_null(t = lk_safetensors_find(&g->st, name));
    assert_ok(lk_image_new(&image, (int)t->tensor.shape[1], (int)t->tensor.shape[0], (int)t->tensor.shape[2]));
    memcpy(image.pixels, t->tensor.data, (size_t)(t->tensor.shape[0] * t->tensor.shape[1] * t->tensor.shape[2]));
    return image;
}

static void as_transformers(void **state) {
    (void)state;
    float texts[N_TEXTS][LK_CLIP_WIDTH_MAX], pictures[N_PICTURES][LK_CLIP_WIDTH_MAX];
    struct golden golden;
    struct lk_clip *clip;
    char words[1024], *rest = words;
    double worst_text = 0, worst_picture = 0, worst_cosine = 0;
    size_t n;
    golden_open(&golden, "golden/data/clip/clip.safetensors", "clip");
    snprintf(words, sizeof words, "%s", golden_text(&golden, "texts"));
    float *of_texts = golden_values(&golden, "text_embeds", &n);
    assert_int_equal(n, N_TEXTS * WIDTH);
    float *of_pictures = golden_values(&golden, "image_embeds", &n);
    assert_int_equal(n, N_PICTURES * WIDTH);
    float *cosines = golden_values(&golden, "cosines", &n);
    assert_int_equal(n, N_PICTURES * N_TEXTS);
    assert_ok(lk_clip_open(&clip, folder, 1));
    for (int i = 0; i < N_TEXTS; i++) {
        int n_cut;
        assert_ok(lk_clip_text(clip, strsep(&rest, "|"), texts[i], &n_cut));
        assert_int_equal(n_cut > 0, i == N_TEXTS - 1);
        worst_text = fmax(worst_text, worst_of(texts[i], of_texts + (ptrdiff_t)i * WIDTH));
    }
    for (int i = 0; i < N_PICTURES; i++) {
        struct lk_image image = picture(&golden, i);
        assert_ok(lk_clip_image(clip, &image, pictures[i]));
        lk_image_free(&image);
        worst_picture = fmax(worst_picture, worst_of(pictures[i], of_pictures + (ptrdiff_t)i * WIDTH));
        for (int k = 0; k < N_TEXTS; k++)
            worst_cosine =
                fmax(worst_cosine, fabs(lk_clip_cosine(clip, pictures[i], texts[k]) - cosines[i * N_TEXTS + k]));
    }
    print_message("texts %.2g, pictures %.2g, cosines %.2g\n", worst_text, worst_picture, worst_cosine);
    assert_true(worst_text < 5e-6 && worst_picture < 5e-6 && worst_cosine < 1e-6);
    lk_clip_close(clip);
    free(of_texts);
    free(of_pictures);
    free(cosines);
    golden_close(&golden);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_transformers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
