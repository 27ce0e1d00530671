/* Prompts that a language model rewrites before a model's pictures: "rewrite" of its entry, and the list of what became
 * of each prompt, which `study rewrite` writes. A prompt that is not in it is a problem of its jobs. */
#include <cjson/cJSON.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/file.h"
#include "eval/design/internal.h"
#include "eval/scores/json_lines.h"
#include "models/recipe.h"
#include "models/rewrite/texts.h"

static const char default_file[] = "rewrites.jsonl";

#define MEMBER(field) offsetof(struct lk_study_rewriter, field)
const struct setting lk_rewrite_settings[] = {
    {"prompts", FILE_NAME, NULL, NULL, 0, 0, MEMBER(prompts),
     "the authors' texts, as tests/golden/generate_rewrite_prompts.py makes them"},
    {"model", TEXT, NULL, NULL, 0, 0, MEMBER(model),
     "who rewrites: a Qwen2.5-VL or Mistral-Small-3, a folder or ORG/NAME [default: the model's own text encoder]"},
    {"temperature", NUMBER, NULL, "0", 0, 1e4, MEMBER(temperature),
     "of what is drawn, with study_seed; 0: always the most likely token"},
    {"on_failure", CHOICE, "fail|keep", "fail", 0, 0, MEMBER(on_failure),
     "a prompt that could not be rewritten: its jobs fail, or it stays as it is and is counted apart"},
    {"file", FILE_NAME, NULL, default_file, 0, 0, MEMBER(file),
     "what 'likeness study rewrite' writes: a line for each prompt and its sources, of all models"},
    {0}};

static enum lk_code out_of_memory(const struct lk_study *s) {
    return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
}

/* A text of the object, kept; *ok false where it is another thing. */
static const char *text_of(struct lk_study *s, const cJSON *object, const char *key, const char *otherwise, bool *ok) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    const char *text = item ? cJSON_GetStringValue(item) : otherwise;
    if (item && (!text || !*text)) *ok = false;
    return text && *ok ? lk_store_text(&s->store, text) : NULL;
}

static enum lk_code read_object(struct lk_study *s, struct lk_study_model *m, const char *field, const cJSON *object) {
    struct lk_study_rewriter *r = &m->rewriter;
    const cJSON *item, *temperature = cJSON_GetObjectItemCaseSensitive(object, "temperature");
    bool ok = true;
    cJSON_ArrayForEach(item, object) {
        int i = 0;
        while (lk_rewrite_settings[i].key && strcmp(lk_rewrite_settings[i].key, item->string)) i++;
        if (!lk_rewrite_settings[i].key)
            return lk_study_bad(s, field, "expected prompts, model, temperature, on_failure and file, got \"%.60s\"",
                                item->string);
    }
    r->prompts = text_of(s, object, "prompts", NULL, &ok);
    r->model = text_of(s, object, "model", m->path, &ok);
    r->on_failure = text_of(s, object, "on_failure", "fail", &ok);
    r->file = text_of(s, object, "file", default_file, &ok);
    if (!ok || !r->prompts)
        return lk_study_bad(s, field,
                            "expected {\"prompts\": \"qwen-edit-2511.json\"} and, as texts, model, on_failure and "
                            "file, got something else");
    if (!r->model || !r->on_failure || !r->file) return out_of_memory(s);
    if (strcmp(r->on_failure, "fail") && strcmp(r->on_failure, "keep"))
        return lk_study_bad(s, field, "on_failure: expected fail or keep, got \"%.60s\"", r->on_failure);
    if (temperature) r->temperature = temperature->valuedouble;
    if (temperature && (!cJSON_IsNumber(temperature) || !(r->temperature >= 0 && r->temperature <= 1e4)))
        return lk_study_bad(s, field, "temperature: expected a number from 0 to 10000");
    r->prompts = lk_study_resolve(s, r->prompts);
    r->file = lk_study_resolve(s, r->file);
    if (cJSON_GetObjectItemCaseSensitive(object, "model")) r->model = lk_study_found(s, r->model);
    if (!r->prompts || !r->file || !r->model) return out_of_memory(s);
    lk_recipe_model_name(r->model, r->name);
    return LK_OK;
}

enum lk_code lk_study_read_rewrite(struct lk_study *s, struct lk_study_model *m, const char *field, const char *text,
                                   size_t n) {
    cJSON *object = cJSON_ParseWithLength(text, n);
    enum lk_code rc;
    if (m->hosted.given)
        rc = lk_study_bad(s, field, "%s runs elsewhere and gets the prompts as they are; leave it out", m->label);
    else if (!(lk_family_bit_of(m->family) & LK_FOR_EDITING))
        rc = lk_study_bad(s, field, "%s edits no pictures; leave it out", m->label);
    else if (!cJSON_IsObject(object))
        rc = lk_study_bad(s, field, "expected an object as {\"prompts\": \"qwen-edit-2511.json\"}, got something else");
    else
        rc = read_object(s, m, field, object);
    cJSON_Delete(object);
    return rc;
}

/* What a rewritten text depends on, a line each; the sources' pictures last. */
static void add_key(struct lk_text *out, const char *sha256, const char *name, double temperature, double seed,
                    const char *original) {
    lk_text_add(out, "%s\n%.17g %.0f\n", sha256, temperature, seed);
    lk_text_json(out, name);
    lk_text_json(out, original);
}

enum lk_code lk_study_rewrite_key(const struct lk_study *s, const struct lk_study_job *job, struct lk_text *out) {
    const struct lk_study_rewriter *r = job->rewriter;
    add_key(out, r->sha256, r->name, r->temperature, (double)s->study_seed, job->original_prompt);
    for (int i = 0; i < job->n_sources; i++) lk_text_add(out, " %s", s->sources[job->sources[i]].sha256);
    return out->rc;
}

/* A line of the list: what it is of, and itself. */
static enum lk_code take_line(struct lk_study *s, const struct lk_json_record *line, const char *name) {
    cJSON *object = cJSON_ParseWithLength(line->text, line->n);
    const cJSON *record = cJSON_GetObjectItemCaseSensitive(object, "rewrite"),
                *sources = cJSON_GetObjectItemCaseSensitive(object, "sources"),
                *model = cJSON_GetObjectItemCaseSensitive(record, "model"),
                *temperature = cJSON_GetObjectItemCaseSensitive(record, "temperature"),
                *seed = cJSON_GetObjectItemCaseSensitive(record, "seed"), *item;
    const char *t[] = {cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "prompts_sha256")),
                       cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(model, "name")),
                       cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(model, "weights")),
                       cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "original")),
                       cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "prompt")),
                       cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "failed"))};
    bool ok = t[0] && t[1] && t[2] && t[3] && !t[4] != !t[5] && cJSON_IsNumber(temperature) && cJSON_IsNumber(seed) &&
              cJSON_IsArray(sources);
    struct lk_text key = {0};
    int32_t number = 0;
    if (ok) add_key(&key, t[0], t[1], temperature->valuedouble, seed->valuedouble, t[3]);
    if (ok) cJSON_ArrayForEach(item, sources) {
            ok = ok && cJSON_IsString(item);
            if (ok) lk_text_add(&key, " %s", item->valuestring);
        }
    enum lk_code rc =
        ok ? key.rc
           : lk_fail(LK_E_INPUT,
                     "%s: line %zu: expected \"sources\" and \"rewrite\" as 'likeness study rewrite' writes "
                     "them",
                     name, line->line);
    if (!rc) rc = lk_names_number(&s->rewrites.keys, key.bytes, key.n, &number);
    if (!rc) rc = lk_grow(&s->rewrites.list, &s->rewrites.capacity, (size_t)number + 1, sizeof *s->rewrites.list);
    char *printed = rc ? NULL : cJSON_PrintUnformatted(record);
    if (!rc) {
        struct lk_study_rewritten *to = &s->rewrites.list[number];
        *to = (struct lk_study_rewritten){.record = lk_store_text(&s->store, printed),
                                          .weights = lk_store_text(&s->store, t[2]),
                                          .prompt = lk_store_text(&s->store, t[4]),
                                          .failed = lk_store_text(&s->store, t[5])};
        if (!to->record || !to->weights || (!to->prompt && !to->failed)) rc = out_of_memory(s);
    }
    cJSON_free(printed);
    lk_text_free(&key);
    cJSON_Delete(object);
    return rc;
}

/* A half line at the end is of a run that was killed, or is still writing. */
static enum lk_code read_list(struct lk_study *s, const char *file) {
    struct lk_json_lines lines;
    struct lk_json_record line;
    bool more = true;
    char *text;
    size_t n;
    enum lk_code rc = lk_read_file(file, (size_t)1 << 30, &text, &n);
    if (rc) return rc == LK_E_NOT_FOUND ? LK_OK : rc;
    lk_json_lines_open(&lines, text, lk_whole_lines(text, n), file);
    while (!(rc = lk_json_lines_next(&lines, &line, &more)) && more)
        if ((rc = take_line(s, &line, file))) break;
    lk_free(text);
    return rc;
}

enum lk_code lk_study_read_rewrites(struct lk_study *s) {
    for (int m = 0; m < s->n_models; m++) {
        struct lk_study_rewriter *r = &s->models[m].rewriter;
        struct lk_rewrite_texts texts;
        bool read = false;
        if (!r->prompts) continue;
        enum lk_code rc = lk_rewrite_texts_read(&texts, r->prompts);
        if (rc == LK_E_NOMEM) return rc;
        if (rc && !(r->problem = lk_store_text(&s->store, lk_error_text()))) rc = LK_E_NOMEM;
        if (!rc) {
            memcpy(r->sha256, texts.sha256, sizeof r->sha256);
            if (!(r->style = lk_store_text(&s->store, texts.style))) rc = LK_E_NOMEM;
        }
        lk_rewrite_texts_free(&texts);
        if (rc == LK_E_NOMEM) return out_of_memory(s);
        for (int k = 0; k < m; k++) read |= s->models[k].rewriter.file && !strcmp(s->models[k].rewriter.file, r->file);
        if (!read) LK_TRY(read_list(s, r->file));
    }
    return LK_OK;
}

enum lk_code lk_study_set_rewrite(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out) {
    const struct lk_study_rewriter *r = &s->models[key->model].rewriter;
    struct lk_text text = {0};
    if (!r->prompts || out->problem || !out->final_prompt) return LK_OK;
    out->rewriter = r;
    out->original_prompt = out->final_prompt;
    if ((out->problem = r->problem)) return LK_OK;
    enum lk_code rc = lk_study_rewrite_key(s, out, &text);
    const int32_t number = rc ? -1 : lk_names_find(&s->rewrites.keys, text.bytes, text.n);
    lk_text_free(&text);
    if (rc) return rc;
    out->rewrite_missing = number < 0;
    if (number < 0) {
        out->problem = "its prompt is not rewritten yet: 'likeness study rewrite' does it";
        return LK_OK;
    }
    const struct lk_study_rewritten *found = &s->rewrites.list[number];
    out->rewrite = found;
    if (found->prompt)
        out->final_prompt = found->prompt;
    else if (strcmp(r->on_failure, "keep"))
        out->problem = found->failed;
    return LK_OK;
}

/* Its files as the run's folder has them. */
static void add_name(struct lk_text *out, const struct lk_study_model *m, bool list) {
    lk_text_add(out, list ? "inputs/%s.rewrites.jsonl" : "inputs/%s.rewrite_prompts.json", m->key);
}

void lk_study_write_rewrite(const struct lk_study_model *m, bool places, struct lk_text *out) {
    const struct lk_study_rewriter *r = &m->rewriter;
    if (!r->prompts) return;
    lk_text_add(out, ", \"rewrite\": {");
    if (places) {
        for (int i = 0; i < 2; i++) {
            lk_text_add(out, i ? "\"file\": \"" : "\"prompts\": \"");
            add_name(out, m, i);
            lk_text_add(out, "\", ");
        }
        lk_text_add(out, "\"model\": ");
        lk_text_json(out, r->model);
    } else { /* it does not matter where they lie */
        lk_text_add(out, "\"prompts_sha256\": \"%s\", \"model\": ", r->sha256);
        lk_text_json(out, r->name);
    }
    lk_text_add(out, ", \"temperature\": %.17g, \"on_failure\": \"%s\"}", r->temperature, r->on_failure);
}

enum lk_code lk_study_rewrite_inputs(const struct lk_study *s, lk_study_input_fn *fn, void *context) {
    for (int m = 0; m < s->n_models; m++) {
        const struct lk_study_rewriter *r = &s->models[m].rewriter;
        for (int i = 0; i < 2 && r->prompts; i++) {
            struct lk_text name = {0};
            add_name(&name, &s->models[m], i);
            enum lk_code rc = name.rc ? name.rc : fn(context, name.bytes, i ? r->file : r->prompts);
            lk_text_free(&name);
            if (rc) return rc;
        }
    }
    return LK_OK;
}
