#include "tools/cli/edit/preview.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/log.h"
#include "models/recipe.h"

/* What a preview could not be written for is told once; the picture is made all the same. */
static enum lk_code show(void *context, const struct lk_image *image, int step, int n_steps) {
    struct cli_preview *p = context;
    const int every = p->every ? p->every : 1;
    char text[48];
    const struct lk_png_text told = {"likeness preview", text};
    if (p->failed || (step % every && step < n_steps)) return LK_OK;
    snprintf(text, sizeof text, "step %d of %d", step, n_steps);
    if (lk_picture_write(p->file, image, LK_RECIPE_QUALITY, &told, 1)) {
        p->failed = true;
        lk_log(LK_LOG_WARNING, "--preview: %s; the pictures are made without", lk_error_text());
    }
    return LK_OK;
}

enum lk_code cli_preview_check(const char *file, bool overwrite) {
    struct stat st;
    struct lk_png_text *texts;
    bool ours = false;
    if (!file || overwrite || stat(file, &st) || !st.st_size) return LK_OK;
    if (!lk_picture_text_read(file, &texts)) {
        for (const struct lk_png_text *t = texts; t->key && !ours; t++) ours = !strncmp(t->key, "likeness", 8);
        lk_png_text_free(texts);
    }
    if (ours) return LK_OK;
    return lk_fail(LK_E_USAGE,
                   "--preview: %s: is there and is no result of likeness; name another file, or replace it with "
                   "--overwrite",
                   file);
}

enum lk_code cli_preview_attach(struct cli_preview *p, const struct lk_pipeline *pipeline, struct lk_request *request) {
    if (!p->file) return LK_OK;
    if (!lk_pipeline_has_preview(pipeline))
        return lk_fail(LK_E_USAGE, "--preview: %s has none; FLUX.2, Qwen-Image and Step1X-Edit have",
                       lk_pipeline_family(pipeline));
    request->preview = show;
    request->preview_context = p;
    return LK_OK;
}
