/* What a study will make. */
#include <stdio.h>

#include "tools/cli/study/runner.h"
#include "tools/cli/study/study.h"

/* A line for each job, in the study's order. */
static void print_json(const struct lk_study *study, size_t i, const struct lk_study_job *job, struct lk_text *out) {
    lk_text_add(out, "{\"job\": %zu, \"item_id\": \"%s\", \"id\": \"%s\", \"experiment\": \"%s\", \"model\": \"%s\"", i,
                job->name, job->id, job->experiment, job->model_key);
    lk_text_add(out, ", \"model_path\": ");
    lk_text_json(out, job->model_path);
    lk_text_add(out, ", \"arm\": \"%s\", \"pair\": \"%s\", \"sources\": [", lk_factor_key(LK_FACTOR_ARM, (int)job->arm),
                job->pair);
    for (int s = 0; s < job->n_sources; s++) {
        char id[64];
        study_source_name(study, job->sources[s], id);
        lk_text_add(out, "%s\"%s\"", s ? ", " : "", id);
    }
    lk_text_add(out, "], \"source_sha256\": [");
    for (int s = 0; s < job->n_sources; s++)
        lk_text_add(out, "%s\"%s\"", s ? ", " : "", lk_study_source(study, job->sources[s])->sha256);
    lk_text_add(out, "], \"prompt_id\": \"%s\", \"category\": \"%s\", \"prompt_text\": ", job->prompt->id,
                job->prompt->category);
    lk_text_json(out, job->prompt->text);
    if (job->original_prompt) {
        lk_text_add(out, ", \"original_prompt\": ");
        lk_text_json(out, job->original_prompt);
    }
    const struct {
        const char *key, *text;
    } texts[] = {{"feature_prompt", job->feature_prompt},
                 {"final_prompt", job->final_prompt},
                 {"output", job->output},
                 {"problem", job->problem}};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        lk_text_add(out, ", \"%s\": ", texts[t].key);
        if (texts[t].text)
            lk_text_json(out, texts[t].text);
        else
            lk_text_add(out, "null");
    }
    lk_text_add(out, ", \"seed\": %llu}\n", (unsigned long long)job->job.request.seed);
}

enum lk_code study_jobs(const struct cli_arguments *a, struct lk_study *study) {
    struct lk_text text = {0};
    struct lk_study_job job;
    struct study_list list;
    LK_TRY(study_list_make(&list, study, a->study.shard));
    enum lk_code rc = LK_OK;
    for (size_t i = 0; i < list.n && !rc; i++) {
        rc = lk_study_job(study, (size_t)list.indexes[i], &job);
        text.n = 0;
        if (!rc && a->json)
            print_json(study, (size_t)list.indexes[i], &job, &text);
        else if (!rc)
            lk_text_add(&text, "%s\n", job.name);
        if (!rc && !(rc = text.rc)) fwrite(text.bytes, 1, text.n, stdout);
    }
    lk_text_free(&text);
    study_list_free(&list);
    return rc;
}
