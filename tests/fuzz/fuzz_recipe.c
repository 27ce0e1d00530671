/* The recipe inside a picture, as show and rerun read it. What is accepted must be in range. */
#include <stdlib.h>
#include <string.h>

#include "models/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    struct lk_recipe r;
    if (lk_recipe_parse(&r, text, "input") == LK_OK) {
        int sane = r.job.request.prompt && r.job.request.seed <= INT64_MAX && r.job.request.num_inference_steps >= 1 &&
                   r.job.request.num_inference_steps <= LK_MAX_STEPS && r.n_images >= 0 &&
                   r.n_images <= LK_MAX_REFERENCES && r.n_sigmas <= LK_MAX_STEPS + 1;
        for (int i = 0; i < r.n_images; i++) sane = sane && r.images[i].file && r.images[i].sha256;
        if (!sane) abort();
    } else if (!*lk_error_text()) {
        abort();
    }
    lk_recipe_free(&r);
    free(text);
    return 0;
}
