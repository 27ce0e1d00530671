#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "eval/document/table_print.h"
#include "eval/hosted/images.h"
#include "tools/cli/study/runner.h"

static void add_key(struct lk_text *out, const char *key) {
    lk_text_add(out, out->n > 1 ? ",\"%s\":" : "\"%s\":", key);
}

static void add_text(struct lk_text *out, const char *key, const char *value) {
    add_key(out, key);
    if (value)
        lk_text_json(out, value);
    else
        lk_text_add(out, "null");
}

static void add_int(struct lk_text *out, const char *key, int64_t value) {
    add_key(out, key);
    if (value)
        lk_text_add(out, "%lld", (long long)value);
    else
        lk_text_add(out, "null");
}

static void add_number(struct lk_text *out, const char *key, double value) {
    add_key(out, key);
    if (value)
        lk_text_number(out, value);
    else
        lk_text_add(out, "null");
}

void study_source_name(const struct lk_study *study, int source, char out[64]) {
    if (lk_study_is_portrait(study))
        lk_source_id(source, out);
    else
        snprintf(out, 64, "%s", lk_study_source(study, source)->id);
}

/* One source has its id, two have lists: what they share stands alone. */
static void add_sources(struct lk_text *out, const struct lk_study *study, const struct lk_study_job *job) {
    char id[2][64];
    const struct lk_study_source *source[2] = {NULL, NULL};
    int n_attributes, n = job->n_sources;
    const struct lk_attribute *attributes = lk_study_attributes(study, &n_attributes);
    for (int k = 0; k < n; k++) {
        study_source_name(study, job->sources[k], id[k]);
        source[k] = lk_study_source(study, job->sources[k]);
    }
    if (n < 2) {
        add_text(out, "source_id", n ? id[0] : NULL);
        add_text(out, "source_sha256", n ? source[0]->sha256 : NULL);
    } else
        lk_text_add(out, ",\"source_ids\":[\"%s\",\"%s\"],\"source_sha256\":[\"%s\",\"%s\"]", id[0], id[1],
                    source[0]->sha256, source[1]->sha256);
    for (int a = 0; a < n_attributes; a++) {
        const char **keys = attributes[a].keys;
        if (n < 2 || source[0]->level[a] == source[1]->level[a])
            add_text(out, attributes[a].name, n ? keys[source[0]->level[a]] : NULL);
        else
            lk_text_add(out, ",\"%s\":[\"%s\",\"%s\"]", attributes[a].name, keys[source[0]->level[a]],
                        keys[source[1]->level[a]]);
    }
}

static void add_time(struct lk_text *out, const char *key, int64_t ms) {
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    char text[32] = "";
    if (gmtime_r(&s, &tm)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    add_text(out, key, text);
}

/* What it was made with beside settings: a mask, adapters; where there are none, nothing. */
static void add_treatment(struct lk_text *out, const struct lk_study *study, const struct lk_study_job *job,
                          const struct study_outcome *made) {
    if (job->rewrite) {
        add_text(out, "original_prompt", job->original_prompt);
        lk_text_add(out, ",\"rewrite\":%s", job->rewrite->record);
    }
    if (job->mask) {
        const char *slash = strrchr(job->mask->file, '/');
        add_text(out, "mask", slash ? slash + 1 : job->mask->file);
        add_text(out, "mask_sha256", job->mask->sha256);
    }
    if (job->drawn) {
        char id[64];
        study_source_name(study, job->sources[0], id);
        lk_text_add(out, ",\"mask\":\"masks/%s/%s.png\",\"mask_drawn\":%s", job->model_key, id, job->drawn->text);
        add_text(out, "mask_sha256", made->mask_sha256);
    }
    if (made->masked) { /* "masked": as in recipes, with what the border is like */
        lk_text_add(out, ",\"masked\":{\"edited\":%.17g,\"kept_exact\":%s", made->mask_edited,
                    made->kept_exact ? "true" : "false");
        if (made->seam[0] > 0 || made->seam[1] > 0)
            lk_text_add(out, ",\"seam\":%.17g,\"seam_of_source\":%.17g", made->seam[0], made->seam[1]);
        lk_text_add(out, "}");
    }
    for (int i = 0; i < job->n_adapters; i++) {
        lk_text_add(out, i ? ",{" : ",\"adapters\":[{");
        const char *slash = strrchr(job->adapters[i].file, '/');
        lk_text_add(out, "\"file\":");
        lk_text_json(out, slash ? slash + 1 : job->adapters[i].file);
        add_text(out, "sha256", job->adapters[i].sha256);
        add_key(out, "scale");
        lk_text_number(out, job->adapters[i].scale);
        lk_text_add(out, i + 1 == job->n_adapters ? "}]" : "}");
    }
}

/* What else was set and decides pixels: accel, quantize, scheduler, thinking mode, ... */
static void add_settings(struct lk_text *out, const struct lk_job *job) {
    cJSON *settings = cJSON_CreateObject();
    bool ok = settings != NULL;
    for (size_t i = 0; i < lk_n_parameters && ok; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        const bool beside = !strcmp(p->key, "true_cfg_scale") || !strcmp(p->key, "width") || !strcmp(p->key, "height");
        if (p->record == LK_RECORD_USED && lk_job_given(job, p) && !beside) ok = lk_parameter_write(p, job, settings);
    }
    char *text = ok ? cJSON_PrintUnformatted(settings) : NULL;
    if (text)
        lk_text_add(out, ",\"settings\":%s", text);
    else if (!out->rc)
        out->rc = lk_fail(LK_E_NOMEM, "out of memory for the manifest");
    cJSON_free(text);
    cJSON_Delete(settings);
}

enum lk_code study_record(struct lk_text *out, const struct lk_study *study, const struct lk_study_job *job,
                          const struct study_outcome *made) {
    const struct lk_request *r = &job->job.request;
    char path[LK_STUDY_NAME_BYTES * 2 + 24];
    const bool placeholder = made->status && !strcmp(made->status, lk_outcome_key(LK_OUTCOME_PLACEHOLDER));
    snprintf(path, sizeof path, "%s/%s", placeholder ? "placeholders" : "results", job->output);
    lk_text_add(out, "{");
    add_text(out, "item_id", job->name);
    add_text(out, "experiment", job->experiment);
    add_text(out, "model", job->model_key);
    add_sources(out, study, job);
    add_text(out, "prompt_id", job->prompt->id);
    add_text(out, "category", job->prompt->category);
    add_text(out, "subcategory", job->prompt->subcategory_content);
    add_text(out, "subcategory_printed", job->prompt->subcategory_printed);
    add_text(out, "prompt_text", job->prompt->text);
    add_text(out, "feature_prompt", job->feature_prompt);
    add_text(out, "final_prompt", job->final_prompt);
    add_text(out, "arm", lk_factor_key(LK_FACTOR_ARM, (int)job->arm));
    if (job->fair_sha256) {
        lk_text_add(out, ",\"fair_rule\":%d", job->fair_rule);
        add_text(out, "fair_attribute", job->fair_attribute);
        add_text(out, "fair_level", job->fair_level);
        add_text(out, "fair_assign", job->fair_assign);
        add_text(out, "fair_sha256", job->fair_sha256);
    }
    add_int(out, "steps", job->hosted ? 0 : r->num_inference_steps);
    add_number(out, "guidance_scale", job->hosted ? 0 : r->guidance_scale);
    add_number(out, "true_cfg_scale", job->hosted ? 0 : r->true_cfg_scale);
    lk_text_add(out, ",\"seed\":%llu", (unsigned long long)r->seed);
    add_treatment(out, study, job, made);
    for (int b = 0; b < made->n_cached; b++)
        lk_text_add(out, "%s%d%s", b ? "," : ",\"computed_steps\":[", made->n_computed[b],
                    b + 1 == made->n_cached ? "]" : "");
    const bool f32 = job->job.run.dtype && !strcmp(job->job.run.dtype, "f32");
    add_text(out, "precision", job->hosted ? NULL : f32 ? "float32" : "bfloat16");
    add_settings(out, &job->job);
    add_text(out, "quantization", made->quantization);
    add_text(out, "offload", made->offload);
    add_int(out, "width", made->width);
    add_int(out, "height", made->height);
    add_text(out, "output_path", path);
    add_text(out, "output_sha256", made->sha256);
    add_text(out, "status", made->status ? made->status : made->sha256 ? "success" : "failed");
    add_text(out, "error", made->error);
    lk_text_add(out, ",\"seconds\":%.3f", made->seconds);
    add_time(out, "started_at", made->started_ms);
    add_text(out, "weights_identity", made->weights_identity);
    add_text(out, "configs_sha256", made->configs_sha256);
    add_text(out, "program_version", LIKENESS_VERSION);
    if (made->hosted) lk_text_add(out, ",\"hosted\":%s", made->hosted);
    lk_text_add(out, "}");
    return out->rc;
}

static const char *text_of(const cJSON *line, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, key));
}

static double number_of(const cJSON *line, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(line, key);
    return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

/* An old line again; status NULL: its own. code: of the answer then. */
static enum lk_code record_again(struct lk_text *out, const struct lk_study *study, const struct lk_study_job *job,
                                 const char *old, const char *status, const char *code) {
    cJSON *line = cJSON_Parse(old), *hosted = cJSON_GetObjectItemCaseSensitive(line, "hosted");
    struct tm tm = {0};
    const char *started = text_of(line, "started_at"), *was = text_of(line, "status");
    const cJSON *computed = cJSON_GetObjectItemCaseSensitive(line, "computed_steps");
    const char *end = started ? strptime(started, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;
    enum lk_code rc = line ? LK_OK : lk_fail(LK_E_INPUT, "journal: the line of %s is no JSON", job->name);
    if (hosted && status) {
        cJSON_ReplaceItemInObjectCaseSensitive(hosted, "outcome", cJSON_CreateString(status));
        cJSON_AddStringToObject(hosted, lk_asked_key(LK_ASKED_STAGE), status);
        cJSON_AddStringToObject(hosted, lk_asked_key(LK_ASKED_CODE), code);
    }
    char *answers = hosted ? cJSON_PrintUnformatted(hosted) : NULL;
    struct study_outcome made = {.sha256 = text_of(line, "output_sha256"),
                                 .error = text_of(line, "error"),
                                 .status = status   ? status
                                           : hosted ? was
                                                    : NULL,
                                 .hosted = answers,
                                 .quantization = text_of(line, "quantization"),
                                 .offload = text_of(line, "offload"),
                                 .mask_sha256 = text_of(line, "mask_sha256"),
                                 .weights_identity = text_of(line, "weights_identity"),
                                 .configs_sha256 = text_of(line, "configs_sha256"),
                                 .width = (int)number_of(line, "width"),
                                 .height = (int)number_of(line, "height"),
                                 .seconds = number_of(line, "seconds"),
                                 .started_ms = end ? (int64_t)timegm(&tm) * 1000 : 0};
    if (!rc && hosted && !answers) rc = lk_fail(LK_E_NOMEM, "journal: out of memory");
    const cJSON *masked = cJSON_GetObjectItemCaseSensitive(line, "masked");
    made.masked = masked != NULL;
    made.kept_exact = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(masked, "kept_exact"));
    made.mask_edited = number_of(masked, "edited");
    made.seam[0] = number_of(masked, "seam");
    made.seam[1] = number_of(masked, "seam_of_source");
    for (; made.n_cached < LK_MAX_CACHES && made.n_cached < cJSON_GetArraySize(computed); made.n_cached++)
        made.n_computed[made.n_cached] = cJSON_GetArrayItem(computed, made.n_cached)->valueint;
    if (!rc) rc = study_record(out, study, job, &made);
    cJSON_free(answers);
    cJSON_Delete(line);
    return rc;
}

enum lk_code study_record_again(struct lk_text *out, const struct lk_study *study, const struct lk_study_job *job,
                                const char *old) {
    return record_again(out, study, job, old, NULL, NULL);
}

enum lk_code study_record_placeholder(void *context, int64_t index, const char *old, struct lk_text *out) {
    const struct study_relabelled *r = context;
    (void)index;
    return record_again(out, r->study, r->job, old, lk_outcome_key(LK_OUTCOME_PLACEHOLDER),
                        lk_placeholder_key(LK_PLACEHOLDER_REPEATED));
}

static enum lk_code write_line(void *context, const struct lk_journal_row *row) {
    LK_TRY(lk_atomic_write(context, row->made.line, strlen(row->made.line)));
    return lk_atomic_write(context, "\n", 1);
}

const char study_log_header[] = "prompt_id,model_tag,seed,cfg,file_path,arm,steps,mode,fair_attribute,"
                                "fair_level,fair_label,scheduler,width,height,sha256\r\n";

struct log {
    const struct lk_study *study;
    struct lk_study_job job;
    struct lk_text text;
    bool any, hosted; /* hosted: lines say what came of asking */
};

void study_log_line(struct lk_text *out, const struct lk_study_job *job, int width, int height, const char *sha256) {
    bool quoted = strpbrk(job->output, ",\"") != NULL;
    const char *scheduler = job->job.request.scheduler;
    lk_text_add(out, "%s,%s,%llu,%.17g,%sresults/%s%s,%s,%d,text,%s,%s,%s", job->prompt->id, job->model_key,
                (unsigned long long)job->job.request.seed, job->cfg, quoted ? "\"" : "", job->output,
                quoted ? "\"" : "", job->mitigation, job->job.request.num_inference_steps, job->fair_attribute,
                job->fair_level, job->fair_label);
    lk_text_add(out, ",%s,%d,%d,%s\r\n",
                !scheduler          ? ""
                : *scheduler == '{' ? "file"
                                    : scheduler,
                width, height, sha256 ? sha256 : "");
}

/* A hosted model has no guidance and no steps. What it refused has no file, a placeholder one of its own. */
static enum lk_code log_answer(struct log *log, const struct lk_journal_row *row) {
    const struct lk_study_job *job = &log->job;
    cJSON *line = cJSON_Parse(row->made.line), *hosted = cJSON_GetObjectItemCaseSensitive(line, "hosted");
    struct lk_asked asked = {.outcome = row->state == LK_JOB_FAILED ? LK_OUTCOME_FAULT : LK_OUTCOME_MADE};
    char numbers[LK_N_ASKED_CELLS][24];
    const char *outcome = text_of(hosted, "outcome");
    if (outcome && lk_outcome_parse(outcome) >= 0) asked.outcome = (enum lk_outcome_kind)lk_outcome_parse(outcome);
    for (int i = 0; i < LK_N_ASKED_CELLS; i++) {
        asked.cells[i] = text_of(hosted, lk_asked_key(i));
        if (asked.cells[i] || !cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(hosted, lk_asked_key(i)))) continue;
        snprintf(numbers[i], sizeof numbers[i], "%.0f", number_of(hosted, lk_asked_key(i)));
        asked.cells[i] = numbers[i];
    }
    lk_text_add(&log->text, "%s,%s,%llu,%.0s,", job->prompt->id, job->model_key,
                (unsigned long long)job->job.request.seed, "");
    if (asked.outcome == LK_OUTCOME_MADE || asked.outcome == LK_OUTCOME_PLACEHOLDER)
        lk_print_csv_field(&log->text, text_of(line, "output_path"), "");
    const char *sha256 = text_of(line, "output_sha256");
    lk_text_add(&log->text, ",%s,,text,,,,,", job->mitigation);
    if (number_of(line, "width") > 0)
        lk_text_add(&log->text, "%.0f,%.0f", number_of(line, "width"), number_of(line, "height"));
    else
        lk_text_add(&log->text, ",");
    lk_text_add(&log->text, ",%s", sha256 ? sha256 : "");
    lk_asked_csv(&asked, &log->text);
    lk_text_add(&log->text, "\r\n");
    cJSON_Delete(line);
    return log->text.rc;
}

static enum lk_code log_picture(void *context, const struct lk_journal_row *row) {
    struct log *log = context;
    struct lk_study_job *job = &log->job;
    LK_TRY(lk_study_job(log->study, (size_t)row->entry.index, job));
    if (job->kind != LK_EXP_T2I || (!job->hosted && row->state != LK_JOB_DONE)) return LK_OK;
    log->any = true;
    if (job->hosted) return log_answer(log, row);
    cJSON *line = cJSON_Parse(row->made.line);
    study_log_line(&log->text, job, (int)number_of(line, "width"), (int)number_of(line, "height"),
                   text_of(line, "output_sha256"));
    cJSON_Delete(line);
    if (!log->hosted || log->text.rc) return log->text.rc;
    log->text.n -= 2; /* the end of the line */
    lk_asked_csv(&(struct lk_asked){.outcome = LK_OUTCOME_MADE}, &log->text);
    lk_text_add(&log->text, "\r\n");
    return log->text.rc;
}

static void begin_log(struct log *log) {
    for (int m = 0; m < lk_study_n_models(log->study); m++) log->hosted |= lk_study_model_hosted(log->study, m) != NULL;
    lk_text_add(&log->text, "%s", study_log_header);
    if (!log->hosted || log->text.rc) return;
    log->text.n -= 2; /* the end of the line */
    lk_asked_csv_header(&log->text);
    lk_text_add(&log->text, "\r\n");
}

/* generation_log.csv of what was made from text alone, if there is any. */
static enum lk_code write_log(const struct lk_study *study, struct lk_journal *journal, const char *folder) {
    char *path = lk_format("%s/generation_log.csv", folder);
    struct log *log = lk_calloc(1, sizeof *log);
    enum lk_code rc = path && log ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for the log of pictures");
    if (!rc) {
        log->study = study;
        begin_log(log);
        rc = lk_journal_each(journal, -1, true, log_picture, log);
    }
    if (!rc && log->any) rc = lk_atomic_write_file(path, log->text.bytes, log->text.n);
    if (log) lk_text_free(&log->text);
    lk_free(log);
    lk_free(path);
    return rc;
}

static enum lk_code write_manifest(struct lk_journal *journal, const char *folder) {
    struct lk_atomic_file *file;
    char *path = lk_format("%s/manifest.jsonl", folder);
    if (!path) return lk_fail(LK_E_NOMEM, "out of memory for the manifest");
    enum lk_code rc = lk_atomic_open(&file, path);
    lk_free(path);
    if (rc) return rc;
    if ((rc = lk_journal_each(journal, -1, true, write_line, file))) {
        lk_atomic_discard(file);
        return rc;
    }
    return lk_atomic_commit(file);
}

enum lk_code study_manifest_write(const struct lk_study *study, struct lk_journal *journal, const char *folder) {
    bool current;
    LK_TRY(lk_journal_manifest_is_current(journal, &current));
    if (current) return LK_OK;
    LK_TRY(lk_journal_manifest_begin(journal));
    LK_TRY(write_log(study, journal, folder));
    LK_TRY(write_manifest(journal, folder));
    return lk_journal_manifest_end(journal);
}
