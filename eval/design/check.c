#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/image/image.h"
#include "eval/design/internal.h"
#include "models/common/files.h"

/* Whether two studies may be pooled: the settings in which they differ. */

struct comparison {
    const char *allowed; /* keys with commas between; NULL: none */
    struct lk_text *out;
    size_t n;
    enum lk_code rc;
};

/* By its whole path or its last part: "analysis.rounding", "rounding". */
static bool is_allowed(const struct comparison *c, const char *path) {
    for (const char *at = c->allowed; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t n = strcspn(at, ","), whole = strlen(path);
        if (n && n <= whole && !memcmp(path + whole - n, at, n) && (n == whole || path[whole - n - 1] == '.'))
            return true;
    }
    return false;
}

static void note(struct comparison *c, const char *path, const cJSON *a, const cJSON *b) {
    char *texts[2] = {a ? cJSON_PrintUnformatted(a) : lk_strdup("nothing"),
                      b ? cJSON_PrintUnformatted(b) : lk_strdup("nothing")};
    if (!texts[0] || !texts[1]) c->rc = lk_fail(LK_E_NOMEM, "out of memory for a comparison");
    if (!c->rc) {
        lk_text_add(c->out, "%s: %.200s and %.200s\n", path, texts[0], texts[1]);
        c->n++;
    }
    for (int i = 0; i < 2; i++) lk_free(texts[i]);
}

static void compare(struct comparison *c, const char *path, const cJSON *a, const cJSON *b);

/* The members of a, each beside b's; those of b alone come when the two are the other way round. */
static void compare_members(struct comparison *c, const char *path, const cJSON *a, const cJSON *b, bool both) {
    static const char *const own[] = {"study", "source_files", "jobs"};
    const cJSON *item;
    cJSON_ArrayForEach(item, a) {
        char inner[300];
        bool passed = false;
        const cJSON *other = b ? cJSON_GetObjectItemCaseSensitive(b, item->string) : NULL;
        for (size_t i = 0; i < sizeof own / sizeof *own && !*path; i++) passed |= !strcmp(own[i], item->string);
        snprintf(inner, sizeof inner, "%.180s%s%.100s", path, *path ? "." : "", item->string);
        if (passed || (other && !both)) continue;
        if (both)
            compare(c, inner, item, other);
        else
            compare(c, inner, NULL, item);
    }
}

static void compare(struct comparison *c, const char *path, const cJSON *a, const cJSON *b) {
    if (c->rc || (*path && is_allowed(c, path))) return;
    if (a && b && cJSON_IsObject(a) && cJSON_IsObject(b)) {
        compare_members(c, path, a, b, true);
        compare_members(c, path, b, a, false);
    } else if (!a || !b || !cJSON_Compare(a, b, true)) {
        note(c, path, a, b);
    }
}

enum lk_code lk_study_compare(const struct lk_study *a, const struct lk_study *b, const char *allowed,
                              struct lk_text *out, size_t *n_different) {
    struct comparison c = {.allowed = allowed, .out = out};
    cJSON *first = cJSON_Parse(a->asked.bytes), *second = cJSON_Parse(b->asked.bytes);
    if (first && second)
        compare(&c, "", first, second);
    else
        c.rc = lk_fail(LK_E_NOMEM, "out of memory for a comparison");
    cJSON_Delete(first);
    cJSON_Delete(second);
    *n_different = c.n;
    return c.rc ? c.rc : out->rc;
}

/* What keeps a study from being run. */

struct checked {
    const struct lk_study *study;
    struct lk_text *out;
    size_t n;
    bool *used, *features, *none; /* sources that jobs need, whose feature prompts, and those that have none */
    bool models[LK_STUDY_MAX_MODELS];
    int (*sizes)[2]; /* of the sources' pictures; 0: not known */
};

static void find_used(struct checked *c) {
    for (int m = 0; m < c->study->n_models; m++) c->models[m] = c->study->n_faults > 0; /* jobs are not known yet */
    for (size_t i = 0; i < c->study->n_jobs; i++) {
        const struct job_key *key = &c->study->jobs[i];
        c->models[key->model] = true;
        for (int k = 0; k < 2 && key->source[k] >= 0; k++) c->used[key->source[k]] = true;
        const struct lk_feature_prompts *of = &c->study->experiments[key->experiment].features;
        if (key->arm != LK_ARM_PRESERVED || key->final_prompt) continue;
        c->features[key->source[0]] = true;
        c->none[key->source[0]] = of->of && of->of[key->source[0]].none;
    }
}

#define NOTE(c, ...) ((c)->n++, lk_text_add((c)->out, __VA_ARGS__))

/* Source i, and its masks. */
static enum lk_code check_picture(struct checked *c, int i) {
    const struct lk_study_source *source = &c->study->sources[i];
    const char *from = c->study->sources_file ? c->study->sources_file : c->study->file;
    struct lk_image image = {0};
    enum lk_code rc = lk_image_read(&image, source->file, true, 0);
    if (rc == LK_E_NOMEM) return rc;
    if (rc) NOTE(c, "%s: %s: path: %s\n", from, source->id, lk_error_text());
    c->sizes[i][0] = image.width, c->sizes[i][1] = image.height;
    for (int m = 0; m < c->study->n_models && !rc; m++) {
        const struct lk_study_model *model = &c->study->models[m];
        if (c->used[i] && c->models[m] && lk_study_check_mask(c->study, model, i, &image))
            NOTE(c, "models.%s.mask: %s: %s\n", model->key, source->id, lk_error_text());
    }
    lk_image_free(&image);
    return LK_OK;
}

void lk_study_name_source(const struct lk_study *s, int source, char out[64]) {
    if (s->portrait)
        lk_source_id(source, out);
    else
        snprintf(out, 64, "%s", s->sources[source].id);
}

size_t lk_study_leaks(const struct lk_study *s, char source[64]) {
    size_t n = 0;
    *source = 0;
    for (int e = 0; e < s->n_experiments; e++) {
        const struct lk_feature_prompts *of = &s->experiments[e].features;
        for (int i = s->n_sources; of->of && i--;) {
            if (!of->of[i].leak) continue;
            lk_study_name_source(s, i, source);
            n++;
        }
    }
    return n;
}

int lk_study_few_sources(const struct lk_study *s, const char **attribute, const char **level, int *n) {
    int n_attributes, n_few = 0;
    const struct lk_attribute *attributes = lk_study_attributes(s, &n_attributes);
    for (int a = n_attributes; a--;)
        for (int l = 0, told = false; l < attributes[a].n && !told; l++) {
            int count = 0;
            for (int i = 0; i < s->n_sources; i++) count += s->sources[i].id && s->sources[i].level[a] == l;
            if (!count || count >= LK_LEAST_SOURCES) continue;
            n_few += told = true;
            *attribute = attributes[a].name, *level = attributes[a].keys[l], *n = count;
        }
    return n_few;
}

size_t lk_study_other_colours(const struct lk_study *s, const char **first, char profile[LK_IMAGE_PROFILE_NAME]) {
    size_t n = 0;
    for (int i = s->n_sources; i--;) {
        char name[LK_IMAGE_PROFILE_NAME];
        const struct lk_study_source *source = &s->sources[i];
        if (!source->id || !lk_image_file_other_colours(source->file, name)) continue;
        n++;
        *first = source->file;
        memcpy(profile, name, sizeof name);
    }
    return n;
}

size_t lk_study_unseen(const struct lk_study *s, const char **first, const char **what) {
    size_t n = 0;
    for (int i = s->n_sources; i--;) {
        const char *unseen = s->sources[i].id ? lk_image_file_unseen(s->sources[i].file) : NULL;
        if (!unseen) continue;
        n++;
        *first = s->sources[i].file, *what = unseen;
    }
    return n;
}

static enum lk_code check_sources(struct checked *c) {
    const struct lk_study *s = c->study;
    for (int i = 0; i < s->n_sources; i++) {
        const struct lk_study_source *source = &s->sources[i];
        char id[64];
        lk_study_name_source(s, i, id);
        if (c->used[i] && !source->id)
            NOTE(c, "%s: %s: expected a source of this cell, got none\n", s->sources_file ? s->sources_file : s->file,
                 id);
        if (!source->id) continue;
        LK_TRY(check_picture(c, i));
        for (int k = 0; k < i; k++)
            if (s->sources[k].id && *source->sha256 && !strcmp(s->sources[k].sha256, source->sha256))
                NOTE(c, "%s: %s: expected a picture of its own, got that of %s\n",
                     s->sources_file ? s->sources_file : s->file, id, s->sources[k].id);
    }
    for (int i = 0; i < s->n_sources; i++) {
        char id[64];
        lk_study_name_source(s, i, id);
        if (!c->features[i]) continue;
        if (c->none[i])
            NOTE(c, "%s: no feature prompt could be extracted; its pairs will fail\n", id);
        else
            NOTE(c, "%s: expected a feature prompt in \"experiments.exp2.feature_prompts\", got none\n", id);
    }
    return LK_OK;
}

static enum lk_code check_models(struct checked *c) {
    for (int m = 0; m < c->study->n_models; m++) {
        struct lk_pipeline *pipeline;
        const struct lk_study_model *model = &c->study->models[m];
        const char *key = model->key;
        if (!c->models[m] || model->hosted.given) continue;
        const char *problem = lk_study_adapter_problem(model);
        if (problem) {
            NOTE(c, "models.%s.lora: %s\n", key, problem);
            continue;
        }
        if (model->drawn.problem) NOTE(c, "models.%s.mask: %s\n", key, model->drawn.problem);
        if (model->rewriter.problem) NOTE(c, "models.%s.rewrite: %s\n", key, model->rewriter.problem);
        enum lk_code rc = lk_study_open_configs(model, &pipeline);
        if (rc == LK_E_NOMEM) return rc;
        if (rc) {
            NOTE(c, "models.%s: %s\n", key, lk_error_text());
            continue;
        }
        const char *family = lk_pipeline_family(pipeline);
        if (lk_family_bit_of(family) != lk_family_bit_of(model->family))
            NOTE(c, "models.%s: %s: expected a model as %s, got %s\n", key, model->path, model->family, family);
        struct stat st;
        const char *folder = lk_pipeline_folder(pipeline);
        const bool is_folder = folder && !stat(folder, &st) && S_ISDIR(st.st_mode);
        rc = is_folder ? lk_model_check_weights(folder, model->job.run.transformer) : LK_OK;
        lk_pipeline_close(pipeline);
        if (rc == LK_E_NOMEM) return rc;
        if (rc) NOTE(c, "models.%s: %s\n", key, lk_error_text());
    }
    return LK_OK;
}

/* A job of the model by its prompt and sizes: LK_OK where one like it was looked at, or nothing keeps it. */
static enum lk_code check_job(struct checked *c, struct lk_pipeline *pipeline, const struct lk_study_job *job,
                              struct lk_names *seen) {
    struct lk_request request = job->job.request;
    struct lk_image images[2] = {{0}};
    int32_t number;
    for (int k = 0; k < job->n_sources; k++) {
        const int *size = c->sizes[job->sources[k]];
        if (!size[0]) return LK_OK; /* told already */
        images[k] = (struct lk_image){.width = size[0], .height = size[1], .channels = 3};
    }
    char *like = lk_format("%dx%d %dx%d %s", images[0].width, images[0].height, images[1].width, images[1].height,
                           job->final_prompt);
    if (!like) return lk_fail(LK_E_NOMEM, "%s: out of memory", c->study->file);
    const size_t n = seen->n;
    enum lk_code rc = lk_names_number(seen, like, strlen(like), &number);
    lk_free(like);
    if (rc || (size_t)number < n) return rc;
    request.images = images, request.n_images = job->n_sources, request.mask = NULL;
    return lk_pipeline_check(pipeline, &request);
}

/* Prompts that a model here would not read whole, and pictures that it does not take: one line for a model. */
static enum lk_code check_requests(struct checked *c, int m) {
    const struct lk_study *s = c->study;
    struct lk_pipeline *pipeline;
    struct lk_names seen = {0};
    char first[LK_STUDY_NAME_BYTES] = "", why[1024] = "";
    size_t n_bad = 0;
    enum lk_code rc = lk_pipeline_open(&pipeline, s->models[m].path, LK_BF16);
    if (rc) return rc == LK_E_NOMEM ? rc : LK_OK; /* what is wrong with it is told by others */
    struct lk_study_job *job = lk_malloc(sizeof *job);
    if (!job) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    for (size_t i = 0; i < s->n_jobs && !rc; i++) {
        if (s->jobs[i].model != m || s->experiments[s->jobs[i].experiment].kind == LK_EXP_T2I) continue;
        rc = lk_study_job(s, i, job);
        if (rc || job->problem || !job->final_prompt) continue;
        rc = check_job(c, pipeline, job, &seen);
        if (rc != LK_E_PROMPT && rc != LK_E_IMAGE_SIZE && rc != LK_E_NOMEM) rc = LK_OK; /* not of prompt or picture */
        if (!rc || rc == LK_E_NOMEM) continue;
        if (!n_bad++) snprintf(first, sizeof first, "%s", job->name), snprintf(why, sizeof why, "%s", lk_error_text());
        rc = LK_OK;
    }
    if (!rc && n_bad)
        NOTE(c, "models.%s: %zu of %zu prompts with their pictures cannot be run, the first of %s: %s\n",
             s->models[m].key, n_bad, seen.n, first, why);
    lk_free(job);
    lk_names_free(&seen);
    lk_pipeline_close(pipeline);
    return rc;
}

/* What keeps pictures from text alone from being made, once for each model; a prompt's first seed stands for all. */
static enum lk_code check_t2i(struct checked *c) {
    const char *told[LK_STUDY_MAX_MODELS][4] = {{NULL}};
    struct lk_study_job *job = lk_malloc(sizeof *job);
    enum lk_code rc = job ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", c->study->file);
    for (size_t i = 0; i < c->study->n_jobs && !rc; i++) {
        const struct job_key *key = &c->study->jobs[i];
        if (c->study->experiments[key->experiment].kind != LK_EXP_T2I || key->seed > 0) continue;
        rc = lk_study_job(c->study, i, job);
        const char **of = told[key->model];
        int k = 0;
        while (k < 4 && of[k] && of[k] != job->problem) k++;
        if (rc || !job->problem || k == 4 || of[k]) continue;
        of[k] = job->problem;
        NOTE(c, "models.%s: %s: %s\n", job->model_key, job->name, job->problem);
    }
    lk_free(job);
    return rc;
}

/* Prompts that are still to be rewritten, and that could not be. */
static enum lk_code check_rewrites(struct checked *c) {
    const struct lk_study *s = c->study;
    struct lk_study_job *job = lk_malloc(sizeof *job);
    enum lk_code rc = job ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    for (int m = 0; m < s->n_models && !rc; m++) {
        size_t n = 0, n_missing = 0, n_failed = 0;
        if (!s->models[m].rewriter.prompts) continue;
        for (size_t i = 0; i < s->n_jobs && !rc; i++) {
            if (s->jobs[i].model != m) continue;
            rc = lk_study_job(s, i, job);
            n++;
            n_missing += job->rewrite_missing;
            n_failed += job->rewrite && job->problem;
        }
        const char *key = s->models[m].key;
        if (n_missing)
            NOTE(c,
                 "models.%s.rewrite: the prompts of %zu of %zu jobs are not rewritten yet: 'likeness study rewrite' "
                 "does it\n",
                 key, n_missing, n);
        if (n_failed)
            NOTE(c,
                 "models.%s.rewrite: %zu of %zu jobs will fail: their prompts could not be rewritten; with "
                 "\"on_failure\": \"keep\" they stay as they are\n",
                 key, n_failed, n);
    }
    lk_free(job);
    return rc;
}

static enum lk_code check_judges(struct checked *c) {
    for (int slot = 0; slot < LK_N_JUDGES; slot++) {
        const enum lk_code rc = lk_study_check_judge(c->study, slot);
        if (rc == LK_E_NOMEM) return rc;
        if (rc) NOTE(c, "%s\n", lk_error_text());
    }
    return LK_OK;
}

const char *lk_study_lacking(const struct lk_study *s, size_t *n) {
    *n = s->n_lacking;
    return s->n_lacking ? s->lacking.bytes : "";
}

enum lk_code lk_study_check(const struct lk_study *s, struct lk_text *out, size_t *n_problems) {
    struct checked c = {.study = s, .out = out, .n = s->n_lacking + s->n_faults};
    if (s->faults.n) lk_text_bytes(out, s->faults.bytes, s->faults.n);
    if (s->lacking.n) lk_text_bytes(out, s->lacking.bytes, s->lacking.n);
    const size_t room = (size_t)s->n_sources + 1;
    c.used = lk_calloc(3 * room, sizeof *c.used);
    if (!c.used) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    c.features = c.used + room;
    c.none = c.features + room;
    c.sizes = lk_calloc(room, sizeof *c.sizes);
    find_used(&c);
    enum lk_code rc = c.sizes ? check_sources(&c) : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    if (!rc) rc = check_models(&c);
    for (int m = 0; m < s->n_models && !rc && !s->n_faults; m++)
        if (c.models[m] && !s->models[m].hosted.given) rc = check_requests(&c, m);
    if (!rc) rc = check_t2i(&c);
    if (!rc) rc = check_rewrites(&c);
    if (!rc) rc = check_judges(&c);
    lk_free(c.used);
    lk_free(c.sizes);
    *n_problems = c.n;
    return rc ? rc : out->rc;
}
