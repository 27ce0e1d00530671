#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "models/face/yunet.h"
#include "tools/cli/study/runner.h"
#include "weights/config_identity.h"

/* Masks that a study draws for its sources, as the edits of a worker see them. */

void study_masks_free(struct study_masks *m) {
    if (m->net) lk_yunet_close(m->net);
    m->net = NULL;
}

static enum lk_code open_net(struct study_masks *m, const struct lk_study_drawn *drawn) {
    char sha256[65];
    if (m->net || !drawn->faces) return LK_OK;
    LK_TRY(lk_digest_file(LK_DIGEST_SHA256, drawn->faces, sha256));
    if (strcmp(sha256, drawn->net_sha256) != 0)
        return lk_fail(LK_E_CHANGED, "%s: has changed since the run was begun", drawn->faces);
    return lk_yunet_open(&m->net, drawn->faces);
}

/* Whole or not at all; workers that draw the same one write the same bytes. */
static enum lk_code put(const char *folder, const char *path, const struct lk_image *mask, const char *text) {
    const struct lk_png_text texts[] = {{"likeness mask", text}};
    LK_TRY(study_folders_make(folder));
    return lk_png_write(path, mask, texts, 1);
}

enum lk_code study_mask_draw(struct study_masks *m, const struct study_run *run, struct study_job *job) {
    const struct lk_study_job *study = &job->study;
    const struct lk_study_source *source = lk_study_source(run->study, study->sources[0]);
    const struct lk_study_drawn *drawn = study->drawn;
    struct lk_image mask = {0};
    char *text = NULL;
    lk_free(job->mask);
    LK_TRY(open_net(m, drawn));
    LK_TRY(lk_face_mask_make(&mask, &text, &drawn->recipe, &job->images[0], study->source_files[0], source->sha256,
                             m->net, drawn->net_sha256));
    char *folder = lk_format("%s/masks/%s", run->folder, study->model_key);
    job->mask = folder ? lk_format("%s/%s.png", folder, source->id) : NULL;
    enum lk_code rc = job->mask ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = put(folder, job->mask, &mask, text);
    if (!rc) rc = lk_digest_file(LK_DIGEST_SHA256, job->mask, job->mask_sha256);
    job->job.request.mask = job->mask;
    lk_free(folder);
    lk_free(text);
    lk_image_free(&mask);
    return rc;
}

/* What a model's pictures were made with, in the journal since the first of them. */

static enum lk_code write_identity(struct lk_text *out, const struct lk_pipeline *pipeline, const char *weights) {
    const struct lk_loras *loras = lk_pipeline_loras(pipeline);
    lk_text_add(out, "{\"weights_identity\":\"%s\",\"configs\":%s", weights, lk_pipeline_configs(pipeline));
    for (int i = 0; loras && i < loras->n; i++)
        lk_text_add(out, "%s\"%s\"%s", i ? "," : ",\"adapters\":[", loras->list[i].sha256,
                    i + 1 == loras->n ? "]" : "");
    lk_text_add(out, "}");
    return out->rc;
}

/* noted: a model's identity; now: digests of the adapters that it is to have. */
static enum lk_code check_adapters(const char *journal, const char *model, const cJSON *noted, const char *const *now,
                                   int n) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(noted, "adapters");
    const int n_noted = cJSON_GetArraySize(list);
    for (int i = 0; i < n || i < n_noted; i++) {
        const char *was = cJSON_GetStringValue(cJSON_GetArrayItem(list, i)), *is = i < n ? now[i] : NULL;
        if (was && is && !strcmp(was, is)) continue;
        return lk_fail(
            LK_E_CHANGED,
            "%s: model \"%s\" made pictures with the adapter of SHA-256 %.64s, now it has %.64s in this place; "
            "put that file back, or give the new pictures a model of another key",
            journal, model, was ? was : "none", is ? is : "none");
    }
    return LK_OK;
}

enum lk_code study_identity_adapters(struct lk_journal *journal, const char *path, const struct lk_study *study) {
    enum lk_code rc = LK_OK;
    for (int m = 0; m < lk_study_n_models(study) && !rc; m++) {
        const struct lk_study_adapter *adapters;
        const char *digests[LK_MAX_LORAS], *key = lk_study_model_key(study, m);
        const int n = lk_study_adapters(study, m, &adapters);
        char *noted;
        for (int i = 0; i < n; i++) digests[i] = adapters[i].sha256;
        if ((rc = lk_journal_model(journal, key, NULL, &noted)) || !noted) continue;
        cJSON *root = cJSON_Parse(noted);
        rc = check_adapters(path, key, root, digests, n);
        cJSON_Delete(root);
        lk_free(noted);
    }
    return rc;
}

/* journal: its file, for messages; weights: as they are now, filled in when the configs are the same. */
static enum lk_code check(const char *journal, const char *model, const char *noted, const struct lk_pipeline *pipeline,
                          char weights[65]) {
    const struct lk_loras *loras = lk_pipeline_loras(pipeline);
    const int n_adapters = loras ? loras->n : 0;
    const char *adapters[LK_MAX_LORAS];
    for (int i = 0; i < n_adapters; i++) adapters[i] = loras->list[i].sha256;
    cJSON *root = cJSON_Parse(noted);
    char *configs = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(root, "configs"));
    const char *expected = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "weights_identity"));
    enum lk_code rc = LK_OK;
    if (!configs || !expected)
        rc = lk_fail(LK_E_INPUT,
                     "%s: field \"%s\" of a model's identity: expected what this program wrote, got %.80s; put a copy "
                     "back",
                     journal, configs ? "weights_identity" : "configs", noted);
    if (!rc)
        rc = lk_config_identity_check(journal, lk_pipeline_folder(pipeline), configs, lk_pipeline_configs(pipeline),
                                      NULL);
    if (!rc && (rc = lk_pipeline_weights_check(pipeline, expected, weights)))
        rc = lk_fail_prefix(rc, "%s: made with other weights", journal);
    if (!rc) rc = check_adapters(journal, model, root, adapters, n_adapters);
    cJSON_free(configs);
    cJSON_Delete(root);
    return rc;
}

enum lk_code study_identity_check(struct lk_journal *journal, const char *path, const char *model,
                                  const struct lk_pipeline *pipeline, char weights[65], bool *noted) {
    char *text;
    LK_TRY(lk_journal_model(journal, model, NULL, &text));
    enum lk_code rc = text ? check(path, model, text, pipeline, weights) : LK_OK;
    *noted = text != NULL;
    lk_free(text);
    return rc;
}

enum lk_code study_identity_note(struct lk_journal *journal, const char *path, const char *model,
                                 const struct lk_pipeline *pipeline, const char *weights) {
    struct lk_text mine = {0};
    char *text = NULL, got[65];
    enum lk_code rc = write_identity(&mine, pipeline, weights);
    if (!rc) rc = lk_journal_model(journal, model, mine.bytes, &text);
    if (!rc && strcmp(text, mine.bytes)) rc = check(path, model, text, pipeline, got); /* another worker was first */
    lk_free(text);
    lk_text_free(&mine);
    return rc;
}

enum lk_code study_identity_compare(const char *journal, const char *noted, const char *other_journal,
                                    const char *other, const char *model) {
    cJSON *roots[2] = {cJSON_Parse(noted), cJSON_Parse(other)};
    char *configs[2];
    for (int i = 0; i < 2; i++)
        configs[i] = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(roots[i], "configs"));
    enum lk_code rc = strcmp(noted, other) ? LK_E_CONFLICT : LK_OK;
    if (rc && configs[0] && configs[1] &&
        lk_config_identity_check(other_journal, model, configs[0], configs[1], NULL) == LK_E_CHANGED)
        rc = lk_fail(LK_E_CONFLICT, "%s, which %s has: these are runs of two models, and nothing was merged",
                     lk_error_text(), journal);
    else if (rc)
        rc = lk_fail(LK_E_CONFLICT,
                     "%s: field \"weights_identity\" or \"adapters\" of %s: expected that in %s, got another: these "
                     "are runs of two "
                     "models, and nothing was merged",
                     other_journal, model, journal);
    for (int i = 0; i < 2; i++) {
        cJSON_free(configs[i]);
        cJSON_Delete(roots[i]);
    }
    return rc;
}

/* The model as the study's jobs open it. */
static enum lk_code open_model(const struct lk_study *study, int model, struct lk_pipeline **out) {
    struct lk_study_job *job = lk_calloc(1, sizeof *job);
    enum lk_code rc = LK_OK;
    if (!job) return lk_fail(LK_E_NOMEM, "out of memory");
    job->model = -1;
    for (size_t i = 0; i < lk_study_n_jobs(study) && !rc && job->model != model; i++) rc = lk_study_job(study, i, job);
    if (!rc) {
        const struct lk_pipeline_options options = cli_pipeline_options(&job->job.run);
        rc = lk_pipeline_open_with(out, lk_study_model_path(study, model), &options);
    }
    lk_free(job);
    return rc;
}

static enum lk_code verify_model(struct lk_journal *journal, const char *path, const struct lk_study *study,
                                 int model) {
    struct lk_pipeline *pipeline = NULL;
    const char *key = lk_study_model_key(study, model);
    char weights[65];
    bool noted;
    enum lk_code rc = open_model(study, model, &pipeline);
    if (rc == LK_E_NOT_FOUND || rc == LK_E_REVISION) {
        printf("%s: is not here, so it was not compared with what made its pictures\n", key);
        return LK_OK;
    }
    if (!rc) rc = study_identity_check(journal, path, key, pipeline, weights, &noted);
    lk_pipeline_close(pipeline);
    if (!rc) printf("%s: as it was when its pictures were made\n", key);
    return rc;
}

/* The study of a journal lies beside it. */
static enum lk_code open_study(const char *journal, struct lk_study **out) {
    char *path = lk_format("%.*sstudy.json", (int)(strrchr(journal, '/') + 1 - journal), journal);
    enum lk_code rc = path ? lk_study_open(out, path) : lk_fail(LK_E_NOMEM, "%s: out of memory", journal);
    lk_free(path);
    return rc;
}

enum lk_code study_identity_verify(struct lk_journal *journal, const char *path, char *looked_at[LK_STUDY_MAX_MODELS]) {
    struct lk_study *study = NULL;
    struct lk_journal_counts counts;
    LK_TRY(lk_journal_count(journal, &counts));
    enum lk_code rc = LK_OK;
    for (int m = 0; m < LK_STUDY_MAX_MODELS && *counts.keys[m] && !rc; m++) {
        char *text;
        if ((rc = lk_journal_model(journal, counts.keys[m], NULL, &text))) break;
        if (!text || (looked_at[m] && !strcmp(looked_at[m], text))) {
            lk_free(text);
            continue;
        }
        lk_free(looked_at[m]);
        looked_at[m] = text;
        if (!study && (rc = open_study(path, &study)) == LK_E_NOT_FOUND) {
            printf("%s: has no study.json beside it, so models were not compared\n", path);
            return LK_OK;
        }
        if (!rc && m < lk_study_n_models(study)) rc = verify_model(journal, path, study, m);
    }
    lk_study_close(study);
    return rc;
}
