/* Features of a log's pictures for `t2i latents`: a sample is made again, and the latents after the last step are read,
 * as the mean of each channel over each quarter of the picture. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/bf16.h"
#include "eval/document/files.h"
#include "eval/document/table_print.h"
#include "eval/scores/csv.h"
#include "eval/scores/dataset.h"
#include "tools/cli/t2i/t2i.h"

enum { SIDE = 2 }; /* quarters */

struct final {
    float *values; /* [n, channels] of the step that was last */
    int64_t n, channels;
};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i latents: out of memory"); }

static enum lk_code take(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct final *f = context;
    const size_t n = strlen(name), ending = strlen(".latents");
    if (strncmp(name, "step.", 5) != 0 || n < ending || strcmp(name + n - ending, ".latents") != 0) return LK_OK;
    f->n = value->shape[0];
    f->channels = value->shape[1];
    float *values = lk_realloc(f->values, (size_t)lk_tensor_numel(value) * sizeof *values);
    if (!values) return out_of_memory();
    f->values = values;
    LK_TRY(lk_download(dev, values, value));
    for (int64_t i = lk_tensor_numel(value); value->dtype == LK_BF16 && i-- > 0;)
        values[i] = lk_bf16_to_f32(((const uint16_t *)values)[i]);
    return LK_OK;
}

/* The tokens' rows follow the picture's. */
static void features(const struct final *f, const struct lk_image *image, struct lk_text *out) {
    const int64_t across = llround(sqrt((double)f->n * image->width / image->height)), down = f->n / across;
    for (int64_t k = 0; k < (int64_t)SIDE * SIDE * f->channels; k++) {
        const int64_t field = k / f->channels, y = field / SIDE, x = field % SIDE;
        double sum = 0, n = 0;
        for (int64_t i = y * down / SIDE; i < (y + 1) * down / SIDE; i++)
            for (int64_t j = x * across / SIDE; j < (x + 1) * across / SIDE; j++, n++)
                sum += (double)f->values[(i * across + j) * f->channels + k % f->channels];
        lk_text_add(out, ",%.9g", sum / n);
    }
    lk_text_add(out, "\r\n");
}

/* Group of each line of the log: what --labels, or else the log, has in the column --by. log NULL: the file is checked
 * alone. */
static enum lk_code read_groups(const struct cli_arguments *a, const struct lk_t2i_images *log, const char **groups,
                                struct lk_store *store) {
    const char *file = a->t2i.labels.n ? a->t2i.labels.values[0] : a->t2i.log;
    struct lk_csv csv;
    char *text;
    size_t n;
    int path, by;
    LK_TRY(lk_read_file(file, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_csv_open(&csv, text, n, file);
    if (!rc) {
        rc = lk_csv_require(&csv, "file_path", &path);
        if (!rc) rc = lk_csv_require(&csv, a->stats.by, &by);
        for (bool more = true; !rc && more;) {
            rc = lk_csv_next(&csv, &more);
            const char *name = !rc && more ? lk_csv_cell(&csv, path) : "";
            const int32_t at = log ? lk_names_find(&log->logged, name, strlen(name)) : -1;
            if (at >= 0 && !(groups[at] = lk_store_text(store, lk_csv_cell(&csv, by)))) rc = out_of_memory();
        }
        lk_csv_close(&csv);
    }
    lk_free(text);
    return rc;
}

static enum lk_code add_picture(struct cli_replay *r, size_t i, const char *group, struct lk_text *out) {
    struct final final = {0};
    struct lk_result result = {0};
    LK_TRY(cli_replay_job(r, i));
    r->device->trace = take;
    r->device->trace_context = &final;
    enum lk_code rc = lk_pipeline_edit(r->pipeline, r->device, &r->job.request, &result);
    r->device->trace = NULL;
    if (!rc) rc = cli_replay_compare(r, i, &result.image);
    if (!rc && !out->n) {
        lk_text_add(out, "file_path,");
        lk_print_csv_field(out, r->arguments->stats.by, "");
        for (int64_t k = 0; k < SIDE * SIDE * final.channels; k++) lk_text_add(out, ",latent_%lld", (long long)k);
        lk_text_add(out, "\r\n");
    }
    if (!rc) {
        lk_print_csv_field(out, r->log.logged.list[r->chosen[i]], "");
        lk_text_add(out, ",");
        lk_print_csv_field(out, group ? group : "", "");
        features(&final, &result.image, out);
    }
    lk_free(final.values);
    lk_result_free(&result);
    return rc ? rc : out->rc;
}

enum lk_code cli_t2i_features(const struct cli_arguments *a, const char *name) {
    struct cli_replay r;
    struct lk_store store = {0};
    struct lk_text text = {0};
    const char **groups = NULL;
    LK_TRY(read_groups(a, NULL, NULL, NULL));
    enum lk_code rc = cli_replay_open(&r, a, NULL, NULL);
    if (!rc && !(groups = lk_calloc(r.log.logged.n, sizeof *groups))) rc = out_of_memory();
    if (!rc) rc = read_groups(a, &r.log, groups, &store);
    for (size_t i = 0; i < r.n && !rc; i++) rc = add_picture(&r, i, groups[r.chosen[i]], &text);
    if (!rc) rc = lk_document_folder(a->output);
    if (!rc) rc = lk_document_file(a->output, name, ".csv", &text);
    cli_replay_close(&r);
    lk_store_free(&store);
    lk_free(groups);
    lk_text_free(&text);
    return rc;
}
